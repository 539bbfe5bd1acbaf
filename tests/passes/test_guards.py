"""Guards one by one: what each keeps a rule from doing. `make mutants` removes them in turn and asks these tests."""

from __future__ import annotations

import numpy as np
import pytest

import labkit

RNG = np.random.default_rng(23)


def f(*shape: int) -> np.ndarray:
    return RNG.uniform(0.5, 1.5, shape).astype(np.float32)


def i(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def s(value: float) -> np.ndarray:
    return np.array(value, dtype=np.float32)


def ops(graph):
    return [node.op for node in graph.nodes]


def sources(graph):
    """What each node reads first: no rewrite may lead around what stays."""
    return [node.inputs[0].name for node in graph.nodes if node.inputs[0]]


BN = "BatchNormalization"
PAD = i(0, 0, 1, 1, 0, 0, 1, 1)
# name: (model text, constants, operators left, a guard that refuses or None, opset)
ROWS = {
    # affine
    "times before a conv, read elsewhere": (
        "(float[1, 4, 6, 6] x) => (float[1, 2, 4, 4] y, float[1, 4, 6, 6] z) { m = Mul(x, k) y = Conv(m, w) z = Relu(m) }",
        {"k": f(4, 1, 1), "w": f(2, 4, 3, 3)}, "Mul Conv Relu", "second reader", 17),
    "training before a conv": (
        f"(float[1, 4, 6, 6] x) => (float[1, 2, 4, 4] y) {{ m = {BN} <training_mode: int = 1> (x, k, k, k, k) y = Conv(m, w) }}",
        {"k": f(4), "w": f(2, 4, 3, 3)}, f"{BN} Conv", "training mode", 17),
    "a whole map before a conv": (
        "(float[1, 4, 6, 6] x) => (float[1, 2, 4, 4] y) { m = Mul(x, k) y = Conv(m, w) }",
        {"k": f(4, 6, 6), "w": f(2, 4, 3, 3)}, "Mul Conv", None, 17),
    "an extreme before a conv": (
        "(float[1, 4, 6, 6] x) => (float[1, 2, 4, 4] y) { m = Max(x, k) y = Conv(m, w) }",
        {"k": f(4, 1, 1), "w": f(2, 4, 3, 3)}, "Max Conv", None, 17),
    "a product of integers, by": (
        "(int32[5, 4] x) => (int32[5, 3] y) { m = MatMul(x, w) y = Div(m, k) }",
        {"w": np.arange(12, dtype=np.int32).reshape(4, 3), "k": np.array([2, 3, 4], np.int32)}, "MatMul Div", None, 17),
    "a sum of three behind a conv": (
        "(float[1, 4, 6, 6] x) => (float[1, 4, 4, 4] y) { c = Conv(x, w) y = Sum(c, k, c) }",
        {"k": f(4, 1, 1), "w": f(4, 4, 3, 3)}, "Conv Sum", None, 17),
    "a conv plus itself": (
        "(float[1, 4, 6, 6] x) => (float[1, 4, 4, 4] y) { c = Conv(x, w) y = Add(c, c) }", {"w": f(4, 4, 3, 3)},
        "Conv Add", None, 17),
    "one channel that becomes four": (
        "(float[1, 4, 6, 6] x) => (float[1, 4, 4, 4] y) { c = Conv(x, w) y = Mul(c, k) }",
        {"k": f(4, 1, 1), "w": f(1, 4, 3, 3)}, "Conv Mul", "per channel", 17),
    "a conv times more axes": (
        "(float[1, 4, 6, 6] x) => (float[1, 1, 4, 4, 4] y) { c = Conv(x, w) y = Mul(c, k) }",
        {"k": f(1, 1, 1, 1, 1), "w": f(4, 4, 3, 3)}, "Conv Mul", "per channel", 17),
    "a constant divided by a conv": (
        "(float[1, 4, 6, 6] x) => (float[1, 4, 4, 4] y) { c = Conv(x, w) y = Div(k, c) }",
        {"k": f(4, 1, 1), "w": f(4, 4, 3, 3)}, "Conv Div", None, 17),
    "a product along the last axis, normalised along axis 1": (
        f"(float[2, 4, 4] x) => (float[2, 4, 4] y) {{ m = MatMul(x, w) y = {BN}(m, k, k, k, k) }}",
        {"w": f(4, 4), "k": f(4)}, f"MatMul {BN}", None, 17),
    # weights
    "a constant first in a product, times": (
        "(float[4, 3] x) => (float[5, 3] y) { m = MatMul(w, x) y = Mul(m, k) }", {"w": f(5, 4), "k": f(3)}, "MatMul Mul", None, 17),
    "a stack of weights, times": (
        "(float[5, 4] x) => (float[2, 5, 3] y) { m = MatMul(x, w) y = Mul(m, k) }", {"w": f(2, 4, 3), "k": f(3)},
        "MatMul Mul", None, 17),
    "a vector as weight, times": (
        "(float[5, 4] x) => (float[5] y) { m = MatMul(x, w) y = Mul(m, k) }", {"w": f(4), "k": f(1)}, "MatMul Mul", None, 17),
    "a stack of products and a bias": (
        "(float[2, 5, 4] x) => (float[2, 5, 3] y) { m = MatMul(x, w) y = Add(m, k) }", {"w": f(4, 3), "k": f(3)},
        "MatMul Add", "rank", 17),
    "training, times": (
        f"(float[2, 4, 6] x) => (float[2, 4, 6] y) {{ b = {BN} <training_mode: int = 1> (x, k, k, k, k) y = Mul(b, s) }}",
        {"k": f(4), "s": f(4, 1)}, f"{BN} Mul", "training mode", 17),
    "training before opset 14, times": (
        f"(float[2, 4, 6] x) => (float[2, 4, 6] y) {{ b, p, q, r, t = {BN}(x, k, l, m, v) y = Mul(b, s) }}",
        {"k": f(4), "l": f(4), "m": f(4), "v": f(4), "s": f(4, 1)}, f"{BN} Mul", "training mode", 13),
    "a bias spelled empty, times": (
        '(float[1, 4, 6, 6] x) => (float[1, 4, 4, 4] y) { c = Conv(x, w, "") y = Mul(c, k) }',
        {"k": f(4, 1, 1), "w": f(4, 4, 3, 3)}, "Conv", None, 17),
    "statistics fed, times": (
        f"(float[2, 4, 6] x, float[4] m) => (float[2, 4, 6] y) {{ b = {BN}(x, k, k, m, k) y = Mul(b, s) }}",
        {"k": f(4), "s": f(4, 1)}, BN, None, 17),
    "a scale fed, times": (
        f"(float[2, 4, 6] x, float[4] m) => (float[2, 4, 6] y) {{ b = {BN}(x, m, k, k, k) y = Mul(b, s) }}",
        {"k": f(4), "s": f(4, 1)}, f"{BN} Mul", "constant", 17),
    # pads
    "a zero point that is fed": (
        "(uint8[1, 1, 4, 4] x, uint8 z) => (int32[1, 1, 4, 4] y) { p = Pad(x, t) y = ConvInteger(p, w, z) }",
        {"t": PAD, "w": np.ones((1, 1, 3, 3), np.uint8)}, "Pad ConvInteger", None, 17),
    "a zero point that is padded with": (
        "(uint8[1, 1, 4, 4] x) => (int32[1, 1, 4, 4] y) { p = Pad(x, t, z) y = ConvInteger(p, w, z) }",
        {"t": PAD, "z": np.array(3, np.uint8), "w": np.ones((1, 1, 3, 3), np.uint8)}, "ConvInteger", None, 17),
    "a pad before an average that does not count its own": (
        "(float[1, 1, 4, 4] x) => (float[1, 1, 6, 6] y) "
        "{ p = Pad(x, t) y = AveragePool <kernel_shape: ints = [3, 3], pads: ints = [1, 1, 1, 1]> (p) }",
        {"t": PAD}, "Pad AveragePool", None, 17),
    "a pad before an average that counts its own": (
        "(float[1, 1, 4, 4] x) => (float[1, 1, 6, 6] y) "
        "{ p = Pad(x, t) y = AveragePool <kernel_shape: ints = [3, 3], pads: ints = [1, 1, 1, 1], count_include_pad: int = 1> (p) }",
        {"t": PAD}, "AveragePool", None, 17),
    "a pad before an average that rounds up": (
        "(float[1, 1, 5, 5] x) => (float[1, 1, 4, 4] y) "
        "{ p = Pad(x, t) y = AveragePool <kernel_shape: ints = [2, 2], strides: ints = [2, 2], ceil_mode: int = 1> (p) }",
        {"t": i(0, 0, 1, 1, 0, 0, 1, 1)}, "Pad AveragePool", None, 17),
    "a pad that crops before a conv": (
        "(float[1, 1, 6, 6] x) => (float[1, 2, 2, 4] y) { p = Pad(x, t) y = Conv(p, w) }",
        {"t": i(0, 0, -1, 0, 0, 0, -1, 0), "w": f(2, 1, 3, 3)}, "Pad Conv", "axes", 17),
    "a pad of the batch before a conv": (
        "(float[1, 1, 6, 6] x) => (float[2, 2, 4, 4] y) { p = Pad(x, t) y = Conv(p, w) }",
        {"t": i(0, 0, 0, 0, 1, 0, 0, 0), "w": f(2, 1, 3, 3)}, "Pad Conv", "axes", 17),
    "a pad before a conv that pads by size": (
        '(float[1, 1, 4, 4] x) => (float[1, 2, 3, 3] y) '
        '{ p = Pad(x, t) y = Conv <auto_pad: string = "SAME_UPPER", strides: ints = [2, 2]> (p, w) }',
        {"t": PAD, "w": f(2, 1, 3, 3)}, "Pad Conv", "auto_pad", 17),
    "a pad before a conv that pads nothing": (
        '(float[1, 1, 4, 4] x) => (float[1, 2, 4, 4] y) { p = Pad(x, t) y = Conv <auto_pad: string = "VALID"> (p, w) }',
        {"t": PAD, "w": f(2, 1, 3, 3)}, "Conv", None, 17),
    "a pad as wide as the window": (
        "(float[1, 1, 4, 4] x) => (float[1, 1, 7, 7] y) { p = Pad(x, t) y = AveragePool <kernel_shape: ints = [2, 2]> (p) }",
        {"t": i(0, 0, 2, 2, 0, 0, 2, 2)}, "Pad AveragePool", "kernel", 17),
    "a pad of named axes": (
        "(float[1, 1, 4, 4] x) => (float[1, 2, 2, 4] y) { p = Pad(x, t, , a) y = Conv(p, w) }",
        {"t": i(1, 1), "a": i(-1), "w": f(2, 1, 3, 3)}, "Conv", None, 18),
    "a pad of axes that are fed": (
        "(float[1, 1, 4, 4] x, int64[1] a) => (float[1, 2, 2, 4] y) { p = Pad(x, t, , a) y = Conv(p, w) }",
        {"t": i(1, 1), "a": i(-1), "w": f(2, 1, 3, 3)}, "Pad Conv", "constant", 18),
    "a pad in attributes": (
        "(float[1, 1, 4, 4] x) => (float[1, 2, 4, 4] y) { p = Pad <pads: ints = [0, 0, 1, 1, 0, 0, 1, 1]> (x) y = Conv(p, w) }",
        {"w": f(2, 1, 3, 3)}, "Conv", None, 10),
    "a pad of one in attributes": (
        "(float[1, 1, 4, 4] x) => (float[1, 2, 4, 4] y) "
        "{ p = Pad <pads: ints = [0, 0, 1, 1, 0, 0, 1, 1], value: float = 1.0> (x) y = Conv(p, w) }",
        {"w": f(2, 1, 3, 3)}, "Pad Conv", "value", 10),
    # no-ops
    "a crop to the same size": (
        '(float[1, 1, 4, 4] x) => (float[1, 1, 4, 4] y) { y = Resize '
        '<mode: string = "linear", coordinate_transformation_mode: string = "tf_crop_and_resize"> (x, r, , t) }',
        {"r": np.array([0, 0, 0.5, 0, 1, 1, 1, 1], np.float32), "t": i(1, 1, 4, 4)}, "Resize", None, 17),
    "a pool of one whose places are read": (
        "(float[1, 1, 4, 4] x) => (float[1, 1, 4, 4] y, int64[1, 1, 4, 4] z) { y, z = MaxPool <kernel_shape: ints = [1, 1]> (x) }",
        {}, "MaxPool", None, 17),
    "a pool of one that pads": (
        "(float[1, 1, 4, 4] x) => (float[1, 1, 5, 4] y) "
        "{ y = AveragePool <kernel_shape: ints = [1, 1], pads: ints = [0, 0, 1, 0], count_include_pad: int = 1> (x) }",
        {}, "AveragePool", None, 17),
    "a transposition of unknown rank": ("(float[1, 1, 4] x) => (float[4, 1, 1] y) { y = Transpose(x) }", {}, "Transpose", None, 17),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_guard_keeps_what_has_to_stay_and_says_why(parse, name):
    text, constants, left, guard, opset = ROWS[name]
    graph = parse(f"agraph {text}", opset, **constants)
    report = labkit.optimize(graph)
    assert ops(report.graph) == left.split()
    if ops(graph) == left.split():
        assert sources(report.graph) == sources(graph)
    found = {refusal.guard for refusal in report.refusals}
    assert found == ({guard} if guard else set())
    labkit.verify(graph, report.graph)


@pytest.mark.parametrize(
    "middle",
    [
        "c = Conv(x, w) y = BatchNormalization(c, k, k, k, k)",
        "c = ConvTranspose(x, w) y = BatchNormalization(c, k, k, k, k)",
        "c = BatchNormalization(x, a, a, a, a) y = BatchNormalization(c, k, k, k, k)",
        "r = Reshape(x, t) c = MatMul(r, m) y = BatchNormalization(c, k, k, k, k)",
        "r = Reshape(x, t) c = Gemm(r, m) y = BatchNormalization(c, k, k, k, k)",
        "b = BatchNormalization(x, k, k, k, k) y = Conv(b, w)",
    ],
)
def test_statistics_of_another_size_are_refused_not_run_into(parse, middle):
    """Such a model is not valid; it must not end in an error of NumPy's."""
    graph = parse(
        f'agraph (float[1, 4, 6] x) => (float["p", "q", "r"] y) {{ {middle} }}',
        w=f(4, 4, 1), a=f(4), k=f(3), m=f(4, 4), t=i(-1, 4),
    )  # fmt: skip
    report = labkit.optimize(graph)
    assert ops(report.graph) == ops(graph)
    assert "channels" in {refusal.guard for refusal in report.refusals}


def test_a_gather_of_nothing_along_an_open_axis_is_no_gather_of_all(parse):
    graph = parse(
        'agraph (float["n", 3] x) => (float["m", 3] y) { g = Gather <axis: int = 0> (x, k) y = Neg(g) }',
        k=np.zeros(0, np.int64),
    )
    after = labkit.optimize(graph).graph
    assert ops(after) == ["Gather", "Neg"]
    labkit.verify(graph, after)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a = Clip <min: float = -2.0> (x) y = Clip <min: float = 0.0> (a)", ["Clip"]),
        ("a = Relu(x) y = Clip <min: float = -1.0> (a)", ["Clip"]),
        ("a = Clip <max: float = 3.0> (x) y = Relu(a)", ["Clip"]),
        ("a = Max(x, two) y = Relu(a)", None),
    ],
)
def test_before_opset_11_a_bound_that_is_left_out_cuts_infinity(parse, judge, text, left):
    """The largest float32 is what ONNX takes for it: a Clip of old, open above, is no Relu."""
    graph = parse(f"agraph (float[5] x) => (float[5] y) {{ {text} }}", 10, two=np.full(5, 2, np.float32))
    after = labkit.optimize(graph).graph
    assert left is None or ops(after) == left
    x = np.array([np.inf, -np.inf, 5, -5, np.nan], np.float32)
    expected = judge(graph, {"x": x})[0]
    np.testing.assert_array_equal(judge(after, {"x": x})[0], expected)
    np.testing.assert_array_equal(labkit.run(graph, {"x": x})["y"], expected)
    np.testing.assert_array_equal(labkit.run(after, {"x": x})["y"], expected)
