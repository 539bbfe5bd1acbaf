"""Type inference for operators that move data. A rule may read the array of a constant input (the target of a Reshape);
a size that cannot be known is a "?" dim."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from labkit.errors import GraphError
from labkit.graph import Dim, Shape, TensorType
from labkit.ops.call import Call, Types, full_pads, normalise, product


def reshape(call: Call) -> Types:
    target, x = call.constant(1), call.shape()
    dtype = call.type().dtype
    if target is None:
        length = call.shape(1) if call.has(1) else None
        return (TensorType(call.unknown(length[0] if length and isinstance(length[0], int) else None), dtype),)
    return (TensorType(_reshaped(call, x, [int(v) for v in target.ravel()]), dtype),)


def _reshaped(call: Call, x: Shape | None, target: Sequence[int]) -> Shape:
    dims: list[Dim] = [*target]
    unknown = call.unknown(len(target)) or ()
    if not call.attrs.get("allowzero", 0):
        for axis in [axis for axis, dim in enumerate(target) if dim == 0]:
            if x is not None and axis >= len(x):
                raise GraphError(f"a 0 in the new shape copies axis {axis}, but the input has rank {len(x)}")
            dims[axis] = unknown[axis] if x is None else x[axis]
    if -1 not in target:
        return _same_count(x, tuple(dims))
    free = target.index(-1)
    if x is None:
        return (*dims[:free], unknown[free], *dims[free + 1 :])
    # Symbols that stand on both sides cancel; what is left must be numbers for the free dim to be one.
    old, new = list(x), [dim for axis, dim in enumerate(dims) if axis != free]
    for dim in [dim for dim in new if isinstance(dim, str) and dim in old]:
        old.remove(dim)
        new.remove(dim)
    return (*dims[:free], _quotient(old, new, unknown[free]), *dims[free + 1 :])


def _quotient(old: Sequence[Dim], new: Sequence[Dim], unknown: Dim) -> Dim:
    count, known = (prod(dim for dim in dims if isinstance(dim, int)) for dims in (old, new))
    symbols = [dim for dim in (*old, *new) if isinstance(dim, str)]
    if symbols:
        return symbols[0] if len(symbols) == 1 and symbols[0] in old and count == known else unknown
    if known == 0 or count % known:
        raise GraphError(f"{count} elements do not divide into {known}; the dim written -1 would be no whole number")
    return count // known


def _same_count(x: Shape | None, dims: Shape) -> Shape:
    static = x is not None and all(isinstance(dim, int) for dim in (*x, *dims))
    if static and prod(x) != prod(dims):  # type: ignore[arg-type]
        raise GraphError(f"{prod(x)} elements do not fit the shape {dims}")  # type: ignore[arg-type]
    return dims


def flatten(call: Call) -> Types:
    x, axis = call.shape(), call.attrs.get("axis", 1)
    if x is None:
        return (TensorType(call.unknown(2), call.type().dtype),)
    axis = axis if axis == len(x) else normalise(axis, len(x))
    return (TensorType((product(x[:axis]), product(x[axis:])), call.type().dtype),)


def transpose(call: Call) -> Types:
    x = call.shape()
    if x is None:
        return (TensorType(None, call.type().dtype),)
    perm = tuple(call.attrs.get("perm") or reversed(range(len(x))))
    if sorted(perm) != list(range(len(x))):
        raise GraphError(f"perm {perm} is no permutation of the {len(x)} axes of the input")
    return (TensorType(tuple(x[axis] for axis in perm), call.type().dtype),)


def concat(call: Call) -> Types:
    shapes = [kind.shape if kind else None for kind in call.types]
    dtype = call.type().dtype
    first = next((shape for shape in shapes if shape is not None), None)
    if first is None or any(shape is None for shape in shapes):
        return (TensorType(call.unknown(None if first is None else len(first)), dtype),)
    known = [shape for shape in shapes if shape is not None]
    axis = normalise(call.attrs["axis"], len(first))
    for other in known[1:]:
        for at, (one, two) in enumerate(zip(first, other, strict=False)):
            if at != axis and isinstance(one, int) and isinstance(two, int) and one != two:
                raise GraphError(f"axis {at} is {one} in one input and {two} in another; only axis {axis} may differ")
        if len(other) != len(first):
            raise GraphError(f"inputs of rank {len(first)} and {len(other)} cannot be joined")
    dims = [next((s[at] for s in known if isinstance(s[at], int)), first[at]) for at in range(len(first))]
    sizes = [shape[axis] for shape in known]
    numbers = [size for size in sizes if isinstance(size, int)]
    dims[axis] = sum(numbers) if len(numbers) == len(sizes) else "+".join(map(str, sizes))
    return (TensorType(tuple(dims), dtype),)


def squeeze(call: Call) -> Types:
    x, axes = call.shape(), call.ints("axes", 1, since=13)
    if x is None or (axes is None and (call.has(1) or any(isinstance(dim, str) for dim in x))):
        return (TensorType(None, call.type().dtype),)
    gone = {normalise(a, len(x)) for a in axes} if axes is not None else {a for a, dim in enumerate(x) if dim == 1}
    if wrong := [axis for axis in gone if isinstance(x[axis], int) and x[axis] != 1]:
        raise GraphError(f"axis {wrong[0]} has {x[wrong[0]]} elements; only an axis of 1 can be squeezed")
    return (TensorType(tuple(dim for axis, dim in enumerate(x) if axis not in gone), call.type().dtype),)


def unsqueeze(call: Call) -> Types:
    x, axes = call.shape(), call.ints("axes", 1, since=13)
    if x is None or axes is None:
        return (TensorType(None, call.type().dtype),)
    rank = len(x) + len(axes)
    new = {normalise(axis, rank) for axis in axes}
    if len(new) < len(axes):
        raise GraphError(f"axes {axes} name the same new axis twice")
    rest = iter(x)
    return (TensorType(tuple(1 if axis in new else next(rest) for axis in range(rank)), call.type().dtype),)


def pad(call: Call) -> Types:
    x, pads = call.shape(), call.ints("pads", 1, since=11)
    axes = call.constant(3)
    if x is None or pads is None or (call.has(3) and axes is None):
        return (TensorType(call.unknown(call.type().rank), call.type().dtype),)
    named = len(x) if axes is None else axes.size
    if len(pads) != 2 * named:
        raise GraphError(f"{len(pads)} pads for {named} axes; it needs one before and one behind each axis")
    pads = full_pads(pads, len(x), None if axes is None else axes.ravel().tolist())
    totals = [before + after for before, after in zip(pads[: len(x)], pads[len(x) :], strict=True)]
    dims: list[Dim] = [
        dim + total if isinstance(dim, int) else dim if total == 0 else f"{dim}+{total}"
        for dim, total in zip(x, totals, strict=True)
    ]
    return (TensorType(tuple(dims), call.type().dtype),)


def constant_of_shape(call: Call) -> Types:
    value, shape = call.attrs.get("value"), call.constant(0)
    dtype = "float32" if value is None else value.dtype.name
    if shape is None:
        length = call.shape(0)
        return (TensorType(call.unknown(length[0] if length and isinstance(length[0], int) else None), dtype),)
    return (TensorType(tuple(int(dim) for dim in shape), dtype),)
