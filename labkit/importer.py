"""From ONNX's graphs to ours: nodes in an order in which they can run, every value typed, fused nodes whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from onnx import FunctionProto, GraphProto, NodeProto

from labkit import protos
from labkit.bodies import DOMAIN
from labkit.errors import GraphError
from labkit.graph import Array, Dim, Graph, Node, TensorType, Value
from labkit.inference import infer_types
from labkit.schemas import check

Constant: TypeAlias = Callable[[Value | None], Array | None]

DEEPEST = 32  # graphs within graphs: protobuf reads messages 100 deep, and each graph takes three


class Importer:
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
            for value in nodes[-1].results:
                known[value.name] = value
        outputs = tuple(_output(protos.to_value(info), known.get(info.name)) for info in proto.output)
        captures = _captures(outside, known, nodes, outputs) if outside else ()
        return Graph(proto.name, inputs, outputs, tuple(nodes), constants, dict(self.opsets), captures)

    def node(
        self, proto: NodeProto, known: Mapping[str, Value], constant: Constant, declared: Mapping[str, Value]
    ) -> Node:
        inputs = _read(proto, proto.input, known)
        if proto.domain == DOMAIN and proto.op_type in self.fused:
            return self.fused_node(proto, inputs, constant)
        attrs = {a.name: protos.to_attribute(a, lambda g: self.inner(proto, g, known)) for a in proto.attribute}
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        names = tuple([Value(name) if name else None for name in proto.output])
        draft = Node(proto.op_type, inputs, names, attrs, domain, proto.name)
        check(draft, {a.name: a.type for a in proto.attribute}, self.opsets)
        types = infer_types(draft, constant, self.opsets)
        pairs = zip(names, types, strict=True)
        outputs = tuple([v and _typed(v.name, kind, declared.get(v.name)) for v, kind in pairs])
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
        results = tuple(filter(None, _read(proto, function.output, known)))
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


def _read(proto: NodeProto, names: Iterable[str], known: Mapping[str, Value]) -> tuple[Value | None, ...]:
    try:
        return tuple([known[name] if name else None for name in names])
    except KeyError as error:
        raise GraphError(f"{protos.label(proto)} reads {error}, which nothing assigns") from None


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
