"""What ONNX's schemas say of an operator: its arity, its attributes, their defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, TensorProto

from labkit.errors import GraphError
from labkit.graph import Graph, Node
from labkit.protos import to_attribute
from labkit.tensor_protos import elem_type


@dataclass(frozen=True)
class _Schema:
    """What ONNX asks of a node: how many inputs and outputs, which attributes of which types."""

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    attributes: Mapping[str, int]
    required: tuple[str, ...]


@cache
def _schema(op: str, version: int, domain: str) -> _Schema | None:
    if not onnx.defs.has(op, version, domain):
        return None
    found = onnx.defs.get_schema(op, version, domain)
    attributes = found.attributes  # made anew each time
    kinds: dict[str, Any] = {name: attribute.type for name, attribute in attributes.items()}
    required = tuple(name for name, attribute in attributes.items() if attribute.required)
    ends = (found.min_input, found.max_input), (found.min_output, found.max_output)
    return _Schema(*ends, {name: int(kind) for name, kind in kinds.items()}, required)


def check_text(op: str, names: Iterable[str]) -> None:
    """GraphError unless an operator and the names around it are text: protobuf hands bytes on that are no UTF-8."""
    try:
        "".join((op, *names))
    except TypeError:
        raise GraphError(f"node {op!r} has a name that is no UTF-8 text") from None


def check(node: Node, kinds: Mapping[str, int], opsets: Mapping[str, int]) -> None:
    """Hold a node to ONNX's schema, where there is one; ``kinds`` are ONNX's types of its attributes. GraphError says
    which node and what is wrong.

    (``onnx.checker`` says as much, but of whole models with their weights, and at a hundred times the cost.)
    """
    version = opsets.get(node.domain, 1)
    dtypes = tuple([value and value.dtype for value in node.inputs])
    if complaint := _complaint(node.op, version, node.domain, tuple(kinds.items()), dtypes, len(node.outputs)):
        raise GraphError(f"{node.label}{complaint}")


@cache  # the nodes of a network are alike
def _complaint(
    op: str, version: int, domain: str, kinds: tuple[tuple[str, int], ...], dtypes: tuple[str | None, ...], outputs: int
) -> str:
    """What is wrong with a node of so many inputs and outputs; empty when nothing is."""
    schema = _schema(op, version, domain)
    if schema is None:
        return ""
    for what, count, (least, most) in (("inputs", len(dtypes), schema.inputs), ("outputs", outputs, schema.outputs)):
        if not least <= count <= most:
            return f" has {count} {what}; ONNX asks for {least} to {most}"
    for name, kind in kinds:
        if schema.attributes.get(name) != kind:
            return f": attribute {name!r} is unknown or of the wrong type"
    if missing := [name for name in schema.required if name not in dict(kinds)]:
        return f" lacks its attribute {missing[0]!r}"
    complaint = _of_types(op, version, domain, dtypes)
    return complaint and f": {complaint}"


def _of_types(op: str, version: int, domain: str, dtypes: tuple[str | None, ...]) -> str:
    """What is wrong with these element types of inputs, as far as they are known; empty when nothing is."""
    found = onnx.defs.get_schema(op, version, domain)
    allowed = {constraint.type_param_str: constraint.allowed_type_strs for constraint in found.type_constraints}
    bound: dict[str, str] = {}
    for at, dtype in enumerate(dtypes):
        if dtype is None:
            continue
        formal = found.inputs[min(at, len(found.inputs) - 1)]
        onnx_name = TensorProto.DataType.Name(elem_type(dtype)).lower()
        if f"tensor({onnx_name})" not in allowed.get(formal.type_str, [formal.type_str]):
            return f"input {formal.name!r} is {dtype}, a type that {op} of opset {version} does not take there"
        if formal.is_homogeneous and bound.setdefault(formal.type_str, dtype) != dtype:
            return f"input {formal.name!r} is {dtype}, another is {bound[formal.type_str]}; they must be of one type"
    return ""


def _no_graph(proto: GraphProto) -> Graph:
    raise GraphError(f"graph {proto.name!r} as a default: no operator has one")


@cache
def default_attributes(op: str, opset: int) -> Mapping[str, Any]:
    """What ONNX takes for the attributes of one of its own operators where a node does not say."""
    if not onnx.defs.has(op, opset):
        return {}
    declared = onnx.defs.get_schema(op, opset).attributes
    defaults = {name: attribute.default_value for name, attribute in declared.items()}
    return {
        name: to_attribute(proto, _no_graph)
        for name, proto in defaults.items()
        if proto.type != AttributeProto.UNDEFINED
    }
