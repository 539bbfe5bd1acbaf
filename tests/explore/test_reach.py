"""Lesson 05's reachability: what is drawn live is what the pass keeps, and what the outputs depend on."""

import json
import subprocess
import sys
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import labkit
from labkit import Hardware, LabError
from labkit.explore import drawing, panel, reach
from labkit.graph import Graph, Node, TensorType, Value
from labkit.passes.dead import eliminate_dead
from tests.explore.controls import every_control_moves

SCALAR = TensorType((1,), "float32")


@st.composite
def graphs(draw):
    """Up to ten nodes of one or two results, each reading one or two values before it; some constants."""
    names = ["x", "k0", "k1"]
    nodes = []
    for index in range(draw(st.integers(1, 10))):
        read = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2))
        made = [f"n{index}", f"m{index}"][: draw(st.integers(1, 2))]
        nodes.append(Node("Op", tuple(Value(n, SCALAR) for n in read), tuple(Value(n, SCALAR) for n in made)))
        names += made
    constants = {"k0": np.ones(1, np.float32), "k1": np.ones(1, np.float32)}
    results = [value for node in nodes for value in node.results]
    return Graph("g", (Value("x", SCALAR),), (results[-1],), tuple(nodes), constants)


def needed(graph: Graph, outputs: set[str]) -> set[str]:
    """By brute force, forwards: the nodes from which some path leads to an output."""
    found = set()
    for node in graph.nodes:
        reached = {value.name for value in node.results}
        for later in graph.nodes:
            if any(value.name in reached for value in later.uses):
                reached |= {value.name for value in later.results}
        if reached & outputs:
            found.add(drawing.key(node))
    return found


@given(graphs(), st.data())
@settings(max_examples=80, deadline=None)
def test_live_is_what_a_path_leads_from_and_what_the_pass_keeps(graph, data):
    ends = [value.name for value in reach.candidates(graph)]
    chosen = data.draw(st.lists(st.sampled_from(ends), unique=True))
    state = reach.data(graph, chosen)
    live = {name for name, mark in state.marks.items() if mark == "live"}
    assert live == needed(graph, set(chosen))
    kept = eliminate_dead(replace(graph, outputs=tuple(v for v in reach.candidates(graph) if v.name in chosen)))
    assert live == {drawing.key(node) for node in kept.nodes}
    assert {name for name, mark in state.constants.items() if mark == "live"} == set(kept.constants)
    assert "unseen" not in [*state.marks.values(), *state.constants.values()]


@given(graphs(), st.data())
@settings(max_examples=40, deadline=None)
def test_the_walk_never_takes_a_mark_back(graph, data):
    looked = data.draw(st.integers(1, len(graph.nodes)))
    before, after = reach.data(graph, looked=looked - 1), reach.data(graph, looked=looked)
    changed = {name for name in after.marks if after.marks[name] != before.marks[name]}
    assert changed == {drawing.key(after.now)}
    assert before.marks[drawing.key(after.now)] == "unseen"


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_every_box_has_a_place_of_its_own_below_what_it_reads(graph):
    at = drawing.places([graph])
    assert len(set(at.values())) == len(at)
    assert all(at[above][1] < at[below][1] for above, below in drawing.edges(graph))
    assert all(column >= 0 <= row for column, row in at.values())


def test_the_numbers_of_the_lesson_are_costed_and_the_pruned_graph_computes_the_same():
    state = reach.data()
    npu = Hardware.preset("edge-npu")
    assert state.facts[4][1] == "70.5 KiB → 39.8 KiB"
    assert state.costs[1].dram_bytes == labkit.cost(eliminate_dead(state.graph), npu).dram_bytes
    labkit.verify(state.graph, state.pruned)
    assert [name for name, mark in state.constants.items() if mark == "dead"] == ["w4", "w5"]


def test_a_constant_is_dead_only_when_every_node_was_asked():
    assert set(reach.data(looked=10).constants.values()) == {"live", "unseen"}
    assert reach.data(looked=10).constants["w1"] == "unseen"
    assert reach.data(looked=10).facts[3][1] == "none known"


def test_without_an_output_everything_is_dead():
    state = reach.data(outputs=[])
    assert set(state.marks.values()) == {"dead"}
    assert state.facts[0] == ("Outputs", "none")
    assert state.pruned.nodes == ()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"outputs": ["act"]}, "no output 'act'; there are: classes, probe, training"),
        ({"looked": -1}, "the graph has 11"),
        ({"looked": 12}, "looked at 12 nodes"),
    ],
)
def test_a_state_that_cannot_exist_is_a_lab_error(arguments, says):
    with pytest.raises(LabError, match=says):
        reach.data(**arguments)


def test_a_graph_that_fits_no_picture_is_refused():
    x = Value("v0", SCALAR)
    nodes = [Node("Relu", (Value(f"v{i}", SCALAR),), (Value(f"v{i + 1}", SCALAR),)) for i in range(30)]
    with pytest.raises(LabError, match="30 nodes: a picture holds 24"):
        reach.data(Graph("long", (x,), (Value("v30", SCALAR),), tuple(nodes)))


# ---- the view


def test_every_control_changes_picture_and_text():
    view = reach.show()
    moves = {"classes": False, "probe": True, "training": True, "looked": 5}
    every_control_moves(view, moves, lambda view: view.picture.spec)


def test_the_view_shows_what_data_says_on_the_machine_of_the_panel():
    machine = panel.show()
    view = reach.show(machine.state, training=True, looked=7)
    machine.set(launch_us=100)
    state = reach.data(outputs=["classes", "training"], looked=7, hardware=machine.state.hardware)
    assert view.text == state.text
    assert view.picture.spec["facts"] == [list(fact) for fact in state.facts]
    marks = {box[1]: box[4] for box in view.picture.spec["boxes"] if not box[5]}
    assert marks == state.marks


def test_the_picture_marks_the_node_looked_at_and_the_outputs_chosen():
    boxes = {box[1]: box for box in reach.show(probe=True, looked=2).picture.spec["boxes"]}
    assert [name for name, box in boxes.items() if box[6]] == ["sum"]
    assert {name: box[4] for name, box in boxes.items() if name.endswith("→")} == {
        "classes→": "live", "probe→": "live", "training→": "dead",
    }  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [("looked", "many"), ("training", "maybe"), ("nothing", 1)])
def test_set_refuses_what_a_control_cannot_be(name, value):
    with pytest.raises(LabError, match="control"):
        reach.show().set(**{name: value})


def test_the_picture_travels_as_a_small_message():
    assert len(json.dumps(reach.show().picture.spec)) < 2000


def test_a_saved_notebook_keeps_the_picture_in_characters():
    bundle = reach.show()._repr_mimebundle_()
    assert "× probe: float32 1×1×1×1 = ReduceMean(act)" in bundle["text/plain"]
    assert "0x" not in bundle["text/plain"]


def test_the_state_needs_no_widgets():
    code = "import sys; from labkit.explore import reach, timeline; reach.data(); timeline.data(); "
    code += "sys.exit('ipywidgets' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
