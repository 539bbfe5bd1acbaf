"""Affine access: which positions of a tensor a piece of a loop nest uses. All counting of tiles starts here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabError


@dataclass(frozen=True)
class Axis:
    """One axis of an operand: loop indices i select position Σ coefficient·i + offset, where 0 ≤ position < extent.

    Positions outside are padding: they read as zero, have no memory and never move.
    """

    terms: tuple[tuple[str, int], ...]
    extent: int
    offset: int = 0

    @cached_property
    def loops(self) -> tuple[str, ...]:
        return tuple(loop for loop, _ in self.terms)

    @cached_property
    def is_plain(self) -> bool:
        """Whether it simply is one loop."""
        return self.offset == 0 and len(self.terms) == 1 and self.terms[0][1] == 1

    def positions(self, ranges: Mapping[str, range]) -> NDArray[np.int64]:
        """The distinct positions that these loop ranges select, in order; a stride beyond the kernel leaves gaps."""
        if self.is_plain:
            return np.arange(ranges[self.loops[0]].start, ranges[self.loops[0]].stop)
        found = np.array([self.offset])
        for loop, coefficient in self.terms:
            found = np.unique(np.add.outer(found, coefficient * np.arange(ranges[loop].start, ranges[loop].stop)))
        return found[(found >= 0) & (found < self.extent)]

    def count(self, ranges: Mapping[str, range]) -> int:
        """How many there are; none for an empty range."""
        if not all(len(ranges[loop]) for loop in self.loops):
            return 0
        if self.is_plain:
            return len(ranges[self.loops[0]])
        return int(self.counts([[ranges[loop]] for loop in self.loops])[0])

    @lru_cache(maxsize=65536)  # noqa: B019 - an axis is a small frozen value, and searches ask the same again and again
    def tile_counts(self, extents: tuple[int, ...], tiles: tuple[int, ...], sliding: bool = False) -> NDArray[np.int64]:
        """Positions that each tile loads, for loops of these extents cut into tiles of these sizes, last loop fastest.

        ``sliding``: what the tile before held stays, so only new positions are loaded; one loop only may be cut then.
        """
        if (total := prod(-(-extent // tile) for extent, tile in zip(extents, tiles, strict=True))) > _MOST_TILES:
            raise LabError(f"{total:,} tiles along one axis; labkit counts up to {_MOST_TILES:,}")
        return self.counts([tile_ranges(extent, tile) for extent, tile in zip(extents, tiles, strict=True)], sliding)

    def counts(self, cut: Sequence[Sequence[range]], sliding: bool = False) -> NDArray[np.int64]:
        """Positions of each combination of ranges, the last loop fastest; ``sliding`` as for ``tile_counts``."""
        if sliding:
            return self._new_counts(cut)
        low, high, step, gaps = self._progressions(cut)
        counts: NDArray[np.int64] = np.maximum((high - low) // step + 1, 0)
        if gaps.any() and len(self.terms) == 2:
            spaced, apart = self._spaced_counts(cut)
            counts, gaps = np.where(gaps & apart, spaced, counts), gaps & ~apart
        if gaps.any():
            combinations = list(product(*cut))
            for i in np.flatnonzero(gaps):
                counts[i] = len(self.positions(dict(zip(self.loops, combinations[i], strict=True))))
        return counts

    def _spaced_counts(self, cut: Sequence[Sequence[range]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Positions where the coarser loop steps over more than the finer one covers, and where that is so.

        Each step then has a run of its own, and only the first run and the last can be partly outside the tensor.
        """
        (fine, a), (coarse, b) = sorted(zip(self.terms, range(2), strict=True), key=lambda row: row[0][1])
        d, c = fine[1], coarse[1]
        starts = [np.array([r.start for r in ranges]) for ranges in cut]
        sizes = [np.array([len(r) for r in ranges]) for ranges in cut]
        shape = [(-1, 1), (1, -1)]
        j, nj = (array[a].reshape(shape[a]) for array in (starts, sizes))
        i, ni = (array[b].reshape(shape[b]) for array in (starts, sizes))
        reach, base = d * (nj - 1), self.offset + d * j
        first = np.maximum(i, -((base + reach) // c))  # the first run that ends inside, and the last that starts there
        last = np.minimum(i + ni - 1, (self.extent - 1 - base) // c)
        before = np.clip(-((base + c * first) // d), 0, nj)
        behind = nj - np.clip((self.extent - 1 - base - c * last) // d + 1, 0, nj)
        counts = np.where(first <= last, (last - first + 1) * nj - before - behind, 0)
        return counts.ravel(), np.broadcast_to(c > reach, counts.shape).ravel()

    def _new_counts(self, cut: Sequence[Sequence[range]]) -> NDArray[np.int64]:
        """Positions of each combination that the one before it did not hold."""
        low, high, step, gaps = self._progressions(cut)
        if not gaps.any() and (step == 1).all():
            low[1:] = np.maximum(low[1:], high[:-1] + 1)
            return np.asarray(np.maximum(high - low + 1, 0))
        held = [self.positions(dict(zip(self.loops, ranges, strict=True))) for ranges in product(*cut)]
        return np.array([len(held[0]), *(len(np.setdiff1d(new, old)) for old, new in pairwise(held))])

    def _progressions(self, cut: Sequence[Sequence[range]]) -> tuple[NDArray[np.int64], ...]:
        """First and last position inside the tensor, step, and whether there are gaps, for each combination.

        Without gaps the positions are an arithmetic progression: the finer loop fills the steps of the coarser one.
        """
        first, last, step, count, gaps = (np.array(v) for v in (self.offset, self.offset, 1, 1, False))
        for (_, coefficient), ranges in sorted(zip(self.terms, cut, strict=True), key=lambda row: row[0][1]):
            shape = [len(ranges) if other is ranges else 1 for other in cut]
            start = np.array([r.start for r in ranges]).reshape(shape)
            size = np.array([len(r) for r in ranges]).reshape(shape)
            first, last = first + coefficient * start, last + coefficient * (start + size - 1)
            opens, goes_on = (size > 1) & (count == 1), (size > 1) & (count > 1)
            gaps = gaps | (goes_on & ((coefficient % step != 0) | (coefficient > step * count)))
            longer = np.where(goes_on, coefficient // step * (size - 1) + count, count)
            count, step = np.where(opens, size, longer), np.where(opens, coefficient, step)
        first, last, step, gaps = (array.ravel() for array in np.broadcast_arrays(first, last, step, gaps))
        low = first - np.minimum(first, 0) // step * step
        high = last - np.maximum(last - self.extent + 1 + step - 1, 0) // step * step
        return low, high, step, gaps


_MOST_TILES = 10_000_000


@dataclass(frozen=True)
class Operand:
    """A tensor of a problem: its name, its axes in memory order, and the NumPy name of its element type. What its axes
    select is one element, or a row of ``width`` of them that is never cut."""

    name: str
    axes: tuple[Axis, ...]
    dtype: str
    width: int = 1

    @cached_property
    def loops(self) -> frozenset[str]:
        """The loops that index it; every other loop uses the same elements again."""
        return frozenset(loop for axis in self.axes for loop in axis.loops)

    @property
    def itemsize(self) -> int:
        """Bytes of what the axes select: an element or a row."""
        return self.width * np.dtype(self.dtype).itemsize

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.extent for axis in self.axes)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor."""
        return prod(self.shape) * self.itemsize

    def tile_bytes(self, ranges: Mapping[str, range]) -> int:
        """Bytes of the elements that these loop ranges use."""
        return prod(axis.count(ranges) for axis in self.axes) * self.itemsize

    def runs(self, positions: Sequence[NDArray[np.int64]]) -> int:
        """Contiguous pieces of memory that hold the elements at these positions of each axis, walked row by row."""
        pieces, inside_is_whole = 1, True
        for axis, at in zip(reversed(self.axes), reversed(positions), strict=True):
            pieces *= intervals(at) if inside_is_whole else len(at)
            inside_is_whole = inside_is_whole and len(at) == axis.extent
        return pieces


def intervals(positions: NDArray[np.int64]) -> int:
    """Pieces without a gap that sorted positions fall into."""
    if len(positions) == 0 or positions[-1] - positions[0] == len(positions) - 1:
        return min(len(positions), 1)
    return 1 + int(np.count_nonzero(np.diff(positions) > 1))


def tile_ranges(extent: int, tile: int) -> Sequence[range]:
    """The index ranges of the tiles of one loop; the last may be smaller.

    >>> tile_ranges(10, 4)
    [range(0, 4), range(4, 8), range(8, 10)]
    """
    return [range(start, min(start + tile, extent)) for start in range(0, extent, tile)]
