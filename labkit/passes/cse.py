"""Common subexpressions: two nodes that compute the same from the same become one, and so do equal constants."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from labkit.graph import Array, Graph, Node, TensorType, Value
from labkit.passes.fold import RANDOM
from labkit.passes.rewriting import Rewrite, Sweep, View
from labkit.schemas import default_attributes

_COMMUTATIVE = {"Add", "Mul", "Max", "Min", "And", "Or", "Xor", "Equal"}
_RANDOM = RANDOM | {"RandomNormal", "RandomUniform", "Dropout"}


def share(graph: Graph) -> Graph:
    """One sweep: a node stands in for every later one with the same operator, attributes and inputs.

    Random nodes never, nor nodes with inner graphs; outputs of the graph keep their names. Constants count as equal
    when they are to the bit: +0 is not −0, and one NaN is not another.
    """
    return Sweep("share", {"*": (_Sharing(equal_constants(graph)),)})(graph)


class _Sharing:
    """The rule of one sweep: it remembers the nodes it has seen."""

    def __init__(self, constants: dict[str, Value]) -> None:
        self._first_constant = constants
        self._seen: dict[Hashable, list[Node]] = {}  # by operator and inputs; attributes are compared only there

    def __call__(self, view: View, node: Node) -> Rewrite | None:
        if node.op in _RANDOM or node.bodies:
            return None
        inputs = node.inputs
        if self._first_constant:
            inputs = tuple([value and self._first_constant.get(value.name, value) for value in inputs])
        names = tuple([value.name if value else "" for value in inputs])
        if node.op in _COMMUTATIVE and len(names) == 2:  # of three, another order would round otherwise
            names = tuple(sorted(names))
        earlier = self._seen.setdefault((node.op, names, len(node.outputs)), [])
        for first in earlier:
            if _attributes(first, view.opset) == _attributes(node, view.opset) and self._can_replace(view, first, node):
                pairs = zip(node.outputs, first.outputs, strict=True)
                return Rewrite(instead={old.name: new for old, new in pairs if old is not None and new is not None})
        earlier.append(node)
        if inputs != node.inputs:
            return Rewrite((replace(node, inputs=inputs),))
        return None

    @staticmethod
    def _can_replace(view: View, first: Node, node: Node) -> bool:
        """Every output that is used has a counterpart that may bear its name; as one Identity saves nothing."""
        for old, new in zip(node.outputs, first.outputs, strict=True):
            if old is not None and view.readers(old) and (new is None or not view.can_stand_in(old, new)):
                return False
        return True


def _attributes(node: Node, opset: int) -> Hashable:
    """Attributes, those left out by their defaults."""
    attrs = {**default_attributes(node.op, opset), **node.attrs}
    return tuple(sorted((name, _frozen(attr)) for name, attr in attrs.items()))


def equal_constants(graph: Graph) -> dict[str, Value]:
    """For each constant that repeats an earlier one, that earlier one. A default of an input never counts, and what
    nobody reads is not looked at."""
    alike: dict[Hashable, list[str]] = {}
    found = {}
    for name, array in graph.constants.items():
        if name in graph.input_names or name not in graph.readers:
            continue
        sample = array.flat[:8]  # weights differ early: nearly all are told apart without reading them whole
        earlier = alike.setdefault((array.shape, _frozen(sample)), [])
        twin = next((other for other in earlier if _same_bits(graph.constants[other], array)), None)
        if twin is None:
            earlier.append(name)
        else:
            found[name] = Value(twin, TensorType.of(array))
    return found


def _same_bits(one: Array, two: Array) -> bool:
    """Whether two arrays of one shape and type hold the same bits: a NaN is itself, and +0 is not −0."""
    bits = f"u{one.itemsize}"
    if one.dtype == object or bits not in ("u1", "u2", "u4", "u8"):
        return _frozen(one) == _frozen(two)
    return np.array_equal(one.view(bits), two.view(bits))


def _frozen(attr: Any) -> Hashable:
    if isinstance(attr, np.ndarray):
        content = tuple(map(str, attr.ravel())) if attr.dtype == object else attr.tobytes()
        return attr.shape, attr.dtype, content
    if isinstance(attr, float):
        return np.float32(attr).tobytes()  # ONNX attributes are float32: 0.1 read from a file is 0.1 as a default
    if isinstance(attr, tuple):
        return tuple(map(_frozen, attr))
    return attr if isinstance(attr, Hashable) else id(attr)
