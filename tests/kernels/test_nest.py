"""Any nest of any problem: the ledger equals the closed form, the result is NumPy's, and nothing stays on chip."""

from math import prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from labkit.errors import LabError, SramOverflow
from labkit.kernels.arrange import arrange
from labkit.kernels.elementwise import ElementwiseOp
from labkit.kernels.nest import run_nest
from labkit.loops import LoopNest
from labkit.memory.ledger import Traffic
from labkit.memory.scratchpad import Scratchpad
from labkit.ops.compute import Args
from labkit.ops.compute import conv as reference_conv
from labkit.problems import ConvShape, Problem, conv, im2col, matmul
from labkit.transfers import by_phase, runs_by_operand

MOST_STEPS = 800
Arrays = dict[str, np.ndarray]
ONES = np.ones((4, 4), np.float32)
RELU = ElementwiseOp("relu", "y", lambda x: np.maximum(x, 0))


@st.composite
def matmuls(draw: st.DrawFn) -> tuple[Problem, Arrays, np.ndarray]:
    """A product of whole numbers, small enough for exact sums in every type: any order gives the same bits."""
    m, n, k = (draw(st.integers(1, 40)) for _ in range(3))
    problem = matmul(m, n, k, draw(st.sampled_from(["float32", "float16", "int8"])))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = {x.name: rng.integers(-8, 9, x.shape).astype(x.dtype) for x in problem.inputs}
    sums = problem.output.dtype
    return problem, arrays, arrays["A"].astype(sums) @ arrays["B"].astype(sums)


@st.composite
def convs(draw: st.DrawFn) -> tuple[Problem, Arrays, np.ndarray]:
    small, tiny = st.integers(1, 3), st.integers(1, 2)
    kernel, strides, dilations = (draw(st.tuples(x, x)) for x in (st.integers(1, 4), small, tiny))
    pads = tuple(draw(st.integers(0, 2)) for _ in range(4))
    h, w = (draw(st.integers(1, 9)) for _ in range(2))
    for side, (size, before, after) in enumerate(((h, pads[0], pads[2]), (w, pads[1], pads[3]))):
        assume(size + before + after > (kernel[side] - 1) * dilations[side])
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    depthwise = draw(st.booleans()) and groups > 1
    layout = draw(st.sampled_from(["NCHW", "NHWC", "NCHW2c"]))
    block = 2 if layout == "NCHW2c" else 1
    c, filters = (groups * block * (1 if depthwise else draw(small)) for _ in range(2))
    shape = ConvShape(draw(tiny), c, h, w, filters, kernel, strides, dilations, pads, groups)
    problem = conv(shape, layout, draw(st.sampled_from(["float32", "float16", "int8"])))
    return (problem, *whole_numbers(shape, layout, problem, draw(st.integers(0, 99))))


def whole_numbers(shape: ConvShape, layout: str, problem: Problem, seed: int) -> tuple[Arrays, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.integers(-8, 9, (shape.n, shape.c, shape.h, shape.w))
    w = rng.integers(-8, 9, (shape.filters, shape.c // shape.groups, *shape.kernel))
    attrs = {"strides": shape.strides, "dilations": shape.dilations, "pads": shape.pads, "group": shape.groups}
    (y,) = reference_conv(Args(attrs, (x, w), 17, 1))
    image, weights = problem.inputs
    arrays = {
        "X": arrange(x.astype(image.dtype), layout, shape.groups),
        "W": w.astype(weights.dtype).reshape(weights.shape),
    }
    return arrays, arrange(y.astype(problem.output.dtype), layout, shape.groups)


@st.composite
def nests(draw: st.DrawFn, problem: Problem) -> LoopNest:
    """Any tile (cut again only where a run would take too long), any order, any policy, buffers and halo."""
    tile = [draw(st.integers(1, extent + 1)) for extent in problem.loops.values()]
    while prod(-(-extent // size) for extent, size in zip(problem.loops.values(), tile, strict=True)) > MOST_STEPS:
        tile = [size + 1 for size in tile]
    return LoopNest(
        problem,
        tuple(tile),
        tuple(draw(st.permutations(list(problem.loops)))),
        draw(st.sampled_from(["store", "load_store", "spill"])),
        draw(st.sampled_from(["single", "double", "double_all"])),
        draw(st.sampled_from(["reload", "slide"])),
    )


def check(nest: LoopNest, arrays: Arrays, wanted: np.ndarray) -> None:
    """Run it; every figure of the ledger is the closed form's and every number of the result is the judge's."""
    pad = Scratchpad(nest.working_set_bytes)
    result = run_nest(nest, arrays, pad)
    assert result.dtype == nest.problem.output.dtype
    assert np.array_equal(result, wanted)
    counted = pad.ledger.by("value")
    assert {name: counted.get(name, Traffic()) for name in nest.by_operand} == nest.by_operand
    assert pad.ledger.traffic == nest.traffic
    assert pad.ledger.by("phase") == by_phase(nest)
    runs = {name: pad.ledger.where(lambda line, name=name: line.value == name).runs for name in nest.by_operand}
    assert runs == runs_by_operand(nest)
    assert (pad.resident, pad.launches) == ({}, 1)
    assert pad.high_water_bytes <= nest.working_set_bytes
    first = {loop: range(size) for loop, size in nest.tiles.items()}
    if all(x.tile_bytes(first) == nest.tile_bytes(x) for x in nest.problem.operands):  # the full tiles meet
        assert pad.high_water_bytes == nest.working_set_bytes


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_matmul_counts_what_is_modelled_and_computes_the_product(data) -> None:
    problem, arrays, wanted = data.draw(matmuls())
    check(data.draw(nests(problem)), arrays, wanted)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_conv_counts_what_is_modelled_and_computes_the_convolution(data) -> None:
    problem, arrays, wanted = data.draw(convs())
    check(data.draw(nests(problem)), arrays, wanted)


def test_a_nest_needs_its_working_set_and_not_one_byte_less() -> None:
    nest = LoopNest(matmul(12, 12, 12), (5, 4, 3), ("m", "n", "k"), buffers="double")
    arrays = {"A": np.ones((12, 12), np.float32), "B": np.ones((12, 12), np.float32)}
    run_nest(nest, arrays, Scratchpad(nest.working_set_bytes))
    with pytest.raises(SramOverflow, match="resident: "):
        run_nest(nest, arrays, Scratchpad(nest.working_set_bytes - 1))


def test_rounding_stays_within_higham() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((40, 40)).astype(np.float32) for _ in range(2))
    nest = LoopNest(matmul(40, 40, 40), (7, 9, 3), ("k", "m", "n"))
    error = np.abs(run_nest(nest, {"A": a, "B": b}, Scratchpad("64KiB")) - a.astype(np.float64) @ b)
    assert (error <= 40 * np.finfo(np.float32).eps * (np.abs(a) @ np.abs(b))).all()


@pytest.mark.parametrize("policy", ["load_store", "spill"])
def test_the_output_is_added_to(policy) -> None:
    nest = LoopNest(matmul(4, 4, 4), (2, 2, 2), ("m", "n", "k"), policy)
    a, b, c = np.arange(16.0, dtype=np.float32).reshape(4, 4), np.eye(4, dtype=np.float32), np.ones((4, 4), np.float32)
    assert run_nest(nest, {"A": a, "B": b}, Scratchpad("1KiB"), c) is c
    assert np.array_equal(c, a + 1)


def test_weights_repeat_their_addresses_for_every_output_row() -> None:
    """B17: strides (2, 1) on 5×5, 3×3 kernel: W is read again from the start, never beyond its 9 elements."""
    shape = ConvShape(1, 1, 5, 5, 1, (3, 3), (2, 1))
    problem = conv(shape)
    arrays, wanted = whole_numbers(shape, "NCHW", problem, 0)
    assert wanted.shape[-2:] == (2, 3)
    nest = LoopNest.of(problem).split("p", 1).split("r", 1).reorder("p", "r")
    check(nest, arrays, wanted)
    assert nest.by_operand["W"] == Traffic(2 * 9 * 4, 0, 6, 0)
    assert by_phase(nest)["again"].read_bytes == 9 * 4, "one of the two passes over W is a reload"


def test_what_falls_on_padding_moves_no_bytes() -> None:
    nest = LoopNest.of(conv(ConvShape(1, 1, 2, 2, 1, (3, 3), pads=(4, 4, 4, 4)))).split("p", 1).split("q", 1)
    arrays = {"X": np.ones((1, 1, 1, 2, 2), np.float32), "W": np.ones((1, 1, 1, 3, 3), np.float32)}
    pad = Scratchpad("1KiB")
    result = run_nest(nest, arrays, pad)
    assert np.count_nonzero(result) == 4 * 4
    assert pad.ledger.by("value")["X"] == Traffic(4 * 9 * 4, 0, 16, 0)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_im2col_is_a_window_view_copied(data) -> None:
    h, w = data.draw(st.integers(3, 8)), data.draw(st.integers(3, 8))
    strides, pads = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3))), (1, 0, 2, 1)
    problem = im2col(ConvShape(2, 4, h, w, 4, (3, 2), strides, pads=pads, groups=2))
    x = np.random.default_rng(0).standard_normal((2, 4, h, w)).astype(np.float32)
    x[0, 0, 0, 0] = -0.0
    padded = np.pad(x, [(0, 0), (0, 0), (1, 2), (0, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), axis=(2, 3))[:, :, :: strides[0], :: strides[1]]
    wanted = windows.transpose(1, 4, 5, 0, 2, 3).reshape(problem.output.shape)
    nest = data.draw(nests(problem))
    if nest.c_policy != "store":
        with pytest.raises(LabError, match="adds nothing up: its C policy is store"):
            run_nest(nest, {"X": arrange(x, "NCHW", 2)}, Scratchpad("1MiB"))
        return
    check(nest, {"X": arrange(x, "NCHW", 2)}, wanted)
    result = run_nest(nest, {"X": arrange(x, "NCHW", 2)}, Scratchpad("1MiB"))
    assert np.array_equal(np.signbit(result), np.signbit(wanted)), "a copy keeps -0.0"


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"A": np.ones((4, 5), np.float32)}, {}, r"A is float32 \(4, 5\): wanted float32 \(4, 4\)"),
        ({"B": np.ones((4, 4), np.float64)}, {}, r"B is float64 \(4, 4\): wanted float32"),
        ({}, {"output": np.ones((4, 4), np.float32)}, "store starts the output at zero"),
        ({}, {"output": np.ones((4, 3), np.float32)}, r"C is float32 \(4, 3\)"),
    ],
)
def test_arrays_that_are_not_the_problems_are_refused(arrays: Arrays, options: dict, message: str) -> None:
    pad = Scratchpad("1KiB")
    with pytest.raises(LabError, match=message):
        run_nest(LoopNest.of(matmul(4, 4, 4)), {"A": ONES, "B": ONES, **arrays}, pad, **options)
    assert len(pad.ledger) == 0


@pytest.mark.parametrize(
    ("order", "policy", "message"),
    [
        ("mkn", "store", "in order m,k,n an output tile leaves unfinished and comes 2 times; move k inside"),
        ("mnk", "spill", "C policy spill keeps sums in DRAM; fusion needs store"),
        ("mnk", "load_store", "C policy load_store keeps sums in DRAM"),
    ],
)
def test_ops_on_unfinished_sums_are_refused(order: str, policy, message: str) -> None:
    nest = LoopNest(matmul(4, 4, 4), (2, 2, 2), tuple(order), policy)
    with pytest.raises(LabError, match=f"cannot fuse relu into matmul 4×4×4: {message}"):
        run_nest(nest, {"A": ONES, "B": ONES}, Scratchpad("1KiB"), epilogue=[RELU])


def test_an_op_sees_finished_sums_only_and_each_tile_once() -> None:
    seen = []

    def look(tile: np.ndarray) -> np.ndarray:
        seen.append(tile.copy())
        return -tile

    nest = LoopNest(matmul(4, 6, 8), (2, 3, 2), ("n", "m", "k"))
    a, b = np.ones((4, 8), np.float32), np.ones((8, 6), np.float32)
    result = run_nest(nest, {"A": a, "B": b}, Scratchpad("1KiB"), epilogue=[ElementwiseOp("look", "y", look)])
    assert len(seen) == 4
    assert all((tile == 8).all() for tile in seen)
    assert (result == -8).all()


def test_a_failure_frees_what_was_on_chip() -> None:
    def fail(_: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError

    pad = Scratchpad("1KiB")
    with pytest.raises(ZeroDivisionError):
        run_nest(
            LoopNest.of(matmul(4, 4, 4)),
            {"A": ONES, "B": ONES},
            pad,
            epilogue=[ElementwiseOp("fail", "y", fail)],
        )
    assert pad.resident == {}
