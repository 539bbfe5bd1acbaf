"""Lesson 03's kernels on a graph: bytes against brute force over all cuts, reasons against a walk, the live view."""

import json
from itertools import combinations
from math import inf

import pytest

from labkit import Hardware, LabError, optimize
from labkit.explore import blocks, drawing, grouping, panel
from labkit.passes.fuse import Candidate
from labkit.passes.groups import groups
from labkit.passes.op_classes import OpClass, op_class
from tests.explore.controls import every_control_moves

NPU = Hardware.preset("edge-npu")
SRAM = (1, 8, 32, 64, 512)


@pytest.mark.parametrize("name", blocks.GRAPHS)
@pytest.mark.parametrize("sram_kib", SRAM)
def test_the_best_is_the_best_of_all_cuts_and_none_and_all_are_two_of_them(name, sram_kib):
    state = grouping.data(name, "best", sram_kib)
    graph, totals = state.graph, state.totals
    best = 0
    for nodes in groups(graph):
        group = Candidate(nodes, graph, sram_kib * 1024)
        cuts = [c for size in range(len(nodes)) for c in combinations(range(1, len(nodes)), size)]
        ways = [[nodes[a:b] for a, b in zip((0, *cut), (*cut, len(nodes)), strict=True)] for cut in cuts]
        best += min(sum(map(group.dram_bytes, way)) for way in ways)
    assert totals["best"] == best
    assert [kernel.nodes for kernel in grouping.data(name, "all", sram_kib).kernels] == list(groups(graph))
    assert [kernel.nodes for kernel in grouping.data(name, "none", sram_kib).kernels] == [
        (node,) for nodes in groups(graph) for node in nodes
    ]
    assert totals["best"] <= min(totals["none"], totals["all"])
    assert totals[state.policy] == sum(kernel.dram_bytes for kernel in state.kernels)


@pytest.mark.parametrize("name", blocks.GRAPHS)
@pytest.mark.parametrize("sram_kib", SRAM)
def test_the_best_is_what_the_optimiser_makes(name, sram_kib):
    machine = panel.show().set(sram_kib=sram_kib).state.hardware
    fused = optimize(blocks.example(name), hardware=machine, passes=["fuse"]).graph
    state = grouping.data(name, "best", sram_kib)
    assert sorted(sorted(s.op for s in node.steps) for node in fused.nodes) == sorted(
        sorted(node.op for node in kernel.nodes) for kernel in state.kernels
    )


@pytest.mark.parametrize("name", blocks.GRAPHS)
@pytest.mark.parametrize("policy", grouping.POLICIES)
def test_every_operator_is_in_one_kernel_and_every_cut_edge_has_its_reason(name, policy):
    state = grouping.data(name, policy, 16)
    inside = [drawing.key(node) for kernel in state.kernels for node in kernel.nodes]
    assert sorted(inside) == sorted(map(drawing.key, state.graph.nodes))
    nodes = {drawing.key(node): node for node in state.graph.nodes}
    crossing = {
        (drawing.key(state.graph.producers[value.name]), drawing.key(node))
        for node in state.graph.nodes
        for value in node.uses
        if value.name in state.graph.producers
        and state.number[drawing.key(state.graph.producers[value.name])] != state.number[drawing.key(node)]
    }
    assert {(one, two) for one, two, _ in state.cuts} == crossing
    for one, two, why in state.cuts:
        judges = {
            "detour": _detours(state, one, two),
            "an anchor": op_class(nodes[two]) is OpClass.ANCHOR,
            "opaque": OpClass.OPAQUE in (op_class(nodes[one]), op_class(nodes[two])),
            "other": nodes[one].output.shape != nodes[two].output.shape,
        }
        held = [judge for start, judge in judges.items() if why.startswith(start)]
        assert all(held), (one, two, why)


def _detours(state, one, two):
    """Whether a path from one node to the other leaves both of their groups."""
    group = {drawing.key(node): i for i, c in enumerate(state.candidates) for node in c.nodes}
    edges = [e for e in drawing.edges(state.graph) if all(end in group for end in e)]
    waiting = [(key, False) for key in group if group[key] == group[one]]
    seen = set(waiting)
    while waiting:
        at, left = waiting.pop()
        for start, end in edges:
            if start == at:
                step = (end, left or group[end] not in (group[one], group[two]))
                if step[1] and group[end] == group[two]:
                    return True
                if step not in seen:
                    seen.add(step)
                    waiting.append(step)
    return False


def test_the_graphs_of_the_lesson():
    assert [k.name for k in grouping.data(sram_kib=32).kernels] == ["Conv BN Relu", "Conv", "BN Add Relu"]
    why = {(one, two): why for one, two, why in grouping.data("squeeze and excite").cuts}
    assert why["act1", "y"].startswith("detour")
    assert why["act1", "mean"].startswith("a reduction")
    assert why["gate", "y"].startswith("other elements")
    two = {(one, other): why for one, other, why in grouping.data("residual block, projected").cuts}
    assert two["bn2", "sum"] == "a kernel has one anchor"
    assert grouping.data("diamond with a turn").why.count("opaque") == 2
    assert grouping.data("diamond", sram_kib=48).why.endswith("nothing has to")
    assert "SRAM of 32 KiB" in grouping.data(sram_kib=32).why
    assert grouping.data(policy="none").why.count("nobody fuses") == 5


def test_a_kernel_that_does_not_fit_says_so():
    state = grouping.GroupingState("product and four sums", "all", 8, NPU)
    assert state.totals["all"] == state.seconds == inf
    assert "does not fit" in state.text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"name": "loop"}, "no graph 'loop'"), ({"policy": "some"}, "no policy 'some'"), ({"sram_kib": 0}, "at least 1")],
)
def test_a_state_that_cannot_exist_is_a_lab_error(arguments, says):
    with pytest.raises(LabError, match=says):
        grouping.data(**arguments)


def test_what_is_no_graph_is_a_lab_error():
    with pytest.raises(LabError, match="ONNX's text syntax"):
        blocks.parse("y = Relu(x)")


# ---- the view


def test_every_control_changes_picture_and_text():
    view = grouping.show()
    moves = {"sram_kib": 32, "policy": "none", "name": "diamond"}
    every_control_moves(view, moves, lambda view: view.picture.spec)


@pytest.mark.parametrize("name", blocks.GRAPHS)
def test_the_picture_shows_what_data_says(name):
    view = grouping.show(name=name, policy="best", sram_kib=16)
    state, spec = grouping.data(name, "best", 16), view.picture.spec
    assert view.text == state.text
    assert {box[1]: box[4] for box in spec["boxes"] if box[4]} == state.number
    assert [line[0] for line in spec["kernels"]] == [kernel.name for kernel in state.kernels]
    most = max(kernel.dram_bytes for kernel in state.kernels)
    assert [line[1] for line in spec["kernels"]] == [round(kernel.dram_bytes / most, 3) for kernel in state.kernels]
    thin = {(spec["boxes"][i][1], spec["boxes"][j][1]) for i, j, inside in spec["edges"] if not inside}
    assert {(one, two) for one, two, _ in state.cuts} <= thin
    assert len(json.dumps(spec)) < 2000


def test_the_view_takes_rates_and_launch_from_the_panel():
    machine = panel.show()
    view = grouping.show(machine.state, name="diamond", sram_kib=64)
    machine.set(preset="dsp")
    assert view.text == grouping.data("diamond", "best", 64, Hardware.preset("dsp")).text


def test_set_refuses_what_a_control_cannot_be():
    with pytest.raises(LabError, match="control sram_kib cannot be -1"):
        grouping.show().set(sram_kib=-1)


def test_a_saved_notebook_keeps_the_state():
    bundle = grouping.show()._repr_mimebundle_()
    assert "2 Conv BN Add Relu: 5.28 MiB" in bundle["text/plain"]
    assert "0x" not in bundle["text/plain"]
