"""Matrix products that really run on a Scratchpad: the result is NumPy's, the bytes are counted one transfer at a time.

Results equal ``A @ B`` up to the rounding of another order of summation: for each element at most
k · eps · (|A| @ |B|), eps being the machine epsilon of the dtype (Higham, *Accuracy and Stability of Numerical
Algorithms*, §3.5, for both sides together 2 · k · eps/2). Where every partial sum is a whole number the format can
hold, they are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabError
from labkit.memory.scratchpad import Scratchpad
from labkit.tiling import Buffers, CPolicy, Matmul, MatmulSchedule, Tile

Array = NDArray[Any]
Block = tuple[slice, slice]


def naive_matmul(A: Array, B: Array, pad: Scratchpad, accumulator: Literal["register", "memory"] = "register") -> Array:
    """The product with nothing kept on chip but registers: the floor that tiling is measured against.

    Each of the m·n·k inner steps fetches one element of A and one of B. With the accumulator in a ``register``, each
    element of C is written once: near 0.25 FLOP/byte for float32. With it in ``memory``, each inner step also reads
    and writes an element of C: 0.125 FLOP/byte. The elements of one inner loop make one line in the ledger.

    >>> pad = Scratchpad("12B")
    >>> naive_matmul(np.eye(2, dtype=np.float32), np.ones((2, 3), np.float32), pad).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    >>> pad.ledger.traffic.read_bytes, pad.ledger.traffic.write_bytes
    (96, 24)
    """
    problem = matmul_of(A, B)
    if accumulator not in ("register", "memory"):
        raise LabError(f"accumulator {accumulator!r}: choose register or memory")
    C = np.zeros((problem.m, problem.n), A.dtype)
    with pad.kernel("naive_matmul"):
        for i in range(problem.m):
            if accumulator == "register":
                _row_in_registers(A[i], B, C[i], pad)
            else:
                _row_in_memory(A[i], B, C[i], pad)
    return C


def _row_in_registers(a_row: Array, B: Array, c_row: Array, pad: Scratchpad) -> None:
    """One row of C, for j: for k: the row of A is fetched again for each column of B."""
    a = pad.stream("A", np.broadcast_to(a_row, (len(c_row), len(a_row))))
    b = pad.stream("B", B.T)
    pad.stream_out("C", np.einsum("jk,jk->j", a, b), c_row)


def _row_in_memory(a_row: Array, B: Array, c_row: Array, pad: Scratchpad) -> None:
    """One row of C, for k: for j: every step reads, adds to and writes an element of C."""
    for k in range(len(a_row)):
        a = pad.stream("A", np.broadcast_to(a_row[k], c_row.shape))
        c = pad.stream("C", c_row)
        pad.stream_out("C", c + a * pad.stream("B", B[k]), c_row)


def tiled_matmul(
    A: Array,
    B: Array,
    tile: Tile,
    pad: Scratchpad,
    order: str = "mnk",
    c_policy: CPolicy = "store",
    buffers: Buffers = "single",
    C: Array | None = None,
) -> Array:
    """The product by tiles (TM, TN, TK), walked in ``order`` (loops over tiles, outermost first).

    A tile is loaded when the one needed is not the one resident; edge tiles have their real size. A tile of C is
    written whenever it leaves, and read again if it comes back unfinished. ``MatmulSchedule`` describes the policies;
    ``load_store`` and ``spill`` add to ``C`` in place (zeros unless given). A tile larger than the problem is clipped.

    Raises SramOverflow when the tiles do not fit, LabError for shapes, types or options that do not.

    >>> pad = Scratchpad("1KiB")
    >>> tiled_matmul(np.eye(8, dtype=np.float32), np.ones((8, 8), np.float32), (4, 4, 4), pad).sum()
    np.float32(64.0)
    >>> pad.ledger.traffic.read_bytes, pad.ledger.traffic.write_bytes, pad.high_water_bytes
    (1024, 256, 192)
    """
    problem = matmul_of(A, B)
    schedule = MatmulSchedule(tile, order, c_policy, buffers).clipped_to(problem)
    C = _destination(C, A, problem, c_policy)
    slots = 2 if buffers == "double" else 1
    with pad.kernel("tiled_matmul"):
        a_tiles, b_tiles = _Operand("A", A, pad, slots), _Operand("B", B, pad, slots)
        c_tiles = _Accumulator(C, pad, starts_at_zero=c_policy == "store")
        for rows, columns, depth in _steps(problem, schedule):
            a, b = a_tiles.get((rows, depth)), b_tiles.get((depth, columns))
            c = c_tiles.get((rows, columns))
            c += a @ b
            if c_policy == "spill":
                c_tiles.leave()
        for tiles in (a_tiles, b_tiles, c_tiles):
            tiles.leave()
    return C


def matmul_of(A: Array, B: Array) -> Matmul:
    """The problem that two matrices pose; LabError when they do not multiply."""
    if A.ndim != 2 or B.ndim != 2 or A.shape[1] != B.shape[0]:
        raise LabError(f"matmul of shapes {A.shape} and {B.shape}: wanted (m, k) and (k, n)")
    if A.dtype != B.dtype or A.dtype.kind != "f":
        raise LabError(f"matmul of {A.dtype} and {B.dtype}: wanted one floating-point type for both")
    return Matmul(A.shape[0], B.shape[1], A.shape[1], A.dtype.itemsize)


def _destination(C: Array | None, A: Array, problem: Matmul, c_policy: str) -> Array:
    shape = (problem.m, problem.n)
    if C is None:
        return np.zeros(shape, A.dtype)
    if c_policy == "store":
        raise LabError("C policy store starts C at zero: leave C out, or add to it with load_store or spill")
    if (C.shape, C.dtype) != (shape, A.dtype):
        raise LabError(f"C is {C.dtype} {C.shape}: this product makes {A.dtype} {shape}")
    return C


def _steps(problem: Matmul, schedule: MatmulSchedule) -> Iterator[tuple[slice, slice, slice]]:
    """The (m, n, k) index ranges of each step, in the order of the schedule."""
    tiles = dict(zip("mnk", schedule.tile, strict=True))
    ranges = []
    for dim in schedule.order:
        starts = range(0, getattr(problem, dim), tiles[dim])
        ranges.append([slice(start, start + tiles[dim]) for start in starts])  # NumPy cuts the last one at the edge
    m, n, k = (schedule.order.index(dim) for dim in "mnk")
    for step in product(*ranges):
        yield step[m], step[n], step[k]


class _Operand:
    """The one resident tile of an input: it stays until another is needed."""

    def __init__(self, name: str, matrix: Array, pad: Scratchpad, slots: int) -> None:
        self._name, self._matrix, self._pad, self._slots = name, matrix, pad, slots
        self._block: Block | None = None

    def get(self, block: Block) -> Array:
        if block != self._block:
            self.leave()
            self._pad.load(self._name, self._matrix[block], slots=self._slots)
            self._block = block
        return self._pad[self._name]

    def leave(self) -> None:
        if self._block is not None:
            self._pad.free(self._name)
            self._block = None


class _Accumulator:
    """The one resident tile of C: written when it leaves, read again when it comes back."""

    def __init__(self, matrix: Array, pad: Scratchpad, starts_at_zero: bool) -> None:
        self._matrix, self._pad, self._starts_at_zero = matrix, pad, starts_at_zero
        self._block: Block | None = None
        self._seen: set[tuple[int, int]] = set()

    def get(self, block: Block) -> Array:
        if block != self._block:
            self.leave()
            corner = (block[0].start, block[1].start)
            tile = self._matrix[block]
            if self._starts_at_zero and corner not in self._seen:
                self._pad.alloc("C", tile.shape, tile.dtype)
            else:
                self._pad.load("C", tile)
            self._seen.add(corner)
            self._block = block
        return self._pad["C"]

    def leave(self) -> None:
        if self._block is not None:
            self._pad.store("C", self._matrix[self._block])
            self._pad.free("C")
            self._block = None
