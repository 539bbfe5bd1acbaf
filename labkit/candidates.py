"""What each candidate tile size means, as arrays over a grid: trips, bytes of the largest tile, bytes of one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import product
from math import isqrt, prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labkit.access import Axis, tile_ranges
from labkit.errors import LabError
from labkit.loops import Halo
from labkit.problems import Problem

Grid: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """What the candidates of each loop mean for one set of options, as arrays laid along the axes of the grid."""

    sizes: Mapping[str, NDArray[np.int64]]
    trips: Mapping[str, Grid]
    largest: Mapping[str, Grid]  # bytes of the largest tile, by operand
    loaded: Mapping[str, Mapping[str | None, Grid]]  # bytes of one pass, by operand and by the loop that slides

    @property
    def shape(self) -> tuple[int, ...]:
        """Candidates of each loop."""
        return np.broadcast_shapes(*(size.shape for size in self.sizes.values()))

    def map(self, change: Callable[[Any], Any]) -> Table:
        """The table with every array changed."""
        return Table(
            {loop: change(grid) for loop, grid in self.sizes.items()},
            {loop: change(grid) for loop, grid in self.trips.items()},
            {name: change(grid) for name, grid in self.largest.items()},
            {name: {loop: change(grid) for loop, grid in grids.items()} for name, grids in self.loaded.items()},
        )


def window_loops(problem: Problem) -> frozenset[str]:
    """The loops of axes such as p·stride + r; the others are plain."""
    return frozenset(loop for x in problem.inputs for axis in x.axes if not axis.is_plain for loop in axis.loops)


def make_table(problem: Problem, halo: Halo) -> Table:
    """The candidates of each loop, and what they mean for each operand.

    Raises LabError when there are too many to weigh, before any of them is made.
    """
    _check_number(problem)
    windows = {axis: _window(axis, problem, halo) for x in problem.inputs for axis in x.axes if not axis.is_plain}
    cut = {axis.loops[0]: window.sizes for axis, window in windows.items()}
    for axis in windows:
        base, *taps = (problem.loops[loop] for loop in axis.loops)
        cut |= dict(zip(axis.loops[1:], map(tuple, _tap_sizes(base, taps)), strict=True))
    sizes: dict[str, NDArray[np.int64]] = {}
    for place, (loop, extent) in enumerate(problem.loops.items()):
        found = cut.get(loop) or _sizes(extent)
        sizes[loop] = np.array(found).reshape([len(found) if i == place else 1 for i in range(len(problem.loops))])
    trips = {loop: np.ceil(problem.loops[loop] / size) for loop, size in sizes.items()}
    largest: dict[str, Grid] = {}
    loaded: dict[str, dict[str | None, Grid]] = {}
    for x in problem.operands:
        grids = [_axis_grids(axis, sizes, windows.get(axis)) for axis in x.axes]
        one = np.ones((1,) * len(problem.loops))  # an operand without axes is the same all over the grid
        largest[x.name] = _product((grid.largest for grid in grids), one) * problem.held_itemsize(x)
        loaded[x.name] = {None: _product((grid.loaded for grid in grids), one) * x.itemsize}
        for grid in grids:
            others = _product((other.loaded for other in grids if other is not grid), one * x.itemsize)
            loaded[x.name] |= {loop: others * sliding for loop, sliding in grid.sliding.items()}
    return Table(sizes, trips, largest, loaded)


def _check_number(problem: Problem) -> None:
    """One plain loop is never searched, so it does not count."""
    numbers = {loop: min(extent, 2 * isqrt(extent)) for loop, extent in problem.loops.items()}
    plain = [number for loop, number in numbers.items() if loop not in window_loops(problem)]
    windows = [axis.loops for x in problem.inputs for axis in x.axes if not axis.is_plain]
    for base, *taps in windows:
        if not _cuts_taps(problem.loops[base], [problem.loops[tap] for tap in taps]):
            numbers |= dict.fromkeys(taps, 1)
    longest = max((problem.loops[base] for base, *_ in windows), default=0)
    searched = prod(numbers.values()) // max(plain, default=1)
    if max(numbers.values()) > _MOST_SIZES or searched > _MOST_CELLS or longest > _MOST_WINDOWS:
        sizes = ", ".join(f"{loop}={extent:,}" for loop, extent in problem.loops.items())
        raise LabError(f"{problem.name} has too many tiles to weigh ({sizes}): search a smaller problem")


_MOST_SIZES, _MOST_CELLS, _MOST_WINDOWS = 10**6, 2 * 10**7, 10**5
_MOST_CUTS = 10**4  # sizes of a window's loop, for each cut of its taps


def _tap_sizes(base: int, taps: Sequence[int]) -> list[list[int]]:
    """The tiles of a window's taps. Very long windows (audio) are not cut: weighing that takes minutes, and a tile of a
    few taps loads nearly what all of them do."""
    return [_sizes(tap) for tap in taps] if _cuts_taps(base, taps) else [[tap] for tap in taps]


def _cuts_taps(base: int, taps: Sequence[int]) -> bool:
    return base * prod(min(tap, 2 * isqrt(tap)) for tap in taps) <= _MOST_CUTS


@dataclass(frozen=True)
class _AxisGrids:
    """Positions of one axis by candidate: in the largest tile, loaded in one pass, and when a loop of it slides."""

    largest: Grid
    loaded: Grid
    sliding: Mapping[str, Grid]


@dataclass(frozen=True)
class _Window:
    """The candidates of a window axis's first loop, and counts of positions: a row a candidate, a column a cut of the
    other loops (the taps)."""

    sizes: tuple[int, ...]
    largest: Grid
    loaded: Grid
    sliding: tuple[Grid, ...]  # by loop; empty when windows are loaded anew


def _axis_grids(axis: Axis, sizes: Mapping[str, NDArray[np.int64]], window: _Window | None) -> _AxisGrids:
    if window is None:
        size = sizes[axis.loops[0]]
        return _AxisGrids(size.astype(np.float64), np.full((1,) * size.ndim, float(axis.extent)), {})
    shape = np.broadcast_shapes(*(sizes[loop].shape for loop in axis.loops))  # loops of an axis stand in problem order
    sliding = {loop: grid.reshape(shape) for loop, grid in zip(axis.loops, window.sliding, strict=False)}
    return _AxisGrids(window.largest.reshape(shape), window.loaded.reshape(shape), sliding)


def _window(axis: Axis, problem: Problem, halo: Halo) -> _Window:
    terms = tuple((str(i), coefficient) for i, (_, coefficient) in enumerate(axis.terms))
    return _window_of(Axis(terms, axis.extent, axis.offset), tuple(problem.loops[loop] for loop in axis.loops), halo)


@lru_cache(maxsize=1024)  # rows and columns of an image are often alike, and so are layers
def _window_of(axis: Axis, extents: tuple[int, ...], halo: Halo) -> _Window:
    base, *taps = extents
    cuts = list(product(*_tap_sizes(base, taps)))
    sums, maxima = (np.array(rows).T for rows in zip(*(_by_size(axis, extents, cut) for cut in cuts), strict=True))
    slid = _by_size(axis, extents, cuts[-1], sliding=True)[0] if halo == "slide" else sums[:, -1]
    # Of the sizes with one number of tiles a larger one stays only if it loads less than each smaller one that stays.
    kept: dict[int, list[int]] = {}
    for row, loads in enumerate(np.column_stack([sums, slid])):
        alike = kept.setdefault(-(-base // (row + 1)), [])
        if not any((np.append(sums[old], slid[old]) <= loads).all() for old in alike):
            alike.append(row)
    rows = sorted(row for alike in kept.values() for row in alike)
    sliding: tuple[Grid, ...] = ()
    if halo == "slide":
        by_base, by_tap = sums.astype(np.float64), sums.astype(np.float64)
        by_base[:, -1] = slid  # slides along its first loop only while all taps are in one tile
        by_tap[-1] = [axis.tile_counts(extents, (base, *cut), True).sum() for cut in cuts]
        sliding = (by_base[rows], *(by_tap[rows] for _ in taps))
    return _Window(tuple(row + 1 for row in rows), maxima[rows].astype(float), sums[rows].astype(float), sliding)


def _by_size(
    axis: Axis, extents: tuple[int, ...], cut: tuple[int, ...], sliding: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions loaded in one pass, and in the largest tile, for every size of the first loop at once."""
    base, *taps = extents
    ranges = [tile_ranges(base, size) for size in range(1, base + 1)]
    starts = np.cumsum([0, *map(len, ranges[:-1])])
    tapped = [tile_ranges(extent, size) for extent, size in zip(taps, cut, strict=True)]
    counts = axis.counts([[r for some in ranges for r in some], *tapped], sliding).reshape(starts[-1] + 1, -1)
    if sliding:  # the first tile of each size follows no other
        counts[starts] = axis.counts([[some[0] for some in ranges], *tapped]).reshape(base, -1)
    return np.add.reduceat(counts, starts).sum(axis=1), np.maximum.reduceat(counts, starts).max(axis=1)


def _product(grids: Iterable[Grid], start: Grid) -> Grid:
    return reduce(np.multiply, grids, start)


def _sizes(extent: int) -> list[int]:
    """The smallest tile for each number of tiles: about 2·√extent of them.

    >>> _sizes(10)
    [1, 2, 3, 4, 5, 10]
    """
    found, tiles = set(), 1
    while tiles <= extent:
        size = -(-extent // tiles)
        found.add(size)
        tiles = -(-extent // (size - 1)) if size > 1 else extent + 1  # the next number that allows a smaller tile
    return sorted(found)
