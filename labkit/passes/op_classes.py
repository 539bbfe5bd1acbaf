"""What an operator may be fused with, by what one of its output elements needs of its inputs.

Source: the operator patterns of TVM (Chen et al., OSDI 2018, §3: injective, reduction, complex-out-fusable, opaque).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from labkit.graph import Array, Node, Value
from labkit.lifetimes import ELEMENTWISE


class OpClass(Enum):
    """The class of an operator."""

    ELEMENTWISE = "one element of each input, the one at its own place; or a broadcast one"
    REDUCTION = "a whole row of the input: every element along some axes"
    ANCHOR = "many elements, but the output comes tile by tile, and elementwise operators may work on each tile"
    OPAQUE = "anything; the kernel stays alone"


_NAMES = {
    OpClass.REDUCTION: """
        GlobalAveragePool GlobalMaxPool LayerNormalization LogSoftmax ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp
        ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Softmax""",
    OpClass.ANCHOR: "AveragePool Conv ConvTranspose Gemm LpPool MatMul MaxPool",
}
_CLASSES = dict.fromkeys(ELEMENTWISE, OpClass.ELEMENTWISE)
_CLASSES |= {name: kind for kind, names in _NAMES.items() for name in names.split()}


def op_class(node: Node) -> OpClass:
    """The class of a node; opaque unless all it makes is one tensor of known type.

    >>> op_class(Node("If", (), ()))
    <OpClass.OPAQUE: 'anything; the kernel stays alone'>
    """
    tensors = all(value.type is not None and value.shape is not None for value in (*node.uses, *node.results))
    if node.domain or not tensors or len(node.results) != 1 or node.outputs[0] is None:
        return OpClass.OPAQUE
    if node.attrs.get("training_mode"):
        return OpClass.OPAQUE  # its statistics are those of the whole batch
    return _CLASSES.get(node.op, OpClass.OPAQUE)


def reduced_axes(node: Node, opset: int, constant: Callable[[Value | None], Array | None]) -> tuple[int, ...] | None:
    """The axes of its input that a reduction runs over; None when they are not known before it runs."""
    source = node.uses[0].shape
    if source is None:
        return None
    rank = len(source)
    if node.op.startswith("Global"):
        return tuple(range(2, rank))
    if node.op.startswith("Reduce"):
        return _listed_axes(node, rank, constant)
    first = node.attrs.get("axis", -1 if opset >= 13 or node.op == "LayerNormalization" else 1) % rank
    one = node.op != "LayerNormalization" and opset >= 13  # before, Softmax took all axes from this one on
    return (first,) if one else tuple(range(first, rank))


def _listed_axes(node: Node, rank: int, constant: Callable[[Value | None], Array | None]) -> tuple[int, ...] | None:
    axes = node.attrs.get("axes", ())
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        array = constant(node.inputs[1])
        if array is None:
            return None
        axes = tuple(array.tolist())
    if not axes and node.attrs.get("noop_with_empty_axes"):
        return None
    return tuple(sorted(axis % rank for axis in axes)) or tuple(range(rank))
