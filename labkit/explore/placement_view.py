"""The live game of transposes (placement.js). No arithmetic here."""

from __future__ import annotations

from typing import Any

import ipywidgets

from labkit.explore import drawing, placement
from labkit.explore.canvas import CanvasView
from labkit.explore.placement import FREE, PlacementState


class PlacementView(CanvasView[PlacementState]):
    """A switch for each kernel that could work in either order, and one that shows the best placement."""

    def __init__(self) -> None:
        controls = {name: _switch(f"{name} in NHWC") for name in FREE}
        controls["compare"] = _switch("compare with the best")
        super().__init__("placement.js", self._data, spec, controls)

    def _data(self) -> PlacementState:
        inside = [name for name in FREE if self.controls[name].value]
        return placement.data(inside, self.controls["compare"].value)


def _switch(label: str) -> Any:
    layout = ipywidgets.Layout(width="auto", margin="0 18px 0 0")
    return ipywidgets.Checkbox(value=False, description=label, indent=False, layout=layout)


def spec(state: PlacementState) -> dict[str, Any]:
    """What placement.js needs: boxes with their order and whether it is free, and edges with or without a transpose."""
    graph, at, sides = placement.example(), state.places, state.sides
    boxes = [[value.name, "", *at[value.name], 0, 0] for value in graph.inputs]
    boxes += [
        [node.op, name, *at[name], int(sides[name] == "hardware"), int(name in FREE)]
        for node, name in ((node, drawing.key(node)) for node in graph.nodes)
    ]
    boxes += [[value.name, "", *at[f"{value.name}→"], 0, 0] for value in graph.outputs]
    keys = [*(value.name for value in graph.inputs), *map(drawing.key, graph.nodes)]
    index = {name: i for i, name in enumerate([*keys, *(f"{value.name}→" for value in graph.outputs)])}
    columns, rows = (1 + max(place[axis] for place in at.values()) for axis in (0, 1))
    return {
        "boxes": boxes,
        "edges": [[index[a], index[b], int((a, b) in state.crossings)] for a, b in drawing.edges(graph)],
        "size": [columns, rows],
        "facts": [list(fact) for fact in state.facts],
        "sentence": state.sentence,
    }
