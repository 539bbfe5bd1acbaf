"""Exact misses of fully associative caches: LRU for every size from one pass, and Belady's optimal replacement.

The reuse distance of an access is the number of other lines touched since its line was touched last. An LRU cache of
C lines hits exactly the accesses with a distance below C (Mattson, Gecsei, Slutz and Traiger, *Evaluation techniques
for storage hierarchies*, 1970), so one histogram of distances holds the misses of all sizes. A write makes a clean
line dirty exactly when the line left since the last write to it: when the largest distance since then is C or more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from labkit.errors import LabError
from labkit.memory.affine import Bools, Int32s, Int64s, Trace
from labkit.memory.distances import DistanceRun, LineNumbers
from labkit.memory.engine import EngineName, choose
from labkit.memory.owners import TensorLines
from labkit.memory.stream import Batches

Start = Literal["cold", "steady"]
_MOST_OPTIMAL = 2**27  # a time and a flag for each access are held: 640 MiB


@dataclass(frozen=True, eq=False)
class MissCurve:
    """Misses and write-backs of a fully associative LRU cache, write-back and write-allocate, of any size.

    ``start`` says what was counted: one pass from an empty cache ("cold"), or the pass after it ("steady").
    ``miss_table[t, c]`` and ``dirty_table[t, c]`` are the misses of tensor t, and its writes that made a clean line
    dirty, with room for c lines; beyond the last column nothing changes any more.
    """

    start: Start
    line_bytes: int
    accesses: int
    tensors: tuple[str, ...]
    miss_table: Int64s
    dirty_table: Int64s

    def misses(self, size_bytes: int, tensor: str | None = None) -> int:
        """Misses with so many bytes of cache (rounded down to whole lines), of all tensors or of one.

        >>> from labkit.memory.trace import AddressTrace
        >>> curve = miss_curve(AddressTrace.of([0, 64, 0, 64]), line_bytes=64)
        >>> [curve.misses(size) for size in (64, 128)]
        [4, 2]
        """
        return self._look_up(self.miss_table, size_bytes, tensor)

    def write_backs(self, size_bytes: int, tensor: str | None = None) -> int:
        """Lines written to DRAM for the writes of this pass, the final flush included."""
        return self._look_up(self.dirty_table, size_bytes, tensor)

    @property
    def compulsory(self) -> int:
        """Misses that remain in a cache of any size: the first touch of each line (none in a steady pass)."""
        return int(self.miss_table[:, -1].sum())

    @property
    def steps(self) -> tuple[Int64s, Int64s]:
        """(sizes in bytes, misses): one line, and every size at which the misses become fewer."""
        total = self.miss_table.sum(axis=0)
        at = 1 + np.flatnonzero(np.diff(total[1:], prepend=total[1] + 1)) if total.size > 1 else np.array([1])
        return at * self.line_bytes, total[np.minimum(at, total.size - 1)]

    def _look_up(self, table: Int64s, size_bytes: int, tensor: str | None) -> int:
        room = size_bytes // self.line_bytes
        if room < 1:
            raise LabError(f"a cache of {size_bytes} bytes does not hold one line of {self.line_bytes}")
        if tensor is not None and tensor not in self.tensors:
            raise LabError(f"no tensor {tensor!r}: the trace has {', '.join(self.tensors)}")
        column = table[:, min(room, table.shape[1] - 1)]
        return int(column.sum() if tensor is None else column[self.tensors.index(tensor)])


def miss_curve(trace: Trace, line_bytes: int = 64, *, steady: bool = False, engine: EngineName = "auto") -> MissCurve:
    """The misses of every cache size, from one pass over the trace (two if ``steady``: then the second one counts).

    Raises LabError for a line below 1 byte and for a trace with too many lines or accesses.
    """
    run = DistanceRun(trace, line_bytes, engine, extrapolate=not steady)
    run.once()
    distances, rewrites = run.histograms()
    if steady:
        run.once()
        both = run.histograms()
        distances, rewrites = both[0] - distances, both[1] - rewrites
    tables = _from_the_right(distances), _from_the_right(rewrites)
    return MissCurve("steady" if steady else "cold", line_bytes, trace.accesses, trace.tensors, *tables)


@dataclass(frozen=True)
class OptimalCounts:
    """One pass from an empty, fully associative cache that evicts the line whose next use is furthest away (Belady).

    No replacement has fewer ``misses``. Each miss brings the line in, also for a write. ``write_backs``: lines written
    to DRAM, the final flush included.
    """

    accesses: int
    misses: int
    write_backs: int


def simulate_optimal(
    trace: Trace, size_bytes: int, line_bytes: int = 64, *, engine: EngineName = "auto"
) -> OptimalCounts:
    """Belady's MIN for a cache of so many bytes (L. A. Belady, *A study of replacement algorithms*, 1966).

    It has to know the future, so the whole trace is held as line numbers: LabError beyond 2**27 accesses.

    >>> from labkit.memory.trace import AddressTrace
    >>> simulate_optimal(AddressTrace.of([0, 64, 128, 0, 64, 128]), size_bytes=128)
    OptimalCounts(accesses=6, misses=4, write_backs=0)
    """
    room = size_bytes // line_bytes if line_bytes > 0 else 0
    if room < 1:
        raise LabError(f"a cache of {size_bytes} bytes does not hold one line of {line_bytes}")
    if trace.accesses > _MOST_OPTIMAL:
        raise LabError(f"{trace.accesses} accesses: optimal replacement is simulated for up to {_MOST_OPTIMAL}")
    sequence, writes, count = _sequence(trace, line_bytes)
    misses, dirtied = choose(len(sequence), engine).belady(sequence, writes, count, room)
    return OptimalCounts(trace.accesses, misses, dirtied)


def _sequence(trace: Trace, line_bytes: int) -> tuple[Int32s, Bools, int]:
    """(number of the line, whether it is written) for each access, neighbours at one address as one; how many lines."""
    batches, owners = Batches(trace, line_bytes), TensorLines(trace, line_bytes)
    numbers = LineNumbers(batches, int(owners.lows.min()), int(owners.highs.max()))
    length = sum(placed.accesses for placed in batches.program.placed) if batches.program else trace.accesses
    sequence, writes = np.empty(length, dtype=np.int32), np.empty(length, dtype=np.bool_)
    end = 0
    for batch in batches.all():
        rows = np.repeat(numbers.of(batch.lines).astype(np.int32), batch.repeats, axis=0)
        start, end = end, end + rows.size
        sequence[start:end] = rows.ravel()
        writes[start:end] = np.broadcast_to(batch.writes, rows.shape).ravel()
    return sequence, writes, numbers.count


def _from_the_right(histogram: Int64s) -> Int64s:
    """Column c: the sum of columns c and beyond, up to the last column that differs."""
    used = np.flatnonzero(histogram[:, :-1].any(axis=0))
    last = int(used[-1]) + 1 if used.size else 0
    tail = np.concatenate([histogram[:, :last], histogram[:, -1:]], axis=1)
    return np.ascontiguousarray(tail[:, ::-1].cumsum(axis=1)[:, ::-1])
