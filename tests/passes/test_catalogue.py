"""The rules as a catalogue: for each a graph it solves, and beside it the near miss that it has to leave alone.

Every row is optimised, its operators compared with what should be left, and both graphs are run on ordinary and
adversarial inputs by onnxruntime with its own optimisations off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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


def read_in(text: str, constants: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Those of the constants that a node of the text reads."""
    return {name: array for name, array in constants.items() if re.search(rf"[(,]\s*{name}\s*[,)]", text)}


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
    "clip without bounds": ("c = Exp(a) b = Clip(c)", {}, "Exp"),
    "clip to infinite bounds": ("c = Exp(a) b = Clip(c, l, h)", {"l": np.float32(-np.inf), "h": np.float32(np.inf)}, "Exp"),
    "clip to one infinite bound": ("c = Neg(a) d = Clip(c, l, h) b = Exp(d)", {"l": np.float32(-np.inf), "h": np.float32(-1)}, "Neg Clip Exp"),
    "the greater of it and minus infinity": ("c = Exp(a) b = Max(c, k)", {"k": n(-np.inf)}, "Exp"),
    "the greater of it and infinity": ("c = Exp(a) b = Max(c, k)", {"k": n(np.inf)}, "Exp Max"),
    "the lesser of it and infinity": ("c = Exp(a) b = Min(k, c)", {"k": np.full(4, np.inf, np.float32)}, "Exp"),
    "the lesser of it, infinity and more": ("c = Exp(a) b = Min(c, k, a)", {"k": n(np.inf)}, "Exp Min"),
    "the sum of it and zero": ("c = Exp(a) b = Sum(k, c)", {"k": n(0)}, "Exp"),
    "the sum of it, zero and more": ("c = Exp(a) b = Sum(c, k, a)", {"k": n(0)}, "Exp Sum"),
    "concat with nothing": ("c = Exp(a) b = Concat <axis: int = 1> (k, c, k)", {"k": f(2, 0, 4)}, "Exp"),
    "concat with nothing, axis from behind": (
        "c = Exp(a) b = Concat <axis: int = -1> (c, k, a)", {"k": f(2, 3, 0)}, "Exp Concat"),
    "expands in a row": ("c = Expand(k, s) d = Expand(c, t) b = Max(a, d)", {"k": f(4), "s": i(3, 4), "t": i(2, 3, 4)}, "Max"),
    "expands that both widen": (
        "r = ReduceMax <axes: ints = [0, 1]> (a) c = Expand(r, s) b = Expand(c, t)", {"s": i(3, 4), "t": i(2, 1, 4)}, "ReduceMax Expand Expand"),
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
        "c = Elu <alpha: float = 1.0> (a) d = Elu(a) b = Add(c, d)", {}, "Elu Add"),
    "the same but for an attribute": (
        "c = Elu <alpha: float = 0.1> (a) d = Elu(a) b = Add(c, d)", {}, "Elu Elu Add"),
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
    "gather of all": ("b = Gather <axis: int = 1> (a, s)", {"s": i(0, 1, 2)}, ""),
    "gather of all by a negative axis": ("b = Gather <axis: int = -1> (a, s)", {"s": i(0, 1, 2, 3)}, ""),
    "gather in another order": ("b = Gather <axis: int = 1> (a, s)", {"s": i(0, 2, 1)}, "Gather"),
    "gather of some": ("b = Gather <axis: int = 1> (a, s)", {"s": i(0, 1)}, "Gather"),
    "where of the same": (
        "c = Greater(a, k) d = Where(c, a, a) e = Cast <to: int = 1> (c) b = Add(d, e)", {"k": f(4)}, "Greater Cast Add"),
    "where decided for the first": ("b = Where(q, a, k)", {"q": np.ones((3, 1), bool), "k": f(4)}, ""),
    "where decided for the second": ("b = Where(q, k, a)", {"q": np.zeros(4, bool), "k": f(4)}, ""),
    "where decided for what is smaller": ("b = Where(q, k, a)", {"q": np.ones(4, bool), "k": f(4)}, "Where"),
    "where that mixes": ("b = Where(q, a, k)", {"q": np.array([True, False, True, True]), "k": f(4)}, "Where"),
    "where by a condition that is not constant": ("c = Greater(a, k) b = Where(c, a, k)", {"k": f(4)}, "Greater Where"),
    "a mean of one": (
        "c = Unsqueeze(a, s) d = ReduceMean <axes: ints = [1]> (c) b = Squeeze(d, s)", {"s": i(1)}, ""),
    "a square sum of one": (
        "c = Unsqueeze(a, s) d = ReduceSumSquare <axes: ints = [1]> (c) b = Squeeze(d, s)", {"s": i(1)}, "Unsqueeze ReduceSumSquare"),
    "reduction and squeeze": (
        "c = ReduceMax <axes: ints = [1]> (a) d = Squeeze(c, s) e = Exp(d) b = Unsqueeze(e, s)", {"s": i(1)}, "ReduceMax Exp Unsqueeze"),
    "ceil and floor": ("c = Ceil(a) b = Floor(c)", {}, "Ceil"),
    "an integer rounded": ("c = Cast <to: int = 7> (a) d = Cast <to: int = 1> (c) b = Round(d)", {}, "Cast Cast"),
    "a half rounded": ("c = Cast <to: int = 10> (a) d = Cast <to: int = 1> (c) b = Round(d)", {}, "Cast Cast Round"),
    "abs of exp": ("c = Exp(a) b = Abs(c)", {}, "Exp"),
    "leaky relu of a sigmoid": ("c = Sigmoid(a) b = LeakyRelu(c)", {}, "Sigmoid"),
    "prelu of a part of a relu": ("c = Slice(a, s, e) b = PRelu(c, k)", {"s": i(1), "e": i(2), "k": f(4)}, "Slice"),
    "abs behind a clip that stays above zero": (
        "c = Clip(a, l, h) b = Abs(c)", {"l": np.float32(0.5), "h": np.float32(2)}, "Clip"),
    "abs of what may be negative": ("c = Sub(a, k) b = Abs(c)", {"k": f(4)}, "Sub Abs"),
    "plus a negative": ("c = Neg(a) d = Exp(a) b = Add(d, c)", {}, "Exp Sub"),
    "a negative plus": ("c = Neg(a) d = Exp(a) b = Add(c, d)", {}, "Exp Sub"),
    "minus a negative": ("c = Neg(a) d = Exp(a) b = Sub(d, c)", {}, "Exp Add"),
    "a negative minus": ("c = Neg(a) d = Exp(a) b = Sub(c, d)", {}, "Neg Exp Sub"),
    "plus a negative that is read elsewhere": ("c = Neg(a) d = Exp(c) b = Add(d, c)", {}, "Neg Exp Add"),
    "slice of one part": (
        "c = Exp(a) d = Concat <axis: int = 1> (a, c) b = Slice(d, s, e, ax)", {"s": i(3), "e": i(6), "ax": i(1)}, "Exp"),
    "slice within a part": (
        "c = Exp(a) d = Concat <axis: int = -2> (a, c) b = Slice(d, s, e, ax)", {"s": i(4), "e": i(6), "ax": i(1)}, "Exp Slice"),
    "slice within a part, with steps": (
        "c = Exp(a) d = Concat <axis: int = 1> (a, c) b = Slice(d, s, e, ax, t)",
        {"s": i(3), "e": i(6), "ax": i(1), "t": i(2)}, "Exp Slice"),
    "slice within a part, backwards": (
        "c = Exp(a) d = Concat <axis: int = 1> (a, c) b = Slice(d, s, e, ax, t)",
        {"s": i(5), "e": i(3), "ax": i(1), "t": i(-1)}, "Exp Concat Slice"),
    "slice across parts": (
        "c = Exp(a) d = Concat <axis: int = 1> (a, c) b = Slice(d, s, e, ax)", {"s": i(2), "e": i(5), "ax": i(1)}, "Exp Concat Slice"),
    "slice of parts along another axis": (
        "c = Exp(a) d = Concat <axis: int = 1> (a, c) b = Slice(d, s, e, ax)", {"s": i(1), "e": i(3), "ax": i(2)}, "Exp Concat Slice"),
    "pads in a row": ("c = Pad(a, s) b = Pad(c, t)", {"s": i(0, 1, 0, 0, 0, 1), "t": i(0, 0, 2, 0, 1, 0)}, "Pad"),
    "pads with two constants": (
        "c = Pad(a, s) b = Pad(c, s, v)", {"s": i(0, 1, 0, 0, 0, 1), "v": np.float32(1)}, "Pad Pad"),
    "pads of which one crops": ("c = Pad(a, s) b = Pad(c, t)", {"s": i(0, 1, 0, 0, 0, 1), "t": i(0, 0, 2, 0, -1, 0)}, "Pad Pad"),
    "pads that repeat the edge": (
        'c = Pad <mode: string = "edge"> (a, s) b = Pad <mode: string = "edge"> (c, s)', {"s": i(0, 1, 0, 0, 0, 1)}, "Pad"),
    "pads that reflect": (
        'c = Pad <mode: string = "reflect"> (a, s) b = Pad <mode: string = "reflect"> (c, s)', {"s": i(0, 1, 0, 0, 0, 1)}, "Pad Pad"),
    "pads by two modes": (
        'c = Pad <mode: string = "edge"> (a, s) b = Pad(c, s)', {"s": i(0, 1, 0, 0, 0, 1)}, "Pad Pad"),
    "pads, the first read elsewhere": (
        "c = Pad(a, s) d = Pad(c, t) e = ReduceMax <axes: ints = [1]> (c) b = Add(d, e)",
        {"s": i(0, 1, 0, 0, 0, 0), "t": i(0, 1, 0, 0, 0, 0)}, "Pad Pad ReduceMax Add"),
    "an element of a sequence": (
        "c = Exp(a) q = SequenceConstruct(a, c) b = SequenceAt(q, s)", {"s": np.array(1)}, "Exp"),
    "an element of a sequence from behind": (
        "c = Exp(a) q = SequenceConstruct(c, a) b = SequenceAt(q, s)", {"s": np.array(-2)}, "Exp"),
    "a part of a tensor cut in threes": (
        "q = SplitToSequence <axis: int = 2> (a, k) b = SequenceAt(q, s)", {"k": np.array(3), "s": np.array(1)}, "Slice"),
    "a part of a tensor cut to sizes": (
        "q = SplitToSequence <axis: int = -1> (a, k) b = SequenceAt(q, s)", {"k": i(1, 3), "s": np.array(-1)}, "Slice"),
    "a part of a tensor cut in ones": (
        "q = SplitToSequence <axis: int = 1> (a) b = SequenceAt(q, s)", {"s": np.array(0)}, "Slice"),
    "a part that loses its axis": (
        "q = SplitToSequence <axis: int = 1, keepdims: int = 0> (a) c = SequenceAt(q, s) b = Unsqueeze(c, u)",
        {"s": np.array(2), "u": i(1)}, "SplitToSequence SequenceAt Unsqueeze"),
    "a sequence put together": (
        "c = Exp(a) q = SequenceConstruct(a, c) b = ConcatFromSequence <axis: int = 1> (q)", {}, "Exp Concat"),
    "a sequence stacked": (
        "c = Exp(a) q = SequenceConstruct(a, c) d = ConcatFromSequence <axis: int = 1, new_axis: int = 1> (q)"
        " b = ReduceMax <axes: ints = [1], keepdims: int = 0> (d)",
        {}, "Exp SequenceConstruct ConcatFromSequence ReduceMax"),
    "cut and put together": (
        "q = SplitToSequence <axis: int = 2> (a, k) b = ConcatFromSequence <axis: int = -1> (q)", {"k": np.array(3)}, ""),
    "cut and put together otherwise": (
        "q = SplitToSequence <axis: int = 2> (a, k) b = ConcatFromSequence <axis: int = 1> (q)",
        {"k": np.array(2)}, "SplitToSequence ConcatFromSequence"),
    "cut without axis and put together": (
        "q = SplitToSequence <axis: int = 1, keepdims: int = 0> (a) c = ConcatFromSequence <axis: int = 1> (q) b = Unsqueeze(c, u)",
        {"u": i(1)}, "SplitToSequence ConcatFromSequence Unsqueeze"),
    "how many parts": (
        "q = SplitToSequence <axis: int = 2> (a, k) l = SequenceLength(q) c = Cast <to: int = 1> (l) b = Mul(a, c)",
        {"k": np.array(3)}, "Mul"),
    "how many elements": (
        "c = Exp(a) q = SequenceConstruct(a, c) l = SequenceLength(q) d = Cast <to: int = 1> (l) b = Mul(c, d)", {}, "Exp Mul"),
    "all overwritten": ("c = Exp(a) b = ScatterND(a, k, c)", {"k": np.array([[0], [1]])}, "Exp"),
    "all overwritten in another order": ("c = Exp(a) b = ScatterND(a, k, c)", {"k": np.array([[1], [0]])}, "Exp ScatterND"),
    "added to all": (
        'c = Exp(a) b = ScatterND <reduction: string = "add"> (a, k, c)', {"k": np.array([[0], [1]])}, "Exp ScatterND"),
    "max of the same": ("c = Exp(a) b = Max(c, c)", {}, "Exp"),
    "sum of the same": ("c = Exp(a) b = Sum(c, c)", {}, "Exp Sum"),
    "or of the same": (
        "c = Greater(a, k) d = Or(c, c) e = Cast <to: int = 1> (d) b = Add(a, e)", {"k": f(4)}, "Greater Cast Add"),
    "a sum over everything and a squeeze": (
        "c = ReduceMax(a) d = Squeeze(c) e = Exp(d) b = Mul(a, e)", {}, "ReduceMax Exp Mul"),
    "a squeeze that drops more than was reduced": (
        "c = Unsqueeze(a, s) d = ReduceMax <axes: ints = [2]> (c) e = Squeeze(d) g = Exp(e) b = Unsqueeze(g, s)",
        {"s": i(0)}, "Unsqueeze ReduceMax Reshape Exp"),
    "a stack turned round and multiplied": ("c = Transpose(a) d = MatMul(c, k) b = Exp(d)", {"k": f(2, 5)}, "Transpose MatMul Exp"),
    "a vector scaled and multiplied": (
        "c = ReduceMax <axes: ints = [0, 1], keepdims: int = 0> (a) d = Mul(c, k) e = MatMul(d, w) b = Add(a, e)",
        {"k": f(4), "w": f(4)}, "ReduceMax MatMul Add"),
    "a slice of a concat, of all axes": (
        "c = Exp(a) d = Concat <axis: int = 1> (a, c) b = Slice(d, s, e)", {"s": i(0, 3, 1), "e": i(2, 6, 3)}, "Exp Slice"),
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
    "conv and minus": ("c = Conv(x, w, b) y = Neg(c)", {"w": f(2, 4, 3, 3), "b": f(2)}, "Conv"),
    "times, then a transposed conv": ("m = Mul(x, k) y = ConvTranspose(m, w)", {"k": f(4, 1, 1), "w": f(4, 2, 3, 3)}, "ConvTranspose"),
    "minus, then a padded transposed conv in groups": (
        "m = Neg(x) y = ConvTranspose <group: int = 2, pads: ints = [1, 1, 1, 1]> (m, w, b)", {"w": f(4, 2, 3, 3), "b": f(4)}, "ConvTranspose"),
    "plus, then a transposed conv": ("m = Add(x, k) y = ConvTranspose(m, w)", {"k": f(4, 1, 1), "w": f(4, 2, 3, 3)}, "Add ConvTranspose"),
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
    "transposed and multiplied": ("t = Transpose(x) y = MatMul(t, w)", {"w": f(5, 3)}, "Gemm"),
    "multiplied by what is transposed": ("t = Transpose(x) y = MatMul(w, t)", {"w": f(3, 4)}, "Gemm"),
    "transposed twice and multiplied": ("t = Transpose(x) u = Exp(x) v = Transpose(u) y = MatMul(t, u)", {}, "Exp Gemm"),
    "transposed, multiplied and read": ("t = Transpose(x) m = MatMul(t, x) y = MatMul(m, t)", {}, "Transpose MatMul MatMul"),
    "a row of zeros added": ("y = Gemm(x, w, b)", {"w": f(4, 3), "b": np.zeros(3, np.float32)}, "Gemm"),
    "columns scaled in front": ("m = Mul(x, k) y = MatMul(m, w)", {"k": f(4), "w": f(4, 3)}, "MatMul"),
    "divided in front": ("m = Div(x, k) y = MatMul(m, w)", {"k": n(4), "w": f(4, 3)}, "MatMul"),
    "divides in front": ("m = Div(k, x) y = MatMul(m, w)", {"k": n(4), "w": f(4, 3)}, "Div MatMul"),
    "rows scaled in front": ("m = Mul(x, k) y = MatMul(m, w)", {"k": f(5, 1), "w": f(4, 3)}, "Mul MatMul"),
    "plus in front": ("m = Add(x, k) y = MatMul(m, w)", {"k": f(4), "w": f(4, 3)}, "Add MatMul"),
    "scaled in front and read": ("m = Mul(x, k) p = MatMul(m, w) y = MatMul(p, m)", {"k": f(4), "w": f(4, 5)}, "Mul MatMul MatMul"),
    "scaled in front of what changes": ("m = Mul(x, k) t = Transpose(x) u = Exp(t) y = MatMul(m, u)", {"k": f(4)}, "Mul Exp Gemm"),
    "normalise and gemm": ("b = BatchNormalization(x, k, k, k, k) y = Gemm(b, w)", {"k": f(4), "w": f(4, 3)}, "Gemm"),
    "normalise and gemm of many parts": (
        "b = BatchNormalization(x, k, k, k, k) y = Gemm <alpha: float = 0.5, beta: float = 2.0, transB: int = 1> (b, w, c)",
        {"k": f(4), "w": f(3, 4), "c": f(3)}, "Gemm"),
    "plus and gemm": ("m = Add(x, k) y = Gemm(m, w, c)", {"k": f(4), "w": f(4, 3), "c": f(5, 1)}, "Gemm"),
    "times and a gemm of columns": ("m = Mul(x, k) y = Gemm <transA: int = 1> (m, w)", {"k": f(4), "w": f(5, 3)}, "Mul Gemm"),
    "rows scaled in front of a gemm": ("m = Mul(x, k) y = Gemm(m, w)", {"k": f(5, 1), "w": f(4, 3)}, "Mul Gemm"),
    "transposed and multiplied with a stack": (
        "t = Transpose(x) m = MatMul(t, w) y = ReduceMax <axes: ints = [0], keepdims: int = 0> (m)", {"w": f(2, 5, 3)}, "Transpose MatMul ReduceMax"),
    "integers transposed and multiplied": (
        "c = Cast <to: int = 6> (x) t = Transpose(c) m = MatMul(t, c) y = Cast <to: int = 1> (m)", {}, "Cast Transpose MatMul Cast"),
    "normalised in front of a gemm, and read": (
        "b = BatchNormalization(x, k, k, k, k) g = Gemm(b, w) y = MatMul(g, b)", {"k": f(4), "w": f(4, 5)}, "BatchNormalization Gemm MatMul"),
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


@pytest.mark.parametrize(
    "text", ["y = Gemm(x, w, b)", "y = Conv <pads: ints = [0, 0]> (x, v, b)", "y = ConvTranspose(x, v, b)"]
)
def test_a_bias_of_zeros_goes_and_another_stays(parse, text):
    shape = "5, 4" if "Gemm" in text else "1, 4, 6"
    constants = {"w": f(4, 4), "v": f(4, 4, 1), "b": np.zeros(4, np.float32)}
    for bias, left in ((constants["b"], 2), (n(0, 0, 1, 0), 3)):
        known = {
            name: array for name, array in {**constants, "b": bias}.items() if f"{name}" in text[text.index("(") :]
        }
        out = "".join(f', "d{axis}"' for axis in range(len(shape.split(",")))).removeprefix(", ")
        graph = parse(f"agraph (float[{shape}] x) => (float[{out}] y) {{ {text} }}", **known)
        after = labkit.optimize(graph).graph
        assert len(after.nodes[0].inputs) == left
        labkit.verify(graph, after)


def test_a_tile_by_one_goes_whatever_the_sizes(parse):
    graph = parse('agraph (float["n", 4] x) => (float["n", 4] y) { t = Tile(x, k) y = Relu(t) }', k=i(1, 1))
    assert [node.op for node in labkit.optimize(graph).graph.nodes] == ["Relu"]
    labkit.verify(graph, labkit.optimize(graph).graph)


@pytest.mark.parametrize(
    ("text", "constants"),
    [
        ("c = Exp(x) q = SequenceConstruct(x, c) y = SequenceAt(q, s)", {"s": np.array(2)}),
        ("q = SplitToSequence <axis: int = 1> (x, k) y = SequenceAt(q, s)", {"k": np.array(2), "s": np.array(-4)}),
        ("q = SplitToSequence <axis: int = 1> (x, k) y = SequenceAt(q, s)", {"k": np.array(0), "s": np.array(1)}),
    ],
)
def test_what_cannot_run_is_left_to_the_runtime_to_refuse(parse, text, constants):
    graph = parse(f'agraph (float[2, 5] x) => (float["p", "q"] y) {{ {text} }}', **constants)
    assert labkit.optimize(graph).graph is graph


def test_before_opset_11_a_gemm_needs_a_bias(parse):
    bias = {"w": f(4, 3), "b": np.zeros(3, np.float32)}
    zeros = parse("agraph (float[5, 4] x) => (float[5, 3] y) { y = Gemm(x, w, b) }", 10, **bias)
    assert labkit.optimize(zeros).graph is zeros
    text = "agraph (float[5, 4] x) => (float[4, 3] y) { t = Transpose(x) y = MatMul(t, w) }"
    old, new = (parse(text, opset, w=f(5, 3)) for opset in (10, 11))
    assert [[node.op for node in labkit.optimize(graph).graph.nodes] for graph in (old, new)] == [
        ["Transpose", "MatMul"],
        ["Gemm"],
    ]


def test_an_affine_map_in_front_of_a_gemm_is_refused_with_reasons_where_it_is_a_batch_norm(parse):
    text = "agraph (float[5, 4] x) => (float[5, 3] y) { b = OP y = Gemm(b, w) }"
    norm = text.replace("OP", "BatchNormalization <training_mode: int = 1> (x, k, k, k, k)")
    refused = labkit.optimize(parse(norm, 15, k=f(4), w=f(4, 3))).refusals
    assert [refusal.guard for refusal in refused if refusal.rule == "affine_into_gemm_behind"] == ["training mode"]
    rows = parse(text.replace("OP", "Add(x, r)"), r=f(5, 1), w=f(4, 3))
    assert not [refusal for refusal in labkit.optimize(rows).refusals if refusal.rule == "affine_into_gemm_behind"]


@pytest.mark.parametrize(
    "text",
    [
        "m = Mul(x, k) p = MatMul(m, w) y = MatMul(p, m)",
        "m = BatchNormalization(x, k, k, k, k) p = Gemm(m, w) y = MatMul(p, m)",
        "m = Mul(x, k) y = Gemm <transA: int = 1> (m, w)",  # a square matrix: a scale of columns would fit its rows
    ],
)
def test_an_affine_map_stays_where_others_read_it_and_where_a_product_reads_its_rows(parse, text):
    graph = parse(f"agraph (float[4, 4] x) => (float[4, 4] y) {{ {text} }}", k=f(4), w=f(4, 4))
    assert labkit.optimize(graph).graph is graph


def test_a_scaled_constant_too_large_to_fold_stays(parse):
    text = "agraph (float[300, 2] x) => (float[300, 2] y) { m = Mul(k, l) p = MatMul(m, w) y = Add(x, p) }"
    graph = parse(text, k=f(300, 1), l=f(1, 300), w=f(300, 2))
    assert [node.op for node in labkit.optimize(graph).graph.nodes] == ["Mul", "Gemm"]


def test_a_slice_of_a_concat_with_an_open_axis_beside_it_stays(parse):
    text = 'agraph (float["n", 3] x) => (float["n", 3] y) { c = Exp(x) d = Concat <axis: int = 1> (x, c) y = Slice(d, s, e) }'
    graph = parse(text, s=i(0, 3), e=i(BIG, 6))
    assert [node.op for node in labkit.optimize(graph).graph.nodes] == ["Exp", "Concat", "Slice"]


@pytest.mark.parametrize(("middle", "left"), [("a = Abs(x) b = Relu(a)", "Abs Relu"), ("a = Abs(x) b = Abs(a)", "Abs"),
    ("a = ReduceSumSquare <axes: ints = [0]> (x) b = Abs(a)", "ReduceSumSquare Abs"), ("a = Relu(x) b = Abs(a)", "Relu")])  # fmt: skip
def test_integers_overflow_so_the_absolute_of_one_may_be_negative(parse, middle, left):
    graph = parse(f'agraph (int32[3, 4] x) => (int32["n", 4] y) {{ {middle} y = Mul(b, b) }}')
    assert [node.op for node in labkit.optimize(graph).graph.nodes] == [*left.split(), "Mul"]
