"""The simulators compiled by numba. ``interpreted`` holds the same ones in plain Python; both give equal counts.

The first call of each compiles it (about 1 s) or takes it from numba's disk cache. Unsigned indices are there for
speed: numba then leaves out the test for negative ones.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from labkit.memory.affine import Int64s
from labkit.memory.compiled_belady import belady
from labkit.memory.compiled_reuse import Reuse
from labkit.memory.jit import compiled
from labkit.memory.stream import Batch

__all__ = ["Reuse", "belady", "lru"]


@compiled
def _lru(tags, ways, lines, repeats, writes, tensors, misses, dirtied):
    """A set is a row of ``tags``, latest use first; a tag is 2 · line + (1 if dirty). One shift finds and moves."""
    one, width = uint64(1), uint64(ways)
    sets = uint64(tags.size // ways)
    power_of_two = sets & (sets - one) == 0
    for s in range(lines.shape[0]):
        weight = 1
        for _ in range(2):
            for e in range(lines.shape[1]):
                line, write = uint64(lines[s, e]), uint64(writes[e])
                first = (line & (sets - one) if power_of_two else line % sets) * width
                tag = tags[first]
                if tag >> one == line:
                    dirtied[tensors[e]] += weight * int64(write & ~tag)
                    tags[first] = tag | write
                    continue
                shifted, at, miss, dirty = tag, first + one, 1, uint64(0)
                while at < first + width:
                    tag = tags[at]
                    tags[at] = shifted
                    if tag >> one == line:
                        miss, dirty = 0, tag & one
                        break
                    shifted = tag
                    at += one
                misses[tensors[e]] += weight * miss
                dirtied[tensors[e]] += weight * int64(write & ~dirty)
                tags[first] = (line << one) | write | dirty
            if repeats[s] == 1 or lines.shape[1] <= ways:  # so few lines that a second pass only hits
                break
            weight = repeats[s] - 1


def lru(tags: Int64s, ways: int, batch: Batch, misses: Int64s, dirtied: Int64s) -> None:
    """Run a batch through the sets in ``tags``, and add to the ``misses`` and clean-to-dirty writes of each tensor."""
    _lru(tags.view(np.uint64), ways, *batch, misses, dirtied)
