"""Layouts of real networks: how many transforms, how many bytes, and the same results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import labkit
from labkit.costing import cost
from labkit.draws import draws
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.passes.layout import strategies
from labkit.passes.pipeline import optimize

NPU = Hardware.preset("edge-npu")
# Transforms to and from NHWC: per operator, one layout everywhere, minimum cut. (onnxruntime's layout level for its own
# NCHWc puts 125 reorders into DenseNet-121, 46 into ShuffleNet, 1 into ResNet-50.)
COUNTS = {
    "light_densenet121_slim": (243, 1, 1),
    "light_inception_v2_slim": (115, 1, 1),
    "light_resnet50_slim": (103, 1, 1),
    "light_shufflenet_slim": (70, 33, 33),
    "light_squeezenet_slim": (45, 1, 1),
    "torch_mbv2__dyn_raw": (95, 1, 1),
    "torch_mbv2__ts_keepbn": (95, 1, 1),
    "torch_resnet__ts_keepbn": (39, 1, 1),
    "torch_unet_deadheads__ts_keepbn": (36, 2, 2),
}


@pytest.fixture(scope="module", params=COUNTS)
def network(request, shared) -> tuple[str, Graph]:
    return request.param, optimize(labkit.load(shared / "models" / f"{request.param}.onnx")).graph


def test_networks_need_so_many_transforms(network) -> None:
    name, graph = network
    assert tuple(plan.transforms for plan in strategies(graph, NPU)) == COUNTS[name]


@pytest.mark.parametrize("order", ["NHWC", "NCHW8c", "NCHW4c"])
def test_the_minimum_cut_of_a_network_moves_what_it_says_and_never_more_than_simple_strategies(network, order) -> None:
    _, graph = network
    hardware = replace(NPU, layout=order)
    *simple, best = strategies(graph, hardware)
    assert best.dram_bytes <= min(plan.dram_bytes for plan in simple)
    after = optimize(best.apply()).graph
    assert _moved(after, hardware) - _moved(graph, hardware) == best.dram_bytes
    assert sum(step.op == "Transpose" and node.body is None for node in after.nodes for step in node.steps) == (
        best.transforms if order == "NHWC" else 0
    ) + sum(node.op == "Transpose" for node in graph.nodes)


def _moved(graph: Graph, hardware: Hardware) -> int:
    """DRAM bytes, without what Reshapes read to know their shape."""
    shapes = {v.name for node in graph.nodes for v in node.uses if v.dtype == "int64" and v.name in graph.constants}
    return sum(line.nbytes for line in cost(graph, hardware).ledger if line.value not in shapes)


@pytest.mark.parametrize("order", ["NHWC", "NCHW8c"])
def test_a_converted_network_computes_the_same_to_the_bit(network, order, judge) -> None:
    """But for a mean, whose sum runs over pixels in the order in which they lie."""
    _, graph = network
    after = optimize(strategies(graph, replace(NPU, layout=order))[-1].apply()).graph
    tolerance = 1e-6 if any(node.op == "ReduceMean" for node in graph.nodes) else 0
    _, feeds = next(iter(draws(graph, 0)))
    for run in (judge, lambda g, f: list(labkit.run(g, f).values())):
        for one, two in zip(run(graph, feeds), run(after, feeds), strict=True):
            np.testing.assert_allclose(two, one, rtol=tolerance, atol=tolerance)
