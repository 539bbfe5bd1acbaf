"""Which kernels care about the order of axes, and how each becomes one that works in the machine's order.

A kernel on images exists on a machine in one order. Other kernels can be had in any: they name axes, or need none.
A third kind, such as Reshape and MatMul, takes elements as they lie: it keeps the file's order.
"""

from __future__ import annotations

from enum import Enum

from labkit.graph import Node, Value
from labkit.passes.layout_order import Order
from labkit.passes.permuted import REDUCTIONS
from labkit.passes.transposes import BINARY, UNARY

IMAGES = {
    "AveragePool", "Conv", "ConvInteger", "ConvTranspose", "DepthToSpace", "GlobalAveragePool", "GlobalLpPool",
    "GlobalMaxPool", "LpPool", "MaxPool", "QLinearConv", "Resize", "SpaceToDepth", "Upsample",
}  # fmt: skip
_BY_CHANNEL = {"BatchNormalization", "GroupNormalization", "InstanceNormalization", "LRN", "MeanVarianceNormalization"}
_BY_AXIS = {"ArgMax", "ArgMin", "CumSum", "DequantizeLinear", "Hardmax", "LayerNormalization", "LogSoftmax",
            "LpNormalization", "Pad", "QuantizeLinear", "Shape", "Size", "Slice", "Softmax", "Split", "TopK",
            *REDUCTIONS}  # fmt: skip
ALL_INPUTS = UNARY | BINARY | {"Concat"}  # the others read one tensor of data, and beside it weights, axes, sizes
ADAPTABLE = _BY_CHANNEL | _BY_AXIS | ALL_INPUTS


class Role(Enum):
    """How free a kernel is."""

    IMAGES = "exists in the machine's order only"
    ADAPTABLE = "exists in both orders"
    BARRIER = "exists in the file's order only"


def role(node: Node, order: Order) -> Role:
    """The role of a kernel, fused or not."""
    if not carried(node, order) or is_settled(node):
        return Role.BARRIER
    if any(_is(step, IMAGES) for step in node.steps):
        return Role.IMAGES
    return Role.ADAPTABLE if all(_is(step, ADAPTABLE) for step in node.steps) else Role.BARRIER


def _is(step: Node, ops: set[str]) -> bool:
    return step.op in ops and not step.domain


def is_settled(node: Node) -> bool:
    """Whether a fused kernel transposes what it reads first or what it makes last: it has chosen its order."""
    return node.body is not None and "Transpose" in (node.body.nodes[0].op, node.body.nodes[-1].op)


def data(node: Node) -> tuple[Value, ...]:
    """The inputs that hold data, rather than weights, axes or sizes. An operand with fewer axes than the result does
    not count: beside a video, N×C×D×H×W, its first of four axes stands for the channels."""
    if node.body is None:
        if node.op not in ALL_INPUTS:
            return tuple(value for value in node.inputs[:1] if value is not None)
        return tuple(value for value in node.inputs if value is not None and _rank(value) == _rank(node.output))
    read = {value.name for step in node.steps for value in data(step)}
    pairs = zip(node.inputs, node.body.inputs, strict=True)
    return tuple(outer for outer, inner in pairs if outer is not None and inner.name in read)


def _rank(value: Value) -> int | None:
    return value.type.rank if value.type else None


def carried(node: Node, order: Order) -> tuple[Value, ...]:
    """What a kernel would read and make in the machine's order."""
    return tuple(value for value in (*data(node), *node.results) if order.moves(value))
