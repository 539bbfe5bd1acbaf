"""The order of axes that a machine prefers, as transforms of the graph's NCHW tensors: there, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from labkit.axes import parse_order
from labkit.errors import LabError
from labkit.graph import Dim, Node, Shape, TensorType, Value
from labkit.passes.reshaping import long_axes
from labkit.passes.transposes import Perm

FILE = "NCHW"  # what ONNX's operators on images expect


@dataclass(frozen=True)
class Order:
    """A memory order such as NHWC or NCHW8c. In it a graph holds the permuted tensor itself: 1×56×56×64 for NHWC,
    1×8×56×56×8 for NCHW8c. ``block`` is 1 where channels are not split.

    LabError for an order of other axes than N, C, H and W, and for blocks of other axes than C.

    >>> Order("NHWC").shape((1, 64, 56, 28)), Order("NCHW8c").shape((1, 64, 56, 28))
    ((1, 56, 28, 64), (1, 8, 56, 28, 8))
    """

    name: str

    def __post_init__(self) -> None:
        axes, blocks = parse_order(self.name)
        if sorted(set(axes) - set(blocks)) != sorted(FILE) or not set(blocks) <= {"c"}:
            raise LabError(f"layout {self.name!r} must order N, C, H and W, and may split C, like NHWC or NCHW8c")

    @cached_property
    def block(self) -> int:
        return parse_order(self.name)[1].get("c", 1)

    @cached_property
    def perm(self) -> Perm:
        """The axes, once C is split, as a Transpose to this order names them."""
        axes, _ = parse_order(self.name)
        split = [part for axis in FILE for part in (axis, axis.lower()) if part in axes]
        return tuple(split.index(axis) for axis in axes)

    @cached_property
    def back(self) -> Perm:
        return tuple(int(axis) for axis in np.argsort(self.perm))

    @property
    def is_file(self) -> bool:
        """Whether this is the order that the file has anyway."""
        return self.perm == tuple(range(len(self.perm))) and not self.split

    @property
    def split(self) -> bool:
        """Whether an axis more is needed."""
        return len(self.perm) > len(FILE)

    def why_not(self, value: Value | None) -> str:
        """Why a value cannot lie in this order; nothing when it can."""
        if self.is_file:
            return "it is the order of the file"
        shape = value.shape if value is not None else None
        if value is None or shape is None or value.type is None:
            return "its shape is not known"
        if len(shape) != len(FILE):
            return f"{value.name!r} has {len(shape)} axes; {self.name} orders {len(FILE)}"
        return self._unsplit(value.name, shape) if self.split else ""

    def _unsplit(self, name: str, shape: Shape) -> str:
        """Why the channels of a tensor cannot be split."""
        if unknown := [str(dim) for dim in shape[1:] if not isinstance(dim, int) or dim == 0]:
            return f"{name!r} has a size {unknown[0]}; {self.name} needs numbers above 0"
        rest = int(shape[1]) % self.block
        return f"{name!r} has {shape[1]} channels, no multiple of {self.block}" if rest else ""

    def moves(self, value: Value | None) -> bool:
        """Whether a value can lie in this order, and lies otherwise in it than in the file's: with one channel, or one
        pixel, it is the same bytes, and nobody has to transform it."""
        if self.why_not(value) or value is None:
            return False
        split = self._split(value.shape or ())
        long = [axis for axis in self.perm if axis in long_axes(split)]
        return long != sorted(long)

    def shape(self, shape: Shape) -> Shape:
        """The shape of the permuted tensor."""
        split = self._split(shape)
        return tuple(split[axis] for axis in self.perm)

    def kind(self, kind: TensorType) -> TensorType:
        """The type of the permuted tensor."""
        return replace(kind, shape=self.shape(kind.shape or ()))

    def _split(self, shape: Shape) -> tuple[Dim, ...]:
        if not self.split:
            return shape
        batch, channels, *image = shape
        return (batch, int(channels) // self.block, self.block, *image)

    def there(self, x: Value, y: Value, inside: str, target: Callable[[Shape], Value]) -> tuple[Node, ...]:
        """The operators that put ``x`` into this order, as ``y``. ``target`` gives what a Reshape to a shape reads,
        ``inside`` names the value between two operators."""
        if not self.split:
            return (Node("Transpose", (x,), (y,), {"perm": self.perm}),)
        middle = self._middle(x, inside)
        first = Node("Reshape", (x, target(middle.shape or ())), (middle,))
        return first, Node("Transpose", (middle,), (y,), {"perm": self.perm})

    def home(self, y: Value, x: Value, inside: str, target: Callable[[Shape], Value]) -> tuple[Node, ...]:
        """The operators that bring ``y`` from this order back to the file's, as ``x``."""
        if not self.split:
            return (Node("Transpose", (y,), (x,), {"perm": self.back}),)
        middle = self._middle(x, inside)
        first = Node("Transpose", (y,), (middle,), {"perm": self.back})
        return first, Node("Reshape", (middle, target(x.shape or ())), (x,))

    def _middle(self, x: Value, name: str) -> Value:
        return Value(name, TensorType(self._split(x.shape or ()), x.dtype or ""))
