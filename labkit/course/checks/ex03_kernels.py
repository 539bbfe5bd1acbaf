"""The fused kernels of exercise 03, judged on what they compute, on the bytes they move, and on their launches."""

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
_ONCE = "what lies between the operators stays on chip, and a tile leaves once, when nothing is left to do to it."

_NO_RELU = "ReLU is missing in what was stored; did it change the buffer, or a new array?"


def check_fused_matmul(function: Function, draw: Random) -> None:
    """3.2: relu(A · B + bias) as one kernel, in an SRAM of one tile of each operand and a piece of the bias."""
    for _ in range(2):
        tile: Tile = (draw.randrange(3, 6), draw.randrange(6, 9), draw.randrange(3, 5))
        m, n, k = (draw.randrange(2, 4) * t + draw.randrange(1, t) for t in tile)
        A, B, bias = _integers(draw, m, k), _integers(draw, k, n), _integers(draw, n)
        pad = SealedPad(working_set_bytes(tile) + 4 * tile[1])
        call = f"fused_matmul(A, B, bias, {tile}, pad) for A {m}×{k}, B {k}×{n}"
        got = run_sealed(function, {"A": A, "B": B, "bias": bias}, (tile,), pad, (m, n), call)
        look = "compare one tile of C with the rows of A, the columns of B and the piece of the bias it comes from."
        judge_values(got, _relu(A @ B + bias), _wrong_products(A, B, bias, tile), look, call)
        judge_written(pad, 4 * m * n, _ONCE, call)
        rows, columns = -(-m // tile[0]), -(-n // tile[1])
        again = "a tile comes once for each tile of C that needs it; look for loads of what is on chip already."
        late = "how often does one tile of C need its piece of the bias?"
        needed = {"A": (4 * m * k * columns, again), "B": (4 * k * n * rows, again), "bias": (4 * n * rows, late)}
        _judge_reads(pad, needed, call)
        _judge_launches(pad, call)


def _wrong_products(A: Array, B: Array, bias: Array, tile: Tile) -> Known:
    k, tk = len(B), tile[2]
    steps = range(0, k, tk)

    def relu_on_the_sum(start: Array | float) -> Array:
        c = np.zeros((len(A), B.shape[1]), np.float32) + start
        for s in steps:
            c = _relu(c + A[:, s : s + tk] @ B[s : s + tk])
        return c

    def bias_at_each_step(relu: bool) -> Array:
        c = np.zeros((len(A), B.shape[1]), np.float32)
        for s in steps:
            c = c + A[:, s : s + tk] @ B[s : s + tk] + bias
            c = _relu(c) if relu else c
        return _relu(c)

    def relu_of_each_step() -> Array:
        c = np.zeros((len(A), B.shape[1]), np.float32)
        for s in steps:
            c += _relu(A[:, s : s + tk] @ B[s : s + tk])
        return c

    early = (
        "ReLU came before the reduction was complete: a sum may be negative for a while. After which loop is it done?"
    )
    return (
        (early, lambda: relu_on_the_sum(0)),
        (early, lambda: relu_on_the_sum(bias)),
        (early, lambda: _relu(relu_on_the_sum(0) + bias)),
        (early, lambda: relu_on_the_sum(0) + bias),
        (early, relu_of_each_step),
        (early, lambda: _relu(relu_of_each_step() + bias)),
        (early, lambda: bias_at_each_step(True)),
        ("the bias is in them once for each step of k; a sum gets it once.", lambda: bias_at_each_step(False)),
        ("ReLU came before the bias.", lambda: _relu(A @ B) + bias),
        (_NO_RELU, lambda: A @ B + bias),
        ("the bias is missing.", lambda: _relu(A @ B)),
        ("bias and ReLU are missing.", lambda: A @ B),
        ("nothing of it is in DRAM: see pad.store.", lambda: np.zeros((len(A), B.shape[1]), np.float32)),
    )


def check_fused_block(function: Function, draw: Random) -> None:
    """3.3: relu(bn(conv(x)) + residual) by blocks of rows, in an SRAM of exactly one block of each."""
    for _ in range(2):
        _run_block(function, draw)


def _run_block(function: Function, draw: Random) -> None:
    c, f, taps, rows = draw.randrange(2, 4), draw.randrange(2, 4), draw.choice([2, 3]), draw.randrange(2, 5)
    p, q = draw.randrange(2, 4) * rows + draw.randrange(1, rows), draw.randrange(4, 8)
    x, w = _integers(draw, c, p + taps - 1, q + taps), _integers(draw, f, c, taps, taps + 1)
    tensors = {
        "x": x,
        "w": w,
        "scale": _scales(draw, f),
        "shift": _integers(draw, f),
        "residual": 9 * _integers(draw, f, p, q),
    }
    pad = SealedPad(4 * (c * (rows + taps - 1) * x.shape[2] + w.size + 2 * f * rows * q + 2 * f))
    sizes = f"x {'×'.join(map(str, x.shape))}, w {'×'.join(map(str, w.shape))}"
    call = f"fused_block(x, w, scale, shift, residual, {rows}, pad) for {sizes}"
    got = run_sealed(function, tensors, (rows,), pad, (f, p, q), call)
    look = "compare one output row with the rows of x that its taps see; then scale, shift, residual, ReLU, each once."
    known = _wrong_blocks(**tensors, rows=rows)
    judge_values(got, _relu(_bn(_conv(x, w), tensors) + tensors["residual"]), known, look, call)
    judge_written(pad, 4 * f * p * q, _ONCE, call)
    needed_x = 4 * c * x.shape[2] * (p + -(-p // rows) * (taps - 1))
    same = "does it change from one block to the next?"
    needed = {
        "x": (needed_x, "which is the last row of x that a block needs? The last block may be shorter, too."),
        "w": (4 * w.size, same),
        "scale": (4 * f, same),
        "shift": (4 * f, same),
        "residual": (4 * f * p * q, "a block needs the rows of the residual at its own place, once."),
    }
    _judge_reads(pad, needed, call)
    _judge_launches(pad, call)


# Long because it is a table: a row a case, with what the student is told.
def _wrong_blocks(x: Array, w: Array, scale: Array, shift: Array, residual: Array, rows: int) -> Known:
    vectors = {"scale": scale, "shift": shift}
    y, taps = _conv(x, w), w.shape[2]
    right = _relu(_bn(y, vectors) + residual)
    last = right.copy()
    last[:, y.shape[1] // rows * rows :] = 0

    def halo_missing() -> Array:
        """Taps that fall below the rows of a block count as zero."""
        short = np.zeros_like(y)
        for first in range(0, y.shape[1], rows):
            block = np.zeros_like(x[:, : rows + taps - 1])
            block[:, :rows] = x[:, first : first + rows]
            short[:, first : first + rows] = _conv(block, w)[:, : y.shape[1] - first]
        return _relu(_bn(short, vectors) + residual)

    def relu_at_each_tap() -> Array:
        sums = np.zeros_like(y)
        for r, s in np.ndindex(w.shape[2:]):
            sums = _relu(sums + _conv_tap(x, w, r, s))
        return _relu(_bn(sums, vectors) + residual)

    def shift_at_each_tap() -> Array:
        return _relu(_bn(y, vectors) + (w.shape[2] * w.shape[3] - 1) * shift[:, None, None] + residual)

    early = (
        "ReLU came before the reduction was complete: a sum may be negative for a while. After which loop is it done?"
    )
    return (
        (early, relu_at_each_tap),
        ("ReLU came before the residual was added.", lambda: _relu(_bn(y, vectors)) + residual),
        ("ReLU came before scale and shift.", lambda: _bn(_relu(y), vectors) + residual),
        ("ReLU came before scale and shift as well.", lambda: _relu(_bn(_relu(y), vectors) + residual)),
        (
            "the residual went through scale and shift; it is added behind them.",
            lambda: _relu(_bn(y + residual, vectors)),
        ),
        ("scale and shift were applied twice.", lambda: _relu(_bn(_bn(y, vectors), vectors) + residual)),
        ("the shift is in them once for each tap; a sum gets it once.", shift_at_each_tap),
        (
            "the shift came before the scale.",
            lambda: _relu((y + shift[:, None, None]) * scale[:, None, None] + residual),
        ),
        ("scale and shift are missing.", lambda: _relu(y + residual)),
        ("the residual is missing.", lambda: _relu(_bn(y, vectors))),
        (_NO_RELU, lambda: _bn(y, vectors) + residual),
        ("the last rows of each block miss something: which rows of x do their taps see?", halo_missing),
        ("the last, smaller block is missing; is the number of blocks rounded up?", lambda: last),
        ("nothing of it is in DRAM: see pad.store.", lambda: np.zeros_like(y)),
    )


def _judge_reads(pad: SealedPad, needed: dict[str, tuple[int, str]], call: str) -> None:
    """CheckFailed for the first tensor that is read too much; anything else that was read is a sum that came back."""
    of_sums = pad.counted.traffic.read_bytes - sum(read_bytes(pad, tensor) for tensor in needed)
    judge_bytes(
        {"reading back its own sums moves": (of_sums, 0, "they start at zero on chip and stay: see pad.alloc.")}, call
    )
    judge_bytes({f"reading {t} moves": (read_bytes(pad, t), nbytes, why) for t, (nbytes, why) in needed.items()}, call)


def _judge_launches(pad: SealedPad, call: str) -> None:
    if pad.launches != 1:
        raise CheckFailed(
            f"{call}: right values and bytes, but {pad.launches} launches. Launches are a counter of their own: all "
            'that runs inside one "with pad.kernel(...)" is one of them.'
        )


def _relu(values: Array) -> Array:
    return np.maximum(values, 0)


def _bn(y: Array, vectors: dict[str, Array]) -> Array:
    scaled: Array = y * vectors["scale"][:, None, None] + vectors["shift"][:, None, None]
    return scaled


def _conv(x: Array, w: Array) -> Array:
    return sum((_conv_tap(x, w, r, s) for r, s in np.ndindex(w.shape[2:])), np.zeros((), np.float32))


def _conv_tap(x: Array, w: Array, r: int, s: int) -> Array:
    p, q = x.shape[1] - w.shape[2] + 1, x.shape[2] - w.shape[3] + 1
    y: Array = np.einsum("fc,cpq->fpq", w[:, :, r, s], x[:, r : r + p, s : s + q])
    return y


def _integers(draw: Random, *shape: int) -> Array:
    """Small whole numbers: float32 adds them up without rounding, in any order."""
    values = np.random.default_rng(draw.randrange(2**32)).integers(-4, 5, shape)
    return np.where(values == 0, 5, values).astype(np.float32)


def _scales(draw: Random, filters: int) -> Array:
    """Factors of a normalisation, negative ones among them: none is 1 or −1, so that twice is not once."""
    return np.array([(-1) ** i * draw.choice([2, 3]) for i in range(filters)], np.float32)
