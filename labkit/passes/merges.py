"""Two nodes in a row that one node, or none, can do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labkit.graph import Array, Node, TensorType, Value
from labkit.passes.ranges import clip_bounds, clip_node
from labkit.passes.reshaping import RESHAPES, to_shape
from labkit.passes.rewriting import Rewrite, Table, View, before, forward

_SELF_INVERSE = {"Neg", "Not"}


def transpose_of_transpose(view: View, node: Node) -> Rewrite | None:
    """Transpose∘Transpose is one Transpose with the composed permutation, and none when that is the identity.

    The first Transpose stays for whoever else reads it, so no reader has to be counted.
    """
    inner = before(view, node, {"Transpose"})
    if inner is None or inner.inputs[0] is None:
        return None
    x = inner.inputs[0]
    rank = x.type.rank if x.type else None
    first, second = inner.attrs.get("perm"), node.attrs.get("perm")
    if first is None and second is None:
        return forward(view, node, x)  # two reversals, whatever the rank
    if rank is None:
        return None
    backwards = tuple(reversed(range(rank)))
    first, second = first or backwards, second or backwards
    composed = tuple(first[axis] for axis in second)
    if composed == tuple(range(rank)):
        return forward(view, node, x)
    return Rewrite(nodes=(replace(node, inputs=(x,), attrs={**node.attrs, "perm": composed}),))


def reshape_of_reshape(view: View, node: Node) -> Rewrite | None:
    """Reshape, Flatten, Squeeze and Unsqueeze in a row keep the order of elements: one Reshape to the last shape does.

    The last shape has to be known but for one dim, which is written −1.
    """
    inner = before(view, node, RESHAPES)
    x = inner.inputs[0] if inner else None
    if inner is None or x is None:
        return None
    if x.shape != node.output.shape and view.readers(inner.output) > 1:
        return None  # with another reader nothing would be gained
    return to_shape(view, node, x)


def cancel_or_repeat(view: View, node: Node) -> Rewrite | None:
    """Neg∘Neg and Not∘Not give back x; Abs and Sign change nothing the second time."""
    inner = before(view, node, {node.op})
    if inner is None:
        return None
    if node.op in _SELF_INVERSE:
        return forward(view, node, inner.inputs[0])
    return forward(view, node, inner.output)


def clip_of_clip(view: View, node: Node) -> Rewrite | None:
    """Relu and Clip in a row are one Clip, when their bounds are constant and the first has no other reader.

    Clip is min(max(x, low), high), so of two bounds the later wins where they cross.
    """
    inner = before(view, node, {"Relu", "Clip"})
    if inner is None or view.readers(inner.output) > 1 or node.output.dtype is None:
        return None
    first, second = clip_bounds(view, inner), clip_bounds(view, node)
    return clip_node(view, inner.inputs[0], node, first.then(second)) if first and second else None


def cast_of_cast(view: View, node: Node) -> Rewrite | None:
    """A Cast to a type that holds every value of x, and on: one Cast does, and none when it leads back.

    float32 → int32 → float32 loses the fraction and stays.
    """
    inner = before(view, node, {"Cast"})
    x = inner.inputs[0] if inner else None
    if inner is None or x is None or x.dtype is None or inner.output.dtype is None:
        return None
    if not _holds(inner.output.dtype, x.dtype):
        return None
    if x.dtype == node.output.dtype:
        return forward(view, node, x)
    return Rewrite((replace(node, inputs=(x,)),))


def _holds(wide: str, narrow: str) -> bool:
    """Whether every value of one element type is exactly a value of another; a type not listed: no."""
    if (narrow, wide) in _LOSSLESS:
        return True
    if not {wide, narrow} <= _NUMPY_TYPES or (narrow.endswith("int64") and wide.startswith("float")):
        return False  # NumPy calls int64 to float64 safe, which loses digits from 2**53 on
    return bool(np.can_cast(np.dtype(narrow), np.dtype(wide), "safe"))


_NUMPY_TYPES = {"bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
                "float16", "float32", "float64"}  # fmt: skip
_LOSSLESS = {("bfloat16", "float32"), ("bfloat16", "float64"), ("bfloat16", "bfloat16")}


def where_of_not(view: View, node: Node) -> Rewrite | None:
    """Where(Not(c), a, b) is Where(c, b, a)."""
    inner = before(view, node, {"Not"})
    if inner is None:
        return None
    return Rewrite((replace(node, inputs=(inner.inputs[0], node.inputs[2], node.inputs[1])),))


def scale_of_scale(view: View, node: Node) -> Rewrite | None:
    """x·k₁·k₂ is x·(k₁k₂), and so it is with quotients and signs. (Sums are left: x + 2²³ − 2²³ rounds x.)"""
    outer = _scale(view, node)
    between = view.producer(outer[0]) if outer else None
    inner = _scale(view, between) if between and not between.domain else None
    if outer is None or between is None or inner is None or view.readers(between.output) > 1:
        return None
    with np.errstate(all="ignore"):
        array = np.asarray((inner[1] * outer[1]).astype(node.output.dtype))
    if array.size > max(inner[1].size, outer[1].size) or not _is_ordinary(array):
        return None
    scale = Value(view.fresh(f"{node.output.name}_scale"), TensorType.of(array))
    return Rewrite((Node("Mul", (inner[0], scale), node.outputs, name=node.name),), {scale.name: array})


def _scale(view: View, node: Node) -> tuple[Value, Array] | None:
    """What a Neg, or a Mul or a Div by a constant, of floats scales, and by what, in double precision."""
    if node.op not in ("Mul", "Div", "Neg") or node.output.dtype not in ("float32", "float64"):
        return None
    if node.op == "Neg":
        return node.uses[0], np.array(-1.0)
    for x, constant in (node.inputs, node.inputs[::-1]):
        array = view.constant(constant)
        if x is None or array is None or (node.op == "Div" and x is not node.inputs[0]):
            continue
        with np.errstate(all="ignore"):
            factor = np.asarray(array, dtype=np.float64) if node.op == "Mul" else 1 / np.asarray(array, np.float64)
        return (x, factor) if _is_ordinary(factor.astype(array.dtype)) else None
    return None


def _is_ordinary(array: Array) -> bool:
    """Neither 0 nor so small that digits are lost, nor infinite or NaN."""
    return bool((np.isfinite(array) & (np.abs(array) >= np.finfo(array.dtype).tiny)).all())


def shape_of_alike(view: View, node: Node) -> Rewrite | None:
    """The Shape of what nothing else reads is the Shape of something that this was made from, where the two are alike.
    Equal symbols are equal numbers at run time."""
    x = node.uses[0]
    maker = view.producer(x)
    if maker is None or x.shape is None or view.readers(x) > 1:
        return None
    alike = [value for value in maker.uses if value.shape == x.shape]
    return Rewrite((replace(node, inputs=(alike[0],)),)) if alike else None


MERGES: Table = {
    **dict.fromkeys(("Shape", "Size"), (shape_of_alike,)),
    "Transpose": (transpose_of_transpose,),
    **dict.fromkeys(RESHAPES, (reshape_of_reshape,)),
    **dict.fromkeys(("Abs", "Not", "Sign"), (cancel_or_repeat,)),
    "Neg": (cancel_or_repeat, scale_of_scale),
    "Relu": (clip_of_clip,),
    "Clip": (clip_of_clip,),
    "Cast": (cast_of_cast,),
    "Where": (where_of_not,),
    **dict.fromkeys(("Mul", "Div"), (scale_of_scale,)),
}
