"""Between ONNX's protocol buffers and our graphs: attributes, nodes, functions. Files are onnx_io's business."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, helper

from labkit.errors import GraphError
from labkit.graph import Array, Graph, Node
from labkit.tensor_protos import to_array, to_tensor, value_info


def to_attribute(proto: AttributeProto, to_graph: Callable[[onnx.GraphProto], Graph]) -> Any:
    """An attribute's value as plain Python: strings as text, lists as tuples, tensors as arrays, graphs as Graphs."""
    if proto.ref_attr_name:
        raise GraphError(f"attribute {proto.name!r} refers to an attribute of a function around it; there is none")
    value = helper.get_attribute_value(proto)
    match proto.type:
        case AttributeProto.STRING:
            return _text(value)
        case AttributeProto.STRINGS:
            return tuple(map(_text, value))
        case AttributeProto.TENSOR:
            return to_array(value)
        case AttributeProto.TENSORS:
            return tuple(map(to_array, value))
        case AttributeProto.GRAPH:
            return to_graph(value)
        case AttributeProto.GRAPHS:
            return tuple(map(to_graph, value))
        case AttributeProto.INTS | AttributeProto.FLOATS:
            return tuple(value)
    return value


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value


def node_proto(node: Node, from_graph: Callable[[Graph], onnx.GraphProto]) -> NodeProto:
    """ONNX's spelling of a node."""
    reads, makes = ([value.name if value else "" for value in values] for values in (node.inputs, node.outputs))
    attributes = [_attribute(node, name, value, from_graph) for name, value in node.attrs.items()]
    return NodeProto(
        op_type=node.op, domain=node.domain, name=node.name, input=reads, output=makes, attribute=attributes
    )


def _attribute(node: Node, name: str, value: Any, from_graph: Callable[[Graph], onnx.GraphProto]) -> AttributeProto:
    if type(value) in _NUMBERS:
        field, kind = _NUMBERS[type(value)]
        return AttributeProto(name=name, type=kind, **{field: value})
    if isinstance(value, Graph):
        return helper.make_attribute(name, from_graph(value))
    if isinstance(value, np.ndarray):
        return helper.make_attribute(name, to_tensor(value))
    if isinstance(value, tuple):
        if not value:
            return helper.make_attribute(name, [], attr_type=_declared_type(node, name))
        if {*map(type, value)} == {int}:
            return AttributeProto(name=name, type=AttributeProto.INTS, ints=value)
        if isinstance(value[0], Graph):
            return helper.make_attribute(name, list(map(from_graph, value)))
        if isinstance(value[0], np.ndarray):
            return helper.make_attribute(name, list(map(to_tensor, value)))
    return helper.make_attribute(name, value)


_NUMBERS: dict[type, tuple[str, AttributeProto.AttributeType]] = {
    int: ("i", AttributeProto.INT),
    float: ("f", AttributeProto.FLOAT),
}


def _declared_type(node: Node, name: str) -> int:
    """The type that the operator's schema gives an attribute: an empty list does not show its own."""
    if onnx.defs.has(node.op, node.domain):
        declared = onnx.defs.get_schema(node.op, domain=node.domain).attributes.get(name)
        if declared is not None:
            kind: Any = declared.type  # an IntEnum that onnx's stubs do not show as one
            return int(kind)
    return int(AttributeProto.INTS)


def to_graph_proto(graph: Graph, *, inner: bool = False, without: Collection[str] = ()) -> GraphProto:
    """ONNX's spelling of a graph. An inner graph leaves the types of its values to be inferred; ``without`` are
    constants to leave out."""
    proto = GraphProto(name=graph.name or "graph")
    proto.node.extend(node_proto(node, lambda body: to_graph_proto(body, inner=True)) for node in graph.nodes)
    kept = ((name, array) for name, array in graph.constants.items() if name not in without)
    proto.initializer.extend(to_tensor(array, name) for name, array in kept)
    proto.input.extend(map(value_info, graph.inputs))
    proto.output.extend(map(value_info, graph.outputs))
    inside = [value for node in graph.nodes for value in node.results if value.name not in graph.output_names]
    if not inner:
        proto.value_info.extend(value_info(value) for value in inside if value.type is not None)
    return proto


def functions(graph: Graph) -> Iterator[FunctionProto]:
    """The local functions that the fused nodes of a graph, and of the graphs within it, call."""
    for node in graph.nodes:
        for body in node.bodies:
            yield from functions(body)
        if node.body is not None:
            yield from functions(node.body)
            ids = [helper.make_opsetid(domain, version) for domain, version in node.body.opsets.items()]
            inputs, outputs = ([value.name for value in values] for values in (node.body.inputs, node.body.outputs))
            steps = [node_proto(step, lambda body: to_graph_proto(body, inner=True)) for step in node.body.nodes]
            yield helper.make_function(node.domain, node.op, inputs, outputs, steps, ids)


def label(proto: NodeProto) -> str:
    """How messages call a node that is not imported yet."""
    return f"{proto.op_type} {(proto.name or next(iter(proto.output), ''))!r}"


_LISTS = ("value_floats", "value_ints", "value_strings")
# The spellings of a Constant of numbers: the field that has them, and their type.
_CONSTANTS = {
    "value_float": ("f", "float32"),
    "value_floats": ("floats", "float32"),
    "value_int": ("i", "int64"),
    "value_ints": ("ints", "int64"),
}


def constant_array(proto: NodeProto) -> Array:
    """The array of a Constant node, in any of its spellings."""
    attribute = proto.attribute[0] if proto.attribute else AttributeProto()
    # A list that refers to an attribute of a function, where there is none, is what stands in the file: empty.
    if not proto.attribute or (attribute.ref_attr_name and attribute.name not in _LISTS):
        raise GraphError(f"{label(proto)}: a Constant needs a value of its own")
    if attribute.name == "value":
        return to_array(attribute.t)
    if attribute.name in _CONSTANTS:
        field, dtype = _CONSTANTS[attribute.name]
        return np.array(getattr(attribute, field), dtype=dtype)
    if attribute.name == "value_string":
        return np.array(attribute.s.decode(), dtype=object)
    if attribute.name == "value_strings":
        return np.array([text.decode() for text in attribute.strings], dtype=object)
    raise GraphError(f"{label(proto)}: a Constant needs a dense value; this one has none that labkit reads")
