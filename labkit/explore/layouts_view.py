"""The live view of lesson 01: controls, the memory strip (strip.js) and its state in text. No arithmetic here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import traitlets

from labkit.errors import LabError
from labkit.explore import layouts
from labkit.explore.turns import in_turn
from labkit.memory.lines import WALKS

_HERE = Path(__file__).parent


class MemoryStrip(anywidget.AnyWidget):
    """A canvas with the lines of memory and a list of facts beside it, both drawn from ``spec`` (some 500 bytes)."""

    _esm = _HERE / "strip.js"
    _css = _HERE / "strip.css"
    spec = traitlets.Dict().tag(sync=True)


class LayoutExplorer(ipywidgets.VBox):  # type: ignore[misc]
    """Controls over a memory strip. ``set(order="NHWC", C=4)`` moves controls from code; ``text`` is what it shows."""

    def __init__(self, shape: tuple[int, int, int, int], order: str) -> None:
        self.controls = _controls(shape, order)
        self._strip = MemoryStrip(spec={})
        self.text = ""
        named = self.controls
        super().__init__(
            [
                _row(named[name] for name in ("order", "walk", "line_bytes")),
                _row(named[name] for name in ("N", "C", "H", "W")),
                _row(named[name] for name in ("run", "base")),
                self._strip,
            ]
        )
        for control in named.values():
            control.observe(self._refresh, "value")
        self._refresh()

    @in_turn
    def set(self, **values: Any) -> LayoutExplorer:
        """Move controls by name, as a hand would: the view follows. LabError for a name that is none."""
        for name, value in values.items():
            if name not in self.controls:
                raise LabError(f"no control {name!r}; there are: {', '.join(self.controls)}")
            self.controls[name].value = value
        return self

    @in_turn
    def _refresh(self, _change: object = None) -> None:
        """Draw the state the controls describe; whatever goes wrong becomes a sentence in the view."""
        value = {name: control.value for name, control in self.controls.items()}
        try:
            shape = tuple(value.pop(axis) for axis in "NCHW")
            last = layouts.run_count(shape, value["walk"]) - 1
            self.controls["run"].max = last
            state = layouts.data(shape, **{**value, "run": min(value["run"], last)})
        except Exception as error:  # an exception in a callback is invisible in a notebook
            self.text = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
            self._strip.spec = {"error": f"No such layout: {self.text}."}
            return
        self.text = f"{state.headline}:\n{state.cost}\n{state.strip()}"
        self._strip.spec = spec(state)

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The live view, and its state in text for saved notebooks, nbval and readers without a browser."""
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        return {**bundle, "text/plain": self.text}


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
    box, style = ipywidgets.Layout, {"description_width": "initial"}

    def slider(name: str, value: int, low: int, high: int, width: str = "196px", step: int = 1) -> Any:
        return ipywidgets.IntSlider(
            value=value, min=low, max=high, step=step, description=name, style=style, layout=box(width=width)
        )

    def choice(name: str, options: tuple[Any, ...], value: Any) -> Any:
        return ipywidgets.Dropdown(
            options=options,
            value=value,
            description=name,
            style=style,
            layout=box(width="196px", margin="2px 18px 2px 2px"),
        )

    return {
        "order": choice("layout", layouts.ORDERS, order),
        "walk": choice("walk", tuple(WALKS), "channel"),
        "line_bytes": choice("line bytes", layouts.LINE_SIZES, 64),
        **{axis: slider(axis, n, 1, layouts.LARGEST[axis]) for axis, n in zip("NCHW", shape, strict=True)},
        "run": slider("run", 0, 0, layouts.run_count(shape, "channel") - 1, width="500px"),
        "base": slider("base (byte)", 0, 0, 60, width="280px", step=4),
    }


def _row(controls: Any) -> Any:
    return ipywidgets.HBox(list(controls), layout=ipywidgets.Layout(flex_flow="row wrap"))
