"""Affine algebra: a BatchNormalization behind a Conv is absorbed by its weights (spec §5.2).

BN(W·x + b) = s·(W·x + b − μ) + β with s = γ/√(σ² + ε), which is a Conv with weights s·W and bias s·(b − μ) + β.
This is algebra, not constant folding: the Conv still depends on the input.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labkit.graph import Array, Node, TensorType, Value
from labkit.passes.rewriting import Refusal, Rewrite, Sweep, View


def batch_norm_into_conv(view: View, node: Node) -> Rewrite | Refusal | None:
    """Conv → BatchNormalization becomes one Conv. Weights are copied, so a Conv that shares them keeps its own."""
    conv = view.producer(node.inputs[0])
    if conv is None or conv.op != "Conv" or conv.domain:
        return None
    if training := _training_mode(view, node):
        return training
    if view.readers(conv.output) > 1:
        return Refusal("second reader", f"the Conv's result {conv.output.name!r} is also read elsewhere, unscaled")
    values = (*conv.inputs[1:], *node.inputs[1:])
    if missing := [value for value in values if value is not None and view.constant(value) is None]:
        return Refusal("constant", f"{missing[0].name!r} can change between calls")
    weight, bias = view.constant(conv.inputs[1]), view.constant(conv.inputs[2]) if len(conv.inputs) > 2 else None
    scale, shift = _scale_and_shift(view, node)
    if weight is None or len(scale) != len(weight):
        return Refusal("channels", f"{len(scale)} statistics for the Conv's output channels")
    with np.errstate(all="ignore"):
        factor = scale.reshape(-1, *(1,) * (weight.ndim - 1))
        new_weight = (weight * factor).astype(weight.dtype)
        new_bias = (shift if bias is None else bias * scale + shift).astype(weight.dtype)
    if not (np.isfinite(new_weight).all() and np.isfinite(new_bias).all()):
        return Refusal("finite", "the scaled weights would hold NaN or infinity")
    return _conv(view, conv, node, new_weight, new_bias)


def _training_mode(view: View, node: Node) -> Refusal | None:
    """ONNX BatchNormalization: an attribute since opset 14, before that the presence of further outputs."""
    further = any(value is not None for value in node.outputs[1:])
    if node.attrs.get("training_mode", 0) or (view.opset < 14 and further):
        return Refusal("training mode", "it normalises by the statistics of each batch")
    if view.opset < 9 and node.attrs.get("spatial", 1) == 0:
        return Refusal("per element", "spatial=0 keeps statistics for each position, a Conv has one weight a channel")
    return None


def _scale_and_shift(view: View, node: Node) -> tuple[Array, Array]:
    """s and β − s·μ for each channel, in double precision, so that only the final rounding is left."""
    arrays = (view.constant(value) for value in node.inputs[1:5])
    gamma, beta, mean, var = (np.asarray(array, dtype=np.float64) for array in arrays)
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(var + node.attrs.get("epsilon", 1e-5))
        return scale, beta - scale * mean


def _conv(view: View, conv: Node, node: Node, weight: Array, bias: Array) -> Rewrite:
    """The Conv with new weights, in the place and under the output name of the BatchNormalization."""
    old = conv.inputs[1]
    base = old.name if old else conv.output.name
    names = view.fresh(f"{base}_folded"), view.fresh(f"{base}_folded_bias")
    values = tuple(Value(name, TensorType.of(array)) for name, array in zip(names, (weight, bias), strict=True))
    new = replace(conv, inputs=(conv.inputs[0], *values), outputs=(node.output,))
    return Rewrite(nodes=(new,), constants=dict(zip(names, (weight, bias), strict=True)))


AFFINE = Sweep("affine", {"BatchNormalization": (batch_norm_into_conv,)})
