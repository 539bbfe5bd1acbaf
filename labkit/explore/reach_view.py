"""The live reachability walk: a box for each possible output, a slider, the graph (graph.js). No arithmetic here."""

from __future__ import annotations

from typing import Any

import ipywidgets

from labkit.explore import drawing, reach
from labkit.explore.canvas import CanvasView
from labkit.explore.panel import HardwareState
from labkit.explore.reach import ReachState
from labkit.explore.view import slider
from labkit.graph import Graph


class ReachView(CanvasView[ReachState]):
    """The walk over one graph, on the machine of ``state``. The controls of outputs bear the outputs' names."""

    def __init__(self, graph: Graph, state: HardwareState) -> None:
        self._graph, self._panel = graph, state
        own = {value.name for value in graph.outputs}
        self._ends = [value.name for value in reach.candidates(graph)]
        width = ipywidgets.Layout(width="auto")
        boxes = {
            name: ipywidgets.Checkbox(value=name in own, description=f"output {name}", indent=False, layout=width)
            for name in self._ends
        }
        nodes = len(graph.nodes)
        controls = {**boxes, "looked": slider("looked at", nodes, 0, nodes, "400px")}
        super().__init__("graph.js", self._data, spec, controls, follows=[(state, "hardware")])

    def _data(self) -> ReachState:
        chosen = [name for name in self._ends if self.controls[name].value]
        return reach.data(self._graph, chosen, self.controls["looked"].value, self._panel.hardware)


def spec(state: ReachState) -> dict[str, Any]:
    """What graph.js needs to draw a state."""
    facts = [list(fact) for fact in state.facts]
    return {**drawing.spec(state.drawing), "facts": facts, "sentence": state.sentence}
