"""The best tile: an exact optimum of the traffic model over tiles and loop orders, without trying them all one by one.

Three facts shrink the space and lose nothing. (1) A tile size matters only through the number of its tiles, so of all
sizes with the same number the smallest is enough (on a window axis, also those that load fewer elements). (2) Loops
that index the same operands are alike to all of them, so only the order of such groups matters, and which loop of a
group is innermost, where a window may slide. (3) A plain loop of the innermost group is best cut either not at all or
as finely as possible. What is left is a grid, which NumPy evaluates at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from labkit.access import Operand
from labkit.candidates import Grid, Table, cut_least_or_most, make_table
from labkit.errors import LabError
from labkit.loops import Buffers, CPolicy, Halo, LoopNest
from labkit.problems import Problem
from labkit.units import format_bytes


@dataclass(frozen=True)
class BestTile:
    """The nest that moves the fewest bytes, and how many candidates were weighed. Ties go to the smaller working set,
    then to the first in the order of the search, so the answer never depends on chance."""

    nest: LoopNest
    candidates: int

    @property
    def dram_bytes(self) -> int:
        return self.nest.traffic.nbytes


def best_tile(
    problem: Problem,
    sram_bytes: int,
    *,
    c_policy: CPolicy = "store",
    buffers: Buffers = "single",
    halo: Halo = "reload",
) -> BestTile:
    """The tile and loop order that move the fewest bytes with an SRAM of this size.

    Raises LabError when not even one element of each operand fits.

    >>> from labkit.problems import matmul
    >>> best = best_tile(matmul(1024, 1024, 1024), 512 * 1024)
    >>> best.nest.tile, best.dram_bytes
    ((342, 342, 1), 29360128)
    """
    found = [
        (entry.best_bytes, entry.working_set, rank, entry)
        for rank, entry in enumerate(_search(problem, sram_bytes, c_policy, buffers, halo))
        if entry.nest is not None
    ]
    if not found:
        needed = LoopNest(problem, (1,) * len(problem.loops), tuple(problem.loops), c_policy, buffers).working_set_bytes
        raise LabError(f"SRAM of {format_bytes(sram_bytes)}: one element of each operand needs {format_bytes(needed)}")
    *_, best = min(found, key=lambda row: row[:3])
    assert best.nest is not None
    return BestTile(best.nest, sum(entry.candidates for *_, entry in found))


@dataclass(frozen=True)
class _Entry:
    """The best of one loop order."""

    nest: LoopNest | None
    best_bytes: float
    working_set: float
    candidates: int


def _search(problem: Problem, sram_bytes: int, c_policy: CPolicy, buffers: Buffers, halo: Halo) -> Iterator[_Entry]:
    loops = tuple(problem.loops)
    whole = make_table(problem, halo)
    for order, innermost in _orders(problem, halo):
        table = cut_least_or_most(whole, problem, innermost)
        working_set = _working_set(problem, table, buffers)
        total = _total_bytes(problem, table, order, c_policy, halo)
        total, working_set = np.broadcast_arrays(np.where(working_set <= sram_bytes, total, np.inf), working_set)
        least = total.min()
        if not np.isfinite(least):
            yield _Entry(None, np.inf, np.inf, total.size)
            continue
        ties = np.flatnonzero(total.ravel() == least)
        at = np.unravel_index(ties[working_set.ravel()[ties].argmin()], total.shape)
        tile = tuple(int(table.sizes[loop].ravel()[at[i]]) for i, loop in enumerate(loops))
        nest = LoopNest(problem, tile, order, c_policy, buffers, halo)
        yield _Entry(nest, float(least), float(working_set[at]), total.size)


def _orders(problem: Problem, halo: Halo) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    """Loop orders worth trying, each with the loops of its innermost group, which fact (3) is about."""
    groups: dict[frozenset[str], list[str]] = {}
    for loop in problem.loops:
        users = frozenset(x.name for x in problem.operands if loop in x.loops)
        groups.setdefault(users, []).append(loop)
    everywhere = groups.pop(frozenset(x.name for x in problem.operands), [])
    windows = {axis.loops[0] for x in problem.inputs for axis in x.axes if not axis.is_plain}
    for arrangement in permutations(groups.values()):
        last = arrangement[-1] if arrangement else []
        sliding = [loop for loop in last if loop in windows] if halo == "slide" else []
        for inner in sliding or last[-1:]:
            innermost = [*(loop for loop in last if loop != inner), inner]
            order = (*everywhere, *(loop for group in arrangement[:-1] for loop in group), *innermost)
            yield order, frozenset(last)


def _working_set(problem: Problem, table: Table, buffers: Buffers) -> Grid:
    unit = LoopNest(problem, (1,) * len(problem.loops), tuple(problem.loops), buffers=buffers)
    total: Grid = np.zeros((1,) * len(problem.loops))
    for operand in problem.operands:
        total = total + unit.slots(operand) * table.largest[operand.name]
    return total


def _total_bytes(problem: Problem, table: Table, order: tuple[str, ...], c_policy: CPolicy, halo: Halo) -> Grid:
    """Bytes of every candidate under one order: the closed form of LoopNest, over arrays."""
    output = problem.output
    passes = _passes(output, table, order)
    if c_policy == "spill":
        passes = np.ones_like(passes)
        for loop in problem.reductions:
            passes = passes * table.trips[loop]
    total = output.nbytes * (2 * passes - (c_policy == "store"))
    for operand in problem.inputs:
        loaded = table.loaded[operand.name]
        one_pass = loaded[None]
        if halo == "slide":
            for loop in (loop for loop in loaded if loop is not None):
                one_pass = np.where(_is_moving(loop, operand, table, order), loaded[loop], one_pass)
        total = total + _passes(operand, table, order) * one_pass
    return total


def _passes(operand: Operand, table: Table, order: tuple[str, ...]) -> Grid:
    """How often the whole operand comes: loops that do not index it, outside one that moves it."""
    moved: NDArray[np.bool_] = np.zeros((1,) * len(order), dtype=bool)
    passes: Grid = np.ones((1,) * len(order))
    for loop in reversed(order):
        if loop in operand.loops:
            moved = moved | (table.trips[loop] > 1)
        else:
            passes = passes * np.where(moved, table.trips[loop], 1)
    return passes


def _is_moving(loop: str, operand: Operand, table: Table, order: tuple[str, ...]) -> NDArray[np.bool_]:
    """Where a loop is the innermost one that moves an operand's tile."""
    inside = order[order.index(loop) + 1 :]
    moving: NDArray[np.bool_] = table.trips[loop] > 1
    for other in inside:
        if other in operand.loops:
            moving = moving & (table.trips[other] == 1)
    return moving
