"""Outer loops that repeat themselves further on: after enough of their iterations the rest is known exactly.

A *block* is a number of iterations of a loop after which every tensor has moved by whole lines (and, in a cache with
sets, back to the same sets). The trace of the next block is then that of this one with the lines renamed: each line of
a tensor moves by the tensor's ``shift``. Two lines never get the same name, as tensors do not share lines. What a
cache does depends only on which lines are the same, so equal histories have equal counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, lcm
from typing import NamedTuple

import numpy as np

from labkit.memory.affine import Int64s, Placed
from labkit.memory.program import Level, Program

Range = tuple[int, int]  # the lowest and the highest line
_MOST_LISTED = 2**22  # addresses


@dataclass(frozen=True, eq=False)
class Period:
    """``iterations`` of a loop make a block; from one to the next the lines of tensor t move by ``shift[t]``.

    ``lag``: two blocks further apart have no line in common, tensors that stay in place aside (they meet in every
    block, which is a lag of 1). ``write_lag``: the same among the tensors that move and are written. ``first``: lowest
    and highest line of each tensor in the first block.
    """

    iterations: int
    shift: Int64s
    lag: int
    write_lag: int
    first: dict[int, Range]
    line_bytes: int

    @property
    def blocks_made(self) -> int:
        """After so many blocks the counts of the last one are known to repeat, and so are its dirty lines."""
        return 1 + self.lag + self.write_lag

    def times(self, factor: int) -> Period:
        """So many blocks as one, for a use that does not ask for the lags."""
        return replace(self, iterations=self.iterations * factor, shift=self.shift * factor)


def period(program: Program, level: Level, line_bytes: int, sets: int = 1) -> Period | None:
    """The blocks of an outermost loop, or None where a tensor moves at two speeds or no block is a whole period."""
    strides: dict[int, int] = {}
    for reference in range(level.span.start, level.span.stop):
        stride = int(program.strides[reference, level.depth])
        if strides.setdefault(int(program.tensor_of[reference]), stride) != stride:
            return None
    modulus = line_bytes * sets
    iterations = lcm(*(modulus // gcd(modulus, abs(stride)) for stride in strides.values()))
    if iterations > level.count:
        return None
    shift = np.zeros(len(program.tensors), dtype=np.int64)
    lags, write_lags = [1], [0]
    first = {}
    for tensor, stride in strides.items():
        if not stride:
            continue
        shift[tensor] = stride * iterations // line_bytes
        low, high = first[tensor] = _block_lines(program, level, tensor, stride * (iterations - 1), line_bytes)
        lags.append((high - low) // abs(int(shift[tensor])))
        if program.write_of[level.span][program.tensor_of[level.span] == tensor].any():
            write_lags.append(lags[-1])
    return Period(iterations, shift, max(lags), max(write_lags), first, line_bytes)


def _block_lines(program: Program, level: Level, tensor: int, move: int, line_bytes: int) -> Range:
    """Lowest and highest line of a tensor in a block, in which the loop moves it by ``move`` bytes."""
    lows, highs = [], []
    for reference in range(level.span.start, level.span.stop):
        if program.tensor_of[reference] == tensor:
            placed = program.placed[reference]
            low, high = placed.span(level.depth + 1)
            lows.append(placed.reference.base + low + min(move, 0))
            highs.append(placed.reference.base + high + max(move, 0))
    return min(lows) // line_bytes, max(highs) // line_bytes


def stands_alone(program: Program, level: Level, each: Period) -> bool:
    """Whether blocks of the loop can be left out although there is something before it or after it.

    Sufficient, and checked here: a line that is touched before the loop and after it is touched in every block; of
    each tensor that moves, what comes before the loop ends before the last block that is made begins; and what comes
    after it begins where the loop ended, or, if it is only read, out of reach of the blocks left out. Those that it
    can reach were made, and lie where they would be: it finds for its lines the history that it would have found.
    """
    left_out = level.count // each.iterations - each.blocks_made
    for tensor in range(len(program.tensors)):
        own = [at for at, found in enumerate(program.tensor_of) if found == tensor]
        parts = _Parts(
            [program.placed[at] for at in own if at < level.span.start],
            [program.placed[at] for at in own if level.span.start <= at < level.span.stop],
            [program.placed[at] for at in own if at >= level.span.stop],
        )
        shift, written = int(each.shift[tensor]), bool(program.write_of[own].any())
        if not parts.meet_in_every_block(each.line_bytes):
            return False
        if shift and parts.inside and not parts.on_the_way(each, tensor, 0 if written else left_out):
            return False
    return True


class _Parts(NamedTuple):
    """The references to a tensor before a loop, in it, and after it."""

    before: list[Placed]
    inside: list[Placed]
    after: list[Placed]

    def meet_in_every_block(self, line_bytes: int) -> bool:
        """Whether the lines touched before and after, if there are any, are touched in every block too."""
        before, after = _lines(self.before, line_bytes), _lines(self.after, line_bytes)
        if not before or not after or before[0] > after[1] or after[0] > before[1]:
            return True
        if not self.inside:
            return False
        sets = [found for part in self if (found := _line_set(part, line_bytes)) is not None]
        if len(sets) < len(self):
            return False
        return bool(np.isin(np.intersect1d(sets[0], sets[2]), sets[1]).all())

    def on_the_way(self, each: Period, tensor: int, left_out: int) -> bool:
        """``left_out``: blocks that what comes after must not reach; 0 if it must not reach any block."""
        before, inside, after = (_lines(part, each.line_bytes) for part in self)
        assert inside is not None
        first, shift = each.first[tensor], int(each.shift[tensor])
        if shift < 0:  # the same seen from the other end of memory
            before, after, shift = _mirrored(before), _mirrored(after), -shift
            inside, first = (-inside[1], -inside[0]), (-first[1], -first[0])
        if before is not None and before[1] >= first[0] + (each.blocks_made - 1) * shift:
            return False
        if after is None or after[0] > inside[1]:
            return True
        reach = first[1] + (left_out - 1) * shift
        return left_out > 0 and after[0] > reach and (before is None or after[0] - left_out * shift > before[1])


def _mirrored(lines: Range | None) -> Range | None:
    return None if lines is None else (-lines[1], -lines[0])


def _lines(placed: Sequence[Placed], line_bytes: int) -> Range | None:
    """Lowest and highest line that these references touch; None for no references."""
    if not placed:
        return None
    return min(one.low for one in placed) // line_bytes, max(one.high for one in placed) // line_bytes


def _line_set(placed: Sequence[Placed], line_bytes: int) -> Int64s | None:
    """The lines that these references touch, ascending; None where the addresses are too many to list."""
    found = np.zeros(0, dtype=np.int64)
    for one in placed:
        addresses = np.array([one.reference.base], dtype=np.int64)
        for count, stride in zip(one.counts, one.reference.strides, strict=True):
            if not stride:
                continue
            if addresses.size * count > _MOST_LISTED:
                return None
            addresses = np.unique(addresses[:, None] + stride * np.arange(count))
        found = np.union1d(found, addresses // line_bytes)
    return found
