"""Rewrites without guards, as one writes them in a hurry: right on the graph in mind, wrong on the next one.

Lesson 04 runs them on the traps of ``passes/guards.py``, to show what each guard is for. No level of optimize() uses
them. A rewritten node leaves an Identity behind, so that all names stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from typing import TypeVar

import numpy as np

from labkit.graph import Array, Graph, Node, TensorType, Value
from labkit.passes.rewriting import Pass

Found = TypeVar("Found")


class _NoPatternError(Exception):
    """The graph has no nodes that the rewrite is about."""


def _hasty(rewrite: Pass) -> Pass:
    """A rewrite that hands on a graph without its pattern as it is."""

    @wraps(rewrite)
    def careless(graph: Graph) -> Graph:
        try:
            return rewrite(graph)
        except _NoPatternError:
            return graph

    return careless


@_hasty
def batch_norm(graph: Graph) -> Graph:
    """Conv → BatchNormalization is a Conv with other weights, which are written over the old ones."""
    norm, conv = _pair(graph, "BatchNormalization", "Conv")
    weight, gamma, beta, mean, var = (graph.constants[v.name] for v in (conv.uses[1], *norm.uses[1:5]))
    scale = gamma / np.sqrt(var + norm.attrs.get("epsilon", 1e-5))
    return _with_weights(graph, norm, conv, weight * scale.reshape(-1, 1, 1, 1), beta - mean * scale)


@_hasty
def scale(graph: Graph) -> Graph:
    """Conv → Mul by as many numbers as there are channels is a Conv with scaled weights."""
    times, conv = _pair(graph, "Mul", "Conv")
    weight, factor = graph.constants[conv.uses[1].name], graph.constants[times.uses[1].name]
    return _with_weights(graph, times, conv, weight * factor.reshape(-1, 1, 1, 1), None)


@_hasty
def shift(graph: Graph) -> Graph:
    """Add → Conv is a Conv with a bias: W·(x + t) = W·x + ΣW·t."""
    conv, add = _pair(graph, "Conv", "Add")
    weight, shifts = graph.constants[conv.uses[1].name], graph.constants[add.uses[1].name]
    bias = (weight * shifts.reshape(1, -1, 1, 1)).sum(axis=(1, 2, 3))
    return _with_bias(_without(graph, add, add.uses[0]), conv, bias)


@_hasty
def unit(graph: Graph) -> Graph:
    """What is added to 0, or taken from it, stays as it is."""
    node, constant = _where(graph, {"Add", "Sub"}, lambda array: not array.any())
    return _without(graph, node, next(value for value in node.uses if value.name != constant))


@_hasty
def one(graph: Graph) -> Graph:
    """x · 1 is x: whoever has the product among its inputs reads x instead."""
    node, constant = _where(graph, {"Mul"}, lambda array: bool((array == 1).all()))
    x = next(value for value in node.uses if value.name != constant)
    renamed = {node.output.name: x}
    others = [n for n in graph.nodes if n is not node]
    inputs = [tuple(value and renamed.get(value.name, value) for value in other.inputs) for other in others]
    nodes = tuple(replace(other, inputs=read) for other, read in zip(others, inputs, strict=True))
    return replace(graph, nodes=nodes)


@_hasty
def zero(graph: Graph) -> Graph:
    """x · 0 is 0."""
    node, _ = _where(graph, {"Mul"}, lambda array: not array.any())
    zeros = np.zeros([dim for dim in node.output.shape or () if isinstance(dim, int)], node.output.dtype)
    known = replace(graph, constants={**graph.constants, "zeros": zeros})
    return _without(known, node, Value("zeros", TensorType.of(zeros)))


@_hasty
def dropout(graph: Graph) -> Graph:
    """Dropout at inference hands on its input, and nothing else."""
    node = _first(node for node in graph.nodes if node.op == "Dropout")
    return _without(graph, node, node.uses[0])


@_hasty
def cast_back(graph: Graph) -> Graph:
    """A Cast there and a Cast back is nothing."""
    return _undone(graph, "Cast")


@_hasty
def transpose_back(graph: Graph) -> Graph:
    """Two Transposes in a row are nothing."""
    return _undone(graph, "Transpose")


@_hasty
def reshape(graph: Graph) -> Graph:
    """A Reshape that keeps the number of elements changes nothing."""
    types = [(node, node.uses[0].type, node.output.type) for node in graph.nodes if node.op == "Reshape"]
    node = _first(node for node, old, new in types if old and new and old.size == new.size)
    return _without(graph, node, node.uses[0])


@_hasty
def pad_into_pool(graph: Graph) -> Graph:
    """Pad → MaxPool is a MaxPool that pads."""
    pool, pad = _pair(graph, "MaxPool", "Pad")
    amounts = graph.constants[pad.uses[1].name].tolist()
    pads = (*amounts[2:4], *amounts[6:8])
    padded = replace(pool, inputs=(pad.uses[0],), attrs={**pool.attrs, "pads": pads})
    return replace(graph, nodes=tuple(padded if node is pool else node for node in graph.nodes if node is not pad))


# By the guard that each lacks, as passes/guards.py names them.
HASTY: Mapping[str, Pass] = {
    **dict.fromkeys(
        ("second reader", "graph output", "shared weight", "training mode", "overridable constant"), batch_norm
    ),
    "padding": shift,
    "per channel": scale,
    "broadcast": unit,
    "order of operands": unit,
    "mask is read": dropout,
    "captured value": one,
    "lossy cast": cast_back,
    "padding value": pad_into_pool,
    "same shape": reshape,
    "inverse permutation": transpose_back,
    "not a number": zero,
}


def _pair(graph: Graph, second: str, first: str) -> tuple[Node, Node]:
    """A node of operator ``second`` that reads one of operator ``first``, and that one."""
    pairs = ((node, graph.producers.get(node.uses[0].name)) for node in graph.nodes if node.op == second)
    return _first((node, producer) for node, producer in pairs if producer is not None and producer.op == first)


def _where(graph: Graph, ops: set[str], holds: Callable[[Array], bool]) -> tuple[Node, str]:
    """A node with a constant operand of which ``holds`` is true, and the constant's name."""
    found = ((n, v.name) for n in graph.nodes if n.op in ops for v in n.uses if v.name in graph.constants)
    return _first((node, name) for node, name in found if holds(graph.constants[name]))


def _first(found: Iterable[Found]) -> Found:
    for one in found:
        return one
    raise _NoPatternError


def _undone(graph: Graph, op: str) -> Graph:
    second, first = _pair(graph, op, op)
    return _without(graph, second, first.uses[0])


def _without(graph: Graph, node: Node, value: Value) -> Graph:
    """The node handing on ``value``, and nothing else."""
    passing = Node("Identity", (value,), node.outputs[:1])
    return replace(graph, nodes=tuple(passing if other is node else other for other in graph.nodes))


def _with_weights(graph: Graph, last: Node, conv: Node, weight: Array, bias: Array | None) -> Graph:
    """The Conv's weights overwritten, and the node behind it handing on what it gets."""
    name = conv.uses[1].name
    changed = replace(graph, constants={**graph.constants, name: weight.astype(np.float32)})
    changed = changed if bias is None else _with_bias(changed, conv, bias)
    return _without(changed, last, conv.output)


def _with_bias(graph: Graph, conv: Node, bias: Array) -> Graph:
    array = bias.astype(np.float32)
    biased = replace(
        next(node for node in graph.nodes if node.output == conv.output),
        inputs=(*conv.uses[:2], Value("bias", TensorType.of(array))),
    )
    nodes = tuple(biased if node.output == conv.output else node for node in graph.nodes)
    return replace(graph, nodes=nodes, constants={**graph.constants, "bias": array})
