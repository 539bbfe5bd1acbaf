"""Logical tensors into their memory order and back: preparing DRAM, which is not a kernel and costs nothing."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabError
from labkit.problems import block_of, memory_loops

Array = NDArray[Any]

_LOGICAL = ("n", "g", "c", "ci", "h", "w")


def arrange(x: Array, layout: str, groups: int = 1, *, by_group: bool = True) -> Array:
    """A tensor of logical shape (n, c, h, w), dense in its memory order, its axes as ``problems`` has them: C is
    (group, channel), with a block of channels apart. Without ``by_group`` there is no axis of groups.

    A length of 1 for C stays 1 throughout, so that what is broadcast logically is broadcast in memory.

    >>> arrange(np.zeros((1, 16, 2, 3)), "NCHW8c", groups=2).shape
    (1, 2, 1, 2, 3, 8)
    """
    n, c, h, w = x.shape
    block, parts = (1, 1) if c == 1 else (block_of(layout), groups)
    if c % (block * parts):
        raise LabError(f"layout {layout}: {c} channels do not fall into {parts} groups of whole blocks of {block}")
    split = x.reshape(n, parts, c // parts // block, block, h, w)
    loops = _axes(layout, by_group)
    spare = [loop for loop in _LOGICAL if loop not in loops]  # of length 1
    moved = split.transpose([_LOGICAL.index(loop) for loop in (*loops, *spare)])
    return np.ascontiguousarray(moved).reshape(moved.shape[: len(loops)])


def restore(x: Array, layout: str, *, by_group: bool = True) -> Array:
    """The logical (n, c, h, w) of what ``arrange`` made.

    >>> restore(arrange(np.zeros((1, 16, 2, 3)), "NCHW8c", 2), "NCHW8c").shape
    (1, 16, 2, 3)
    """
    loops = _axes(layout, by_group)
    spare = [loop for loop in _LOGICAL if loop not in loops]
    order = (*loops, *spare)
    full = x.reshape(*x.shape, *(1 for _ in spare)).transpose([order.index(loop) for loop in _LOGICAL])
    n, *channels, h, w = full.shape
    return np.ascontiguousarray(full).reshape(n, prod(channels), h, w)


def _axes(layout: str, by_group: bool) -> tuple[str, ...]:
    return tuple(loop for loop in memory_loops(layout, "c") if by_group or loop != "g")
