"""Transposes sink behind an operator that names axes, too: it calls them by the numbers that they had before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labkit.graph import Array, Node, TensorType, Value
from labkit.passes.rewriting import Rewrite, Table, View
from labkit.passes.transposes import Perm, behind, transposed

REDUCTIONS = {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
              "ReduceProd", "ReduceSum", "ReduceSumSquare"}  # fmt: skip
_ARG = {"ArgMax", "ArgMin"}
_ALONG_ONE = {"Softmax", "LogSoftmax", "Hardmax"}


def sink_through_reduction(view: View, node: Node) -> Rewrite | None:
    """Reduce(Transpose(x)) over some axes is Reduce(x) over the same axes where they were before.

    Axes that are dropped need no Transpose; where the rest is in order already none is left, so other readers of the
    Transpose do not matter.
    """
    found = transposed(view, node.inputs[0])
    axes = None if found is None else _reduced(view, node, len(found[1]))
    if found is None or axes is None:
        return None
    x, perm = found
    left = [perm[axis] for axis in range(len(perm)) if axis not in axes]
    ordered = sorted(left)
    keeps = bool(node.attrs.get("keepdims", 1))
    if view.readers(node.inputs[0] or node.output) > 1 and (keeps or left != ordered):
        return None
    moved, constants = _over(view, node, tuple(sorted(perm[axis] for axis in axes)))
    inputs = (x, *moved.inputs[1:])
    if keeps:
        return behind(view, moved, inputs, perm, constants)
    if left != ordered:
        return behind(view, moved, inputs, tuple(ordered.index(axis) for axis in left), constants)
    return Rewrite((replace(moved, inputs=inputs),), constants)


def _reduced(view: View, node: Node, rank: int) -> set[int] | None:
    """The axes that a reduction runs over, counted from 0; None where they are not known."""
    if node.op in _ARG:
        return {node.attrs.get("axis", 0) % rank}
    named = node.inputs[1] if len(node.inputs) > 1 else None
    axes = view.constant(named) if named else node.attrs.get("axes")
    if named and axes is None:
        return None
    if axes is None or len(axes) == 0:
        return None if node.attrs.get("noop_with_empty_axes", 0) else set(range(rank))
    return {int(axis) % rank for axis in axes}


def _over(view: View, node: Node, axes: tuple[int, ...]) -> tuple[Node, dict[str, Array]]:
    """The reduction over other axes, spelled as it was: an attribute, or an input."""
    if node.op in _ARG:
        return replace(node, attrs={**node.attrs, "axis": axes[0]}), {}
    if len(node.inputs) < 2 or node.inputs[1] is None:
        return replace(node, attrs={**node.attrs, "axes": axes} if "axes" in node.attrs else node.attrs), {}
    array = np.array(axes, dtype=np.int64)
    value = Value(view.fresh(f"{node.output.name}_axes"), TensorType.of(array))
    return replace(node, inputs=(node.inputs[0], value)), {value.name: array}


def sink_along_one_axis(view: View, node: Node) -> Rewrite | None:
    """Softmax(Transpose(x)) along an axis is Transpose(Softmax(x)) along the axis it was before (from opset 13 on:
    earlier ones flatten all axes behind it)."""
    found = transposed(view, node.inputs[0])
    if found is None or view.opset < 13 or view.readers(node.inputs[0] or node.output) > 1:
        return None
    x, perm = found
    axis = perm[node.attrs.get("axis", -1) % len(perm)]
    return behind(view, replace(node, attrs={**node.attrs, "axis": axis}), (x,), perm, {})


def sink_through_slice(view: View, node: Node) -> Rewrite | None:
    """Slice(Transpose(x)) is Transpose(Slice(x)), whatever the numbers: a Slice names its axes."""
    found = transposed(view, node.inputs[0])
    if found is None or view.readers(node.inputs[0] or node.output) > 1:
        return None
    x, perm = found
    if view.opset < 10:
        named = node.attrs.get("axes") or range(len(node.attrs["starts"]))
        attrs = {**node.attrs, "axes": tuple(_before(perm, named))}
        return behind(view, replace(node, attrs=attrs), (x,), perm, {})
    axes = _sliced(view, node)
    if axes is None:
        return None
    array = np.array(_before(perm, axes), dtype=np.int64)
    value = Value(view.fresh(f"{node.output.name}_axes"), TensorType.of(array))
    return behind(view, node, (x, *node.inputs[1:3], value, *node.inputs[4:]), perm, {value.name: array})


def _sliced(view: View, node: Node) -> tuple[int, ...] | None:
    """The axes that a Slice names; without a name, as many as it has starts."""
    named = node.inputs[3] if len(node.inputs) > 3 else None
    if named is not None:
        array = view.constant(named)
        return None if array is None else tuple(int(axis) for axis in array)
    starts = node.inputs[1].shape if node.inputs[1] else None
    return tuple(range(starts[0])) if starts and isinstance(starts[0], int) else None


def _before(perm: Perm, axes: tuple[int, ...] | range) -> list[int]:
    return [perm[axis % len(perm)] for axis in axes]


PERMUTED: Table = {
    **dict.fromkeys(REDUCTIONS | _ARG, (sink_through_reduction,)),
    **dict.fromkeys(_ALONG_ONE, (sink_along_one_axis,)),
    "Slice": (sink_through_slice,),
}
