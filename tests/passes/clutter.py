"""Clutter as careless exporters and frameworks leave it, strewn over a graph by a seed. It computes the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from labkit.graph import Graph, Node, TensorType, Value, read_only
from labkit.inference import infer_types
from labkit.tensor_protos import elem_type


class Clutter:
    """One strewing: the nodes and constants of the new graph so far."""

    def __init__(self, graph: Graph, seed: int, density: float) -> None:
        self.graph = graph
        self.rng = np.random.default_rng(seed)
        self.density = density
        self.nodes: list[Node] = []
        self.constants = dict(graph.constants)
        self.instead: dict[str, Value] = {}
        self.sites = 0

    def strewn(self) -> Graph:
        for node in self.graph.nodes:
            node = self._with_cluttered_weight(node.rename(self.instead))
            self._around(node) if self._wraps(node) else self.nodes.append(node)
            for value in node.results:
                if self._suits(value) and self.rng.random() < self.density:
                    self.instead[value.name] = self._one_of(KINDS)(self, value)
                    self.sites += 1
        return replace(self.graph, nodes=tuple(self.nodes), constants=self.constants)

    def _suits(self, value: Value) -> bool:
        static = value.type is not None and value.type.is_static and value.dtype == "float32"
        return static and value.name not in self.graph.output_names and self.graph.constant(value) is None

    def _one_of(self, options):
        return options[int(self.rng.integers(len(options)))]

    def add(self, op: str, inputs: list[Value], attrs: dict | None = None) -> Value:
        name = f"clutter{len(self.nodes)}"
        draft = Node(op, tuple(inputs), (Value(name),), attrs or {}, name=name)
        types = infer_types(draft, lambda value: value and self.constants.get(value.name), self.graph.opsets)
        self.nodes.append(replace(draft, outputs=(Value(name, types[0]),)))
        return self.nodes[-1].output

    def constant(self, array: np.ndarray) -> Value:
        name = f"clutter_k{len(self.constants)}"
        self.constants[name] = read_only(array)
        return Value(name, TensorType.of(array))

    def shape(self, *dims: int) -> Value:
        return self.constant(np.array(dims, dtype=np.int64))

    def _with_cluttered_weight(self, node: Node) -> Node:
        """Now and then a weight that comes through an Identity or two Transposes."""
        weight = node.inputs[1] if len(node.inputs) > 1 else None
        if weight is None or self.graph.constant(weight) is None or weight.dtype != "float32":
            return node
        if self.rng.random() > self.density / 4:
            return node
        self.sites += 1
        return node.rename({weight.name: self._one_of((identity, transposes))(self, weight)})

    def _wraps(self, node: Node) -> bool:
        plain = (
            node.op in ("Relu", "Clip", "Sigmoid") and self._suits(node.output) and len(node.output.shape or ()) == 4
        )
        return plain and self.rng.random() < self.density / 2

    def _around(self, node: Node) -> None:
        """An elementwise operator moved to channels last and back."""
        there = self.add("Transpose", [node.inputs[0]], {"perm": (0, 2, 3, 1)})
        inner = Value(f"{node.output.name}_nhwc", there.type)
        self.nodes.append(replace(node, inputs=(there, *node.inputs[1:]), outputs=(inner,)))
        self.nodes.append(Node("Transpose", (inner,), node.outputs, {"perm": (0, 3, 1, 2)}))
        self.sites += 1

    def between(self, value: Value) -> Value:
        """Between the two halves of a pair, sometimes more clutter."""
        return self._one_of(KINDS)(self, value) if self.rng.random() < 0.3 else value


def identity(c: Clutter, x: Value) -> Value:
    return c.add("Identity", [x])


def dropout(c: Clutter, x: Value) -> Value:
    return c.add("Dropout", [x])


def unit(c: Clutter, x: Value) -> Value:
    """x·1, 1·x, x+0, x/1, x−0, the unit as a scalar, a vector or one value a channel."""
    rank = len(x.shape or ())
    op = c._one_of(("Mul", "Mul", "Add", "Add", "Div", "Sub"))
    shape = c._one_of([(), (1,), (1,) * rank, tuple(d if a == 1 else 1 for a, d in enumerate(x.shape or ()))])
    k = c.constant(np.full(shape, op in ("Mul", "Div"), dtype=x.dtype))
    swapped = op in ("Mul", "Add") and c.rng.random() < 0.5
    return c.add(op, [k, x] if swapped else [x, k])


def transposes(c: Clutter, x: Value) -> Value:
    perm = tuple(int(axis) for axis in c.rng.permutation(len(x.shape or ())))
    there = c.between(c.add("Transpose", [x], {"perm": perm}))
    return c.add("Transpose", [there], {"perm": tuple(int(axis) for axis in np.argsort(perm))})


def unsqueeze(c: Clutter, x: Value) -> Value:
    axis = int(c.rng.integers(len(x.shape or ()) + 1))
    if c.graph.opset < 13:
        return c.add("Squeeze", [c.between(c.add("Unsqueeze", [x], {"axes": (axis,)}))], {"axes": (axis,)})
    return c.add("Squeeze", [c.between(c.add("Unsqueeze", [x, c.shape(axis)])), c.shape(axis)])


def casts(c: Clutter, x: Value) -> Value:
    there = c.between(c.add("Cast", [x], {"to": elem_type("float64")})) if c.rng.random() < 0.8 else x
    return c.add("Cast", [there], {"to": elem_type(x.dtype or "")})


def reshapes(c: Clutter, x: Value) -> Value:
    there = c.between(c.add("Reshape", [x, c.shape(-1)])) if c.rng.random() < 0.5 else x
    return c.add("Reshape", [there, c.shape(*(int(dim) for dim in x.shape or ()))])


def dead_branch(c: Clutter, x: Value) -> Value:
    c.add("Sigmoid", [c.add("Relu", [c.between(x)])])
    return x


KINDS: tuple[Callable[[Clutter, Value], Value], ...] = (
    identity, dropout, unit, unit, transposes, transposes, unsqueeze, casts, reshapes, dead_branch,
)  # fmt: skip
