"""Fusion for a machine: what is saved, what does not fit, and what one SRAM more would change."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import labkit
from labkit.bodies import inline
from labkit.frames import place
from labkit.hardware import Hardware
from labkit.passes.fuse import Candidate, Fuse, candidates
from labkit.text import to_text

NPU = Hardware.preset("edge-npu")
RNG = np.random.default_rng(3)
STATISTICS = {name: RNG.uniform(0.5, 1.5, 64).astype("float32") for name in ("g", "b", "m", "v")}


def with_sram(sram_bytes):
    return replace(NPU, sram_bytes=sram_bytes)


@pytest.fixture(scope="module")
def chain(parse):
    """Conv, BatchNormalization and Relu on 64×56×56 (spec §4.3)."""
    weights = (RNG.standard_normal((64, 64, 3, 3)) * 0.05).astype("float32")
    text = "c = Conv<pads=[1,1,1,1]>(x, w) n = BatchNormalization(c, g, b, m, v) y = Relu(n)"
    return parse(f"chain (float[1,64,56,56] x) => (float[1,64,56,56] y) {{ {text} }}", w=weights, **STATISTICS)


def test_the_chain_of_the_course_saves_its_two_intermediate_tensors(chain):
    """Each of 802,816 bytes is written once and read once."""
    fused = labkit.optimize(chain, passes=["fuse"])
    assert [node.op for node in fused.graph.nodes] == ["Conv_BatchNormalization_Relu_0"]
    assert fused.costs[0].dram_bytes - fused.costs[-1].dram_bytes == 3_211_264


def test_folding_alone_saves_one_of_them(chain):
    """The convolution gets a bias in place of the four vectors: 64 elements instead of 256."""
    folded = labkit.optimize(chain, level="basic")
    assert folded.costs[0].dram_bytes - folded.costs[-1].dram_bytes == 1_605_632 + 4 * (256 - 64)


def test_the_pass_gives_back_the_same_graph_when_there_is_nothing_to_fuse(chain):
    pass_ = Fuse(NPU)
    once = pass_(chain)
    assert once is not chain
    assert pass_(once) is once
    assert to_text(pass_(inline(once))) == to_text(once)


def test_fused_and_plain_graphs_compute_the_same_to_the_bit(chain):
    feed = {"x": RNG.standard_normal((1, 64, 56, 56)).astype("float32")}
    assert np.array_equal(labkit.run(Fuse(NPU)(chain), feed)["y"], labkit.run(chain, feed)["y"])


def test_a_value_that_is_read_outside_too_is_one_more_output(parse):
    text = "c = Conv(x, w) r = Relu(c) t = Transpose(c) y = Add(r, r)"
    graph = parse(f"g (float[1,3,8,8] x, float[4,3,1,1] w) => (y, t) {{ {text} }}")
    kernel = Fuse(NPU)(graph).nodes[0]
    assert [value.name for value in kernel.outputs] == ["c", "y"]


def test_every_kernel_bears_a_name_of_its_own(parse):
    text = " ".join(f"a{i} = Relu(x{i}) b{i} = Neg(a{i}) x{i + 1} = Transpose(b{i})" for i in range(4))
    graph = Fuse(NPU)(parse(f"g (float[4,4] x0) => (x4) {{ {text} }}"))
    ops = [node.op for node in graph.nodes if node.body]
    assert len(set(ops)) == len(ops) == 4


def residuals(parse, count):
    """A product whose epilogue adds so many tensors of its output's size."""
    adds = " ".join(f"s{i + 1} = Add(s{i}, r{i})" for i in range(count))
    inputs = ", ".join(f"float[64,64] r{i}" for i in range(count))
    return parse(f"g (float[64,256] a, float[256,64] b, {inputs}) => (s{count}) {{ s0 = MatMul(a, b) {adds} }}")


def test_a_group_whose_smallest_tiles_do_not_fit_is_refused_with_the_numbers(parse):
    graph = parse(
        "g (float[64] x) => (y) { m = ReduceMax<axes=[0]>(x) d = Sub(x, m) e = Exp(d) y = Mul(e, d) }", opset=13
    )
    (candidate,) = candidates(graph, with_sram(128))
    assert candidate.verdict != "fuse"
    assert candidate.working_set_bytes > 128
    refusal = next(Fuse(with_sram(128)).refusals(graph))
    assert refusal.guard == "SRAM"
    assert "128 B of SRAM" in refusal.why


@pytest.mark.parametrize("sram_bytes", [24, 48, 96, 1024, 8 * 1024, 64 * 1024, 512 * 1024])
def test_no_other_cut_of_a_group_moves_fewer_bytes(parse, sram_bytes):
    """Brute force over every way to cut a chain of operators into kernels."""
    graph = residuals(parse, 4)
    (candidate,) = candidates(graph, with_sram(sram_bytes))
    count = len(candidate.nodes)
    cuts = [cut for size in range(count) for cut in combinations(range(1, count), size)]
    ways = [[candidate.nodes[a:b] for a, b in zip((0, *cut), (*cut, count), strict=True)] for cut in cuts]
    best = min((sum(map(candidate.dram_bytes, way)), len(way)) for way in ways)
    assert (sum(map(candidate.dram_bytes, candidate.parts)), len(candidate.parts)) == best
    assert candidate.saved_bytes >= 0


def test_more_sram_never_moves_more_bytes(parse):
    graph = residuals(parse, 3)
    moved = []
    for sram_bytes in (2**power for power in range(6, 20)):
        (candidate,) = candidates(graph, with_sram(sram_bytes))
        moved.append(sum(map(candidate.dram_bytes, candidate.parts)))
    assert moved == sorted(moved, reverse=True)


def test_what_cannot_be_beaten_is_not_weighed(chain, monkeypatch):
    """A kernel that moves no more than any two could is accepted at once: planning is what fusion costs."""
    asked = []
    plan = Candidate._plan
    monkeypatch.setattr(Candidate, "_plan", lambda self, part: asked.append(part) or plan(self, part))
    Fuse(Hardware.preset("datacentre-gpu"))(chain)
    assert len(asked) == 1


def test_the_candidates_say_what_they_save_and_need(chain):
    (candidate,) = candidates(chain, NPU)
    assert candidate.verdict == "fuse"
    assert candidate.saved_bytes >= 3_211_264 - 4 * 1024
    assert 0 < candidate.working_set_bytes <= NPU.sram_bytes
    assert "less" in candidate.why


@pytest.mark.parametrize("op", ["ReduceL1", "ReduceMax"])
def test_statistics_behind_a_reduction_that_drops_their_axis_fit_no_kernel_of_rows(parse, op):
    """The channels of y are the second of three axes; what the reduction leaves has one."""
    graph = parse(
        f"agraph (float[1, 1, 4] x) => (float[1, 1, 4] y) {{ r = {op} <axes: ints = [0, 1], keepdims: int = 0> (x) "
        "d = Div(r, x) y = BatchNormalization(d, k, k, k, v) }",
        v=np.ones(1, np.float32), k=np.full(1, 0.5, np.float32),
    )  # fmt: skip
    for level in ("extended", "all"):
        labkit.verify(graph, labkit.optimize(graph, level).graph)


def test_channels_are_counted_from_the_first_axis_of_what_is_normalised(parse):
    """In a kernel of four axes the second of three is the third."""
    graph = parse(
        "agraph (float[3, 2, 5] x, float[4, 3, 2, 5] z) => (float[4, 3, 2, 5] y) "
        "{ n = BatchNormalization(x, k, k, k, k) y = Add(n, z) }",
        k=np.full(2, 0.5, np.float32),
    )  # fmt: skip
    node = labkit.optimize(graph, "extended").graph.nodes[0]
    frame = place(node.steps[0], node.steps[0].inputs[1], (4, 3, 2, 5))
    assert (frame.axes, frame.extents) == ((2,), (2,))
