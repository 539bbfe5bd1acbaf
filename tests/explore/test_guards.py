"""Lesson 04's guard zoo: the hasty rewrites are right where nothing is in the way, and wrong in their trap."""

import subprocess
import sys

import numpy as np
import pytest

import labkit
from labkit import LabError, NotEquivalent
from labkit.errors import GraphError
from labkit.explore import guards, hasty
from labkit.passes.guards import TRAPS
from tests.explore.controls import every_control_moves

RNG = np.random.default_rng(11)


def f(*shape):
    return RNG.uniform(0.5, 1.5, shape).astype(np.float32)


IMAGE = "float[1, 4, 6, 6] x"
SMALL = "float[1, 4, 4, 4]"
CONV = {"w": f(4, 4, 3, 3), "k": f(4, 1, 1)}
ZERO, ONE = np.zeros(3, np.float32), np.ones(3, np.float32)
# A graph that each rewrite is right on: its pattern, and no trap.
HARMLESS = {
    hasty.batch_norm: (
        f"({IMAGE}) => ({SMALL} n) {{ c = Conv(x, w) n = BatchNormalization(c, s, b, m, v) }}",
        {"w": f(4, 4, 3, 3), "s": f(4), "b": f(4), "m": f(4), "v": f(4)}),
    hasty.scale: (f"({IMAGE}) => ({SMALL} y) {{ c = Conv(x, w) y = Mul(c, k) }}", CONV),
    hasty.shift: (f"({IMAGE}) => ({SMALL} y) {{ a = Add(x, k) y = Conv(a, w) }}", CONV),
    hasty.unit: ("(float[3] x) => (float[3] y) { a = Add(x, k) y = Relu(a) }", {"k": ZERO}),
    hasty.one: ("(float[3] x) => (float[3] y) { a = Mul(x, k) y = Relu(a) }", {"k": ONE}),
    hasty.zero: ("(int32[3] x) => (int32[3] y) { y = Mul(x, k) }", {"k": np.zeros(3, np.int32)}),
    hasty.dropout: ("(float[3] x) => (float[3] y) { d = Dropout(x) y = Relu(d) }", {}),
    hasty.cast_back: ("(float[3] x) => (float[3] y) { d = Cast <to: int = 11> (x) y = Cast <to: int = 1> (d) }", {}),
    hasty.transpose_back: ("(float[2, 3] x) => (float[2, 3] y) { a = Transpose(x) y = Transpose(a) }", {}),
    hasty.reshape: ("(float[2, 3] x) => (float[2, 3] y) { y = Reshape(x, k) }", {"k": np.array([2, 3])}),
    hasty.pad_into_pool: (
        f"({IMAGE}) => (float[1, 4, 6, 6] y) "
        "{ r = Abs(x) p = Pad(r, k) y = MaxPool <kernel_shape: ints = [3, 3]> (p) }",
        {"k": np.array([0, 0, 1, 1, 0, 0, 1, 1])}),
}  # fmt: skip


@pytest.mark.parametrize("rewrite", HARMLESS, ids=lambda rewrite: rewrite.__name__)
def test_a_hasty_rewrite_is_right_where_no_trap_is(parse, rewrite):
    text, constants = HARMLESS[rewrite]
    graph = parse(f"agraph {text}", **constants)
    after = rewrite(graph)
    assert after is not graph
    labkit.verify(graph, after)


def test_a_harmless_graph_is_there_for_every_rewrite():
    assert set(HARMLESS) == set(hasty.HASTY.values())


@pytest.mark.parametrize("rewrite", HARMLESS, ids=lambda rewrite: rewrite.__name__)
def test_a_graph_without_the_pattern_comes_back_as_it_is(parse, rewrite):
    graph = parse("agraph (float[3] x) => (float[3] y) { y = Relu(x) }")
    assert rewrite(graph) is graph


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.guard)
def test_every_trap_catches_its_hasty_rewrite_and_onnxruntime_agrees(trap):
    graph = trap.graph()
    state = guards.data(trap.guard, guard=False)
    assert state.found_by
    if state.rewritten is None:
        with pytest.raises(GraphError, match="nothing before it assigns"):
            hasty.HASTY[trap.guard](graph)
        return
    if trap.guard != "not a number":  # verify() strews NaN thinly; three elements seldom get one
        with pytest.raises(NotEquivalent):
            labkit.verify(graph, state.rewritten)


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.guard)
@pytest.mark.parametrize("kind", guards.KINDS)
def test_with_its_guard_on_nothing_is_wrong(trap, kind):
    state = guards.data(trap.guard, guard=True, kind=kind)
    assert not state.gap(kind).is_wrong
    assert state.found_by == ()


@pytest.mark.parametrize("kind", guards.KINDS)
def test_the_difference_is_that_of_two_runs(kind, judge):
    state = guards.data("padding", kind=kind)
    feeds = guards.feeds(state.original, kind)
    one, two = (judge(graph, feeds)[0].astype(np.float64) for graph in (state.original, state.rewritten))
    finite = np.isfinite(one)
    assert f"up to {np.abs(one - two)[finite].max():.2g}, its numbers being up to {np.abs(one[finite]).max():.2g}" in (
        state.sentence
    )


def test_some_faults_hide_from_ordinary_inputs():
    assert guards.data("overridable constant").found_by == ("defaults fed",)
    assert guards.data("not a number").found_by == ("with NaN",)
    assert "negative" not in guards.data("shared weight").found_by


def test_a_zero_of_the_other_sign_is_no_equal_bit():
    assert "is equal, but for the sign of a zero." in guards.data("not a number").sentence
    assert "is equal to the bit." in guards.data("not a number", guard=True).sentence


def test_every_refusal_is_one_that_the_optimiser_gives():
    for trap in TRAPS:
        expected = [f"{r.guard}: {r.why}" for r in labkit.optimize(trap.graph()).refusals]
        assert list(guards.data(trap.guard).refusals) == expected
        assert all(line in guards.data(trap.guard).sentence for line in expected)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"trap": "none"}, "no trap 'none'"), ({"kind": "odd"}, "no kind of input 'odd'; there are: normal")],
)
def test_a_state_that_cannot_exist_is_a_lab_error(arguments, says):
    with pytest.raises(LabError, match=says):
        guards.data(**arguments)


# ---- the view


def test_every_control_changes_picture_and_text():
    view = guards.show()
    moves = {"guard": True, "kind": "negative", "trap": "padding"}
    every_control_moves(view, moves)


@pytest.mark.parametrize("trap", guards.NAMES)
def test_the_view_draws_every_trap_and_says_what_data_says(trap):
    view = guards.show()
    for guard in (False, True):
        for kind in guards.KINDS:
            view.set(trap=trap, guard=guard, kind=kind)
            assert view.text == guards.data(trap, guard, kind).sentence
            assert view.png
            assert "Cannot show" not in view.text


def test_a_zoo_of_some_traps_holds_these_and_refuses_others():
    view = guards.show(["mask is read", "lossy cast"])
    assert view.controls["trap"].options == ("mask is read", "lossy cast")
    with pytest.raises(LabError, match="control trap cannot be 'padding'"):
        view.set(trap="padding")
    with pytest.raises(LabError, match="no trap 'nonsense'"):
        guards.show(["nonsense"])


def test_a_saved_notebook_keeps_picture_and_text():
    bundle = guards.show(trap="training mode")._repr_mimebundle_()
    assert "labkit says: refused, training mode" in bundle["text/plain"]
    assert "image/png" in bundle
    assert "0x" not in bundle["text/plain"]


def test_the_state_needs_no_widgets():
    code = "import sys; from labkit.explore import guards, bloat; guards.data().sentence; bloat.data(side=8).sentence; "
    code += "sys.exit('ipywidgets' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
