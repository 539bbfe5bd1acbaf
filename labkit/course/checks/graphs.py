"""Small graphs to ask about: drawn node by node, written in one line, and what a group of their nodes moves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from labkit.build import make_node
from labkit.course.checking import CheckFailed
from labkit.course.checks.plain import kind
from labkit.graph import Graph, Node, TensorType, Value

OPSET = 17


class Draft:
    """A graph in the making. Nodes are named after what they make: n1, n2 …, in running order."""

    def __init__(self, draw: Random, **inputs: tuple[int, ...]) -> None:
        self.draw = draw
        self.inputs = tuple(Value(name, TensorType(shape, "float32")) for name, shape in inputs.items())
        self.nodes: list[Node] = []
        self.constants: dict[str, Any] = {}

    def constant(self, *shape: int) -> Value:
        """A weight of its own, w1, w2 …"""
        name = f"w{len(self.constants) + 1}"
        random = np.random.default_rng(self.draw.randrange(2**32))
        self.constants[name] = random.uniform(-1, 1, shape).astype(np.float32)
        return Value(name, TensorType(shape, "float32"))

    def add(self, op: str, *inputs: Value, **attrs: Any) -> Value:
        """What one more node makes."""
        name = f"n{len(self.nodes) + 1}"
        node = make_node(op, inputs, [name], attrs, constants=self.constants, opset=OPSET)
        self.nodes.append(node)
        return node.output

    def conv(self, x: Value, filters: int | None = None, taps: int = 3) -> Value:
        """A convolution that keeps the size of the image."""
        channels = int((x.shape or ())[1])
        weight = self.constant(filters or channels, channels, taps, taps)
        return self.add("Conv", x, weight, pads=(taps // 2,) * 4)

    def graph(self, *outputs: Value) -> Graph:
        """The graph; without ``outputs`` those that nothing reads leave it."""
        read = {value.name for node in self.nodes for value in node.uses}
        ends = outputs or tuple(node.output for node in self.nodes if node.output.name not in read)
        return Graph("drawn", self.inputs, ends, tuple(self.nodes), self.constants, {"": OPSET})


def shown(argument: object) -> str:
    """An argument in a message: a graph is its nodes, in one line.

    >>> draft = Draft(Random(0), x=(1, 2, 4, 4))
    >>> shown(draft.graph(draft.add("Relu", draft.conv(draft.inputs[0]))))
    '[n1=Conv(x,w1) n2=Relu(n1) → n2]'
    """
    if not isinstance(argument, Graph):
        return " ".join(argument) if isinstance(argument, tuple) else repr(argument)
    nodes = (f"{node.output.name}={node.op}({','.join(v.name for v in node.uses)})" for node in argument.nodes)
    return f"[{' '.join(nodes)} → {' '.join(value.name for value in argument.outputs)}]"


def nbytes(value: Value) -> int:
    return value.type.nbytes if value.type else 0


def entering(graph: Graph, group: Collection[str]) -> Mapping[str, Value]:
    """The distinct values that a group reads from outside, weights too."""
    uses = (value for name in group for value in graph.producers[name].uses)
    return {value.name: value for value in uses if value.name not in group}


def leaving(graph: Graph, group: Collection[str]) -> tuple[str, ...]:
    """What a group makes and somebody outside reads, or is an output of the graph."""
    return tuple(name for name in group if name in graph.output_names or not is_own(graph, group, name))


def is_own(graph: Graph, group: Collection[str], name: str) -> bool:
    """Whether all nodes that read a value are in the group."""
    return all(user.output.name in group for user in graph.users.get(name, ()))


def group_bytes(graph: Graph, group: Collection[str]) -> int:
    """What the nodes move as one kernel: each value that enters or leaves, once."""
    written = (graph.producers[name].output for name in leaving(graph, group))
    return sum(map(nbytes, (*entering(graph, group).values(), *written)))


def names_of(value: object, graph: Graph, call: str) -> tuple[str, ...]:
    """Names of nodes, from any collection of words."""
    if value is None:
        raise CheckFailed(f"{call} gave nothing back: does the function end with return?")
    if type(value) not in (tuple, list, set, frozenset):
        raise CheckFailed(f"{call} gave {kind(value)} where names of nodes are expected, as in ['n1', 'n2'].")
    assert isinstance(value, Collection)
    found = tuple(str(name) for name in value if type(name) in (str, np.str_))
    strange = [name for name in found if name not in graph.producers]
    if strange:
        raise CheckFailed(f"{call}: {strange[0]!r:.20} is the name of no node.")
    if len(found) < len(value):
        raise CheckFailed(f"{call}: something in it is the name of no node; names are words, as in ['n1', 'n2'].")
    return found


def groups_of(value: object, graph: Graph, call: str) -> Sequence[tuple[str, ...]]:
    """Groups of names in which each node is exactly once."""
    if type(value) not in (tuple, list):
        raise CheckFailed(f"{call} gave {kind(value)}; expected a list of groups, each a list of names.")
    assert isinstance(value, Sequence)
    groups = [names_of(group, graph, call) for group in value]
    every = [name for group in groups for name in group]
    twice = [name for name in graph.producers if every.count(name) != 1]
    if twice:
        raise CheckFailed(f"{call}: {twice[0]} is in {every.count(twice[0])} kernels, it has to run exactly once.")
    return [group for group in groups if group]
