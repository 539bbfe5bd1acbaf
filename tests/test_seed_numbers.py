"""The numbers of the course text, as corrected by its errata, each one counted or computed here from scratch."""

import numpy as np
import pytest

from labkit.errors import SramOverflow
from labkit.hardware import Hardware
from labkit.kernels.elementwise import ElementwiseOp, run_fused, run_unfused
from labkit.kernels.matmul import naive_matmul, tiled_matmul
from labkit.layout import Layout
from labkit.loops import LoopNest
from labkit.memory.ledger import Traffic
from labkit.memory.scratchpad import Scratchpad
from labkit.problems import matmul
from labkit.roofline import arithmetic_intensity
from labkit.tiling import bound_bytes, largest_square_tile, working_set_bytes

SRAM = 512 * 1024
KIB = 1024


@pytest.fixture(scope="module")
def cube() -> np.ndarray:
    return np.random.default_rng(0).integers(-4, 5, (1024, 1024)).astype(np.float32)


def count(A: np.ndarray, tile: int, policy: str) -> Traffic:
    pad = Scratchpad(SRAM)
    assert np.array_equal(tiled_matmul(A, A, (tile, tile, tile), pad, c_policy=policy), A @ A)
    return pad.ledger.traffic


# ---- layouts


def test_strides_of_2_3_4_4() -> None:
    """Judge: NumPy's strides of the same array in both memory orders."""
    nchw = np.zeros((2, 3, 4, 4), np.float32)
    nhwc = np.zeros((2, 4, 4, 3), np.float32).transpose(0, 3, 1, 2)
    assert Layout.dense((2, 3, 4, 4), "NCHW").strides == (48, 16, 4, 1) == tuple(s // 4 for s in nchw.strides)
    by_axis = dict(zip("NCHW", Layout.dense((2, 3, 4, 4), "NHWC").strides, strict=True))
    assert tuple(by_axis[axis] for axis in "NHWC") == (48, 12, 3, 1)
    assert tuple(by_axis[axis] for axis in "NCHW") == tuple(s // 4 for s in nhwc.strides)


def test_96_elements_are_384_bytes() -> None:
    layout = Layout.dense((2, 3, 4, 4), "NHWC")
    assert layout.size == 96
    assert layout.size * np.dtype(np.float32).itemsize == 384


# ---- tiles in 512 KiB


def test_the_edge_npu_has_512_kib() -> None:
    assert Hardware.preset("edge-npu").sram_bytes == SRAM


def test_largest_square_tiles() -> None:
    assert [largest_square_tile(SRAM, 4, tiles) for tiles in (3, 5, 6)] == [209, 161, 147]


def test_three_and_six_tiles_of_128() -> None:
    assert working_set_bytes((128, 128, 128)) == 196_608
    assert working_set_bytes((128, 128, 128), buffers="double_all") == 393_216 <= SRAM
    assert working_set_bytes((128, 128, 128), buffers="double") == 5 * 65_536 <= SRAM


@pytest.mark.parametrize(("side", "fits"), [(209, True), (210, False)])
def test_209_runs_and_210_overflows(side: int, fits: bool) -> None:
    A = np.ones((side, side), np.float32)
    pad = Scratchpad(SRAM)
    if fits:
        tiled_matmul(A, A, (side, side, side), pad)
        assert pad.high_water_bytes == 3 * 4 * 209**2
    else:
        with pytest.raises(SramOverflow):
            tiled_matmul(A, A, (side, side, side), pad)


def test_256_needs_786_432_bytes_and_overflows(cube: np.ndarray) -> None:
    assert working_set_bytes((256, 256, 256)) == 786_432
    with pytest.raises(SramOverflow, match="C needs 262,144 bytes, 0 of 524,288 are free; resident: A 262,144"):
        tiled_matmul(cube, cube, (256, 256, 256), Scratchpad(SRAM))


# ---- arithmetic intensity


@pytest.mark.parametrize(("side", "intensity"), [(128, 32.0), (16, 4.0)])
def test_intensity_of_one_k_step(side: int, intensity: float) -> None:
    """One k-step counted alone: the reads of a product that is a single tile."""
    pad = Scratchpad(SRAM)
    A = np.ones((side, side), np.float32)
    tiled_matmul(A, A, (side, side, side), pad)
    step = matmul(side, side, side)
    assert arithmetic_intensity(step.flops, pad.ledger.traffic.read_bytes) == intensity
    if side == 128:
        assert (step.flops, pad.ledger.traffic.read_bytes) == (4_194_304, 131_072)


@pytest.mark.parametrize(("policy", "intensity"), [("store", 30.12), ("load_store", 28.44), ("spill", 16.0)])
def test_intensity_of_the_whole_product_by_counting(cube: np.ndarray, policy: str, intensity: float) -> None:
    traffic = count(cube, 128, policy)
    assert round(arithmetic_intensity(matmul(1024, 1024, 1024).flops, traffic.nbytes), 2) == intensity
    assert traffic == LoopNest(matmul(1024, 1024, 1024), (128, 128, 128), tuple("mnk"), policy).traffic
    if policy == "store":
        assert (traffic.read_bytes, traffic.write_bytes) == (67_108_864, 4_194_304)


def test_the_naive_product_stands_at_a_quarter_and_at_an_eighth(cube: np.ndarray) -> None:
    A = cube[:48, :48]
    register, memory = Scratchpad(SRAM), Scratchpad(SRAM)
    naive_matmul(A, A, register)
    naive_matmul(A, A, memory, "memory")
    flops = matmul(48, 48, 48).flops
    assert arithmetic_intensity(flops, register.ledger.traffic.read_bytes) == 0.25
    assert round(arithmetic_intensity(flops, register.ledger.traffic.nbytes), 2) == 0.25  # with C written once
    assert arithmetic_intensity(flops, memory.ledger.traffic.nbytes) == 0.125


def test_an_elementwise_add_stands_at_a_twelfth() -> None:
    x = np.ones((8, 512), np.float32)
    pad = Scratchpad(SRAM)
    run_fused(x, [ElementwiseOp("add", "y", np.add, {"b": x})], pad)
    assert arithmetic_intensity(x.size, pad.ledger.traffic.nbytes) == 1 / 12


# ---- tiles against the bound (errata 3.2-3.3)


def test_a_342_tile_with_k_step_1_moves_28_mib_against_a_bound_of_21_6(cube: np.ndarray) -> None:
    pad = Scratchpad(SRAM)
    tiled_matmul(cube, cube, (342, 342, 1), pad)
    problem = matmul(1024, 1024, 1024)
    assert pad.ledger.traffic.nbytes == 29_360_128 == 28 * KIB**2
    assert round(problem.flops / pad.ledger.traffic.nbytes, 1) == 73.1
    assert round(bound_bytes(problem, SRAM) / KIB**2, 1) == 21.6
    assert problem.compulsory_bytes == 12 * KIB**2
    assert count(cube, 128, "store").nbytes == 68 * KIB**2


# ---- fusion


def test_fusing_conv_bn_relu_saves_3136_kib() -> None:
    """A depthwise 1×1 convolution, BatchNormalization and Relu over 1×64×56×56, rows being channels.

    The two results between the three kernels are 784 KiB each; each is written once and read once unless fused.
    """
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 56 * 56)).astype(np.float32)
    weight, scale, shift = rng.standard_normal((3, 64, 1)).astype(np.float32)
    ops = [
        ElementwiseOp("conv", "conv_out", np.multiply, {"weight": weight}),
        ElementwiseOp("bn", "bn_out", lambda t, s, b: t * s + b, {"scale": scale, "shift": shift}),
        ElementwiseOp("relu", "y", lambda t: np.maximum(t, 0)),
    ]
    unfused, fused = Scratchpad(SRAM), Scratchpad(SRAM)
    assert np.array_equal(run_unfused(x, ops, unfused), run_fused(x, ops, fused))
    between = {name: unfused.ledger.by("value")[name] for name in ("conv_out", "bn_out")}
    assert x.nbytes == 802_816 == 784 * KIB
    assert all((t.read_bytes, t.write_bytes) == (802_816, 802_816) for t in between.values())
    saved = unfused.ledger.traffic - fused.ledger.traffic
    assert saved.nbytes == sum(t.nbytes for t in between.values()) == 3_211_264 == 3_136 * KIB
    assert (unfused.launches, fused.launches) == (3, 1)
