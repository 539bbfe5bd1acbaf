"""Quantisation: a cut that it makes anyway, and numbers that it gives back as they were."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labkit.graph import Array, Node
from labkit.passes.ranges import clip_bounds
from labkit.passes.rewriting import Rewrite, Table, View, before, forward

_INTEGERS = {"int8", "uint8", "int16", "uint16"}
_LARGEST_SCALE = 1e30  # times 2¹⁶ it is still a float
_WHERE = {"axis": 1, "block_size": 0}  # which elements share a scale


def cut_before_quantize(view: View, node: Node) -> Rewrite | None:
    """A Relu or a Clip goes where a QuantizeLinear saturates at its ends, or before."""
    inner = before(view, node, {"Relu", "Clip"})
    if inner is None or view.readers(inner.output) > 1 or not _is_plain(inner, node):
        return None
    bounds, steps = clip_bounds(view, inner), _steps(view, node)
    if bounds is None or steps is None:
        return None
    ends, (scale, zero) = np.iinfo(node.output.dtype or ""), steps
    low, high = (np.rint(np.float32(bound) / scale) + zero for bound in (bounds.low, bounds.high))
    if (low > ends.min).any() or (high < ends.max).any():
        return None
    return Rewrite((replace(node, inputs=(inner.inputs[0], *node.inputs[1:])),))


def quantize_of_dequantize(view: View, node: Node) -> Rewrite | None:
    """Integers turned into floats and back by the same steps are what they were: far less than half a step is lost."""
    inner = before(view, node, {"DequantizeLinear"})
    if inner is None or inner.uses[0].dtype != node.output.dtype or not _is_plain(inner, node):
        return None
    first, second = _steps(view, inner), _steps(view, node)
    if first is None or second is None:
        return None
    same = all(np.array_equal(one, two) for one, two in zip(first, second, strict=True))
    alike = all(inner.attrs.get(name, usual) == node.attrs.get(name, usual) for name, usual in _WHERE.items())
    return forward(view, node, inner.inputs[0]) if same and alike else None


def _is_plain(inner: Node, node: Node) -> bool:
    """Whether integers are made of floats of single precision, and by a division of such."""
    return inner.output.dtype == "float32" and node.output.dtype in _INTEGERS and not node.attrs.get("precision")


def _steps(view: View, node: Node) -> tuple[Array, Array] | None:
    """Scale and zero point of a quantisation; None where they are fed, or too odd for float32 to go by."""
    scale = view.constant(node.inputs[1])
    zero_point = node.inputs[2] if len(node.inputs) > 2 else None
    zero = np.zeros((), np.int32) if zero_point is None else view.constant(zero_point)
    if scale is None or zero is None or scale.dtype != np.float32:
        return None
    ordinary = (scale >= np.finfo(np.float32).tiny) & (scale < _LARGEST_SCALE)
    return (scale, zero.astype(np.int32) + np.zeros_like(scale, np.int32)) if ordinary.all() else None


QUANTISED: Table = {"QuantizeLinear": (cut_before_quantize, quantize_of_dequantize)}
