"""Convolutions on the scratchpad: onnxruntime and labkit.ops judge the values, the closed form the bytes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.errors import LabError, SramOverflow
from labkit.kernels.arrange import arrange, restore
from labkit.kernels.conv import blow_up, conv2d, conv_nest, conv_shape, im2col_conv2d
from labkit.kernels.fused import relu
from labkit.layout import Layout
from labkit.memory.ledger import Traffic
from labkit.memory.scratchpad import Scratchpad
from labkit.ops.compute import Args
from labkit.ops.compute import conv as reference_conv
from labkit.problems import ConvShape
from labkit.tensor import StridedTensor

RESNET = ConvShape(1, 64, 56, 56, 64, (3, 3), pads=(1, 1, 1, 1))


def whole(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Small whole numbers: their sums are exact in any order."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, dict]:
    small, tiny = st.integers(1, 3), st.integers(1, 2)
    groups = draw(tiny)
    kernel, strides = draw(st.tuples(small, small)), draw(st.tuples(small, small))
    dilations, pads = draw(st.tuples(tiny, tiny)), tuple(draw(st.integers(0, 2)) for _ in range(4))
    sides = [draw(st.integers((k - 1) * d + 1, 9)) for k, d in zip(kernel, dilations, strict=True)]
    c, filters = 4 * groups, 4 * groups * draw(tiny)
    options = {"strides": strides, "pads": pads, "dilations": dilations, "groups": groups}
    return whole((draw(tiny), c, *sides)), whole((filters, c // groups, *kernel), 1), options


def by_reference(x: np.ndarray, w: np.ndarray, options: dict, bias: np.ndarray | None = None) -> np.ndarray:
    attrs = {**{key: options[key] for key in ("strides", "pads", "dilations")}, "group": options["groups"]}
    (y,) = reference_conv(Args(attrs, (x, w, bias), 17, 1))
    return y


@settings(max_examples=120, deadline=None)
@given(cases(), st.sampled_from(["NCHW", "NHWC", "NCHW4c", "NCHW2c", "CHWN"]), st.booleans(), st.integers(1, 5))
def test_conv2d_in_every_layout_is_the_convolution(case, layout: str, with_bias: bool, rows: int) -> None:
    x, w, options = case
    bias = whole((len(w),), 2) if with_bias else None
    pad = Scratchpad("1MiB")
    y = conv2d(x, w, pad, bias, layout=layout, tile={"p": rows, "f": 1}, order=("p", "f"), **options)
    assert np.array_equal(y, by_reference(x, w, options, bias))
    nest = conv_nest(conv_shape(x, w, **options), layout, tile={"p": rows, "f": 1}, order=("p", "f"))
    lines = pad.ledger.where(lambda line: line.value != "bias")
    assert lines.traffic == nest.traffic, "laying tensors out in DRAM costs nothing (B19: as the docstring says)"
    assert pad.launches == 1


@pytest.mark.parametrize("groups", [1, 4])
def test_onnxruntime_agrees(parse, judge, groups: int) -> None:
    x, w = whole((2, 4, 9, 8)), whole((8, 4 // groups, 3, 2), 1)
    graph = parse(
        f"g (float[2,4,9,8] x, float[8,{4 // groups},3,2] w) => (y) {{"
        f"y = Conv<strides=[2,1], pads=[1,0,2,1], dilations=[1,2], group={groups}>(x, w) }}".replace(
            "(y)", "(float[a,b,c,d] y)"
        )
    )
    (wanted,) = judge(graph, {"x": x, "w": w})
    options = {"strides": (2, 1), "pads": (1, 0, 2, 1), "dilations": (1, 2), "groups": groups}
    assert np.array_equal(conv2d(x, w, Scratchpad("64KiB"), **options), wanted)
    assert np.array_equal(im2col_conv2d(x, w, Scratchpad("64KiB"), **options), wanted)


@settings(max_examples=80, deadline=None)
@given(cases(), st.integers(1, 4), st.integers(1, 6), st.sampled_from(["NCHW", "NHWC", "NCHW2c"]))
def test_im2col_is_the_convolution_and_its_blow_up_is_counted(case, rows: int, size: int, layout: str) -> None:
    x, w, options = case
    shape, pad = conv_shape(x, w, **options), Scratchpad("1MiB")
    tile, groups = (size, 4 * size, 2 * size), options["groups"]
    y = im2col_conv2d(x, w, pad, layout=layout, expand_tile={"p": rows}, tile=tile, **options)
    assert np.array_equal(y, by_reference(x, w, options))
    (p, q), (r, s) = shape.output_size, shape.kernel
    columns = shape.c * r * s * shape.n * p * q * 4
    counted = pad.ledger.by("value")
    assert counted["columns"].write_bytes == columns
    trips = [-(-n // t) for n, t in zip((shape.filters // groups, shape.n * p * q, w[0].size), tile, strict=True)]
    passes = trips[0] if max(trips[1:]) > 1 else 1  # a matrix that is one tile stays on chip
    assert counted["columns"].read_bytes == passes * columns
    assert blow_up(shape) == columns / x.nbytes
    assert pad.launches == 1 + groups


def test_a_3_by_3_convolution_blows_up_nine_times_and_a_stride_divides() -> None:
    assert blow_up(RESNET) == 9.0
    assert blow_up(ConvShape(1, 64, 56, 56, 64, (3, 3), (2, 2), pads=(1, 1, 1, 1))) == 9 / 4
    assert blow_up(ConvShape(1, 64, 56, 56, 64, (1, 1))) == 1.0


def test_direct_moves_less_than_im2col() -> None:
    x, w = whole((1, 8, 14, 14)), whole((8, 8, 3, 3), 1)
    direct, through = Scratchpad("16KiB"), Scratchpad("16KiB")
    same = {"pads": (1, 1, 1, 1)}
    y = conv2d(x, w, direct, tile={"p": 4}, **same)
    assert np.array_equal(y, im2col_conv2d(x, w, through, tile=(8, 28, 72), expand_tile={"c": 1, "p": 4}, **same))
    moved = [pad.ledger.traffic.nbytes for pad in (direct, through)]
    assert moved[1] > 2 * 9 * x.nbytes > 2 * moved[0]


def test_integers_add_up_in_32_bits() -> None:
    x, w = np.full((1, 16, 6, 6), 127, np.int8), np.full((4, 16, 3, 3), -128, np.int8)
    y = conv2d(x, w, Scratchpad("64KiB"))
    assert (y.dtype, y.min()) == (np.int32, -128 * 127 * 144)


@pytest.mark.parametrize("order", ["NCHW", "NHWC", "NCHW4c", "CHWN"])
def test_arrange_lies_as_a_layout_says(order: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 8, 3, 5)).astype(np.float32)
    memory = arrange(x, order)
    assert np.array_equal(memory.ravel(), StridedTensor.from_array(x).to(order).storage)
    assert memory.flags["C_CONTIGUOUS"]
    assert Layout.dense(x.shape, order).order == order
    assert np.array_equal(restore(memory, order), x)
    assert np.array_equal(restore(arrange(x, order, 2), order), x)
    assert np.array_equal(arrange(x, order, 2).ravel(), memory.ravel()), "groups are part of C, not another order"


@pytest.mark.parametrize(
    ("x", "w", "options", "message"),
    [
        (whole((1, 4, 5, 5)), whole((2, 3, 3, 3)), {}, "channels must agree"),
        (whole((4, 5, 5)), whole((2, 4, 3, 3)), {}, "channels must agree"),
        (whole((1, 4, 5, 5)).astype(np.float16), whole((2, 4, 3, 3)), {}, "conv of float16 and float32"),
        (whole((1, 4, 5, 5)), whole((2, 4, 3, 3)), {"bias": whole((3,))}, r"bias has shape \(3,\), wanted \(2,\)"),
        (whole((1, 4, 5, 5)), whole((2, 4, 3, 3)), {"layout": "NCHW8c"}, "pad to 8"),
        (whole((1, 4, 5, 5)), whole((2, 4, 3, 3)), {"tile": {"z": 1}}, "no loop 'z'"),
        (whole((1, 4, 5, 5)), whole((2, 4, 3, 3)), {"tile": {"p": 0}}, "p is 0"),
        (
            whole((1, 4, 5, 5)),
            whole((2, 4, 3, 3)),
            {"tile": {"c": 1, "q": 1}, "order": ("c", "q"), "ops": [relu()]},
            "leaves unfinished",
        ),
    ],
)
def test_bad_input_is_named(x: np.ndarray, w: np.ndarray, options: dict, message: str) -> None:
    pad = Scratchpad("64KiB")
    with pytest.raises(LabError, match=message):
        conv2d(x, w, pad, **options)
    assert pad.ledger.traffic == Traffic()


def test_what_does_not_fit_overflows() -> None:
    with pytest.raises(SramOverflow, match="X 1,024 bytes"):
        conv2d(whole((1, 4, 8, 8)), whole((4, 4, 3, 3)), Scratchpad(1500))
