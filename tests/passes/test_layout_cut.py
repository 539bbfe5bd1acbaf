"""The minimum cut over layouts, held to every labelling there is."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest

from labkit.costing import cost
from labkit.graph import Graph, Node, Value
from labkit.hardware import Hardware
from labkit.passes.layout import MINIMUM_CUT, LayoutPlan, strategies
from labkit.passes.layout_cut import Problem
from labkit.passes.layout_kernels import Role
from labkit.passes.layout_order import Order
from labkit.passes.pipeline import optimize
from tests.passes.images import ADAPTABLE, IMAGES, KERNELS, flatten, images, reshape, transpose

NPU = Hardware.preset("edge-npu")


def least_bytes(graph: Graph, penalty: int | None) -> int:
    """The fewest bytes of transforms to NHWC and back, penalties included, over all labellings, tried one by one.

    It knows of the graph what its generator does, and nothing of the library's network.
    """
    makers = [i for i, node in enumerate(graph.nodes) if node.op in IMAGES | ADAPTABLE]
    on_images = [i for i in makers if graph.nodes[i].op in IMAGES and not all(map(_lies_alike, _ends(graph.nodes[i])))]
    pinned = on_images if penalty is None else []
    free = [i for i in makers if i not in pinned]
    codes = np.arange(2 ** len(free))
    file, hardware = np.zeros(codes.shape, bool), np.ones(codes.shape, bool)
    side = dict.fromkeys(range(len(graph.nodes)), file) | dict.fromkeys(pinned, hardware)
    side |= {i: (codes >> bit & 1).astype(bool) for bit, i in enumerate(free)}
    total = sum((penalty or 0) * ~side[i] for i in on_images)
    made = {value.name: side[i] for i, node in enumerate(graph.nodes) for value in node.results}
    for value in (*graph.inputs, *(node.output for node in graph.nodes)):
        if _lies_alike(value) or value.type is None:
            continue
        crosses = made.get(value.name, file) & (value.name in graph.output_names)
        for i, node in enumerate(graph.nodes):
            if value.name in {read.name for read in node.uses}:
                reads = side[i] if node.op in IMAGES | ADAPTABLE else file
                crosses = crosses | (reads != made.get(value.name, file))
        total = total + crosses * 2 * value.type.nbytes
    return int(np.min(total))


def _ends(node: Node) -> tuple[Value, Value]:
    assert node.inputs[0] is not None
    return node.inputs[0], node.output


def _lies_alike(value: Value) -> bool:
    """Whether NCHW and NHWC are the same bytes: one channel, or one pixel, or no image at all."""
    shape = value.shape or ()
    return len(shape) != 4 or shape[1] == 1 or shape[2:] == (1, 1)


@pytest.mark.parametrize("start", range(0, 300, 25))
def test_the_cut_moves_as_few_bytes_as_the_best_of_all_labellings(start: int) -> None:
    crossing = 0
    for seed in range(start, start + 25):
        graph = images(seed, 6 + seed % 9, (*KERNELS, reshape, flatten))
        assert sum(node.op in IMAGES for node in graph.nodes) <= 12
        total = 2 * sum(value.type.nbytes for node in graph.nodes for value in node.results if value.type)
        for penalty in (None, 0, total // 40, total // 8):
            plan = strategies(graph, NPU, penalty)[-1]
            assert plan.dram_bytes + plan.penalty_bytes == least_bytes(graph, penalty), (seed, penalty)
            crossing += plan.transforms
    assert crossing  # these graphs are not all of one piece


@pytest.mark.parametrize("seed", range(120))
def test_no_labelling_that_is_carried_out_moves_fewer_bytes(seed: int) -> None:
    """Each choice of sides is made a graph, tidied and counted: what the cut promises is what its graph moves."""
    graph = optimize(images(seed, 6, (*KERNELS, reshape, flatten, transpose, transpose, transpose))).graph
    for order in ("NHWC", "NCHW8c"):
        plan = strategies(graph, replace(NPU, layout=order))[-1]
        problem = Problem(graph, Order(order), {Role.IMAGES: "hardware"})
        free = {end for ends in problem.ends for end in ends if isinstance(end, int)}
        moved = {inside: _counted(LayoutPlan("", problem, frozenset(inside))) for inside in _subsets(free)}
        assert _counted(plan) == min(moved.values())
        file = _counted(LayoutPlan("", Problem(graph, Order("NCHW"), {}), frozenset()))
        assert _counted(plan) - file == plan.dram_bytes - _transposes_of(graph, problem)


def _subsets(items: set[int]) -> chain[tuple[int, ...]]:
    return chain.from_iterable(combinations(sorted(items), size) for size in range(len(items) + 1))


def _counted(plan: LayoutPlan) -> int:
    """Bytes of the tidied graph, without what Reshapes read to know their shape."""
    tidy = optimize(plan.apply(), passes=("no-ops", "merges", "dead")).graph
    shapes = {v.name: v for node in tidy.nodes for v in node.uses if v.dtype == "int64" and v.name in tidy.constants}
    lines = cost(tidy, NPU).ledger
    return sum(line.nbytes for line in lines if line.value not in shapes)


def _transposes_of(graph: Graph, problem: Problem) -> int:
    """What the Transposes that the strategies weigh move in the file."""
    return sum(stay.nbytes for stay in problem.stays)


@pytest.mark.parametrize("order", ["NHWC", "NCHW8c"])
def test_the_cut_never_moves_more_than_the_simple_strategies_and_often_less(order: str) -> None:
    less = 0
    for seed in range(100):
        graph = images(seed, 25, (*KERNELS, reshape, flatten, transpose))
        *simple, best = strategies(graph, replace(NPU, layout=order))
        assert [plan.name for plan in (*simple, best)] == ["per operator", "one layout everywhere", MINIMUM_CUT]
        assert best.dram_bytes <= min(plan.dram_bytes for plan in simple)
        less += best.dram_bytes < min(plan.dram_bytes for plan in simple)
    assert less > 25
