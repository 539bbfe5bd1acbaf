"""A pass that raises half-way leaves the graph as it was: the old one is still there, whole, and works."""

from __future__ import annotations

import numpy as np
import pytest

import labkit
from labkit.passes import pipeline
from labkit.passes.pipeline import PASSES
from labkit.passes.rewriting import Rewrite, Sweep
from labkit.text import to_text


def snapshot(graph):
    """All that a graph says: nodes, attributes, types, the bytes of its constants."""
    said = [(node.op, node.inputs, node.outputs, dict(node.attrs), node.name) for node in graph.nodes]
    return to_text(graph), said, {name: array.tobytes() for name, array in graph.constants.items()}


@pytest.fixture
def graph(parse):
    text = (
        "(float[2, 3] x) => (float[2, 3] y) { a = Identity(x) b = Mul(a, k) c = Identity(b) d = Add(c, k) y = Relu(d) }"
    )
    return parse(f"agraph {text}", k=np.full(3, 2, np.float32))


def stumbling(view, node):
    """Removes Identities, changes a constant, and falls over the Add."""
    if node.op == "Add":
        raise RuntimeError("half-way")
    if node.op == "Mul":
        return Rewrite((node,), {"k": np.zeros(3, np.float32)})
    return Rewrite(instead={node.output.name: node.inputs[0]})


STUMBLING = Sweep("stumbling", dict.fromkeys(("Identity", "Mul", "Add"), (stumbling,)))


def test_a_sweep_that_raises_half_way_leaves_the_graph_as_it_was(graph):
    before = snapshot(graph)
    with pytest.raises(RuntimeError, match="half-way"):
        STUMBLING(graph)
    assert snapshot(graph) == before
    assert [node.op for node in labkit.optimize(graph).graph.nodes] == ["Mul", "Add", "Relu"]


@pytest.mark.parametrize("name", PASSES)
def test_a_pipeline_that_raises_in_any_pass_leaves_the_graph_as_it_was(graph, monkeypatch, name):
    def falls(current):
        whole(current)
        raise RuntimeError("half-way")

    before, whole, real = snapshot(graph), PASSES[name], labkit.optimize(graph).graph
    monkeypatch.setitem(pipeline.PASSES, name, falls)
    with pytest.raises(RuntimeError, match="half-way"):
        labkit.optimize(graph)
    assert snapshot(graph) == before
    monkeypatch.undo()
    assert snapshot(labkit.optimize(graph).graph) == snapshot(real)
