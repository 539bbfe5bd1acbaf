"""Traces in chunks: addresses, lines, and batches of line sequences in which exact repetition is already collapsed.

**Why a repeated sequence needs only two passes.** Let the same sequence of lines be made r times in a row. LRU keeps
lines by the order of their last use, and that order after the second pass is the one after the first. So the third
pass finds what the second found, and hits, misses and reuse distances of passes 2 to r are equal: pass 1 counts once,
pass 2 counts r - 1 times. Writes too: each line that the sequence writes was written in pass 1, so whether a write
of pass 2 finds its line still dirty depends on one cycle of the sequence, as it does in every later pass.

**Where a nest repeats.** One step of a loop moves a reference by its stride. The line sequence of the next iteration
is the same exactly when no access of the body crosses a line border by that step. Which border it may cross depends
only on the address modulo the line, so a table of ``line_bytes`` entries for each reference decides it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from labkit.errors import LabError
from labkit.memory.affine import AddressTrace, Bools, Int64s, Trace
from labkit.memory.program import TEMPLATE_ENTRIES, Indices, Level, Program
from labkit.memory.sweep import Sets, Sweep, cost

CHUNK = 2**16
_SAMPLE = 4096
_Way = Literal["inside", "rows", "sweep"]  # how a loop is made: further inside, or at this loop in one of two forms
_PYTHON_STEP = 2000  # entries that the engine handles while Python makes one step of a loop


class Chunk(NamedTuple):
    """A piece of a trace: byte addresses (or line numbers) and for each whether it is written."""

    addresses: Int64s
    writes: Bools


class Batch(NamedTuple):
    """Line sequences in program order: row s of ``lines`` is made ``repeats[s]`` times before row s + 1 begins.

    ``writes`` and ``tensors`` (numbers of tensors) belong to the columns.
    """

    lines: Int64s
    repeats: Int64s
    writes: Bools
    tensors: Indices


def chunks(trace: Trace, size: int = CHUNK) -> Iterator[Chunk]:
    """The trace access by access, in arrays of at most ``size``; what is held at a time does not grow with the trace.

    >>> from labkit.memory.affine import AffineTrace, Loop, Reference
    >>> nest = AffineTrace((Loop("i", 3, (Reference("x", 64, (4,)), Reference("y", 0, (0,), "write"))),))
    >>> [(c.addresses.tolist(), c.writes.tolist()) for c in chunks(nest, 4)]
    [([64, 0, 68, 0], [False, True, False, True]), ([72, 0], [False, True])]
    """
    return lines(trace, 1, size)


def lines(trace: Trace, line_bytes: int, size: int = CHUNK) -> Iterator[Chunk]:
    """As ``chunks``, with the number of the line (address // ``line_bytes``) in place of the address."""
    if size < 1:
        raise LabError(f"chunks of {size} accesses: at least 1")
    for batch in Batches(trace, line_bytes, size, collapse=False).all():
        flat = batch.lines.ravel()
        flags = np.broadcast_to(batch.writes, batch.lines.shape).ravel()
        for start in range(0, flat.size, size):
            yield Chunk(flat[start : start + size], flags[start : start + size])


class Batches:
    """The batches of a trace at a line size; ``collapse=False`` leaves every access where it is.

    With the shape of a ``cache``, ``pieces`` has a sweep for each loop that is made faster in that form.
    """

    def __init__(
        self, trace: Trace, line_bytes: int, size: int = CHUNK, collapse: bool = True, cache: Sets | None = None
    ) -> None:
        if line_bytes < 1:
            raise LabError(f"a line of {line_bytes} bytes: a line has 1 byte or more")
        self.trace, self.line_bytes, self._size, self._collapse = trace, line_bytes, size, collapse
        self._cache = cache
        self.program = None if isinstance(trace, AddressTrace) else Program(trace, merge=collapse)
        self._crossing: dict[Level, Bools] = {}
        self._templates: dict[Level, tuple[Int64s, Indices]] = {}
        self._plans: dict[Level, tuple[float, _Way]] = {}

    def all(self) -> Iterator[Batch]:
        """Every batch, in program order."""
        if self.program is None:
            yield from self._listed()
            return
        for item in self.program.top:
            yield from self.part(item)

    def part(self, item: Level | int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """The batches of one outermost item, of a loop only the iterations from ``start`` to before ``stop``."""
        for piece in self.pieces(item, start, stop):
            assert isinstance(piece, Batch), "a sweep needs a cache"
            yield piece

    def pieces(self, item: Level | int, start: int = 0, stop: int | None = None) -> Iterator[Batch | Sweep]:
        """As ``part``, in batches and sweeps."""
        assert self.program is not None
        if isinstance(item, int):
            yield self._single(item, self.program.bases)
        elif stop is None or start < stop:
            yield from self._loop(item, self.program.bases, start, item.count if stop is None else stop)

    def entries(self, item: Level | int) -> float:
        """Estimate of the entries to be simulated in an outermost item, both passes counted."""
        return 1.0 if isinstance(item, int) else self._plan(item)[0]

    # ---- a list of addresses

    def _listed(self) -> Iterator[Batch]:
        assert isinstance(self.trace, AddressTrace)
        once = np.ones(1, dtype=np.int64)
        owners = np.zeros(min(self._size, self.trace.accesses), dtype=np.intp)
        for start in range(0, self.trace.accesses, self._size):
            part = slice(start, start + self._size)
            found = self._line(self.trace.addresses[part])
            yield Batch(found[None, :], once, self.trace.writes[part], owners[: found.size])

    # ---- a nest

    def _loop(self, level: Level, bases: Int64s, start: int, stop: int) -> Iterator[Batch | Sweep]:
        """``bases`` has a row for each iteration of the loops outside: each runs through the loop, in order."""
        way = self._plan(level)[1]
        if way == "sweep":
            yield from self._sweeps(level, bases, start, stop)
            return
        if way == "rows":
            step = self._size if len(bases) == 1 else stop - start
            for first in range(start, stop, step):
                yield from self._emit(level, bases, first, min(stop, first + step))
            return
        inner = level.only_loop
        group = max(1, self._size // max(int(self._plan(inner)[0]), inner.count)) if inner else 1
        if len(bases) * (stop - start) <= group:
            yield from self._inside(level, bases, start, stop)
            return
        for row in bases:
            for first in range(start, stop, group):
                yield from self._inside(level, row[None, :], first, min(stop, first + group))

    def _inside(self, level: Level, bases: Int64s, start: int, stop: int) -> Iterator[Batch | Sweep]:
        assert self.program is not None
        indices = np.arange(start, stop)[:, None]
        moved = (bases[:, None, :] + indices * self.program.strides[:, level.depth]).reshape(-1, bases.shape[1])
        for item in level.body:  # several items: then there is one row
            if isinstance(item, int):
                yield self._single(item, moved)
            else:
                yield from self._loop(item, moved, 0, item.count)

    def _single(self, reference: int, bases: Int64s) -> Batch:
        assert self.program is not None
        columns = slice(reference, reference + 1)
        found, once = self._line(bases[:, columns]), np.ones(len(bases), dtype=np.int64)
        return Batch(found, once, self.program.write_of[columns], self.program.tensor_of[columns])

    def _emit(self, level: Level, bases: Int64s, start: int, stop: int) -> Iterator[Batch]:
        """The iterations from ``start`` to before ``stop``, runs of iterations with the same lines as one row."""
        assert self.program is not None
        offsets, references = self._template(level)
        changes = self._changes(level, bases, start, stop)
        changes[:, -1] = True
        ends = np.flatnonzero(changes)
        repeats = np.diff(ends, prepend=-1)
        rows, indices = np.divmod(ends - repeats + 1, stop - start)
        moves = (start + indices)[:, None] * self.program.strides[:, level.depth]
        origins: Int64s = bases[rows] + moves
        writes, tensors = self.program.write_of[references], self.program.tensor_of[references]
        step = max(1, self._size // level.entries)
        for first in range(0, len(ends), step):
            part = slice(first, first + step)
            addresses = np.take(origins[part], references, axis=1)
            addresses += offsets
            yield Batch(self._line(addresses), repeats[part], writes, tensors)

    def _sweeps(self, level: Level, bases: Int64s, start: int, stop: int) -> Iterator[Sweep]:
        assert self.program is not None
        offsets, references = self._template(level)
        strides = self.program.strides[:, level.depth]
        writes, tensors = self.program.write_of[references], self.program.tensor_of[references]
        step = max(1, self._size // level.entries)
        for first in range(0, len(bases), step):
            starts = np.take(bases[first : first + step] + start * strides, references, axis=1) + offsets
            yield Sweep(starts, strides[references], stop - start, self.line_bytes, writes, tensors)

    def _line(self, addresses: Int64s) -> Int64s:
        if self.line_bytes & (self.line_bytes - 1):
            return addresses // self.line_bytes
        return addresses >> (self.line_bytes.bit_length() - 1)

    # ---- where the lines of an iteration are those of the one before

    def _changes(self, level: Level, bases: Int64s, start: int, stop: int) -> Bools:
        """[row, iteration]: whether the next iteration makes another line sequence than this one."""
        assert self.program is not None
        strides = self.program.strides[level.span, level.depth]
        moving = np.flatnonzero(strides)
        if not self._collapse or (np.abs(strides) >= self.line_bytes).any():
            return np.ones((len(bases), stop - start), dtype=np.bool_)
        origins = bases[:, level.span][:, moving] % self.line_bytes
        alike = bool((origins == origins[:1]).all())
        changes = np.zeros((1 if alike else len(bases), stop - start), dtype=np.bool_)
        for column, reference in enumerate(moving):
            steps = np.arange(start, stop) * strides[reference]
            residues = (origins[: len(changes), column, None] + steps) % self.line_bytes
            changes |= self._crossing_of(level)[reference][residues]
        return np.array(np.broadcast_to(changes, (len(bases), stop - start)))

    def _crossing_of(self, level: Level) -> Bools:
        """[reference, address modulo line]: whether a step of the loop takes some access of it to another line."""
        if level in self._crossing:
            return self._crossing[level]
        assert self.program is not None
        offsets, references = self._template(level)
        strides = self.program.strides[level.span, level.depth]
        crossing = np.zeros((len(strides), self.line_bytes), dtype=np.bool_)
        for at, stride in enumerate(strides):
            inner = np.unique(offsets[references == level.span.start + at] % self.line_bytes)
            first = -inner - max(stride, 0)  # the residues from which this stride crosses a border
            crossing[at, (first[:, None] + np.arange(abs(stride))) % self.line_bytes] = True
        self._crossing[level] = crossing
        return crossing

    # ---- at which loop to write out

    def _plan(self, level: Level) -> tuple[float, _Way]:
        """(estimated entries to simulate in the whole loop, how to make it)."""
        if level not in self._plans:
            self._plans[level] = self._choose(level)
        return self._plans[level]

    def _choose(self, level: Level) -> tuple[float, _Way]:
        inner = [self._plan(item)[0] if isinstance(item, Level) else 1.0 for item in level.body]
        inside = level.count * (sum(inner) + (0 if level.only_loop else _PYTHON_STEP))
        if not any(isinstance(item, Level) for item in level.body):
            inside = np.inf
        elif level.entries > (TEMPLATE_ENTRIES if self._collapse else self._size):
            return inside, "inside"
        sample = min(level.count, _SAMPLE)
        assert self.program is not None
        runs = max(1, int(self._changes(level, self.program.bases, 0, sample).sum()))
        rows = level.count / sample * level.entries * min(2 * runs, sample)
        ways: tuple[tuple[float, _Way], ...] = ((rows, "rows"), (inside, "inside"), (self._sweep_cost(level), "sweep"))
        return min(ways, key=lambda way: way[0])

    def _sweep_cost(self, level: Level) -> float:
        if self._cache is None:
            return np.inf
        assert self.program is not None
        offsets, references = self._template(level)
        starts = self.program.bases[0, references] + offsets
        return cost(starts, self.program.strides[references, level.depth], level.count, self.line_bytes, self._cache)

    def _template(self, level: Level) -> tuple[Int64s, Indices]:
        assert self.program is not None
        if level not in self._templates:
            self._templates[level] = self.program.template(level)
        return self._templates[level]
