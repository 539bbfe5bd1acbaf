"""Exercise 01, layouts. Each check compares with labkit or with brute force, and where the answer is wrong in a known
way it says what to look at (never the answer)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import prod
from random import Random
from typing import Any

import numpy as np

from labkit.course.checking import CheckFailed, Function, Part
from labkit.course.checks.ex01_lines import check_choose_order, check_lines_touched, check_straddling_pixels
from labkit.course.checks.plain import flat_array, truth, whole, wholes
from labkit.layout import Layout
from labkit.memory.ledger import Ledger

Shape = tuple[int, ...]
_OWN_LAYOUT = ("labkit.layout", "labkit.strides", "labkit.tensor")


def _shapes(draw: Random) -> list[Shape]:
    """Two of four different lengths, which every mix-up changes, and two with axes of length 1."""
    longer = [tuple(draw.sample(range(2, 8), 4)) for _ in range(3)]
    return [*longer[:2], (1, *longer[2][:3]), (*longer[2][:2], 1, 1)]


def check_strides(strides: Function, draw: Random) -> None:
    """1.1: four strides, listed as N, C, H, W whatever the memory order."""
    for shape in _shapes(draw):
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
    swapped = "the right numbers, some of them swapped; " if sorted(got) == sorted(layout.strides) else ""
    return known.get(got, f"{swapped}look at the fastest axis first, and at what each slower one must step over.")


def check_offset_of(offset_of: Function, draw: Random) -> None:
    """1.2: offset + sum of index times stride, with negative and zero strides."""
    for layout in _layouts(draw):
        index = tuple(draw.randrange(min(1, length - 1), length) for length in layout.shape)
        call = f"offset_of({index}, {layout.strides}, {layout.offset})"
        got = whole(offset_of(index, layout.strides, layout.offset), call)
        if got != layout.offset_of(*index):
            raise CheckFailed(f"{call} gave {got}: {_why_offset(got, index, layout)}")


def _layouts(draw: Random) -> Iterable[Layout]:
    """Dense ones, then with an offset, flipped ones, a broadcast."""
    for shape in _shapes(draw):
        yield Layout.dense(shape, draw.choice(("NCHW", "NHWC", "CHWN")))
    shape = tuple(draw.sample(range(4, 9), 4))
    for axis in "NCHW":
        yield Layout.dense(shape, "NHWC").slice(axis, 1, None, 1)
        yield Layout.dense(shape, "NCHW").slice(axis, None, None, -2)
    yield Layout.dense((1, shape[1], 1, 1)).broadcast(shape)


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


def check_can_flatten(can_flatten: Function, draw: Random) -> None:
    """1.3: whether the elements, in logical order, lie one constant step apart."""
    for shape, strides, hint in _flatten_cases(*draw.sample(range(2, 7), 3)):
        call = f"can_flatten({shape}, {strides})"
        got, expected = truth(can_flatten(shape, strides), call), _one_step(shape, strides)
        if got != expected:
            raise CheckFailed(f"{call} gave {got}: {hint}")


_LENGTH_1 = "an axis of length 1 never moves; its stride says nothing."
_CONTINUES = "each axis must step exactly over all that the next faster one walks through."
_CONSTANT = "the elements need not be neighbours; one constant step is enough for a view."


def _flatten_cases(a: int, b: int, c: int) -> Iterable[tuple[Shape, Shape, str]]:
    return (
        ((a, b, c), (b * c, c, 1), "nothing is in the way here; this is the plain dense layout."),
        ((a, b, c), (1, a, a * b), f"in logical order the last axis is walked first; {_CONTINUES}"),
        ((b, b), (1, b), f"this is a transposed matrix; {_CONTINUES}"),
        ((a, b, c), (2 * b * c, 2 * c, 2), _CONSTANT),
        ((b, c), (-c, -1), f"both axes run backwards; {_CONSTANT}"),
        ((b, c), (-c, 1), "one axis runs backwards and the other forwards; is the step constant?"),
        ((b, c), (2 * c, 1), f"there is a gap behind each row; {_CONTINUES}"),
        ((b, c), (0, 1), "the same row is shown again and again; is the step constant?"),
        ((b, 1, c), (c, 999, 1), _LENGTH_1),
        ((1, c), (0, 1), _LENGTH_1),
        ((c, 1), (1, 77), _LENGTH_1),
        ((c, 1), (3, 1), f"{_LENGTH_1} And {_CONSTANT}"),
        ((a, 1, c), (c + 1, c, 1), f"{_LENGTH_1} Leave it out and look at the two that stay."),
        ((1, 1), (7, 7), "a single element is always one run."),
    )


def _one_step(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    offsets = Layout(tuple("ABC"[: len(shape)]), shape, strides).offsets().ravel().tolist()
    return len({after - before for before, after in pairwise(offsets)}) <= 1


def check_convert(convert: Function, draw: Random) -> None:
    """1.6: a flat storage in another order, and its price in the ledger."""
    for shape in _shapes(draw)[:2]:  # the others lie alike in several orders
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
        return "a storage converted the other way round; at the offset in which order is read, and in which is written?"
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


PARTS = {
    "1.1": Part("strides of a memory order", 2, "strides", check_strides, _OWN_LAYOUT),
    "1.2": Part("offset of an element", 1, "offset_of", check_offset_of),
    "1.3": Part("view or copy", 2, "can_flatten", check_can_flatten),
    "1.4": Part("lines touched", 2, "lines_touched", check_lines_touched),
    "1.5": Part("pixels across a line border", 2, "straddling_pixels", check_straddling_pixels),
    "1.6": Part("price of a layout transform", 3, "convert", check_convert),
    "1.7": Part("choose a layout", 2, "choose_order", check_choose_order),
}
