"""Pads sink: behind a Transpose or a reshape, which then move less, towards a window that takes the Pad in. Two that
meet are one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labkit.graph import Dim, Node, TensorType, Value
from labkit.passes.pads import fill_of, pads_of
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


def pad_of_pad(view: View, node: Node) -> Rewrite | None:
    """Pad∘Pad with the same constant, or twice by repeating the edge, pads once by the sum."""
    found = _pad_before(view, node)
    if found is None:
        return None
    x, inner, pads = found
    more = pads_of(view, node, len(pads) // 2)
    if more is None or min(more, default=0) < 0 or _filling(view, inner) != _filling(view, node):
        return None
    return _padded(view, node, x, node.outputs, [a + b for a, b in zip(pads, more, strict=True)])


def _filling(view: View, pad: Node) -> object:
    """What a Pad pads with; nothing that equals itself where that is not known, or reflects what it pads."""
    mode = pad.attrs.get("mode", "constant")
    fill = fill_of(view, pad) if mode == "constant" else None
    return mode if mode == "edge" else float("nan") if fill is None or fill.size != 1 else fill.item()


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
    moved = _padded(view, pad, x, node.outputs, pads)
    return Rewrite((*first.nodes, *moved.nodes), {**first.constants, **moved.constants})


def _padded(view: View, pad: Node, x: Value, outputs: tuple[Value | None, ...], pads: list[int]) -> Rewrite:
    """The Pad on ``x`` by so much before and behind every axis, under other output names."""
    if view.opset < 11:
        return Rewrite((replace(pad, inputs=(x,), outputs=outputs, attrs={**pad.attrs, "pads": tuple(pads)}),))
    array = np.array(pads, dtype=np.int64)
    value = Value(view.fresh(f"{outputs[0].name if outputs[0] else x.name}_pads"), TensorType.of(array))
    return Rewrite((replace(pad, inputs=(x, value, *pad.inputs[2:3]), outputs=outputs),), {value.name: array})


PAD_ORDER: Table = {
    "Transpose": (transpose_of_pad,),
    **dict.fromkeys(RESHAPES, (reshape_of_pad,)),
    "Pad": (pad_of_pad,),
}
