"""Floating-point operations of a node: a multiply and an add are two. Moving data costs none; a dim that is no number
counts as 1."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TypeAlias

from labkit.graph import Node, Value

Flops: TypeAlias = Callable[[Node], int]


def none(node: Node) -> int:
    return 0


def per_output(operations: int) -> Flops:
    """A fixed number of operations for each element of the first output."""
    return lambda node: operations * _size(node.outputs[0])


def per_extra_input(node: Node) -> int:
    """Sum of n tensors: n − 1 adds for each output element."""
    return (len(node.inputs) - 1) * _size(node.outputs[0])


def conv(node: Node) -> int:
    """2·M·(C/g)·K for each output position, and one add for a bias."""
    weight = node.inputs[1]
    taps = prod(dim for dim in (weight.shape or ())[1:] if isinstance(dim, int)) if weight else 0
    return _size(node.outputs[0]) * (2 * taps + _has(node, 2))


def conv_transpose(node: Node) -> int:
    """2·(M/g)·K for each input element, and one add for a bias."""
    weight = node.inputs[1]
    taps = prod(dim for dim in (weight.shape or ())[1:] if isinstance(dim, int)) if weight else 0
    return 2 * taps * _size(node.inputs[0]) + _has(node, 2) * _size(node.outputs[0])


def matmul(node: Node) -> int:
    """2·K for each output element, K being the last axis of the first input."""
    return 2 * _size(node.outputs[0]) * _inner(node, -1)


def gemm(node: Node) -> int:
    inner = _inner(node, 0 if node.attrs.get("transA") else -1)
    return _size(node.outputs[0]) * (2 * inner + _has(node, 2))


def pool(node: Node) -> int:
    """One operation for each tap of each window."""
    return _size(node.outputs[0]) * int(prod(node.attrs.get("kernel_shape", ())))


def global_pool(node: Node) -> int:
    """One add for each input element."""
    return _size(node.inputs[0])


def lrn(node: Node) -> int:
    """A square for each element, size − 1 adds, then scale, bias, power and quotient."""
    return _size(node.outputs[0]) * int(node.attrs.get("size", 1) + 4)


def _size(value: Value | None) -> int:
    return value.type.size if value is not None and value.type is not None else 0


def _has(node: Node, index: int) -> int:
    return int(len(node.inputs) > index and node.inputs[index] is not None)


def _inner(node: Node, axis: int) -> int:
    shape = node.inputs[0].shape if node.inputs[0] else None
    dim = shape[axis] if shape else 1
    return dim if isinstance(dim, int) else 1
