"""Fused nodes: one kernel in the graph, a local function in the file, and the same arrays once opened."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
from onnx import inliner
from onnx.reference import ReferenceEvaluator

from labkit.bodies import fused_node, inline
from labkit.build import make_node
from labkit.costing import cost
from labkit.errors import GraphError
from labkit.graph import Graph, Node, TensorType, Value
from labkit.hardware import Hardware
from labkit.interpreter import run
from labkit.onnx_io import from_model, load, save, to_model
from labkit.text import to_text

X = Value("x", TensorType((1, 3, 8, 8), "float32"))
W = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype("float32")
FEED = {"x": np.random.default_rng(2).standard_normal((1, 3, 8, 8)).astype("float32")}


def _plain() -> Graph:
    weights = Value("w", TensorType.of(W))
    conv = make_node("Conv", (X, weights), ("c",), opset=17)
    relu = make_node("Relu", (conv.output,), ("r",), opset=17)
    add = make_node("Add", (relu.output, conv.output), ("y",), opset=17)
    return Graph("g", (X,), (add.output,), (conv, relu, add), {"w": W})


def _fused(graph: Graph) -> Graph:
    node = fused_node(graph.nodes, graph.outputs, "Conv_Relu_Add_0", graph.opsets)
    return replace(graph, nodes=(node,))


def test_a_fused_node_computes_what_its_operators_do_bit_for_bit() -> None:
    plain = _plain()
    fused = _fused(plain)
    assert np.array_equal(run(fused, FEED)["y"], run(plain, FEED)["y"])
    assert to_text(inline(fused)) == to_text(plain)


def test_a_graph_without_fused_nodes_is_opened_to_itself() -> None:
    plain = _plain()
    assert inline(plain) is plain


def test_what_stays_inside_a_fused_node_moves_no_bytes() -> None:
    machine = Hardware.preset("edge-npu")
    plain, fused = (cost(graph, machine) for graph in (_plain(), _fused(_plain())))
    inside = 4 * 4 * 6 * 6
    # c: written once, read by Relu and by Add; r: written and read once
    assert plain.dram_bytes - fused.dram_bytes == 5 * inside
    assert (plain.flops, plain.launches, fused.launches) == (fused.flops, 3, 1)


def test_a_fused_node_becomes_a_local_function_that_every_runtime_runs(tmp_path) -> None:
    fused, path = _fused(_plain()), tmp_path / "fused.onnx"
    save(fused, path)
    model = to_model(fused)
    assert [(function.domain, function.name) for function in model.functions] == [("labkit", "Conv_Relu_Add_0")]
    wanted = run(fused, FEED)["y"]
    opened = inliner.inline_local_functions(model)
    assert not opened.functions
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for got in (session.run(None, FEED)[0], *(ReferenceEvaluator(m).run(None, FEED)[0] for m in (model, opened))):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)  # a sum of 27 products in another order


def test_a_file_with_fused_nodes_reads_back_to_the_same_graph(tmp_path) -> None:
    fused, path = _fused(_plain()), tmp_path / "fused.onnx"
    save(fused, path)
    assert to_text(load(path)) == to_text(fused)
    assert load(path).nodes[0].body is not None


def test_functions_of_others_are_opened_and_ours_are_kept() -> None:
    model = to_model(_fused(_plain()))
    model.functions[0].domain = model.graph.node[0].domain = "elsewhere"
    model.opset_import[-1].domain = "elsewhere"
    assert [node.op for node in from_model(model).nodes] == ["Conv", "Relu", "Add"]


def test_a_call_that_does_not_fit_its_function_is_refused() -> None:
    model = to_model(_fused(_plain()))
    del model.graph.node[0].input[1]
    with pytest.raises(GraphError, match="does not fit"):
        from_model(model)


def test_a_body_that_reads_what_is_outside_is_refused() -> None:
    graph = _plain()
    body = replace(graph, inputs=(X,))
    with pytest.raises(GraphError, match="closed"):
        Node("Conv", (X,), graph.outputs, domain="labkit", body=body)


def test_names_inside_give_way_to_names_outside_when_a_node_is_opened() -> None:
    graph = _fused(_plain())
    clash = make_node("Relu", (X,), ("c",), opset=17)
    both = replace(graph, nodes=(*graph.nodes, clash), outputs=(*graph.outputs, clash.output))
    got, wanted = run(inline(both), FEED), run(both, FEED)
    assert all(np.array_equal(got[name], wanted[name]) for name in wanted)
