"""The kernels of exercise 02, judged on what they compute and on what they move.

They run on sealed DRAM: a product of whole arrays is NaN, and a formula in the ledger is no transfer.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.kernels import Known, judge_bytes, judge_values, judge_written, read_bytes, run_sealed
from labkit.course.sealed import SealedPad
from labkit.tiling import Tile, working_set_bytes

Array = NDArray[Any]


# ---- 2.4 and 2.5 the product on a Scratchpad


def check_tiled_matmul(function: Function, draw: Random) -> None:
    """2.4: the product tile by tile, each tile of C stored once, in an SRAM of exactly one tile of each."""
    for _ in range(2):
        _run_matmul(function, "tiled_matmul", draw, double=False)


def check_double_buffered(function: Function, draw: Random) -> None:
    """2.5: the same bytes, and the next tiles of A and B arrive before the present ones have gone."""
    pad, tiles_of_c, call = _run_matmul(function, "double_buffered", draw, double=True)
    for tensor in ("A", "B"):
        late = pad.loads[tensor] - pad.early[tensor]
        if late > tiles_of_c:
            raise CheckFailed(
                f"{call}: right values and bytes, but {late} of {pad.loads[tensor]} tiles of {tensor} came only when "
                f"no other tile of {tensor} was on chip (slots=2 only reserves room): nothing could be computed "
                "meanwhile. When does the next one have to be loaded?"
            )


def _run_matmul(function: Function, name: str, draw: Random, double: bool) -> tuple[SealedPad, int, str]:
    tile: Tile = (draw.randrange(3, 6), draw.randrange(6, 9), draw.randrange(3, 5))
    m, n, k = (draw.randrange(2, 4) * t + draw.randrange(1, t) for t in tile)
    A, B = _integers(draw, m, k), _integers(draw, k, n)
    pad = SealedPad(working_set_bytes(tile, buffers="double" if double else "single"))
    call = f"{name}(A, B, {tile}, pad) for A {m}×{k}, B {k}×{n}"
    got = run_sealed(function, {"A": A, "B": B}, (tile,), pad, (m, n), call)
    look = "compare one tile of C with the rows of A and the columns of B that it comes from."
    judge_values(got, A @ B, _wrong_products(A, B, tile), look, call)
    steps = -(-k // tile[2])
    judge_written(
        pad, 4 * m * n, f"k has {steps} tiles; when is a sum complete, and may a tile of C leave before?", call
    )
    _judge_reads(pad, (m, n, k), tile, call)
    return pad, -(-m // tile[0]) * -(-n // tile[1]), call


def _judge_reads(pad: SealedPad, sizes: tuple[int, int, int], tile: Tile, call: str) -> None:
    m, n, k = sizes
    columns, rows = -(-n // tile[1]), -(-m // tile[0])
    needed_a, needed_b = 4 * m * k * columns, 4 * k * n * rows
    of_c = pad.counted.traffic.read_bytes - read_bytes(pad, "A") - read_bytes(pad, "B")
    again = "a tile comes once for each tile of C that needs it; look for loads that bring what is on chip already."
    moved = {
        "reading C moves": (of_c, 0, "its sums start at zero on chip: see pad.alloc."),
        "reading A moves": (read_bytes(pad, "A"), needed_a, again),
        "reading B moves": (read_bytes(pad, "B"), needed_b, again),
    }
    judge_bytes(moved, call)


def _wrong_products(A: Array, B: Array, tile: Tile) -> Known:
    (m, k), n = A.shape, B.shape[1]
    tm, tn, tk = tile
    last, whole_m, whole_n, whole_k = (k - 1) // tk * tk, m // tm * tm, n // tn * tn, k // tk * tk

    def cut(rows: int, columns: int) -> Array:
        C = np.zeros((m, n), np.float32)
        C[:rows, :columns] = A[:rows] @ B[:, :columns]
        return C

    edge = "the smaller tiles at the edge are missing; is the number of tiles rounded up?"
    return (
        ("only the last step of k is in them; each step adds to what is there.", lambda: A[:, last:] @ B[last:]),
        ("only the first step of k is in them.", lambda: A[:, :tk] @ B[:tk]),
        ("the last, smaller step of k is missing.", lambda: A[:, :whole_k] @ B[:whole_k]),
        (edge, lambda: cut(whole_m, n)),
        (edge, lambda: cut(m, whole_n)),
        (edge, lambda: cut(whole_m, whole_n)),
        ("nothing of it is in DRAM: see pad.store.", lambda: cut(0, 0)),
    )


# ---- 2.6 a convolution with its halo


def check_tiled_conv(function: Function, draw: Random) -> None:
    """2.6: a convolution by blocks of output rows: the halo is loaded, the weights once."""
    for _ in range(2):
        _run_conv(function, draw)


def _run_conv(function: Function, draw: Random) -> None:
    c, f, taps, rows = draw.randrange(2, 4), draw.randrange(2, 4), draw.choice([2, 3, 4]), draw.randrange(2, 5)
    p, q = draw.randrange(2, 4) * rows + draw.randrange(1, rows), draw.randrange(4, 8)
    x, w = _integers(draw, c, p + taps - 1, q + taps), _integers(draw, f, c, taps, taps + 1)
    pad = SealedPad(4 * (c * (rows + taps - 1) * x.shape[2] + w.size + f * rows * q))
    call = f"tiled_conv(x, w, {rows}, pad) for x {'×'.join(map(str, x.shape))}, w {'×'.join(map(str, w.shape))}"
    got = run_sealed(function, {"x": x, "w": w}, (rows,), pad, (f, p, q), call)
    look = "compare one output row with the rows of x that its taps see."
    judge_values(got, _conv(x, w), _wrong_convolutions(x, w, rows), look, call)
    judge_written(pad, 4 * f * p * q, "a row of y is complete when all its taps and channels are added.", call)
    blocks = -(-p // rows)
    needed_x = 4 * c * x.shape[2] * (p + blocks * (taps - 1))
    moved = {
        "reading w moves": (read_bytes(pad, "w"), 4 * w.size, "do the weights change from one block to the next?"),
        "reading x moves": (
            read_bytes(pad, "x"),
            needed_x,
            "which is the last row of x that a block needs? The last block may be shorter, too.",
        ),
        "reading y moves": (
            pad.counted.traffic.read_bytes - read_bytes(pad, "x") - read_bytes(pad, "w"),
            0,
            "its sums start at zero on chip: see pad.alloc.",
        ),
    }
    judge_bytes(moved, call)


def _conv(x: Array, w: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(1, 2))
    y: Array = np.einsum("cpqrs,fcrs->fpq", windows, w)
    return y


def _wrong_convolutions(x: Array, w: Array, rows: int) -> Known:
    right, taps = _conv(x, w), w.shape[2]
    p = right.shape[1]

    def halo_missing() -> Array:
        """Taps that fall below the rows of a block count as zero."""
        y = np.zeros_like(right)
        for first in range(0, p, rows):
            block = np.zeros_like(x[:, : rows + taps - 1])
            block[:, :rows] = x[:, first : first + rows]
            y[:, first : first + rows] = _conv(block, w)[:, : p - first]
        return y

    def last_rows_missing() -> Array:
        """Rows of a block whose taps fall below it stay zero."""
        y = np.zeros_like(right)
        for first in range(0, p, rows):
            inside = max(min(first + rows, p) - taps + 1, first)
            y[:, first:inside] = right[:, first:inside]
        return y

    cut = right.copy()
    cut[:, p // rows * rows :] = 0
    halo = "the last rows of each block miss something: which rows of x do their taps see?"
    turned = "the kernel is turned round here; tap (r, s) belongs to row p + r and column q + s."
    channels = "only one channel is in them; all channels add up."
    return (
        (halo, halo_missing),
        (halo, last_rows_missing),
        ("the last, smaller block is missing; is the number of blocks rounded up?", lambda: cut),
        (turned, lambda: _conv(x, w[:, :, ::-1, ::-1])),
        ("nothing of it is in DRAM: see pad.store.", lambda: np.zeros_like(right)),
        (channels, lambda: _conv(x[-1:], w[:, -1:])),
        (channels, lambda: _conv(x[:1], w[:, :1])),
    )


def _integers(draw: Random, *shape: int) -> Array:
    """Small whole numbers: float32 adds them up without rounding, in any order."""
    values = np.random.default_rng(draw.randrange(2**32)).integers(-4, 5, shape)
    return np.where(values == 0, 5, values).astype(np.float32)
