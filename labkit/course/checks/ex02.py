"""Exercise 02, tiling: three figures by hand, three kernels on a Scratchpad, and a tile that beats the square one."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from random import Random
from typing import Any

from labkit.course.checking import CheckFailed, Function, Part
from labkit.course.checks.ex02_kernels import check_double_buffered, check_tiled_conv, check_tiled_matmul
from labkit.course.checks.plain import number, wholes
from labkit.course.checks.question import Question, Slip, until_one_suits
from labkit.errors import LabError
from labkit.loops import LoopNest
from labkit.problems import Problem, matmul
from labkit.search import best_tile
from labkit.units import KIB

Tile = tuple[int, int, int]
_TYPES = {2: "float16", 4: "float32", 8: "float64"}
_ON_PAPER = ("labkit.tiling", "labkit.loops", "labkit.search", "labkit.weigh", "labkit.problems")
_KERNELS = ("labkit.kernels",)
_SLACK = 1.05  # "beat the square": five per cent above the best tile still count as the best


@dataclass(frozen=True)
class Given:
    """One student's machine and matmul."""

    sram_kib: int
    m: int
    n: int
    k: int


def given(draw: Random) -> Given:
    """Sizes with an SRAM that holds none of the matrices, and where no square tile comes near the best one."""
    return until_one_suits(lambda: _given_if_square_is_worse(draw), "product for which a square tile is no good")


def _given_if_square_is_worse(draw: Random) -> Given | None:
    own = Given(draw.randrange(48, 160, 4), *(draw.randrange(300, 700, 4) for _ in range(3)))
    problem, elements = matmul(own.m, own.n, own.k), own.sram_kib * KIB // 4
    edge = isqrt(elements + 1) - 1  # of C, when A and B are one step deep
    flat = LoopNest(problem, (edge, edge, 1), tuple("mnk")).traffic.nbytes
    return own if flat > 1.1 * best_tile(problem, own.sram_kib * KIB).dram_bytes else None


# ---- 2.1 the largest square tile


def _edge(elements: float) -> int:
    return isqrt(int(elements))


largest_tile = Question(
    "largest_tile",
    lambda draw: (draw.randrange(20, 2000), draw.choice([2, 4, 8])),
    lambda sram_kib, itemsize: _edge(sram_kib * KIB // (3 * itemsize)),
    (
        Slip(lambda s, i: _edge(s * KIB // (2 * i)), "that is room for two tiles; a third one collects the sums."),
        Slip(lambda s, i: _edge(s * KIB // 3), "that many elements would fit if each had one byte."),
        Slip(lambda s, i: _edge(s * 1000 // (3 * i)), "how many bytes has a KiB? That was a kB."),
        Slip(lambda s, i: _edge(s // (3 * i)), "the SRAM is given in KiB, an element in bytes."),
        Slip(lambda s, i: _edge(s * KIB // (3 * i)) + 1, "one more than fits: round down, not up."),
        Slip(lambda s, i: _edge(s * KIB // i), "that is room for one tile; which others are in use with it?"),
        Slip(lambda s, i: s * KIB // (3 * i), "that is the area of a tile; its edge is asked."),
        Slip(lambda s, i: _edge(s * KIB // (5 * i)), "single buffers here: each matrix has one tile on chip."),
        Slip(
            lambda s, i: 1 << (_edge(s * KIB // (3 * i)).bit_length() - 1),
            "a power of two fits and is handy, but a larger tile fits as well.",
        ),
    ),
    "how many bytes have the tiles that are in use at the same time? The edge is the largest whole number for which "
    "they fit.",
)


# ---- 2.2 the working set


def _working_set(tile: Tile, itemsize: int, double: bool) -> int:
    tm, tn, tk = tile
    return itemsize * ((1 + double) * (tm * tk + tk * tn) + tm * tn)


def _draw_working_set(draw: Random) -> tuple[Any, ...]:
    return tuple(draw.randrange(3, 90) for _ in range(3)), draw.choice([2, 4, 8]), draw.random() < 0.6


working_set = Question(
    "working_set",
    _draw_working_set,
    _working_set,
    (
        Slip(lambda t, i, d: _working_set(t, 1, d), "these are elements; an SRAM is measured in bytes."),
        Slip(
            lambda t, i, d: _working_set(t, i, d) - i * t[0] * t[1], "A and B only; where are their products added up?"
        ),
        Slip(
            lambda t, i, d: 2 * _working_set(t, i, False) if d else None,
            "twice of everything; does a tile of C arrive with each step, as those of A and B do?",
        ),
        Slip(lambda t, i, d: _working_set(t, i, False) if d else None, "the same as without double buffers."),
        Slip(
            lambda t, i, d: _working_set(t, i, True) if not d else None, "double buffers, where single ones are asked."
        ),
        Slip(
            lambda t, i, d: i * (1 + d + 1 + d + 1) * t[0] * t[1],
            "three tiles of TM × TN; which two of the three sizes has a tile of A, and which has one of B?",
        ),
        Slip(
            lambda t, i, d: _working_set((t[0], t[2], t[1]), i, d) if d else None,
            "the tile is (TM, TN, TK); which axes are C's own?",
        ),
        Slip(lambda t, i, d: _working_set(t, i, d) // KIB, "in bytes, please, not in KiB."),
    ),
    "write down the rows and columns of one tile of A, of B and of C, then how many of each are on chip.",
)


# ---- 2.3 intensity


def _moved(m: int, n: int, k: int, tile: Tile, c_passes: int = 1) -> int:
    """Elements: A once for each column of tiles, B once for each row of tiles, C so many times."""
    return m * k * -(-n // tile[1]) + k * n * -(-m // tile[0]) + c_passes * m * n


def _padded(m: int, n: int, k: int, tile: Tile) -> int:
    m, n, k = (-(-size // t) * t for size, t in zip((m, n, k), tile, strict=True))
    return _moved(m, n, k, tile)


def _draw_intensity(draw: Random) -> tuple[Any, ...]:
    m, n, k = (draw.randrange(40, 400) for _ in range(3))
    return m, n, k, tuple(draw.randrange(5, size // 2) for size in (m, n, k)), draw.choice([2, 4, 8])


intensity = Question(
    "intensity",
    _draw_intensity,
    lambda m, n, k, tile, i: 2 * m * n * k / (i * _moved(m, n, k, tile)),
    (
        Slip(
            lambda m, n, k, t, i: m * n * k / (i * _moved(m, n, k, t)),
            "half as many operations as there are: how many FLOP is one multiply-accumulate?",
        ),
        Slip(lambda m, n, k, t, i: 2 * m * n * k / (i * _moved(m, n, k, t, 0)), "the result is missing in the bytes."),
        Slip(
            lambda m, n, k, t, i: 2 * m * n * k / (i * _moved(m, n, k, t, 2)),
            "C moves twice here; a sum that starts at zero on chip is not read first.",
        ),
        Slip(
            lambda m, n, k, t, i: 2 * m * n * k / (i * _moved(m, n, k, t, -(-k // t[2]))),
            "C moves at every step of k here; on chip it stays until the sum is complete.",
        ),
        Slip(lambda m, n, k, t, i: 2 * m * n * k / _moved(m, n, k, t), "that is per element; FLOP per byte is asked."),
        Slip(
            lambda m, n, k, t, i: 2 * m * n * k / (i * (m * k * (n // t[1]) + k * n * (m // t[0]) + m * n)),
            "the last, smaller tiles are forgotten: they load A and B as well.",
        ),
        Slip(
            lambda m, n, k, t, i: 2 * m * n * k / (i * _padded(m, n, k, t)),
            "the last tiles are counted at full size; they are as small as what is left.",
        ),
        Slip(
            lambda m, n, k, t, i: 2 * m * n * k / (i * (m * k + k * n + m * n)),
            "that is each matrix once, as with an endless SRAM; how often does each tile of A and B come?",
        ),
        Slip(
            lambda m, n, k, t, i: 2 * t[0] * t[1] * t[2] / (i * (t[0] * t[2] + t[2] * t[1])),
            "that is one step of k alone; the whole product is asked, with C.",
        ),
        Slip(
            lambda m, n, k, t, i: i * _moved(m, n, k, t) / (2 * m * n * k), "bytes per FLOP; it is the other way round."
        ),
        Slip(
            lambda m, n, k, t, i: 2 * m * n * k / (i * (m * k * -(-m // t[0]) + k * n * -(-n // t[1]) + m * n)),
            "a tile of A comes again for each tile along the axis that A does not have; which one is that?",
        ),
    ),
    "FLOP of the whole product, over the bytes of A, B and C: for how many tiles of C is one tile of A loaded?",
    number,
)


# ---- 2.7 beat the square


def check_schedule(function: Function, draw: Random) -> None:
    """2.7: a loop order and a tile, counted by LoopNest against best_tile."""
    for _ in range(2):
        own = given(draw)
        itemsize = draw.choice([4, 8])
        problem, sram_bytes = matmul(own.m, own.n, own.k, _TYPES[itemsize]), own.sram_kib * KIB
        call = f"schedule({own.m}, {own.n}, {own.k}, {sram_bytes}, {itemsize})"
        nest = _nest(function(own.m, own.n, own.k, sram_bytes, itemsize), problem, call)
        _judge_nest(nest, problem, sram_bytes, itemsize, call)


def _nest(answer: Any, problem: Problem, call: str) -> LoopNest:
    if type(answer) not in (tuple, list) or len(answer) != 2:
        raise CheckFailed(f"{call} gave {answer!s:.40}; expected an order and a tile, as in ('mnk', (8, 8, 8)).")
    order, tile = answer
    if type(order) is not str:
        raise CheckFailed(f"{call} gave the order {order!s:.40}; expected a word of three letters, as 'mnk'.")
    try:
        return LoopNest(problem, wholes(tile, call), tuple(order))
    except LabError as error:
        raise CheckFailed(f"{call}: {error}") from None


def _judge_nest(nest: LoopNest, problem: Problem, sram_bytes: int, itemsize: int, call: str) -> None:
    said = f"{call} gave order {''.join(nest.order)} and tile {nest.tile}"
    if nest.clipped().working_set_bytes > sram_bytes:
        needed = nest.clipped().working_set_bytes
        hint = "are these elements?" if needed // itemsize <= sram_bytes else "A, B and C are on chip together."
        raise CheckFailed(f"{said}: {needed:,} bytes, the SRAM has {sram_bytes:,}: {hint}")
    edge = isqrt(sram_bytes // (3 * itemsize))
    square = LoopNest(problem, (edge, edge, edge), tuple("mnk")).traffic.nbytes
    best, moved = best_tile(problem, sram_bytes).dram_bytes, nest.traffic.nbytes
    if moved <= _SLACK * best:
        return
    counts = f"it moves {moved:,} bytes, the largest square {square:,}, the best tile {best:,}:"
    if nest.order[-1] != "k" and nest.by_operand["C"].reads:
        raise CheckFailed(f"{said}: {counts} its sums leave and come back; which loop must be innermost?")
    if moved >= square:
        raise CheckFailed(f"{said}: {counts} which of the three sizes of a tile decide how often A and B are read?")
    if nest.tiles["k"] > 1:
        raise CheckFailed(f"{said}: {counts} what does TK buy, and what could its room be used for?")
    raise CheckFailed(f"{said}: {counts} the sizes need not be equal; how many tiles are there along m and along n?")


PARTS = {
    "2.1": Part("the largest square tile", 2, "largest_tile", largest_tile, _ON_PAPER),
    "2.2": Part("working set, with and without double buffers", 2, "working_set", working_set, _ON_PAPER),
    "2.3": Part("intensity of the whole product", 2, "intensity", intensity, _ON_PAPER),
    "2.4": Part("a tiled product on a scratchpad", 4, "tiled_matmul", check_tiled_matmul, _KERNELS),
    "2.5": Part("double buffers", 3, "double_buffered", check_double_buffered, _KERNELS),
    "2.6": Part("a convolution with its halo", 4, "tiled_conv", check_tiled_conv, _KERNELS),
    "2.7": Part("beat the square", 3, "schedule", check_schedule, ("labkit.search",)),
}
