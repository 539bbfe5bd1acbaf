"""Depth-first fusion: which pairs pay on a machine, and that the choice of pairs is the best there is."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

import labkit
from labkit.hardware import Hardware
from labkit.passes.depth_first import FuseDepthFirst, candidates

NPU = Hardware.preset("edge-npu")


def chain(parse, channels, size=32, tail=""):
    """3×3 convolutions one behind the other, with these numbers of channels."""
    rng = np.random.default_rng(len(channels))
    weights = {
        f"w{i}": (rng.standard_normal((after, before, 3, 3)) * 0.1).astype("float32")
        for i, (before, after) in enumerate(pairwise(channels))
    }
    steps = " ".join(f"v{i + 1} = Conv<pads=[1,1,1,1]>(v{i}, w{i})" for i in range(len(weights)))
    text = f"g (float[1,{channels[0]},{size},{size}] v0) => (v{len(weights)}) {{ {steps} {tail} }}"
    return parse(text, **weights)


def test_a_pair_that_saves_more_than_it_computes_again_becomes_one_kernel(parse):
    graph = chain(parse, (8, 8, 8))
    (pair,) = candidates(graph, NPU)
    assert pair.pays
    assert pair.saved_bytes == 2 * 4 * 8 * 32 * 32  # the middle, written and read; all of it fits
    assert pair.extra_flops == 0
    fused = FuseDepthFirst(NPU)(graph)
    assert [node.op for node in fused.nodes] == ["Conv_Conv_0"]
    before, after = (labkit.schedule(one, NPU).dram_bytes for one in (graph, fused))
    assert before - after == pair.saved_bytes


def test_the_numbers_say_what_a_smaller_sram_costs(parse):
    small = replace(NPU, sram_bytes=24 * 1024)
    (pair,) = candidates(chain(parse, (8, 8, 8)), small)
    assert pair.extra_flops > 0
    assert f"{pair.plan.pair_tile}" in pair.why
    assert "FLOP are computed again" in pair.why


def test_on_a_machine_that_computes_slowly_nothing_is_computed_again(parse):
    graph = chain(parse, (8, 8, 8))
    slow = replace(NPU, sram_bytes=24 * 1024, peak_flops_per_s=1e6)
    assert candidates(graph, slow)[0].saved_bytes > 0
    assert FuseDepthFirst(slow)(graph) is graph
    refusal = next(FuseDepthFirst(slow).refusals(graph))
    assert refusal.guard == "recompute"
    assert "FLOP are computed again" in refusal.why


def test_a_pair_whose_weights_do_not_fit_is_refused_with_the_numbers(parse):
    graph = chain(parse, (8, 8, 8))
    tiny = replace(NPU, sram_bytes=2048)
    assert FuseDepthFirst(tiny)(graph) is graph
    assert "2 KiB of SRAM" in next(FuseDepthFirst(tiny).refusals(graph)).why


@pytest.mark.parametrize("channels", [(4, 4, 4, 4), (2, 16, 2, 16, 2), (3, 8, 8, 8, 8, 8), (1, 9, 2, 7, 3, 8, 1)])
def test_the_pairs_chosen_save_the_most_of_all_choices(parse, channels):
    graph = chain(parse, channels)
    pays = [pair for pair in candidates(graph, NPU) if pair.pays]
    assert len(pays) == len(channels) - 2

    def apart(choice):
        ends = [node for pair in choice for node in (pair.first, pair.second)]
        return len(ends) == len(set(ends))

    choices = [c for size in range(len(pays) + 1) for c in combinations(pays, size) if apart(c)]
    best = max(sum(pair.saved_bytes for pair in choice) for choice in choices)
    fused = FuseDepthFirst(NPU)(graph)
    assert labkit.schedule(graph, NPU).dram_bytes - labkit.schedule(fused, NPU).dram_bytes == best


def test_a_tensor_that_others_read_stays_in_dram(parse):
    graph = chain(parse, (8, 8, 8), tail="t = Relu(v1)")
    assert not candidates(replace(graph, outputs=(*graph.outputs, graph.nodes[-1].output)), NPU)


def test_the_pass_rests_and_keeps_every_bit(parse):
    graph = labkit.optimize(chain(parse, (8, 8, 8, 8)), "extended").graph
    once = FuseDepthFirst(NPU)(graph)
    assert once is not graph
    assert FuseDepthFirst(NPU)(once) is once
    feed = {"v0": np.random.default_rng(1).standard_normal((1, 8, 32, 32)).astype("float32")}
    one, two = labkit.run(graph, feed), labkit.run(once, feed)
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_a_pool_joins_the_convolution_in_front_of_it(parse):
    text = "c = Conv<pads=[1,1,1,1]>(x, w) r = Relu(c) y = MaxPool<kernel_shape=[3,3], strides=[2,2]>(r)"
    weights = np.random.default_rng(1).standard_normal((8, 3, 3, 3)).astype("float32")
    graph = parse(f"g (float[1,3,33,33] x) => (y) {{ {text} }}", w=weights)
    report = labkit.optimize(graph, "all", replace(NPU, layout="NCHW"))
    assert [node.op for node in report.graph.nodes] == ["Conv_Relu_MaxPool_0"]
    assert labkit.verify(graph, report.graph)
