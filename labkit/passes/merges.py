"""Two nodes in a row that one node, or none, can do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labkit.graph import Node, Value
from labkit.passes.ranges import clip_bounds, clip_node
from labkit.passes.reshaping import RESHAPES, to_shape
from labkit.passes.rewriting import Refusal, Rewrite, Table, View, before, forward
from labkit.passes.slicing import slice_node, spans

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


def slice_of_slice(view: View, node: Node) -> Rewrite | Refusal | None:
    """Slice∘Slice along known axes is one Slice: starts add up, steps multiply."""
    inner = before(view, node, {"Slice"})
    if inner is None or inner.inputs[0] is None:
        return None
    first, second = spans(view, inner), spans(view, node)
    if first is None or second is None:
        return None
    if view.readers(inner.output) > 1:
        return Refusal("second reader", f"the first Slice stays for whoever else reads {inner.output.name!r}")
    cut: dict[int, tuple[int, int, int]] = {}
    for axis in sorted(first.keys() | second.keys()):
        whole = inner.inputs[0].shape[axis] if inner.inputs[0].shape else "?"
        if isinstance(whole, str):
            return None
        steps = range(whole)
        for span in (found[axis] for found in (first, second) if axis in found):
            if isinstance(span.stop, str):
                return None
            steps = steps[slice(span.start, span.stop if span.stop >= 0 else None, span.step)]
        cut[axis] = (steps.start, steps.stop, steps.step) if steps else (0, 0, 1)
    return slice_node(view, inner.inputs[0], node, cut)


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


def concat_of_split(view: View, node: Node) -> Rewrite | None:
    """A Concat of all parts of one Split, in order and along its axis, gives back what was split."""
    split = before(view, node, {"Split"})
    x = split.inputs[0] if split else None
    if split is None or x is None or node.inputs != split.outputs or x.shape is None:
        return None
    rank = len(x.shape)
    same_axis = node.attrs["axis"] % rank == split.attrs.get("axis", 0) % rank
    return forward(view, node, x) if same_axis else None


def concat_of_concat(view: View, node: Node) -> Rewrite | None:
    """A Concat among the inputs of a Concat along the same axis is taken apart, when nothing else reads it."""
    flat: list[Value | None] = []
    for value in node.inputs:
        inner = view.producer(value)
        nested = inner is not None and (inner.op, inner.domain) == ("Concat", "") and view.readers(inner.output) == 1
        if inner is not None and nested and _same_axis(inner, node):
            flat += inner.inputs
        else:
            flat.append(value)
    return None if len(flat) == len(node.inputs) else Rewrite((replace(node, inputs=tuple(flat)),))


def _same_axis(one: Node, two: Node) -> bool:
    rank = one.output.type.rank if one.output.type else None
    return one.attrs["axis"] == two.attrs["axis"] or (
        rank is not None and one.attrs["axis"] % rank == two.attrs["axis"] % rank
    )


def slice_of_concat(view: View, node: Node) -> Rewrite | None:
    """A Slice that takes only elements of one part of a Concat takes them from that part."""
    concat = before(view, node, {"Concat"})
    cut = None if concat is None else spans(view, node)
    if concat is None or not cut or concat.output.shape is None:
        return None
    axis = concat.attrs["axis"] % len(concat.output.shape)
    if axis not in cut or any(isinstance(span.stop, str) for span in cut.values()) or cut[axis].step < 1:
        return None
    numbers = {place: (span.start, int(span.stop), span.step) for place, span in cut.items()}
    start, stop, step = numbers[axis]
    first = 0
    for part in concat.inputs:
        size = part.shape[axis] if part is not None and part.shape is not None else "?"
        if part is None or isinstance(size, str):
            return None
        if first <= start and stop <= first + size:
            return slice_node(view, part, node, {**numbers, axis: (start - first, stop - first, step)})
        first += size
    return None


def where_of_not(view: View, node: Node) -> Rewrite | None:
    """Where(Not(c), a, b) is Where(c, b, a)."""
    inner = before(view, node, {"Not"})
    if inner is None:
        return None
    return Rewrite((replace(node, inputs=(inner.inputs[0], node.inputs[2], node.inputs[1])),))


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
    "Slice": (slice_of_slice, slice_of_concat),
    **dict.fromkeys(_SELF_INVERSE | {"Abs", "Sign"}, (cancel_or_repeat,)),
    "Relu": (clip_of_clip,),
    "Clip": (clip_of_clip,),
    "Cast": (cast_of_cast,),
    "Concat": (concat_of_split, concat_of_concat),
    "Where": (where_of_not,),
}
