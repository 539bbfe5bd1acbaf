"""Exercise 03, depth first: two convolutions block by block, where the halo between them is computed once more."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from labkit.course.checks.plain import wholes
from labkit.course.checks.question import Question, Slip

Pair = tuple[int, int]  # extra FLOP, bytes saved


def _halo_rows(height: int, taps: int, rows: int) -> int:
    """Rows of the intermediate that are computed once more: each block but the first finds its halo computed."""
    return (-(-height // rows) - 1) * (taps - 1)


def _flops(extra_rows: int, c: int, mid: int, width: int, taps: int) -> int:
    return extra_rows * (width + taps - 1) * mid * 2 * c * taps * taps


def _between(mid: int, height: int, width: int, taps: int) -> int:
    """Elements of the intermediate."""
    return mid * (height + taps - 1) * (width + taps - 1)


def _again(extra_rows: int, c: int, width: int, taps: int) -> int:
    """Elements of x that come once more: its halo lies behind two convolutions."""
    return 2 * extra_rows * c * (width + 2 * (taps - 1))


def _depth_first(c: int, mid: int, height: int, width: int, taps: int, rows: int, itemsize: int) -> Pair:
    return _of_extra(_halo_rows)(c, mid, height, width, taps, rows, itemsize)


def _of_extra(count: Callable[[int, int, int], int]) -> Callable[..., Pair]:
    """The answer of those who count the extra rows in another way."""

    def value(c: int, mid: int, height: int, width: int, taps: int, rows: int, itemsize: int) -> Pair:
        extra = count(height, taps, rows)
        saved = 2 * _between(mid, height, width, taps) - _again(extra, c, width, taps)
        return _flops(extra, c, mid, width, taps), saved * itemsize

    return value


def _other_flops(change: Callable[[int, int, int], int]) -> Callable[..., Pair]:
    """The right bytes, and FLOP changed: from the right number, the width and the taps."""

    def value(c: int, mid: int, height: int, width: int, taps: int, rows: int, itemsize: int) -> Pair:
        flops, saved = _depth_first(c, mid, height, width, taps, rows, itemsize)
        return change(flops, width, taps), saved

    return value


def _other_saving(between: int, again: float, in_elements: bool = False) -> Callable[..., Pair]:
    """The right FLOP, and so many times the intermediate less so many times the halo of x."""

    def value(c: int, mid: int, height: int, width: int, taps: int, rows: int, itemsize: int) -> Pair:
        extra = _halo_rows(height, taps, rows)
        saved = between * _between(mid, height, width, taps) - int(again * _again(extra, c, width, taps))
        return _flops(extra, c, mid, width, taps), saved * (1 if in_elements else itemsize)

    return value


def _draw(draw: Random) -> tuple[int, ...]:
    c, mid, height, width = (
        draw.randrange(3, 30),
        draw.randrange(31, 60),
        draw.randrange(30, 90),
        draw.randrange(30, 90),
    )
    return c, mid, height, width, draw.choice([3, 5]), draw.randrange(7, 14), draw.choice([2, 4])


depth_first = Question(
    "depth_first",
    _draw,
    _depth_first,
    (
        Slip(
            _other_flops(lambda r, w, t: r // 2), "half as many operations: how many FLOP is one multiply-accumulate?"
        ),
        Slip(_other_flops(lambda r, w, t: r // (t * t)), "the taps are forgotten: what does one element take?"),
        Slip(
            _other_flops(lambda r, w, t: r // (w + t - 1) * w),
            "rows of the intermediate are as wide here as those of the result; the second convolution narrows them.",
        ),
        Slip(_other_flops(lambda r, w, t: 0), "nothing is computed twice here; which rows do two blocks need?"),
        Slip(_other_saving(1, 1), "the intermediate moves once here; layer by layer it is written, and then?"),
        Slip(_other_saving(2, 0), "the halo of x is forgotten: which of its rows come for two blocks?"),
        Slip(
            _other_saving(2, 0.5),
            "the halo of x is as deep as that of one convolution here; it lies behind two of them.",
        ),
        Slip(_other_saving(2, 1, True), "the saving is in elements; bytes are asked."),
        Slip(
            _of_extra(lambda height, taps, rows: -(-height // rows) * (taps - 1)),
            "the first block is among those that compute rows once more; who computed them before?",
        ),
        Slip(
            _of_extra(lambda height, taps, rows: (height // rows - 1) * (taps - 1)),
            "the last, smaller block is forgotten; it has a halo like the others.",
        ),
        Slip(
            _of_extra(lambda height, taps, rows: (-(-height // rows) - 1) * taps),
            "a halo of as many rows as there are taps; how many of its rows does an output row share with the next?",
        ),
        Slip(lambda *a: _depth_first(*a)[::-1], "extra FLOP first, then bytes saved."),
    ),
    "draw two neighbouring blocks of the result, the rows of the intermediate that each needs, and the rows of x.",
    wholes,
)
