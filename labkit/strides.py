"""Arithmetic of shapes and strides: plain tuples of integers in elements, no names and no data."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabError

INT64_MAX = 2**63 - 1
Ints = tuple[int, ...]


def integers(what: str, values: Iterable[int]) -> Ints:
    """The values as plain ints; LabError for anything that is no whole number."""
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError:
        raise LabError(f"{what} {values!r}: write whole numbers") from None


def packed(shape: Ints) -> Ints:
    """Strides of a shape without gaps, last axis fastest; an axis of length 0 counts as 1.

    >>> packed((2, 3, 4, 4)), packed((2, 0, 3))
    ((48, 16, 4, 1), (3, 3, 1))
    """
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def moving(shape: Ints, strides: Ints) -> list[tuple[int, int]]:
    """(|stride|, length) of the axes longer than 1, fastest first: the others move nothing, whatever their stride."""
    return sorted((abs(stride), length) for length, stride in zip(shape, strides, strict=True) if length > 1)


def reach(shape: Ints, strides: Ints) -> tuple[int, int]:
    """How far below and above its offset a layout goes, in elements."""
    ends = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True) if length > 1]
    return sum(end for end in ends if end < 0), sum(end for end in ends if end > 0)


def never_meet(shape: Ints, strides: Ints) -> bool:
    """Whether each axis steps over all that the faster ones cover, so that no offset can come twice."""
    covered = 0
    for stride, length in moving(shape, strides):
        if stride <= covered:
            return False
        covered += (length - 1) * stride
    return True


def runs(shape: Ints, strides: Ints) -> list[tuple[int, int]]:
    """(count, stride) of the fewest loops that walk the elements in the given order of axes, slowest first.

    >>> runs((10, 1, 10), (10, 7, 1))
    [(100, 1)]
    """
    merged: list[tuple[int, int]] = []
    for length, stride in zip(shape, strides, strict=True):
        if length == 1:
            continue
        if merged and merged[-1][1] == stride * length:
            merged[-1] = (merged[-1][0] * length, stride)
        else:
            merged.append((length, stride))
    return merged


def reshaped(shape: Ints, strides: Ints, wanted: Ints) -> Ints | None:
    """Strides that show the same elements, in the same order, under another shape; None when only a copy can.

    Both shapes have the same number of elements, at least one.

    >>> reshaped((4, 3), (3, 1), (2, 6)), reshaped((4, 3), (1, 4), (2, 6))
    ((6, 1), None)
    """
    left, found = runs(shape, strides), []
    for length in reversed(wanted):
        count, stride = left[-1] if left else (1, 1)
        if count % length:
            return None
        found.append(stride)
        if length > 1:
            left[-1] = (count // length, stride * length)
        if left and left[-1][0] == 1:
            left.pop()
    return tuple(reversed(found))


def all_offsets(shape: Ints, strides: Ints, offset: int) -> NDArray[np.int64]:
    """Offsets of all elements: int64, in the given shape."""
    if 0 in shape:
        return np.empty(shape, dtype=np.int64)
    found = np.full((1,) * len(shape), offset, dtype=np.int64)
    for position, (length, stride) in enumerate(zip(shape, strides, strict=True)):
        if length > 1:
            steps = np.arange(length, dtype=np.int64) * stride
            found = found + steps.reshape([-1 if p == position else 1 for p in range(len(shape))])
    return found


def check_64_bit(shape: Ints, strides: Ints, offset: int, size: int) -> None:
    """LabError when the size or any offset needs more than a signed 64-bit integer. An empty layout has no offsets."""
    below, above = reach(shape, strides) if size else (0, 0)
    numbers: Sequence[int] = (size, offset, below, above, offset + below, offset + above)
    if max(map(abs, numbers)) > INT64_MAX:
        raise LabError(
            f"shape {shape} with strides {strides} does not fit 64 bit: size and offsets must stay within {INT64_MAX}"
        )
