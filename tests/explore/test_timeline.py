"""Lesson 05's time machine: every step is one that optimize() took, whatever the order."""

import json
from itertools import permutations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import labkit
from labkit import LabError
from labkit.explore import panel, timeline
from labkit.explore.drawing import key
from labkit.explore.timeline import PLACES
from labkit.explore.timeline_view import NONE
from labkit.passes.dead import eliminate_dead
from labkit.passes.guards import TRAPS
from labkit.passes.measures import measured
from labkit.passes.pipeline import MEASURES, PASSES, optimize
from labkit.text import to_text
from labkit.units import format_bytes
from tests.explore.controls import every_control_moves

ORDERS = st.lists(st.sampled_from(timeline.CHOICES), unique=True, max_size=6)


@given(ORDERS, st.data())
@settings(max_examples=60, deadline=None)
def test_each_step_is_the_pass_run_on_the_graph_before(order, data):
    last = timeline.data(order=order)
    step = data.draw(st.integers(0, len(last.report.steps)))
    state = timeline.data(order=order, step=step)
    if state.made is not None and state.made.name in PASSES:
        assert to_text(PASSES[state.made.name](state.before)) == to_text(state.graph)
        measure = MEASURES[state.made.name]
        assert measured(measure, state.graph) < measured(measure, state.before), "the measure fell"
    assert f"{len(state.before.nodes)} → {len(state.graph.nodes)}" in state.sentence
    costs = labkit.cost(state.graph, labkit.Hardware.preset("edge-npu"))
    assert ("DRAM, FLOP", f"{format_bytes(costs.dram_bytes)}, {costs.flops:,} FLOP") in state.facts


@given(ORDERS, st.data())
@settings(max_examples=60, deadline=None)
def test_marks_are_the_difference_of_two_graphs(order, data):
    last = timeline.data(order=order)
    state = timeline.data(order=order, step=data.draw(st.integers(0, len(last.report.steps))))
    old, new = ({key(node) for node in graph.nodes} for graph in (state.before, state.graph))
    by_mark = {mark: {n for n, m in state.marks.items() if m == mark} for mark in ("gone", "new", "kept", "changed")}
    assert by_mark["gone"] == old - new
    assert by_mark["new"] == new - old
    assert by_mark["kept"] | by_mark["changed"] == old & new
    assert all(state.before.producers[n] is state.graph.producers[n] for n in by_mark["kept"] if state.step == 0)
    drawn = {box.name for box in state.drawing.boxes if not box.is_pill}
    assert drawn == old | new


def test_orphans_are_the_constants_that_only_the_dead_pass_would_take():
    for trap in TRAPS:
        for step in optimize(trap.graph()).steps:
            kept = {name for node in step.graph.nodes for value in node.uses for name in [value.name]}
            expected = [n for n in step.graph.constants if n not in kept | step.graph.input_names]
            expected = [n for n in expected if n not in step.graph.output_names]
            assert list(timeline.orphans(step.graph)) == expected
    graph = timeline.data(step=5).graph
    assert set(timeline.orphans(graph)) == graph.constants.keys() - eliminate_dead(graph).constants.keys()


def test_the_default_of_an_input_is_no_orphan(parse):
    graph = parse("agraph (float[3] x, float[3] k) => (float[3] y) { y = Relu(x) }", k=np.ones(3, np.float32))
    assert "k" in graph.constants
    assert timeline.orphans(graph) == ()


def test_orphans_appear_and_vanish_as_the_lesson_says():
    states = [timeline.data(step=step) for step in range(7)]
    assert [state.chips[state.step] for state in states[1:]] == [
        "no-ops 1", "fold 1", "share 1", "dead 1", "affine 2", "dead 2",
    ]  # fmt: skip
    assert [len(state.orphans) for state in states] == [0, 0, 2, 2, 0, 5, 0]


def test_all_orders_of_the_five_rest_at_the_same_graph_but_not_in_the_same_round():
    reports = [timeline.data(order=order) for order in permutations(timeline.ORDER)]
    assert len({to_text(state.report.graph) for state in reports}) == 1
    assert {state.rounds for state in reports} == {2, 3}
    assert {len(state.after_one_round.nodes) for state in reports} == {3, 4}


def test_what_is_fused_too_early_stays():
    late = optimize(timeline.data().report.graph, passes=["fuse"]).graph
    early = timeline.data(order=("fuse", *timeline.ORDER)).report.graph
    assert len(late.nodes) == len(early.nodes) == 1
    npu = labkit.Hardware.preset("edge-npu")
    assert labkit.cost(late, npu).flops < labkit.cost(early, npu).flops
    labkit.verify(timeline.example(), early)
    labkit.verify(timeline.example(), late)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"step": 7}, "step 7: there are 6"),
        ({"step": -1}, "0 is the original"),
        ({"order": ["tidy"]}, "no pass 'tidy'"),
        ({"order": ["dead", "fold", "dead"]}, "'dead' stands twice"),
    ],
)
def test_a_state_that_cannot_exist_is_a_lab_error(arguments, says):
    with pytest.raises(LabError, match=says):
        timeline.data(**arguments)


# ---- the view


def test_every_control_changes_picture_and_text():
    view = timeline.show(step=1)
    moves = {"step": 3, "first": "dead", "second": "affine", "third": NONE, "fourth": "fuse", "fifth": "pads"}
    moves |= {"sixth": "merges"}
    every_control_moves(view, moves, lambda view: view.picture.spec)


def test_the_view_shows_what_data_says_on_the_machine_of_the_panel():
    machine = panel.show()
    order = ("dead", "no-ops", "fold", "affine", "share")
    view = timeline.show(machine.state, order=order, step=4)
    machine.set(preset="dsp")
    state = timeline.data(order=order, step=4, hardware=machine.state.hardware)
    assert view.text == state.text
    assert view.picture.spec["code"] == state.diff
    assert view.picture.spec["steps"] == list(state.chips)


def test_a_pass_chosen_for_one_place_gives_up_the_place_it_had():
    view = timeline.show()
    view.controls["first"].value = "dead"
    assert [view.controls[place].value for place in PLACES] == ["dead", "fold", "affine", "share", "no-ops", NONE]
    assert "Order: dead, fold, affine, share, no-ops." in view.text
    view.set(sixth="dead")
    assert [view.controls[place].value for place in PLACES] == [NONE, "fold", "affine", "share", "no-ops", "dead"]


def test_the_slider_never_points_past_the_last_step():
    view = timeline.show(step=6)
    for place in PLACES[1:]:
        view.controls[place].value = NONE
    assert (view.controls["step"].value, view.controls["step"].max) == (1, 1)
    assert "Step 1 of 1: no-ops" in view.text
    view.controls["first"].value = NONE
    assert "Order: no pass. Step 0 of 0" in view.text


def test_going_back_shows_the_very_same_state_again():
    view = timeline.show(step=2)
    text = view.text
    assert view.set(step=5).set(step=2).text == text


def test_an_order_too_long_or_unknown_is_refused():
    with pytest.raises(LabError, match="no pass 'tidy': choose up to 6"):
        timeline.show(order=["tidy"])
    with pytest.raises(LabError, match="7 passes: choose up to 6"):
        timeline.show(order=timeline.CHOICES[:7])
    with pytest.raises(LabError, match="control first cannot be 'tidy'"):
        timeline.show().set(first="tidy")


def test_the_picture_travels_as_a_small_message():
    assert max(len(json.dumps(timeline.show(step=step).picture.spec)) for step in range(7)) < 2000


def test_a_saved_notebook_keeps_the_picture_in_characters():
    bundle = timeline.show(step=1)._repr_mimebundle_()
    assert "~ n: float32 1×4×6×6 = BatchNormalization(c, scale, shift, mean, v)" in bundle["text/plain"]
    assert "0x" not in bundle["text/plain"]
