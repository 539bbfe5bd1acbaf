"""The live picture of kernels on a graph (grouping.js). No arithmetic here."""

from __future__ import annotations

from math import inf
from typing import Any

from labkit.explore import blocks, drawing, grouping
from labkit.explore.canvas import CanvasView
from labkit.explore.grouping import GroupingState, Kernel
from labkit.explore.panel import HardwareState
from labkit.explore.view import choice, stops
from labkit.units import KIB, format_bytes


class GroupingView(CanvasView[GroupingState]):
    """The picture with the rates and launch cost of ``state``, and an SRAM of its own."""

    def __init__(self, state: HardwareState) -> None:
        self._panel = state
        controls = {
            "name": choice("graph", blocks.GRAPHS, blocks.GRAPHS[0], "300px"),
            "policy": choice(
                "fuse", [(f"{key}: {what}", key) for key, what in grouping.POLICIES.items()], "best", "310px"
            ),
            "sram_kib": stops("SRAM", [(format_bytes(kib * KIB), kib) for kib in grouping.SRAM_KIB], 48, "400px"),
        }
        super().__init__("grouping.js", self._data, _spec, controls, [(state, "hardware")])

    def _data(self) -> GroupingState:
        chosen = {name: control.value for name, control in self.controls.items()}
        return grouping.data(**chosen, hardware=self._panel.hardware)


def _spec(state: GroupingState) -> dict[str, Any]:
    """What grouping.js needs: boxes with the numbers of their kernels, edges, and a line for each kernel."""
    at, graph, number = state.places, state.graph, state.number
    names = [*(value.name for value in graph.inputs), *map(drawing.key, graph.nodes)]
    labels = [*(value.name for value in graph.inputs), *(_short(node.op) for node in graph.nodes)]
    ends = [value.name for value in graph.outputs]
    boxes = [[label, name, *at[name], number.get(name, 0)] for label, name in zip(labels, names, strict=True)]
    boxes += [[name, name, *at[f"{name}→"], 0] for name in ends]
    index = {name: i for i, name in enumerate([*names, *(f"{name}→" for name in ends)])}
    edges = [
        [index[one], index[two], int(one in number and number[one] == number.get(two))]
        for one, two in drawing.edges(graph)
    ]
    most = max((kernel.dram_bytes for kernel in state.kernels if kernel.dram_bytes < inf), default=1)
    columns, rows = (1 + max(place[axis] for place in at.values()) for axis in (0, 1))
    return {
        "boxes": boxes,
        "edges": edges,
        "size": [columns, rows],
        "kernels": [_line(kernel, most, state.sram_bytes) for kernel in state.kernels],
        "facts": [list(fact) for fact in state.facts],
        "sentence": state.sentence,
        "code": state.why,
    }


def _line(kernel: Kernel, most: float, sram_bytes: int) -> list[Any]:
    """Name, bar and words of what it moves, bar and words of its room, and whether it fits."""
    fits = kernel.dram_bytes < inf
    moved = [round(kernel.dram_bytes / most, 3), format_bytes(int(kernel.dram_bytes))] if fits else [0, "does not fit"]
    room = kernel.working_set_bytes
    return [kernel.name, *moved, round(min(1, room / sram_bytes), 3), f"room {format_bytes(room)}", int(fits)]


def _short(op: str) -> str:
    return grouping.SHORT.get(op, op)
