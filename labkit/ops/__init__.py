"""The one op table: a line an operator, and three readings of it: types, arrays, FLOPs.

Where an operator changed between opsets, its functions ask the file's opset. An operator without a row still runs
(ONNX's reference implementation) and still has types (ONNX's shape inference): unknown is slow, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labkit.graph import Node
from labkit.ops import compute, flops, infer_compute, infer_move, move, transposed
from labkit.ops.call import Call, Types
from labkit.ops.compute import Operator
from labkit.ops.flops import Flops


@dataclass(frozen=True)
class Op:
    """One row: how an operator is typed, run and counted."""

    infer: Callable[[Call], Types]
    run: Operator
    flops: Flops


def _elementwise(function: Callable[..., object], operations: int = 1) -> Op:
    return Op(infer_compute.broadcast, compute.elementwise(function), flops.per_output(operations))


TABLE: dict[str, Op] = {
    # elementwise
    "Add": _elementwise(np.add),
    "Sub": _elementwise(np.subtract),
    "Mul": _elementwise(np.multiply),
    "Div": _elementwise(compute.divide),
    "Sum": Op(infer_compute.broadcast, compute.elementwise(compute.total), flops.per_extra_input),
    "Mean": Op(infer_compute.broadcast, compute.elementwise(compute.mean), flops.per_extra_input),
    "Max": Op(infer_compute.broadcast, compute.elementwise(compute.largest), flops.per_extra_input),
    "Min": Op(infer_compute.broadcast, compute.elementwise(compute.smallest), flops.per_extra_input),
    "Relu": Op(infer_compute.same, compute.relu, flops.per_output(1)),
    "Sigmoid": _elementwise(compute.sigmoid, 4),
    "Clip": Op(infer_compute.same, compute.clip, flops.per_output(2)),
    # windows
    "Conv": Op(infer_compute.conv, compute.conv, flops.conv),
    "ConvTranspose": Op(transposed.infer, transposed.run, flops.conv_transpose),
    "MaxPool": Op(infer_compute.pool, compute.max_pool, flops.pool),
    "AveragePool": Op(infer_compute.pool, compute.average_pool, flops.pool),
    "GlobalAveragePool": Op(infer_compute.global_pool, compute.global_average_pool, flops.global_pool),
    "GlobalMaxPool": Op(infer_compute.global_pool, compute.global_max_pool, flops.global_pool),
    # normalisation
    "BatchNormalization": Op(infer_compute.batch_norm, compute.batch_norm, flops.per_output(2)),
    "LRN": Op(infer_compute.same, compute.lrn, flops.lrn),
    "Softmax": Op(infer_compute.same, compute.softmax, flops.per_output(4)),
    # products
    "Gemm": Op(infer_compute.gemm, compute.gemm, flops.gemm),
    "MatMul": Op(infer_compute.matmul, compute.matmul, flops.matmul),
    # data movement
    "Identity": Op(infer_compute.same, move.identity, flops.none),
    "Dropout": Op(infer_compute.dropout, compute.dropout, flops.none),
    "Reshape": Op(infer_move.reshape, move.reshape, flops.none),
    "Flatten": Op(infer_move.flatten, move.flatten, flops.none),
    "Transpose": Op(infer_move.transpose, move.transpose, flops.none),
    "Concat": Op(infer_move.concat, move.concat, flops.none),
    "Squeeze": Op(infer_move.squeeze, move.squeeze, flops.none),
    "Unsqueeze": Op(infer_move.unsqueeze, move.unsqueeze, flops.none),
    "Pad": Op(infer_move.pad, move.pad, flops.none),
    "ConstantOfShape": Op(infer_move.constant_of_shape, move.constant_of_shape, flops.none),
}


def row(node: Node) -> Op | None:
    """The row of a node's operator, or None when the table has none (always so for another domain than ONNX's own)."""
    return TABLE.get(node.op) if node.domain in ("", "ai.onnx") else None
