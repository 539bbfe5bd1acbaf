"""The search space of ``best_tile``: loop orders, gathered by what their innermost group allows, and grids of tiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.candidates import Grid, Table, make_table, window_loops
from labkit.loops import LoopNest
from labkit.problems import Problem
from labkit.weigh import dram_bytes, working_set_bytes


@dataclass(frozen=True)
class Cut:
    """Loop orders that share an innermost group, and the candidates that fact (3) leaves them."""

    number: int
    nests: tuple[LoopNest, ...]
    table: Table

    def nest_at(self, order: int, place: int) -> LoopNest:
        """The candidate at a place of the grid, counted in C order."""
        at = np.unravel_index(place, self.table.shape)
        sizes = zip(self.table.sizes.values(), at, strict=True)
        return replace(self.nests[order], tile=tuple(int(size.ravel()[i]) for size, i in sizes))


def cuts_of(unit: LoopNest) -> list[Cut]:
    """The orders worth trying for the problem and options of a nest, with the candidates of each."""
    whole = make_table(unit.problem, unit.halo)
    counted = unit.problem.reductions if unit.c_policy == "spill" else ()  # each cut of these moves the output again
    by_group: dict[frozenset[str], list[LoopNest]] = {}
    for order, group in _orders(unit):
        innermost = group.difference(counted)
        by_group.setdefault(innermost, []).append(replace(unit, order=order))
    return [
        Cut(number, tuple(nests), _cut_least_or_most(whole, unit.problem, group))
        for number, (group, nests) in enumerate(by_group.items())
    ]


def _orders(unit: LoopNest) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    """Loop orders, each with the loops of its innermost group.

    Where no output tile may leave unfinished, a cut reduction must stand inside every cut loop of the output; a loop
    that is not cut is no matter wherever it stands, so orders with all reductions innermost are enough. Then any group
    may be the innermost that is cut, and a window of each may slide.
    """
    problem, complete = unit.problem, unit.c_policy == "complete"
    everywhere = frozenset(x.name for x in problem.operands)
    groups: dict[frozenset[str], list[str]] = {}
    windows = frozenset(loop for loop in window_loops(problem) if problem.loops[loop] > 1)
    for loop, extent in problem.loops.items():
        users = frozenset(x.name for x in problem.operands if loop in x.loops)
        if users == everywhere and loop in windows and unit.halo == "slide":
            users |= {""}  # it slides only inside the others, so it may not simply stand outside of all
        groups.setdefault(users if extent > 1 else everywhere, []).append(loop)  # a loop of one step moves nothing
    fixed = groups.pop(everywhere, [])
    for arrangement in permutations(groups.values()):
        reducing = [group[0] in problem.reductions for group in arrangement]
        if complete and reducing != sorted(reducing):
            continue
        last_window = max((i for i, group in enumerate(arrangement) if windows.intersection(group)), default=-1)
        slides = [unit.halo == "slide" and (complete or i == last_window) for i in range(-1, len(arrangement))]
        each = zip((fixed, *arrangement), slides, strict=True)
        choices = [_each_innermost(group, windows) if slide else [group] for group, slide in each]
        for chosen in product(*choices):
            yield tuple(loop for group in chosen for loop in group), frozenset(arrangement[-1] if arrangement else ())


def _each_innermost(group: list[str], windows: frozenset[str]) -> list[list[str]]:
    """The group with each of its window loops innermost in turn, the last first; as it is when it has none."""
    found = [loop for loop in reversed(group) if loop in windows]
    return [[*(other for other in group if other != loop), loop] for loop in found] or [group]


def _cut_least_or_most(table: Table, problem: Problem, loops: frozenset[str]) -> Table:
    """The table with the plain ones of these loops left only their finest and their coarsest cut."""
    windows = window_loops(problem)
    places = [i for i, loop in enumerate(problem.loops) if loop in loops - windows]

    def ends(grid: Any) -> Any:
        for place in places:
            if grid.shape[place] > 2:
                grid = np.take(grid, [0, -1], place)
        return grid

    return table.map(ends)


@dataclass(frozen=True)
class Fitted:
    """What fact (4) leaves of a table: one plain loop has, for any choice of the others, its largest tile that fits."""

    table: Table  # sizes and largest tiles are those before
    fits: NDArray[np.bool_]
    place: int | None  # of that loop; None when no loop is plain


def fit(unit: LoopNest, table: Table, sram_bytes: int) -> Fitted:
    """The candidates worth weighing for an SRAM of one size."""
    windows = window_loops(unit.problem)
    plain = [(-size.size, i, loop) for i, (loop, size) in enumerate(table.sizes.items()) if loop not in windows]
    if not plain:
        return Fitted(table, working_set_bytes(unit, table) <= sram_bytes, None)
    _, place, loop = min(plain)
    finest = (slice(None),) * place + (slice(1),)
    sizes = table.sizes[loop].ravel()
    parts = [(x, unit.slots(x) * table.largest[x.name][finest]) for x in unit.problem.operands]
    a_step: Grid = reduce(np.add, [part for x, part in parts if loop in x.loops]) / sizes[0]
    constant: Grid = reduce(np.add, [part for x, part in parts if loop not in x.loops], np.array(0.0))
    index = np.searchsorted(sizes, (sram_bytes - constant) // a_step, side="right") - 1
    trips = {**table.trips, loop: table.trips[loop].ravel()[index]}  # a plain loop changes nothing else about the bytes
    return Fitted(replace(table, trips=trips), index >= 0, place)


def smallest(least: float, totals: Mapping[int, Grid], fitted: Fitted, cut: Cut) -> tuple[float, int, int, int]:
    """Of the candidates of a cut that move ``least`` bytes, the one with the smallest working set: this, the number of
    the cut, the place in its grid, and the order. ``totals`` are the bytes by order.

    By fact (4) each of them is in the totals with the largest tile of the fitted loop; a smaller one may do as well.
    """
    shape = cut.table.shape
    ties = reduce(np.logical_or, [total == least for total in totals.values()])
    at: list[NDArray[Any]] = [i[:, None] for i in np.nonzero(ties)]
    if fitted.place is not None:
        at[fitted.place] = np.arange(shape[fitted.place])[None, :]
    table = cut.table.map(lambda grid: _pick(grid, at))
    place = np.ravel_multi_index(np.broadcast_arrays(*at), shape)
    working_set = np.broadcast_to(working_set_bytes(cut.nests[0], table), place.shape)
    found = []
    for order in totals:
        is_best = np.broadcast_to(dram_bytes(cut.nests[order], table) == least, place.shape)
        lowest = working_set[is_best].min()
        found.append((float(lowest), cut.number, int(place[is_best & (working_set == lowest)].min()), order))
    return min(found)


def _pick(grid: NDArray[Any], at: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The cells at these indices; a grid that is one cell long along an axis is the same all along it."""
    picked: NDArray[Any] = grid[tuple(i if n > 1 else _FIRST for i, n in zip(at, grid.shape, strict=True))]
    return picked


_FIRST = np.zeros((1, 1), int)
