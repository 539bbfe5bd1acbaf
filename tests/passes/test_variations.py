"""Every graph of the catalogue, varied: a foreign operator, a second reader, a constant that can be fed, lost shapes,
open dims. What a rule takes for granted has to be asked for by a guard, and here it fails to hold, one thing at a time.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import labkit
from labkit.graph import Graph, Node, TensorType, Value
from labkit.onnx_io import from_model, to_model
from tests.passes.test_bug_reports import STRUCTURE
from tests.passes.test_catalogue import IMAGES, MATRICES, MIDDLES, f, i
from tests.passes.test_guards_of_axes import KEPT, RULES
from tests.passes.test_guards_of_gates import GRAPHS as GATES

FRAMES = {
    "middle": (MIDDLES, '(float[2, 3, 4] x) => (float["p", "q", "r"] y) {{ a = Relu(x) {} y = Sigmoid(b) }}'),
    "image": (IMAGES, '(float[1, 4, 6, 6] x) => (float[1, "c", "h", "w"] y) {{ {} }}'),
    "matrix": (MATRICES, '(float[5, 4] x) => (float["p", "q"] y) {{ {} }}'),
}
# Where the catalogue has an input, a tensor whose shape can be lost.
MORE = {
    "a pad behind a relu": (
        "(float[1, 4, 6, 6] x) => (float[1, 2, 6, 6] y) { r = Relu(x) p = Pad(r, t) y = Conv(p, w) }",
        {"t": i(0, 0, 1, 1, 0, 0, 1, 1), "w": f(2, 4, 3, 3)},
    ),
    "a transpose behind a relu": (
        "(float[3, 4] x) => (float[3, 5] y) { r = Relu(x) t = Transpose(r) s = Transpose(t) y = MatMul(s, w) }",
        {"w": f(4, 5)},
    ),
    "a shape of a relu": (
        "(float[2, 3, 4] x) => (float[2, 12] y) { r = Relu(x) s = Shape(r) g = Gather(s, z) "
        "c = Concat <axis: int = 0> (g, m) y = Reshape(r, c) }",
        {"z": i(0), "m": i(-1)},
    ),
    "a shape of another tensor": (
        '(float[2, 3, 4] x, float["n", 5] v) => (float["n", 12] y) { r = Relu(x) s = Shape(v) g = Gather(s, z) '
        "c = Concat <axis: int = 0> (g, m) y = Reshape(r, c) }",
        {"z": i(0), "m": i(-1)},
    ),
    "transposes around a relu": (
        "(float[3, 4] x) => (float[3, 4] y) { r = Relu(x) t = Transpose(r) e = Exp(t) u = Transpose(e) y = Neg(u) }",
        {},
    ),
    "a reduction of a relu": (
        "(float[2, 3, 4] x) => (float[2, 1, 4] y) "
        "{ r = Relu(x) m = ReduceMax <axes: ints = [1], keepdims: int = 0> (r) y = Unsqueeze(m, o) }",
        {"o": i(1)},
    ),
    "a split of a relu": (
        "(float[2, 4] x) => (float[2, 4] y) { r = Relu(x) a, b = Split <axis: int = 1> (r) c = Concat <axis: int = 1> (a, b) y = Neg(c) }",
        {},
    ),
    "an expand of a relu": (
        "(float[2, 4] x) => (float[2, 4] y) { r = Relu(x) s = Shape(r) e = Expand(r, s) y = Neg(e) }",
        {},
    ),
    "a size of a relu": ("(float[2, 4] x) => (int64 y, float[2, 4] z) { r = Relu(x) y = Size(r) z = Neg(r) }", {}),
    "a product of relus and a relu": (
        "(float[5, 4] x, float[4, 3] w, float[3] b) => (float[5, 3] y) "
        "{ r = Relu(x) v = Relu(w) m = MatMul(r, v) c = Relu(b) y = Add(m, c) }",
        {},
    ),
}
TEXTS = {
    f"{kind}: {name}": (frame.format(row[0]), row[1])
    for kind, (rows, frame) in FRAMES.items()
    for name, row in rows.items()
}
TEXTS |= {name: row[:2] for rows in (STRUCTURE, MORE) for name, row in rows.items()}
TEXTS |= {name: row[:2] for rows in (RULES, KEPT, GATES) for name, row in rows.items() if row[-1] == 17}
each_graph = pytest.mark.parametrize("name", TEXTS)


@pytest.fixture
def graph(parse, name):
    text, constants = TEXTS[name]
    return parse(f"agraph {text}", **constants)


def assert_same_and_no_more(graph: Graph) -> Graph:
    """Optimised, the graph computes the same, with no more nodes, products or bytes of constants."""
    after = labkit.optimize(graph).graph
    assert labkit.optimize(after).graph is after
    assert len(after.nodes) <= len(graph.nodes) + sum(len(b.nodes) for n in graph.nodes for b in n.bodies)
    assert products(after) <= products(graph)
    shapes = 1024  # of targets of Reshapes and the like, and of a bias that was not there
    assert constant_bytes(after) <= constant_bytes(graph) + shapes
    if after is not graph:
        labkit.verify(graph, after)
    return after


def products(graph: Graph) -> int:
    return sum(node.op in ("Conv", "ConvTranspose", "Gemm", "MatMul") for node in graph.nodes)


def constant_bytes(graph: Graph) -> int:
    return sum(array.nbytes for array in graph.constants.values())


@each_graph
def test_an_operator_of_another_domain_is_none_that_a_rule_knows(graph):
    for node in graph.nodes:
        if node.output.name in graph.output_names or not graph.users.get(node.output.name):
            continue
        if node.op == "Shape" and graph.users[node.output.name][0].op == "Expand":
            continue  # whatever three numbers these are: an axis longer than 1 cannot be expanded
        foreign = replace(node, domain="com.acme")
        nodes = tuple(foreign if other is node else _untyped(other) for other in graph.nodes)
        varied = replace(graph, nodes=nodes, opsets={**graph.opsets, "com.acme": 1})
        # Types that rest on the operator have to be found again without it.
        after = labkit.optimize(from_model(to_model(varied))).graph
        assert [other.op for other in after.nodes if other.domain] == [node.op]


@each_graph
def test_what_others_read_as_well_is_not_done_twice(graph):
    for value in (value for node in graph.nodes for value in node.results):
        if value.name not in graph.output_names and value.type is not None:  # sequences are not compared
            assert_same_and_no_more(replace(graph, outputs=(*graph.outputs, value)))


@each_graph
def test_a_constant_that_a_caller_can_feed_is_none(graph):
    for name, array in graph.constants.items():
        inputs = (*graph.inputs, Value(name, TensorType.of(array)))
        outputs = tuple(Value(value.name, TensorType(None, value.dtype or "")) for value in graph.outputs)
        # Types that rest on the constant have to be found again without it.
        nodes = tuple(map(_untyped, graph.nodes))
        assert_same_and_no_more(from_model(to_model(replace(graph, inputs=inputs, outputs=outputs, nodes=nodes))))


@each_graph
def test_a_tensor_of_unknown_rank_is_left_alone_or_handled(graph):
    for lost in (*([node] for node in graph.nodes), graph.nodes):
        new = {v.name: Value(v.name, TensorType(None, v.dtype)) for node in lost for v in node.results if v.dtype}
        nodes = tuple(_with_outputs(node, new).rename(new) for node in graph.nodes)
        outputs = tuple(new.get(value.name, value) for value in graph.outputs)
        assert_same_and_no_more(replace(graph, nodes=nodes, outputs=outputs))


@each_graph
def test_open_dims_hold_for_the_sizes_they_have(graph):
    sizes = {value.name: value.type for value in graph.inputs}
    for axes in ((0,), (1,), (2,), (0, 1), (0, 1, 2)):
        opened = replace(graph, inputs=tuple(_opened(value, axes) for value in graph.inputs))
        try:
            opened = from_model(to_model(replace(opened, nodes=tuple(map(_untyped, graph.nodes)))))
        except labkit.errors.LabError:
            continue
        after = labkit.optimize(opened).graph
        both = [replace(one, inputs=tuple(Value(v.name, sizes[v.name]) for v in one.inputs)) for one in (opened, after)]
        if after is not opened:
            labkit.verify(*both)


def _opened(value: Value, axes: tuple[int, ...]) -> Value:
    assert value.type is not None
    dims = tuple(f"d{axis}" if axis in axes else dim for axis, dim in enumerate(value.shape or ()))
    return Value(value.name, TensorType(dims, value.type.dtype))


def _with_outputs(node: Node, new: dict[str, Value]) -> Node:
    return replace(node, outputs=tuple(value and new.get(value.name, value) for value in node.outputs))


def _untyped(node: Node) -> Node:
    return replace(node, outputs=tuple(value and Value(value.name) for value in node.outputs))
