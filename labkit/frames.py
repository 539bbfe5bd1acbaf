"""The space that the operators of one kernel share: its axes become loops, and tensors lie along some of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np

from labkit.access import Axis, Operand
from labkit.graph import Node, Value, itemsize

Extents: TypeAlias = tuple[int, ...]

# Inputs that lie along the channels (axis 1) although they have one axis only, by operator and position.
_ALONG_CHANNELS = {"BatchNormalization": (1, 2, 3, 4), "InstanceNormalization": (1, 2), "Conv": (2,)}


class Unfit(Exception):
    """A tensor that does not lie along the axes of a frame."""


@dataclass(frozen=True)
class Place:
    """Where a tensor lies: the axis of the frame for each of its own axes, and its extents along them."""

    axes: tuple[int, ...]
    extents: Extents


@dataclass(frozen=True)
class Frame:
    """Extents of the axes, and the loops at each: several when an axis is cut up (channels into groups), none when it
    has one element, when the loop of an axis before it runs over both, or when it is one of the ``rows``, which are
    never cut."""

    extents: Extents
    places: tuple[tuple[str, ...], ...]
    loops: Mapping[str, int]
    rows: frozenset[int] = frozenset()

    @property
    def points(self) -> int:
        """Elements of the frame, or rows when it has any."""
        return prod(extent for axis, extent in enumerate(self.extents) if axis not in self.rows)

    def loops_of(self, place: Place) -> tuple[str, ...]:
        """The loops that select an element of a tensor, in the order of its axes."""
        along = (axis for axis, n in zip(place.axes, place.extents, strict=True) if n > 1 and axis >= 0)
        return tuple(loop for axis in along for loop in self.places[axis])

    def width(self, place: Place) -> int:
        """Elements of a tensor that lie in one row."""
        return prod(extent for a, extent in zip(place.axes, place.extents, strict=True) if a < 0 or a in self.rows)

    def is_full(self, place: Place) -> bool:
        """Whether every loop selects another element, or another row, of a tensor."""
        return {*self.loops} <= {*self.loops_of(place)}

    def operand(self, name: str, place: Place, dtype: str) -> Operand:
        """A tensor as an operand over the loops."""
        axes = tuple(Axis(((loop, 1),), self.loops[loop]) for loop in self.loops_of(place))
        return Operand(name, axes, numpy_type(dtype), self.width(place))


def merged(extents: Extents, names: Sequence[str], used: Iterable[frozenset[int]], rows: frozenset[int]) -> Frame:
    """A frame with one loop for neighbouring axes that all tensors use alike; ``used`` are the axes of each tensor.

    >>> merged((1, 64, 56, 56), "nchw", [frozenset({1})], frozenset()).loops
    {'c': 64, 'hw': 3136}
    """
    used = list(used)
    groups: list[list[int]] = []
    signature: tuple[bool, ...] | None = None
    for axis, extent in enumerate(extents):
        if axis in rows:
            signature = None
        elif extent > 1:
            before, signature = signature, tuple(axis in axes for axes in used)
            groups = [*groups[:-1], [*groups[-1], axis]] if signature == before else [*groups, [axis]]
    loops = {"".join(names[axis] for axis in group): prod(extents[axis] for axis in group) for group in groups}
    first = {group[0]: loop for group, loop in zip(groups, loops, strict=True)}
    places = tuple((first[axis],) if axis in first else () for axis in range(len(extents)))
    return Frame(extents, places, loops, rows)


def place(node: Node, value: Value, extents: Extents) -> Place:
    """Where a tensor that a node reads or writes lies in a frame: broadcasting counts axes from the last one.

    Raises Unfit for one that is longer than the frame along some axis.
    """
    own = dims(value)
    position = next((i for i, read in enumerate(node.inputs) if read is not None and read.name == value.name), -1)
    if node.op.startswith("Reduce") and position > 0:  # the axes: they say what to do and are read whole
        return Place((-1,) * len(own), own)
    if position in _ALONG_CHANNELS.get(node.op, ()) and len(own) == 1:
        axes: tuple[int, ...] = (1 + len(extents) - len(dims(node.uses[0])),)
    else:
        axes = tuple(range(len(extents) - len(own), len(extents)))
        while axes and axes[0] < 0 and own[0] == 1:
            axes, own = axes[1:], own[1:]
    along = dict(enumerate(extents))
    if any(axis not in along or extent not in (1, along[axis]) for axis, extent in zip(axes, own, strict=True)):
        raise Unfit(f"{value} does not lie in {'×'.join(map(str, extents))}")
    return Place(axes, own)


def dims(value: Value | None) -> Extents:
    """The shape of a tensor; a dim that is no number counts as 1, and a shape that is not known has no axes."""
    return tuple(dim if isinstance(dim, int) else 1 for dim in (value.shape if value else None) or ())


def element_bytes(value: Value) -> int:
    """Bytes of one element."""
    return itemsize(value.type.dtype) if value.type else 0


def numpy_type(dtype: str) -> str:
    """NumPy's name of an element type, or of plain bytes of its size."""
    try:
        return np.dtype(dtype).name if dtype != "string" else "int8"
    except TypeError:
        return f"V{itemsize(dtype)}"
