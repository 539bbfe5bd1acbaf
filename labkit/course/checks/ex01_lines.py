"""The parts of exercise 01 that count cache lines: elements, pixels across a border, whole walks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from math import ceil
from random import Random

import numpy as np

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.plain import whole, wholes
from labkit.course.checks.question import until_one_suits
from labkit.layout import Layout

Shape = tuple[int, ...]
Walks = list[tuple[str, int]]


def check_lines_touched(lines_touched: Function, draw: Random) -> None:
    """1.4: number of different lines that hold the elements at some offsets."""
    for itemsize, line_bytes in ((4, 64), (2, 64), (4, 128), (8, 32), (1, 64), (4, 4)):
        for offsets in _offset_lists(draw):
            call = f"lines_touched({_short(offsets)}, {itemsize}, {line_bytes})"
            got = whole(lines_touched(list(offsets), itemsize, line_bytes), call)
            if got != len({offset * itemsize // line_bytes for offset in offsets}):
                raise CheckFailed(f"{call} gave {got}: {_why_lines(got, offsets, itemsize, line_bytes)}")


def _offset_lists(draw: Random) -> Iterable[list[int]]:
    shape = (1, draw.choice((3, 5, 7)), 4, 16)
    nhwc, nchw, away = Layout.dense(shape, "NHWC"), Layout.dense(shape, "NCHW"), draw.randrange(10, 20)
    yield [0, 16, 32, 16 * away, 16 * away + 1]  # every known slip counts another number here
    yield nhwc.offsets()[0, :, 0, 5].tolist()  # one pixel across a border
    yield nchw.offsets()[0, :, 1, 2].tolist()
    yield nhwc.offsets()[0, 0, 2, :].tolist()
    yield [away, away, away]
    yield draw.sample(range(2000), 40)
    yield list(range(100, 40, -1))


def _why_lines(got: int, offsets: list[int], itemsize: int, line_bytes: int) -> str:
    lines = [offset * itemsize // line_bytes for offset in offsets]
    known = {
        max(lines) - min(lines) + 1: "a line between the first and the last that holds none of them is not fetched.",
        len(offsets): "two elements in one line fetch it once.",
        ceil(len(offsets) * itemsize / line_bytes): "that is the fewest lines so many bytes could fill; count the "
        "lines where these elements really lie.",
        len({offset // line_bytes for offset in offsets}): "the offsets are elements, the line is in bytes.",
    }
    return known.get(got, "which line does each single element lie in? Then count the different ones.")


def check_straddling_pixels(straddling_pixels: Function, draw: Random) -> None:
    """1.5: numbers of the NHWC pixels whose first and last byte lie in different lines."""
    for pixels, channels, itemsize, line_bytes, base in _images(draw):
        call = f"straddling_pixels({pixels}, {channels}, {itemsize}, {line_bytes}, base={base})"
        result = straddling_pixels(pixels, channels, itemsize, line_bytes, base=base)
        if type(result) is int or isinstance(result, np.integer):
            raise CheckFailed(f"{call} gave a number; expected the list of pixel numbers, not how many there are.")
        got = wholes(result, call)
        nbytes = channels * itemsize
        if got != _crossing(pixels, nbytes, line_bytes, base):
            raise CheckFailed(
                f"{call} gave {list(got)}: {_why_pixels(got, pixels, channels, nbytes, line_bytes, base)}"
            )


def _images(draw: Random) -> Iterable[tuple[int, int, int, int, int]]:
    for line_bytes in (64, 32, 128):
        yield draw.randrange(40, 60), draw.choice((3, 5, 6, 7)), 4, line_bytes, 0
    yield draw.randrange(40, 60), 4, 4, 64, 0  # pixels that end right at a border
    yield draw.randrange(100, 120), 3, 2, 64, 0
    yield draw.randrange(30, 40), 4, 4, 64, draw.randrange(4, 16, 4)
    yield draw.randrange(30, 40), 3, 4, 64, draw.randrange(20, 60, 4)
    yield 20, 1, 4, 64, 4
    yield 6, draw.randrange(33, 48), 4, 64, 0


def _crossing(pixels: int, nbytes: int, line_bytes: int, base: int, past: int = 0) -> tuple[int, ...]:
    """Byte by byte; with ``past`` the pixel seems longer than it is."""
    starts = [(pixel, base + pixel * nbytes) for pixel in range(pixels)]
    return tuple(p for p, first in starts if len({(first + b) // line_bytes for b in range(nbytes + past)}) > 1)


def _why_pixels(got: tuple[int, ...], pixels: int, channels: int, nbytes: int, line_bytes: int, base: int) -> str:
    right = _crossing(pixels, nbytes, line_bytes, base)
    if base and got == _crossing(pixels, nbytes, line_bytes, 0):
        return "the image does not begin at byte 0 here; look at base."
    if got == _crossing(pixels, channels, line_bytes, base):
        return "these would be pixels of one byte a channel; line borders are counted in bytes, channels in elements."
    if got == ():
        return "none at all? Write down the first and the last byte of each pixel near a border."
    if got == _crossing(pixels, nbytes, line_bytes, base, past=1):
        return "a pixel that ends right at a border does not cross it; which is its last byte?"
    if got == tuple(pixel + 1 for pixel in right):
        return "pixels are counted from 0."
    if sorted(got) == list(right):
        return "the right pixels; list them in ascending order."
    return "in which line lies the first byte of a pixel, and in which its last one?"


def _short(numbers: list[int]) -> str:
    return str(numbers) if len(numbers) <= 16 else f"[{', '.join(map(str, numbers[:4]))}, ... {len(numbers)} offsets]"


def check_choose_order(choose_order: Function, draw: Random) -> None:
    """1.7: the memory order in which a list of walks touches the fewest lines."""
    shape, walks, line_bytes = _telling_walks(draw)
    call = f"choose_order({shape}, {walks}, 4, {line_bytes})"
    order = choose_order(shape, list(walks), 4, line_bytes)
    if type(order) in (tuple, list):
        order = "".join(map(str, order))
    if type(order) is not str or sorted(order) != sorted("NCHW"):
        raise CheckFailed(f"{call} gave {order!r:.40}; expected an order of the four letters N, C, H, W.")
    if _lines(order, shape, walks, line_bytes) > min(_all_lines(shape, walks, line_bytes).values()):
        raise CheckFailed(f"{call} gave {order}: {_why_order(order, shape, walks, line_bytes)}")


def _telling_walks(draw: Random) -> tuple[Shape, Walks, int]:
    """Walks for which neither a common order nor a known slip gives the best one."""
    return until_one_suits(lambda: _walks_if_telling(draw), "walks that tell the orders apart")


def _walks_if_telling(draw: Random) -> tuple[Shape, Walks, int] | None:
    shape = tuple(draw.sample((2, 3, 5, 6, 9, 12, 20, 33, 40), 4))
    walks = [(axis, draw.randrange(1, 40)) for axis in draw.sample("NCHW", 3)]
    line_bytes = draw.choice((32, 64, 128))
    costs = _all_lines(shape, walks, line_bytes)
    slips = (*_slips(shape, walks, line_bytes), "NCHW", "NHWC")
    tells = all(costs[order] > min(costs.values()) for order in slips)
    return (shape, walks, line_bytes) if tells else None


def _lines(order: str, shape: Shape, walks: Walks, line_bytes: int, itemsize: int = 4) -> int:
    """Lines that all walks touch; one walk goes along an axis from the first element, the other indices are 0."""
    total, step, times = 0, itemsize, dict(walks)
    for axis in reversed(order):
        length = shape["NCHW".index(axis)]
        touched = min(length, (length - 1) * step // line_bytes + 1)  # one a step, or all up to the last
        total += times.get(axis, 0) * touched
        step *= length
    return total


def _all_lines(shape: Shape, walks: Walks, line_bytes: int) -> dict[str, int]:
    return {order: _lines(order, shape, walks, line_bytes) for order in map("".join, permutations("NCHW"))}


def _slips(shape: Shape, walks: Walks, line_bytes: int) -> dict[str, str]:
    """The orders that known slips lead to."""
    often = sorted("NCHW", key=lambda axis: dict(walks).get(axis, 0))
    once = _all_lines(shape, [(axis, 1) for axis, _ in walks], line_bytes)
    return {
        min(once, key=lambda order: once[order]): "that would be right if each walk were made once; look at how often.",
        "".join(
            often
        ): "the axis that is walked most often is the fastest one here; is that where most lines are saved?",
        "".join(
            reversed(often)
        ): "the axis that is walked most often is the slowest one here; its steps are the longest.",
    }


def _why_order(order: str, shape: Shape, walks: Walks, line_bytes: int) -> str:
    costs = _all_lines(shape, walks, line_bytes)
    counts = f"its walks touch {costs[order]} lines, the best order {min(costs.values())}:"
    known = _slips(shape, walks, line_bytes)
    return f"{counts} {known.get(order, 'count the lines of every walk, in every order.')}"
