"""The best tile and the curve over SRAM sizes. Trying every tile and every loop order judges them."""

import itertools
import runpy
from math import prod
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from labkit.access import Axis, Operand
from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.loops import LoopNest
from labkit.pools import pool
from labkit.problems import ConvShape, Problem, conv, matmul, transform
from labkit.search import best_tile, pareto
from labkit.tail import Tail
from labkit.tiling import bound_bytes

KIB = 1024
BENCH = runpy.run_path(str(Path(__file__).parent / "bench" / "tile_search.py"))  # it has the exhaustive search
OPTIONS = st.fixed_dictionaries(
    {
        "c_policy": st.sampled_from(["store", "load_store", "spill", "complete"]),
        "buffers": st.sampled_from(["single", "double", "double_all"]),
        "halo": st.sampled_from(["reload", "slide"]),
    }
)


@st.composite
def small_convolutions(draw: st.DrawFn) -> Problem:
    """At most four loops of more than one step, so that all their orders can be tried."""
    rows = draw(st.sampled_from([True, False]))
    kernel, size = (draw(st.integers(1, 3)), 1), (draw(st.integers(1, 7)), 1)
    if rows:
        kernel, size = (kernel[0], draw(st.integers(1, 2))), (size[0], draw(st.integers(1, 3)))
    stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    pads = (draw(st.integers(0, 2)), 0, draw(st.integers(0, 2)), 0)
    groups, channels, filters = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    assume(size[0] + pads[0] + pads[2] >= (kernel[0] - 1) * dilation + 1)
    assume(size[1] >= kernel[1])
    shape = ConvShape(1, groups * channels, *size, groups * filters, kernel, (stride, 1), (dilation, 1), pads, groups)
    problem = conv(shape, dtype=draw(st.sampled_from(["float32", "int8"])))
    assume(sum(extent > 1 for extent in problem.loops.values()) <= 4)
    assume(prod(problem.loops.values()) <= 120)
    return problem


products = st.builds(matmul, *[st.integers(1, 5)] * 3, st.sampled_from(["float32", "int8"]))
window = Problem(  # no plain loop at all
    "window",
    {"p": 6, "r": 3},
    (
        Operand("X", (Axis((("p", 1), ("r", 1)), 8),), "float32"),
        Operand("W", (Axis((("r", 1),), 3),), "float32"),
    ),
    Operand("Y", (Axis((("p", 1),), 6),), "float32"),
)


def every_nest(problem: Problem, options: dict[str, str]) -> list[tuple[int, int]]:
    """(working set, bytes) of every tile in every order; a loop of one step is no matter wherever it stands."""
    moving = [loop for loop, extent in problem.loops.items() if extent > 1]
    still = tuple(loop for loop, extent in problem.loops.items() if extent == 1)
    found = []
    for tile in itertools.product(*(range(1, extent + 1) for extent in problem.loops.values())):
        for order in itertools.permutations(moving):
            nest = LoopNest(problem, tile, still + order, **options)
            if nest.c_policy == "complete" and nest.passes(problem.output) > 1:
                continue  # an output tile leaves unfinished
            found.append((nest.working_set_bytes, nest.traffic.nbytes))
    return found


def steps(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The lower left border of these points."""
    border: list[tuple[int, int]] = []
    for working_set, moved in sorted(found):
        if not border or moved < border[-1][1]:
            border.append((working_set, moved))
    return border


@settings(deadline=None, max_examples=120)
@given(st.one_of(products, small_convolutions()), OPTIONS)
@example(matmul(1, 1, 3), {"c_policy": "spill"})  # a finer cut of k spills C more often
@example(window, {"halo": "slide"})
@example(window, {"halo": "reload"})
@example(  # two loops of one group slide, and the group that moves Y is innermost
    conv(ConvShape(1, 1, 4, 3, 2, (2, 1), pads=(1, 0, 1, 0))), {"halo": "slide", "c_policy": "store"}
)
@example(transform((1, 4, 2, 3), "NCHW", "NHWC"), {})
@example(pool(ConvShape(1, 2, 5, 4, 2, (3, 2), pads=(1, 0, 1, 0))), {"halo": "slide", "c_policy": "complete"})
@example(conv(ConvShape(1, 1, 5, 4, 2, (3, 1), pads=(1, 0, 1, 0))), {"halo": "slide", "c_policy": "complete"})
@example(conv(ConvShape(1, 1, 4, 3, 2, (2, 2), pads=(1, 0, 1, 0))), {"halo": "slide", "c_policy": "complete"})
def test_the_curve_is_that_of_trying_everything(problem: Problem, options: dict[str, str]) -> None:
    curve = pareto(problem, **options)
    assert [point[:2] for point in curve.points] == steps(every_nest(problem, options))
    for point in curve.points:
        assert (point.nest.working_set_bytes, point.nest.traffic.nbytes) == point[:2]


@settings(deadline=None, max_examples=300)
@given(st.one_of(products, small_convolutions()), OPTIONS, st.data())
def test_the_best_tile_is_the_point_of_the_curve(
    problem: Problem, options: dict[str, str], data: st.DataObject
) -> None:
    curve = pareto(problem, **options)
    sram_bytes = data.draw(st.integers(curve.points[0].sram_bytes, curve.points[-1].sram_bytes + 9))
    best = best_tile(problem, sram_bytes, **options)
    assert best.nest == curve.at(sram_bytes).nest
    assert best.dram_bytes == curve.bytes_at(sram_bytes)
    with pytest.raises(LabError, match="one element of each operand needs"):
        best_tile(problem, curve.points[0].sram_bytes - 1, **options)
    with pytest.raises(LabError, match="one element of each operand needs"):
        curve.bytes_at(curve.points[0].sram_bytes - 1)


# ---- the figures of the errata


@pytest.mark.parametrize(("sram", "moved"), [(512 * KIB, 29_360_128), (64 * KIB, 75_497_472)])
def test_the_best_tiles_of_the_1024_cube(sram: int, moved: int) -> None:
    problem = matmul(1024, 1024, 1024)
    best = best_tile(problem, sram)
    assert best.dram_bytes == best.nest.traffic.nbytes == pareto(problem).bytes_at(sram) == moved
    assert best.nest.working_set_bytes <= sram
    if sram == 512 * KIB:
        assert best.nest.tile == (342, 342, 1)


def test_a_hardware_stands_for_its_sram() -> None:
    hardware = Hardware.preset("edge-npu")
    assert best_tile(matmul(1024, 1024, 1024), hardware) == best_tile(matmul(1024, 1024, 1024), 512 * KIB)


@pytest.mark.slow
@pytest.mark.parametrize("sram", [64 * KIB, 200_000, 512 * KIB, 2**20, 2**23])
def test_the_best_tile_of_the_1024_cube_is_that_of_a_million_and_a_half(sram: int) -> None:
    least, tried = BENCH["exhaustive"](1024, sram)
    assert tried == 6 * 63**3 == 1_500_282
    assert best_tile(matmul(1024, 1024, 1024), sram).dram_bytes == least


# ---- bounds


LAYERS = [
    ConvShape(1, 3, 224, 224, 64, (7, 7), (2, 2), pads=(3, 3, 3, 3)),
    ConvShape(1, 64, 56, 56, 64, (3, 3), pads=(1, 1, 1, 1)),
    ConvShape(1, 256, 14, 14, 256, (3, 3), pads=(1, 1, 1, 1)),
    ConvShape(1, 512, 7, 7, 2048, (1, 1)),
    ConvShape(1, 128, 28, 28, 128, (3, 3), pads=(1, 1, 1, 1), groups=128),
    ConvShape(1, 32, 28, 28, 32, (3, 3), pads=(2, 2, 2, 2), dilations=(2, 2), strides=(2, 2)),
]


@pytest.mark.parametrize("shape", LAYERS)
@pytest.mark.parametrize("halo", ["reload", "slide"])
def test_no_best_tile_beats_the_bound(shape: ConvShape, halo: str) -> None:
    problem = conv(shape)
    curve = pareto(problem, halo=halo)
    for point in curve.points:
        assert point.dram_bytes >= bound_bytes(problem, point.sram_bytes)
    for sram in (4 * KIB, 32 * KIB, 512 * KIB):
        best = best_tile(problem, sram, halo=halo)
        assert best.dram_bytes == best.nest.traffic.nbytes == curve.bytes_at(sram)
        assert best.nest == curve.at(sram).nest


def test_a_window_that_slides_never_moves_more() -> None:
    problem = conv(LAYERS[1])
    for sram in (8 * KIB, 64 * KIB, 512 * KIB):
        assert best_tile(problem, sram, halo="slide").dram_bytes <= best_tile(problem, sram).dram_bytes


# ---- asking again, and asking for too much


def test_an_equal_question_is_answered_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    first, curve = best_tile(matmul(96, 80, 72), 4 * KIB), pareto(matmul(96, 80, 72))
    monkeypatch.setattr("labkit.search.cuts_of", lambda unit: pytest.fail("searched again"))
    assert best_tile(matmul(96, 80, 72), 4 * KIB) is first
    assert pareto(matmul(96, 80, 72)) is curve


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: best_tile(matmul(8, 8, 8), 11), "SRAM of 11 B: one element of each operand needs 12 B"),
        (lambda: best_tile(matmul(8, 8, 8), 0), "one element of each operand needs 12 B"),
        (lambda: best_tile(matmul(8, 8, 8), -5), "one element of each operand needs 12 B"),
        (lambda: best_tile(matmul(8, 8, 8), 19, buffers="double"), "one element of each operand needs 20 B"),
        (lambda: best_tile(matmul(2**62, 2**62, 2**62), 2**20), "too many tiles to weigh"),
        (lambda: pareto(matmul(1, 1, 2**62)), "too many tiles to weigh"),
        (lambda: pareto(matmul(10**8, 10**8, 4)), "a curve through"),
        (lambda: best_tile(conv(ConvShape(1, 1, 2**62, 1, 1, (3, 1))), 2**20), "too many tiles to weigh"),
        (lambda: best_tile(conv(ConvShape(1, 1, 2**62, 1, 1, (2**61, 1))), 2**20), "too many tiles to weigh"),
        (lambda: best_tile(matmul(8, 8, 8), 99, halo="wrap"), "halo 'wrap': choose one of reload, slide"),
        (lambda: pareto(matmul(8, 8, 8), c_policy="keep"), "choose one of store, load_store, spill, complete"),
    ],
)
def test_bad_input_is_named(make, message: str) -> None:
    with pytest.raises(LabError, match=message):
        make()


def test_a_window_along_which_every_operand_lies_may_slide_inside_the_other_loops() -> None:
    """Pooling with a vector for each window: with n outside, the rows slide and the vector comes twice. That is less
    than the rows three times, with n inside."""
    n, q, window = Axis((("n", 1),), 2), Axis((("q", 1),), 3), Axis((("q", 1), ("s", 1)), 4)
    vectors = (Operand("v", (q,), "float32"),)
    x, y = Operand("X", (n, window), "float32"), Operand("Y", (n, q), "float32")
    problem = Problem("pool", {"n": 2, "q": 3, "s": 2}, (x,), y, tail=Tail((1,), (4, 4), 5, vectors))
    best = best_tile(problem, 17, c_policy="complete", halo="slide")
    assert (best.nest.order, best.dram_bytes) == (("n", "q", "s"), 110)
