"""Which entries of a sweep cross a line border in which iteration, compiled by numba."""

from __future__ import annotations

import numpy as np
from numba import uint64

from labkit.memory.jit import compiled


@compiled
def first_crossings(starts, steps, line_bytes, crossing, offsets):
    """For each entry the first iteration on a new line, and how far into it; seen from above for negative steps."""
    for e in range(steps.size):
        step = abs(steps[e])
        if step:
            offset = starts[e] % line_bytes
            left = line_bytes - offset if steps[e] > 0 else offset + 1
            crossing[e] = (left + step - 1) // step
            offsets[e] = crossing[e] * step - left


@compiled
def schedule(steps, count, line_bytes, crossing, offsets, heads, order):
    """The entries that cross a border on the way to iteration j, in order: ``order[heads[j]:heads[j + 1]]``."""
    heads[:] = 0
    for fill in range(2):
        for e in range(steps.size):
            step = abs(steps[e])
            if step == 0:
                continue
            j, offset, whole = crossing[e], offsets[e], line_bytes // step if step < line_bytes else 0
            while j < count:
                if fill:
                    order[uint64(heads[uint64(j)])] = e
                    heads[uint64(j)] += 1
                else:
                    heads[uint64(j + 1)] += 1
                jump = whole if whole and offset + whole * step >= line_bytes else whole + 1
                j += jump
                offset += jump * step - line_bytes
        if not fill:
            for j in range(1, count + 1):
                heads[j] += heads[j - 1]
            if heads[count] > order.size:
                order = np.empty(2 * heads[count], np.int64)
    for j in range(count, 0, -1):
        heads[j] = heads[j - 1]
    heads[0] = 0
    return order
