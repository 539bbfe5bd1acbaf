"""Types of what a node makes: by the op table where it has a row, else by ONNX's own shape inference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import onnx
from onnx import TensorProto, helper

from labkit.build import infer
from labkit.graph import Array, Node, TensorType, Value
from labkit.protos import node_proto, to_graph_proto
from labkit.tensor_protos import to_tensor, to_type, type_proto

_SMALL_CONSTANT = 1024  # elements: shapes, axes and sizes are read by inference, weights are not


def infer_types(
    node: Node, constant: Callable[[Value | None], Array | None], opsets: Mapping[str, int]
) -> tuple[TensorType | None, ...]:
    """Types of a node's outputs, in their order. GraphError when the inputs do not fit a row of the op table.

    All None when neither the table nor ONNX knows the operator, or an input is no tensor.
    """
    found = infer(node, constant, opsets.get("", 1))
    types = _by_onnx(node, constant, opsets) if found is None else found
    return (*types, *[None] * (len(node.outputs) - len(types)))


def _by_onnx(
    node: Node, constant: Callable[[Value | None], Array | None], opsets: Mapping[str, int]
) -> tuple[TensorType | None, ...]:
    version = opsets.get(node.domain, 1)
    if not _known(node.op, version, node.domain) or not all(v.type for v in node.inputs if v):
        return ()
    types = tuple([value and value.type for value in node.inputs])
    data = tuple(map(_data, map(constant, node.inputs)))
    present = tuple([value is not None for value in node.outputs])
    question = (node.op, node.domain, tuple(opsets.items()), tuple(node.attrs.items()), types, data, present)
    try:
        found = _onnx_types.__wrapped__(*question) if node.bodies else _onnx_types(*question)
    except TypeError:  # an attribute that has no hash, as a tensor
        found = _onnx_types.__wrapped__(*question)
    pairs = zip(node.outputs, found, strict=False)
    return tuple([kind and _named(kind, value.name) if value else None for value, kind in pairs])


_known = cache(onnx.defs.has)


def _named(kind: TensorType, name: str) -> TensorType:
    """The type with its unknown dims named after the value that has them."""
    if kind.is_static or kind.shape is None:
        return kind
    dims = (f"?{name}.{axis}" if str(dim).startswith("?") else dim for axis, dim in enumerate(kind.shape))
    return TensorType(tuple(dims), kind.dtype)


def _data(array: Array | None) -> bytes | None:
    """What inference may know of an input: its elements, if they are constant and few."""
    return None if array is None or array.size > _SMALL_CONSTANT else to_tensor(array).SerializeToString()


@lru_cache(maxsize=1024)  # the layers of a network repeat a few questions
def _onnx_types(
    op: str,
    domain: str,
    opsets: tuple[tuple[str, int], ...],
    attrs: tuple[tuple[str, Any], ...],
    types: tuple[TensorType | None, ...],
    data: tuple[bytes | None, ...],
    present: tuple[bool, ...],
) -> tuple[TensorType | None, ...]:
    """What ONNX's shape inference says of the outputs that are present; ``data`` are inputs that are known."""
    inputs = tuple(None if kind is None else Value(f"i{at}", kind) for at, kind in enumerate(types))
    outputs = tuple(Value(f"o{at}") if there else None for at, there in enumerate(present))
    proto = node_proto(Node(op, inputs, outputs, dict(attrs), domain), lambda body: to_graph_proto(body, inner=True))
    fed = {value.name: type_proto(value.type) for value in inputs if value and value.type}
    known = {f"i{at}": TensorProto.FromString(raw) for at, raw in enumerate(data) if raw is not None}
    ids = [helper.make_opsetid(name, version) for name, version in opsets]
    schema = onnx.defs.get_schema(op, dict(opsets).get(domain, 1), domain)
    try:
        found = onnx.shape_inference.infer_node_outputs(schema, proto, fed, known, opset_imports=ids)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError, RuntimeError):
        return ()  # what cannot be typed here still runs; a wrong model shows itself there
    names = [value.name if value else "" for value in outputs]
    return tuple(to_type(found[name], name) if name in found else None for name in names)
