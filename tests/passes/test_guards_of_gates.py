"""Sigmoids of straight lines: every spelling becomes the operator it is, and what only looks like one stays."""

from __future__ import annotations

import numpy as np
import pytest

import labkit


def s(value: float) -> np.ndarray:
    return np.array(value, dtype=np.float32)


def ops(graph) -> list[str]:
    return [node.op for node in graph.nodes]


SIX = {"three": s(3), "six": s(6), "zero": s(0), "sixth": s(1 / 6), "half": s(0.5), "one": s(1)}
LINE = "a = Add(x, three) c = Clip(a, zero, six)"
# name: (nodes from x to y, operators left, opset)
RULES = {
    "three, clip, six": (f"{LINE} y = Div(c, six)", "HardSigmoid", 17),
    "times a sixth": (f"{LINE} y = Mul(sixth, c)", "HardSigmoid", 17),
    "a line of two steps": ("m = Mul(x, sixth) a = Add(half, m) y = Clip(a, zero, one)", "HardSigmoid", 17),
    "a difference": ("m = Div(x, six) a = Sub(m, half) y = Clip(a, zero, one)", "HardSigmoid", 17),
    "times x": (f"{LINE} d = Div(c, six) y = Mul(d, x)", "HardSwish", 17),
    "x times": (f"{LINE} d = Div(c, six) y = Mul(x, d)", "HardSwish", 17),
    "x times, then by six": (f"{LINE} m = Mul(x, c) y = Div(m, six)", "HardSwish", 17),
    "x times, then times a sixth": (f"{LINE} m = Mul(c, x) y = Mul(m, sixth)", "HardSwish", 17),
    "before there was a HardSwish": (f"{LINE} m = Mul(c, x) y = Mul(m, sixth)", "HardSigmoid Mul", 13),
    "times something else": (f"{LINE} d = Div(c, six) e = Exp(x) y = Mul(d, e)", "HardSigmoid Exp Mul", 17),
    "another slope times x": ("a = Add(x, three) c = Clip(a, zero, three) d = Div(c, three) y = Mul(x, d)", "HardSigmoid Mul", 17),
    # What stays.
    "a number first": ("a = Sub(three, x) c = Clip(a, zero, six) y = Div(c, six)", "Sub Clip Div", 17),
    "six by": (f"{LINE} y = Div(six, c)", "Add Clip Div", 17),
    "another height": (f"{LINE} y = Div(c, three)", "Add Clip Div", 17),
    "another floor": ("a = Add(x, three) c = Clip(a, one, six) y = Div(c, six)", "Add Clip Div", 17),
    "below the axis": ("a = Add(x, three) c = Clip(a, n, zero) y = Div(c, n)", "Add Clip Div", 17),
    "bounds that cross": ("a = Add(x, three) c = Clip(a, zero, n) y = Div(c, n)", "Add Clip Div", 17),
    "a power": ("a = Pow(x, three) c = Clip(a, zero, six) y = Div(c, six)", "Pow Clip Div", 17),
    "x times an elu": ("e = Elu <alpha: float = 0.16666667> (x) y = Mul(x, e)", "Elu Mul", 17),
    "no line": ("c = Clip(x, zero, six) y = Div(c, six)", "Clip Div", 17),
    "plus six": (f"{LINE} y = Add(c, six)", "Add Clip Add", 17),
    "times zero": ("a = Mul(x, zero) y = Clip(a, zero, one)", "Mul Clip", 17),
    "a line of infinities": ("a = Add(x, inf) y = Clip(a, zero, one)", "Add Clip", 17),
    "a line for every column": ("a = Add(x, row) c = Clip(a, zero, six) y = Div(c, six)", "Add Clip Div", 17),
    "x with another sigmoid": (f"{LINE} d = Div(c, six) e = Neg(x) y = Mul(d, e)", "HardSigmoid Neg Mul", 17),
    "a cut that is read elsewhere": (f"{LINE} d = Div(c, six) y = Max(c, d)", "Add Clip Div Max", 17),
    "a gate that is read elsewhere": (f"{LINE} d = Div(c, six) m = Mul(d, x) y = Max(m, d)", "HardSigmoid Mul Max", 17),
    "a product that is read elsewhere": (f"{LINE} m = Mul(x, c) d = Div(m, six) y = Max(m, d)", "Add Clip Mul Div Max", 17),
    "a line that is read elsewhere": (f"{LINE} d = Div(c, six) y = Max(a, d)", "Add Clip Div Max", 17),
    "a line that enlarges": ("a = Add(x, wide) c = Clip(a, zero, six) y = Div(c, six)", "Add Clip Div", 17),
}  # fmt: skip
MORE = {
    "n": s(-6),
    "inf": s(np.inf),
    "row": np.arange(1, 5, dtype=np.float32),
    "wide": np.full((1, 1, 1), 3, np.float32),
}


CONSTANTS = {**SIX, **MORE}
GRAPHS = {
    f"gate: {name}": (
        f'(float[3, 4] x) => (float["p", "q"] y) {{ {text} }}',
        {key: array for key, array in CONSTANTS.items() if f" {key})" in text or f"{key}," in text},
        opset,
    )
    for name, (text, _, opset) in RULES.items()
}


@pytest.mark.parametrize("name", RULES)
def test_a_straight_line_cut_to_an_interval(parse, name):
    left = RULES[name][1]
    text, constants, opset = GRAPHS[f"gate: {name}"]
    graph = parse(f"agraph {text}", opset, **constants)
    after = labkit.optimize(graph).graph
    assert ops(after) == left.split()
    labkit.verify(graph, after)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_a_line_of_another_precision_stays(parse, dtype):
    constants = {name: SIX[name].astype(dtype) for name in ("three", "zero", "six")}
    name = {np.float16: "float16", np.float64: "double"}[dtype]
    graph = parse(f"agraph ({name}[3, 4] x) => ({name}[3, 4] y) {{ {LINE} y = Div(c, six) }}", **constants)
    assert ops(labkit.optimize(graph).graph) == ["Add", "Clip", "Div"]


def test_a_line_by_attributes(parse):
    text = "agraph (float[3] x) => (float[3] y) { a = Add(x, k) b = Clip <min: float = 0.0, max: float = 6.0> (a) y = Div(b, m) }"
    graph = parse(text, 9, k=np.full(1, 3, np.float32), m=np.full(1, 6, np.float32))
    after = labkit.optimize(graph).graph
    assert ops(after) == ["HardSigmoid"]
    labkit.verify(graph, after)


def test_a_constant_that_a_caller_can_feed_makes_no_line(parse):
    graph = parse(f"agraph (float[3] x, float three) => (float[3] y) {{ {LINE} y = Div(c, six) }}",
                  three=s(3), zero=s(0), six=s(6))  # fmt: skip
    assert labkit.optimize(graph).graph is graph


EXPAND = """agraph (float["n", 1] x, float["m", 4] v) => (float["p", "q"] y) {{
    c = Shape <start: int = 0, end: int = 1> ({}) d = Add(c, one) e = {} s = Concat <axis: int = 0> (e, one)
    w = Expand(x, s) y = Neg(w) }}"""


@pytest.mark.parametrize(
    ("of", "then", "left"),
    [
        ("x", "Sub(d, one)", "Neg"),
        ("x", "Add(minus, d)", "Neg"),
        ("x", "Sub(d, two)", "Expand"),
        ("x", "Sub(one, d)", "Expand"),
        ("x", "Add(d, one)", "Expand"),
        ("x", "Add(d, c)", "Expand"),
        ("x", "Sub(d, c)", "Expand"),
        ("x", "Mul(d, one)", "Expand"),
        ("v", "Sub(d, one)", "Expand"),
    ],
)
def test_what_is_added_to_an_open_dim_and_taken_away_again(parse, of, then, left):
    constants = {"one": np.array([1]), "two": np.array([2]), "minus": np.array([-1])}
    text = EXPAND.format(of, then)
    graph = parse(text, **{name: array for name, array in constants.items() if name in text})
    assert labkit.optimize(graph).graph.nodes[-2:][0].op == left


def test_a_multiple_of_a_sum_is_no_sum(parse, judge):
    """2 · (n + 1) − 1 is not 2n, by which a Reshape could be told to copy that dim."""
    text = """agraph (float["2*n", "m"] x, float["n"] v) => (float["p", "q"] y) {
        c = Shape(v) d = Add(c, one) m = Mul(d, two) e = Sub(m, one) s = Concat <axis: int = 0> (e, rest)
        r = Relu(x) y = Reshape(r, s) }"""
    graph = parse(text, one=np.array([1]), two=np.array([2]), rest=np.array([-1]))
    feeds = {"x": np.ones((2, 3), np.float32), "v": np.ones(1, np.float32)}
    for one in (graph, labkit.optimize(graph).graph):
        assert judge(one, feeds)[0].shape == (3, 2)


def test_where_nobody_knows_the_rank_a_number_in_a_larger_tensor_may_enlarge(parse):
    graph = parse(
        "agraph (float[] x) => (float[] y) { a = Add(x, three) c = Clip(a, zero, six) y = Div(c, six) }",
        **{**SIX, "three": s(3).reshape(1, 1, 1)},
    )
    assert ops(labkit.optimize(graph).graph) == ["Add", "Clip", "Div"]
