"""What a type inference rule is given, and the arithmetic on dims that the rules share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeAlias

from labkit.errors import GraphError
from labkit.graph import Array, Dim, Shape, TensorType, Value

Types: TypeAlias = tuple[TensorType, ...]


class Call(NamedTuple):
    """What a rule knows of a node: attributes, input types, how to look up the arrays of constant inputs, the opset,
    and ``key``, the name of its first output, from which the names of unknown dims are made."""

    attrs: Mapping[str, Any]
    types: tuple[TensorType | None, ...]
    inputs: tuple[Value | None, ...]
    array: Callable[[Value | None], Array | None]
    opset: int
    key: str

    def type(self, index: int = 0) -> TensorType:
        """Type of an input that must be there."""
        found = self.types[index] if index < len(self.types) else None
        if found is None:
            raise GraphError(f"input {index} is missing or is no tensor")
        return found

    def shape(self, index: int = 0) -> Shape | None:
        return self.type(index).shape

    def has(self, index: int) -> bool:
        return index < len(self.types) and self.types[index] is not None

    def constant(self, index: int) -> Array | None:
        return self.array(self.inputs[index]) if index < len(self.inputs) else None

    def unknown(self, rank: int | None) -> Shape | None:
        """A shape of this rank in which no dim is known."""
        return None if rank is None else tuple(f"?{self.key}.{axis}" for axis in range(rank))

    def ints(self, name: str, index: int, since: int) -> tuple[int, ...] | None:
        """Integers that are an attribute before opset ``since`` and an input from then on; None when not known."""
        if self.opset < since:
            value = self.attrs.get(name)
            return None if value is None else tuple(value)
        found = self.constant(index)
        return None if found is None else tuple(int(v) for v in found.ravel())


def full_pads(pads: Sequence[int], rank: int, axes: Sequence[int] | None) -> tuple[int, ...]:
    """What a Pad adds before every axis, then behind every axis; since opset 18 it may name only some.

    >>> full_pads((1, 2, 0, 3), 3, (-1, 0))
    (2, 0, 1, 3, 0, 0)
    """
    if axes is None:
        return tuple(pads)
    found = [0] * 2 * rank
    for place, axis in enumerate(axes):
        found[axis % rank], found[axis % rank + rank] = pads[place], pads[place + len(axes)]
    return tuple(found)


def broadcast_shapes(shapes: Sequence[Shape | None]) -> Shape | None:
    """The common shape, or None when a rank is unknown; GraphError names the axis that does not fit.

    >>> broadcast_shapes([("n", 3, 1), (1, 5)])
    ('n', 3, 5)
    """
    known = tuple(shape for shape in shapes if shape is not None)
    return _broadcast(known) if len(known) == len(shapes) else None


@lru_cache(maxsize=1024)  # the layers of a network repeat a few shapes
def _broadcast(shapes: tuple[Shape, ...]) -> Shape:
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(_broadcast_dim(axis, dims) for axis, dims in enumerate(zip(*padded, strict=True)))


def _broadcast_dim(axis: int, dims: tuple[Dim, ...]) -> Dim:
    different = [dim for dim in dict.fromkeys(dims) if dim != 1]
    numbers = [dim for dim in different if isinstance(dim, int)]
    if len(numbers) > 1:
        raise GraphError(f"axis {axis}: {' and '.join(map(str, numbers))} do not broadcast; equal sizes or 1 would")
    if numbers:
        return numbers[0]  # a symbol beside a number is that number or 1
    if len(different) > 1:
        return f"broadcast({','.join(sorted(map(str, different)))})"
    return different[0] if different else 1


def product(dims: Sequence[Dim]) -> Dim:
    """The product of some dims, an expression when symbols are among them.

    >>> product((2, 3)), product(("n", 1)), product(("n", 4))
    (6, 'n', '4*n')
    """
    number = prod(dim for dim in dims if isinstance(dim, int))
    symbols = sorted(dim for dim in dims if isinstance(dim, str))
    if number == 0 or not symbols:
        return number
    return "*".join(([] if number == 1 else [str(number)]) + symbols)


def normalise(axis: int, rank: int) -> int:
    """An axis counted from the front; GraphError when there is no such axis."""
    if not -rank <= axis < max(rank, 1):
        raise GraphError(f"axis {axis} of a tensor of rank {rank}; it must lie in {-rank}..{rank - 1}")
    return axis % rank if rank else 0
