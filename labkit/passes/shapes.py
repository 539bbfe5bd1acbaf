"""Shape arithmetic: Shape → Gather → Concat → Reshape chains, computed on dims, numbers and symbols alike (spec §5.1).

An exporter that keeps the batch size open computes every shape at run time, though most of it is known. Where all of it
is known the result is a constant; where one dim is a symbol a Reshape can still be told the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from labkit.build import make_node
from labkit.graph import Dim, Node, TensorType, Value
from labkit.ops.call import product
from labkit.passes.rewriting import Rewrite, Table, View, forward
from labkit.tensor_protos import elem_type

_DEEPEST = 24  # links of a chain; real ones have five
_LONGEST = 64  # dims of a shape
_LONGEST_DIM = 200  # characters of an expression
_SAME_ELEMENTS = {"Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten"}

_PLUS = "\0"  # no symbol of a file's own looks like a sum

Dims = tuple[Dim, ...]
Seen = dict[str, Dims | None]


def known_dims(view: View, value: Value | None, depth: int = 0, seen: Seen | None = None) -> Dims | None:
    """The elements of an integer scalar or vector as dims, or None. Equal symbols are equal numbers at run time.

    ``seen`` keeps what was read on the way: of a chain of nodes that each read the one before twice, each is read once.
    """
    if value is None or depth > _DEEPEST or value.dtype not in ("int64", "int32"):
        return None
    array = view.constant(value)
    if array is not None:
        return tuple(int(v) for v in array.ravel()) if array.size <= _LONGEST and array.ndim <= 1 else None
    node = view.producer(value)
    if node is None or node.domain:
        return None
    seen = {} if seen is None else seen
    if value.name not in seen:
        seen[value.name] = _dims(view, node, depth, seen)
    return seen[value.name]


def _dims(view: View, node: Node, depth: int = 0, seen: Seen | None = None) -> Dims | None:
    """The elements of what a node makes, unless they are many, or one of them is beyond its type."""
    if node.op == "Shape":
        return _shape(node)
    if node.op in _READERS:
        parts = [known_dims(view, x, depth + 1, seen) for x in node.inputs if x]
        known = [part for part in parts if part is not None]
        found = _READERS[node.op](node, known) if len(known) == len(parts) else None
        return found if found is not None and _holds(node.output.dtype, found) else None
    if node.op in _SAME_ELEMENTS or (node.op == "Cast" and node.output.dtype == "int64"):
        return known_dims(view, node.inputs[0], depth + 1, seen)
    return None


def _holds(dtype: str | None, dims: Dims) -> bool:
    """Whether these dims are worth knowing: few, short, and what integers of this type can be."""
    if dtype not in ("int64", "int32") or len(dims) > _LONGEST:
        return False
    limits = np.iinfo(dtype)
    return all(len(d) <= _LONGEST_DIM if isinstance(d, str) else limits.min <= d <= limits.max for d in dims)


def _shape(node: Node) -> Dims | None:
    x = node.inputs[0]
    if x is None or x.shape is None:
        return None
    return x.shape[node.attrs.get("start", 0) : node.attrs.get("end")]


def _gather(node: Node, parts: list[Dims]) -> Dims | None:
    data, indices = parts
    numbers = [i for i in indices if isinstance(i, int) and -len(data) <= i < len(data)]
    return tuple(data[i] for i in numbers) if len(numbers) == len(indices) else None


def _slice(node: Node, parts: list[Dims]) -> Dims | None:
    if len(parts) == 1:  # before opset 10 the numbers are attributes
        parts = [*parts, *(node.attrs[name] for name in ("starts", "ends")), node.attrs.get("axes", (0,))]
    data, starts, ends, *rest = parts
    axes, steps = (rest + [(0,), (1,)][len(rest) :])[:2]
    bounds = (*starts, *ends, *steps)
    if len(bounds) != 3 or axes not in ((0,), (-1,)) or not all(isinstance(b, int) for b in bounds):
        return None
    start, end, step = (int(b) for b in bounds)
    return data[slice(start, end, step)] if step else None


def _elementwise(function: Callable[[Dim, Dim], Dim | None]) -> Callable[[Node, list[Dims]], Dims | None]:
    def read(node: Node, parts: list[Dims]) -> Dims | None:
        one, two = parts
        length = max(len(one), len(two))
        if {len(one), len(two)} - {1, length}:
            return None
        pairs = zip(one * (length // len(one)), two * (length // len(two)), strict=True) if one and two else ()
        found = [function(a, b) for a, b in pairs]
        return None if any(dim is None for dim in found) else tuple(dim for dim in found if dim is not None)

    return read


def _add(a: Dim, b: Dim) -> Dim | None:
    if isinstance(a, str) and isinstance(b, str):
        return None
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    symbol, number = (a, b) if isinstance(a, str) else (b, a)
    return _shifted(str(symbol), int(number))


def _subtract(a: Dim, b: Dim) -> Dim | None:
    return None if isinstance(b, str) else _add(a, -b)


def _shifted(symbol: str, number: int) -> Dim:
    """A symbol plus a number, which a later sum takes apart again: n + 1 − 1 is n."""
    base, _, so_far = symbol.partition(_PLUS)
    total = int(so_far or 0) + number
    return f"{base}{_PLUS}{total}" if total else base


def _multiply(a: Dim, b: Dim) -> Dim | None:
    if a == 1 or b == 1:
        return b if a == 1 else a
    return None if any(isinstance(dim, str) and _PLUS in dim for dim in (a, b)) else product((a, b))


def _divide(a: Dim, b: Dim) -> Dim | None:
    if isinstance(a, int) and isinstance(b, int) and b and a % b == 0:
        return a // b
    return a if b == 1 else None


_READERS: dict[str, Callable[[Node, list[Dims]], Dims | None]] = {
    "Gather": _gather,
    "Slice": _slice,
    "Concat": lambda node, parts: tuple(dim for part in parts for dim in part),
    "Mul": _elementwise(_multiply),
    "Add": _elementwise(_add),
    "Sub": _elementwise(_subtract),
    "Div": _elementwise(_divide),
}


def known_shape(view: View, node: Node) -> Rewrite | None:
    """A node whose integers are all known, though its input is not: a constant takes its place."""
    out = node.output
    if out.type is None or out.type.rank not in (0, 1) or view.constant(node.inputs[0]) is not None:
        return None
    dims = _dims(view, node)
    if dims is None or any(isinstance(dim, str) for dim in dims):
        return None
    array = np.array(dims, dtype=out.dtype).reshape([] if out.type.rank == 0 else [-1])
    return Rewrite(constants={out.name: array})


def known_size(view: View, node: Node) -> Rewrite | None:
    """Size of a tensor of known shape."""
    x = node.inputs[0]
    if x is None or x.type is None or not x.type.is_static:
        return None
    return Rewrite(constants={node.output.name: np.array(prod(int(d) for d in x.shape or ()), dtype=np.int64)})


def reshape_by_dims(view: View, node: Node) -> Rewrite | None:
    """A Reshape to a shape computed at run time, of which all is known but dims that can be copied (0) or left (−1)."""
    x, target = node.inputs[0], node.inputs[1]
    if x is None or x.shape is None or target is None or view.constant(target) is not None:
        return None
    dims = known_dims(view, target)
    if (
        dims is None
        or any(isinstance(dim, int) and dim < -1 for dim in dims)
        or 0 in dims
        or node.attrs.get("allowzero")
    ):
        return None
    copied = [isinstance(dim, str) and axis < len(x.shape) and x.shape[axis] == dim for axis, dim in enumerate(dims)]
    left = [axis for axis, dim in enumerate(dims) if dim == -1 or (isinstance(dim, str) and not copied[axis])]
    if len(left) > 1:
        return None
    array = np.array([0 if copied[a] else -1 if a in left else dim for a, dim in enumerate(dims)], dtype=np.int64)
    name = view.fresh(f"{node.output.name}_shape")
    inputs, constants = (x, Value(name, TensorType.of(array))), {name: array}
    new = make_node("Reshape", inputs, [node.output.name], {}, constants=constants, opset=view.opset, name=node.name)
    return Rewrite((new,), constants)


def expand_by_dims(view: View, node: Node) -> Rewrite | None:
    """An Expand to the very shape that its input has, computed at run time."""
    x = node.inputs[0]
    dims = known_dims(view, node.inputs[1])
    if x is None or x.shape is None or dims is None or len(dims) > len(x.shape):
        return None
    same = all(dim in (1, own) for dim, own in zip(reversed(dims), reversed(x.shape), strict=False))
    return forward(view, node, x) if same else None


def cast_like(view: View, node: Node) -> Rewrite | None:
    """CastLike to a tensor whose type is known is a Cast, which no longer reads that tensor."""
    x, like = node.inputs
    if x is None or like is None or like.dtype is None:
        return None
    if x.dtype == like.dtype:
        return forward(view, node, x)
    attrs = {name: value for name, value in node.attrs.items() if name in ("saturate", "round_mode")}
    return Rewrite((Node("Cast", (x,), node.outputs, {"to": elem_type(like.dtype), **attrs}, name=node.name),))


SHAPES: Table = {
    **dict.fromkeys(("Shape", "Gather", "Slice", "Concat", "Unsqueeze", "Squeeze", "Cast"), (known_shape,)),
    **dict.fromkeys(("Mul", "Add", "Sub", "Div"), (known_shape,)),
    "Size": (known_size,),
    "Reshape": (reshape_by_dims,),
    "Expand": (expand_by_dims,),
    "CastLike": (cast_like,),
}
