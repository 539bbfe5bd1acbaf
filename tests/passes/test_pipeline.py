from dataclasses import replace

import numpy as np
import pytest

import labkit
from labkit import zoo
from labkit.errors import LabError, NotConverged
from labkit.passes.pipeline import LEVELS, MACHINE_PASSES, PASSES

ONES = {name: np.ones(4, np.float32) for name in "sbmv"}


@pytest.fixture
def hidden_pair(parse):
    """A BatchNormalization that only becomes foldable when a Dropout, an Identity and a constant Add have gone."""
    text = """c = Conv(x, w) d = Dropout(c) i = Identity(d) t = Add(s, b)
              n = BatchNormalization(i, t, b, m, v) dead = Neg(n) y = Relu(n)"""
    weight = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    return parse(f'agraph (float[1, 3, 9, 9] x) => (float[1, 4, "h", "k"] y) {{ {text} }}', w=weight, **ONES)


def test_passes_repeat_until_nothing_changes(hidden_pair):
    report = labkit.optimize(hidden_pair)
    assert [node.op for node in report.graph.nodes] == ["Conv", "Relu"]
    assert labkit.optimize(report.graph).graph is report.graph
    labkit.verify(hidden_pair, report.graph)


def test_level_none_changes_nothing(hidden_pair):
    assert labkit.optimize(hidden_pair, level="none").graph is hidden_pair


@pytest.mark.parametrize(
    "order", [["dead", "affine", "fold", "merges", "no-ops"], ["affine", "no-ops", "dead", "fold"]]
)
def test_the_fixed_point_does_not_depend_on_the_order(hidden_pair, order):
    assert [node.op for node in labkit.optimize(hidden_pair, passes=order).graph.nodes] == ["Conv", "Relu"]


def test_two_runs_give_the_same_graph_to_the_byte(hidden_pair):
    one, two = (labkit.optimize(hidden_pair).graph for _ in range(2))
    assert [(n.op, n.inputs, n.outputs) for n in one.nodes] == [(n.op, n.inputs, n.outputs) for n in two.nodes]
    assert {k: a.tobytes() for k, a in one.constants.items()} == {k: a.tobytes() for k, a in two.constants.items()}


def test_the_original_graph_is_untouched(hidden_pair):
    before = [node.op for node in hidden_pair.nodes], set(hidden_pair.constants)
    labkit.optimize(hidden_pair)
    assert ([node.op for node in hidden_pair.nodes], set(hidden_pair.constants)) == before


def test_a_restless_pass_is_named(hidden_pair, monkeypatch):
    monkeypatch.setitem(PASSES, "restless", lambda graph: replace(graph, name=graph.name + "'"))
    with pytest.raises(NotConverged, match="no fixed point after 5 rounds; still changing the graph: restless"):
        labkit.optimize(hidden_pair, passes=["dead", "restless"], max_rounds=5)


@pytest.mark.parametrize(
    ("options", "message"), [({"level": "O3"}, "no level 'O3'"), ({"passes": ["magic"]}, "no pass 'magic'")]
)
def test_unknown_levels_and_passes_are_refused_with_the_known_ones(hidden_pair, options, message):
    with pytest.raises(LabError, match=message + "; there are: "):
        labkit.optimize(hidden_pair, **options)


def test_every_level_names_passes_that_exist():
    known = PASSES.keys() | MACHINE_PASSES.keys()
    assert {name for phases in LEVELS.values() for names in phases for name in names} <= known


def test_the_report_keeps_every_step_and_its_costs(hidden_pair):
    report = labkit.optimize(hidden_pair)
    data = report.to_dict()
    assert [row["nodes"] for row in data["steps"]] == [len(step.graph.nodes) for step in report.steps]
    assert data["before"]["nodes"] == 7
    assert data["after"] == {key: data["steps"][-1][key] for key in data["after"]}
    assert data["after"]["dram_bytes"] == labkit.cost(report.graph, report.hardware).dram_bytes
    assert data["after"]["intensity"] == data["after"]["flops"] / data["after"]["dram_bytes"]
    keys = {"pass", "round", "nodes", "constant_bytes", "intermediate_bytes", "dram_bytes", "flops", "intensity"}
    assert keys <= data["steps"][0].keys()
    assert report.table().splitlines()[1].split()[:2] == ["original", "7"]


def test_the_same_steps_can_be_costed_for_another_machine(hidden_pair):
    report = labkit.optimize(hidden_pair)
    other = report.on(labkit.Hardware.preset("datacentre-gpu"))
    assert other.graph is report.graph
    assert other.to_dict()["after"]["time_s"] < report.to_dict()["after"]["time_s"]


def test_refusals_say_which_rule_node_guard_and_why(parse):
    graph = parse("agraph (float[2] x) => (float[2] y, bool[2] k) { y, k = Dropout(x) }")
    (refusal,) = labkit.optimize(graph).refusals
    assert (refusal.rule, refusal.node, refusal.guard) == ("dropout", "Dropout 'y'", "mask is read")


def test_clutter_of_an_exporter_goes_and_resnet50_is_back_to_its_clean_size():
    clean = zoo.resnet50()
    cluttered = zoo.cluttered(clean)
    assert len(cluttered.nodes) > len(clean.nodes)
    assert len(labkit.optimize(cluttered).graph.nodes) == len(labkit.optimize(clean).graph.nodes) == 123


def test_clutter_changes_no_bit(parse):
    text = "c = Conv <pads: ints = [1, 1, 1, 1]> (x, w) r = Relu(c) s = Sigmoid(r) y = Neg(s)"
    weight = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    graph = parse(f"agraph (float[1, 3, 5, 5] x) => (float[1, 4, 5, 5] y) {{ {text} }}", w=weight)
    cluttered = zoo.cluttered(graph, every=1)
    x = {"x": np.random.default_rng(1).standard_normal((1, 3, 5, 5)).astype(np.float32)}
    np.testing.assert_array_equal(labkit.run(cluttered, x)["y"], labkit.run(graph, x)["y"])
    assert len(labkit.optimize(cluttered).graph.nodes) == 4
