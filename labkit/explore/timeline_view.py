"""The live time machine: a menu for each place in the order, a slider over the steps (graph.js). No arithmetic here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labkit.explore import drawing, timeline
from labkit.explore.canvas import CanvasView
from labkit.explore.panel import HardwareState
from labkit.explore.timeline import PLACES, TimelineState
from labkit.explore.view import choice, slider
from labkit.graph import Graph

NONE = "–"


class TimelineView(CanvasView[TimelineState]):
    """The steps of one graph's optimisation. Of another order the step is the last one that exists, at most."""

    def __init__(self, graph: Graph, order: Sequence[str], state: HardwareState) -> None:
        self._graph, self._panel = graph, state
        chosen = [*order, *[NONE] * (len(PLACES) - len(order))]
        options = (NONE, *timeline.CHOICES)
        menus = {place: choice(place, options, name, "165px") for place, name in zip(PLACES, chosen, strict=True)}
        _let_swap(menus)
        controls = {**menus, "step": slider("step", 0, 0, 1, "500px")}
        super().__init__("graph.js", self._data, spec, controls, follows=[(state, "hardware")])

    def _data(self) -> TimelineState:
        order = [self.controls[place].value for place in PLACES if self.controls[place].value != NONE]
        whole = timeline.data(self._graph, order, 0, self._panel.hardware)
        last = len(whole.report.steps)
        step = min(self.controls["step"].value, last)
        self.controls["step"].max = last
        return TimelineState(whole.order, whole.report, step)


def _let_swap(menus: Mapping[str, Any]) -> None:
    """A round runs each pass once: a pass that is chosen for one place gives up the place it had."""

    def swap(change: Any) -> None:
        for menu in menus.values():
            if menu is not change["owner"] and menu.value == change["new"] != NONE:
                menu.value = change["old"]

    for menu in menus.values():
        menu.observe(swap, "value")


def spec(state: TimelineState) -> dict[str, Any]:
    """What graph.js needs to draw a state."""
    return {
        **drawing.spec(state.drawing),
        "steps": list(state.chips),
        "at": state.step,
        "facts": [list(fact) for fact in state.facts],
        "sentence": state.sentence,
        "code": state.diff,
    }
