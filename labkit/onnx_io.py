"""ONNX files in and out. A file that loads is a valid Graph; a file that is saved is valid ONNX or is not written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError, EncodeError
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, helper
from onnx.inliner import inline_selected_functions

from labkit import protos, wire
from labkit.bodies import DOMAIN
from labkit.errors import GraphError
from labkit.functions import check_unfolding
from labkit.graph import Array, Dim, Graph, Node, TensorType, Value
from labkit.inference import infer_types
from labkit.schemas import check

Constant: TypeAlias = Callable[[Value | None], Array | None]

_NO_MODEL = (
    "not an ONNX model, or one that is cut off or nested deeper than protobuf reads; expected a protobuf ModelProto"
)
OLDEST_OPSET = 7
OLDEST_IR = 3
DEEPEST = 32  # graphs within graphs: protobuf reads messages 100 deep, and each graph takes three
EXPORT_IR = 8  # the oldest that every current runtime reads and that has all this library writes


def load(path: str | os.PathLike[str]) -> Graph:
    """Read an ONNX file.

    Raises GraphError when the file is missing, is no ONNX, is cut off, has a cycle, or is older than opset 7 or IR 3.
    """
    path = Path(path)
    try:
        model, weights = wire.read(path)
    except FileNotFoundError:
        raise GraphError(f"{path}: no such file") from None
    except (DecodeError, UnicodeDecodeError):
        raise GraphError(f"{path}: {_NO_MODEL}") from None
    except OSError as error:
        raise GraphError(f"{path}: cannot be read ({error})") from None
    try:
        try:
            return from_model(model, weights)
        except protos.ElsewhereError:
            _fetch(model, path.parent)
            return from_model(model, weights)
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None


def _fetch(model: ModelProto, folder: Path) -> None:
    """Read what lies in other files of this folder; ONNX refuses any that lie, or lead, outside it."""
    try:
        onnx.load_external_data_for_model(model, str(folder))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise GraphError(f"external data cannot be read: {' '.join(str(error).split())}") from None


def from_model(model: ModelProto, weights: Mapping[str, Array] | None = None) -> Graph:
    """The Graph of a model in memory, its local functions opened; ``weights`` are constants that the model leaves out.

    Raises GraphError as ``load`` does.
    """
    if not model.HasField("graph") or not model.opset_import:
        raise GraphError("not an ONNX model: it holds no graph, or says no opset")
    opsets = {entry.domain if entry.domain != "ai.onnx" else "": entry.version for entry in model.opset_import}
    newest = onnx.defs.onnx_opset_version()
    if model.ir_version < OLDEST_IR:
        raise GraphError(f"IR version {model.ir_version}; labkit reads IR {OLDEST_IR} and later")
    if not OLDEST_OPSET <= opsets.get("", newest) <= newest:
        raise GraphError(
            f"opset {opsets['']}; labkit reads opsets {OLDEST_OPSET} to {newest} (see onnx.version_converter)"
        )
    if model.functions:
        model = _without_functions(model)
    fused = {function.name: function for function in model.functions}
    return _Importer(opsets, model.ir_version, fused).graph(model.graph, {}, weights or {})


def _without_functions(model: ModelProto) -> ModelProto:
    """The model with its local functions opened, except for the fused nodes that this library wrote."""
    check_unfolding(model)
    ours = [(function.domain, function.name) for function in model.functions if _is_fused_node(function)]
    try:
        return inline_selected_functions(model, ours, exclude=True)
    except Exception as error:  # the inliner raises whatever its C++ side raised
        raise GraphError(f"its local functions cannot be inlined ({error})") from None


def _is_fused_node(function: FunctionProto) -> bool:
    return function.domain == DOMAIN and not function.attribute and not function.attribute_proto


class _Importer:
    """Reads a graph and the graphs within it; they share the opsets and see the values around them."""

    def __init__(self, opsets: Mapping[str, int], ir_version: int, fused: Mapping[str, FunctionProto]) -> None:
        self.opsets = opsets
        self.ir_version = ir_version
        self.fused = fused
        self.depth = 0

    def graph(
        self, proto: GraphProto, outside: Mapping[str, Value], weights: Mapping[str, Array] | None = None
    ) -> Graph:
        if proto.sparse_initializer:
            raise GraphError(f"graph {proto.name!r} holds sparse initializers, which labkit does not read")
        constants = {tensor.name: protos.to_array(tensor) for tensor in proto.initializer} | dict(weights or {})
        # Before IR 4 every constant had to be listed among the inputs; since then, being listed means it can be fed.
        listed = self.ir_version < 4
        inputs = tuple(protos.to_value(i) for i in proto.input if not (listed and i.name in constants))
        known = {**outside, **{name: Value(name, TensorType.of(array)) for name, array in constants.items()}}
        known |= {value.name: _as_read(value) if self.depth else value for value in inputs}
        declared = {info.name: protos.to_value(info) for info in (*proto.value_info, *proto.output)}
        overridable = {value.name for value in inputs}

        def constant(value: Value | None) -> Array | None:
            return constants.get(value.name) if value is not None and value.name not in overridable else None

        nodes = []
        for node in _in_order(proto, known):
            if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
                array = protos.constant_array(node)
                constants[node.output[0]] = array
                known[node.output[0]] = Value(node.output[0], TensorType.of(array))
                continue
            nodes.append(self.node(node, known, constant, declared))
            known.update((value.name, value) for value in nodes[-1].results)
        outputs = tuple(_output(protos.to_value(info), known.get(info.name)) for info in proto.output)
        captures = _captures(outside, known, nodes, outputs) if outside else ()
        return Graph(proto.name, inputs, outputs, tuple(nodes), constants, dict(self.opsets), captures)

    def node(
        self, proto: NodeProto, known: Mapping[str, Value], constant: Constant, declared: Mapping[str, Value]
    ) -> Node:
        inputs = tuple(_known(proto, name, known) if name else None for name in proto.input)
        if proto.domain == DOMAIN and proto.op_type in self.fused:
            return self.fused_node(proto, inputs, constant)
        attrs = {a.name: protos.to_attribute(a, lambda g: self.inner(proto, g, known)) for a in proto.attribute}
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        names = tuple(Value(name) if name else None for name in proto.output)
        draft = Node(proto.op_type, inputs, names, attrs, domain, proto.name)
        check(draft, {a.name: a.type for a in proto.attribute}, self.opsets)
        types = infer_types(draft, constant, self.opsets)
        outputs = tuple(v and _typed(v.name, types.get(v.name), declared.get(v.name)) for v in draft.outputs)
        return Node(draft.op, inputs, outputs, attrs, domain, proto.name)

    def inner(self, node: NodeProto, proto: GraphProto, known: Mapping[str, Value]) -> Graph:
        """A graph among the attributes of a node."""
        if self.depth >= DEEPEST:
            raise GraphError(
                f"{protos.label(node)} lies {DEEPEST} graphs deep; no file has room for one more inside it"
            )
        self.depth += 1
        graph = self.graph(proto, known)
        self.depth -= 1
        return graph

    def fused_node(self, proto: NodeProto, inputs: tuple[Value | None, ...], constant: Constant) -> Node:
        """A call of a function that this library wrote: its body, typed by what the call feeds."""
        function = self.fused[proto.op_type]
        if None in inputs or (len(inputs), len(proto.output)) != (len(function.input), len(function.output)):
            raise GraphError(f"{protos.label(proto)} does not fit the function that it calls")
        fed = {formal: value for formal, value in zip(function.input, inputs, strict=True) if value}
        known = {formal: replace(value, name=formal) for formal, value in fed.items()}
        formals = tuple(known.values())
        nodes = []
        for step in function.node:
            nodes.append(self.node(step, known, lambda value: constant(fed.get(value.name)) if value else None, {}))
            known.update((value.name, value) for value in nodes[-1].results)
        results = tuple(_known(proto, name, known) for name in function.output)
        opsets = {entry.domain: entry.version for entry in function.opset_import}
        body = Graph(function.name, formals, results, tuple(nodes), opsets=opsets)
        outputs = tuple(replace(value, name=name) for value, name in zip(results, proto.output, strict=True))
        return Node(proto.op_type, inputs, outputs, {}, DOMAIN, proto.name, body)


def _captures(
    outside: Mapping[str, Value], known: Mapping[str, Value], nodes: Sequence[Node], outputs: Sequence[Value]
) -> tuple[Value, ...]:
    """The values of the graph around that this one reads, and does not have under the same name itself."""
    read = {value.name for node in nodes for value in node.uses} | {value.name for value in outputs}
    return tuple(value for name, value in outside.items() if name in read and known[name] is value)


def _in_order(proto: GraphProto, known: Mapping[str, Value]) -> list[NodeProto]:
    """The nodes in an order in which they can run; GraphError names a node of a cycle."""
    ready = {"", *known}
    for node in proto.node:
        if not ready.issuperset(node.input):
            return _sorted(proto)
        ready.update(node.output)
    return list(proto.node)


def _sorted(proto: GraphProto) -> list[NodeProto]:
    producer = {name: index for index, node in enumerate(proto.node) for name in node.output if name}
    needs = {i: [producer[name] for name in node.input if name in producer] for i, node in enumerate(proto.node)}
    try:
        return [proto.node[index] for index in TopologicalSorter(needs).static_order()]
    except CycleError as error:
        around = [protos.label(proto.node[index]) for index in reversed(error.args[1])]
        names = " -> ".join(around if len(around) <= 6 else [*around[:5], f"({len(around) - 6} more)", around[-1]])
        raise GraphError(f"the nodes form a cycle: {names}; a graph must be acyclic") from None


def _known(proto: NodeProto, name: str, known: Mapping[str, Value]) -> Value:
    if name not in known:
        raise GraphError(f"{protos.label(proto)} reads {name!r}, which nothing assigns")
    return known[name]


def _as_read(value: Value) -> Value:
    """What the nodes of an inner graph know of its input: not its shape, which may differ from one turn of a loop to
    the next whatever the file says, and whose symbols are not those around."""
    return value if value.type is None else Value(value.name, TensorType(None, value.type.dtype))


def _typed(name: str, inferred: TensorType | None, declared: Value | None) -> Value:
    """What inference found, else what the file says; neither is None."""
    if inferred is None or (inferred.shape is None and declared is not None and declared.type is not None):
        return Value(name, declared.type if declared else None)
    return Value(name, inferred)


def _output(declared: Value, found: Value | None) -> Value:
    """A graph output keeps the dims that the file declares, unless inference has proved another rank or size."""
    if found is None or found.type is None or declared.type is None or found.shape is None:
        return declared if found is None or declared.type is not None else found
    if declared.shape is None or len(declared.shape) != len(found.shape) or declared.dtype != found.dtype:
        return found
    pairs = zip(declared.shape, found.shape, strict=True)
    dims = tuple(new if isinstance(old, int) and isinstance(new, int) else _named(old, new) for old, new in pairs)
    return Value(declared.name, TensorType(dims, found.type.dtype))


def _named(declared: Dim, found: Dim) -> Dim:
    return found if isinstance(declared, str) and declared.startswith("?") else declared


def to_model(graph: Graph, without: Collection[str] = ()) -> ModelProto:
    """A model in memory, in the opsets of the graph's file, IR 8 or newer; ``without`` are constants to leave out."""
    opsets = [helper.make_opsetid(domain, version) for domain, version in graph.opsets.items()]
    known = [entry for entry in opsets if entry.domain in ("", "ai.onnx.ml")]
    ir_version = max(EXPORT_IR, helper.find_min_ir_version_for(known, ignore_unknown=True) if known else EXPORT_IR)
    proto = protos.to_graph_proto(graph, without=without)
    functions = list(protos.functions(graph))
    if functions and DOMAIN not in graph.opsets:
        opsets.append(helper.make_opsetid(DOMAIN, 1))
    return helper.make_model(
        proto, functions=functions, opset_imports=opsets, ir_version=ir_version, producer_name="labkit"
    )


def save(
    graph: Graph, path: str | os.PathLike[str], metadata: Mapping[str, Mapping[str, str]] = MappingProxyType({})
) -> None:
    """Write a graph as ONNX: checked in full, then written beside its place and renamed, so never half a file.

    ``metadata`` are words about nodes, by the name of their first output; they become ONNX's ``metadata_props``.
    Raises GraphError when the model does not pass ONNX's checker or the folder cannot be written.
    """
    path = Path(path)
    weights = {name: array for name, array in graph.constants.items() if wire.is_large(array)}
    model = to_model(graph, without=weights)
    for node in model.graph.node if metadata else ():
        helper.set_metadata_props(node, dict(metadata.get(next(filter(None, node.output), ""), {})))
    _check(model, {name: TensorType.of(array) for name, array in weights.items() if name not in graph.input_names})
    temporary = path.parent / f".{path.name}.{os.getpid()}.tmp"
    try:
        with temporary.open("xb") as file:
            wire.write(model, weights, file)
        os.replace(temporary, path)
    except (OSError, ValueError, EncodeError) as error:  # protobuf writes no more than 2 GiB
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise GraphError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error})") from None


def _check(model: ModelProto, weights: Mapping[str, TensorType]) -> None:
    """ONNX's full check, with the weights as inputs: their types count, their elements need not be copied for it."""
    checked = ModelProto()
    checked.CopyFrom(model)
    checked.graph.input.extend(protos.value_info(Value(name, kind)) for name, kind in weights.items())
    try:
        onnx.checker.check_model(checked, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise GraphError(f"the model would not be valid ONNX: {' '.join(str(error).split())}") from None
