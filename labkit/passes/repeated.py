"""Operators that stand twice in a row and do as much once: a Gather, a Tile, a reduction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labkit.graph import Array, Node, TensorType, Value
from labkit.passes.op_classes import reduced_axes
from labkit.passes.rewriting import Rewrite, Table, View, before

# Not ReduceProd: a product of some elements may overflow where that of all does not.
_EXACT, _ROUNDED = {"ReduceMax", "ReduceMin", "ReduceSum"}, {"ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMean"}


def gather_of_gather(view: View, node: Node) -> Rewrite | None:
    """Of some elements some are taken, along one axis: the second Gather takes its places among the first ones."""
    inner = _before(view, node)
    if inner is None or inner.output.shape is None:
        return None
    first, second = (view.constant(one.inputs[1]) for one in (inner, node))
    if first is None or second is None or first.ndim != 1 or not _are_places(second, first.size):
        return None
    if (inner.attrs.get("axis", 0) - node.attrs.get("axis", 0)) % len(inner.output.shape):
        return None
    return _rewrite(view, node, inner, np.asarray(first[second]))


def _are_places(places: Array, size: int) -> bool:
    return bool(((places >= -size) & (places < size)).all())


def tile_of_tile(view: View, node: Node) -> Rewrite | None:
    """Copies of copies: their numbers are multiplied."""
    inner = _before(view, node)
    if inner is None:
        return None
    first, second = (view.constant(one.inputs[1]) for one in (inner, node))
    return None if first is None or second is None else _rewrite(view, node, inner, first * second)


def reduce_of_reduce(view: View, node: Node) -> Rewrite | None:
    """A sum of sums, a mean of means, a greatest of the greatest: over the axes of both at once."""
    inner = _before(view, node)
    if inner is None or inner.attrs.get("keepdims", 1) != node.attrs.get("keepdims", 1):
        return None
    x = inner.uses[0]
    if x.dtype in ("float16", "bfloat16") or (node.op in _ROUNDED and x.dtype not in ("float32", "float64")):
        return None
    first, second = (reduced_axes(one, view.opset, view.constant) for one in (inner, node))
    if first is None or second is None:
        return None
    left = [axis for axis in range(len(x.shape or ())) if node.attrs.get("keepdims", 1) or axis not in first]
    axes = np.array(sorted({*first, *(left[axis] for axis in second)}), np.int64)
    if view.opset >= (13 if node.op == "ReduceSum" else 18):
        return _rewrite(view, node, inner, axes)
    return Rewrite((replace(node, inputs=(x,), attrs={**node.attrs, "axes": tuple(axes.tolist())}),))


def _before(view: View, node: Node) -> Node | None:
    """The node of the same operator in front, where nothing else reads it."""
    inner = before(view, node, {node.op})
    return None if inner is None or view.readers(inner.output) > 1 else inner


def _rewrite(view: View, node: Node, inner: Node, array: Array) -> Rewrite:
    """The node on what the inner one reads, with another constant behind it."""
    name = view.fresh(f"{node.output.name}_{node.op.lower()}")
    inputs = (inner.inputs[0], Value(name, TensorType.of(array)))
    return Rewrite((replace(node, inputs=inputs),), {name: array})


REPEATED: Table = {
    "Gather": (gather_of_gather,),
    "Tile": (tile_of_tile,),
    **dict.fromkeys((*_EXACT, *_ROUNDED), (reduce_of_reduce,)),
}
