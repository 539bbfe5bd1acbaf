"""Transposes and reshapes on their way: what each rule does, and the guards one by one, each kept from one thing.

Every row says what is left, in order, and from where each node reads; both graphs then run on ordinary and adversarial
inputs by onnxruntime with its own optimisations off.
"""

from __future__ import annotations

import numpy as np
import pytest

import labkit


def f(*shape: int) -> np.ndarray:
    return np.random.default_rng(31).uniform(0.5, 1.5, shape).astype(np.float32)


def i(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def ops(graph) -> list[str]:
    return [node.op for node in graph.nodes]


LAST = "Transpose <perm: ints = [0, 2, 3, 1]>"
FIRST = "Transpose <perm: ints = [0, 3, 1, 2]>"
SWAP = "Transpose <perm: ints = [1, 0]>"
IMAGE = "(float[2, 3, 4, 5] x) =>"
ROW = "(float[1, 3, 1, 5] x) =>"
CONV = {"w": f(4, 3, 1, 3)}
# name: (graph, constants, operators left, opset)
RULES = {
    # Transpose and operators with axes.
    "a sum over channels last": (
        f"{IMAGE} (float[2, 4, 5, 1] y) {{ t = {LAST} (x) s = ReduceSum(t, a) y = Relu(s) }}",
        {"a": i(-1)}, "ReduceSum Relu Transpose", 17),
    "a sum that drops channels last": (
        f"{IMAGE} (float[2, 4, 5] y) {{ t = {LAST} (x) y = ReduceSum <keepdims: int = 0> (t, a) }}",
        {"a": i(3)}, "ReduceSum", 17),
    "a mean over rows and columns, axes as an attribute": (
        f"{IMAGE} (float[2, 3] y) {{ t = {LAST} (x) y = ReduceMean <axes: ints = [1, 2], keepdims: int = 0> (t) }}",
        {}, "ReduceMean", 17),
    "a mean over rows and columns, axes as an input": (
        f"{IMAGE} (float[2, 3] y) {{ t = {LAST} (x) y = ReduceMean <keepdims: int = 0> (t, a) }}",
        {"a": i(1, -2)}, "ReduceMean", 18),
    "a reduction over everything": (
        f"{IMAGE} (float y) {{ t = {LAST} (x) y = ReduceMax <keepdims: int = 0> (t) }}", {}, "ReduceMax", 17),
    "a reduction that leaves axes out of order": (
        f"{IMAGE} (float[3, 2] y) {{ t = Transpose <perm: ints = [1, 0, 3, 2]> (x) r = ReduceMin <axes: ints = [2, 3], keepdims: int = 0> (t) "
        "u = Transpose(r) v = Transpose(u) y = Neg(v) }", {}, "ReduceMin Neg Transpose", 17),
    "a reduction beside another reader": (
        f"{IMAGE} (float[2, 4, 5] y, float[2, 4, 5, 3] z) {{ t = {LAST} (x) y = ReduceL1 <axes: ints = [3], keepdims: int = 0> (t) z = Softmax(t) }}",
        {}, "ReduceL1 Softmax Transpose", 17),
    "the place of the largest channel": (
        f"{IMAGE} (int64[2, 4, 5] y) {{ t = {LAST} (x) y = ArgMax <axis: int = -1, keepdims: int = 0> (t) }}",
        {}, "ArgMax", 17),
    "a softmax over channels last": (
        f"{IMAGE} (float[2, 3, 4, 5] y) {{ t = {LAST} (x) s = Softmax(t) y = {FIRST} (s) }}", {}, "Softmax", 17),
    "a slice of channels last": (
        f"{IMAGE} (float[2, 2, 2, 5] y) {{ t = {LAST} (x) s = Slice(t, a, b, c) y = {FIRST} (s) }}",
        {"a": i(1, 0), "b": i(3, 2), "c": i(1, -1)}, "Slice", 17),
    "a slice that names no axes": (
        f"{IMAGE} (float[2, 3, 2, 5] y) {{ t = {LAST} (x) s = Slice(t, a, b) y = {FIRST} (s) }}",
        {"a": i(0, 1), "b": i(2, 3)}, "Slice", 17),
    "a slice with steps": (
        f"{IMAGE} (float[2, 3, 2, 5] y) {{ t = {LAST} (x) s = Slice(t, a, b, c, d) y = {FIRST} (s) }}",
        {"a": i(-1), "b": i(-9), "c": i(1), "d": i(-2)}, "Slice", 17),
    "a slice by attributes": (
        f"{IMAGE} (float[2, 3, 2, 5] y) {{ t = {LAST} (x) s = Slice <starts: ints = [0, 1], ends: ints = [2, 3]> (t) y = {FIRST} (s) }}",
        {}, "Slice", 9),
    "a slice by attributes and axes": (
        f"{IMAGE} (float[2, 3, 2, 5] y) {{ t = {LAST} (x) s = Slice <starts: ints = [1], ends: ints = [3], axes: ints = [1]> (t) y = {FIRST} (s) }}",
        {}, "Slice", 9),
    "one element beside transposed ones": (
        "(float[3, 4] x, float[1, 1] v) => (float[3, 4] y) { t = Transpose(x) a = Mul(t, v) y = Transpose(a) }",
        {}, "Mul", 17),
    # Reshapes that only move axes of one element.
    "a transposition of such axes behind a reshape": (
        "(float[6, 5] x) => (float[5, 1, 2, 3] y) { r = Reshape(x, s) t = Transpose <perm: ints = [0, 3, 1, 2]> (r) y = Neg(t) }",
        {"s": i(5, 2, 3, 1)}, "Neg Reshape", 17),
    "a transposition of such axes before a reshape": (
        "(float[6, 1, 5] x) => (float[10, 3] y) { t = Transpose <perm: ints = [1, 0, 2]> (x) y = Reshape(t, s) }",
        {"s": i(10, 3)}, "Reshape", 17),
    "a squeeze and an unsqueeze behind a transposition": (
        f"{ROW} (float[1, 5, 3, 1] y) {{ t = {LAST} (x) s = Squeeze(t, a) y = Unsqueeze(s, b) }}",
        {"a": i(1), "b": i(-1)}, "Transpose", 17),
    "a squeeze behind a transposition": (
        f"{ROW} (float[1, 5, 3] y) {{ t = {LAST} (x) y = Squeeze(t, a) }}", {"a": i(1)}, "Reshape Transpose", 17),
    "a squeeze in front of a transposition": (
        "(float[1, 3, 1, 5] x) => (float[1, 5, 3, 1] y) { s = Squeeze(x, a) t = Transpose <perm: ints = [0, 2, 1]> (s) y = Unsqueeze(t, b) }",
        {"a": i(2), "b": i(-1)}, "Transpose", 17),
    "a reshape and a transposition": (
        "(float[1, 3, 5] x) => (float[5, 3, 1] y) { r = Reshape(x, s) y = Transpose <perm: ints = [1, 0, 2]> (r) }",
        {"s": i(3, 5, 1)}, "Transpose", 17),
    "a sum over no axes": (
        f"{IMAGE} (float[2, 4, 5, 3] y) {{ t = {LAST} (x) y = ReduceSum <noop_with_empty_axes: int = 1> (t) }}",
        {}, "Transpose", 17),
    "an empty constant beside an empty tensor": (
        "(float[0, 1] x) => (float[1, 0] y) { r = Reshape <allowzero: int = 1> (x, s) y = Sub(r, k) }",
        {"s": i(1, 0), "k": np.empty(0, np.float32)}, "Sub Reshape", 17),
    "squeezed around a sigmoid": (
        f"{ROW} (float[1, 3, 1, 5] y) {{ s = Squeeze(x, a) e = Sigmoid(s) y = Unsqueeze(e, a) }}", {"a": i(2)}, "Sigmoid", 17),
    "flattened around a clip": (
        f"{IMAGE} (float[2, 3, 4, 5] y) {{ s = Flatten(x) e = Clip(s, l) y = Reshape(e, t) }}",
        {"l": np.float32(0.1), "t": i(2, 3, 4, 5)}, "Clip", 17),
    "a conv of rows with its bias behind a squeeze": (
        f"{ROW} (float[1, 4, 1, 3] y) {{ c = Conv(x, w) s = Squeeze(c, a) b = Add(s, k) r = Relu(b) y = Unsqueeze(r, a) }}",
        {**CONV, "a": i(2), "k": f(4, 1)}, "Conv Relu", 17),
    "a conv of rows with its bias behind a transposition and a squeeze": (
        f"{ROW} (float[1, 4, 1, 3] y) {{ c = Conv(x, w) t = {LAST} (c) s = Squeeze(t, a) b = Add(s, k) r = Relu(b) u = Unsqueeze(r, a) y = {FIRST} (u) }}",
        {**CONV, "a": i(1), "k": f(4)}, "Conv Relu", 17),
    "two squeezed alike": (
        "(float[1, 3] x, float[1, 3] v) => (float[1, 3] y) { s = Squeeze(x, a) t = Squeeze(v, a) b = Sub(s, t) y = Unsqueeze(b, a) }",
        {"a": i(0)}, "Sub", 17),
    "a scalar beside what is reshaped": (
        "(float[6, 2] x) => (float[6, 2] y) { s = Reshape(x, a) b = Mul(k, s) y = Reshape(b, c) }",
        {"a": i(3, 4), "c": i(6, 2), "k": np.float32(3)}, "Mul", 17),
    # Pads.
    "a transposition there and back around a pad": (
        f"{IMAGE} (float[2, 3, 5, 7] y) {{ t = {LAST} (x) p = Pad(t, s) y = {FIRST} (p) }}",
        {"s": i(0, 1, 2, 0, 0, 0, 0, 0)}, "Pad", 17),
    "channels last around a pad in front of a conv": (
        f"{ROW} (float[1, 4, 2, 6] y) {{ t = {LAST} (x) p = Pad(t, s) u = {FIRST} (p) y = Conv(u, w) }}",
        {**CONV, "s": i(0, 1, 2, 0, 0, 0, 1, 0)}, "Conv", 17),
    "a pad in front of an unsqueeze and a conv": (
        "(float[1, 3, 5] x) => (float[1, 4, 1, 6] y) { p = Pad(x, s) u = Unsqueeze(p, a) y = Conv(u, w) }",
        {**CONV, "a": i(2), "s": i(0, 0, 2, 0, 0, 1)}, "Reshape Conv", 17),
    "squeezed around a pad in front of a conv, pads as an attribute": (
        f"{ROW} (float[1, 4, 1, 6] y) {{ q = Squeeze <axes: ints = [2]> (x) p = Pad <pads: ints = [0, 0, 2, 0, 0, 1]> (q) "
        "u = Unsqueeze <axes: ints = [2]> (p) y = Conv(u, w) }", CONV, "Conv", 9),
    "squeezed around a pad by reflection": (
        f'{ROW} (float[1, 3, 1, 8] y) {{ q = Squeeze(x, a) p = Pad <mode: string = "reflect"> (q, s) y = Unsqueeze(p, a) }}',
        {"a": i(2), "s": i(0, 0, 2, 0, 0, 1)}, "Pad", 17),
    "squeezed around a pad by ones along named axes": (
        f"{ROW} (float[1, 3, 1, 8] y) {{ q = Squeeze(x, a) p = Pad(q, s, k, c) y = Unsqueeze(p, a) }}",
        {"a": i(2), "s": i(2, 1), "k": np.float32(1), "c": i(-1)}, "Pad", 18),
    "a pad that makes one element three": (
        "(float[1, 5, 1] x) => (float[1, 1, 5, 3] y) { p = Pad(x, s) y = Unsqueeze(p, a) }",
        {"a": i(0), "s": i(0, 0, 1, 0, 0, 1)}, "Reshape Pad", 17),
    "a pad of zero between a relu and a max pool": (
        "(float[1, 1, 4, 4] x) => (float[1, 1, 4, 5] y) { r = Relu(x) p = Pad(r, s) y = MaxPool <kernel_shape: ints = [2, 2]> (p) }",
        {"s": i(0, 0, 1, 1, 0, 0, 0, 1)}, "Relu MaxPool", 17),
    "a pad of zero between a sigmoid, moved, and a max pool": (
        "(float[1, 4, 1, 4] x) => (float[1, 1, 4, 5] y) { r = Sigmoid(x) t = Transpose <perm: ints = [0, 2, 1, 3]> (r) p = Pad(t, s) "
        "y = MaxPool <kernel_shape: ints = [2, 2]> (p) }",
        {"s": i(0, 0, 1, 1, 0, 0, 0, 1)}, "Sigmoid Transpose MaxPool", 17),
    "a pad of what a clip lets through": (
        "(float[1, 1, 4, 4] x) => (float[1, 1, 4, 5] y) { r = Clip(x, l) p = Pad(r, s, v) y = MaxPool <kernel_shape: ints = [2, 2]> (p) }",
        {"s": i(0, 0, 1, 1, 0, 0, 0, 1), "l": np.float32(-1), "v": np.float32(-1)}, "Clip MaxPool", 17),
    "a pad that is read elsewhere": (
        "(float[1, 3, 4, 4] x) => (float[1, 4, 4, 4] y, float[1, 3, 4, 6] z) { p = Pad(x, s) y = Conv(p, w) z = Relu(p) }",
        {**CONV, "s": i(0, 0, 0, 1, 0, 0, 0, 1)}, "Pad Conv Relu", 17),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_what_stands_in_the_way_is_passed(parse, name, tmp_path):
    text, constants, left, opset = RULES[name]
    graph = parse(f"agraph {text}", opset, **constants)
    after = labkit.optimize(graph).graph
    assert ops(after) == left.split()
    labkit.verify(graph, after)
    labkit.save(after, tmp_path / "after.onnx")  # ONNX's full check infers every shape again


def test_a_window_reads_what_was_there_before_a_pad_that_others_read(parse):
    text, constants, _, _ = RULES["a pad that is read elsewhere"]
    after = labkit.optimize(parse(f"agraph {text}", **constants)).graph
    pad, conv, relu = after.nodes
    assert [node.inputs[0].name for node in (pad, conv, relu)] == ["x", "x", "p"]


# What has to stay exactly as it is: (graph, constants, opset).
KEPT = {
    "a softmax that flattens": (
        f"{IMAGE} (float[2, 4, 5, 3] y) {{ t = {LAST} (x) y = Softmax <axis: int = 2> (t) }}", {}, 11),
    "a softmax beside another reader": (
        f"{IMAGE} (float[2, 4, 5, 3] y, float[2, 4, 5, 3] z) {{ t = {LAST} (x) y = Softmax(t) z = Hardmax(t) }}", {}, 17),
    "a slice beside another reader": (
        f"{IMAGE} (float[2, 2, 5, 3] y, float[2, 4, 5, 3] z) {{ t = {LAST} (x) y = Slice(t, a, b, c) z = Softmax(t) }}",
        {"a": i(1), "b": i(3), "c": i(-3)}, 17),
    "a slice by attributes beside another reader": (
        f"{IMAGE} (float[2, 2, 5, 3] y, float[2, 4, 5, 3] z) {{ t = {LAST} (x) y = Slice <axes: ints = [1], starts: ints = [1], ends: ints = [3]> (t) z = Softmax(t) }}",
        {}, 9),
    "a slice along axes that come as an input": (
        f"(float[2, 3, 4, 5] x, int64[1] c) => (float[2, 4, 5, 3] y) {{ t = {LAST} (x) y = Slice(t, a, b, c) }}",
        {"a": i(0), "b": i(9)}, 17),
    "a slice of nobody knows how many axes": (
        f'(float[2, 3, 4, 5] x, int64["n"] a, int64["n"] b) => (float["p", "q", "r", "s"] y) {{ t = {LAST} (x) y = Slice(t, a, b) }}',
        {}, 17),
    "a sum that keeps axes, beside another reader": (
        f"{IMAGE} (float[2, 4, 5, 1] y, float[2, 4, 5, 3] z) {{ t = {LAST} (x) y = ReduceSum(t, a) z = Softmax(t) }}",
        {"a": i(3)}, 17),
    "a sum that leaves axes out of order, beside another reader": (
        "(float[3, 4] x) => (float[4, 2] y, float[4, 3, 2] z) { r = Unsqueeze(x, a) u = Expand(r, e) t = Transpose(u) y = ReduceMax <axes: ints = [1], keepdims: int = 0> (t) z = Softmax(t) }",
        {"a": i(0), "e": i(2, 1, 1)}, 17),
    "a sum over axes that come as an input": (
        f'(float[2, 3, 4, 5] x, int64["n"] a) => (float["p", "q", "r", "s"] y) {{ t = {LAST} (x) y = ReduceSum(t, a) }}', {}, 17),
    "one element of a higher rank beside transposed ones": (
        "(float[3, 4] x, float[1, 1, 1] v) => (float[1, 4, 3] y) { t = Transpose(x) y = Mul(t, v) }", {}, 17),
    "a reshape that splits behind a transposition": (
        f"(float[3, 4] x) => (float[2, 2, 3] y) {{ t = {SWAP} (x) y = Reshape(t, s) }}", {"s": i(2, 2, 3)}, 17),
    "a reshape that splits in front of a transposition": (
        "(float[6, 4] x) => (float[4, 3, 2] y) { r = Reshape(x, s) y = Transpose(r) }", {"s": i(2, 3, 4)}, 17),
    "a reshape to the same rank in front of a transposition": (
        f"(float[6, 4] x) => (float[3, 8] y) {{ r = Reshape(x, s) y = {SWAP} (r) }}", {"s": i(8, 3)}, 17),
    "an unsqueeze in front of a transposition": (
        "(float[3, 4] x) => (float[4, 1, 3] y) { r = Unsqueeze(x, a) y = Transpose <perm: ints = [1, 2, 0]> (r) }", {"a": i(2)}, 17),
    "a squeeze behind a transposition that others read": (
        f"{ROW} (float[1, 1, 5, 3] z, float[1, 5, 3, 1] y) {{ t = {LAST} (x) z = Softmax(t) y = Reshape(t, s) }}",
        {"s": i(1, 5, 3, 1)}, 17),
    "a squeeze behind a transposition of open dims": (
        '(float["n", "m", 1] x) => (float["m", "n"] y) { t = Transpose <perm: ints = [1, 0, 2]> (x) y = Squeeze(t, a) }', {"a": i(2)}, 17),
    "a transposition of one, which others read, before a reshape": (
        "(float[6, 1, 5] x) => (float[1, 6, 5] z, float[10, 3] y) { t = Transpose <perm: ints = [1, 0, 2]> (x) z = Softmax(t) y = Reshape(t, s) }",
        {"s": i(10, 3)}, 17),
    "a squeeze that others read before a sigmoid": (
        f"{ROW} (float[1, 3, 5] z, float[1, 3, 5] y) {{ s = Squeeze(x, a) z = Softmax(s) y = Sigmoid(s) }}", {"a": i(2)}, 17),
    "a squeeze that others read before a sum": (
        f"{ROW} (float[1, 3, 5] z, float[1, 3, 5] y) {{ s = Squeeze(x, a) z = Softmax(s) y = Add(s, k) }}", {"a": i(2), "k": f(5)}, 17),
    "a constant that enlarges what is squeezed": (
        f"{ROW} (float[2, 3, 5] y) {{ s = Squeeze(x, a) y = Add(s, k) }}", {"a": i(2), "k": f(2, 1, 1)}, 17),
    "an input beside what is squeezed": (
        "(float[1, 3, 1, 5] x, float[5] v) => (float[1, 3, 5] y) { s = Squeeze(x, a) y = Add(s, v) }", {"a": i(2)}, 17),
    "two squeezed from different shapes": (
        "(float[3, 1] x, float[1, 3] v) => (float[3] y) { s = Squeeze(x, a) t = Squeeze(v, b) y = Sub(s, t) }", {"a": i(1), "b": i(0)}, 17),
    "a constant as large as what is split": (
        "(float[6, 2] x) => (float[3, 4] y) { s = Reshape(x, a) y = Mul(s, k) }", {"a": i(3, 4), "k": f(3, 4)}, 17),
    "a pad of more than a relu may leave, before a max pool": (
        "(float[1, 1, 4, 4] x) => (float[1, 1, 4, 5] y) { r = Relu(x) p = Pad(r, s, v) y = MaxPool <kernel_shape: ints = [2, 2]> (p) }",
        {"s": i(0, 0, 1, 1, 0, 0, 0, 1), "v": np.float32(1)}, 17),
    "a pad of zero between what may be negative and a max pool": (
        "(float[1, 1, 4, 4] x) => (float[1, 1, 4, 5] y) { r = LeakyRelu(x) p = Pad(r, s) y = MaxPool <kernel_shape: ints = [2, 2]> (p) }",
        {"s": i(0, 0, 1, 1, 0, 0, 0, 1)}, 17),
    "a pad of zero behind a clip that a caller bounds": (
        "(float[1, 1, 4, 4] x, float l) => (float[1, 1, 4, 5] y) { r = Clip(x, l) p = Pad(r, s) y = MaxPool <kernel_shape: ints = [2, 2]> (p) }",
        {"s": i(0, 0, 1, 1, 0, 0, 0, 1)}, 17),
    "a pad of zero behind a clip whose bounds cross": (
        "(float[1, 1, 4, 4] x) => (float[1, 1, 4, 5] y) { r = Clip(x, l, h) p = Pad(r, s) y = MaxPool <kernel_shape: ints = [2, 2]> (p) }",
        {"s": i(0, 0, 1, 1, 0, 0, 0, 1), "l": np.float32(1), "h": np.float32(-1)}, 17),
    "a pad by an input before a transposition": (
        f"(float[2, 3, 4, 5] x, int64[8] s) => (float[\"p\", \"q\", \"r\", \"t\"] y) {{ p = Pad(x, s) y = {LAST} (p) }}", {}, 17),
    "a crop before a transposition": (
        f"{IMAGE} (float[2, 3, 5, 3] y) {{ p = Pad(x, s) y = {LAST} (p) }}", {"s": i(0, 0, -1, 0, 0, 0, 0, 0)}, 17),
    "a pad before a transposition, which others read": (
        f"{IMAGE} (float[2, 5, 5, 3] y, float[2, 3, 5, 5] z) {{ p = Pad(x, s) y = {LAST} (p) z = Softmax(p) }}", {"s": i(0, 0, 1, 0, 0, 0, 0, 0)}, 17),
    "a pad beside open dims before an unsqueeze": (
        '(float["n", "m", 4] x) => (float["n", 1, "m", 6] y) { p = Pad(x, s) y = Unsqueeze(p, a) }',
        {"s": i(0, 0, 1, 0, 0, 1), "a": i(1)}, 17),
    "a pad before a reshape that splits": (
        "(float[3, 4] x) => (float[3, 3, 2] y) { p = Pad(x, s) y = Reshape(p, t) }", {"s": i(0, 1, 0, 1), "t": i(3, 3, 2)}, 17),
    "a pad before a squeeze of what it pads": (
        "(float[0, 3] x) => (float[3] y) { p = Pad(x, s) y = Squeeze(p, a) }", {"s": i(1, 0, 0, 0), "a": i(0)}, 17),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_has_to_stay_stays(parse, name):
    text, constants, opset = KEPT[name]
    graph = parse(f"agraph {text}", opset, **constants)
    assert labkit.optimize(graph).graph is graph


def test_a_transposition_of_nothing_but_one_broadcast_element_does_not_sink(parse):
    """It would be read again behind the node, and so sink for ever."""
    graph = parse("agraph (float[1, 1] v) => (float[3, 4] y) { t = Transpose(v) y = Add(t, k) }", k=f(3, 4))
    assert labkit.optimize(graph, passes=["transposes"]).graph is graph


def test_a_sum_over_no_axes_keeps_the_transposition_before_it(parse):
    graph = parse(
        "agraph (float[3, 4] x) => (float[4, 3] y) {"
        " t = Transpose(x) y = ReduceSum <keepdims: int = 0, noop_with_empty_axes: int = 1> (t) }"
    )
    report = labkit.optimize(graph, passes=["transposes"])
    assert report.graph is graph
