"""A loop whose iterations make almost the same lines: only what crosses a line border is new to a cache with sets.

**Why the rest need not be made.** Take one set of the cache, and two iterations one after the other. If the different
lines of both that belong to the set fit in its ways, each access to a line of the first is a hit in the second: fewer
other lines than ways lie in between. So what counts is when a line comes (it may have been kept from before, or it is
a miss, and the line used longest ago goes), and when it leaves (from then on it ages, behind those that stay). The
order of the lines that stay matters only once the loop is over, and making its last iteration restores that.

A set in which they do not fit is simulated access by access, to the end of the loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labkit.memory.affine import Bools, Int64s
from labkit.memory.program import Indices

# What a sweep costs, in accesses simulated one by one: for each of its entries, each time one crosses a border, and
# each time it is looked whether one belongs to a full set.
_EACH_ENTRY, _EACH_CROSSING, _EACH_LOOK = 4.0, 4.0, 0.2
_MOST_CROSSINGS = 2**20


class Sweep(NamedTuple):
    """``iterations`` that access ``starts`` first, each entry then moved by its step; once for each row.

    ``starts[row, entry]`` and ``steps[entry]`` are in bytes; ``writes`` and ``tensors`` belong to the entries.
    """

    starts: Int64s
    steps: Int64s
    iterations: int
    line_bytes: int
    writes: Bools
    tensors: Indices


class Sets(NamedTuple):
    """The shape of a cache."""

    sets: int
    ways: int


def crossings(steps: Int64s, line_bytes: int) -> float:
    """How many entries cross a line border in one iteration, on average."""
    return float(np.minimum(np.abs(steps), line_bytes).sum()) / line_bytes


def cost(starts: Int64s, steps: Int64s, count: int, line_bytes: int, cache: Sets) -> float:
    """Estimate of a sweep of one row in accesses simulated one by one; infinite where it would be too long."""
    each = crossings(steps, line_bytes)
    if each * count > _MOST_CROSSINGS or each * _EACH_CROSSING > starts.size:
        return np.inf
    lines = np.unique(starts // line_bytes)
    in_set = np.bincount(lines % cache.sets, minlength=cache.sets)
    one_by_one = float((in_set[starts // line_bytes % cache.sets] >= cache.ways).sum())
    if one_by_one:
        one_by_one += _EACH_LOOK * starts.size
    return _EACH_ENTRY * starts.size + count * (_EACH_CROSSING * each + one_by_one)
