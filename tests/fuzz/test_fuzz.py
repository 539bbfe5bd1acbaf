"""Random graphs: the generator reaches what it has to, the passes keep what each graph computes, faults shrink."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

import labkit
from labkit.errors import GraphError
from labkit.passes.pipeline import PASSES
from labkit.passes.rewriting import Rewrite, Sweep
from labkit.shrink import shrink
from tests.fuzz import differential
from tests.fuzz.differential import explained, faults, runs
from tests.fuzz.features import FEATURES, OPERATORS, features
from tests.fuzz.generate import bound, generate

GRAPHS = 2000
EVERY = 20  # of so many graphs one goes through each pass alone and through random orders, too


def test_every_feature_and_operator_occurs_in_one_graph_of_a_hundred():
    counts = Counter(name for seed in range(GRAPHS) for name in features(generate(seed)))
    rare = {name: counts[name] for name in (*FEATURES, *OPERATORS) if counts[name] < GRAPHS // 100}
    assert not rare
    assert {9, 11, 13, 15, 18, 21} <= {int(name.split()[1]) for name in counts if name.startswith("opset ")}


def test_a_seed_gives_the_same_graph_each_time():
    one, two = generate(7), generate(7)
    assert [(n.op, n.inputs, n.outputs) for n in one.nodes] == [(n.op, n.inputs, n.outputs) for n in two.nodes]
    assert {name: a.tobytes() for name, a in one.constants.items()} == {
        name: a.tobytes() for name, a in two.constants.items()
    }


def test_nearly_all_graphs_run_in_onnxruntime():
    seeds = range(10**6, 10**6 + 200)
    assert sum(runs(bound(generate(seed), 2)) for seed in seeds) >= 0.95 * len(seeds)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_the_passes_keep_what_random_graphs_compute(part):
    size = GRAPHS // 10
    found = [
        fault for seed in range(part * size, (part + 1) * size) for fault in faults(seed, thorough=not seed % EVERY)
    ]
    assert not found, explained(found[0])


def test_a_planted_fault_is_found_named_and_shrunk(monkeypatch, tmp_path):
    """A rule that takes Sub for commutative, as a missing guard would."""

    def swapped(view, node):
        new = replace(node, op="Add", inputs=node.inputs[::-1])
        return Rewrite((new,)) if node.inputs[0] != node.inputs[1] else None

    monkeypatch.setitem(PASSES, "no-ops", Sweep("no-ops", {"Sub": (swapped,)}))
    monkeypatch.setattr(differential, "OUT", tmp_path)
    fault = next(fault for seed in range(200) for fault in faults(seed, thorough=False))
    text = explained(fault)
    assert f"seed {fault.seed}" in text
    assert "first bad pass: no-ops (round 1)" in text
    (file,) = tmp_path.iterdir()
    assert len(labkit.load(file).nodes) <= 2


# --- the shrinker ---


def test_shrinking_keeps_the_failing_node_and_little_else(parse):
    chain = " ".join(f"a{i + 1} = Relu(a{i})" for i in range(40))
    graph = parse(f"agraph (float[2] x) => (float[2] y, float[2] z) {{ a0 = Neg(x) {chain} z = Exp(a9) y = Neg(a40) }}")
    asked = []

    def has_exp(part):
        asked.append(len(part.nodes))
        return any(node.op == "Exp" for node in part.nodes)

    small = shrink(graph, has_exp)
    assert [node.op for node in small.nodes] == ["Exp"]
    assert len(small.outputs) == len(small.inputs) == 1
    assert len(asked) < 40


def test_shrinking_keeps_two_nodes_that_only_fail_together(parse):
    graph = parse("agraph (float[2] x) => (float[2] y) { a = Neg(x) b = Exp(a) c = Abs(b) d = Sin(c) y = Relu(d) }")
    small = shrink(graph, lambda part: {"Exp", "Sin"} <= {node.op for node in part.nodes})
    assert [node.op for node in small.nodes] == ["Exp", "Sin"]


def test_a_graph_that_does_not_fail_is_not_shrunk(parse):
    graph = parse("agraph (float[2] x) => (float[2] y) { y = Neg(x) }")
    with pytest.raises(GraphError, match="does not fail"):
        shrink(graph, lambda part: False)


def test_shrinking_stops_after_its_tries(parse):
    chain = " ".join(f"a{i + 1} = Relu(a{i})" for i in range(40))
    graph = parse(f"agraph (float[2] x) => (float[2] y) {{ a0 = Neg(x) {chain} y = Neg(a40) }}")
    assert len(shrink(graph, lambda part: True, tries=1).nodes) > 1
