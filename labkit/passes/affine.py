"""Affine algebra (spec §5.2): what only scales and shifts channels is absorbed by weights next to it.

BN(W·x + b) = s·(W·x + b − μ) + β with s = γ/√(σ² + ε), which is a Conv with weights s·W and bias s·(b − μ) + β; a Mul
or an Add of one constant a channel is the same with fewer terms. This is algebra, not constant folding: the Conv still
depends on the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from labkit.graph import Array, Node, Shape, Value
from labkit.ops.call import product
from labkit.passes.reshaping import RESHAPES
from labkit.passes.rewriting import Refusal, Rewrite, Table, View
from labkit.passes.weights import ABSORBERS, Absorber, Affine, absorb_before, gemm_before, scale_before

_MOVERS = {"Transpose", *RESHAPES}
_ARITHMETIC = {"Mul", "Div", "Add", "Sub", "Sum", "Neg"}
_FLOATS = {"float16", "float32", "float64", "bfloat16"}


@dataclass(frozen=True)
class _Found:
    """A node that is affine in ``x``."""

    x: Value
    affine: Affine


def affine_into_producer(view: View, node: Node) -> Rewrite | Refusal | None:
    """Conv, ConvTranspose, Gemm, MatMul or BatchNormalization → affine becomes one node of the first kind.

    Weights are copied, so a node that shares them keeps its own. Nodes between the two that only move elements, such as
    a Squeeze or a Transpose, stay behind what has absorbed the map, as long as its values still meet their channels.
    """
    for x in dict.fromkeys(value for value in node.inputs if value):
        movers = _movers(view, x)
        made = movers[0].inputs[0] if movers else x
        producer = view.producer(made)
        absorber = ABSORBERS.get(producer.op) if producer and not producer.domain else None
        if producer is None or absorber is None or made != producer.output:
            continue  # nobody with weights, or the statistics of a batch
        axis = absorber.channel_axis(producer)
        for mover in movers:
            axis = None if axis is None else _axis_behind(mover, axis)
        found = None if axis is None else _affine(view, node, x, axis)
        if isinstance(found, Refusal):
            return found
        if found is not None:
            return _second_reader(view, producer) or _absorbed(view, producer, absorber, found.affine, movers, node)
    return None


def _absorbed(
    view: View, producer: Node, absorber: Absorber, affine: Affine, movers: Sequence[Node], last: Node
) -> Rewrite | Refusal | None:
    """The producer with the map in its weights and the movers behind it, in the place of ``last``."""
    if not movers:
        return absorber.absorb(view, producer, affine, last)
    first = Value(view.fresh(f"{producer.output.name}_scaled"), producer.output.type)
    found = absorber.absorb(view, producer, affine, replace(last, outputs=(first,)))
    if not isinstance(found, Rewrite):
        return found
    return found._replace(nodes=(*found.nodes, *_moved(view, movers, first, last)))


def _movers(view: View, x: Value) -> list[Node]:
    """The Transposes and reshapes that stand in a row in front of a value and have no other reader, the first first."""
    found: list[Node] = []
    node = view.producer(x)
    while node is not None and node.op in _MOVERS and not node.domain and view.readers(node.output) == 1:
        found.insert(0, node)
        node = view.producer(node.inputs[0])
    return found


def _axis_behind(mover: Node, axis: int) -> int | None:
    """Where an axis stands behind a Transpose or a reshape; None when it is taken apart or joined with others."""
    x, out = mover.uses[0].shape, mover.output.shape
    if x is None or out is None:
        return None
    if mover.op == "Transpose":
        return tuple(mover.attrs.get("perm") or reversed(range(len(x)))).index(axis)
    around = (product(x[:axis]), x[axis], product(x[axis + 1 :]))
    places = (
        place for place in range(len(out)) if (product(out[:place]), out[place], product(out[place + 1 :])) == around
    )
    return next(places, None)


def _moved(view: View, movers: Sequence[Node], x: Value, last: Node) -> Iterator[Node]:
    """The movers once more, on another value, the last one in the place of ``last``."""
    for mover in movers:
        is_last = mover is movers[-1]
        name = last.output.name if is_last else view.fresh(f"{mover.output.name}_scaled")
        out = Value(name, last.output.type if is_last else mover.output.type)
        yield replace(mover, inputs=(x, *mover.inputs[1:]), outputs=(out,))
        x = out


def affine_into_conv_behind(view: View, conv: Node) -> Rewrite | Refusal | None:
    """affine → Conv becomes one Conv, when no padding stands between them: padding is not scaled or shifted."""
    x = conv.inputs[0]
    node = view.producer(x)
    if x is None or node is None or node.domain:
        return None
    found = _found(view, node, 1)
    if found is None or isinstance(found, Refusal):
        return found if node.op == "BatchNormalization" else None
    return _second_reader(view, node) or absorb_before(view, node, found.x, found.affine, conv)


def scale_into_product_behind(view: View, product: Node) -> Rewrite | Refusal | None:
    """x·s, one value a column, then a MatMul by a constant: its matrix takes the scale into its rows."""
    x = product.inputs[0]
    node = view.producer(x)
    if x is None or x.shape is None or node is None or node.domain or node.op not in ("Mul", "Div"):
        return None
    found = _found(view, node, len(x.shape) - 1)
    if found is None or isinstance(found, Refusal):
        return found
    return _second_reader(view, node) or scale_before(view, found.x, found.affine.scale, product)


def affine_into_gemm_behind(view: View, gemm: Node) -> Rewrite | Refusal | None:
    """affine → Gemm, by a constant matrix, becomes one Gemm: the shift, too, goes through the matrix into the bias."""
    node = view.producer(gemm.inputs[0])
    if node is None or node.domain or gemm.attrs.get("transA", 0):
        return None
    found = _found(view, node, 1)
    if found is None or isinstance(found, Refusal):
        return found if node.op == "BatchNormalization" else None
    return _second_reader(view, node) or gemm_before(view, found.x, found.affine, gemm)


def _found(view: View, node: Node, axis: int) -> _Found | Refusal | None:
    """The node as scale and shift of its one input that is not constant."""
    source = next((value for value in node.inputs if value and view.constant(value) is None), None)
    return None if source is None else _affine(view, node, source, axis)


def _second_reader(view: View, producer: Node) -> Refusal | None:
    if view.readers(producer.output) <= 1:
        return None
    return Refusal("second reader", f"{producer.output.name!r} is also read elsewhere, as it was before")


def _affine(view: View, node: Node, x: Value, axis: int) -> _Found | Refusal | None:
    """The node as scale and shift along one axis of x, or why it cannot be, or None where it is no such node."""
    if x.dtype not in _FLOATS:
        return None
    if node.op == "BatchNormalization":
        return _batch_norm(view, node, x, axis)
    if node.op == "Neg":
        return _Found(x, Affine(-np.ones(1), np.zeros(1)))
    if len(node.inputs) != 2:
        return None
    first = node.inputs[0] == x
    other = node.inputs[1 if first else 0]
    array = view.constant(other)
    if array is None or x.shape is None:
        return None
    channel = _per_channel(array, x.shape, axis) if x.shape == node.output.shape else None
    if channel is None:
        return Refusal(
            "per channel", f"a constant of shape {array.shape} is not one value for each channel of axis {axis}"
        )
    one, zero = np.ones_like(channel), np.zeros_like(channel)
    with np.errstate(all="ignore"):
        match node.op, first:
            case ("Mul", _):
                return _Found(x, Affine(channel, zero))
            case ("Div", True):
                return _Found(x, Affine(1 / channel, zero))
            case ("Add" | "Sum", _):
                return _Found(x, Affine(one, channel))
            case ("Sub", True):
                return _Found(x, Affine(one, -channel))
            case ("Sub", False):
                return _Found(x, Affine(-one, channel))
    return None  # another operator; or constant / x, which is no multiple of x


def _per_channel(array: Array, shape: Shape, axis: int) -> Array | None:
    """The constant as one value a channel (or one for all), in double precision; None when it varies otherwise."""
    dims = (1,) * (len(shape) - array.ndim) + array.shape
    if any(dim != 1 for place, dim in enumerate(dims) if place != axis):
        return None
    return np.asarray(array, dtype=np.float64).ravel()


def _batch_norm(view: View, node: Node, x: Value, axis: int) -> _Found | Refusal | None:
    if node.inputs[0] != x or axis != 1:
        return None
    further = any(value is not None for value in node.outputs[1:])
    if node.attrs.get("training_mode", 0) or (view.opset < 14 and further):
        return Refusal("training mode", "it normalises by the statistics of each batch")
    if view.opset < 9 and node.attrs.get("spatial", 1) == 0:
        return Refusal("per element", "spatial=0 keeps statistics for each position, not for each channel")
    arrays = [view.constant(value) for value in node.inputs[1:5]]
    if missing := [v for v, array in zip(node.inputs[1:5], arrays, strict=True) if v and array is None]:
        return Refusal("constant", f"{missing[0].name!r} can change between calls")
    gamma, beta, mean, var = (np.asarray(array, dtype=np.float64) for array in arrays)
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(var + node.attrs.get("epsilon", 1e-5))
        return _Found(x, Affine(scale, beta - scale * mean))


AFFINE: Table = {
    **dict.fromkeys(("BatchNormalization", *_ARITHMETIC), (affine_into_producer,)),
    **dict.fromkeys(("Conv", "ConvTranspose"), (affine_into_conv_behind,)),
    "MatMul": (scale_into_product_behind,),
    "Gemm": (affine_into_gemm_behind,),
}
