"""Sequences that are taken apart again: their elements are tensors that were there before, or parts of one."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from labkit.graph import Node, Value
from labkit.passes.rewriting import Rewrite, Table, View, before, forward
from labkit.passes.slicing import slice_node


def element_of_sequence(view: View, node: Node) -> Rewrite | None:
    """SequenceAt of a SequenceConstruct is one of its inputs; of a SplitToSequence, a Slice."""
    inner, place = before(view, node, {"SequenceConstruct", "SplitToSequence"}), view.constant(node.inputs[1])
    if inner is None or place is None:
        return None
    index = int(place.item())
    if inner.op == "SequenceConstruct":
        inside = -len(inner.inputs) <= index < len(inner.inputs)
        return forward(view, node, inner.inputs[index]) if inside else None
    x, ends = inner.inputs[0], _ends(view, inner)
    if x is None or x.shape is None or ends is None or not -len(ends) <= index < len(ends):
        return None
    index %= len(ends)
    axis = inner.attrs.get("axis", 0) % len(x.shape)
    return slice_node(view, x, node, {axis: (ends[index - 1] if index else 0, ends[index], 1)})


def concat_of_sequence(view: View, node: Node) -> Rewrite | None:
    """ConcatFromSequence of a SequenceConstruct is a Concat; of the parts of a tensor along their axis, the tensor."""
    inner = before(view, node, {"SequenceConstruct", "SplitToSequence"})
    if inner is None or node.attrs.get("new_axis", 0):
        return None
    if inner.op == "SequenceConstruct":
        attrs = {"axis": node.attrs["axis"]}
        return Rewrite((Node("Concat", inner.inputs, node.outputs, attrs, name=node.name),))
    x = inner.inputs[0]
    if x is None or x.shape is None or not _keeps_axis(inner):
        return None
    same = node.attrs["axis"] % len(x.shape) == inner.attrs.get("axis", 0) % len(x.shape)
    return forward(view, node, x) if same else None


def length_of_sequence(view: View, node: Node) -> Rewrite | None:
    """How many tensors a SequenceConstruct is given, or into how many a SplitToSequence cuts."""
    inner = before(view, node, {"SequenceConstruct", "SplitToSequence"})
    parts = None if inner is None else inner.inputs if inner.op == "SequenceConstruct" else _ends(view, inner)
    return None if parts is None else Rewrite(constants={node.output.name: np.array(len(parts), dtype=np.int64)})


def _ends(view: View, split: Node) -> tuple[int, ...] | None:
    """Where the parts of a SplitToSequence end; None where that is not known, or where the parts lose their axis."""
    x = split.inputs[0]
    size = "?" if x is None or x.shape is None else x.shape[split.attrs.get("axis", 0)]
    if isinstance(size, str) or not _keeps_axis(split):
        return None
    sizes = np.array(1) if _cut(split) is None else view.constant(_cut(split))
    if sizes is None:
        return None
    if sizes.ndim:
        return tuple(accumulate(sizes.tolist()))
    step = int(sizes)
    return tuple(min(start + step, size) for start in range(0, size, step)) if step > 0 else None


def _keeps_axis(split: Node) -> bool:
    """Parts of one element each, which no sizes are given for, may be asked to lose the axis."""
    return _cut(split) is not None or bool(split.attrs.get("keepdims", 1))


def _cut(split: Node) -> Value | None:
    return split.inputs[1] if len(split.inputs) > 1 else None


SEQUENCES: Table = {
    "SequenceAt": (element_of_sequence,),
    "ConcatFromSequence": (concat_of_sequence,),
    "SequenceLength": (length_of_sequence,),
}
