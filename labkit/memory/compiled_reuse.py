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
from numpy.typing import NDArray

from labkit.memory.affine import Int64s
from labkit.memory.digest import Digested
from labkit.memory.expansion import Batch
from labkit.memory.jit import compiled, ones, pasted

_NEVER = 2**32 - 1  # positions are 32-bit numbers: half as much to fetch for a line
_BLOCK, _REGION = 2**15, 2**20
_SLICE = 4096


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
    above += uint64(blocks[block])
    region, last = block >> uint64(5), (now - uint64(1)) >> uint64(20)
    first = region << uint64(5)
    for b in range(first, min(first + uint64(32), uint64(blocks.size))):  # without a branch that depends on the data
        blocks[b] += b < block
    regions[region] += uint64(1)
    region += uint64(1)
    while region <= last:
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
def _distances(now, last, owners, index, lines, found):
    """The distance of each touch, _NEVER for a line's first one; return the next free position.

    The first loop only moves lines, so that it can fetch many at a time; what the second one needs is then at hand.
    """
    holes, octets, quads, blocks, regions = index
    never, one, top = uint64(_NEVER), uint64(1), uint64(owners.size)
    begin, size = uint64(0), uint64(lines.size)
    while begin < size:
        if now == top:
            now = _renumber(last, owners, holes, octets, quads, blocks, regions)
        first, end = now, min(size, begin + min(top - now, uint64(_SLICE)))
        for e in range(begin, end):
            line = uint64(lines[e])
            at = uint64(last[line])
            found[e] = at
            if at + one != now:
                owners[now] = line
                last[line] = now
                now += one
        now = first
        for e in range(begin, end):
            at = uint64(found[e])
            if at + one == now:
                found[e] = 0
                continue
            if at != never:
                found[e] = _take(at, now, holes, octets, quads, blocks, regions)
            now += one
        begin = end
    return now


@compiled
def _reuse(now, last, worst, owners, index, lines, repeats, writes, tensors, distances, rewrites):
    """See Reuse; returns the next free position."""
    found, cold = np.empty(lines.shape[1], np.uint32), distances.shape[1] - 1
    for s in range(lines.shape[0]):
        weight = 1
        for _ in range(2):
            now = _distances(now, last, owners, index, lines[s], found)
            for e in range(lines.shape[1]):
                line, write, tensor = uint64(lines[s, e]), int64(writes[e]), uint64(tensors[e])
                distance = int64(found[e]) if found[e] != _NEVER else cold
                farthest = max(distance, int64(worst[line]))
                worst[line] = farthest * (1 - write)
                distances[tensor, uint64(distance)] += weight
                rewrites[tensor, uint64(farthest * write)] += weight * write
            if repeats[s] == 1:
                break
            weight = repeats[s] - 1
    return now


@compiled
def _inside(now, last, owners, index, numbers, writes, tensors, state, distances, rewrites):
    """Count the touches of a piece whose line it touched before; see ``_Inside``."""
    before, since, written = state
    found = np.empty(numbers.size, np.uint32)
    _distances(now, last, owners, index, numbers, found)
    for e in range(numbers.size):
        line, write, tensor = uint64(numbers[e]), writes[e], uint64(tensors[e])
        if found[e] != _NEVER:
            since[line] = max(since[line], int64(found[e]))
            distances[tensor, uint64(found[e])] += 1
        if write:
            if written[line]:
                rewrites[tensor, uint64(since[line])] += 1
            else:
                before[line] = since[line]
            written[line], since[line] = True, 0


@compiled
def _pieces(now, last, worst, owners, index, lines, distinct, tensors, state, distances, rewrites):
    """Count the first touches of pieces, and leave their lines in the order of the last ones."""
    before, since, written = state
    found, cold = np.empty(lines.shape[1], np.uint32), distances.shape[1] - 1
    for row in range(lines.shape[0]):
        now = _distances(now, last, owners, index, lines[row], found)
        for e in range(distinct):
            line, tensor = uint64(lines[row, e]), uint64(tensors[e])
            distance = int64(found[e]) if found[e] != _NEVER else cold
            farthest = max(distance, int64(worst[line]), before[e])
            distances[tensor, uint64(distance)] += 1
            rewrites[tensor, uint64(farthest)] += written[e]
            worst[line] = since[e] if written[e] else farthest
    return now


class Reuse:
    """All reuse distances of the batches that are fed, whose lines are numbered from 0 to below ``lines``.

    ``distances[t, d]``: accesses to tensor t whose line was touched before, with d other lines in between; in the last
    column those of lines never touched before. ``rewrites[t, d]``: writes to t, by the largest distance of an access
    to the line after the last write to it; in the last column the first writes.
    """

    def __init__(self, lines: int, tensors: int) -> None:
        self.distances: Int64s = np.zeros((tensors, lines + 1), dtype=np.int64)
        self.rewrites: Int64s = np.zeros((tensors, lines + 1), dtype=np.int64)
        self._now = 0
        self._last = np.full(lines, _NEVER, dtype=np.uint32)
        self._worst = np.full(lines, lines, dtype=np.int32)
        self._owners, self._index = _positions(lines)
        self._insides: dict[int, _Inside] = {}

    def feed(self, batch: Batch) -> None:
        """Count a batch."""
        self._now = _reuse(
            np.uint64(self._now), self._last, self._worst, self._owners, self._index, *batch,
            self.distances, self.rewrites,
        )  # fmt: skip

    def feed_digested(self, pieces: Digested) -> None:
        """Count pieces that are alike."""
        known = self._insides.get(id(pieces.digest))
        if known is None:
            known = self._insides[id(pieces.digest)] = _Inside(pieces, len(self.distances))
        self._now = _pieces(
            np.uint64(self._now), self._last, self._worst, self._owners, self._index, pieces.lines,
            pieces.digest.distinct, pieces.tensors, known.state, self.distances, self.rewrites,
        )  # fmt: skip
        used = min(known.distances.shape[1], self.distances.shape[1])
        self.distances[:, :used] += len(pieces.lines) * known.distances[:, :used]
        self.rewrites[:, :used] += len(pieces.lines) * known.rewrites[:, :used]

    def stack(self) -> tuple[Int64s, Int64s]:
        """The lines by last touch, latest first, and for each the largest distance since its last write."""
        touched = np.flatnonzero(self._last != _NEVER)
        order = touched[np.argsort(self._last[touched])[::-1]]
        return order, self._worst[order].astype(np.int64)


class _Inside:
    """The touches of a piece, first ones left out: ``distances`` and ``rewrites`` as in ``Reuse``.

    ``state``, for each line in the order of first touches: the largest distance up to the first write, or of all where
    there is none; the largest since the last write; whether there is one.
    """

    def __init__(self, pieces: Digested, tensors: int) -> None:
        lines, numbers = pieces.digest.distinct, pieces.digest.numbers
        self.distances: Int64s = np.zeros((tensors, lines + 1), dtype=np.int64)
        self.rewrites: Int64s = np.zeros((tensors, lines + 1), dtype=np.int64)
        before, since = np.zeros((2, lines), dtype=np.int64)
        written = np.zeros(lines, dtype=np.bool_)
        owners, index = _positions(lines)
        last = np.full(lines, _NEVER, dtype=np.uint32)
        _inside(
            np.uint64(0), last, owners, index, numbers, pieces.all_writes, pieces.all_tensors, (before, since, written),
            self.distances, self.rewrites,
        )  # fmt: skip
        self.state = np.where(written, before, since), since, written


def _positions(lines: int) -> tuple[NDArray[np.uint32], tuple[NDArray[np.uint64], ...]]:
    """The owners of the positions for so many lines, and the five arrays that count holes."""
    positions = max(4096, 1 << (4 * lines).bit_length())
    words, octets, blocks, regions = (-(-positions // size) for size in (64, 512, _BLOCK, _REGION))
    sizes = (words, octets, (3, -(-positions // 2048)), blocks, regions)
    return np.zeros(positions, dtype=np.uint32), tuple(np.zeros(size, dtype=np.uint64) for size in sizes)
