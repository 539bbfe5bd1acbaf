"""Kernels that work in the machine's order as they do in the file's: element by element, or along axes they name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from labkit.graph import Array, Graph, Node, TensorType, Value
from labkit.passes.layout_order import Order
from labkit.passes.permuted import PERMUTED
from labkit.passes.rewriting import Rewrite, Table
from labkit.passes.transposes import BINARY, UNARY, sink_through_concat

_NAMES_AXES: Table = {**PERMUTED, "Concat": (sink_through_concat,)}


@dataclass(frozen=True)
class Permuted:
    """A node whose inputs, as far as ``values`` has them, lie in the machine's order: to the rules about Transposes,
    these come through one that leads home."""

    graph: Graph
    node: Node
    order: Order
    values: Mapping[str, Value]
    fresh: Callable[[str], str]

    @property
    def opsets(self) -> Mapping[str, int]:
        return self.graph.opsets

    @property
    def opset(self) -> int:
        return self.graph.opset

    def constant(self, value: Value | None) -> Array | None:
        return self.graph.constant(value)

    def is_default(self, value: Value | None) -> bool:
        return value is not None and value.name in self.graph.input_names and value.name in self.graph.constants

    def producer(self, value: Value | None) -> Node | None:
        if value is None or value.name not in self.values:
            return None
        return Node("Transpose", (self.values[value.name],), (value,), {"perm": self.order.back})

    def readers(self, value: Value) -> int:
        return self.node.inputs.count(value)

    def can_stand_in(self, output: Value, value: Value) -> bool:
        return True


def native(view: Permuted, output: Value) -> Rewrite | None:
    """The same operator in the machine's order, its result under another name, with the constants that it needs;
    None when it takes more than that."""
    if view.node.op not in UNARY | BINARY:
        return None if view.order.split else _by_axis(view, output)
    return None if output == view.node.output else _elementwise(view, output)


def _elementwise(view: Permuted, output: Value) -> Rewrite | None:
    inputs: list[Value | None] = []
    constants: dict[str, Array] = {}
    for value in view.node.inputs:
        array = view.constant(value)
        if value is None or _lies_alike(value):
            inputs.append(value)
        elif value.name in view.values:
            inputs.append(view.values[value.name])
        elif array is not None and array.ndim <= 4 and not view.order.split:
            wide = array.reshape((1,) * (4 - array.ndim) + array.shape)
            name = view.fresh(f"{value.name}_{view.order.name}")
            constants[name] = np.ascontiguousarray(wide.transpose(view.order.perm))
            inputs.append(Value(name, TensorType.of(constants[name])))
        else:
            return None
    return Rewrite((replace(view.node, inputs=tuple(inputs), outputs=(output,)),), constants)


def _lies_alike(value: Value) -> bool:
    """Whether a value is one element, or one for each image, which broadcasts alike in any order."""
    return value.shape is not None and len(value.shape) <= 4 and set(value.shape[-3:]) <= {1}


def _by_axis(view: Permuted, output: Value) -> Rewrite | None:
    """What the rules about Transposes make of the node: itself with other axes, in front of a Transpose home; or, when
    it drops axes and leaves the rest in order, without one."""
    for rule in _NAMES_AXES.get(view.node.op, ()):
        found = rule(view, view.node)
        if not isinstance(found, Rewrite):
            continue
        kernel, *behind = found.nodes
        if len(behind) == (output != view.node.output):
            return Rewrite((replace(kernel, outputs=(output,)),), found.constants)
    return None
