"""What a long piece of a trace does to a cache that holds all of it: only first and last touches of a line count.

If the different lines of the piece fit in the ways of each set, every access but the first to a line is a hit: fewer
other lines than ways lie in between. So the piece has the misses of its first touches, and makes a line dirty once if
any access writes it. It leaves its lines in the order of their last touches, so touching them again in that order
leaves the cache as it would be.

For exact distances they need not fit. Those of all later touches lie inside the piece: they are the same in every one
of its kind, and counted once. A first touch has its distance from what was before, and the others only move lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labkit.memory.affine import Bools, Int64s
from labkit.memory.program import Indices
from labkit.memory.sweep import Sets

_GAPS = 8  # lines from the lowest to the highest for each access, at most: they are looked up in a table


class Digest(NamedTuple):
    """The accesses that count: for each an offset and a reference, as in a template, and whether it writes.

    The first ``distinct`` are the first touches, in order; the others bring the lines into the order of the last ones.
    ``numbers`` has the line of every access of the piece, counted in the order of the first touches.
    """

    offsets: Int64s
    references: Indices
    writes: Bools
    distinct: int
    numbers: Int64s


def digest(numbers: Int64s, count: int, offsets: Int64s, references: Indices, writes: Bools) -> Digest | None:
    """The digest of a piece from its lines, numbered from 0 to below ``count``; None where they are too scattered."""
    if count > _GAPS * numbers.size:
        return None
    times = np.arange(numbers.size)
    (first, last), written = np.full((2, count), -1), np.zeros(count, dtype=np.bool_)
    first[numbers[::-1]] = times[::-1]  # of several values for one place NumPy keeps the last
    last[numbers] = times
    written[numbers[writes]] = True
    begins, ends = np.sort(first[first >= 0]), np.sort(last[last >= 0])
    again = first[numbers[ends]]  # those that lie in the right order from their first touches on need not be touched
    falls = np.flatnonzero(again[1:] < again[:-1])
    ends = ends[falls[0] + 1 :] if falls.size else ends[:0]
    chosen = np.concatenate([begins, ends])
    marks = np.concatenate([written[numbers[begins]], np.zeros(ends.size, dtype=np.bool_)])
    rank = np.zeros(count, dtype=np.int64)
    rank[numbers[begins]] = np.arange(begins.size)
    return Digest(offsets[chosen], references[chosen], marks, begins.size, rank[numbers])


class Digested(NamedTuple):
    """Pieces with one digest: ``lines`` has the lines of its accesses, a row for each piece.

    ``tensors`` are those of its accesses; ``all_tensors`` and ``all_writes`` those of every access of the piece.
    """

    lines: Int64s
    digest: Digest
    tensors: Indices
    all_tensors: Indices
    all_writes: Bools


def fits(lines: Int64s, cache: Sets) -> Bools:
    """For each row of different lines, whether no set gets more of them than it has ways."""
    places = np.arange(len(lines))[:, None] * cache.sets + lines % cache.sets
    counts = np.bincount(places.ravel(), minlength=len(lines) * cache.sets).reshape(len(lines), cache.sets)
    fitting: Bools = counts.max(axis=1) <= cache.ways
    return fitting
