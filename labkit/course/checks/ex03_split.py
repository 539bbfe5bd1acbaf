"""The open part of exercise 03: the kernels that move the fewest bytes, when what runs together must fit on chip.

A drawn graph is a trunk with operands beside it: each node reads the one before. A group that hangs together and that
no path leaves and enters again is then a piece of the trunk, so the best split is known exactly.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import inf
from random import Random

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.ex03_graphs import ANCHORS, fault
from labkit.course.checks.graphs import Draft, entering, group_bytes, groups_of, leaving, nbytes, shown
from labkit.course.checks.question import until_one_suits
from labkit.graph import Graph, Value

_TAPS = 3  # rows of its image that one row of a convolution needs


@dataclass(frozen=True)
class Case:
    """A trunk, an SRAM, and what three ways to split it move. ``greedy`` takes as much as fits, from either end."""

    graph: Graph
    sram_bytes: int
    least_bytes: int
    greedy_bytes: tuple[int, int]


def room(graph: Graph, group: Collection[str]) -> int:
    """SRAM of a kernel that works row by row: constants as a whole, _TAPS rows of what its convolution reads, one row
    of each other tensor that it reads or makes. A value that is read once, and inside, is overwritten in its place."""
    images = {node.uses[0].name for node in map(graph.producers.__getitem__, group) if node.op in ANCHORS}
    needed = 0
    for name, value in entering(graph, group).items():
        rows = _TAPS if name in images else 1
        needed += nbytes(value) if name in graph.constants else rows * _row_bytes(value)
    for name in group:
        if len(graph.users.get(name, ())) != 1 or name in leaving(graph, group):
            needed += _row_bytes(graph.producers[name].output)
    return needed


def _row_bytes(value: Value) -> int:
    return nbytes(value) // int((value.shape or ())[2])


# ---- the best split, and two that come to mind first


@lru_cache(maxsize=8)
def _legal(graph: Graph) -> dict[tuple[int, int], tuple[int, int]]:
    """Room and bytes of each piece of the trunk that may be a kernel, by its ends."""
    names, found = list(graph.producers), {}
    for first, end in combinations(range(len(names) + 1), 2):
        group = tuple(names[first:end])
        if not any(graph.producers[name].op in ANCHORS for name in group[1:]):
            found[first, end] = room(graph, group), group_bytes(graph, group)
    return found


def _least(pieces: dict[tuple[int, int], int], length: int) -> float:
    best: list[float] = [0]
    for end in range(1, length + 1):
        best.append(min((best[first] + pieces.get((first, end), inf) for first in range(end)), default=inf))
    return best[-1]


def _greedy(pieces: dict[tuple[int, int], int], length: int, forwards: bool) -> int:
    """As much as fits, then the next, from the front or from the back."""
    moved, place = 0, 0 if forwards else length
    while place != (length if forwards else 0):
        others = range(length, place, -1) if forwards else range(place)
        ends = ((place, other) if forwards else (other, place) for other in others)
        piece = next(both for both in ends if both in pieces)
        moved, place = moved + pieces[piece], piece[1] if forwards else piece[0]
    return moved


# ---- drawn trunks


def trunk(draw: Random) -> Case:
    """A trunk and an SRAM with which neither greedy way is the best one, and one kernel a convolution does not fit."""
    return until_one_suits(lambda: _case_of(_trunk(draw), draw), "trunk that a greedy split does not solve")


def _case_of(graph: Graph, draw: Random) -> Case | None:
    """The trunk with one of three drawn SRAMs; None where a greedy way is the best with each."""
    legal, length = _legal(graph), len(graph.nodes)
    alone = max(legal[place, place + 1][0] for place in range(length))
    rooms = sorted({needed for needed, _ in legal.values() if needed >= alone})
    for sram_bytes in draw.sample(rooms, min(len(rooms), 3)):
        pieces = {ends: moved for ends, (needed, moved) in legal.items() if needed <= sram_bytes}
        least = int(_least(pieces, length))
        greedy = _greedy(pieces, length, True), _greedy(pieces, length, False)
        if least < min(greedy):
            return Case(graph, sram_bytes, least, greedy)
    return None


def _trunk(draw: Random) -> Graph:
    channels, height, width = draw.randrange(2, 5), draw.randrange(20, 41), draw.randrange(24, 49)
    shape = (1, channels, height, width)
    draft = Draft(draw, x=shape, r=shape, s=shape, t=shape)
    values = [draft.conv(draft.inputs[0])]
    second = draw.randrange(4, 7)
    for place in range(1, draw.randrange(9, 12)):
        values.append(draft.conv(values[-1]) if place == second else _next(draft, values, channels))
    tapped = draw.sample(values[1:-1], 1)
    return draft.graph(*tapped, values[-1])


def _next(draft: Draft, values: list[Value], channels: int) -> Value:
    draw = draft.draw
    kind = draw.choices(["one", "beside", "earlier", "vector"], [2, 4, 2, 1])[0]
    if kind == "one":
        return draft.add(draw.choice(["Relu", "Sigmoid"]), values[-1])
    if kind == "vector":
        return draft.add("Mul", values[-1], draft.constant(1, channels, 1, 1))
    beside = draw.choice(draft.inputs[1:]) if kind == "beside" or len(values) < 3 else draw.choice(values[:-1])
    return draft.add(draw.choice(["Add", "Mul"]), values[-1], beside)


# ---- the check


def check_kernels(function: Function, draw: Random) -> None:
    """3.8: a split of a trunk into kernels that fit; the fewest bytes that there are."""
    for _ in range(2):
        case = trunk(draw)
        graph, call = case.graph, f"kernels({shown(case.graph)}, {case.sram_bytes})"
        split = groups_of(function(graph, case.sram_bytes), graph, call)
        for group in split:
            _judge_group(graph, group, case.sram_bytes, call)
        moved = sum(group_bytes(graph, group) for group in split)
        if moved > case.least_bytes:
            raise CheckFailed(
                f"{call}: {len(split)} kernels move {moved:,} bytes; {case.least_bytes:,} can do: {_hint(case, moved)}"
            )


def _judge_group(graph: Graph, group: tuple[str, ...], sram_bytes: int, call: str) -> None:
    said = f"{call} has a kernel of {' '.join(group)}"
    if why := fault(graph, group):
        raise CheckFailed(f"{said}: {why}")
    if (needed := room(graph, group)) > sram_bytes:
        raise CheckFailed(f"{said}: its room is {needed:,} bytes.")


def _hint(case: Case, moved: int) -> str:
    alone = sum(group_bytes(case.graph, (name,)) for name in case.graph.producers)
    if moved == alone:
        return "that is each node alone; which neighbours could share a kernel?"
    if moved in case.greedy_bytes:
        return "that is what it moves when each kernel takes as much as fits. Where is it cheaper to stop earlier?"
    return "which values are written in any case, so that a cut behind them costs a read only?"
