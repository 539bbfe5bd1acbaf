"""Belady's optimal replacement, compiled by numba.

A resident line is known by the time of its next use, one bit in ``words``: a tree of 64-bit words in which a set bit
of one level stands for a word of the level below that is not empty. So the line used last of all is found by
walking down the highest bits. Residents that are not used again need only be counted: they leave first.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from labkit.memory.affine import Bools, Int32s
from labkit.memory.jit import compiled, ones, pasted


@compiled
def _next_uses(sequence, lines):
    """Replace each line (numbered from 0) by the time of its next use, or by the length where there is none."""
    seen = np.full(lines, sequence.size, sequence.dtype)
    for back in range(sequence.size):
        time = sequence.size - 1 - back
        line = sequence[time]
        sequence[time] = seen[line]
        seen[line] = time


@pasted
def _highest(words, starts):
    """The highest number in the tree."""
    at = uint64(0)
    for back in range(starts.size):
        word = words[starts[starts.size - 1 - back] + at]
        for shift in (1, 2, 4, 8, 16, 32):
            word |= word >> uint64(shift)
        at = (at << uint64(6)) | (ones(word) - uint64(1))
    return at


@pasted
def _insert(number, words, starts):
    for level in range(starts.size):
        at = starts[level] + (number >> uint64(6))
        empty = words[at] == 0
        words[at] |= uint64(1) << (number & uint64(63))
        if not empty:
            break
        number >>= uint64(6)


@pasted
def _remove(number, words, starts):
    for level in range(starts.size):
        at = starts[level] + (number >> uint64(6))
        words[at] &= ~(uint64(1) << (number & uint64(63)))
        if words[at]:
            break
        number >>= uint64(6)


@compiled
def _belady(next_use, writes, capacity, words, starts):
    """(misses, clean-to-dirty writes)."""
    misses = dirtied = live = dead = 0
    dirty_at = np.zeros(next_use.size, np.bool_)  # by the time of the next use
    for time in range(next_use.size):
        now, dirty, hit = uint64(time), False, False
        if words[now >> uint64(6)] & (uint64(1) << (now & uint64(63))):
            hit, dirty = True, dirty_at[time]
            live -= 1
            _remove(now, words, starts)
        elif live + dead == capacity:
            if dead:
                dead -= 1
            else:
                _remove(_highest(words, starts), words, starts)
                live -= 1
        misses += not hit
        dirtied += writes[time] and not dirty
        if next_use[time] == next_use.size:
            dead += 1
        else:
            live += 1
            dirty_at[next_use[time]] = dirty or writes[time]
            _insert(uint64(next_use[time]), words, starts)
    return misses, dirtied


def belady(sequence: Int32s, writes: Bools, lines: int, capacity: int) -> tuple[int, int]:
    """(misses, clean-to-dirty writes) of a sequence of line numbers below ``lines``, which is overwritten."""
    sizes = [-(-sequence.size // 64)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 64))
    starts = np.cumsum([0, *sizes[:-1]]).astype(np.uint64)
    _next_uses(sequence, lines)
    misses, dirtied = _belady(sequence, writes, capacity, np.zeros(sum(sizes), dtype=np.uint64), starts)
    return int(misses), int(dirtied)
