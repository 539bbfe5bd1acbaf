"""A cache in front of DRAM: set-associative, least recently used out first, write-back, write-allocate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from labkit.errors import LabError
from labkit.memory.affine import Int64s, Trace
from labkit.memory.distances import LruCounts, lru_counts
from labkit.memory.engine import EngineName, choose
from labkit.memory.expansion import Batch
from labkit.memory.owners import TensorLines
from labkit.memory.periodic import Period, period
from labkit.memory.program import Level
from labkit.memory.reuse import Start, miss_curve
from labkit.memory.stream import Batches
from labkit.memory.sweep import Sets, Sweep
from labkit.units import format_bytes

_BLOCK_ENTRIES = 20_000  # a block is long enough for the comparison of two states not to matter


@dataclass(frozen=True)
class Cache:
    """``size_bytes`` in lines of ``line_bytes``, ``ways`` of them in a set; ways None: one set, fully associative.

    A line belongs to the set of its number modulo the number of sets. Raises LabError when the size is no multiple.

    >>> Cache(32 * 1024, ways=8, line_bytes=64).sets
    64
    """

    size_bytes: int
    ways: int | None = None
    line_bytes: int = 64

    def __post_init__(self) -> None:
        ways = 1 if self.ways is None else self.ways
        if min(self.size_bytes, ways, self.line_bytes) < 1:
            raise LabError(
                f"cache of {self.size_bytes} bytes, {ways} ways, lines of {self.line_bytes} bytes: all at least 1"
            )
        if self.size_bytes % (ways * self.line_bytes):
            raise LabError(
                f"cache of {self.size_bytes} bytes is no multiple of {ways} ways × {self.line_bytes} bytes "
                f"= {ways * self.line_bytes}: it would end in the middle of a set"
            )

    @property
    def lines(self) -> int:
        """Number of lines it holds."""
        return self.size_bytes // self.line_bytes

    @property
    def sets(self) -> int:
        """Number of sets."""
        return 1 if self.ways is None else self.lines // self.ways


@dataclass(frozen=True)
class CacheCounts:
    """What one pass over a trace did in a cache.

    ``start``: "cold", from an empty cache and with a flush at the end, or "steady", the pass after a cold one, with no
    flush. ``write_backs``: dirty lines evicted during the pass. ``flushed``: dirty lines that the final flush writes.
    ``compulsory``: first touches of a line (none in a steady pass). ``fully_associative``: the misses of a fully
    associative LRU cache of the same size. These two are None where the kinds of misses were not asked for.
    ``by_tensor``: the same counts for each tensor; empty where two tensors share a line.
    """

    start: Start
    line_bytes: int
    accesses: int
    misses: int
    write_backs: int
    flushed: int
    compulsory: int | None = None
    fully_associative: int | None = None
    by_tensor: Mapping[str, CacheCounts] = field(default_factory=dict, repr=False)

    @property
    def hits(self) -> int:
        """Accesses that found their line."""
        return self.accesses - self.misses

    @property
    def capacity(self) -> int | None:
        """Capacity misses: those of the fully associative cache that are not compulsory."""
        if self.fully_associative is None or self.compulsory is None:
            return None
        return self.fully_associative - self.compulsory

    @property
    def conflict(self) -> int | None:
        """Conflict misses: those beyond the fully associative cache's.

        Fewer than 0 where the sets keep a line that LRU over the whole cache would have given away.
        """
        return None if self.fully_associative is None else self.misses - self.fully_associative

    @property
    def read_bytes(self) -> int:
        """Bytes read from DRAM: a line for each miss, reads and writes alike (write-allocate)."""
        return self.misses * self.line_bytes

    @property
    def write_bytes(self) -> int:
        """Bytes written to DRAM: a line for each write-back, the flush included."""
        return (self.write_backs + self.flushed) * self.line_bytes

    def __str__(self) -> str:
        moved = f"read {format_bytes(self.read_bytes)}, written {format_bytes(self.write_bytes)}"
        return f"{self.start}: {self.accesses} accesses, {self.misses} misses; {moved}"


def simulate(
    trace: Trace, cache: Cache, *, steady: bool = False, kinds: bool = True, engine: EngineName = "auto"
) -> CacheCounts:
    """Run a trace through a cache: one pass from cold, or, if ``steady``, the second of two passes.

    ``kinds=False`` leaves out the kinds of misses, which cost a second simulation of a fully associative cache.
    """
    if cache.ways is None:
        counts = lru_counts(trace, cache.lines, cache.line_bytes, steady, engine)
    else:
        counts = _SetRun(trace, cache, cache.ways, engine).counts(steady)
    kinds_of: tuple[Int64s, Int64s] | None = None
    if kinds and counts.compulsory is not None:
        kinds_of = counts.compulsory, counts.misses
    elif kinds:
        table = miss_curve(trace, cache.line_bytes, steady=steady, engine=engine).miss_table
        kinds_of = table[:, -1], table[:, min(cache.lines, table.shape[1] - 1)]
    return _summary(trace, cache.line_bytes, steady, counts, kinds_of)


def _summary(
    trace: Trace, line_bytes: int, steady: bool, counts: LruCounts, kinds: tuple[Int64s, Int64s] | None
) -> CacheCounts:
    start: Start = "steady" if steady else "cold"
    flushed = np.zeros_like(counts.misses) if steady else counts.dirty_after
    evicted = counts.dirty_before + counts.dirtied - counts.dirty_after

    def of(accesses: int, pick: slice) -> CacheCounts:
        compulsory, associative = (int(kind[pick].sum()) for kind in kinds) if kinds else (None, None)
        misses, out, last = (int(column[pick].sum()) for column in (counts.misses, evicted, flushed))
        return CacheCounts(start, line_bytes, accesses, misses, out, last, compulsory, associative)

    tensors = {}
    if TensorLines(trace, line_bytes).disjoint:
        made = trace.accesses_by_tensor
        tensors = {name: of(made[name], slice(at, at + 1)) for at, name in enumerate(trace.tensors)}
    return replace(of(trace.accesses, slice(None)), by_tensor=tensors)


class _SetRun:
    """Passes of a trace through a set-associative cache.

    **Outer loops.** A block (see ``periodic``) whose trace and whose state at the end are those of the block before,
    renamed, is followed by blocks that all count the same. So the state is compared after each block, and on the first
    match the rest is counted without being made; the lines in the cache then move to where they would have been.
    """

    def __init__(self, trace: Trace, cache: Cache, ways: int, engine: EngineName) -> None:
        self._batches = Batches(trace, cache.line_bytes)
        self._owners = TensorLines(trace, cache.line_bytes)
        self._ways, self._sets = ways, cache.sets
        self._tags = np.full(cache.lines, -1, dtype=np.int64)  # 2 · line + dirty; see the engines
        self._misses, self._dirtied = np.zeros((2, len(trace.tensors)), dtype=np.int64)
        program = self._batches.program
        self._items = program.top if program else ()
        self._periods = [self._period(item) for item in self._items]
        self._engine = choose(self._entries(), engine)
        if self._engine.has_forms:
            self._batches.allow_forms(Sets(self._sets, ways))

    def counts(self, steady: bool) -> LruCounts:
        """Of the first pass, or of the second."""
        before = self._dirty()
        self._once()
        if steady:
            before = self._dirty()
            self._misses[:] = self._dirtied[:] = 0
            self._once()
        return LruCounts(self._misses, self._dirtied, before, self._dirty())

    def _once(self) -> None:
        if not self._items:
            self._engine.lru_list(self._tags, self._ways, self._batches, self._misses, self._dirtied)
        for item, each in zip(self._items, self._periods, strict=True):
            if each is not None and isinstance(item, Level):
                self._by_blocks(item, each)
            else:
                self._part(item)

    def _part(self, item: Level | int, start: int = 0, stop: int | None = None) -> None:
        for piece in self._batches.pieces(item, start, stop):
            if isinstance(piece, Batch):
                self._engine.lru(self._tags, self._ways, piece, self._misses, self._dirtied)
            else:
                assert isinstance(piece, Sweep), "digested pieces are for distances"
                self._engine.sweep(self._tags, self._ways, piece, self._misses, self._dirtied)

    def _by_blocks(self, level: Level, each: Period) -> None:
        blocks, previous = level.count // each.iterations, None
        for done in range(1, blocks + 1):
            counts = self._misses.copy(), self._dirtied.copy()
            self._part(level, (done - 1) * each.iterations, done * each.iterations)
            state = self._moved(-done * each.shift)
            if previous is not None and np.array_equal(state, previous):
                left = blocks - done
                self._misses += left * (self._misses - counts[0])
                self._dirtied += left * (self._dirtied - counts[1])
                self._tags = self._moved(left * each.shift)[0]
                break
            previous = state
        if blocks * each.iterations < level.count:
            self._part(level, blocks * each.iterations, level.count)

    def _moved(self, shift: Int64s) -> Int64s:
        """(the tags with the lines of each tensor moved, the tensors)."""
        owners = self._owners.of(self._tags >> 1)
        return np.stack([np.where(self._tags < 0, -1, self._tags + 2 * shift[owners]), owners])

    def _dirty(self) -> Int64s:
        """Dirty lines of each tensor."""
        dirty = self._tags[(self._tags >= 0) & (self._tags & 1 == 1)] >> 1
        return np.bincount(self._owners.of(dirty), minlength=len(self._misses)).astype(np.int64)

    def _period(self, item: Level | int) -> Period | None:
        program = self._batches.program
        if program is None or isinstance(item, int) or not self._owners.disjoint:
            return None
        each = period(program, item, self._batches.line_bytes, self._sets)
        if each is None:
            return None
        entries = self._batches.entries(item) * each.iterations / item.count
        each = each.times(max(1, ceil(_BLOCK_ENTRIES / entries)))
        return each if item.count >= 3 * each.iterations else None

    def _entries(self) -> float:
        if not self._items:
            return self._batches.trace.accesses
        shares = (
            min(1.0, 3 * each.iterations / item.count) if each and isinstance(item, Level) else 1.0
            for item, each in zip(self._items, self._periods, strict=True)
        )
        return sum(self._batches.entries(item) * share for item, share in zip(self._items, shares, strict=True))
