"""Sequences that are taken apart again: their elements are tensors that were there before, or parts of one."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

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
    split = _split(view, inner)
    if split is None or not -len(split.ends) <= index < len(split.ends):
        return None
    end = index % len(split.ends)
    return slice_node(view, split.x, node, {split.axis: (split.ends[end - 1] if end else 0, split.ends[end], 1)})


def concat_of_sequence(view: View, node: Node) -> Rewrite | None:
    """ConcatFromSequence of a SequenceConstruct is a Concat; of the parts of a tensor along their axis, the tensor."""
    inner = before(view, node, {"SequenceConstruct", "SplitToSequence"})
    if inner is None or node.attrs.get("new_axis", 0):
        return None
    if inner.op == "SequenceConstruct":
        attrs = {"axis": node.attrs["axis"]}
        return Rewrite((Node("Concat", inner.inputs, node.outputs, attrs, name=node.name),))
    split = _split(view, inner)
    if split is None or node.attrs["axis"] % len(split.x.shape or ()) != split.axis:
        return None
    return forward(view, node, split.x)


def length_of_sequence(view: View, node: Node) -> Rewrite | None:
    """How many tensors a SequenceConstruct is given, or into how many a SplitToSequence cuts."""
    inner = before(view, node, {"SequenceConstruct", "SplitToSequence"})
    if inner is None:
        return None
    split = None if inner.op == "SequenceConstruct" else _split(view, inner)
    parts = inner.inputs if inner.op == "SequenceConstruct" else None if split is None else split.ends
    return None if parts is None else Rewrite(constants={node.output.name: np.array(len(parts), dtype=np.int64)})


class _Split(NamedTuple):
    """What a SplitToSequence cuts, along which axis, and where each part ends."""

    x: Value
    axis: int
    ends: tuple[int, ...]


def _split(view: View, node: Node) -> _Split | None:
    """None where that is not known, and where the parts, of one element each, lose their axis (or, sizes being given,
    should not, which onnxruntime does not understand)."""
    x = node.inputs[0]
    given = node.inputs[1] if len(node.inputs) > 1 else None
    if x is None or x.shape is None or not node.attrs.get("keepdims", 1):
        return None
    axis = node.attrs.get("axis", 0) % len(x.shape)
    size, sizes = x.shape[axis], np.array(1) if given is None else view.constant(given)
    if isinstance(size, str) or sizes is None or sizes.min() < 1:
        return None
    ends = accumulate(sizes.tolist()) if sizes.ndim else range(int(sizes), size + int(sizes), int(sizes))
    return _Split(x, axis, tuple(min(end, size) for end in ends))


SEQUENCES: Table = {
    "SequenceAt": (element_of_sequence,),
    "ConcatFromSequence": (concat_of_sequence,),
    "SequenceLength": (length_of_sequence,),
}
