"""The simulators in plain Python: nothing to wait for, and an installation without numba has all of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from labkit.memory.affine import Bools, Int32s, Int64s
from labkit.memory.expansion import Batch
from labkit.memory.stream import Batches

Columns = list[tuple[bool, int]]
has_forms = False  # what a compiled loop gains by them, plain Python would lose


def _rows(batch: Batch, alone: int) -> Iterator[tuple[list[int], Columns, tuple[int, ...]]]:
    """Each line sequence with its (written, tensor) columns, and the weights of its passes.

    A sequence of at most ``alone`` lines needs no second pass.
    """
    columns = list(zip(batch.writes.tolist(), batch.tensors.tolist(), strict=True))
    if len(batch.repeats) > 1 and not (batch.repeats > 1).any():
        yield batch.lines.ravel().tolist(), columns * len(batch.repeats), (1,)
        return
    for row, times in zip(batch.lines.tolist(), batch.repeats.tolist(), strict=True):
        yield row, columns, (1, times - 1) if times > 1 and len(row) > alone else (1,)


# ---- set-associative LRU


def lru(tags: Int64s, ways: int, batch: Batch, misses: Int64s, dirtied: Int64s) -> None:
    """Run a batch through the sets in ``tags``, and add to the ``misses`` and clean-to-dirty writes of each tensor.

    A set is a row of ``tags``, latest use first; a tag is 2 · line + (1 if dirty), -1 where there is no line. Here a
    set is a dict from line to dirty: it keeps its keys in order of insertion, so the least recently used comes first.
    """
    table = tags.reshape(-1, ways)
    sets = [{tag >> 1: bool(tag & 1) for tag in reversed(row) if tag >= 0} for row in table.tolist()]
    missed, written, count = [0] * len(misses), [0] * len(misses), len(sets)
    for row, columns, weights in _rows(batch, alone=ways):
        for weight in weights:
            for line, (write, tensor) in zip(row, columns, strict=True):
                lines = sets[line % count]
                if line in lines:
                    dirty = lines.pop(line)
                    if write and not dirty:
                        written[tensor] += weight
                    lines[line] = write or dirty
                else:
                    missed[tensor] += weight
                    lines[line] = write
                    if write:
                        written[tensor] += weight
                    if len(lines) > ways:
                        del lines[next(iter(lines))]
    misses += missed
    dirtied += written
    for tags_of_set, lines in zip(table, sets, strict=True):
        tags_of_set[: len(lines)] = [2 * line + dirty for line, dirty in reversed(lines.items())]


def lru_list(tags: Int64s, ways: int, batches: Batches, misses: Int64s, dirtied: Int64s) -> None:
    """As ``lru``, a list of addresses."""
    for batch in batches.all():
        found = _set_by_set(tags.reshape(-1, ways), batch.lines[0], batch.writes)
        misses += found[0]
        dirtied += found[1]


def _set_by_set(table: Int64s, lines: Int64s, writes: Bools) -> tuple[int, int]:
    """(misses, clean-to-dirty writes) of lines of one tensor. No set depends on another, so one is done at a time.

    A set that is asked for the same line several times in a row is asked once, to write if any of them writes.
    """
    sets = lines % len(table)
    order = np.argsort(sets.astype(np.uint16) if len(table) <= 2**16 else sets, kind="stable")
    lines, sets = lines[order], sets[order]
    first = np.flatnonzero(np.diff(lines, prepend=-1))
    found, written = lines[first].tolist(), np.logical_or.reduceat(writes[order], first).tolist()
    borders = [*np.flatnonzero(np.diff(sets[first], prepend=-1)).tolist(), len(found)]
    misses = dirtied = 0
    for start, end in pairwise(borders):
        counts = _one_set(table[found[start] % len(table)], found[start:end], written[start:end])
        misses += counts[0]
        dirtied += counts[1]
    return misses, dirtied


def _one_set(tags: Int64s, lines: list[int], writes: list[bool]) -> tuple[int, int]:
    resident: dict[int, bool] = {tag >> 1: bool(tag & 1) for tag in reversed(tags.tolist()) if tag >= 0}
    misses, dirtied, room, take = 0, 0, len(tags) - len(resident), resident.pop
    for line, write in zip(lines, writes, strict=True):
        dirty = take(line, None)
        if dirty is None:
            misses += 1
            if room:
                room -= 1
            else:
                del resident[next(iter(resident))]
            dirtied += write
            resident[line] = write
        elif dirty or not write:
            resident[line] = dirty
        else:
            dirtied += 1
            resident[line] = True
    tags[: len(resident)] = [2 * line + dirty for line, dirty in reversed(resident.items())]
    return misses, dirtied


# ---- exact reuse distances


class Reuse:
    """All reuse distances of the batches that are fed; see ``compiled.Reuse`` for the two histograms.

    ``_times`` holds the time of the last touch of each line, ascending: a line's distance is the number behind its own.
    """

    def __init__(self, lines: int, tensors: int) -> None:
        self._cold = lines
        self._distances = [[0] * (self._cold + 1) for _ in range(tensors)]
        self._rewrites = [[0] * (self._cold + 1) for _ in range(tensors)]
        self._now = 0
        self._last: dict[int, int] = {}
        self._worst: dict[int, int] = {}
        self._times: list[int] = []

    @property
    def distances(self) -> Int64s:
        """Accesses by tensor and distance."""
        return np.array(self._distances, dtype=np.int64)

    @property
    def rewrites(self) -> Int64s:
        """Writes by tensor and largest distance since the last write."""
        return np.array(self._rewrites, dtype=np.int64)

    def feed(self, batch: Batch) -> None:
        """Count a batch."""
        distances, rewrites, worst = self._distances, self._rewrites, self._worst
        for row, columns, weights in _rows(batch, alone=0):
            for weight in weights:
                for line, (write, tensor) in zip(row, columns, strict=True):
                    distance = self._touch(line)
                    distances[tensor][distance] += weight
                    if distance > worst.get(line, -1):
                        worst[line] = distance
                    if write:
                        rewrites[tensor][worst[line]] += weight
                        worst[line] = 0

    def _touch(self, line: int) -> int:
        """Move a line to the top; return how many were above it."""
        times, time = self._times, self._last.get(line)
        if time is None:
            distance = self._cold
        else:
            at = bisect_left(times, time)
            distance = len(times) - 1 - at
            if not distance:
                return 0
            del times[at]
        times.append(self._now)
        self._last[line] = self._now
        self._now += 1
        return distance

    def stack(self) -> tuple[Int64s, Int64s]:
        """The lines by last touch, latest first, and for each the largest distance since its last write."""
        order = sorted(self._last, key=self._last.__getitem__, reverse=True)
        worst = [self._worst[line] for line in order]
        return np.array(order, dtype=np.int64), np.array(worst, dtype=np.int64)


# ---- Belady's optimal replacement


def belady(sequence: Int32s, writes: Bools, lines: int, capacity: int) -> tuple[int, int]:
    """(misses, clean-to-dirty writes) of a sequence of line numbers below ``lines``.

    A resident line is known by the time of its next use. Those that are not used again need only be counted: they
    leave first. Times gone by stay in the heap; they are smaller than all others, so they never come to its top.
    """
    next_use, end = _next_uses(sequence.tolist()), len(sequence)
    dirty_at: dict[int, bool] = {}  # the resident lines that are used again, by the time of their next use
    latest: list[int] = []
    misses = dirtied = dead = 0
    for now, (following, write) in enumerate(zip(next_use, writes.tolist(), strict=True)):
        dirty = dirty_at.pop(now, None)
        if dirty is None:
            misses += 1
            if len(dirty_at) + dead == capacity:
                if dead:
                    dead -= 1
                else:
                    del dirty_at[-heappop(latest)]
        dirtied += write and not dirty
        if following == end:
            dead += 1
        else:
            dirty_at[following] = write or bool(dirty)
            heappush(latest, -following)
    return misses, dirtied


def _next_uses(sequence: list[int]) -> list[int]:
    """The time of the next use of each line, the length of the sequence where there is none."""
    seen: dict[int, int] = {}
    following = [len(sequence)] * len(sequence)
    for time in range(len(sequence) - 1, -1, -1):
        following[time] = seen.get(sequence[time], len(sequence))
        seen[sequence[time]] = time
    return following
