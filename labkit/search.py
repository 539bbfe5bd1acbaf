"""The best tile: an exact optimum of the traffic model over tiles and loop orders, without trying them all one by one.

Four facts shrink the space and lose nothing. (1) A tile size matters only through the number of its tiles, so of all
sizes with the same number the smallest is enough (on a window axis, also those that load fewer elements). (2) Loops
that index the same operands are alike to all of them, so only the order of such groups matters, and which loop of a
group is innermost, where a window may slide. (3) A plain loop of the innermost group is best cut either not at all or
as finely as possible, unless each cut spills the output once more. (4) A larger tile of a plain loop never moves more
bytes, so one such loop need not be searched: its largest tile that fits is best. What is left is a grid, which NumPy
evaluates at once.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labkit.candidates import Grid
from labkit.cuts import Cut, cuts_of, fit, smallest
from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.loops import Buffers, CPolicy, Halo, LoopNest
from labkit.problems import Problem
from labkit.units import format_bytes
from labkit.weigh import dram_bytes, working_set_bytes


@dataclass(frozen=True)
class BestTile:
    """The nest that moves the fewest bytes, and of how many candidates it is the best. Ties go to the smaller working
    set, then to the first in the order of the search, so the answer never depends on chance."""

    nest: LoopNest
    candidates: int

    @property
    def dram_bytes(self) -> int:
        return self.nest.traffic.nbytes


def best_tile(
    problem: Problem,
    sram: int | Hardware,
    *,
    c_policy: CPolicy = "store",
    buffers: Buffers = "single",
    halo: Halo = "reload",
) -> BestTile:
    """The tile and loop order that move the fewest bytes with an SRAM of this many bytes, or that of this hardware.

    Raises LabError when not even one element of each operand fits, and for a problem with too many tiles to weigh.

    >>> from labkit.problems import matmul
    >>> best = best_tile(matmul(1024, 1024, 1024), 512 * 1024)
    >>> best.nest.tile, best.dram_bytes
    ((342, 342, 1), 29360128)
    """
    sram_bytes = sram.sram_bytes if isinstance(sram, Hardware) else sram
    return _best_tile(_unit_nest(problem, c_policy, buffers, halo), sram_bytes)


class ParetoPoint(NamedTuple):
    """From this SRAM size on, this nest moves the fewest bytes, until the next point."""

    sram_bytes: int
    dram_bytes: int
    nest: LoopNest


@dataclass(frozen=True)
class Pareto:
    """The fewest bytes that a tiled nest moves, as a step function of the SRAM size: the "ski slope".

    Source of the name: Huang, Tsai, Emer and Parashar, "Mind the gap: attainable data movement and operational
    intensity bounds for tensor algorithms", ISCA 2024.
    """

    points: tuple[ParetoPoint, ...]  # SRAM grows and bytes fall from each to the next

    def at(self, sram_bytes: int) -> ParetoPoint:
        """The best nest for an SRAM of this size; LabError when nothing fits."""
        place = bisect_right(self.points, sram_bytes, key=lambda point: point.sram_bytes)
        if place == 0:
            raise _does_not_fit(self.points[0].nest, sram_bytes)
        return self.points[place - 1]

    def bytes_at(self, sram_bytes: int) -> int:
        """The fewest bytes with an SRAM of this size; LabError when nothing fits."""
        return self.at(sram_bytes).dram_bytes


def pareto(
    problem: Problem, *, c_policy: CPolicy = "store", buffers: Buffers = "single", halo: Halo = "reload"
) -> Pareto:
    """``best_tile`` for every SRAM size at once; remembered, so that asking again costs nothing.

    >>> from labkit.problems import matmul
    >>> slope = pareto(matmul(1024, 1024, 1024))
    >>> slope.bytes_at(64 * 1024), slope.bytes_at(512 * 1024), slope.points[-1].dram_bytes
    (75497472, 29360128, 12582912)
    """
    return _pareto(_unit_nest(problem, c_policy, buffers, halo))


def _unit_nest(problem: Problem, c_policy: CPolicy, buffers: Buffers, halo: Halo) -> LoopNest:
    """The question as a nest of the smallest tiles, whose options are checked and whose order is still open."""
    return LoopNest(problem, (1,) * len(problem.loops), tuple(problem.loops), c_policy, buffers, halo)


def _does_not_fit(nest: LoopNest, sram_bytes: int) -> LabError:
    unit = LoopNest(nest.problem, (1,) * len(nest.tile), nest.order, nest.c_policy, nest.buffers)
    needed = format_bytes(unit.working_set_bytes)
    return LabError(f"SRAM of {format_bytes(sram_bytes)}: one element of each operand needs {needed}")


@lru_cache(maxsize=4096)  # layers of a network are often alike
def _best_tile(unit: LoopNest, sram_bytes: int) -> BestTile:
    cuts = cuts_of(unit)
    fitted = [fit(unit, cut.table, sram_bytes) for cut in cuts]
    totals = [
        [np.where(left.fits, dram_bytes(nest, left.table), np.inf) for nest in cut.nests]
        for cut, left in zip(cuts, fitted, strict=True)
    ]
    lowest = [[total.min() for total in orders] for orders in totals]
    least = min(min(orders) for orders in lowest)
    if not np.isfinite(least):
        raise _does_not_fit(unit, sram_bytes)
    ties = [{i: totals[cut][i] for i, low in enumerate(orders) if low == least} for cut, orders in enumerate(lowest)]
    found = [smallest(least, ties[i], fitted[i], cut) for i, cut in enumerate(cuts) if ties[i]]
    _, number, place, order = min(found)
    return BestTile(cuts[number].nest_at(order, place), sum(len(cut.nests) * prod(cut.table.shape) for cut in cuts))


@lru_cache(maxsize=256)
def _pareto(unit: LoopNest) -> Pareto:
    cuts = cuts_of(unit)
    rows = np.concatenate([_frontier(unit, cut) for cut in cuts])
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    points = []
    for working_set, total, number, place, order in rows[_falls(rows[:, 1])].tolist():
        nest = cuts[int(number)].nest_at(int(order), int(place))
        points.append(ParetoPoint(int(working_set), int(total), nest))
    return Pareto(tuple(points))


def _frontier(unit: LoopNest, cut: Cut) -> Grid:
    """Rows (working set, bytes, cut, place, order) of the candidates that move fewer bytes than all smaller ones."""
    size = prod(cut.table.shape)
    if size > _MOST_CELLS:
        raise LabError(f"{unit.problem.name}: a curve through {size:,} tiles; labkit draws up to {_MOST_CELLS:,}")
    least, best = np.full(cut.table.shape, np.inf), np.zeros(cut.table.shape, np.int8)
    for order, nest in enumerate(cut.nests):
        total = dram_bytes(nest, cut.table)
        best[np.broadcast_to(total < least, best.shape)] = order
        np.minimum(least, total, out=least)
    working_set = np.broadcast_to(working_set_bytes(unit, cut.table), least.shape).ravel()
    by_room = np.argsort(working_set, kind="stable")
    kept = by_room[_falls(least.ravel()[by_room])]
    columns = (working_set[kept], least.ravel()[kept], np.full(kept.shape, cut.number), kept, best.ravel()[kept])
    return np.stack([column.astype(np.float64) for column in columns], axis=1)


_MOST_CELLS = 20_000_000


def _falls(numbers: Grid) -> NDArray[np.bool_]:
    """Where a number is below all before it."""
    lowest = np.minimum.accumulate(numbers)
    return np.append(True, lowest[1:] < lowest[:-1])
