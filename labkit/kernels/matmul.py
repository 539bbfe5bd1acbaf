"""Matrix products that really run on a Scratchpad: the result is NumPy's, the bytes are counted one transfer at a time.

Results equal ``A @ B`` up to the rounding of another order of summation: for each element at most
k · eps · (|A| @ |B|), eps being the machine epsilon of the dtype (Higham, *Accuracy and Stability of Numerical
Algorithms*, §3.5, for both sides together 2 · k · eps/2). Where every partial sum is a whole number the format can
hold, they are equal.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabError
from labkit.kernels.nest import run_nest
from labkit.loops import Buffers, CPolicy, LoopNest
from labkit.memory.scratchpad import Scratchpad
from labkit.problems import Problem, matmul
from labkit.tiling import Tile

Array = NDArray[Any]


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
    C = np.zeros(problem.output.shape, problem.output.dtype)
    with pad.kernel("naive_matmul"):
        for i in range(len(A)):
            if accumulator == "register":
                _row_in_registers(A[i], B, C[i], pad)
            else:
                _row_in_memory(A[i], B, C[i], pad)
    return C


def _row_in_registers(a_row: Array, B: Array, c_row: Array, pad: Scratchpad) -> None:
    """One row of C, for j: for k: the row of A is fetched again for each column of B."""
    a = pad.stream("A", np.broadcast_to(a_row, (len(c_row), len(a_row))))
    b = pad.stream("B", B.T)
    pad.stream_out("C", np.einsum("jk,jk->j", a, b, dtype=c_row.dtype), c_row)


def _row_in_memory(a_row: Array, B: Array, c_row: Array, pad: Scratchpad) -> None:
    """One row of C, for k: for j: every step reads, adds to and writes an element of C."""
    for k in range(len(a_row)):
        a = pad.stream("A", np.broadcast_to(a_row[k], c_row.shape))
        c = pad.stream("C", c_row)
        pad.stream_out("C", c + a.astype(c.dtype) * pad.stream("B", B[k]), c_row)


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
    written whenever it leaves, and read again if it comes back unfinished. ``LoopNest`` describes the policies;
    ``load_store`` and ``spill`` add to ``C`` in place (zeros unless given). A tile larger than the problem is clipped.
    C holds accumulators: float32 for float16 operands, int32 for int8.

    Raises SramOverflow when the tiles do not fit, LabError for shapes, types or options that do not.

    >>> pad = Scratchpad("1KiB")
    >>> tiled_matmul(np.eye(8, dtype=np.float32), np.ones((8, 8), np.float32), (4, 4, 4), pad).sum()
    np.float32(64.0)
    >>> pad.ledger.traffic.read_bytes, pad.ledger.traffic.write_bytes, pad.high_water_bytes
    (1024, 256, 192)
    """
    nest = LoopNest(matmul_of(A, B), tile, tuple(order), c_policy, buffers)
    return run_nest(nest, {"A": A, "B": B}, pad, C, "tiled_matmul")


def matmul_of(A: Array, B: Array) -> Problem:
    """The problem that two matrices pose; LabError when they do not multiply."""
    if A.ndim != 2 or B.ndim != 2 or A.shape[1] != B.shape[0]:
        raise LabError(f"matmul of shapes {A.shape} and {B.shape}: wanted (m, k) and (k, n)")
    if A.dtype != B.dtype:
        raise LabError(f"matmul of {A.dtype} and {B.dtype}: wanted one type for both")
    return matmul(A.shape[0], B.shape[1], A.shape[1], A.dtype.name)
