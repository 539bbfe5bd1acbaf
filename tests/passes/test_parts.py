"""Parts that are put together again, places without their axis, scales in a row, and what is spread for nothing."""

import numpy as np
import onnx
import pytest

import labkit
from labkit.onnx_io import from_model
from tests.passes.test_catalogue import f, i, n, read_in

BIG = 2**63 - 1


def ops(graph):
    return [node.op for node in graph.nodes]


NUMBERS = {"i0": i(0), "i1": i(1), "i2": i(2), "i3": i(3), "m1": i(-1), "big": i(BIG)}
# name: (nodes from x to y, constants beside NUMBERS, operators left); x and y have three axes.
ROWS = {
    "slices in a row, put together": (
        "a = Slice(x, i0, i1, i2) b = Slice(x, i1, i3, i2) c = Slice(x, i3, big, i2) d = Concat <axis: int = 2> (a, b, c) y = Neg(d)",
        {}, "Neg"),
    "along an axis counted from behind": (
        "a = Slice(x, i0, i1, m1) b = Slice(x, i1, big, i2) d = Concat <axis: int = -1> (a, b) y = Neg(d)", {}, "Neg"),
    "slices that change places": (
        "a = Slice(x, i0, i1, i2) b = Slice(x, i1, big, i2) y = Concat <axis: int = 2> (b, a)", {}, "Slice Slice Concat"),
    "slices that leave the first out": (
        "a = Slice(x, i1, i2, i2) b = Slice(x, i2, big, i2) y = Concat <axis: int = 2> (a, b)", {}, "Slice Slice Concat"),
    "slices that leave the last out": (
        "a = Slice(x, i0, i1, i2) b = Slice(x, i1, i3, i2) y = Concat <axis: int = 2> (a, b)", {}, "Slice Slice Concat"),
    "slices with a hole between": (
        "a = Slice(x, i0, i1, i2) b = Slice(x, i2, big, i2) y = Concat <axis: int = 2> (a, b)", {}, "Slice Slice Concat"),
    "slices that go back in between": (
        "a = Slice(x, i0, i3, i2) b = Slice(x, i3, i1, i2) c = Slice(x, i1, big, i2) y = Concat <axis: int = 2> (a, b, c)",
        {}, "Slice Slice Concat"),
    "slices, one of them of nothing": (
        "a = Slice(x, i0, i3, i2) b = Slice(x, i3, i3, i2) c = Slice(x, i3, big, i2) d = Concat <axis: int = 2> (a, b, c) y = Neg(d)",
        {}, "Neg"),
    "slices along another axis": (
        "a = Slice(x, i0, i1, i1) b = Slice(x, i1, big, i1) y = Concat <axis: int = 2> (a, a)", {}, "Slice Concat"),
    "slices along two axes": (
        "a = Slice(x, two, one_two, one_two) b = Slice(x, two_one, four, one_two) y = Concat <axis: int = 2> (a, b)",
        {"two": i(0, 0), "one_two": i(1, 2), "two_one": i(0, 2), "four": i(1, 4)}, "Slice Slice Concat"),
    "slices by twos": (
        "a = Slice(x, i0, i2, i2, i2) b = Slice(x, i2, big, i2, i2) y = Concat <axis: int = 2> (a, b)", {}, "Slice Slice Concat"),
    "slices by twos among others": (
        "a = Slice(x, i0, i1, i2) b = Slice(x, i0, big, i2, i2) c = Slice(x, i1, big, i2) y = Concat <axis: int = 2> (a, b, c)",
        {}, "Slice Slice Slice Concat"),
    "clips to what could be places": (
        "a = Clip(x, zero, one) b = Clip(x, one, two) y = Concat <axis: int = 0> (a, b)",
        {"zero": np.float32(0), "one": np.float32(1), "two": np.float32(2)}, "Clip Clip Concat"),
    "one axis of a place with two": (
        "a = Gather <axis: int = 1> (x, place) y = Squeeze(a, i1)", {"place": i(2).reshape(1, 1)}, "Gather Squeeze"),
    "slices of two tensors": (
        "e = Exp(x) a = Slice(x, i0, i1, i2) b = Slice(e, i1, big, i2) y = Concat <axis: int = 2> (a, b)",
        {}, "Exp Slice Slice Concat"),
    "a slice and a whole": ("a = Slice(x, i0, i1, i2) y = Concat <axis: int = 2> (a, x)", {}, "Slice Concat"),
    "scales in a row": ("a = Mul(x, k) y = Mul(c, a)", {"k": f(4), "c": n(3)}, "Mul"),
    "quotients in a row": ("a = Div(x, k) b = Div(a, c) y = Mul(b, k)", {"k": f(4), "c": n(3)}, "Mul"),
    "scales of two axes": ("a = Mul(x, k) y = Mul(a, c)", {"k": f(4), "c": f(3, 1)}, "Mul Mul"),
    "a scale that is read elsewhere": ("a = Mul(x, k) b = Mul(a, c) y = Add(a, b)", {"k": f(4), "c": n(3)}, "Mul Mul Add"),
    "a number by what is scaled": ("a = Mul(x, k) y = Div(c, a)", {"k": f(4), "c": n(3)}, "Mul Div"),
    "a sum, then a scale": ("a = Add(x, k) y = Mul(a, c)", {"k": f(4), "c": n(3)}, "Add Mul"),
    "sums in a row": ("a = Add(x, c) y = Sub(a, c)", {"c": n(2**23)}, "Add Sub"),
    "scales of which one is zero": ("a = Mul(x, k) y = Mul(a, c)", {"k": n(1, 0, 2, 3), "c": n(3)}, "Mul Mul"),
    "a scale so small that digits are lost": ("a = Mul(x, k) y = Mul(a, c)", {"k": n(1e-40), "c": n(1e10)}, "Mul Mul"),
    "scales beyond the largest float": ("a = Mul(x, k) y = Mul(a, k)", {"k": n(1e30)}, "Mul Mul"),
    "scales below the smallest float": ("a = Mul(x, k) y = Mul(a, k)", {"k": n(1e-20)}, "Mul Mul"),
    "a scale by infinity": ("a = Mul(x, c) y = Div(a, k)", {"k": n(np.inf), "c": n(3)}, "Mul Div"),
    "scales of integers": (
        "j = Cast <to: int = 7> (x) a = Mul(j, i3) b = Div(a, i2) y = Cast <to: int = 1> (b)", {}, "Cast Mul Div Cast"),
}  # fmt: skip
# The same, but y has two axes.
MATRICES = {
    "a place without its axis": ("a = Gather <axis: int = 1> (x, i2) y = Squeeze(a, i1)", {}, "Gather"),
    "the last place, axes counted from behind": ("a = Gather <axis: int = -3> (x, m1) y = Squeeze(a, i0)", {}, "Gather"),
    "two places": ("a = Gather <axis: int = 1> (x, two) b = Slice(a, i0, i1, i1) y = Squeeze(b, i1)",
                   {"two": i(2, 0)}, "Gather Slice Squeeze"),
    "a place that is read elsewhere": (
        "a = Gather <axis: int = 1> (x, i2) s = Squeeze(a, i1) t = ReduceMax <axes: ints = [1], keepdims: int = 0> (a) y = Add(s, t)",
        {}, "Gather Squeeze ReduceMax Add"),
    "a place that is computed": (
        "r = ArgMax <axis: int = 2> (x) g = ReduceMax <keepdims: int = 0> (r) u = Unsqueeze(g, i0) "
        "a = Gather <axis: int = 1> (x, u) y = Squeeze(a, i1)",
        {}, "ArgMax ReduceMax Unsqueeze Gather Squeeze"),
    "both axes of a place": ("a = Gather <axis: int = 1> (x, place) y = Squeeze(a, axes)",
                             {"place": i(2).reshape(1, 1), "axes": i(1, 2)}, "Gather Squeeze"),
}  # fmt: skip


@pytest.mark.parametrize("name", [*ROWS, *MATRICES])
def test_of_parts_and_scales_is_left_what_has_to_be(parse, name):
    text, constants, left = ROWS.get(name) or MATRICES[name]
    used = read_in(text, {**NUMBERS, **constants})
    shape = '"p", "q", "r"' if name in ROWS else '"p", "q"'
    graph = parse(f"agraph (float[2, 3, 4] x) => (float[{shape}] y) {{ {text} }}", **used)
    after = labkit.optimize(graph).graph
    assert ops(after) == left.split()
    assert ops(graph) != ops(after) or after is graph, "what stays stays as it is"
    labkit.verify(graph, after)


def test_a_place_and_an_axis_of_one_element_take_both_nodes(parse):
    """A Gather at a scalar drops one axis, not two."""
    graph = parse(
        'agraph (float[1, 3, 4] x) => (float["p"] y) { a = Gather <axis: int = 1> (x, i2) y = Squeeze(a, both) }',
        i2=i(2), both=i(0, 1),
    )  # fmt: skip
    assert labkit.optimize(graph).graph is graph


def test_parts_of_an_unknown_rank_stay():
    text = """<ir_version: 8, opset_import: ["": 17, "com.acme": 1]>
        agraph (float[2, 3] x) => (float["a", "b"] y, float["c"] z)
        <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}> {
            f = com.acme.F(x) a = Slice(f, zero, one) b = Slice(f, one, two) y = Concat <axis: int = 0> (a, b)
            g = Gather(f, one) q = Squeeze(g, zero) e = Expand(f, two) r = Expand(e, two) p = Softmax(r)
            k = ArgMax <axis: int = -1> (p) s = Shape(f) w = Add(f, e) z = Concat <axis: int = 0> (q, r, k, s, w) }"""
    graph = from_model(onnx.parser.parse_model(text))
    assert labkit.optimize(graph).graph is graph


def test_a_place_in_a_tensor_of_unknown_rank_keeps_its_axis_though_the_file_says_what_is_left():
    text = """<ir_version: 8, opset_import: ["": 17, "com.acme": 1]>
        agraph (float[2, 3] x) => (float[3] y) <int64[1] zero = {0}, int64[1] one = {1}> {
            f = com.acme.F(x) a = Gather(f, one) y = Squeeze(a, zero) }"""
    graph = from_model(onnx.parser.parse_model(text))
    assert labkit.optimize(graph).graph is graph


def test_what_another_domain_calls_expand_is_not_known():
    text = """<ir_version: 8, opset_import: ["": 17, "com.acme": 1]>
        agraph (float[2, 3] x, float[3] k) => (float[2, 3] y) <int64[2] s = {2, 3}, float[2, 3] e> {
            e = com.acme.Expand(k, s) y = Add(x, e) }"""
    graph = from_model(onnx.parser.parse_model(text))
    assert labkit.optimize(graph).graph is graph


# name: (nodes from x to y, operators left); the batches n and m are open.
OPEN = {
    "zeros like x": ("s = Shape(x) z = ConstantOfShape(s) a = Add(x, z) y = Neg(a)", "Neg"),
    "twos like x": ("s = Shape(x) z = ConstantOfShape <value: tensor = float[1] {2.0}> (s) y = Mul(x, z)", "Mul"),
    "a row spread like x": ("s = Shape(x) z = Expand(k, s) y = Mul(x, z)", "Mul"),
    "a row spread like another": ("s = Shape(w) z = Expand(k, s) y = Mul(x, z)", "Shape Expand Mul"),
    "a shape that is fed": ("z = Expand(k, t) y = Mul(x, z)", "Expand Mul"),
    "a shape that is fed behind one that is not": (
        "s = Shape(x) z = Expand(k, s) y = Expand(z, t)",
        "Shape Expand Expand",
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_is_spread_as_wide_as_an_open_batch_need_not_be(parse, name):
    text, left = OPEN[name]
    inputs = 'float["n", 4] x, float["m", 4] w, int64[2] t'
    graph = parse(f'agraph ({inputs}) => (float["p", "q"] y) {{ {text} }}', k=f(1, 4))
    after = labkit.optimize(graph).graph
    assert ops(after) == left.split()
    for size in (1, 2, 3):
        feeds = {"x": f(size, 4), "w": f(size, 4), "t": i(size, 4)}
        np.testing.assert_array_equal(labkit.run(after, feeds)["y"], labkit.run(graph, feeds)["y"])


# name: (nodes from x and k to y, operators left); the batches n and m are open.
LIKE = {
    "a size that is computed": (
        'float["n", 2, 4, 5] x', "s = Shape(x) b = Slice(s, i0, i2) c = Concat <axis: int = 0> (b, rest) "
        'r = Resize <mode: string = "linear"> (x, , , c) y = Neg(r)', "Neg"),
    "a size that is computed from another tensor": (
        'float["n", 2, 4, 5] x, float["m", 2, 4, 5] w', "s = Shape(w) b = Slice(s, i0, i2) c = Concat <axis: int = 0> (b, rest) "
        'r = Resize <mode: string = "nearest"> (x, , , c) y = Neg(r)', "Shape Slice Concat Resize Neg"),
    "an expand of an expand": (
        'float["n", 2, 1, 1] x, float["n", 2, 4, 5] w', "s = Shape(w) b = Slice(s, i0, i3) c = Concat <axis: int = 0> (b, one) "
        "e = Expand(x, c) y = Expand(e, s)", "Shape Expand"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIKE)
def test_a_size_computed_from_a_named_dim_is_known_by_its_name(parse, name):
    inputs, text, left = LIKE[name]
    constants = {"i0": i(0), "i2": i(2), "i3": i(3), "rest": i(4, 5), "one": i(1)}
    used = read_in(text, constants)
    graph = parse(f'agraph ({inputs}) => (float["p", "q", "r", "s"] y) {{ {text} }}', **used)
    after = labkit.optimize(graph).graph
    assert ops(after) == left.split()
    labkit.verify(graph, after)
