"""check_pass() as a judge: our own passes are right, and each planted fault is found and named."""

from dataclasses import replace

import numpy as np
import pytest

import labkit
from labkit.graph import Graph
from labkit.passes.guards import TRAPS
from labkit.passes.pipeline import PASSES


@pytest.fixture
def chain(parse):
    return parse("agraph (float[2, 3] x) => (float[2, 3] y) { a = Relu(x) b = Identity(a) c = Identity(b) y = Neg(c) }")


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_of_ours_is_right_in_every_trap(chain, name):
    verdict = labkit.check_pass(PASSES[name], chain)
    # "merges" and "transposes" may open a second opportunity with the first; that is idempotence, not meaning.
    assert [f for f in verdict.findings if f.rule != "idempotence"] == []


def test_what_a_pass_saves_is_counted(chain):
    verdict = labkit.check_pass(PASSES["no-ops"], chain)
    assert (verdict.ok, verdict.nodes_saved, verdict.bytes_saved) == (True, 2, 4 * 24)
    assert str(verdict) == "right; saves 2 nodes and 96 B of DRAM traffic"


def without(graph: Graph, drops) -> Graph:
    """A careless pass: nodes that ``drops`` accepts are skipped, everything reads their first input instead."""
    instead, nodes = {}, []
    for node in graph.nodes:
        current = node.rename(instead)
        if drops(current) and current.output.name not in graph.output_names:
            instead[current.output.name] = current.inputs[0]
        else:
            nodes.append(current)
    return replace(graph, nodes=tuple(nodes)) if instead else graph


LACKING = {
    "Dropout": "mask is read",
    "BatchNormalization": "second reader",
    "Cast": "lossy cast",
    "Pad": "padding value",
    "Transpose": "inverse permutation",
}


@pytest.mark.parametrize(("op", "guard"), LACKING.items())
def test_a_pass_that_drops_an_operator_without_looking_lacks_that_guard(chain, op, guard):
    verdict = labkit.check_pass(lambda graph: without(graph, lambda node: node.op == op), chain)
    assert not verdict.ok
    found = next(f for f in verdict.findings if guard in f.rule or f.rule == "no crash")
    assert found.graph.nodes


def test_a_pass_that_forgets_captured_values_is_caught(chain):
    def blind(graph):
        read = {v.name for node in graph.nodes for v in node.inputs if v} | graph.output_names
        kept = tuple(node for node in graph.nodes if any(v.name in read for v in node.results))
        return graph if len(kept) == len(graph.nodes) else replace(graph, nodes=kept)

    verdict = labkit.check_pass(blind, chain)
    assert any("assign" in f.why or "captured" in f.rule for f in verdict.findings)


def test_a_wrong_result_is_shown_on_the_graph_itself(chain):
    verdict = labkit.check_pass(lambda graph: without(graph, lambda node: node.op == "Relu"), chain)
    assert verdict.findings[0].rule == "equivalence"
    assert "output 'y'" in verdict.findings[0].why


def test_a_new_object_for_the_same_graph_is_a_fault(chain):
    verdict = labkit.check_pass(lambda graph: replace(graph), chain)
    assert [f.rule for f in verdict.findings] == ["same object when idle"]


def test_a_pass_that_does_a_bit_each_time_is_not_idempotent(chain):
    def one_at_a_time(graph):
        first = next((n for n in graph.nodes if n.op == "Identity" and n.output.name not in graph.output_names), None)
        return graph if first is None else without(graph, lambda node: node.output.name == first.output.name)

    verdict = labkit.check_pass(one_at_a_time, chain)
    assert [f.rule for f in verdict.findings] == ["idempotence"]
    assert "1 more round" in verdict.findings[0].why or "2 more rounds" in verdict.findings[0].why


def test_a_pass_without_end_is_told_so(chain):
    def growing(graph):
        more = {**graph.constants, f"k{len(graph.constants)}": np.zeros(1)}
        return replace(graph, constants=more, nodes=(*graph.nodes,))

    verdict = labkit.check_pass(growing, chain)
    assert any(f.rule in ("termination", "same object when idle") for f in verdict.findings)


@pytest.mark.parametrize(
    ("wrong", "rule"), [(lambda graph: None, "returns a Graph"), (lambda graph: 1 / 0, "no crash")]
)
def test_a_pass_that_raises_or_returns_nothing_is_a_finding_not_an_exception(chain, wrong, rule):
    assert rule in labkit.check_pass(wrong, chain).findings[0].rule


def test_every_trap_is_a_graph_that_runs_and_names_its_guard_once():
    assert len({trap.guard for trap in TRAPS}) == len(TRAPS)
    for trap in TRAPS:
        assert labkit.verify(trap.graph(), trap.graph()).inputs >= 4, trap.guard
