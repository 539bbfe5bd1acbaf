"""A loop nest made ready for vectorised expansion: numbered references, and one table of strides.

The addresses of a subtree are its *template*: for each access in order, which reference it is and how far the loops
inside the subtree have moved it. The loops outside only add a multiple of the stride, so a template is made once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from labkit.memory.affine import AffineTrace, Int64s, Loop, Placed, Reference

# The longest template that is kept: 8 bytes each for offset, reference and line.
TEMPLATE_ENTRIES = 2**19
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Level:
    """A loop at ``depth`` loops from outside; ``entries`` is the length of one iteration, ``span`` its references."""

    count: int
    depth: int
    entries: int
    span: slice
    body: tuple[Level | int, ...]

    @property
    def only_loop(self) -> Level | None:
        """The next loop inwards if there is nothing else in the body."""
        return self.body[0] if len(self.body) == 1 and isinstance(self.body[0], Level) else None


class Program:
    """The numbered form of a trace.

    ``merge`` makes one entry of neighbours in a body that access the same address (such as a read and a write of C):
    the second always hits, whatever the cache, and the line is dirty after both if either writes.
    """

    def __init__(self, trace: AffineTrace, merge: bool = False) -> None:
        self.placed: list[Placed] = []
        self.writes: list[bool] = []
        self._merge = merge
        self.items = self._number(trace.body, ())
        depth = max(len(placed.counts) for placed in self.placed)
        self.tensors = trace.tensors
        self.bases: Int64s = np.array([[p.reference.base for p in self.placed]], dtype=np.int64)
        self.strides: Int64s = np.zeros((len(self.placed), depth), dtype=np.int64)
        for row, placed in zip(self.strides, self.placed, strict=True):
            row[: len(placed.counts)] = placed.reference.strides
        self.write_of = np.array(self.writes, dtype=np.bool_)
        self.tensor_of: Indices = np.array([self.tensors.index(p.reference.tensor) for p in self.placed], dtype=np.intp)

    @cached_property
    def top(self) -> tuple[Level | int, ...]:
        """The outermost items that say something: loops of one iteration around everything are passed over."""
        items = self.items
        while len(items) == 1 and isinstance(items[0], Level) and items[0].count == 1:
            items = items[0].body
        return items

    def template(self, level: Level) -> tuple[Int64s, Indices]:
        """(offset, reference) of each entry in one iteration of ``level``."""
        parts = [self._expand(item) for item in level.body]
        offsets, references = (np.concatenate(column) for column in zip(*parts, strict=True))
        return offsets, references

    def _expand(self, item: Level | int) -> tuple[Int64s, Indices]:
        if isinstance(item, int):
            return np.zeros(1, dtype=np.int64), np.array([item], dtype=np.intp)
        offsets, references = self.template(item)
        steps = np.arange(item.count)[:, None] * self.strides[references, item.depth]
        return (steps + offsets).ravel(), np.tile(references, item.count)

    def _number(self, body: tuple[Loop | Reference, ...], counts: tuple[int, ...]) -> tuple[Level | int, ...]:
        items: list[Level | int] = []
        for at, item in enumerate(body):
            if isinstance(item, Loop):
                items.append(self._level(item, counts))
            elif self._merge and at and _same_address(body[at - 1], item):
                self.writes[-1] |= item.kind == "write"
            else:
                items.append(len(self.placed))
                self.placed.append(Placed(item, counts))
                self.writes.append(item.kind == "write")
        return tuple(items)

    def _level(self, loop: Loop, counts: tuple[int, ...]) -> Level:
        first = len(self.placed)
        body = self._number(loop.body, (*counts, loop.count))
        entries = sum(1 if isinstance(item, int) else item.count * item.entries for item in body)
        return Level(loop.count, len(counts), entries, slice(first, len(self.placed)), body)


def _same_address(before: Loop | Reference, item: Reference) -> bool:
    return isinstance(before, Reference) and (before.tensor, before.base, before.strides) == (
        item.tensor,
        item.base,
        item.strides,
    )


def line_of(addresses: Int64s, line_bytes: int) -> Int64s:
    """The lines of addresses."""
    if line_bytes & (line_bytes - 1):
        return addresses // line_bytes
    return addresses >> (line_bytes.bit_length() - 1)
