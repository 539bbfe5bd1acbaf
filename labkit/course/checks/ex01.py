"""Exercise 01, layouts. Each check compares with labkit or with brute force, on the same shapes every time, and where
the answer is wrong in a known way it says what to look at (never the answer)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import pairwise
from math import ceil, prod
from typing import Any

import numpy as np

from labkit.course.checking import CheckFailed, Part
from labkit.course.checks.plain import flat_array, truth, whole, wholes
from labkit.layout import Layout
from labkit.memory.ledger import Ledger

Function = Callable[..., Any]
_SHAPES = ((2, 3, 4, 5), (1, 8, 7, 3), (3, 1, 2, 6), (4, 5, 1, 1))


def check_strides(strides: Function) -> None:
    """1.1: four strides, listed as N, C, H, W whatever the memory order."""
    for shape in _SHAPES:
        for order in ("NCHW", "NHWC", "CHWN", "WNHC"):
            call = f'strides({shape}, "{order}")'
            got = wholes(strides(shape, order), call)
            expected = Layout.dense(shape, order).strides
            if got != expected:
                raise CheckFailed(f"{call} gave {got}: {_why_strides(got, shape, order)}")


def _why_strides(got: tuple[int, ...], shape: tuple[int, ...], order: str) -> str:
    layout = Layout.dense(shape, order)
    wrong_end = Layout.dense(shape, order[::-1]).strides
    known = {
        tuple(4 * stride for stride in layout.strides): "these are bytes; a stride counts elements.",
        tuple(layout.stride(axis) for axis in order): "the right numbers, listed in memory order; list them as "
        "N, C, H, W, because the logical order never changes.",
        wrong_end: "you began at the wrong end; the last letter of the order is the fastest axis.",
        Layout.dense(shape, "NCHW").strides: "these are the strides of NCHW; does the function use the order?",
    }
    if len(got) != 4:
        return f"{len(got)} numbers; there are four axes."
    return known.get(got, "look at the fastest axis first, and at what each slower one must step over.")


def check_offset_of(offset_of: Function) -> None:
    """1.2: offset + sum of index times stride, with negative and zero strides."""
    draw = random.Random(12)
    for layout in _layouts(draw):
        index = tuple(draw.randrange(length) for length in layout.shape)
        call = f"offset_of({index}, {layout.strides}, {layout.offset})"
        got = whole(offset_of(index, layout.strides, layout.offset), call)
        if got != layout.offset_of(*index):
            raise CheckFailed(f"{call} gave {got}: {_why_offset(got, index, layout)}")


def _layouts(draw: random.Random) -> Iterable[Layout]:
    """Dense ones, then with an offset, flipped ones, a broadcast."""
    for shape in _SHAPES:
        yield Layout.dense(shape, draw.choice(("NCHW", "NHWC", "CHWN")))
    for axis in "NCHW":
        yield Layout.dense((4, 5, 6, 7), "NHWC").slice(axis, 1, None, 1)
        yield Layout.dense((4, 5, 6, 7), "NCHW").slice(axis, None, None, -2)
    yield Layout.dense((1, 4, 1, 1)).broadcast((3, 4, 5, 6))


def _why_offset(got: int, index: tuple[int, ...], layout: Layout) -> str:
    right = layout.offset_of(*index)
    moves = [i * s for i, s in zip(index, layout.strides, strict=True)]
    known = {
        layout.offset + sum(abs(move) for move in moves): "a negative stride goes down; do not lose its sign.",
        layout.offset + sum(i * s for i, s in zip(index, layout.strides[::-1], strict=True)): "each index belongs to "
        "the stride at the same place.",
        4 * right: "these are bytes; an offset counts elements.",
        right - layout.offset: "where does element (0, 0, 0, 0) lie? Look at the third argument.",
    }
    return known.get(got, "multiply each index by the stride of its own axis and add up, from the first element on.")


def check_can_flatten(can_flatten: Function) -> None:
    """1.3: whether the elements, in logical order, lie one constant step apart."""
    for shape, strides, hint in _FLATTEN:
        call = f"can_flatten({shape}, {strides})"
        got, expected = truth(can_flatten(shape, strides), call), _one_step(shape, strides)
        if got != expected:
            raise CheckFailed(f"{call} gave {got}: {hint}")


_LENGTH_1 = "an axis of length 1 never moves; its stride says nothing."
_CONTINUES = "each axis must step exactly over all that the next faster one walks through."
_CONSTANT = "the elements need not be neighbours; one constant step is enough for a view."
_FLATTEN: tuple[tuple[tuple[int, ...], tuple[int, ...], str], ...] = (
    ((2, 3, 4), (12, 4, 1), "nothing is in the way here; this is the plain dense layout."),
    ((2, 3, 4), (1, 2, 6), f"in logical order the last axis is walked first; {_CONTINUES}"),
    ((4, 4), (1, 4), f"this is a transposed matrix; {_CONTINUES}"),
    ((2, 3, 4), (24, 8, 2), _CONSTANT),
    ((3, 4), (-4, -1), f"both axes run backwards; {_CONSTANT}"),
    ((3, 4), (-4, 1), "one axis runs backwards and the other forwards; is the step constant?"),
    ((3, 4), (8, 1), f"there is a gap behind each row; {_CONTINUES}"),
    ((3, 4), (0, 1), "the same row is shown three times; is the step constant?"),
    ((3, 1, 4), (4, 999, 1), _LENGTH_1),
    ((1, 5), (0, 1), _LENGTH_1),
    ((5, 1), (1, 77), _LENGTH_1),
    ((5, 1), (3, 1), f"{_LENGTH_1} And {_CONSTANT}"),
    ((2, 1, 3), (4, 3, 1), f"{_LENGTH_1} Leave it out and look at the two that stay."),
    ((1, 1), (7, 7), "a single element is always one run."),
)


def _one_step(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    offsets = Layout(tuple("ABC"[: len(shape)]), shape, strides).offsets().ravel().tolist()
    return len({after - before for before, after in pairwise(offsets)}) <= 1


def check_lines_touched(lines_touched: Function) -> None:
    """1.4: number of different lines that hold the elements at some offsets."""
    draw = random.Random(14)
    for itemsize, line_bytes in ((4, 64), (2, 64), (4, 128), (8, 32), (1, 64), (4, 4)):
        for offsets in _offset_lists(draw):
            call = f"lines_touched({_short(offsets)}, {itemsize}, {line_bytes})"
            got = whole(lines_touched(list(offsets), itemsize, line_bytes), call)
            if got != len({offset * itemsize // line_bytes for offset in offsets}):
                raise CheckFailed(f"{call} gave {got}: {_why_lines(got, offsets, itemsize, line_bytes)}")


def _offset_lists(draw: random.Random) -> Iterable[list[int]]:
    nhwc, nchw = Layout.dense((1, 3, 4, 16), "NHWC"), Layout.dense((1, 3, 4, 16), "NCHW")
    yield [0, 16, 32, 160, 161]  # every known slip counts another number here
    yield nhwc.offsets()[0, :, 0, 5].tolist()  # one pixel across a border
    yield nchw.offsets()[0, :, 1, 2].tolist()
    yield nhwc.offsets()[0, 0, 2, :].tolist()
    yield [7, 7, 7]
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


def check_straddling_pixels(straddling_pixels: Function) -> None:
    """1.5: numbers of the NHWC pixels whose first and last byte lie in different lines."""
    for pixels, channels, itemsize, line_bytes, base in (
        (16, 3, 4, 64, 0), (64, 4, 4, 64, 0), (40, 3, 2, 64, 0), (30, 5, 4, 32, 0), (25, 12, 4, 64, 0),
        (32, 4, 4, 64, 8), (16, 3, 4, 64, 20), (20, 1, 4, 64, 4), (6, 40, 4, 64, 0),
    ):  # fmt: skip
        call = f"straddling_pixels({pixels}, {channels}, {itemsize}, {line_bytes}, base={base})"
        result = straddling_pixels(pixels, channels, itemsize, line_bytes, base=base)
        if type(result) is int or isinstance(result, np.integer):
            raise CheckFailed(f"{call} gave a number; expected the list of pixel numbers, not how many there are.")
        got = wholes(result, call)
        nbytes = channels * itemsize
        if got != _crossing(pixels, nbytes, line_bytes, base):
            raise CheckFailed(f"{call} gave {list(got)}: {_why_pixels(got, pixels, nbytes, line_bytes, base)}")


def _crossing(pixels: int, nbytes: int, line_bytes: int, base: int, past: int = 0) -> tuple[int, ...]:
    """Byte by byte; with ``past`` the pixel seems longer than it is."""
    starts = [(pixel, base + pixel * nbytes) for pixel in range(pixels)]
    return tuple(p for p, first in starts if len({(first + b) // line_bytes for b in range(nbytes + past)}) > 1)


def _why_pixels(got: tuple[int, ...], pixels: int, nbytes: int, line_bytes: int, base: int) -> str:
    right = _crossing(pixels, nbytes, line_bytes, base)
    if base and got == _crossing(pixels, nbytes, line_bytes, 0):
        return "the image does not begin at byte 0 here; look at base."
    if got == ():
        return "none at all? Write down the first and the last byte of each pixel near a border."
    if got == _crossing(pixels, nbytes, line_bytes, base, past=1):
        return "a pixel that ends right at a border does not cross it; which is its last byte?"
    if got == tuple(pixel + 1 for pixel in right):
        return "pixels are counted from 0."
    if sorted(got) == list(right):
        return "the right pixels; list them in ascending order."
    return "in which line lies the first byte of a pixel, and in which its last one?"


def check_convert(convert: Function) -> None:
    """1.6: a flat storage in another order, and its price in the ledger."""
    for shape in _SHAPES[:2]:  # the others lie alike in several orders
        for source, target in (("NCHW", "NHWC"), ("NHWC", "NCHW"), ("CHWN", "NHWC")):
            for dtype in (np.float32, np.float16):
                _check_conversion(convert, shape, source, target, np.dtype(dtype))


def _check_conversion(
    convert: Function, shape: tuple[int, ...], source: str, target: str, dtype: np.dtype[Any]
) -> None:
    call = f'convert(storage, {shape}, "{source}", "{target}", ledger)'
    values = np.arange(1, prod(shape) + 1, dtype=dtype).reshape(shape)
    storage, ledger = _stored(values, source), Ledger()
    before = storage.copy()
    got = flat_array(convert(storage, shape, source, target, ledger), storage.size, call)
    if not np.array_equal(storage, before):
        raise CheckFailed(f"{call} changed the storage it was given; write into a new array.")
    expected = _stored(values, target)
    if not np.array_equal(got, expected):
        raise CheckFailed(f"{call} gave {_why_values(got, before, values, source, target)}")
    _check_price(ledger, values.size, values.nbytes, f"{call} with {dtype} elements")


def _stored(values: np.ndarray[Any, Any], order: str) -> np.ndarray[Any, Any]:
    storage = np.empty(values.size, values.dtype)
    storage[Layout.dense(values.shape, order).offsets()] = values
    return storage


def _why_values(got: Any, before: Any, values: Any, source: str, target: str) -> str:
    if np.array_equal(got, before):
        return "the elements where they were; a new order moves them."
    backwards = np.empty_like(before)
    shape = values.shape
    backwards[Layout.dense(shape, source).offsets()] = before[Layout.dense(shape, target).offsets()]
    if np.array_equal(got, backwards):
        return "a storage converted the other way round; read at the offset of source, write at that of target."
    if sorted(got.tolist()) != sorted(before.tolist()):
        return "other values than it was given; each element is read once and written once."
    return "the elements in another order; where does (n, c, h, w) lie in the source, and where in the target?"


def _check_price(ledger: Ledger, size: int, nbytes: int, call: str) -> None:
    read, written = ledger.traffic.read_bytes, ledger.traffic.write_bytes
    if (read, written) == (nbytes, nbytes):
        return
    counted = f"{call} moved the elements, and the ledger says {read} bytes read, {written} written:"
    if (read, written) == (0, 0):
        raise CheckFailed(f"{counted} nothing was recorded.")
    if (read, written) == (size, size):
        raise CheckFailed(f"{counted} that is the number of elements; how many bytes has each?")
    if 0 in (read, written):
        raise CheckFailed(f"{counted} a copy reads and writes; one direction is missing.")
    raise CheckFailed(f"{counted} every element is read once and written once, in its own type.")


def _short(numbers: list[int]) -> str:
    return str(numbers) if len(numbers) <= 16 else f"[{', '.join(map(str, numbers[:4]))}, ... {len(numbers)} offsets]"


PARTS = {
    "1.1": Part("strides of a memory order", 2, "strides", check_strides),
    "1.2": Part("offset of an element", 1, "offset_of", check_offset_of),
    "1.3": Part("view or copy", 2, "can_flatten", check_can_flatten),
    "1.4": Part("lines touched", 2, "lines_touched", check_lines_touched),
    "1.5": Part("pixels across a line border", 2, "straddling_pixels", check_straddling_pixels),
    "1.6": Part("price of a layout transform", 3, "convert", check_convert),
}
