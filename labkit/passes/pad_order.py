"""Pads sink: behind a Transpose or a reshape, which then move less, towards a window that takes the Pad in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labkit.graph import Dim, Node, TensorType, Value
from labkit.passes.pads import pads_of
from labkit.passes.reshaping import RESHAPES, long_axes, moves_units, to_shape
from labkit.passes.rewriting import Rewrite, Table, View, before


def transpose_of_pad(view: View, node: Node) -> Rewrite | None:
    """Transpose(Pad(x)) is Pad(Transpose(x)), padded where the axes are then."""
    found = _pad_before(view, node)
    if found is None:
        return None
    x, pad, pads = found
    rank = len(pads) // 2
    perm = node.attrs.get("perm") or tuple(reversed(range(rank)))
    dims = tuple((x.shape or ())[axis] for axis in perm)
    out = _fresh(view, node, dims)
    first = Rewrite((replace(node, inputs=(x,), outputs=(out,)),))
    return _pad_behind(view, node, pad, first, [pads[axis] for axis in (*perm, *(axis + rank for axis in perm))])


def reshape_of_pad(view: View, node: Node) -> Rewrite | None:
    """reshape(Pad(x)) is Pad(reshape(x)), where the reshape only moves axes of one element that are not padded."""
    found = _pad_before(view, node)
    shape = node.output.shape
    if found is None or shape is None or not moves_units(node):
        return None
    x, pad, pads = found
    rank, long = len(pads) // 2, long_axes(pad.output.shape or ())
    if any(pads[axis] or pads[axis + rank] for axis in range(rank) if axis not in long):
        return None
    places = dict(zip(long_axes(shape), long, strict=True))
    dims = tuple((x.shape or ())[places[place]] if place in places else 1 for place in range(len(shape)))
    first = to_shape(view, replace(node, outputs=(_fresh(view, node, dims),)), x)
    if first is None:
        return None
    ends = (0, rank)
    moved = [pads[places[place] + end] if place in places else 0 for end in ends for place in range(len(shape))]
    return _pad_behind(view, node, pad, first, moved)


def _pad_before(view: View, node: Node) -> tuple[Value, Node, tuple[int, ...]] | None:
    """The Pad in front that only this node reads, what it pads and by how much; None when it crops."""
    pad = before(view, node, {"Pad"})
    x = pad.inputs[0] if pad else None
    if pad is None or x is None or x.shape is None or view.readers(pad.output) > 1 or pad.output.shape is None:
        return None
    pads = pads_of(view, pad, len(x.shape))
    return None if pads is None or min(pads, default=0) < 0 else (x, pad, pads)


def _fresh(view: View, node: Node, dims: tuple[Dim, ...]) -> Value:
    return Value(view.fresh(f"{node.output.name}_unpadded"), TensorType(dims, node.output.dtype or ""))


def _pad_behind(view: View, node: Node, pad: Node, first: Rewrite, pads: list[int]) -> Rewrite:
    """The Pad behind what ``first`` makes, under the node's output name."""
    x = next(iter(first.instead.values())) if first.instead else first.nodes[-1].output
    if view.opset < 11:
        moved = replace(pad, inputs=(x,), outputs=node.outputs, attrs={**pad.attrs, "pads": tuple(pads)})
        return Rewrite((*first.nodes, moved), first.constants)
    array = np.array(pads, dtype=np.int64)
    value = Value(view.fresh(f"{node.output.name}_pads"), TensorType.of(array))
    moved = replace(pad, inputs=(x, value, *pad.inputs[2:3]), outputs=node.outputs)
    return Rewrite((*first.nodes, moved), {**first.constants, value.name: array})


PAD_ORDER: Table = {"Transpose": (transpose_of_pad,), **dict.fromkeys(RESHAPES, (reshape_of_pad,))}
