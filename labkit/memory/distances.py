"""One pass, or two, of a trace through the reuse-distance engine, outer loops extrapolated where that is exact."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labkit.errors import LabError
from labkit.memory.affine import Int64s, Trace
from labkit.memory.digest import Digested
from labkit.memory.engine import EngineName, choose
from labkit.memory.expansion import Batch
from labkit.memory.owners import TensorLines
from labkit.memory.periodic import Period, period, stands_alone
from labkit.memory.program import Level
from labkit.memory.stream import Batches
from labkit.memory.sweep import Sweep

_MOST_LINES = 2**27
_SPARSE = 2**22  # from so many lines on, gaps between them are closed if few of them are touched


class LruCounts(NamedTuple):
    """Of one pass through an LRU cache, for each tensor.

    ``dirtied``: writes that made a clean line dirty; each such line is written to DRAM once, later or in the flush.
    ``dirty_before`` and ``dirty_after``: dirty lines in the cache when the pass began and when it ended.
    ``compulsory``: first touches of a line, where they were counted.
    """

    misses: Int64s
    dirtied: Int64s
    dirty_before: Int64s
    dirty_after: Int64s
    compulsory: Int64s | None = None


class LineNumbers:
    """Small numbers for the lines of a trace: from the lowest line on, or without gaps where few lines are touched.

    Raises LabError where even that is too many.
    """

    def __init__(self, batches: Batches, low: int, high: int) -> None:
        self._low, self.count = low, high - low + 1
        self.table: Int64s | None = None
        if self.count >= max(_SPARSE, 4 * batches.trace.accesses):
            self.table = np.zeros(0, dtype=np.int64)
            for batch in batches.all():
                self.table = np.union1d(self.table, batch.lines)
            self.count = len(self.table)
        if self.count > _MOST_LINES:
            raise LabError(
                f"the trace spans {self.count} lines of {batches.line_bytes} bytes: exact distances are kept for "
                f"up to {_MOST_LINES}"
            )

    def of(self, lines: Int64s) -> Int64s:
        """The numbers of lines, from 0 to below ``count``."""
        return lines - self._low if self.table is None else np.searchsorted(self.table, lines)

    def lines(self, numbers: Int64s) -> Int64s:
        """The lines with these numbers."""
        return numbers + self._low if self.table is None else self.table[numbers]


class DistanceRun:
    """The histograms of ``compiled.Reuse`` over as many passes as are asked for.

    **Extrapolation.** Two blocks that touch the same line are at most ``lag`` apart (see ``periodic``). From an empty
    cache, a block with ``lag`` others before it then finds for each access, renamed, the history that the block before
    it found, so it has equal distances: one block counts for all that follow.
    """

    def __init__(self, trace: Trace, line_bytes: int, engine: EngineName, extrapolate: bool = True) -> None:
        self.batches = Batches(trace, line_bytes)
        self.owners = TensorLines(trace, line_bytes)
        self._numbers = LineNumbers(self.batches, int(self.owners.lows.min()), int(self.owners.highs.max()))
        program, dense = self.batches.program, self._numbers.table is None
        self._items = program.top if program else ()
        self._skip = self._longest() if extrapolate and dense and self.owners.disjoint else None
        tensors = len(trace.tensors)
        self._moved = np.zeros(tensors, dtype=np.int64)
        chosen = choose(self._entries(), engine)
        self._reuse = chosen.Reuse(self._numbers.count, tensors)
        if chosen.has_forms:
            self.batches.allow_forms()
        self._added: tuple[Int64s, Int64s] | None = None
        self._old = 0

    def once(self) -> None:
        """One pass over the trace."""
        for batch in () if self._items else self.batches.all():
            self._feed(batch)
        for item in self._items:
            if self._skip and item is self._skip[0]:
                self._extrapolate(*self._skip)
            else:
                self._feed_part(item)

    def histograms(self) -> tuple[Int64s, Int64s]:
        """(distances, rewrites) so far; a copy."""
        own = self._reuse.distances.copy(), self._reuse.rewrites.copy()
        return own if self._added is None else (own[0] + self._added[0], own[1] + self._added[1])

    def knows(self, room: int) -> bool:
        """Whether it is known which lines a cache of ``room`` lines now holds, and whether they are dirty.

        After an extrapolation that is so for the lines touched last, down to those that were touched before it, or so
        early in it that their last write may lie in a block that was left out.
        """
        return self._skip is None or room <= self._reuse.stack()[0].size - self._old

    def dirty(self, room: int) -> Int64s:
        """Dirty lines of each tensor that a cache of ``room`` lines now holds; ask ``knows`` first."""
        numbers, worst = (column[:room] for column in self._reuse.stack())
        found = numbers[worst < min(room, self._numbers.count)]
        owners = self.owners.of(self._numbers.lines(found))
        return np.bincount(owners, minlength=len(self._moved)).astype(np.int64)

    # ---- helpers

    def _feed(self, piece: Batch | Digested) -> None:
        lines = piece.lines - self._moved[piece.tensors] if self._moved.any() else piece.lines
        numbered = piece._replace(lines=self._numbers.of(lines))
        if isinstance(numbered, Batch):
            self._reuse.feed(numbered)
        else:
            self._reuse.feed_digested(numbered)

    def _feed_part(self, item: Level | int, start: int = 0, stop: int | None = None) -> None:
        for piece in self.batches.pieces(item, start, stop):
            assert not isinstance(piece, Sweep), "sweeps are for caches with sets"
            self._feed(piece)

    def _extrapolate(self, level: Level, each: Period) -> None:
        """The first blocks and the rest of an incomplete last one; what comes later moves back over those left out."""
        blocks, made = level.count // each.iterations, each.blocks_made
        self._feed_part(level, 0, each.write_lag * each.iterations)
        self._old = self._reuse.stack()[0].size
        self._feed_part(level, each.write_lag * each.iterations, (made - 1) * each.iterations)
        before = self.histograms()
        self._feed_part(level, (made - 1) * each.iterations, made * each.iterations)
        distances, rewrites = (now - then for now, then in zip(self.histograms(), before, strict=True))
        self._added = distances * (blocks - made), rewrites * (blocks - made)
        rest = level.count % each.iterations
        if rest:
            self._feed_part(level, made * each.iterations, made * each.iterations + rest)
        self._moved = each.shift * (blocks - made)

    def _longest(self) -> tuple[Level, Period] | None:
        """The outermost loop with the most entries of those in which blocks can be left out, and its period."""
        program, found = self.batches.program, []
        assert program is not None or not self._items
        for item in self._items:
            if program and isinstance(item, Level):
                each = period(program, item, self.batches.line_bytes)
                if each and item.count // each.iterations > each.blocks_made and stands_alone(program, item, each):
                    found.append((item, each))
        return max(found, key=lambda pair: self.batches.entries(pair[0]), default=None)

    def _entries(self) -> float:
        entries = sum(self.batches.entries(item) for item in self._items)
        if self._skip:
            level, each = self._skip
            entries -= self.batches.entries(level) * (1 - (each.blocks_made + 1) * each.iterations / level.count)
        return entries if self._items else self.batches.trace.accesses


def lru_counts(trace: Trace, room: int, line_bytes: int, steady: bool, engine: EngineName) -> LruCounts:
    """What a fully associative LRU cache of ``room`` lines counts in its first pass, or if ``steady`` in its second."""
    run = DistanceRun(trace, line_bytes, engine, extrapolate=not steady)
    run.once()
    if not run.knows(room):
        run = DistanceRun(trace, line_bytes, engine, extrapolate=False)
        run.once()
    before = np.zeros(len(trace.tensors), dtype=np.int64)
    histograms = run.histograms()
    if steady:
        before = run.dirty(room)
        run.once()
        both = run.histograms()
        histograms = both[0] - histograms[0], both[1] - histograms[1]
    distances, rewrites = histograms
    misses, dirtied = (part[:, min(room, part.shape[1] - 1) :].sum(axis=1) for part in (distances, rewrites))
    return LruCounts(misses, dirtied, before, run.dirty(room), distances[:, -1])
