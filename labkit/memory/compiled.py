"""The simulators compiled by numba. ``interpreted`` holds the same ones in plain Python; both give equal counts.

The first call of each compiles it (about 1 s) or takes it from numba's disk cache. Unsigned indices are there for
speed: numba then leaves out the test for negative ones.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from labkit.memory.affine import AddressTrace, Int64s
from labkit.memory.compiled_belady import belady
from labkit.memory.compiled_reuse import Reuse
from labkit.memory.compiled_sweep import sweep
from labkit.memory.expansion import Batch
from labkit.memory.jit import compiled, line_at, shift_of
from labkit.memory.stream import Batches

__all__ = ["Reuse", "belady", "has_forms", "lru", "lru_list", "sweep"]

has_forms = True


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


_EIGHT = 8  # a number that LLVM knows makes the search one piece without a loop


@compiled
def _lru_8_ways(tags, addresses, writes, line_bytes, shift):
    """(misses, clean-to-dirty writes) of addresses of one tensor; as ``_lru``, with counts that stay in registers."""
    one, sets = uint64(1), uint64(tags.size // _EIGHT)
    power_of_two = sets & (sets - one) == 0
    hits = dirtied = uint64(0)
    for e in range(addresses.size):
        line, write = line_at(addresses[e], line_bytes, shift), uint64(writes[e])
        first = (line & (sets - one) if power_of_two else line % sets) * uint64(_EIGHT)
        clean = line << one
        tag = tags[first]
        apart = tag ^ clean  # 0 or 1, which says dirty, for the tag of the line; more for all others
        if apart <= one:
            hits += one
            dirtied += write & ~apart
            tags[first] = tag | write
            continue
        for way in range(1, _EIGHT):
            shifted, tag = tag, tags[first + uint64(way)]
            tags[first + uint64(way)] = shifted if apart > one else tag
            apart = min(apart, tag ^ clean)
        hit = uint64(apart <= one)
        hits += hit
        dirtied += write & ~(apart & hit)
        tags[first] = clean | write | (apart & hit)
    return addresses.size - int64(hits), int64(dirtied)


def lru(tags: Int64s, ways: int, batch: Batch, misses: Int64s, dirtied: Int64s) -> None:
    """Run a batch through the sets in ``tags``, and add to the ``misses`` and clean-to-dirty writes of each tensor."""
    _lru(tags.view(np.uint64), ways, *batch, misses, dirtied)


def lru_list(tags: Int64s, ways: int, batches: Batches, misses: Int64s, dirtied: Int64s) -> None:
    """As ``lru``, a list of addresses."""
    if ways == _EIGHT and isinstance(batches.trace, AddressTrace):
        trace, line_bytes = batches.trace, batches.line_bytes
        found = _lru_8_ways(tags.view(np.uint64), trace.addresses, trace.writes, line_bytes, shift_of(line_bytes))
        misses += found[0]
        dirtied += found[1]
        return
    for batch in batches.all():
        lru(tags, ways, batch, misses, dirtied)
