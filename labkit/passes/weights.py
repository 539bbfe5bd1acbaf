"""How each operator with weights takes up an affine map of its output channels: y → scale·y + shift."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labkit.graph import Array, Node, TensorType, Value
from labkit.passes.rewriting import Refusal, Rewrite, View

_QUIET = np.errstate(all="ignore")  # what is not finite is refused, not warned of


@dataclass(frozen=True)
class Affine:
    """scale·y + shift, one value a channel or one for all, in double precision: only the final rounding is left."""

    scale: Array
    shift: Array

    def spread(self, channels: int) -> Affine | None:
        """One value for each of so many channels; None when the numbers do not fit."""
        if not {self.scale.size, self.shift.size} <= {1, channels}:
            return None
        parts = (self.scale, self.shift)
        return Affine(*(part if part.size == channels else np.repeat(part, channels) for part in parts))


@dataclass(frozen=True)
class Absorber:
    """``channel_axis(node)`` of the output; ``absorb(view, node, affine, last)`` is the node with new weights, in the
    place and under the output name of ``last``."""

    channel_axis: Callable[[Node], int | None]
    absorb: Callable[[View, Node, Affine, Node], Rewrite | Refusal | None]


@_QUIET
def _convolution(view: View, conv: Node, affine: Affine, last: Node) -> Rewrite | Refusal | None:
    """Conv has weights (M, C/g, …), ConvTranspose (C, M/g, …) with the group in front of the output channel."""
    arrays = _constants(view, conv)
    if isinstance(arrays, Refusal):
        return arrays
    weight, bias = arrays[1], arrays.get(2)
    groups = conv.attrs.get("group", 1)
    transposed = conv.op == "ConvTranspose"
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    spread = affine.spread(channels)
    if spread is None:
        return Refusal("channels", f"{affine.scale.size} values for {channels} output channels")
    ones = (1,) * (weight.ndim - 2)
    if transposed:
        by_group = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
        scaled = _times(by_group, spread.scale.reshape(groups, 1, -1, *ones)).reshape(weight.shape)
    else:
        scaled = _times(weight, spread.scale.reshape(-1, 1, *ones))
    shifted = spread.shift if bias is None else bias * spread.scale + spread.shift
    return _with_weights(view, conv, last, {1: scaled, 2: shifted})


@_QUIET
def _gemm(view: View, gemm: Node, affine: Affine, last: Node) -> Rewrite | Refusal | None:
    """Gemm is α·A·B + β·C: α, β and the map all go into B and C."""
    arrays = _constants(view, gemm)
    if isinstance(arrays, Refusal):
        return arrays
    weight, bias = arrays[1], arrays.get(2, np.zeros(1))
    along_rows = bool(gemm.attrs.get("transB", 0))
    spread = affine.spread(weight.shape[0 if along_rows else 1])
    if spread is None:
        return Refusal("channels", f"{affine.scale.size} values for a weight of shape {weight.shape}")
    scale = gemm.attrs.get("alpha", 1.0) * spread.scale
    scaled = _times(weight, scale[:, None] if along_rows else scale)
    shifted = gemm.attrs.get("beta", 1.0) * np.asarray(bias, dtype=np.float64) * spread.scale + spread.shift
    attrs = {name: value for name, value in gemm.attrs.items() if name not in ("alpha", "beta")}
    return _with_weights(view, replace(gemm, attrs=attrs), last, {1: scaled, 2: shifted})


@_QUIET
def _matmul(view: View, matmul: Node, affine: Affine, last: Node) -> Rewrite | Refusal | None:
    """A scale goes into the weight; a shift needs a bias, which only a product of matrices has, as Gemm."""
    weight = view.constant(matmul.inputs[1])
    if weight is None or weight.ndim != 2:
        return None
    spread = affine.spread(weight.shape[1])
    if spread is None:
        return Refusal("channels", f"{affine.scale.size} values for a weight of shape {weight.shape}")
    if not spread.shift.any():
        return _with_weights(view, matmul, last, {1: weight * spread.scale})
    x = matmul.inputs[0]
    if x is None or x.type is None or x.type.rank != 2:
        return Refusal("rank", "a product with a bias is a Gemm, which multiplies matrices only")
    return _with_weights(view, replace(matmul, op="Gemm"), last, {1: weight * spread.scale, 2: spread.shift})


@_QUIET
def _batch_norm(view: View, norm: Node, affine: Affine, last: Node) -> Rewrite | Refusal | None:
    """BatchNormalization at inference scales and shifts already: γ and β take the map up, the statistics stay."""
    if norm.attrs.get("training_mode", 0) or any(value is not None for value in norm.outputs[1:]):
        return Refusal("training mode", "it also returns the statistics of the batch")
    arrays = _constants(view, norm, only=(1, 2))
    if isinstance(arrays, Refusal):
        return arrays
    spread = affine.spread(arrays[1].size)
    if spread is None:
        return Refusal("channels", f"{affine.scale.size} values for {arrays[1].size} channels")
    new = {1: arrays[1] * spread.scale, 2: arrays[2] * spread.scale + spread.shift}
    return _with_weights(view, norm, last, new)


@_QUIET
def absorb_before(view: View, first: Node, x: Value, affine: Affine, conv: Node) -> Rewrite | Refusal | None:
    """A Conv that reads scale·x + shift, as a Conv that reads x: W·(s·x + t) + b = (W·s)·x + (b + ΣW·t)."""
    arrays = _constants(view, conv)
    if isinstance(arrays, Refusal):
        return arrays
    if conv.op == "ConvTranspose":
        return _before_transposed(view, conv, x, affine, arrays)
    weight, bias, groups = arrays[1], arrays.get(2, np.zeros(1)), conv.attrs.get("group", 1)
    spread = affine.spread(weight.shape[1] * groups)
    if spread is None:
        return Refusal("channels", f"{affine.scale.size} values for {weight.shape[1] * groups} input channels")
    padded = any(conv.attrs.get("pads", ())) or conv.attrs.get("auto_pad", "NOTSET").startswith("SAME")
    if padded and spread.shift.any():
        return Refusal("padding", "zeros are padded behind the shift; moved into the bias it would reach them too")
    by_group = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    along = (groups, 1, -1, *(1,) * (weight.ndim - 2))
    scaled = _times(by_group, spread.scale.reshape(along)).reshape(weight.shape)
    added = (by_group * spread.shift.reshape(along)).sum(axis=tuple(range(2, by_group.ndim))).ravel()
    replaced = replace(conv, inputs=(x, *conv.inputs[1:]))
    return _with_weights(view, replaced, conv, {1: scaled, 2: bias + added})


def _before_transposed(
    view: View, conv: Node, x: Value, affine: Affine, arrays: Mapping[int, Array]
) -> Rewrite | Refusal | None:
    """A ConvTranspose has weights (C, M/g, …). Only a scale can go into them: near the border fewer shifts add up."""
    weight = arrays[1]
    spread = affine.spread(weight.shape[0])
    if spread is None:
        return Refusal("channels", f"{affine.scale.size} values for {weight.shape[0]} input channels")
    if spread.shift.any():
        return Refusal("shift", "near the border fewer values add up, so the shift is not the same for every pixel")
    scaled = _times(weight, spread.scale.reshape(-1, *(1,) * (weight.ndim - 1)))
    return _with_weights(view, replace(conv, inputs=(x, *conv.inputs[1:])), conv, {1: scaled})


@_QUIET
def scale_before(view: View, x: Value, scale: Array, product: Node) -> Rewrite | Refusal:
    """A MatMul that reads s·x, as one that reads x: (s·x)·W = x·(s·W)."""
    arrays = _constants(view, product)
    if isinstance(arrays, Refusal):
        return arrays
    weight = arrays[1]
    factor = scale if weight.ndim == 1 else scale[:, None]
    replaced = replace(product, inputs=(x, product.inputs[1]))
    return _with_weights(view, replaced, product, {1: _times(weight, factor)})


@_QUIET
def gemm_before(view: View, x: Value, affine: Affine, gemm: Node) -> Rewrite | Refusal:
    """A Gemm that reads s·x + t, as one that reads x: α(s·x + t)·B + βC = αx·(s·B) + (βC + αt·B)."""
    arrays = _constants(view, gemm)
    if isinstance(arrays, Refusal):
        return arrays
    flipped, weight, bias = bool(gemm.attrs.get("transB", 0)), arrays[1], arrays.get(2, np.zeros(1))
    spread = affine.spread(weight.shape[1 if flipped else 0])
    if spread is None:
        return Refusal("channels", f"{affine.scale.size} values for a weight of shape {weight.shape}")
    scaled = _times(weight, spread.scale if flipped else spread.scale[:, None])
    through = spread.shift @ (weight.T if flipped else weight)
    shifted = gemm.attrs.get("beta", 1.0) * bias + gemm.attrs.get("alpha", 1.0) * through
    attrs = {name: value for name, value in gemm.attrs.items() if name != "beta"}
    replaced = replace(gemm, inputs=(x, *gemm.inputs[1:]), attrs=attrs)
    return _with_weights(view, replaced, gemm, {1: scaled, 2: shifted})


def _times(weight: Array, factor: Array) -> Array:
    """The product in the precision of the weight, which is the very same for a factor of ones."""
    return weight if (factor == 1).all() else np.asarray(weight * factor.astype(weight.dtype))


def _constants(view: View, node: Node, only: tuple[int, ...] | None = None) -> dict[int, Array] | Refusal:
    """The parameters of a node (all inputs but the first), or which of them a caller can change. The weight keeps its
    precision, half becomes single: it is large, and meets one factor. The rest is small and comes in double precision.
    """
    found = {}
    for index, value in enumerate(node.inputs):
        if value is None or index == 0 or (only is not None and index not in only):
            continue
        array = view.constant(value)
        if array is None:
            return Refusal("constant", f"{value.name!r} can change between calls")
        single = index == 1 and len(node.inputs) < 5 and array.dtype != np.float64
        wide = np.float32 if single else np.float64
        found[index] = array if array.dtype == wide else array.astype(wide)
    return found


def _with_weights(view: View, node: Node, last: Node, new: Mapping[int, Array]) -> Rewrite | Refusal:
    """The node with new parameters, rounded once to the type of its first one."""
    old = node.inputs[1]
    dtype: Any = None if old is None else view.constant(old)
    dtype = np.dtype(np.float32) if dtype is None else dtype.dtype
    inputs = list(node.inputs)
    constants: dict[str, Array] = {}
    for index, array in new.items():
        if index < len(inputs) and array is view.constant(inputs[index]):
            continue
        rounded = array.astype(dtype, copy=False)
        if not np.isfinite(rounded).all():
            return Refusal("finite", "the new weights would hold NaN or infinity")
        inputs += [None] * (index + 1 - len(inputs))
        name = view.fresh(f"{old.name if old else node.output.name}_folded" + ("_bias" if index == 2 else ""))
        constants[name] = rounded
        inputs[index] = Value(name, TensorType.of(rounded))
    outputs = (last.outputs[0], *node.outputs[1:])
    return Rewrite((Node(node.op, tuple(inputs), outputs, node.attrs, node.domain, node.name),), constants)


def _last_axis(node: Node) -> int | None:
    rank = node.output.type.rank if node.output.type else None
    return None if rank is None else rank - 1


ABSORBERS: dict[str, Absorber] = {
    "Conv": Absorber(lambda node: 1, _convolution),
    "ConvTranspose": Absorber(lambda node: 1, _convolution),
    "Gemm": Absorber(lambda node: 1, _gemm),
    "MatMul": Absorber(_last_axis, _matmul),
    "BatchNormalization": Absorber(lambda node: 1, _batch_norm),
}
