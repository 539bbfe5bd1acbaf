"""Exact reuse distances, compiled by numba.

Each touch takes the next position, and leaves a hole, one bit in ``holes``, where the line was before. The distance of
a touch is the number of positions since the line's old one that are no holes. To count holes without a loop over
words, an entry of ``octets`` holds the counts of 8 words as bytes; ``quads`` has three levels, in each of which an
entry holds four counts of the level below as 16-bit numbers; ``blocks`` has the count of a last-level entry,
``regions`` that of 32 blocks. When the positions run out, the lines move down to the lowest ones in the same order.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from labkit.memory.affine import Int64s
from labkit.memory.expansion import Batch
from labkit.memory.jit import compiled, ones, pasted

_NEVER = 2**32 - 1  # positions are 32-bit numbers: half as much to fetch for a line
_BLOCK, _REGION = 2**15, 2**20


@pasted
def _take(at, now, holes, octets, quads, blocks, regions):
    """Make a hole of position ``at``; return how many positions from there to ``now`` are none."""
    word = holes[at >> uint64(6)] >> (at & uint64(63))
    holes[at >> uint64(6)] |= uint64(1) << (at & uint64(63))
    shift = (at >> uint64(3)) & uint64(0x38)
    octet = octets[at >> uint64(9)]
    octets[at >> uint64(9)] = octet + (uint64(1) << shift)
    octet = (octet >> shift) >> uint64(8)
    lanes = (octet & uint64(0x00FF00FF00FF00FF)) + ((octet >> uint64(8)) & uint64(0x00FF00FF00FF00FF))
    for level in range(3):
        lane = (at >> uint64(5 + 2 * level)) & uint64(0x30)
        quad = quads[level, at >> uint64(11 + 2 * level)]
        quads[level, at >> uint64(11 + 2 * level)] = quad + (uint64(1) << lane)
        lanes += (quad >> lane) >> uint64(16)
    above = ones(word) + ((lanes * uint64(0x0001000100010001)) >> uint64(48))
    block = at >> uint64(15)
    region, last = block >> uint64(5), (now - uint64(1)) >> uint64(15)
    blocks[block] += uint64(1)
    regions[region] += uint64(1)
    end = min((region + uint64(1)) << uint64(5), last + uint64(1))
    block += uint64(1)
    while block < end:
        above += blocks[block]
        block += uint64(1)
    region += uint64(1)
    while region <= last >> uint64(5):
        above += regions[region]
        region += uint64(1)
    return int64(now - uint64(1) - at - above)


@compiled
def _renumber(last, owners, holes, octets, quads, blocks, regions):
    """Move all lines to the lowest positions; return the first free one."""
    free = uint64(0)
    for w in range(holes.size):
        word = ~holes[w]
        while word:
            low = word & (~word + uint64(1))
            owner = owners[(uint64(w) << uint64(6)) | ones(low - uint64(1))]
            owners[free] = owner
            last[owner] = free
            free += uint64(1)
            word ^= low
    holes[:] = 0
    octets[:] = 0
    quads[:] = 0
    blocks[:] = 0
    regions[:] = 0
    return free


@compiled
def _reuse(now, last, worst, owners, index, lines, repeats, writes, tensors, distances, rewrites):
    """See Reuse; returns the next free position."""
    holes, octets, quads, blocks, regions = index
    never, top, cold = uint64(_NEVER), uint64(owners.size), distances.shape[1] - 1
    for s in range(lines.shape[0]):
        weight = 1
        for _ in range(2):
            for e in range(lines.shape[1]):
                line = uint64(lines[s, e])
                at, distance = uint64(last[line]), 0
                if at + uint64(1) != now:
                    distance = cold if at == never else _take(at, now, holes, octets, quads, blocks, regions)
                    if now == top:
                        now = _renumber(last, owners, holes, octets, quads, blocks, regions)
                    owners[now] = line
                    last[line] = now
                    now += uint64(1)
                farthest, write, tensor = max(distance, int64(worst[line])), int64(writes[e]), uint64(tensors[e])
                worst[line] = farthest * (1 - write)
                distances[tensor, uint64(distance)] += weight
                rewrites[tensor, uint64(farthest * write)] += weight * write
            if repeats[s] == 1:
                break
            weight = repeats[s] - 1
    return now


class Reuse:
    """All reuse distances of the batches that are fed, whose lines are numbered from 0 to below ``lines``.

    ``distances[t, d]``: accesses to tensor t whose line was touched before, with d other lines in between; in the last
    column those of lines never touched before. ``rewrites[t, d]``: writes to t, by the largest distance of an access
    to the line after the last write to it; in the last column the first writes.
    """

    def __init__(self, lines: int, tensors: int) -> None:
        positions = max(4096, 1 << (4 * lines).bit_length())
        self.distances: Int64s = np.zeros((tensors, lines + 1), dtype=np.int64)
        self.rewrites: Int64s = np.zeros((tensors, lines + 1), dtype=np.int64)
        self._now = 0
        self._last = np.full(lines, _NEVER, dtype=np.uint32)
        self._worst = np.full(lines, lines, dtype=np.int32)
        self._owners = np.zeros(positions, dtype=np.uint32)
        blocks, regions = -(-positions // _BLOCK), -(-positions // _REGION)
        self._index = (
            np.zeros(positions // 64, dtype=np.uint64),
            np.zeros(positions // 512, dtype=np.uint64),
            np.zeros((3, -(-positions // 2048)), dtype=np.uint64),
            np.zeros(blocks, dtype=np.uint64),
            np.zeros(regions, dtype=np.uint64),
        )

    def feed(self, batch: Batch) -> None:
        """Count a batch."""
        self._now = _reuse(
            np.uint64(self._now), self._last, self._worst, self._owners, self._index, *batch,
            self.distances, self.rewrites,
        )  # fmt: skip

    def stack(self) -> tuple[Int64s, Int64s]:
        """The lines by last touch, latest first, and for each the largest distance since its last write."""
        touched = np.flatnonzero(self._last != _NEVER)
        order = touched[np.argsort(self._last[touched])[::-1]]
        return order, self._worst[order].astype(np.int64)
