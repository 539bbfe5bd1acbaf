"""Traces in chunks: addresses, lines, and batches of line sequences in which exact repetition is already collapsed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from labkit.errors import LabError
from labkit.memory.affine import AddressTrace, Bools, Int64s, Trace
from labkit.memory.expansion import Batch, Expansion, Piece
from labkit.memory.owners import TensorLines
from labkit.memory.planning import CHUNK, Planner
from labkit.memory.program import Level, Program, line_of
from labkit.memory.sweep import Sets


class Chunk(NamedTuple):
    """A piece of a trace: byte addresses (or line numbers) and for each whether it is written."""

    addresses: Int64s
    writes: Bools


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
    """The batches of a trace at a line size; ``collapse=False`` leaves every access where it is."""

    def __init__(self, trace: Trace, line_bytes: int, size: int = CHUNK, collapse: bool = True) -> None:
        if line_bytes < 1:
            raise LabError(f"a line of {line_bytes} bytes: a line has 1 byte or more")
        self.trace, self.line_bytes, self._size = trace, line_bytes, size
        self.program = None if isinstance(trace, AddressTrace) else Program(trace, merge=collapse)
        self._nest = None
        if self.program:
            self._nest = Expansion(self.program, Planner(self.program, line_bytes, size, collapse))

    def allow_forms(self, cache: Sets | None = None) -> None:
        """Let ``pieces`` have loops in the forms in which they are simulated fastest.

        These are sweeps and digests for a ``cache``; without one, digested pieces for exact distances.
        """
        if self.program:
            digests = TensorLines(self.trace, self.line_bytes).disjoint
            planner = Planner(self.program, self.line_bytes, self._size, cache=cache, digests=digests)
            self._nest = Expansion(self.program, planner)

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
            assert isinstance(piece, Batch), "other forms are for pieces"
            yield piece

    def pieces(self, item: Level | int, start: int = 0, stop: int | None = None) -> Iterator[Piece]:
        """As ``part``, in any form."""
        assert self._nest is not None
        if isinstance(item, int) or stop is None or start < stop:
            yield from self._nest.of(item, start, stop)

    def entries(self, item: Level | int) -> float:
        """Estimate of the entries to be simulated in an outermost item, both passes counted."""
        assert self._nest is not None
        return self._nest.entries(item)

    # ---- a list of addresses

    def _listed(self) -> Iterator[Batch]:
        assert isinstance(self.trace, AddressTrace)
        once = np.ones(1, dtype=np.int64)
        owners = np.zeros(min(self._size, self.trace.accesses), dtype=np.intp)
        for start in range(0, self.trace.accesses, self._size):
            part = slice(start, start + self._size)
            found = line_of(self.trace.addresses[part], self.line_bytes)
            yield Batch(found[None, :], once, self.trace.writes[part], owners[: found.size])
