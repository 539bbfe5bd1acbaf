"""Passes inside the branches of an If and the bodies of a Loop: what a graph computes alone it computes inside, too."""

from collections import Counter

import numpy as np
import pytest

import labkit
from labkit.passes.deep import Deep
from labkit.passes.pipeline import PASSES
from tests.fuzz.differential import BASIC, Plan, fault_of, runs
from tests.fuzz.generate import generate
from tests.fuzz.nested import nested

X = np.array([1.5, -2], np.float32)
ZERO = np.array([0])
LOOP = """agraph (float[2] x, int64 turns) => (float[2] y) {{
    y = Loop (turns, , x) <body = b (int64 i, bool on, float[2] v) => (bool still, float[2] w) {{
        still = Identity(on) {} }}>
}}"""


def inner_ops(graph):
    return [node.op for outer in graph.nodes for body in outer.bodies for node in body.nodes]


def branches(text, more=""):
    return f"""agraph (float[2] x, bool c{more}) => (float[2] y) {{ y = If (c) <
        then_branch = t () => (float[2] p) {{ {text} }}, else_branch = e () => (float[2] q) {{ q = Abs(x) }}> }}"""


def test_no_ops_dead_nodes_and_constants_go_inside_a_loop(parse, judge):
    text = "dead = Exp(v) a = Identity(v) two = Add(one, one) w = Mul(a, two)"
    graph = parse(LOOP.format(text), one=np.ones(1, np.float32))
    after = labkit.optimize(graph).graph
    assert inner_ops(after) == ["Identity", "Mul"]
    assert not after.constants
    feeds = {"x": X, "turns": np.array(3)}
    np.testing.assert_array_equal(judge(after, feeds)[0], judge(graph, feeds)[0])
    assert labkit.optimize(after).graph is after


def test_a_default_of_an_input_is_not_constant_inside(parse):
    graph = parse(branches("t = Add(d, d) p = Mul(x, t)", ", float[1] d"), d=np.ones(1, np.float32))
    assert labkit.optimize(graph).graph is graph


def test_a_large_constant_around_is_not_copied_inside(parse):
    large = np.ones((1 << 17, 2), np.float32)
    graph = parse(branches("n = Neg(k) m = Mul(n, x) p = ReduceMax <keepdims: int = 0> (m, a)"), 18, k=large, a=ZERO)
    assert labkit.optimize(graph).graph is graph


def test_a_constant_around_that_is_still_read_stays_outside(parse):
    after = labkit.optimize(parse(branches("i = Dropout(x) p = Add(i, k)"), k=np.ones(2, np.float32))).graph
    branch = after.nodes[0].attrs["then_branch"]
    assert [node.op for node in branch.nodes] == ["Add"]
    assert not branch.constants
    assert {value.name for value in branch.captures} == {"x", "k"}


def test_a_captured_value_is_never_an_output_of_its_own(parse, judge):
    graph = parse(branches("p = Dropout(x)"))
    after = labkit.optimize(graph).graph
    assert inner_ops(after) == ["Identity", "Abs"]
    for c in (True, False):
        feeds = {"x": X, "c": np.array(c)}
        np.testing.assert_array_equal(judge(after, feeds)[0], judge(graph, feeds)[0])


def test_the_shape_of_what_a_loop_carries_may_change_whatever_the_file_says(parse, judge):
    """The Slice takes all of the two elements there are at first, and two of four in the second turn."""
    text = """agraph (float[2] x, int64 turns) => (float[n] y) {
        y = Loop (turns, , x) <body = b (int64 i, bool on, float[2] v) => (bool still, float[m] w) {
            still = Identity(on) s = Slice(v, zero, two) w = Concat <axis: int = 0> (v, s) }>
    }"""
    graph = parse(text, zero=ZERO, two=np.array([2]))
    after = labkit.optimize(graph).graph
    feeds = {"x": X, "turns": np.array(2)}
    (found,) = judge(after, feeds)
    np.testing.assert_array_equal(found, np.tile(X, 3))


def test_names_inside_differ_from_all_names_around(parse, tmp_path):
    """The new weight inside would take the very name of a value outside, which it does not read."""
    weight, ones = np.full((1, 1, 1), 2, np.float32), np.ones(1, np.float32)
    text = """agraph (float[1, 1, 4] x, bool c) => (float[1, 1, 4] y, float[1, 1, 4] w_folded) {
        w_folded = Relu(x)
        y = If (c) <then_branch = t () => (float[1, 1, 4] p) {
                v = Conv(x, w) p = BatchNormalization(v, one, one, one, one) },
            else_branch = e () => (float[1, 1, 4] q) { q = Abs(x) }>
    }"""
    after = labkit.optimize(parse(text, w=weight, one=ones)).graph
    assert inner_ops(after) == ["Conv", "Abs"]
    assert "w_folded_1" in after.nodes[1].attrs["then_branch"].constants
    labkit.save(after, tmp_path / "after.onnx")  # ONNX's checker refuses a name that hides another


def test_graphs_in_graphs_cost_no_more_the_deeper_they_lie(parse):
    calls = Counter()

    def counted(graph):
        calls["passes"] += 1
        return PASSES["no-ops"](graph)

    text = "r0 = Dropout(x)"
    for n in range(20):
        chosen = f"then_branch = t{n} () => (float[2] r{n}) {{ {text} }}"
        text = f"r{n + 1} = If (c) <{chosen}, else_branch = e{n} () => (float[2] q{n}) {{ q{n} = Abs(x) }}>"
    graph = parse(f"agraph (float[2] x, bool c) => (float[2] r20) {{ {text} }}")
    assert Deep(counted)(graph) is not graph
    assert calls["passes"] <= 3 * 40


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_with_nothing_to_do_inside_returns_the_very_same_graph(parse, name):
    graph = parse(branches("a = Relu(x) p = Sigmoid(a)"))
    assert Deep(PASSES[name])(graph) is graph


def test_random_graphs_compute_the_same_inside_as_before():
    """A Clip of NaN is left out: onnxruntime answers differently inside a Loop, where its tensors lie elsewhere."""
    counts = Counter()
    for seed in range(120):
        graph = nested(generate(seed), seed)
        if not runs(graph):
            continue
        fault = fault_of(graph, Plan(BASIC))
        assert fault is None or "(NaN and infinities inputs)" in fault, f"seed {seed}: {fault}"
        counts[graph.nodes[0].op] += labkit.optimize(graph).graph is not graph
    assert min(counts["If"], counts["Loop"]) > 25
