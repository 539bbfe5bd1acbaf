import numpy as np
import pytest

import labkit
from labkit.errors import GraphError

RNG = np.random.default_rng(3)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


BATCH_NORM = """agraph (float[2, 3, 4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2, 3, 4] y) {
    y = BatchNormalization <epsilon: float = 0.01> (x, s, b, m, v) }"""


@pytest.mark.parametrize("opset", [7, 9, 14, 15, 17])
def test_batch_normalization_at_inference_uses_the_stored_statistics_at_every_opset(parse, judge, opset):
    feeds = {"x": normal(2, 3, 4), "s": normal(3), "b": normal(3), "m": normal(3), "v": np.abs(normal(3)) + 0.5}
    graph = parse(BATCH_NORM, opset=opset)
    # Both sides round in float32: a few units in the last place of values around 1.
    np.testing.assert_allclose(labkit.run(graph, feeds)["y"], judge(graph, feeds)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("opset", "axis"), [(11, 1), (11, 0), (11, 2), (12, -1), (13, 1), (13, -1), (17, 0)])
def test_softmax_follows_the_files_opset(parse, judge, opset, axis):
    feeds = {"x": normal(2, 3, 4)}
    graph = parse(f"agraph (float[2, 3, 4] x) => (float[2, 3, 4] y) {{ y = Softmax <axis: int = {axis}> (x) }}", opset)
    np.testing.assert_allclose(labkit.run(graph, feeds)["y"], judge(graph, feeds)[0], rtol=1e-6)


@pytest.mark.parametrize("opset", [7, 10, 12, 13, 17])
def test_dropout_at_inference_passes_on_and_its_mask_is_onnxruntimes(parse, judge, opset):
    mask = "bool" if opset >= 10 else "float"
    text = f"agraph (float[2, 3] x) => (float[2, 3] y, {mask}[2, 3] k) {{ y, k = Dropout(x) }}"
    graph = parse(text, opset)
    feeds = {"x": normal(2, 3)}
    for found, expected in zip(labkit.run(graph, feeds).values(), judge(graph, feeds), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize(("size", "stride"), [(7, 1), (8, 2), (9, 3)])
def test_convolution_pads_automatically_like_onnxruntime(parse, judge, auto_pad, size, stride):
    graph = parse(f"""agraph (float[1, 2, {size}, {size}] x, float[4, 1, 3, 3] w) => (float[1, 4, "h", "k"] y) {{
        y = Conv <auto_pad: string = "{auto_pad}", strides: ints = [{stride}, {stride}], group: int = 2> (x, w) }}""")
    feeds = {"x": normal(1, 2, size, size), "w": normal(4, 1, 3, 3)}
    expected = judge(graph, feeds)[0]
    found = labkit.run(graph, feeds)["y"]
    assert found.shape == expected.shape == graph.nodes[0].output.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("include", [0, 1])
def test_pools_with_ceil_mode_count_windows_like_onnxruntime(parse, judge, op, include):
    extra = f", count_include_pad: int = {include}" if op == "AveragePool" else ""
    graph = parse(f"""agraph (float[1, 2, 8, 9] x) => (float[1, 2, "h", "w"] y) {{
        y = {op} <kernel_shape: ints = [3, 3], strides: ints = [2, 2], pads: ints = [1, 1, 1, 1],
                  ceil_mode: int = 1{extra}> (x) }}""")
    feeds = {"x": normal(1, 2, 8, 9)}
    expected = judge(graph, feeds)[0]
    assert graph.nodes[0].output.shape == expected.shape
    # float32 sums of nine numbers near 1, in another order
    np.testing.assert_allclose(labkit.run(graph, feeds)["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min"])
@pytest.mark.parametrize("shapes", [("3",), ("1, 4, 1", "2, 4, 3"), ("3", "2, 1", "4, 1, 1")])
def test_operators_of_many_tensors_broadcast_like_onnxruntime(parse, judge, op, shapes):
    names = "xyz"[: len(shapes)]
    inputs = ", ".join(f"float[{dims}] {name}" for dims, name in zip(shapes, names, strict=True))
    graph = parse(f'agraph ({inputs}) => (float["o"] out) {{ out = {op}({", ".join(names)}) }}')
    feeds = {name: normal(*map(int, dims.split(", "))) for dims, name in zip(shapes, names, strict=True)}
    feeds["x"].flat[0] = np.nan
    expected = judge(graph, feeds)[0]
    assert graph.nodes[0].output.shape == expected.shape
    np.testing.assert_allclose(labkit.run(graph, feeds)["out"], expected, rtol=1e-6)


TRANSPOSED = [
    ((1, 4, 5), (4, 3, 2), ""),
    ((2, 4, 3, 4), (4, 2, 3, 3), "group: int = 2, strides: ints = [2, 1], pads: ints = [1, 0, 0, 1]"),
    (
        (1, 4, 3, 3),
        (4, 1, 2, 2),
        "group: int = 4, dilations: ints = [2, 2], output_padding: ints = [1, 1], strides: ints = [3, 3]",
    ),
    ((1, 2, 3, 3), (2, 2, 3, 3), 'auto_pad: string = "SAME_UPPER", strides: ints = [2, 2]'),
    ((1, 2, 3, 3), (2, 2, 3, 3), 'auto_pad: string = "SAME_LOWER", strides: ints = [2, 2]'),
    ((1, 2, 3, 3), (2, 2, 4, 4), 'auto_pad: string = "VALID", strides: ints = [2, 2]'),
    ((1, 2, 3, 3), (2, 2, 3, 3), "output_shape: ints = [6, 6], strides: ints = [2, 2]"),
    ((2, 2, 1, 1, 1), (2, 1, 1, 1, 1), "group: int = 2"),
    ((1, 2, 2, 3, 2), (2, 3, 2, 2, 2), ""),
]


@pytest.mark.parametrize(("x", "w", "attrs"), TRANSPOSED)
@pytest.mark.parametrize("bias", [False, True])
def test_a_transposed_convolution_is_onnxruntimes(parse, judge, x, w, attrs, bias):
    """(ONNX's own reference raises for some of these and is wrong for others.)"""
    dims = ", ".join(map(str, x))
    out = ", ".join(f'"d{axis}"' for axis in range(len(x)))
    spelled = f"<{attrs}>" if attrs else ""
    text = (
        f"agraph (float[{dims}] x) => (float[{out}] y) {{ y = ConvTranspose {spelled} (x, w{', b' if bias else ''}) }}"
    )
    channels = w[1] * (int(attrs[13]) if attrs.startswith("group") else 1)
    graph = parse(text, w=normal(*w), b=normal(channels))
    feeds = {"x": normal(*x)}
    expected = judge(graph, feeds)[0]
    assert graph.nodes[0].output.shape == expected.shape
    np.testing.assert_allclose(labkit.run(graph, feeds)["y"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(
    ("shape", "attrs"),
    [
        ((2, 3, 9), "kernel_shape: ints = [3], pads: ints = [1, 1], strides: ints = [2]"),
        ((2, 3, 6, 7), "kernel_shape: ints = [3, 2], pads: ints = [1, 0, 1, 1]"),
        ((1, 2, 8, 9), "kernel_shape: ints = [2, 2], dilations: ints = [2, 3], strides: ints = [1, 2]"),
    ],
)
def test_max_pool_says_where_each_maximum_stood_like_onnxruntime(parse, judge, shape, attrs, order):
    dims = ", ".join(map(str, shape))
    attrs = f"{attrs}, storage_order: int = {order}" if len(shape) == 4 else attrs
    text = f'agraph (float[{dims}] x) => (float["a"] y, int64["b"] z) {{ y, z = MaxPool <{attrs}> (x) }}'
    graph = parse(text)
    feeds = {"x": normal(*shape)}
    for one, two in zip(labkit.run(graph, feeds).values(), judge(graph, feeds), strict=True):
        np.testing.assert_array_equal(one, two)
        assert one.dtype == two.dtype


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5), (1, 2, 3, 4, 5)])
def test_global_max_pool_keeps_every_axis(parse, judge, shape):
    dims, out = ", ".join(map(str, shape)), ", ".join(map(str, (*shape[:2], *(1 for _ in shape[2:]))))
    graph = parse(f"agraph (float[{dims}] x) => (float[{out}] y) {{ y = GlobalMaxPool(x) }}")
    feeds = {"x": normal(*shape)}
    np.testing.assert_array_equal(labkit.run(graph, feeds)["y"], judge(graph, feeds)[0])


@pytest.mark.parametrize("opset", [7, 11, 17])
def test_clip_and_pad_take_their_bounds_where_the_opset_keeps_them(parse, judge, opset):
    if opset < 11:
        body = """c = Clip <min: float = -0.5, max: float = 0.5> (x)
                  y = Pad <pads: ints = [0, 1, 0, -1], value: float = 2.0> (c)"""
    else:
        body = """lo = Constant <value = float {-0.5}> () hi = Constant <value = float {0.5}> ()
                  p = Constant <value = int64[4] {0, 1, 0, -1}> () v = Constant <value = float {2.0}> ()
                  c = Clip (x, lo, hi) y = Pad (c, p, v)"""
    graph = parse(f"agraph (float[2, 3] x) => (float[2, 3] y) {{ {body} }}", opset)
    feeds = {"x": normal(2, 3)}
    np.testing.assert_array_equal(labkit.run(graph, feeds)["y"], judge(graph, feeds)[0])


def test_an_operator_without_a_row_runs_through_the_reference(parse):
    graph = parse("agraph (float[2, 3] x) => (float[2, 1] y) { y = ReduceMax <axes: ints = [1]> (x) }")
    x = normal(2, 3)
    np.testing.assert_array_equal(labkit.run(graph, {"x": x})["y"], x.max(axis=1, keepdims=True))


RELU = 'agraph (float["n", 3] x, float["n", 3] z) => (float["n", 3] y) { y = Add(x, z) }'


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"x": normal(2, 3)}, "input 'z' is not fed; it wants float32 n×3"),
        ({"x": normal(2, 3), "z": normal(2, 3), "q": 1}, "no input 'q'; the inputs are 'x', 'z'"),
        ({"x": normal(2, 3).astype(np.float64), "z": normal(2, 3)}, "wants float32, not float64"),
        ({"x": normal(2, 4), "z": normal(2, 3)}, r"wants float32 n×3, not the shape \(2, 4\)"),
        ({"x": normal(2, 3), "z": normal(5, 3)}, r"'z' wants float32 n×3, not the shape \(5, 3\)"),
    ],
)
def test_feeds_that_do_not_fit_are_refused_with_what_would(parse, feeds, message):
    with pytest.raises(GraphError, match=message):
        labkit.run(parse(RELU), feeds)


def test_an_output_may_be_an_input_or_a_constant(parse):
    graph = parse("agraph (float[2] x) => (float[2] x, float[1] c) { c = Constant <value = float[1] {4.0}> () }")
    found = labkit.run(graph, {"x": np.array([1, 2], np.float32)})
    assert (list(found["x"]), list(found["c"])) == ([1, 2], [4])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("axes", [(2, 0), (-1, -3), (1,)])
def test_a_pad_may_name_axes_and_crop_like_onnxruntime(parse, judge, mode, axes):
    pads = [1, -1, 2, 1][: 2 * len(axes)] if mode == "constant" else [1, 0, 2, 1][: 2 * len(axes)]
    graph = parse(
        f'agraph (float[3, 4, 5] x) => (float["p", "q", "r"] y) {{ y = Pad <mode: string = "{mode}"> (x, p, , a) }}',
        opset=18, p=np.array(pads), a=np.array(axes),
    )  # fmt: skip
    feeds = {"x": normal(3, 4, 5)}
    expected = judge(graph, feeds)[0]
    np.testing.assert_array_equal(labkit.run(graph, feeds)["y"], expected)
    assert graph.nodes[0].output.shape == expected.shape


def test_pads_that_do_not_match_the_axes_named_are_refused(parse):
    with pytest.raises(GraphError, match="3 pads for 2 axes"):
        parse(
            'agraph (float[3, 4, 5] x) => (float["p", "q", "r"] y) { y = Pad(x, p, , a) }',
            opset=18, p=np.array([1, 2, 3]), a=np.array([0, 1]),
        )  # fmt: skip


def test_a_node_that_no_output_needs_does_not_run(parse):
    """Not even one that nobody here could run."""
    graph = parse(
        "agraph (float[1, 1, 2, 2] x) => (float[1, 1, 2, 2] y) "
        '{ z = Upsample <mode: string = "linear"> (x, s) y = Neg(x) }',
        9, s=np.float32([1, 1, 2, 2]),
    )  # fmt: skip
    x = normal(1, 1, 2, 2)
    np.testing.assert_array_equal(labkit.run(graph, {"x": x})["y"], -x)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("opset", [7, 8, 9, 10])
@pytest.mark.parametrize("scales", [(1, 1), (2, 2), (3, 2), (1.5, 2.3), (0.5, 0.7), (0.34, 2)])
def test_before_opset_11_images_are_enlarged_as_onnxruntime_does(parse, judge, mode, opset, scales):
    """The reference has no such Upsample before opset 9, and no such Resize at all. Only a Resize makes smaller."""
    if opset < 10 and min(scales) < 1:
        return
    factors = [1.0, 1.0, *map(float, scales)]
    op, constants = ("Resize" if opset == 10 else "Upsample"), {"s": np.array(factors, np.float32)}
    rest = "> (x, s)"
    if opset < 9:
        rest, constants = f", scales: floats = {factors}> (x)", {}
    node = f'{op} <mode: string = "{mode}"{rest}'
    graph = parse(f'agraph (float[2, 2, 5, 7] x) => (float["p", "q", "r", "s"] y) {{ y = {node} }}', opset, **constants)
    x = normal(2, 2, 5, 7)
    np.testing.assert_allclose(labkit.run(graph, {"x": x})["y"], judge(graph, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_what_nobody_implements_is_named_in_one_short_line(parse):
    node = "y = MaxRoiPool <pooled_shape: ints = [2, 2]> (x, r)"
    graph = parse(f"agraph (float[1, 1, 4, 4] x) => (float[1, 1, 2, 2] y) {{ {node} }}", r=np.zeros((1, 5), np.float32))
    with pytest.raises(GraphError, match=r"MaxRoiPool 'y' cannot run: .* does not implement operator 'MaxRoiPool'$"):
        labkit.run(graph, {"x": normal(1, 1, 4, 4)})
