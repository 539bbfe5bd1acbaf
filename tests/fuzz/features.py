"""What a generated graph holds, read from the graph alone: the generator must not judge itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labkit.graph import Graph, Node, Value

FEATURES = (
    "a value read twice", "a graph output read inside", "a constant with two readers", "several outputs",
    "an optional input left out", "an output left out or unused", "a dead node", "an axis of length 1",
    "an axis of length 0", "a square weight", "a constant that enlarges", "a unit", "bounds that cross",
    "an overridable constant", "an open batch", "an output that is an input", "an output that is a constant",
    "two outputs of one value", "an If decided beforehand", "an If decided at run time", "a captured value",
    "an unknown dim", "equal nodes", "axes as an attribute", "axes as an input",
    *(f"constants of rank {rank}" for rank in range(5)),
    "a grouped Conv", "a grouped ConvTranspose", "a random node", "training mode",
    "float16", "float64", "int64", "bool",
)  # fmt: skip

# The op table, and what the passes name beside it. (Upsample, gone since opset 10, occurs too rarely to demand.)
OPERATORS = (
    "Abs", "Add", "And", "ArgMax", "AveragePool", "BatchNormalization", "Cast", "CastLike", "Ceil", "Clip", "Concat",
    "ConstantOfShape", "Conv", "ConvTranspose", "Cos", "Div", "Dropout", "Elu", "Equal", "Erf", "Exp", "Expand",
    "Flatten", "Floor", "Gather", "Gemm", "GlobalAveragePool", "GlobalMaxPool", "Greater", "HardSigmoid", "Identity",
    "If", "LRN", "LeakyRelu", "Less", "Log", "MatMul", "Max", "MaxPool", "Mean", "Min", "Mul", "Neg", "NonZero",
    "Not", "Or", "PRelu", "Pad", "Pow", "RandomNormalLike", "Reciprocal", "ReduceL1", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceSum", "Relu", "Reshape", "Resize", "Round", "Shape", "Sigmoid", "Sign", "Sin", "Size",
    "Slice", "Softmax", "Softplus", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile", "Transpose",
    "Unsqueeze", "Where", "Xor",
)  # fmt: skip


def features(graph: Graph) -> set[str]:
    """Which of FEATURES a graph has, and its operators and opset beside them."""
    found = {f"opset {graph.opset}"} | {node.op for node in graph.nodes}
    return found | set(_of_graph(graph)) | {name for node in graph.nodes for name in _of_node(graph, node)}


def _of_graph(graph: Graph) -> Iterator[str]:
    types = [value.type for node in graph.nodes for value in node.results if value.type]
    dims = {dim for kind in types for dim in kind.shape or ()}
    yield from (f"an axis of length {size}" for size in (0, 1) if size in dims)
    yield from {kind.dtype for kind in types}
    if any(isinstance(dim, str) and dim.startswith("?") for dim in dims):
        yield "an unknown dim"
    if any(isinstance(dim, str) for value in graph.inputs for dim in value.shape or ()):
        yield "an open batch"
    if graph.input_names & graph.constants.keys():
        yield "an overridable constant"
    if graph.output_names & graph.input_names:
        yield "an output that is an input"
    if graph.output_names & (graph.constants.keys() - graph.input_names):
        yield "an output that is a constant"
    if graph.output_names & graph.users.keys() & graph.producers.keys():
        yield "a graph output read inside"
    if any(len(set(map(id, nodes))) > 1 for name, nodes in graph.users.items() if name in graph.constants):
        yield "a constant with two readers"
    if any(len(nodes) > 1 for name, nodes in graph.users.items() if name in graph.producers):
        yield "a value read twice"
    named = [node for node in graph.nodes if node.op == "Identity" and node.output.name in graph.output_names]
    if any(node.uses[0].name in graph.output_names for node in named):
        yield "two outputs of one value"
    live = graph.users.keys() | graph.output_names
    if any(not {value.name for value in node.results} & live for node in graph.nodes):
        yield "a dead node"
    keys = [(node.op, node.inputs, repr(dict(node.attrs))) for node in graph.nodes if not node.bodies]
    if len(set(keys)) < len(keys):
        yield "equal nodes"


def _of_node(graph: Graph, node: Node) -> Iterator[str]:
    if len(node.outputs) > 1:
        yield "several outputs"
        live = graph.users.keys() | graph.output_names
        if any(value is None or value.name not in live for value in node.outputs):
            yield "an output left out or unused"
    if None in node.inputs:
        yield "an optional input left out"
    if node.op in ("Squeeze", "Unsqueeze", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"):
        yield "axes as an attribute" if "axes" in node.attrs else "axes as an input"
    if node.op in ("Conv", "ConvTranspose") and node.attrs.get("group", 1) > 1:
        yield f"a grouped {node.op}"
    if node.op.startswith("Random"):
        yield "a random node"
    if node.attrs.get("training_mode"):
        yield "training mode"
    if node.op == "If":
        computed = node.uses[0].name in graph.input_names
        yield "an If decided at run time" if computed else "an If decided beforehand"
        if any(body.captures for body in node.bodies):
            yield "a captured value"
    yield from _of_constants(graph, node)


def _of_constants(graph: Graph, node: Node) -> Iterator[str]:
    arrays = {value.name: graph.constant(value) for value in node.uses}
    known = {name: array for name, array in arrays.items() if array is not None}
    if node.op in ("Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Sum", "PRelu"):
        for array in known.values():
            yield f"constants of rank {array.ndim}"
            if array.size and (array == array.ravel()[0]).all() and array.ravel()[0] in (0, 1):
                yield "a unit"
        yield from _enlarging(graph, node)
    if node.op in ("Conv", "ConvTranspose", "Gemm", "MatMul") and len(node.uses) > 1:
        weight = known.get(node.uses[1].name, np.zeros(0))
        if weight.ndim >= 2 and weight.shape[0] == weight.shape[1] > 1:
            yield "a square weight"
    if node.op == "Clip":
        ends = [node.attrs.get("min"), node.attrs.get("max")]
        if graph.opset >= 11:
            inputs: list[Value | None] = [*node.inputs[1:], None, None]
            ends = [known.get(value.name) if value else None for value in inputs[:2]]
        if None not in ends and float(ends[0]) > float(ends[1]):  # type: ignore[arg-type]
            yield "bounds that cross"


def _enlarging(graph: Graph, node: Node) -> Iterator[str]:
    varying = [value for value in node.uses if graph.constant(value) is None]
    if len(varying) == 1 and varying[0].shape != node.output.shape:
        yield "a constant that enlarges"
