"""A loop nest written out as line sequences in which exact repetition is already collapsed.

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
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from labkit.memory.affine import Bools, Int64s
from labkit.memory.digest import Digest, Digested, fits
from labkit.memory.planning import Planner, Way
from labkit.memory.program import Indices, Level, Program, line_of
from labkit.memory.sweep import Sweep


class Batch(NamedTuple):
    """Line sequences in program order: row s of ``lines`` is made ``repeats[s]`` times before row s + 1 begins.

    ``writes`` and ``tensors`` (numbers of tensors) belong to the columns.
    """

    lines: Int64s
    repeats: Int64s
    writes: Bools
    tensors: Indices


Piece = Batch | Sweep | Digested


class Expansion:
    """The nest of a program, each loop made as the planner says."""

    def __init__(self, program: Program, planner: Planner) -> None:
        self._program, self._planner = program, planner

    def of(self, item: Level | int, start: int = 0, stop: int | None = None) -> Iterator[Piece]:
        """One outermost item, of a loop only the iterations from ``start`` to before ``stop``."""
        if isinstance(item, int):
            yield self._single(item, self._program.bases)
        else:
            yield from self._loop(item, self._program.bases, start, item.count if stop is None else stop)

    def entries(self, item: Level | int) -> float:
        """Estimate of the entries to be simulated in an outermost item, both passes counted."""
        return 1.0 if isinstance(item, int) else self._planner.of(item).entries

    def _loop(self, level: Level, bases: Int64s, start: int, stop: int) -> Iterator[Piece]:
        """``bases`` has a row for each iteration of the loops outside: each runs through the loop, in order."""
        yield from self._made(self._planner.of(level).way, level, bases, start, stop)

    def _made(self, way: Way, level: Level, bases: Int64s, start: int, stop: int) -> Iterator[Piece]:
        if way == "sweep":
            yield from self._sweeps(level, bases, start, stop)
        elif way == "digest":
            yield from self._digests(level, bases, start, stop)
        elif way == "rows":
            step = self._planner.size if len(bases) == 1 else stop - start
            for first in range(start, stop, step):
                yield from self._rows(level, bases, first, min(stop, first + step))
        else:
            yield from self._in_groups(level, bases, start, stop)

    def _in_groups(self, level: Level, bases: Int64s, start: int, stop: int) -> Iterator[Piece]:
        """One loop further inside, for as many iterations at a time as make a chunk."""
        inner = level.only_loop
        group = max(1, self._planner.size // max(int(self._planner.of(inner).entries), inner.count)) if inner else 1
        if len(bases) * (stop - start) <= group:
            yield from self._inside(level, bases, start, stop)
            return
        for row in bases:
            for first in range(start, stop, group):
                yield from self._inside(level, row[None, :], first, min(stop, first + group))

    def _inside(self, level: Level, bases: Int64s, start: int, stop: int) -> Iterator[Piece]:
        moved = self._moved(level, bases, start, stop)
        for item in level.body:  # several items: then there is one row
            if isinstance(item, int):
                yield self._single(item, moved)
            else:
                yield from self._loop(item, moved, 0, item.count)

    def _single(self, reference: int, bases: Int64s) -> Batch:
        columns = slice(reference, reference + 1)
        found, once = self._line(bases[:, columns]), np.ones(len(bases), dtype=np.int64)
        return Batch(found, once, self._program.write_of[columns], self._program.tensor_of[columns])

    def _rows(self, level: Level, bases: Int64s, start: int, stop: int) -> Iterator[Batch]:
        """The iterations from ``start`` to before ``stop``, runs of iterations with the same lines as one row."""
        offsets, references = self._planner.template(level)
        changes = self._planner.changes(level, bases, start, stop)
        changes[:, -1] = True
        ends = np.flatnonzero(changes)
        repeats = np.diff(ends, prepend=-1)
        rows, indices = np.divmod(ends - repeats + 1, stop - start)
        moves = (start + indices)[:, None] * self._program.strides[:, level.depth]
        origins: Int64s = bases[rows] + moves
        writes, tensors = self._program.write_of[references], self._program.tensor_of[references]
        step = max(1, self._planner.size // level.entries)
        for first in range(0, len(ends), step):
            part = slice(first, first + step)
            addresses = np.take(origins[part], references, axis=1)
            addresses += offsets
            yield Batch(self._line(addresses), repeats[part], writes, tensors)

    def _sweeps(self, level: Level, bases: Int64s, start: int, stop: int) -> Iterator[Sweep]:
        offsets, references = self._planner.template(level)
        strides = self._program.strides[:, level.depth]
        writes, tensors = self._program.write_of[references], self._program.tensor_of[references]
        step = max(1, self._planner.size // level.entries)
        for first in range(0, len(bases), step):
            starts = np.take(bases[first : first + step] + start * strides, references, axis=1) + offsets
            yield Sweep(starts, strides[references], stop - start, self._planner.line_bytes, writes, tensors)

    def _digests(self, level: Level, bases: Int64s, start: int, stop: int) -> Iterator[Piece]:
        """Iterations that begin at the same addresses modulo the line are alike; those that do not fit are made."""
        moved = self._moved(level, bases, start, stop)
        residues = moved[:, level.span] % self._planner.line_bytes
        borders = 1 + np.flatnonzero((residues[1:] != residues[:-1]).any(axis=1))
        for first, end in pairwise([0, *borders.tolist(), len(moved)]):
            short = self._planner.digest(level, moved[first])
            assert short is not None
            step = max(1, self._planner.size // short.offsets.size)
            for at in range(first, end, step):
                part = moved[at : min(end, at + step)]
                found = self._line(np.take(part, short.references, axis=1) + short.offsets)
                if self._planner.cache is None:
                    yield self._digested(level, short, found)
                else:
                    places = [divmod(at + row, stop - start) for row in range(len(part))]
                    begins = [(bases[row : row + 1], start + index) for row, index in places]
                    yield from self._where_they_fit(level, short, found, begins)

    def _digested(self, level: Level, short: Digest, found: Int64s) -> Digested:
        references = self._planner.template(level)[1]
        writes, tensors = self._program.write_of[references], self._program.tensor_of[references]
        return Digested(found, short, self._program.tensor_of[short.references], tensors, writes)

    def _where_they_fit(
        self, level: Level, short: Digest, found: Int64s, begins: list[tuple[Int64s, int]]
    ) -> Iterator[Piece]:
        """The digests of the pieces that the cache can hold; the others, which begin there, in another form."""
        assert self._planner.cache is not None
        tensors, fitting = (
            self._program.tensor_of[short.references],
            fits(found[:, : short.distinct], self._planner.cache),
        )
        for low, high in _runs(fitting):
            if fitting[low]:
                yield Batch(found[low:high], np.ones(high - low, dtype=np.int64), short.writes, tensors)
                continue
            for bases, index in begins[low:high]:
                yield from self._made(self._planner.of(level).instead, level, bases, index, index + 1)

    def _moved(self, level: Level, bases: Int64s, start: int, stop: int) -> Int64s:
        """Where the iterations of a loop begin, one after the other for each row of ``bases``."""
        steps = np.arange(start, stop)[:, None] * self._program.strides[:, level.depth]
        return np.asarray((bases[:, None, :] + steps).reshape(-1, bases.shape[1]))

    def _line(self, addresses: Int64s) -> Int64s:
        return line_of(addresses, self._planner.line_bytes)


def _runs(flags: Bools) -> Iterator[tuple[int, int]]:
    """(start, end) of each run of equal flags."""
    borders = 1 + np.flatnonzero(flags[1:] != flags[:-1])
    yield from pairwise([0, *borders.tolist(), len(flags)])
