"""Problems: what they compute and touch, held to the loops written out."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.errors import LabError
from labkit.problems import ConvShape, Problem, conv, im2col, matmul, memory_loops, transform

RESNET_CONV = ConvShape(1, 64, 56, 56, 64, (3, 3), pads=(1, 1, 1, 1))


def touched(problem: Problem) -> int:
    """Bytes of all distinct elements that any point of the loops uses: every loop written out."""
    used: set[tuple[str, tuple[int, ...]]] = set()
    for point in product(*map(range, problem.loops.values())):
        at = dict(zip(problem.loops, point, strict=True))
        for x in problem.operands:
            index = tuple(axis.offset + sum(c * at[loop] for loop, c in axis.terms) for axis in x.axes)
            if all(0 <= i < n for i, n in zip(index, x.shape, strict=True)):
                used.add((x.name, index))
    sizes = {x.name: x.itemsize for x in problem.operands}
    return sum(sizes[name] for name, _ in used)


@st.composite
def conv_shapes(draw: st.DrawFn) -> ConvShape:
    small = st.integers(1, 2)
    groups = draw(small)
    pads = tuple(draw(st.integers(0, 2)) for _ in range(4))
    kernel, strides = (draw(st.tuples(st.integers(1, 3), st.integers(1, 3))) for _ in range(2))
    dilations = draw(st.tuples(small, small))
    sides = [draw(st.integers((k - 1) * d + 1, 8)) for k, d in zip(kernel, dilations, strict=True)]
    c, filters = (groups * draw(small) for _ in range(2))
    return ConvShape(draw(small), c, *sides, filters, kernel, strides, dilations, pads, groups)


@settings(max_examples=60, deadline=None)
@given(conv_shapes(), st.sampled_from(["NCHW", "NHWC", "CHWN"]))
def test_compulsory_bytes_are_the_distinct_elements_used(shape: ConvShape, layout: str) -> None:
    assert conv(shape, layout).compulsory_bytes == touched(conv(shape, layout))
    assert (
        im2col(shape, layout).compulsory_bytes <= touched(im2col(shape, layout)) + im2col(shape, layout).output.nbytes
    )


@settings(max_examples=60, deadline=None)
@given(conv_shapes())
def test_output_size_is_what_onnx_infers(shape: ConvShape) -> None:
    import onnx

    text = (
        f"g (float[{shape.n},{shape.c},{shape.h},{shape.w}] x, "
        f"float[{shape.filters},{shape.c // shape.groups},{shape.kernel[0]},{shape.kernel[1]}] w) => (float[] y) {{ "
        f"y = Conv<strides={list(shape.strides)}, pads={list(shape.pads)}, dilations={list(shape.dilations)}, "
        f"group={shape.groups}>(x, w) }}"
    )
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}'.replace("(float[] y)", "(y)"))
    dims = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.output[0].type.tensor_type.shape.dim
    assert tuple(d.dim_value for d in dims) == (shape.n, shape.filters, *shape.output_size)
    assert int(np.prod(conv(shape).output.shape)) == int(np.prod([d.dim_value for d in dims]))


def test_strides_of_rows_and_columns_are_two_numbers() -> None:
    """B17: strides (2, 1) on 5×5 with a 3×3 kernel."""
    assert ConvShape(1, 1, 5, 5, 1, (3, 3), (2, 1)).output_size == (2, 3)
    x, w = conv(ConvShape(1, 1, 5, 5, 1, (3, 3), (2, 1))).inputs
    assert [axis.terms for axis in x.axes[-2:]] == [(("p", 2), ("r", 1)), (("q", 1), ("s", 1))]
    assert w.loops == set("gfcrs"), "weights do not depend on the output position: each repeats the same addresses"


def test_flops_count_a_multiplication_and_an_addition() -> None:
    assert matmul(128, 128, 128).flops == 4_194_304
    assert conv(RESNET_CONV).flops == 2 * 64 * 64 * 9 * 56 * 56
    assert im2col(RESNET_CONV).flops == transform((1, 8, 4, 4), "NCHW", "NHWC").flops == 0


@pytest.mark.parametrize(("dtype", "accumulator"), [("float32", "float32"), ("float16", "float32"), ("int8", "int32")])
def test_sums_have_the_type_of_the_accumulator(dtype: str, accumulator: str) -> None:
    for problem in (matmul(2, 3, 4, dtype), conv(RESNET_CONV, dtype=dtype)):
        assert {x.dtype for x in problem.inputs} == {dtype}
        assert problem.output.dtype == accumulator
    assert im2col(RESNET_CONV, dtype=dtype).output.dtype == dtype, "a copy adds nothing up"


def test_a_blocked_layout_cuts_filters_and_channels_in_two() -> None:
    problem = conv(RESNET_CONV, "NCHW8c")
    assert problem.flops == conv(RESNET_CONV).flops
    assert [x.shape for x in problem.operands] == [
        (1, 1, 8, 56, 56, 8),
        (1, 8, 8, 8, 8, 3, 3),
        (1, 1, 8, 56, 56, 8),
    ]
    assert problem.reductions == ("c", "ci", "r", "s")
    assert memory_loops("NCHW8c", "c") == ("n", "g", "c", "h", "w", "ci")


def test_channels_that_a_block_does_not_divide_name_the_padded_count() -> None:
    with pytest.raises(LabError, match=r"layout NCHW8c: 3 channels .* blocks of 8; pad to 8"):
        conv(ConvShape(1, 3, 8, 8, 16, (3, 3)), "NCHW8c")
    with pytest.raises(LabError, match=r"layout NCHW4c: 10 filters .* blocks of 4; pad to 12"):
        conv(ConvShape(1, 4, 8, 8, 10, (3, 3)), "NCHW4c")
    with pytest.raises(LabError, match=r"4 channels \(of a group\) do not fill blocks of 8"):
        conv(ConvShape(1, 8, 8, 8, 16, (3, 3), groups=2), "NCHW8c")


@pytest.mark.parametrize("layout", ["NCH", "NCHWD", "hwnc", "N4nCHW", "NCHW0c", "8cHWN", "NCHWC", ""])
def test_an_order_that_is_none_of_nchw_is_refused(layout: str) -> None:
    with pytest.raises(LabError):
        conv(RESNET_CONV, layout)


def test_two_blocks_of_different_sizes_need_a_stop_between() -> None:
    with pytest.raises(LabError, match=r"blocks \[4, 8\] differ; go through NCHW"):
        transform((1, 16, 4, 4), "NCHW4c", "NCHW8c")


@pytest.mark.parametrize("size", [0, -1, 2**63, 1.5, True, "8"])
def test_sizes_that_are_no_sizes_are_refused(size) -> None:
    with pytest.raises(LabError, match=r"it must be a whole number from 1 to 9,223,372,036,854,775,807"):
        matmul(4, size, 4)
    with pytest.raises(LabError, match="must be a whole number"):
        ConvShape(1, size, 8, 8, 4, (3, 3))
    with pytest.raises(LabError, match="must be a whole number"):
        ConvShape(1, 4, 8, 8, 4, (3, size))


def test_huge_sizes_do_not_overflow_and_allocate_nothing() -> None:
    problem = matmul(2**62, 2**62, 2**62)
    assert problem.flops == 2 * 2**186
    assert problem.compulsory_bytes == 3 * 4 * 2**124
    big = conv(ConvShape(2**62, 2**62, 8, 8, 2**62, (3, 3)))
    assert big.flops == 2 * 2**186 * 6 * 6 * 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 3}, "3 groups must divide 4 channels and 8 filters"),
        ({"pads": (0, -1, 0, 0)}, "cannot be negative"),
        ({"kernel": (9, 1)}, r"a kernel of \(9, 1\) does not fit an image of 8×8"),
        ({"kernel": (3, 3), "dilations": (4, 1)}, "does not fit"),
    ],
)
def test_a_convolution_that_cannot_be_is_refused(options: dict, message: str) -> None:
    with pytest.raises(LabError, match=message):
        ConvShape(**{"n": 1, "c": 4, "h": 8, "w": 8, "filters": 8, "kernel": (1, 1), **options})


def test_an_unknown_type_lists_the_known_ones() -> None:
    with pytest.raises(LabError, match="there are: float64, float32, float16, int8"):
        matmul(2, 2, 2, "int64")
