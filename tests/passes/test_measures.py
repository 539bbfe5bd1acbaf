"""Why each pass ends: every step of it makes its own measure smaller; a pass whose measure does not fall is named."""

from dataclasses import replace

import pytest

import labkit
from labkit import zoo
from labkit.errors import GraphError, NotConverged
from labkit.passes.guards import TRAPS
from labkit.passes.measures import described, measured
from labkit.passes.pipeline import LEVELS, MEASURES, PASSES
from tests.fuzz.generate import generate

SEEDS = range(400)


def steps_that_do_not_fall(graph, level="basic"):
    before, found = graph, []
    for step in labkit.optimize(graph, level).steps:
        measure = MEASURES[step.name]
        if not measured(measure, step.graph) < measured(measure, before):
            found.append(f"{step.name}, round {step.round}: {described(measure, before, step.graph)}")
        before = step.graph
    return found


def test_every_pass_of_a_level_states_its_measure():
    assert {name for phases in LEVELS.values() for names in phases for name in names} == MEASURES.keys()


def test_each_step_makes_the_measure_of_its_pass_smaller_on_random_graphs():
    steps = 0
    for seed in SEEDS:
        graph = generate(seed)
        try:
            assert not steps_that_do_not_fall(graph), f"seed {seed}"
            steps += len(labkit.optimize(graph).steps)
        except GraphError:
            continue  # a graph that cannot run
    assert steps > 2 * len(SEEDS)


def test_each_step_makes_the_measure_of_its_pass_smaller_on_a_network_laid_out():
    graph = zoo.resnet50()
    assert not steps_that_do_not_fall(graph, "all")
    assert any(step.name == "layout" for step in labkit.optimize(graph, "all").steps)


def test_each_step_makes_the_measure_of_its_pass_smaller_on_random_graphs_laid_out():
    for seed in SEEDS[:100]:
        try:
            assert not steps_that_do_not_fall(generate(seed), "all"), f"seed {seed}"
        except GraphError:
            continue


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.guard)
def test_each_step_makes_the_measure_of_its_pass_smaller_in_the_traps(trap):
    assert not steps_that_do_not_fall(trap.graph())


def test_each_step_makes_the_measure_of_its_pass_smaller_on_a_cluttered_network():
    assert not steps_that_do_not_fall(zoo.cluttered(zoo.resnet50(), every=2))


@pytest.mark.parametrize("folder", ["models", "probes", "peers"])
def test_each_step_makes_the_measure_of_its_pass_smaller_on_shared_models(shared, folder):
    for path in sorted((shared / folder).glob("*.onnx")):
        try:
            graph = labkit.load(path)
        except GraphError:
            continue  # a few of the peers' models are not valid
        assert not steps_that_do_not_fall(graph), path.name


@pytest.fixture
def graph(parse):
    return parse("agraph (float[2] x) => (float[2] y) { a = Identity(x) b = Relu(a) y = Neg(b) }")


def test_of_several_passes_that_go_on_the_one_without_a_falling_measure_is_to_blame(graph, monkeypatch):
    """A pass that puts an Identity behind the first input keeps "no-ops" busy for ever; "no-ops" is not to blame."""

    def padded(graph):
        first = graph.nodes[0]
        copy = replace(first.inputs[0], name=f"{first.inputs[0].name}_copy")
        identity = replace(first, op="Identity", outputs=(copy,))
        return replace(graph, nodes=(identity, first.rename({first.inputs[0].name: copy}), *graph.nodes[1:]))

    monkeypatch.setitem(PASSES, "padded", padded)
    blamed = "still changing the graph: no-ops, padded; restless: padded, whose measure did not fall in round 1: "
    with pytest.raises(NotConverged, match=blamed + "nodes 2 → 3"):
        labkit.optimize(graph, passes=["no-ops", "padded"], max_rounds=4)


def test_two_passes_whose_measures_both_fall_undo_one_another(graph, monkeypatch):
    for old, new in (("odd", "even"), ("even", "odd")):

        def turn(graph, old=old, new=new):
            return graph if graph.name == new else replace(graph, name=new)

        def count(graph, new=new):
            return int(graph.name != new)

        monkeypatch.setitem(PASSES, new, turn)
        monkeypatch.setitem(MEASURES, new, (count,))
    with pytest.raises(NotConverged, match="the measure of each falls, so they undo one another"):
        labkit.optimize(graph, passes=["odd", "even"], max_rounds=3)


def test_a_pass_that_has_seen_the_graph_is_not_asked_again(graph, monkeypatch):
    asked = []
    for name in ("no-ops", "merges", "dead"):
        pass_ = PASSES[name]
        monkeypatch.setitem(PASSES, name, lambda graph, name=name, pass_=pass_: asked.append(name) or pass_(graph))
    labkit.optimize(graph, passes=["no-ops", "merges", "dead"])
    assert asked == ["no-ops", "merges", "dead", "no-ops"]
