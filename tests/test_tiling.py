"""Tiles and bounds on paper. What counting kernels move is held against them in tests/kernels/test_matmul.py."""

import itertools
from math import prod, sqrt

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from labkit.access import Axis, Operand
from labkit.errors import LabError
from labkit.loops import LoopNest
from labkit.problems import ConvShape, Problem, conv, matmul
from labkit.tiling import Bounds, bound_bytes, bounds, largest_square_tile, products, sharing, working_set_bytes

ORDERS = [tuple(order) for order in itertools.permutations("mnk")]
POLICIES = ["store", "load_store", "spill"]
extent = st.integers(1, 2**62)
huge = st.tuples(extent, extent, extent)
small = st.integers(1, 5)


@st.composite
def convolutions(draw: st.DrawFn) -> ConvShape:
    groups = draw(st.integers(1, 2))
    channels, filters = (groups * draw(st.integers(1, 3)) for _ in range(2))
    kernel, strides, dilations = (draw(st.tuples(st.integers(1, 3), st.integers(1, 3))) for _ in range(3))
    h, w = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    pads = draw(st.tuples(*[st.integers(0, 2)] * 4))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    assume(h + pads[0] + pads[2] >= reach[0] and w + pads[1] + pads[3] >= reach[1])
    return ConvShape(draw(st.integers(1, 2)), channels, h, w, filters, kernel, strides, dilations, pads, groups)


@st.composite
def nests(draw: st.DrawFn) -> LoopNest:
    dtype = draw(st.sampled_from(["float32", "float16", "int8"]))
    if draw(st.booleans()):
        problem = matmul(*draw(st.tuples(*[st.integers(1, 30)] * 3)), dtype)
    else:
        problem = conv(draw(convolutions()), draw(st.sampled_from(["NCHW", "NHWC"])), dtype)
    tile = tuple(draw(st.integers(1, size)) for size in problem.loops.values())
    order = tuple(draw(st.permutations(list(problem.loops))))
    return LoopNest(
        problem,
        tile,
        order,
        draw(st.sampled_from(POLICIES)),
        draw(st.sampled_from(["single", "double"])),
        draw(st.sampled_from(["reload", "slide"])),
    )


# ---- tiles


@given(st.integers(4, 2**40), st.sampled_from([1, 2, 4, 8]), st.sampled_from([3, 5, 6]))
def test_the_largest_square_tile_fits_and_the_next_does_not(sram_bytes: int, itemsize: int, tiles: int) -> None:
    if sram_bytes < tiles * itemsize:
        with pytest.raises(LabError, match="do not fit"):
            largest_square_tile(sram_bytes, itemsize, tiles)
        return
    side = largest_square_tile(sram_bytes, itemsize, tiles)
    assert tiles * itemsize * side**2 <= sram_bytes < tiles * itemsize * (side + 1) ** 2


@given(huge, huge, st.sampled_from(ORDERS))
def test_sizes_up_to_64_bits_neither_overflow_nor_allocate(shape, tile, order) -> None:
    problem = matmul(*shape)
    nest = LoopNest(problem, tile, order)
    m, n, k = shape
    assert nest.traffic.nbytes >= problem.compulsory_bytes > 0
    assert nest.traffic.nbytes <= 4 * m * n * k * 4
    needed = working_set_bytes(nest.clipped().tile)
    assert needed == nest.working_set_bytes
    assert nest.traffic.nbytes >= bound_bytes(problem, needed)


def test_modelled_traffic_against_a_case_worked_by_hand() -> None:
    """4 × 4 × 4 in tiles of 2: 2 trips a loop. Order mnk: A comes once for each n, B for each m, C leaves once."""
    problem = matmul(4, 4, 4)
    by_operand = LoopNest(problem, (2, 2, 2), tuple("mnk")).by_operand
    assert {name: (t.read_bytes, t.write_bytes) for name, t in by_operand.items()} == {
        "A": (128, 0),
        "B": (128, 0),
        "C": (0, 64),
    }
    k_outside = LoopNest(problem, (2, 2, 2), tuple("kmn")).by_operand
    assert {name: (t.read_bytes, t.write_bytes) for name, t in k_outside.items()} == {
        "A": (64, 0),  # n is innermost: A stays
        "B": (128, 0),
        "C": (64, 128),  # leaves after each k-step: read again once, written twice
    }


def test_a_larger_tile_is_clipped_and_the_caller_can_see_it() -> None:
    asked = LoopNest(matmul(10, 10, 10), (64, 8, 64), tuple("mnk"))
    clipped = asked.clipped()
    assert clipped.tile == (10, 8, 10)
    assert clipped.clipped() is clipped


def test_double_buffering_takes_two_tiles_of_each_input_and_moves_the_same_bytes() -> None:
    assert working_set_bytes((2, 3, 5), 4, "double") == 4 * (2 * 10 + 2 * 15 + 6)
    assert working_set_bytes((2, 3, 5), 4, "double_all") == 2 * working_set_bytes((2, 3, 5), 4)
    problem = matmul(9, 9, 9)
    single, double = (LoopNest(problem, (2, 3, 5), tuple("mnk"), buffers=buffers) for buffers in ("single", "double"))
    assert single.traffic == double.traffic


# ---- bounds


def every_point(problem: Problem) -> list[dict[str, int]]:
    """Judge: all index combinations whose input element exists, one by one."""
    windows = [axis for x in problem.inputs for axis in x.axes if not axis.is_plain]
    found = []
    for indices in itertools.product(*map(range, problem.loops.values())):
        point = dict(zip(problem.loops, indices, strict=True))
        if all(0 <= position(axis, point) < axis.extent for axis in windows):
            found.append(point)
    return found


def position(axis: Axis, point: dict[str, int]) -> int:
    return axis.offset + sum(coefficient * point[loop] for loop, coefficient in axis.terms)


@settings(deadline=None, max_examples=80)
@given(convolutions())
@example(ConvShape(1, 1, 7, 7, 1, (3, 3), (2, 2), (2, 2)))  # stride 2 with dilation 2: all nine taps share
@example(ConvShape(1, 1, 2, 2, 1, (2, 2), (1, 1), (1, 1), (1, 1, 1, 1)))
def test_products_and_sharing_are_those_of_a_count_by_hand(shape: ConvShape) -> None:
    problem = conv(shape)
    points = every_point(problem)
    assert products(problem) == len(points)
    taps: dict[tuple[int, ...], set[tuple[int, int]]] = {}
    for point in points:
        element = tuple(position(axis, point) for axis in problem.inputs[0].axes)
        taps.setdefault(element, set()).add((point["r"], point["s"]))
    assert sharing(problem) >= max(map(len, taps.values()), default=0)


@pytest.mark.parametrize(
    ("strides", "dilations", "shared"),
    [((1, 1), (1, 1), 9), ((2, 2), (1, 1), 4), ((3, 1), (1, 1), 3), ((2, 2), (2, 2), 9), ((4, 1), (2, 1), 6)],
)
def test_sharing_is_reached_in_a_large_image(strides, dilations, shared: int) -> None:
    problem = conv(ConvShape(1, 1, 30, 30, 1, (3, 3), strides, dilations))
    taps: dict[tuple[int, int], set[tuple[int, int]]] = {}
    rows, columns = problem.inputs[0].axes[-2:]
    for point in every_point(problem):
        taps.setdefault((position(rows, point), position(columns, point)), set()).add((point["r"], point["s"]))
    assert max(map(len, taps.values())) == shared == sharing(problem)


@settings(deadline=None, max_examples=200)
@given(convolutions(), st.data())
def test_a_segment_cannot_do_more_products_than_its_operands_allow(shape: ConvShape, data: st.DataObject) -> None:
    """The inequality itself, on a random set of products and the elements that they touch."""
    problem = conv(shape)
    points = every_point(problem)
    assume(points)
    segment = data.draw(st.lists(st.sampled_from(points), unique_by=lambda p: tuple(p.values()), max_size=60))
    touched = [{tuple(position(axis, p) for axis in x.axes) for p in segment} for x in problem.operands]
    assert len(segment) <= sqrt(sharing(problem) * prod(map(len, touched))) + 1e-9


@settings(deadline=None, max_examples=500)
@given(nests())
@example(LoopNest(conv(ConvShape(1, 2, 7, 7, 2, (3, 3), (2, 2), (2, 2))), (1, 1, 2, 2, 2, 2, 3, 3), tuple("ngfcpqrs")))
def test_no_schedule_beats_the_bounds(nest: LoopNest) -> None:
    one_of_each = sum(x.itemsize for x in nest.problem.operands)  # more than the tiles need when all of X is padding
    found = bounds(nest.problem, max(nest.working_set_bytes, one_of_each))
    assert nest.traffic.nbytes >= found.dram_bytes >= found.compulsory_bytes > 0


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), st.integers(3, 40))
def test_no_tile_at_all_of_a_small_product_beats_the_bounds(m: int, n: int, k: int, words: int) -> None:
    problem = matmul(m, n, k)
    bound = bound_bytes(problem, 4 * words)
    for tile in itertools.product(range(1, m + 1), range(1, n + 1), range(1, k + 1)):
        if working_set_bytes(tile) <= 4 * words:
            assert all(LoopNest(problem, tile, order).traffic.nbytes >= bound for order in ORDERS)


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 3000), st.integers(3, 10**6))
def test_for_matmul_the_bounds_are_the_published_formulas(m: int, n: int, k: int, words: int) -> None:
    """In words of 4 bytes; rounding down costs less than one word."""
    found = bounds(matmul(m, n, k), 4 * words)
    assert found.compulsory_bytes == 4 * (m * k + k * n + m * n)
    irony = m * n * k / (2 * sqrt(2) * sqrt(words)) - words
    smith = 2 * m * n * k / sqrt(words) - 2 * words
    assert found.irony_toledo_tiskin_bytes == pytest.approx(4 * max(irony, 0), rel=1e-9, abs=1.5)
    assert found.smith_bytes == pytest.approx(4 * max(smith, 0), rel=1e-9, abs=1.5)


def test_a_wide_accumulator_raises_the_bound() -> None:
    """Bytes, not words: √(1·1·4) = 2 times the bound of int8 alone, the SRAM being small."""
    problem = matmul(512, 512, 512, "int8")
    assert bounds(problem, 1024).smith_bytes == 2 * 512**3 * 2 // 32 - 2 * 1024


def test_the_bound_is_the_compulsory_traffic_when_everything_fits() -> None:
    problem = matmul(64, 64, 64)
    assert bound_bytes(problem, 2**20) == problem.compulsory_bytes == 3 * 64 * 64 * 4


def test_products_on_padding_do_not_raise_the_bound() -> None:
    """A 3×3 kernel on a 1×1 image with padding 1: of nine taps only the middle one multiplies an element."""
    problem = conv(ConvShape(1, 64, 1, 1, 64, (3, 3), pads=(1, 1, 1, 1)))
    assert problem.flops // 2 == 9 * products(problem) == 9 * 64 * 64
    assert bounds(problem, 256).smith_bytes == 2 * 64 * 64 * 8 // 16 - 2 * 256


def test_a_problem_of_another_form_has_the_compulsory_floor_only() -> None:
    """A sum over k of A[m,k] · B[n]: k indexes one operand only, so one element of B serves all of A."""
    a, b, c = (
        Operand(name, tuple(Axis(((loop, 1),), 4) for loop in loops), "float32")
        for name, loops in (("A", "mk"), ("B", "n"), ("C", "mn"))
    )
    problem = Problem("outer", {"m": 4, "n": 4, "k": 4}, (a, b), c)
    assert bounds(problem, 12) == Bounds(4 * (16 + 4 + 16), 0, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: matmul(0, 1, 1), "matmul: m is 0"),
        (lambda: matmul(1, -3, 1), "matmul: n is -3"),
        (lambda: matmul(1, 1, 2**63), "matmul: k is 9223372036854775808"),
        (lambda: matmul(1, 1, 1.5), "matmul: k is 1.5"),
        (lambda: matmul(1, 1, 1, "int64"), "no accumulator for 'int64'"),
        (lambda: working_set_bytes((1, 1, -1)), "TK is -1"),
        (lambda: working_set_bytes((1, 1)), "three numbers"),
        (lambda: working_set_bytes((1, 1, 1), buffers="triple"), "choose one of single, double, double_all"),
        (lambda: largest_square_tile(512, tiles=4), "choose one of 3, 5, 6"),
        (lambda: bounds(matmul(1, 1, 1), 11), "SRAM of 11 B: one element of each of A, B, C must fit, 12 bytes"),
        (lambda: products(conv(ConvShape(1, 1, 2**61, 1, 1, (2**60, 1)))), "taps of a window along one axis"),
    ],
)
def test_bad_input_is_named(make, message: str) -> None:
    with pytest.raises(LabError, match=message):
        make()


@pytest.mark.parametrize(
    ("tile", "order", "options", "message"),
    [
        ((1, 0, 1), "mnk", {}, "tile: n is 0"),
        ((1, 1), "mnk", {}, "3 numbers are wanted"),
        ((1, 1, 1), "mnn", {}, "loop order m,n,n"),
        ((1, 1, 1), "mnk", {"c_policy": "keep"}, "choose one of store, load_store, spill"),
        ((1, 1, 1), "mnk", {"buffers": "triple"}, "choose one of single, double, double_all"),
    ],
)
def test_a_nest_that_makes_no_sense_is_named(tile, order: str, options, message: str) -> None:
    with pytest.raises(LabError, match=message):
        LoopNest(matmul(1, 1, 1), tile, tuple(order), **options)
