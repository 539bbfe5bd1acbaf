"""From ONNX's graphs to ours: nodes in an order in which they can run, every value typed, fused nodes whole."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple, TypeAlias

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

from labkit import protos
from labkit.bodies import DOMAIN
from labkit.errors import GraphError
from labkit.graph import Array, Dim, Graph, Node, TensorType, Value
from labkit.inference import infer_types
from labkit.schemas import check, check_text
from labkit.tensor_protos import to_array, to_value

Constant: TypeAlias = Callable[[Value | None], Array | None]
Answer: TypeAlias = tuple[Mapping[str, Any], tuple[TensorType | None, ...]]  # attributes, types of outputs

_PLAIN = {AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.FLOATS,
          AttributeProto.STRING, AttributeProto.STRINGS}  # fmt: skip

DEEPEST = 32  # graphs within graphs: protobuf reads messages 100 deep, and each graph takes three


class _Line(NamedTuple):
    """A node of the file and the names that it reads and makes: asking protobuf for them again and again is slow."""

    proto: NodeProto
    op: str
    domain: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]

    @staticmethod
    def of(proto: NodeProto) -> _Line:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        return _Line(proto, proto.op_type, domain, tuple(proto.input), tuple(proto.output))


class Importer:
    """Reads a graph and the graphs within it; they share the opsets and see the values around them."""

    def __init__(self, opsets: Mapping[str, int], ir_version: int, fused: Mapping[str, FunctionProto]) -> None:
        self.opsets = opsets
        self.ir_version = ir_version
        self.fused = fused
        self.depth = 0
        self.answers: dict[Hashable, Answer] = {}  # most nodes of a network are like others of it

    def graph(
        self, proto: GraphProto, outside: Mapping[str, Value], weights: Mapping[str, Array] | None = None
    ) -> Graph:
        if proto.sparse_initializer:
            raise GraphError(f"graph {proto.name!r} holds sparse initializers, which labkit does not read")
        constants = {tensor.name: to_array(tensor) for tensor in proto.initializer} | dict(weights or {})
        # Before IR 4 every constant had to be listed among the inputs; since then, being listed means it can be fed.
        listed = self.ir_version < 4
        inputs = tuple(to_value(i) for i in proto.input if not (listed and i.name in constants))
        known = {**outside, **{name: Value(name, TensorType.of(array)) for name, array in constants.items()}}
        known |= {value.name: _as_read(value) if self.depth else value for value in inputs}
        declared = {info.name: to_value(info) for info in (*proto.value_info, *proto.output)}
        overridable = {value.name for value in inputs}

        def constant(value: Value | None) -> Array | None:
            return constants.get(value.name) if value is not None and value.name not in overridable else None

        nodes = []
        for line in _in_order(proto, known):
            if line.op == "Constant" and not line.domain:
                array, name = protos.constant_array(line.proto), line.makes[0]
                constants[name] = array
                known[name] = Value(name, TensorType.of(array))
                continue
            nodes.append(self.node(line, known, constant, declared))
            for value in nodes[-1].results:
                known[value.name] = value
        outputs = tuple(_output(to_value(info), known.get(info.name)) for info in proto.output)
        captures = _captures(outside, known, nodes, outputs) if outside else ()
        return Graph(proto.name, inputs, outputs, tuple(nodes), constants, dict(self.opsets), captures)

    def node(self, line: _Line, known: Mapping[str, Value], constant: Constant, declared: Mapping[str, Value]) -> Node:
        inputs, name = _read(line.proto, line.reads, known), line.proto.name
        if line.domain == DOMAIN and line.op in self.fused:
            return self.fused_node(line, inputs, constant)
        check_text(line.op, (line.domain, name, *line.makes))
        question = _question(line, inputs, constant)
        attrs, types = self.answers.get(question) or self._answer(question, line, inputs, known, constant)
        pairs = zip(line.makes, types, strict=True)
        outputs = tuple([_typed(made, kind, declared.get(made)) if made else None for made, kind in pairs])
        return Node(line.op, inputs, outputs, dict(attrs), line.domain, name)

    def _answer(
        self,
        question: Hashable,
        line: _Line,
        inputs: tuple[Value | None, ...],
        known: Mapping[str, Value],
        constant: Constant,
    ) -> Answer:
        """The attributes and types of a node; kept for the nodes alike, unless they are its own: types that came from
        the elements of a constant, or unknown dims, which bear the node's name."""
        proto, seen = line.proto, []
        attrs = {a.name: protos.to_attribute(a, lambda g: self.inner(proto, g, known)) for a in proto.attribute}
        names = tuple([Value(name) if name else None for name in line.makes])
        draft = Node(line.op, inputs, names, attrs, line.domain, proto.name)
        check(draft, {a.name: a.type for a in proto.attribute}, self.opsets)

        def watched(value: Value | None) -> Array | None:
            if (array := constant(value)) is not None:
                seen.append(array)
            return array

        answer = attrs, infer_types(draft, watched, self.opsets)
        if question is not None and not seen and not any(kind and _has_unknown(kind) for kind in answer[1]):
            self.answers[question] = answer
        return answer

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

    def fused_node(self, line: _Line, inputs: tuple[Value | None, ...], constant: Constant) -> Node:
        """A call of a function that this library wrote: its body, typed by what the call feeds."""
        proto, function = line.proto, self.fused[line.op]
        if None in inputs or (len(inputs), len(line.makes)) != (len(function.input), len(function.output)):
            raise GraphError(f"{protos.label(proto)} does not fit the function that it calls")
        fed = {formal: value for formal, value in zip(function.input, inputs, strict=True) if value}
        known = {formal: replace(value, name=formal) for formal, value in fed.items()}
        formals = tuple(known.values())
        nodes = []
        for step in map(_Line.of, function.node):
            nodes.append(self.node(step, known, lambda value: constant(fed.get(value.name)) if value else None, {}))
            known.update((value.name, value) for value in nodes[-1].results)
        results = tuple(filter(None, _read(proto, function.output, known)))
        opsets = {entry.domain: entry.version for entry in function.opset_import}
        body = Graph(function.name, formals, results, tuple(nodes), opsets=opsets)
        outputs = tuple(replace(value, name=name) for value, name in zip(results, line.makes, strict=True))
        return Node(line.op, inputs, outputs, {}, DOMAIN, proto.name, body)


def _question(line: _Line, inputs: tuple[Value | None, ...], constant: Constant) -> Hashable:
    """What decides the attributes of a node and the types of its outputs, names and the elements of constants aside;
    None for a node with graphs or tensors among its attributes."""
    kinds = tuple([value and (value.type, constant(value) is None) for value in inputs])
    there = tuple(map(bool, line.makes))
    if not (attributes := line.proto.attribute):
        return (line.op, line.domain, kinds, there)
    if any(attribute.type not in _PLAIN for attribute in attributes):
        return None
    return (line.op, line.domain, kinds, there, *[attribute.SerializeToString() for attribute in attributes])


def _has_unknown(kind: TensorType) -> bool:
    return any("?" in dim for dim in kind.shape or () if isinstance(dim, str))


def _captures(
    outside: Mapping[str, Value], known: Mapping[str, Value], nodes: Sequence[Node], outputs: Sequence[Value]
) -> tuple[Value, ...]:
    """The values of the graph around that this one reads, and does not have under the same name itself."""
    read = {value.name for node in nodes for value in node.uses} | {value.name for value in outputs}
    return tuple(value for name, value in outside.items() if name in read and known[name] is value)


def _in_order(proto: GraphProto, known: Mapping[str, Value]) -> list[_Line]:
    """The nodes in an order in which they can run; GraphError names a node of a cycle."""
    lines = list(map(_Line.of, proto.node))
    ready = {"", *known}
    for line in lines:
        if not ready.issuperset(line.reads):
            return _sorted(lines)
        ready.update(line.makes)
    return lines


def _sorted(lines: Sequence[_Line]) -> list[_Line]:
    producer = {name: index for index, line in enumerate(lines) for name in line.makes if name}
    needs = {i: [producer[name] for name in line.reads if name in producer] for i, line in enumerate(lines)}
    try:
        return [lines[index] for index in TopologicalSorter(needs).static_order()]
    except CycleError as error:
        around = [protos.label(lines[index].proto) for index in reversed(error.args[1])]
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
