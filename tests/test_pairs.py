"""Depth-first pairs: what their plan says is what the scratchpad counts, and what they compute is what run() does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.bodies import fused_node
from labkit.build import make_node
from labkit.execution import run_scheduled
from labkit.graph import Graph, TensorType, Value
from labkit.hardware import Hardware
from labkit.interpreter import run
from labkit.kernels.depth_first import DepthFirst
from labkit.lowering import lower
from labkit.memory.scratchpad import Scratchpad
from labkit.pair_tiles import best_pair_tile
from labkit.pairs import halves_of
from labkit.problems import ConvShape
from labkit.scheduling import kernel_of, schedule

NPU = Hardware.preset("edge-npu")


def window(draw, op, x, name, constants):
    """A Conv, with its activation, or a pool, that fits its input."""
    kernel = draw(st.tuples(*(st.integers(1, min(3, int(size))) for size in x.shape[2:])))
    pads = tuple(draw(st.integers(0, k - 1)) for k in kernel * 2)
    attrs = {"kernel_shape": kernel, "pads": pads, "strides": draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))}
    if op != "Conv":
        return make_node(op, (x,), (name,), attrs, opset=17)
    filters, groups = draw(st.integers(1, 3)), draw(st.sampled_from([1, x.shape[1]]))
    shape = (filters * groups, x.shape[1] // groups, *kernel)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    constants[f"{name}_w"] = rng.standard_normal(shape).astype("float32")
    constants[f"{name}_b"] = rng.standard_normal(shape[:1]).astype("float32")
    inputs = (x, *(Value(key, TensorType.of(constants[key])) for key in (f"{name}_w", f"{name}_b")))
    return make_node("Conv", inputs, (name,), {**attrs, "group": groups}, opset=17)


@st.composite
def pairs(draw):
    """A graph of one depth-first kernel, with a residual behind it now and then."""
    shape = draw(st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 9), st.integers(1, 9)))
    x, constants = Value("x", TensorType(shape, "float32")), {}
    first = window(draw, draw(st.sampled_from(["Conv", "MaxPool", "AveragePool"])), x, "first", constants)
    relu = make_node("Relu", (first.output,), ("relu",), opset=17)
    second = window(draw, draw(st.sampled_from(["Conv", "Conv", "MaxPool"])), relu.output, "second", constants)
    nodes, inputs = [first, relu, second], [x]
    if draw(st.booleans()):
        residual = Value("residual", second.output.type)
        inputs.append(residual)
        nodes.append(make_node("Add", (second.output, residual), ("sum",), opset=17))
        nodes.append(make_node("Sigmoid", (nodes[-1].output,), ("y",), opset=17))
    return Graph("pair", tuple(inputs), (nodes[-1].output,), tuple(nodes), constants)


def fused(graph):
    return replace(graph, nodes=(fused_node(graph.nodes, graph.outputs, "pair_0", graph.opsets),))


@settings(deadline=None, max_examples=60)
@given(graph=pairs(), data=st.data())
def test_counted_is_planned_and_the_result_is_that_of_run(graph, data):
    one = fused(graph)
    halves = kernel_of(one.nodes[0], 17).halves
    least = halves.pair.working_set_bytes(best_pair_tile(halves.pair, 0))
    sram_bytes = data.draw(st.integers(least, 4 * least))
    (scheduled,) = schedule(one, replace(NPU, sram_bytes=sram_bytes))
    rng = np.random.default_rng(5)
    feeds = {value.name: rng.standard_normal(value.shape).astype("float32") for value in graph.inputs}
    pad = Scratchpad(sram_bytes)
    found = run_scheduled(scheduled, {**feeds, **graph.constants}, pad, graph.opsets)

    assert pad.ledger.traffic == scheduled.traffic == scheduled.plan.traffic
    assert scheduled.plan.dram_bytes == halves.pair.dram_bytes(scheduled.plan.pair_tile)
    assert pad.high_water_bytes <= scheduled.plan.working_set_bytes <= sram_bytes
    assert (pad.used_bytes, pad.launches) == (0, 1)
    for name, wanted in run(graph, feeds).items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5)


@settings(deadline=None, max_examples=40)
@given(graph=pairs(), data=st.data())
def test_no_other_tile_moves_fewer_bytes(graph, data):
    pair = kernel_of(fused(graph).nodes[0], 17).halves.pair
    least = pair.working_set_bytes((1, 1))
    sram_bytes = data.draw(st.integers(least, 4 * least))
    best = best_pair_tile(pair, sram_bytes)
    rows, columns = (range(1, line.out + 1) for line in pair.second)
    for tile in ((r, c) for r in rows for c in columns if pair.working_set_bytes((r, c)) <= sram_bytes):
        assert pair.dram_bytes(best) <= pair.dram_bytes(tile)


@pytest.mark.parametrize("tile", [(8, 8), (32, 32), (5, 7), (1, 32)])
def test_two_plain_convolutions_move_and_compute_what_the_kernel_of_the_lesson_does(tile):
    """kernels/depth_first.py counts from the loops of two problems; this module from windows along two lines."""
    shape = ConvShape(1, 8, 32, 32, 8, (3, 3), pads=(1, 1, 1, 1))
    weights = Value("w", TensorType((8, 8, 3, 3), "float32"))
    x, attrs = Value("x", TensorType((1, 8, 32, 32), "float32")), {"pads": (1, 1, 1, 1)}
    first = make_node("Conv", (x, weights), ("m",), attrs, opset=17)
    second = make_node("Conv", (first.output, replace(weights, name="v")), ("y",), attrs, opset=17)
    nodes = (first, second)
    pair = halves_of(nodes, (x, weights, replace(weights, name="v")), second.results).pair
    other = DepthFirst(shape, shape, tile)
    assert pair.dram_bytes(tile) == other.traffic.nbytes
    assert pair.extra_flops(tile) == other.extra_flops
    assert pair.working_set_bytes(tile) == other.working_set_bytes


def two(x, middle_readers=()):
    weights = Value("w", TensorType((3, 3, 3, 3), "float32"))
    first = make_node("Conv", (x, weights), ("m",), {"pads": (1, 1, 1, 1)}, opset=17)
    second = make_node("Conv", (first.output, weights), ("c",), {"pads": (1, 1, 1, 1)}, opset=17)
    return first, second, weights


X = Value("x", TensorType((1, 3, 8, 8), "float32"))


def test_a_middle_that_leaves_the_kernel_makes_no_pair():
    first, second, weights = two(X)
    assert halves_of((first, second), (X, weights), (second.output,))
    assert halves_of((first, second), (X, weights), (first.output, second.output)) is None


def test_a_mask_with_pixels_of_its_own_in_the_first_half_makes_no_pair():
    first, second, weights = two(X)
    for dims in ((1, 1, 8, 8), (8,)):
        mask = Value("mask", TensorType(dims, "float32"))
        masked = make_node("Mul", (first.output, mask), ("mm",), opset=17)
        behind = replace(second, inputs=(masked.output, weights))
        assert halves_of((first, masked, behind), (X, weights, mask), behind.results) is None


def test_an_image_that_is_read_again_behind_makes_no_pair():
    first, second, weights = two(X)
    add = make_node("Add", (second.output, X), ("y",), opset=17)
    assert halves_of((first, second, add), (X, weights), add.results) is None


def test_the_pseudo_code_of_a_pair_says_what_is_loaded_computed_and_stored():
    first, second, weights = two(X)
    graph = Graph("g", (X,), second.results, (first, second), {"w": np.zeros((3, 3, 3, 3), "float32")})
    (scheduled,) = schedule(fused(graph), replace(NPU, sram_bytes=1200))
    text = str(scheduled)
    assert "load w\n" in text
    assert f"for p in range(0, 8, {scheduled.plan.pair_tile[0]}):" in text
    assert "m = Conv(x, w)  # " in text
    assert text.rstrip().splitlines()[-1].strip().startswith("store c ")
    assert lower((first, second), (X, weights), second.results).halves
