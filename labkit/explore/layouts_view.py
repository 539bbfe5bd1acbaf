"""The live view of lesson 01: controls, the memory strip (strip.js) and its state in text. No arithmetic here."""

from __future__ import annotations

from typing import Any

from labkit.explore import layouts, screen
from labkit.explore.canvas import CanvasPicture
from labkit.explore.turns import in_turn
from labkit.explore.view import View, choice, explain, slider


class LayoutExplorer(View):
    """Controls over a memory strip."""

    def __init__(self, shape: tuple[int, int, int, int], order: str) -> None:
        self._axes = layouts.axes_of(order)
        self._strip = CanvasPicture("strip.js")
        super().__init__(_controls(shape, order), [self._strip, screen.switch()])
        self.refresh()

    @in_turn
    def refresh(self, _change: object = None) -> None:
        """Draw the state the controls describe."""
        value = {name: control.value for name, control in self.controls.items()}
        try:
            shape = tuple(value.pop(axis) for axis in self._axes)
            last = layouts.run_count(shape, value["walk"], value["order"]) - 1
            self.controls["run"].max = last
            state = layouts.data(shape, **{**value, "run": min(value["run"], last)})
        except Exception as error:  # an exception in a callback is invisible in a notebook
            self.text = explain(error)
            self._strip.spec = {"error": self.text}
            return
        self.text = f"{state.headline}:\n{state.cost}\n{state.strip()}"
        self._strip.spec = spec(state)


def spec(state: layouts.LayoutState) -> dict[str, Any]:
    """What strip.js needs to draw a state."""
    layout = state.layout
    return {
        "axes": [[axis, layout.length(axis)] for axis in layout.memory_axes],
        "size": layout.size,
        "first": state.base // state.itemsize,
        "width": state.line_bytes // state.itemsize,
        "itemsize": state.itemsize,
        "lines": state.lines,
        "rows": list(state.rows),
        "touched": list(state.touched),
        "facts": [list(fact) for fact in state.facts],
        "sentence": f"{state.headline}: {state.cost}",
    }


def _controls(shape: tuple[int, int, int, int], order: str) -> dict[str, Any]:
    base = slider("base (byte)", 0, 0, 60)
    base.step = 4
    orders = layouts.WEIGHT_ORDERS if order in layouts.WEIGHT_ORDERS else layouts.ORDERS
    walks, axes = list(layouts.walks(order)), layouts.axes_of(order)
    return {
        "order": choice("layout", orders, order),
        "walk": choice("walk", walks, walks[0]),
        "line_bytes": choice("line bytes", layouts.LINE_SIZES, 64),
        **{axis: slider(axis, n, 1, layouts.LARGEST[axis], "196px") for axis, n in zip(axes, shape, strict=True)},
        "run": slider("run", 0, 0, layouts.run_count(shape, walks[0], order) - 1, "500px"),
        "base": base,
    }
