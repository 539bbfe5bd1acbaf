"""Guards one by one, continued: what may be known of a shape that is computed at run time."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import labkit
from labkit.onnx_io import from_model
from tests.passes.test_catalogue import read_in


def i(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def ops(graph):
    return [node.op for node in graph.nodes]


def test_a_size_beyond_its_type_is_left_to_the_run(parse):
    """2⁴⁰ · 2⁴⁰ is no int64; what a run makes of it, wrapped around, is not for a pass to say."""
    text = '(float["n", 1099511627776] x) => (int64[1] y) { s = Shape(x) m = Mul(s, s) g = Gather(m, one) y = Neg(g) }'
    assert ops(labkit.optimize(parse(f"agraph {text}", one=i(1))).graph) == ["Shape", "Mul", "Gather", "Neg"]


def test_a_shape_that_doubles_forty_times_is_not_read(parse):
    links = " ".join(f"s{at + 1} = Concat <axis: int = 0> (s{at}, s{at})" for at in range(40))
    text = f'(float["n", 4] x) => (int64["m"] y) {{ s0 = Shape(x) {links} y = Neg(s40) }}'
    assert ops(labkit.optimize(parse(f"agraph {text}")).graph) == ["Shape", *["Concat"] * 40, "Neg"]


def test_a_product_that_doubles_forty_times_is_not_read(parse):
    links = " ".join(f"s{at + 1} = Mul(s{at}, s{at})" for at in range(40))
    text = f'(float["n", 4] x) => (int64["m"] y) {{ s0 = Shape(x) {links} y = Neg(s40) }}'
    assert ops(labkit.optimize(parse(f"agraph {text}")).graph) == ["Shape", *["Mul"] * 40, "Neg"]


def test_what_an_operator_of_another_domain_makes_is_not_known():
    text = """<ir_version: 8, opset_import: ["": 17, "com.acme": 1]>
        agraph (float[2, 3] x) => (float[3, 2] y) <int64[2] s, int64[2] t = {2, 3}> {
            s = com.acme.Identity(t) y = Reshape(x, s) }"""
    graph = from_model(onnx.parser.parse_model(text))
    assert graph.nodes[0].output.dtype == "int64"
    assert labkit.optimize(graph).graph is graph


# name: (nodes that make the target of a Reshape from s, the shape n×4 of x, operators left)
SUMS = {
    "a sum of two sizes": "t = Shape(z) m = Add(s, t)",
    "a number less a size": "m = Sub(eight, s)",
    "a sum times itself, and one more": "a = Add(s, one) b = Mul(a, a) m = Add(b, one)",
    "half a size": "g = Gather(s, zero) h = Div(g, two) m = Concat <axis: int = 0> (h, eight)",
}


@pytest.mark.parametrize("name", SUMS)
def test_what_a_sum_of_sizes_comes_to_is_not_guessed(parse, name):
    text = (
        f'(float["n", 4] x, float["m", 4] z) => (float["p", "q"] y) {{ s = Shape(x) {SUMS[name]} y = Reshape(x, m) }}'
    )
    constants = {"zero": i(0), "one": i(1), "two": i(2), "eight": i(8)}
    graph = parse(f"agraph {text}", **constants)
    after = labkit.optimize(graph).graph
    assert ops(after)[-1] == "Reshape"
    if name == "half a size":
        labkit.verify(graph, after)


def test_a_tensor_of_unknown_rank_says_nothing_of_its_shape():
    text = """<ir_version: 8, opset_import: ["": 17, "com.acme": 1]>
        agraph (float["n", 3] x) => (float["a", "b"] y, float["c", "d"] z) <int64[2] t> {
            f = com.acme.F(x) s = Shape(x) t = Shape(f) y = Reshape(x, t) r = Reshape(f, s) e = Expand(f, s)
            u = Transpose <perm: ints = [1, 0]> (f) v = Add(r, e) z = Add(u, v) }"""
    graph = from_model(onnx.parser.parse_model(text))
    assert ops(labkit.optimize(graph).graph) == [
        "F",
        "Shape",
        "Shape",
        "Reshape",
        "Reshape",
        "Expand",
        "Transpose",
        "Add",
        "Add",
    ]


def test_an_expand_to_a_shape_that_is_fed_stays(parse):
    graph = parse('agraph (float[1, 3] x, int64[2] s) => (float["a", "b"] y) { y = Expand(x, s) }')
    assert labkit.optimize(graph).graph is graph


def test_a_pad_by_what_is_fed_stays(parse):
    graph = parse('agraph (float[3] x, int64[2] p) => (float["a"] y) { y = Pad(x, p) }')
    assert labkit.optimize(graph).graph is graph


IF = """a = If (o) <then_branch = p () => (float["n", 4] u) { u = Neg(x) },
    else_branch = q () => (float["n", 4] v) { v = Exp(x) }> y = Shape(a)"""
# nodes that make y, the Shape of something of n×4 like x, and what is left of them
ALIKE = {
    "of an elementwise chain": ("a = Relu(x) b = Exp(a) y = Shape(b)", "Shape"),
    "of a cast": ("a = Cast <to: int = 7> (x) y = Shape(a)", "Shape"),
    "of the wider of two operands": ("a = Add(k, x) y = Shape(a)", "Shape"),
    "of some axes": ("a = Softmax(x) s = Shape <start: int = 0, end: int = 1> (a) y = Neg(s)", "Shape Neg"),
    "of what comes out of an If": (IF, "Shape"),
    "its product": ("a = Sigmoid(x) s = Size(a) y = Reshape(s, t)", "Size Reshape"),
    "of another shape": ("a = Transpose(x) y = Shape(a)", "Transpose Shape"),
    "of what another node reads": (
        "a = Relu(x) s = Shape(a) b = Reshape(a, t) c = Shape(b) y = Concat <axis: int = 0> (s, c)",
        "Relu Shape Reshape Shape Concat"),
}  # fmt: skip


@pytest.mark.parametrize("name", ALIKE)
def test_the_shape_of_what_is_alike_is_read_further_up(parse, name):
    text, left = ALIKE[name]
    used = read_in(text, {"k": np.ones(4, np.float32), "t": i(-1)})
    graph = parse(f'agraph (float["n", 4] x, bool o) => (int64["r"] y) {{ {text} }}', **used)
    after = labkit.optimize(graph).graph
    assert ops(after) == left.split()
    assert ops(graph) != ops(after) or after is graph, "what stays stays as it is"
    labkit.verify(graph, after)


def test_the_shape_of_an_unknown_rank_is_read_where_it_is():
    text = """<ir_version: 8, opset_import: ["": 17, "com.acme": 1]>
        agraph (float["n", 3] x) => (int64["r"] y) { f = com.acme.F(x) g = com.acme.F(f) y = Shape(g) }"""
    graph = from_model(onnx.parser.parse_model(text))
    assert labkit.optimize(graph).graph is graph
