"""The rules as a catalogue: for each a graph it solves, and beside it the near miss that it has to leave alone.

Every row is optimised, its operators compared with what should be left, and both graphs are run on ordinary and
adversarial inputs by onnxruntime with its own optimisations off.
"""

from __future__ import annotations

import numpy as np
import pytest

import labkit

RNG = np.random.default_rng(17)


def f(*shape: int) -> np.ndarray:
    return np.asarray(RNG.uniform(0.5, 1.5, shape)).astype(np.float32)


def i(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def n(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


BIG = 2**63 - 1
SWAP = "Transpose <perm: ints = [0, 2, 1]>"
BRANCHES = (
    "then_branch = t () => (float[2, 3, 4] p) { p = Neg(a) }, else_branch = e () => (float[2, 3, 4] r) { r = Exp(a) }"
)
# name: (nodes between Relu and Sigmoid, constants, operators left between them); the input is float[2, 3, 4].
MIDDLES = {
    "slice to the end": ("b = Slice(a, s, e)", {"s": i(0), "e": i(BIG)}, ""),
    "slice beyond the end": ("b = Slice(a, s, e)", {"s": i(0), "e": i(99)}, ""),
    "slice by negative axis and start": ("b = Slice(a, s, e, ax)", {"s": i(-4), "e": i(BIG), "ax": i(-1)}, ""),
    "slice that reverses": ("b = Slice(a, s, e, ax, t)", {"s": i(-1), "e": i(-BIG), "ax": i(1), "t": i(-1)}, "Slice"),
    "slice that cuts": ("b = Slice(a, s, e)", {"s": i(1), "e": i(2)}, "Slice"),
    "slices along two axes": (
        "c = Slice(a, s, e, ax) b = Slice(c, s, e, ay)", {"s": i(1), "e": i(3), "ax": i(1), "ay": i(2)}, "Slice"),
    "slices along one axis": (
        "c = Slice(a, s, e, ax, t) b = Slice(c, t, z, ax)",
        {"s": i(3), "e": i(-BIG), "ax": i(2), "t": i(-1), "z": i(BIG)}, "Slice"),
    "expand to itself": ("b = Expand(a, s)", {"s": i(2, 1, 4)}, ""),
    "expand that enlarges": ("b = Expand(a, s)", {"s": i(5, 1, 1, 1)}, "Expand"),
    "pad by nothing": ("b = Pad(a, s)", {"s": i(0, 0, 0, 0, 0, 0)}, ""),
    "pad that shifts": ("b = Pad(a, s)", {"s": i(0, 1, 0, 0, -1, 0)}, "Pad"),
    "cast to itself": ("b = Cast <to: int = 1> (a)", {}, ""),
    "cast there and back": ("c = Cast <to: int = 11> (a) b = Cast <to: int = 1> (c)", {}, ""),
    "cast through an integer": ("c = Cast <to: int = 6> (a) b = Cast <to: int = 1> (c)", {}, "Cast Cast"),
    "cast through half": ("c = Cast <to: int = 10> (a) b = Cast <to: int = 1> (c)", {}, "Cast Cast"),
    "concat of one": ("b = Concat <axis: int = 1> (a)", {}, ""),
    "sum of one": ("b = Sum(a)", {}, ""),
    "max of one": ("b = Max(a)", {}, ""),
    "split into one": ("b = Split <axis: int = 1> (a, s)", {"s": i(3)}, ""),
    "tile by one": ("b = Tile(a, s)", {"s": i(1, 1, 1)}, ""),
    "tile by two": ("b = Tile(a, s)", {"s": i(1, 2, 1)}, "Tile"),
    "flatten of a matrix": ("c = Reshape(a, s) b = Flatten(c)", {"s": i(6, 4)}, "Reshape"),
    "reshapes there and back": ("c = Reshape(a, s) b = Reshape(c, t)", {"s": i(6, 4), "t": i(2, 3, 4)}, ""),
    "reshapes in a row": ("c = Reshape(a, s) b = Reshape(c, t)", {"s": i(6, 4), "t": i(8, 3)}, "Reshape"),
    "squeeze undone": ("c = Unsqueeze(a, s) b = Squeeze(c, s)", {"s": i(1)}, ""),
    "squeeze of another axis": ("c = Unsqueeze(a, s) b = Reshape(c, t)", {"s": i(1), "t": i(2, 3, 1, 4)}, "Reshape"),
    "times one": ("b = Mul(a, k)", {"k": n(1)}, ""),
    "one times": ("b = Mul(k, a)", {"k": np.ones((3, 1), np.float32)}, ""),
    "by one": ("b = Div(a, k)", {"k": n(1)}, ""),
    "one by": ("b = Div(k, a)", {"k": n(1)}, "Div"),
    "plus zero": ("b = Add(a, k)", {"k": np.zeros((1, 3, 1), np.float32)}, ""),
    "minus zero": ("b = Sub(a, k)", {"k": n(0)}, ""),
    "zero minus": ("b = Sub(k, a)", {"k": n(0)}, "Sub"),
    "to the power of one": ("b = Pow(a, k)", {"k": n(1)}, ""),
    "times one, enlarged": ("b = Mul(a, k)", {"k": np.ones((5, 1, 1, 1), np.float32)}, "Mul"),
    "nearly one": ("b = Mul(a, k)", {"k": n(1, 1, 1, 2)}, "Mul"),
    "times zero": ("b = Mul(a, k)", {"k": n(0)}, "Mul"),
    "plus and minus the same": ("c = Add(a, k) b = Sub(c, k)", {"k": n(1e8)}, "Add Sub"),
    "minus minus": ("c = Neg(a) b = Neg(c)", {}, ""),
    "floor of floor": ("c = Floor(a) b = Floor(c)", {}, "Floor"),
    "relu of relu": ("b = Relu(a)", {}, ""),
    "clips in a row": ("c = Clip(a, l, h) b = Clip(c, m, g)",
                       {"l": np.float32(-1), "h": np.float32(3), "m": np.float32(0.5), "g": np.float32(2)}, "Clip"),
    "clips that exclude each other": ("c = Clip(a, l, h) b = Clip(c, m, g)",
                                      {"l": np.float32(0), "h": np.float32(1), "m": np.float32(2), "g": np.float32(3)}, "Clip"),
    "clip open below": ("b = Clip(a, , h)", {"h": np.float32(2)}, "Clip"),
    "max and min": ("c = Max(a, l) b = Min(c, h)", {"l": n(0.25), "h": n(2)}, "Clip"),
    "max of max": ("c = Max(a, l) b = Max(c, h)", {"l": f(4), "h": f(3, 1)}, "Max"),
    "transposes in a row": (
        "c = Transpose <perm: ints = [1, 2, 0]> (a) b = Transpose <perm: ints = [1, 2, 0]> (c)", {}, "Transpose"),
    "transposes undone": (
        "c = Transpose <perm: ints = [1, 2, 0]> (a) b = Transpose <perm: ints = [2, 0, 1]> (c)", {}, ""),
    "transposes around elementwise work": (
        f"c = {SWAP} (a) d = Mul(c, k) e = Exp(d) b = {SWAP} (e)",
        {"k": f(3)}, "Mul Exp"),
    "transposes around a concat": (
        f"c = {SWAP} (a) d = Concat <axis: int = 1> (c, c) b = {SWAP} (d)",
        {}, "Concat"),
    "split and concat back": ("c, d = Split <axis: int = 2> (a, s) b = Concat <axis: int = -1> (c, d)", {"s": i(1, 3)}, ""),
    "split and concat swapped": (
        "c, d = Split <axis: int = 2> (a, s) b = Concat <axis: int = 2> (d, c)", {"s": i(1, 3)}, "Split Concat"),
    "concat of concat": (
        "c = Concat <axis: int = 1> (a, a) b = Concat <axis: int = 1> (c, a)", {}, "Concat"),
    "reduction and unsqueeze": (
        "c = ReduceMean <axes: ints = [1], keepdims: int = 0> (a) b = Unsqueeze(c, s)", {"s": i(1)}, "ReduceMean"),
    "the same twice": ("c = Exp(a) d = Exp(a) b = Add(c, d)", {}, "Exp Add"),
    "the same with a default written out": (
        "c = LeakyRelu <alpha: float = 0.01> (a) d = LeakyRelu(a) b = Add(c, d)", {}, "LeakyRelu Add"),
    "the same but for an attribute": (
        "c = LeakyRelu <alpha: float = 0.1> (a) d = LeakyRelu(a) b = Add(c, d)", {}, "LeakyRelu LeakyRelu Add"),
    "operands swapped": ("c = Add(a, k) d = Add(k, a) b = Mul(c, d)", {"k": f(4)}, "Add Mul"),
    "operands swapped, order matters": ("c = Sub(a, k) d = Sub(k, a) b = Mul(c, d)", {"k": f(4)}, "Sub Sub Mul"),
    "equal constants": ("c = Add(a, k) d = Add(a, l) b = Mul(c, d)", {"k": n(1, 2, 3, 4), "l": n(1, 2, 3, 4)}, "Add Mul"),
    "zeros of two signs": (
        "c = Div(k, a) d = Div(l, a) b = Mul(c, d)", {"k": n(0), "l": n(-0.0)}, "Div Div Mul"),
    "a fill spread for nothing": (
        "c = ConstantOfShape <value: tensor = float[1] {2.0}> (s) d = Exp(c) b = Mul(a, d)", {"s": i(2, 3, 4)}, "Mul"),
    "an expand spread for nothing": ("c = Expand(k, s) b = Add(a, c)", {"k": f(4), "s": i(2, 3, 4)}, "Add"),
    "an expand that enlarges the result": ("c = Expand(a, s) b = Add(c, k)", {"k": f(4), "s": i(5, 2, 3, 4)}, "Expand Add"),
    "resize by one": ("b = Resize <mode: string = \"linear\"> (a, , t)", {"t": n(1, 1, 1)}, ""),
    "resize by two": ("b = Resize <mode: string = \"nearest\"> (a, , t)", {"t": n(1, 1, 2)}, "Resize"),
    "pools of single elements": ("c = MaxPool <kernel_shape: ints = [1]> (a) b = AveragePool <kernel_shape: ints = [1]> (c)", {}, ""),
    "a pool that skips": ("b = MaxPool <kernel_shape: ints = [1], strides: ints = [2]> (a)", {}, "MaxPool"),
    "shapes of a shape": (
        "s = Shape(a) g = Gather(s, z) u = Unsqueeze(g, o) c = Concat <axis: int = 0> (u, m) b = Reshape(a, c)",
        {"z": np.array(0), "o": i(0), "m": i(-1)}, "Reshape"),
    "an expand to a computed shape": ("s = Shape(a) b = Expand(a, s)", {}, ""),
    "cast like": ("c = Cast <to: int = 7> (a) b = CastLike(c, a)", {}, "Cast Cast"),
    "a decided branch": (
        f"b = If (q) <{BRANCHES}>",
        {"q": np.array(False)}, "Exp"),
}  # fmt: skip


@pytest.mark.parametrize("name", MIDDLES)
def test_between_relu_and_sigmoid_is_left_what_has_to_be(parse, name):
    middle, constants, left = MIDDLES[name]
    graph = parse(
        f'agraph (float[2, 3, 4] x) => (float["p", "q", "r"] y) {{ a = Relu(x) {middle} y = Sigmoid(b) }}', **constants
    )
    after = labkit.optimize(graph).graph
    kinds = sorted(node.op for node in after.nodes)
    around = ["Sigmoid"] if left == "Clip" else ["Relu", "Sigmoid"]  # a Clip takes the Relu in front in
    assert kinds == sorted([*left.split(), *around])
    labkit.verify(graph, after)


# name: (nodes from x to y, constants, operators left); the input is float[1, 4, 6, 6].
IMAGES = {
    "pad into conv": ("p = Pad(x, s) y = Conv(p, w)", {"s": i(0, 0, 1, 2, 0, 0, 0, 1), "w": f(2, 4, 3, 3)}, "Conv"),
    "pad by one into conv": ("p = Pad(x, s, v) y = Conv(p, w)",
                             {"s": i(0, 0, 1, 1, 0, 0, 1, 1), "v": np.float32(1), "w": f(2, 4, 3, 3)}, "Pad Conv"),
    "pad of channels": ("p = Pad(x, s) y = Conv(p, w)", {"s": i(0, 1, 0, 0, 0, 0, 0, 0), "w": f(2, 5, 3, 3)}, "Pad Conv"),
    "pad by reflection": (
        'p = Pad <mode: string = "reflect"> (x, s) y = Conv(p, w)', {"s": i(0, 0, 1, 1, 0, 0, 1, 1), "w": f(2, 4, 3, 3)}, "Pad Conv"),
    "pad of zero into max pool": (
        "p = Pad(x, s) y = MaxPool <kernel_shape: ints = [3, 3]> (p)", {"s": i(0, 0, 1, 1, 0, 0, 1, 1)}, "Pad MaxPool"),
    "pad of minus infinity into max pool": (
        "p = Pad(x, s, v) y = MaxPool <kernel_shape: ints = [3, 3]> (p)",
        {"s": i(0, 0, 1, 1, 0, 0, 1, 1), "v": np.float32(-np.inf)}, "MaxPool"),
    "pad into average pool": (
        "p = Pad(x, s) y = AveragePool <kernel_shape: ints = [3, 3]> (p)", {"s": i(0, 0, 1, 1, 0, 0, 1, 1)}, "AveragePool"),
    "conv, times and plus": ("c = Conv(x, w) m = Mul(c, k) y = Add(m, b)",
                             {"w": f(3, 4, 3, 3), "k": f(3, 1, 1), "b": f(1, 3, 1, 1)}, "Conv"),
    "conv, minus and by": ("c = Conv(x, w, b) m = Sub(k, c) y = Div(m, d)",
                           {"w": f(3, 4, 3, 3), "b": f(3), "k": f(3, 1, 1), "d": n(4)}, "Conv"),
    "conv, times a value a column": ("c = Conv(x, w) y = Mul(c, k)", {"w": f(4, 4, 3, 3), "k": f(4)}, "Conv Mul"),
    "conv, plus a whole map": ("c = Conv(x, w) y = Add(c, k)", {"w": f(3, 4, 3, 3), "k": f(1, 3, 4, 4)}, "Conv Add"),
    "grouped conv, times": ("c = Conv <group: int = 2> (x, w) y = Mul(c, k)", {"w": f(6, 2, 3, 3), "k": f(6, 1, 1)}, "Conv"),
    "grouped transposed conv, times and plus": (
        "c = ConvTranspose <group: int = 2> (x, w) m = Mul(c, k) y = Add(m, k)", {"w": f(4, 3, 2, 2), "k": f(6, 1, 1)}, "ConvTranspose"),
    "square transposed conv, times": ("c = ConvTranspose(x, w) y = Mul(c, k)", {"w": f(4, 4, 2, 2), "k": f(4, 1, 1)}, "ConvTranspose"),
    "times and plus before a conv": ("m = Mul(x, k) a = Add(m, k) y = Conv(a, w)", {"k": f(4, 1, 1), "w": f(2, 4, 3, 3)}, "Conv"),
    "times before a grouped, padded conv": (
        "m = Mul(x, k) y = Conv <group: int = 2, pads: ints = [1, 1, 1, 1]> (m, w)", {"k": f(4, 1, 1), "w": f(6, 2, 3, 3)}, "Conv"),
    "plus before a padded conv": (
        "a = Add(x, k) y = Conv <pads: ints = [1, 1, 1, 1]> (a, w)", {"k": f(4, 1, 1), "w": f(2, 4, 3, 3)}, "Add Conv"),
    "normalise, times and plus": ("b = BatchNormalization(x, k, k, k, k) m = Mul(b, s) y = Add(m, s)",
                                  {"k": f(4), "s": f(4, 1, 1)}, "BatchNormalization"),
    "transposed to channels last and back": (
        "t = Transpose <perm: ints = [0, 2, 3, 1]> (x) r = Relu(t) u = Transpose <perm: ints = [0, 3, 1, 2]> (r) y = Conv(u, w)",
        {"w": f(2, 4, 3, 3)}, "Relu Conv"),
}  # fmt: skip


@pytest.mark.parametrize("name", IMAGES)
def test_of_image_operators_is_left_what_has_to_be(parse, name):
    text, constants, left = IMAGES[name]
    graph = parse(f'agraph (float[1, 4, 6, 6] x) => (float[1, "c", "h", "w"] y) {{ {text} }}', **constants)
    after = labkit.optimize(graph).graph
    assert [node.op for node in after.nodes] == left.split()
    labkit.verify(graph, after)


# The input is float[5, 4].
MATRICES = {
    "product and bias": ("m = MatMul(x, w) y = Add(m, b)", {"w": f(4, 3), "b": f(3)}, "Gemm"),
    "product and bias a row": ("m = MatMul(x, w) y = Add(b, m)", {"w": f(4, 3), "b": f(5, 1)}, "Gemm"),
    "product and bias that enlarges": ("m = MatMul(x, w) y = Add(m, b)", {"w": f(4, 3), "b": f(2, 1, 1)}, "MatMul Add"),
    "gemm, times and plus": (
        "g = Gemm <alpha: float = 0.5, beta: float = 2.0, transB: int = 1> (x, w, b) m = Mul(g, k) y = Sum(m, k)",
        {"w": f(3, 4), "b": f(3), "k": f(3)}, "Gemm"),
    "gemm and normalise": ("g = Gemm(x, w) y = BatchNormalization(g, k, k, k, k)", {"w": f(4, 3), "k": f(3)}, "Gemm"),
    "product, times": ("m = MatMul(x, w) y = Mul(m, k)", {"w": f(4, 3), "k": f(3)}, "MatMul"),
    "transpose into gemm": ("t = Transpose(w) y = Gemm(x, t, b)", {"w": f(3, 4), "b": f(3)}, "Gemm"),
    "transposed product": ("t = Transpose(x) y = Gemm(t, w)", {"w": f(5, 3)}, "Gemm"),
    "a transpose that moves nothing": ("t = Transpose <perm: ints = [0, 1]> (x) y = Gemm(t, w)", {"w": f(4, 3)}, "Gemm"),
    "where not": ("c = Greater(x, k) d = Not(c) y = Where(d, x, k)", {"k": f(4)}, "Greater Where"),
}  # fmt: skip


@pytest.mark.parametrize("name", MATRICES)
def test_of_matrix_operators_is_left_what_has_to_be(parse, name):
    text, constants, left = MATRICES[name]
    graph = parse(f'agraph (float[5, 4] x) => (float["p", "q"] y) {{ {text} }}', **constants)
    after = labkit.optimize(graph).graph
    assert [node.op for node in after.nodes] == left.split()
    labkit.verify(graph, after)


def test_padding_of_minus_infinity_goes_into_a_max_pool_though_judges_differ_over_nan(parse):
    """onnxruntime's MaxPool takes a NaN or leaves it, depending on where in its window it stands; NumPy's takes it."""
    text = "p = Pad(x, s, v) y = MaxPool <kernel_shape: ints = [2, 2]> (p)"
    constants = {"s": i(0, 0, 0, 1, 0, 0, 1, 0), "v": np.float32(-np.inf)}
    graph = parse(f'agraph (float[2, 4, 4, 4] x) => (float[2, 4, "h", "w"] y) {{ {text} }}', **constants)
    after = labkit.optimize(graph).graph
    assert [node.op for node in after.nodes] == ["MaxPool"]
    labkit.verify(graph, after)
