"""Lesson 01's game of transposes: bytes against brute force and the rewritten graph, and the view that follows."""

import json
import subprocess
import sys
from itertools import combinations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from labkit.errors import LabError
from labkit.explore import placement
from labkit.explore.placement import FREE
from labkit.explore.placement_view import spec
from labkit.graph import Graph

EVERY = [frozenset(some) for size in range(len(FREE) + 1) for some in combinations(FREE, size)]
KERNELS_IN_NHWC = {"Conv"}
KERNELS_IN_NCHW = {"Reshape", "Flatten", "Gemm", "Softmax"}


def counted(graph: Graph, inside: frozenset[str]) -> tuple[int, int]:
    """Transposes and their bytes, by the rule of the game written out: a value is moved once when anybody who makes or
    reads it works in the other order; graph inputs and outputs lie in NCHW."""
    order = {v.name: "C" for v in graph.inputs}
    for node in graph.nodes:
        is_n = node.op in KERNELS_IN_NHWC or node.output.name in inside
        order[node.output.name] = "N" if is_n else "C"
    moved = {}
    for value in [*graph.inputs, *(node.output for node in graph.nodes)]:
        readers = {order[node.output.name] for node in graph.nodes if value.name in {use.name for use in node.uses}}
        readers |= {"C"} if value.name in graph.output_names else set()
        if readers - {order[value.name]} and len(value.shape) == 4 and value.shape[2:] != (1, 1):
            moved[value.name] = 2 * value.type.nbytes
    return len(moved), sum(moved.values())


@given(st.sampled_from(EVERY))
def test_the_bytes_are_those_of_the_rule_written_out(inside):
    plan = placement.data(inside).plan
    assert (plan.transforms, plan.dram_bytes) == counted(placement.example(), inside)


def test_no_placement_of_all_64_beats_the_minimum_cut():
    least = min(placement.data(inside).plan.dram_bytes for inside in EVERY)
    assert placement.data().best.dram_bytes == least


@pytest.mark.parametrize("inside", [(), ("act",), ("act", "both", "mean"), FREE])
def test_the_transposes_are_those_that_the_pass_would_write(inside):
    state = placement.data(inside)
    written = [node for node in state.plan.apply().nodes if node.op == "Transpose"]
    real = [node for node in written if node.output.shape[1:3] != (1, 1) and node.output.shape[2:] != (1, 1)]
    assert sorted(2 * node.output.type.nbytes for node in real) == sorted(nbytes for _, nbytes in state.transposes)


def test_the_worked_numbers_of_the_lesson():
    belief, best = placement.data(FREE).plan, placement.data().best
    assert (belief.transforms, belief.dram_bytes) == (4, 512 * 1024)
    assert (best.transforms, best.dram_bytes) == (3, 384 * 1024)


def test_the_best_is_said_only_when_it_is_compared():
    assert "minimum cut" not in placement.data().text
    assert "minimum cut: 3, 384 KiB" in placement.data(compared=True).text
    assert "Yours moves: 384 KiB more than the best" in placement.data(compared=True).text
    assert "Yours moves: no more" in placement.data(["act", "both", "mean"], compared=True).text


def test_a_kernel_without_a_choice_is_refused():
    with pytest.raises(LabError, match="'conv1' is not free to choose"):
        placement.data(["conv1"])


def test_the_state_needs_no_widgets():
    code = (
        "import sys; from labkit.explore import placement; placement.data().text; sys.exit('ipywidgets' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- the view


def test_every_control_changes_picture_and_text():
    view = placement.show()
    assert set(view.controls) == {*FREE, "compare"}
    for name in view.controls:
        picture, text = view.picture.spec, view.text
        view.set(**{name: True})
        assert view.picture.spec != picture, name
        assert view.text != text, name


def test_the_view_shows_what_data_says():
    view = placement.show(act=True, compare=True)
    state = placement.data(["act"], compared=True)
    assert view.text == state.text
    assert view.picture.spec == spec(state)


@given(st.sampled_from(EVERY))
def test_the_picture_marks_orders_and_transposes(inside):
    state = placement.data(inside)
    drawn = spec(state)
    nhwc = {name for _, name, _, _, is_in, _ in drawn["boxes"] if is_in}
    assert nhwc == inside | {"conv1", "conv2"}
    crossed = {drawn["boxes"][i][1] or drawn["boxes"][i][0] for i, _, crosses in drawn["edges"] if crosses}
    assert crossed == {name for name, nbytes in state.transposes}
    for i, j, crosses in drawn["edges"]:
        (_, name, _, _, one, _), (*_, two, _) = drawn["boxes"][i], drawn["boxes"][j]
        assert crosses == (one != two and name != "mean"), name  # a mean of 1×1 lies in both orders


def test_the_picture_travels_as_a_small_message():
    assert len(json.dumps(placement.show(compare=True).picture.spec)) < 1600


def test_set_refuses_a_name_that_is_no_control():
    with pytest.raises(LabError, match="no control 'conv1'"):
        placement.show().set(conv1=True)


def test_a_saved_notebook_keeps_the_state_in_text():
    view = placement.show()
    bundle = view._repr_mimebundle_()
    assert bundle["text/plain"] == view.text
    assert "0x" not in bundle["text/plain"]
