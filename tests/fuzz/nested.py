"""A random graph moved into an inner graph: a branch of an If, or the body of a Loop that runs twice."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from labkit.graph import Graph, Node, TensorType, Value, read_only

BOOL = TensorType((), "bool")


def nested(graph: Graph, seed: int) -> Graph:
    """The graph with all its nodes inside one node, which captures the inputs and about half of the constants."""
    rng = random.Random(seed)
    make = rng.choice((_in_if, _in_loop))
    overridable = {name for name in graph.constants if name in graph.input_names}
    inside = {name for name in graph.constants if name not in overridable and rng.random() < 0.5}
    return make(graph, inside)


def _in_if(graph: Graph, inside: set[str]) -> Graph:
    condition = Value("condition", BOOL)
    results = tuple(replace(value, name=f"{value.name}_chosen") for value in graph.outputs)
    branch = _body(graph, inside, (), graph.outputs)
    branches = {"then_branch": branch, "else_branch": replace(branch, name="else")}
    node = Node("If", (condition,), results, branches)
    return _around(graph, inside, node, (*graph.inputs, condition))


def _in_loop(graph: Graph, inside: set[str]) -> Graph:
    turn, going = Value("turn", TensorType((), "int64")), Value("going", BOOL)
    still = Node("Identity", (going,), (Value("still", BOOL),))
    body = _body(graph, inside, (turn, going), (still.output, *graph.outputs), still)
    results = tuple(Value(f"{value.name}_stacked", _stacked(value.type)) for value in graph.outputs)
    twice = Value("twice", TensorType((), "int64"))
    counted = replace(graph, constants={**graph.constants, twice.name: read_only(np.array(2, np.int64))})
    return _around(counted, inside, Node("Loop", (twice, None), results, {"body": body}), graph.inputs)


def _stacked(kind: TensorType | None) -> TensorType | None:
    return kind and TensorType(None if kind.shape is None else (2, *kind.shape), kind.dtype)


def _body(graph: Graph, inside: set[str], inputs: tuple[Value, ...], outputs: tuple[Value, ...], *more: Node) -> Graph:
    """The nodes of the graph; an output that no node of them makes gets an Identity."""
    made = {value.name for node in graph.nodes for value in node.results} | {node.output.name for node in more}
    named = {v.name: replace(v, name=f"{v.name}_named") for v in outputs if v.name not in made}
    copies = tuple(Node("Identity", (value,), (named[value.name],)) for value in outputs if value.name in named)
    nodes = (*graph.nodes, *more, *copies)
    read = {value.name: value for node in nodes for value in node.uses}
    constants = {name: array for name, array in graph.constants.items() if name in inside}
    own = made | constants.keys() | {value.name for value in inputs}
    captures = tuple(value for name, value in read.items() if name not in own)
    results = tuple(named.get(value.name, value) for value in outputs)
    return Graph("inner", inputs, results, nodes, constants, graph.opsets, captures)


def _around(graph: Graph, inside: set[str], node: Node, inputs: tuple[Value, ...]) -> Graph:
    constants = {name: array for name, array in graph.constants.items() if name not in inside}
    return Graph(graph.name, inputs, node.results, (node,), constants, graph.opsets)
