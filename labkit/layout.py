"""Layout: where each element of a tensor lies in a flat memory (spec sections 1 and 2). No data, no bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from labkit import strides as arithmetic
from labkit.axes import NAMED_ORDERS, checked_axes, logical_axes, parse_order
from labkit.errors import LabError


@dataclass(frozen=True)
class Layout:
    """Axis names, shape, strides and offset, all in elements: index (i, j, ...) lies at offset + i*s0 + j*s1 + ...

    ``axes`` is the logical order and stays fixed; how the axes lie in memory follows from the strides (``order``).
    An axis name is one letter; a lower-case one is the inner part of the axis with the same upper-case letter.
    The stride of an axis of length 0 or 1 never moves anything, so no method looks at it.

    Raises LabError for ranks that differ, names given twice, negative lengths, anything but integers, and for a
    size or an offset that does not fit 64 bit.

    >>> Layout.dense((2, 3, 4, 4), "NHWC")
    Layout(axes=('N', 'C', 'H', 'W'), shape=(2, 3, 4, 4), strides=(48, 1, 12, 3), offset=0)
    """

    axes: tuple[str, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", checked_axes(self.axes))
        object.__setattr__(self, "shape", arithmetic.integers("shape", self.shape))
        object.__setattr__(self, "strides", arithmetic.integers("strides", self.strides))
        object.__setattr__(self, "offset", *arithmetic.integers("offset", (self.offset,)))
        if not len(self.axes) == len(self.shape) == len(self.strides):
            raise LabError(
                f"{len(self.axes)} axes {self.axes}, {len(self.shape)} lengths {self.shape} and {len(self.strides)} "
                f"strides {self.strides}: a layout needs one of each for every axis"
            )
        for axis, length in zip(self.axes, self.shape, strict=True):
            if length < 0:
                raise LabError(f"axis {axis} has length {length}: a length is 0 or more")
        arithmetic.check_64_bit(self.shape, self.strides, self.offset, self.size)

    @classmethod
    def dense(cls, shape: Sequence[int], order: str = "NCHW", axes: Iterable[str] | None = None) -> Layout:
        """A layout without gaps. ``shape`` is always the logical one, ``order`` says how it lies in memory.

        Logical axes are NCHW for any order of these letters, OIHW for weights, otherwise ``order`` itself unless
        ``axes`` says so. "NCHW8c" splits C by 8; LabError when C is no multiple of 8. An axis of length 0 counts
        as 1 in the strides of the others.

        >>> Layout.dense((1, 16, 2, 2), "NCHW8c").order, Layout.dense((2, 3), "NM", axes="MN").strides
        ('NCHW8c', (1, 2))
        """
        memory, blocks = parse_order(order)
        logical = tuple(axes) if axes is not None else logical_axes(memory)
        if sorted(logical) != sorted(set(memory) - set(blocks)):
            raise LabError(f"order {order!r} and axes {''.join(logical)!r} do not name the same axes")
        if len(shape) != len(logical):
            raise LabError(
                f"shape {tuple(shape)} has {len(shape)} lengths, order {order!r} needs {len(logical)}: "
                f"one for each of {', '.join(logical)}"
            )
        lengths = arithmetic.integers("shape", shape)
        layout = cls(logical, lengths, arithmetic.packed(lengths))
        for inner, block in blocks.items():
            layout = layout.split(inner.upper(), block)
        stride = dict(zip(memory, arithmetic.packed(layout.permute(memory).shape), strict=True))
        return cls(layout.axes, layout.shape, tuple(stride[axis] for axis in layout.axes))

    # ---- what it is

    def length(self, axis: str) -> int:
        """Number of elements along one axis."""
        return self.shape[self._position(axis)]

    def stride(self, axis: str) -> int:
        """Elements to skip for one step along an axis."""
        return self.strides[self._position(axis)]

    @property
    def size(self) -> int:
        """Number of logical elements."""
        return prod(self.shape)

    @property
    def order(self) -> str:
        """Axes from the slowest to the fastest in memory, such as "NHWC" or "NCHW8c".

        An axis of length 1 has no place of its own and stays behind its logical neighbour (see ``orders``).
        """
        names = self.memory_axes
        return "".join(axis if axis.isupper() else f"{self.length(axis)}{axis}" for axis in names)

    @property
    def memory_axes(self) -> tuple[str, ...]:
        """The axis names behind ``order``, from slow to fast."""
        if self.size == 0:
            return self.axes
        sorted_axes = sorted(self.axes, key=lambda axis: -abs(self.stride(axis)) if self.length(axis) > 1 else 0)
        found = [axis for axis in sorted_axes if self.length(axis) > 1]
        for position, axis in enumerate(self.axes):
            if self.length(axis) == 1:
                found.insert(found.index(self.axes[position - 1]) + 1 if position else 0, axis)
        return tuple(found)

    def orders(self, candidates: Iterable[str] = NAMED_ORDERS) -> tuple[str, ...]:
        """Those of the named orders that this layout satisfies: more than one when axes have length 1 or 0.

        >>> Layout.dense((2, 4, 1, 1), "NCHW").orders()
        ('NCHW', 'NHWC')
        """
        return tuple(order for order in candidates if self.satisfies(order))

    def satisfies(self, order: str) -> bool:
        """Whether the elements, walked in this memory order, are neighbours without a gap."""
        memory, blocks = parse_order(order)
        same = sorted(memory) == sorted(self.axes) and all(self.length(axis) == n for axis, n in blocks.items())
        return same and self.permute(memory).is_contiguous

    @property
    def is_contiguous(self) -> bool:
        """Whether a walk in logical order visits neighbour after neighbour. True for an empty layout."""
        return self.size == 0 or self.runs() in ((), ((self.size, 1),))

    @property
    def is_dense(self) -> bool:
        """Whether the layout covers every offset of its range exactly once, in any order. True for an empty layout."""
        below, above = arithmetic.reach(self.shape, self.strides)
        return self.size == 0 or (above - below + 1 == self.size and arithmetic.never_meet(self.shape, self.strides))

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Lowest and highest offset touched; None for an empty layout, which touches nothing."""
        below, above = arithmetic.reach(self.shape, self.strides)
        return (self.offset + below, self.offset + above) if self.size else None

    @property
    def distinct(self) -> int:
        """Number of different offsets touched: less than ``size`` when an axis has stride 0 or axes overlap."""
        kept = [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if s != 0 or n == 0]
        shape, strides = tuple(n for n, _ in kept), tuple(s for _, s in kept)
        if arithmetic.never_meet(shape, strides):
            return prod(shape)
        return int(np.unique(arithmetic.all_offsets(shape, strides, 0)).size)

    def runs(self) -> tuple[tuple[int, int], ...]:
        """(count, stride) of the fewest loops that walk the layout in logical order, slowest first."""
        return tuple(arithmetic.runs(self.shape, self.strides))

    # ---- where elements lie

    def offset_of(self, *index: int) -> int:
        """Offset of one element. LabError for a wrong number of indices or one outside its axis.

        >>> Layout.dense((2, 3, 4, 4)).offset_of(1, 2, 3, 0)
        92
        """
        if len(index) != len(self.axes):
            raise LabError(f"{len(index)} indices {index} for the {len(self.axes)} axes {', '.join(self.axes)}")
        position = arithmetic.integers("index", index)
        for axis, i, length in zip(self.axes, position, self.shape, strict=True):
            if not 0 <= i < length:
                raise LabError(f"index {i} is outside axis {axis} of length {length}: count from 0, below the length")
        return self.offset + sum(i * s for i, s in zip(position, self.strides, strict=True))

    def offsets(self) -> NDArray[np.int64]:
        """Offsets of all elements: int64, in the shape of the layout."""
        return arithmetic.all_offsets(self.shape, self.strides, self.offset)

    # ---- views: new layouts over the same memory

    def permute(self, axes: Iterable[str]) -> Layout:
        """The same elements with the axes named in another logical order; nothing moves in memory."""
        wanted = tuple(axes)
        if sorted(wanted) != sorted(self.axes):
            raise LabError(f"permute to {', '.join(wanted)}: the axes are {', '.join(self.axes)}, each named once")
        return Layout(wanted, tuple(map(self.length, wanted)), tuple(map(self.stride, wanted)), self.offset)

    def slice(self, axis: str, start: int | None = None, stop: int | None = None, step: int | None = None) -> Layout:
        """Elements start, start+step, ... before stop along one axis, with NumPy's meaning of every argument.

        >>> Layout.dense((1, 1, 1, 5)).slice("W", None, None, -2)
        Layout(axes=('N', 'C', 'H', 'W'), shape=(1, 1, 1, 3), strides=(5, 5, 5, -2), offset=4)
        """
        arithmetic.integers("slice", [number for number in (start, stop, step) if number is not None])
        if step == 0:
            raise LabError(f"slice of axis {axis} with step 0: a step is a positive or a negative number")
        picked = range(*slice(start, stop, step).indices(self.length(axis)))
        move = picked.start * self.stride(axis) if picked and self.length(axis) > 1 else 0
        stride = self.stride(axis) * (picked.step if len(picked) > 1 else 1)
        return replace(self._with(axis, len(picked), stride), offset=self.offset + move)

    def broadcast(self, shape: Sequence[int]) -> Layout:
        """Axes of length 1 stretched to ``shape`` with stride 0: more elements, no more memory."""
        if len(shape) != len(self.shape):
            raise LabError(f"broadcast to {tuple(shape)}: the layout has {len(self.shape)} axes {', '.join(self.axes)}")
        layout = self
        for axis, length, wanted in zip(self.axes, self.shape, shape, strict=True):
            if length not in (1, wanted):
                raise LabError(f"axis {axis} has length {length}, only length 1 can become {wanted}")
            layout = layout._with(axis, wanted, self.stride(axis) if length == wanted else 0)
        return layout

    def split(self, axis: str, block: int) -> Layout:
        """Axis "C" of length n becomes "C" of length n/block and, behind it, "c" of length block.

        LabError when block does not divide the length: the message says to what length the axis must be padded.
        """
        at, length, stride = self._position(axis), self.length(axis), self.stride(axis)
        if not axis.isupper() or axis.lower() in self.axes:
            raise LabError(f"axis {axis} cannot be split: {', '.join(self.axes)} already has its inner part")
        if block < 1:
            raise LabError(f"axis {axis} split by {block}: a block has 1 element or more")
        if length % block:
            padded = -(-length // block) * block
            raise LabError(f"axis {axis} has length {length}, no multiple of the block {block}: pad it to {padded}")
        axes = (*self.axes[: at + 1], axis.lower(), *self.axes[at + 1 :])
        shape = (*self.shape[:at], length // block, block, *self.shape[at + 1 :])
        strides = (*self.strides[:at], stride * block, stride, *self.strides[at + 1 :])
        return Layout(axes, shape, strides, self.offset)

    def reshape(self, shape: Sequence[int], axes: Iterable[str]) -> Layout:
        """The same elements in the same logical order under another shape, as a view.

        LabError when the sizes differ, or when no strides can express it (then only a copy can).
        """
        names, lengths = tuple(axes), arithmetic.integers("shape", shape)
        if prod(lengths) != self.size:
            raise LabError(f"reshape of {self.shape} to {lengths}: {self.size} elements cannot become {prod(lengths)}")
        if self.size == 0:
            return Layout(names, lengths, arithmetic.packed(lengths), self.offset)
        strides = arithmetic.reshaped(self.shape, self.strides, lengths)
        if strides is None:
            raise LabError(f"reshape of {self.shape} to {lengths} is no view of strides {self.strides}: copy first")
        return Layout(names, lengths, strides, self.offset)

    # ---- splits undone

    @property
    def logical_axes(self) -> tuple[str, ...]:
        """The axes with every split undone: N, C, H, W for NCHW8c too."""
        return tuple(axis for axis in self.axes if axis.isupper())

    @property
    def logical_shape(self) -> tuple[int, ...]:
        """The lengths with every split undone."""
        return tuple(
            prod(n for a, n in zip(self.axes, self.shape, strict=True) if a.upper() == axis)
            for axis in self.logical_axes
        )

    def joined(self) -> Layout:
        """The layout with each inner axis right behind its outer one, so that a reshape undoes the splits."""
        return self.permute(a for outer in self.logical_axes for a in (outer, outer.lower()) if a in self.axes)

    # ---- helpers

    def _position(self, axis: str) -> int:
        if axis not in self.axes:
            raise LabError(f"no axis {axis!r}: the axes are {', '.join(self.axes)}")
        return self.axes.index(axis)

    def _with(self, axis: str, length: int, stride: int) -> Layout:
        at = self._position(axis)
        shape, strides = list(self.shape), list(self.strides)
        shape[at], strides[at] = length, stride
        return replace(self, shape=tuple(shape), strides=tuple(strides))
