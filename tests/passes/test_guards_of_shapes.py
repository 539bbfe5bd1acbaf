"""Guards one by one, continued: shapes, axes, slices, intervals, products, equal nodes, folding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest

import labkit
from labkit.graph import TensorType, Value
from labkit.onnx_io import from_model
from labkit.passes import fold
from tests.passes.test_guards import i, ops, s, sources

RNG = np.random.default_rng(29)
BIG = 2**63 - 1


def f(*shape: int) -> np.ndarray:
    return RNG.uniform(0.5, 1.5, shape).astype(np.float32)


NAN = s(float("nan"))
# name: (model text, constants, operators left, opset)
ROWS = {
    # slices
    "slices beside an open axis": (
        '(float["n", 6] x) => (float["n", 1] y) { a = Slice(x, p, q, o) y = Slice(a, z, t, u) }',
        {"p": i(1), "q": i(4), "o": i(1), "z": i(0, 1), "t": i(BIG, 2), "u": i(0, 1)}, "Slice Slice", 17),
    "an open axis from its second": ('(float["n", 6] x) => (float["m", 6] y) { y = Slice(x, p, q) }', {"p": i(1), "q": i(BIG)}, "Slice", 17),
    "an open axis to its second": ('(float["n", 6] x) => (float["m", 6] y) { y = Slice(x, p, q) }', {"p": i(0), "q": i(1)}, "Slice", 17),
    "an open axis by twos": (
        '(float["n", 6] x) => (float["m", 6] y) { y = Slice(x, p, q, p, t) }', {"p": i(0), "q": i(BIG), "t": i(2)}, "Slice", 17),
    "all of an open axis": ('(float["n", 6] x) => (float["n", 6] y) { a = Neg(x) y = Slice(a, p, q) }', {"p": i(0), "q": i(BIG)}, "Neg", 17),
    "a slice that is read elsewhere": (
        "(float[8] x) => (float[2] y, float[6] z) { a = Slice(x, p, q) y = Slice(a, p, t) z = Neg(a) }",
        {"p": i(1), "q": i(7), "t": i(3)}, "Slice Slice Neg", 17),
    "slices of nothing": (
        "(float[8] x) => (float[0] y) { a = Slice(x, p, q, o, t) y = Slice(a, o, u) }",
        {"p": i(2), "q": i(5), "o": i(0), "t": i(-1), "u": i(1)}, "Slice", 17),
    "slices in attributes": (
        "(float[8] x) => (float[2] y) { a = Slice <starts: ints = [1], ends: ints = [7]> (x) y = Slice <starts: ints = [1], ends: ints = [3]> (a) }",
        {}, "Slice", 9),
    # clips, extremes, intervals
    "a relu that is read elsewhere": (
        "(float[4] x) => (float[4] y, float[4] z) { r = Relu(x) y = Clip(r, l, h) z = Neg(r) }",
        {"l": s(-1), "h": s(1)}, "Relu Clip Neg", 17),
    "a clip to nan": ("(float[4] x) => (float[4] y) { r = Relu(x) y = Clip(r, l, h) }", {"l": NAN, "h": s(1)}, "Relu Clip", 17),
    "a clip to bounds that are fed": (
        "(float[4] x, float h) => (float[4] y) { r = Relu(x) y = Clip(r, l, h) }", {"l": s(0.5)}, "Relu Clip", 17),
    "max and min before opset 11": ("(float[4] x) => (float[4] y) { a = Max(x, l) y = Min(a, h) }", {"l": s(0.5), "h": s(2)}, "Max Min", 10),
    "max and min of integers": (
        "(int32[4] x) => (int32[4] y) { a = Max(x, l) y = Min(a, h) }",
        {"l": np.array(1, np.int32), "h": np.array(3, np.int32)}, "Max Min", 17),
    "a max that is read elsewhere": (
        "(float[4] x) => (float[4] y, float[4] z) { a = Max(x, l) y = Min(a, h) z = Neg(a) }",
        {"l": s(0.5), "h": s(2)}, "Max Min Neg", 17),
    "max of two tensors and min": (
        "(float[4] x, float[4] w) => (float[4] y) { a = Max(x, w) y = Min(a, h) }", {"h": s(2)}, "Max Min", 17),
    "max of three and min": (
        "(float[4] x, float[4] w) => (float[4] y) { a = Max(x, l, w) y = Min(a, h) }", {"l": s(0.5), "h": s(2)}, "Max Min", 17),
    "max of another max that is read elsewhere": (
        "(float[4] x) => (float[4] y, float[4] z) { a = Max(x, l) y = Max(a, h) z = Neg(a) }", {"l": f(4), "h": f(4)}, "Max Max Neg", 17),
    "max and min with a vector": (
        "(float[4] x) => (float[4] y) { a = Max(x, l) y = Min(a, h) }", {"l": f(4), "h": s(2)}, "Max Min", 17),
    "a number that grows": (
        "(float x) => (float[1] y) { a = Max(x, l) y = Min(a, h) }", {"l": f(1), "h": s(2)}, "Max Min", 17),
    "a sum and min": (
        "(float[4] x) => (float[4] y) { a = Add(x, l) y = Min(a, h) }", {"l": s(0.5), "h": s(2)}, "Add Min", 17),
    "a clip to what is fed and min": (
        "(float[4] x, float l) => (float[4] y) { a = Clip(x, l) y = Min(a, h) }", {"h": s(2)}, "Clip Min", 17),
    # reductions
    "a reduction that kept its axis": (
        "(float[2, 3, 4] x) => (float[2, 1, 1, 4] y) { a = ReduceMax <axes: ints = [1]> (x) y = Unsqueeze(a, o) }",
        {"o": i(1)}, "ReduceMax Unsqueeze", 17),
    "a reduction that is read elsewhere": (
        "(float[2, 3, 4] x) => (float[2, 1, 4] y, float[2, 4] z) "
        "{ a = ReduceMax <axes: ints = [1], keepdims: int = 0> (x) y = Unsqueeze(a, o) z = Neg(a) }",
        {"o": i(1)}, "ReduceMax Unsqueeze Neg", 17),
    "a reduction of all axes": (
        "(float[2, 3] x) => (float[1, 1] y) { a = ReduceMax <keepdims: int = 0> (x) y = Unsqueeze(a, o) }", {"o": i(0, 1)},
        "ReduceMax", 17),
    "a reduction and another axis": (
        "(float[2, 3, 4] x) => (float[1, 2, 4] y) { a = ReduceMax <axes: ints = [1], keepdims: int = 0> (x) y = Unsqueeze(a, o) }",
        {"o": i(0)}, "ReduceMax Unsqueeze", 17),
    "an index that drops its axis": (
        "(float[2, 3, 4] x) => (int64[2, 1, 4] y) { a = ArgMax <axis: int = 1, keepdims: int = 0> (x) y = Unsqueeze(a, o) }",
        {"o": i(-2)}, "ArgMax", 17),
    "a reduction whose axes are an input": (
        "(float[2, 3, 4] x) => (float[2, 1, 4] y) { a = ReduceMax <keepdims: int = 0> (x, o) y = Unsqueeze(a, o) }",
        {"o": i(1)}, "ReduceMax", 18),
    "a reduction whose axes are fed": (
        '(float[2, 3, 4] x, int64[1] o) => (float["a", "b", "c"] y) { a = ReduceMax <keepdims: int = 0> (x, o) y = Unsqueeze(a, p) }',
        {"o": i(1), "p": i(1)}, "ReduceMax Unsqueeze", 18),
    # casts
    "casts through bfloat16": (
        "(float[4] x) => (float[4] y) { a = Cast <to: int = 16> (x) y = Cast <to: int = 1> (a) }", {}, "Cast Cast", 17),
    "casts of long integers through double": (
        "(int64[4] x) => (int64[4] y) { a = Cast <to: int = 11> (x) y = Cast <to: int = 7> (a) }", {}, "Cast Cast", 17),
    "casts of short integers through double": (
        "(int32[4] x) => (int64[4] y) { a = Cast <to: int = 11> (x) y = Cast <to: int = 7> (a) }", {}, "Cast", 17),
    "casts through text": (
        "(int32[4] x) => (int32[4] y) { a = Cast <to: int = 8> (x) y = Cast <to: int = 6> (a) }", {}, "Cast Cast", 17),
    # reshapes and shapes
    "reshapes to two open dims": (
        '(float["n", "m", 4] x, int64[3] t) => (float["a", "b", "c"] y) { r = Neg(x) u = Unsqueeze(r, o) y = Squeeze(u, p) }',
        {"o": i(1), "p": i(1)}, "Neg", 17),
    "a target that swaps two open dims": (
        '(float["n", "m", 4] x) => (float["m", "n", 4] y) { t = Shape(x) u = Gather(t, o) y = Reshape(x, u) }',
        {"o": i(1, 0, 2)}, "Shape Gather Reshape", 17),
    "half of a shape": (
        '(float["n", 4] x) => (float["n", "p", "q"] y) { t = Shape(x) a = Slice(t, z, o) b = Div(a, w) c = Mul(b, w) '
        "d = Concat <axis: int = 0> (c, m) y = Reshape(x, d) }",
        {"z": i(0), "o": i(1), "w": i(2), "m": i(-1, 2)}, "Shape Slice Div Mul Concat Reshape", 17),
    "more than a shape": (
        '(float["n", 4] x) => (float["p"] y) { t = Shape(x) a = Slice(t, z, o) b = Add(a, w) y = ConstantOfShape(b) }',
        {"z": i(0), "o": i(1), "w": i(3)}, "Shape Slice Add ConstantOfShape", 17),
    "less than a shape": (
        '(float["n", 4] x) => (float["p"] y) { t = Shape(x) a = Slice(t, z, o) b = Sub(w, a) y = ConstantOfShape(b) }',
        {"z": i(0), "o": i(1), "w": i(3)}, "Shape Slice Sub ConstantOfShape", 17),
    "a dim that chooses a dim": (
        '(float["n", 4, 5] x) => (float["p"] y) { t = Shape(x) a = Slice(t, z, o) b = Gather(t, a) y = ConstantOfShape(b) }',
        {"z": i(0), "o": i(1)}, "Shape Slice Gather ConstantOfShape", 17),
    "a dim that ends a slice": (
        '(float["n", 4, 5] x) => (float["p", "q"] y) { t = Shape(x) a = Slice(t, z, o) b = Slice(t, z, a) y = ConstantOfShape(b) }',
        {"z": i(0), "o": i(1)}, "Shape Slice Slice ConstantOfShape", 17),
    "half of a shape in floats": (
        '(float["n", 4] x) => (float["p", "q"] y) { t = Shape(x) c = Cast <to: int = 1> (t) d = Mul(c, h) '
        "e = Cast <to: int = 7> (d) y = ConstantOfShape(e) }",
        {"h": s(0.5)}, "Shape Cast Mul Cast ConstantOfShape", 17),
    "a table of shapes": (
        "(float[2, 3] x) => (int64[4] y) { t = Shape(x) m = Mul(t, w) r = Reshape(m, o) y = Neg(r) }",
        {"w": i(1, 2).reshape(2, 1), "o": i(-1)}, "", 17),
    "a table of shapes, open": (
        '(float["n", 3] x) => (int64[4] y) { t = Shape(x) m = Mul(t, w) y = Reshape(m, o) }',
        {"w": i(1, 2).reshape(2, 1), "o": i(4)}, "Shape Mul Reshape", 17),
    "a shape as a column": (
        "(float[2, 3] x) => (int64[2, 1] y) { t = Shape(x) y = Unsqueeze(t, o) }", {"o": i(1)}, "", 17),
    "what is known of an open shape": (
        '(float["n", 3, 4] x) => (int64[2] y) { t = Shape(x) y = Slice(t, p, q) }', {"p": i(1), "q": i(3)}, "", 17),
    "a table of open shapes": (
        '(float["n", 3] x) => (int64[5] y) { t = Shape(x) m = Mul(t, w) r = Reshape(m, o) y = Concat <axis: int = 0> (r, f) }',
        {"w": i(0, 0).reshape(2, 1), "o": i(-1), "f": i(5)}, "Shape Mul Reshape Concat", 17),
    "no elements and an open dim": (
        '(float[2, 0, "n"] x) => (float["n", 0, 2] y) { t = Shape(x) g = Gather(t, l) c = Concat <axis: int = 0> (g, o) y = Reshape(x, c) }',
        {"l": i(2), "o": i(0, 2)}, "Shape Gather Concat Reshape", 17),
    "a size of open dims": ('(float["n", 3] x) => (int64 y) { y = Size(x) }', {}, "Size", 17),
    "a size": ("(float[2, 3] x) => (int64 y) { y = Size(x) }", {}, "", 17),
    "an expand to more axes, computed": (
        "(float[3, 4] x, float[1, 3, 4] z) => (float[1, 3, 4] y) { t = Shape(z) y = Expand(x, t) }", {}, "Expand", 17),
    "an expand to more elements, computed": (
        '(float["n", 1] x, float["n", "m"] z) => (float["n", "m"] y) { t = Shape(z) y = Expand(x, t) }', {}, "Shape Expand", 17),
    "an expand to its own open shape": (
        '(float["n", "m"] x) => (float["n", "m"] y) { r = Neg(x) t = Shape(x) y = Expand(r, t) }', {}, "Neg", 17),
    "allowzero and an open dim": (
        '(float["n", 3, 4] x) => (float["n", 12] y) { t = Shape(x) a = Gather(t, z) c = Concat <axis: int = 0> (a, m) '
        "y = Reshape <allowzero: int = 1> (x, c) }",
        {"z": i(0), "m": i(-1)}, "Shape Gather Concat Reshape", 17),
    "a reshape that is read elsewhere": (
        "(float[2, 6] x) => (float[4, 3] y, float[3, 4] z) { a = Reshape(x, p) y = Reshape(a, q) z = Neg(a) }",
        {"p": i(3, 4), "q": i(4, 3)}, "Reshape Reshape Neg", 17),
    "parts put back along another axis": (
        "(float[2, 2] x) => (float[1, 4] y) { a, b = Split <axis: int = 0> (x) y = Concat <axis: int = 1> (a, b) }", {},
        "Split Concat", 17),
    # transposes
    "a transpose that two read": (
        "(float[3, 4] x) => (float[4, 3] y, float[4, 3] z) { t = Transpose(x) y = Relu(t) z = Neg(t) }", {}, "Transpose Relu Neg", 17),
    "transposes of which one is read elsewhere": (
        "(float[3, 4] x, float[3, 4] v) => (float[4, 3] y, float[4, 3] z) "
        "{ t = Transpose(x) u = Transpose(v) y = Add(t, u) z = Neg(t) }", {}, "Transpose Transpose Add Neg", 17),
    "transposes in a concat of which one is read elsewhere": (
        "(float[3, 4] x, float[3, 4] v) => (float[8, 3] y, float[4, 3] z) "
        "{ t = Transpose(x) u = Transpose(v) y = Concat <axis: int = 0> (t, u) z = Neg(t) }", {}, "Transpose Transpose Concat Neg", 17),
    "two ways to transpose": (
        "(float[3, 3, 3] x) => (float[3, 3, 3] y) { a = Transpose <perm: ints = [0, 2, 1]> (x) "
        "b = Transpose <perm: ints = [1, 0, 2]> (x) y = Add(a, b) }", {}, "Transpose Transpose Add", 17),
    "two ways to transpose into a concat": (
        "(float[3, 3, 3] x) => (float[6, 3, 3] y) { a = Transpose <perm: ints = [0, 2, 1]> (x) "
        "b = Transpose <perm: ints = [1, 0, 2]> (x) y = Concat <axis: int = 0> (a, b) }", {}, "Transpose Transpose Concat", 17),
    "a transpose beside another tensor": (
        "(float[3, 4] x, float[4, 3] z) => (float[4, 3] y) { a = Transpose(x) y = Add(a, z) }", {}, "Transpose Add", 17),
    "a transpose beside another tensor in a concat": (
        "(float[3, 4] x, float[4, 3] z) => (float[8, 3] y) { a = Transpose(x) y = Concat <axis: int = 0> (a, z) }", {},
        "Transpose Concat", 17),
    "a transpose of a row beside one of all": (
        "(float[1, 4] x, float[3, 4] z) => (float[4, 3] y) { a = Transpose(x) b = Transpose(z) y = Add(a, b) }", {},
        "Transpose Transpose Add", 17),
    "a transpose that a constant enlarges": (
        "(float[3, 4] x) => (float[2, 4, 3] y) { a = Transpose(x) y = Add(a, k) }", {"k": f(2, 1, 1)}, "Transpose Add", 17),
    # products
    "a product of integers and a bias": (
        "(int32[5, 4] x) => (int32[5, 3] y) { m = MatMul(x, w) y = Add(m, k) }",
        {"w": np.arange(12, dtype=np.int32).reshape(4, 3), "k": np.array([2, 3, 4], np.int32)}, "MatMul Add", 17),
    "a product and two biases": (
        "(float[5, 4] x, float[4, 3] w) => (float[5, 3] y) { m = MatMul(x, w) y = Sum(m, k, l) }", {"k": f(3), "l": f(3)},
        "MatMul Sum", 17),
    "a gemm with its bias and another tensor": (
        "(float[5, 4] x, float[4, 3] w, float[5, 3] z) => (float[5, 3] y) { m = Gemm(x, w, k) y = Add(m, z) }", {"k": f(3)},
        "Gemm Add", 17),
    "a gemm that scaled no bias yet": (
        "(float[5, 4] x, float[4, 3] w, float[5, 3] z) => (float[5, 3] y) "
        "{ m = Gemm <alpha: float = 0.5, beta: float = 3.0> (x, w) y = Add(m, z) }", {}, "Gemm", 17),
    "a product that is read elsewhere": (
        "(float[5, 4] x, float[4, 3] w, float[3] z) => (float[5, 3] y, float[5, 3] v) { m = MatMul(x, w) y = Add(m, z) v = Neg(m) }", {},
        "MatMul Add Neg", 17),
    "a product plus itself": (
        "(float[5, 4] x, float[4, 3] w) => (float[5, 3] y) { m = MatMul(x, w) y = Add(m, m) }", {}, "MatMul Add", 17),
    # fills
    "a clip of a fill": (
        "(float[2, 3] x) => (float[2, 3] y) { c = ConstantOfShape <value: tensor = float[1] {5.0}> (t) d = Clip(c, l, h) y = Mul(x, d) }",
        {"t": i(2, 3), "l": s(0), "h": s(2)}, "Mul", 17),
    "a clip of a large fill": (
        "(float[1] x) => (float[400, 400] y) { c = ConstantOfShape <value: tensor = float[1] {5.0}> (t) d = Clip(c, l, h) y = Mul(x, d) }",
        {"t": i(400, 400), "l": s(0), "h": s(2)}, "ConstantOfShape Clip Mul", 17),
    "a large fill made odd": (
        "(float[1] x) => (float[400, 400] y) { c = ConstantOfShape <value: tensor = float[1] {5.0}> (t) d = Exp(c) y = Mul(x, d) }",
        {"t": i(400, 400)}, "ConstantOfShape Mul", 17),
    # equal nodes, branches
    "equal nodes that are both outputs": (
        "(float[4] x) => (float[4] y, float[4] z) { y = Neg(x) z = Neg(x) }", {}, "Neg Neg", 17),
    "equal branches at run time": (
        """(float[2] x, bool c) => (float[2] y) {
            p = If (c) <then_branch = t () => (float[2] q) { q = Neg(x) }, else_branch = e () => (float[2] r) { r = Abs(x) }>
            o = If (c) <then_branch = t2 () => (float[2] q2) { q2 = Neg(x) }, else_branch = e2 () => (float[2] r2) { r2 = Abs(x) }>
            y = Add(p, o) }""", {}, "If If Add", 17),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_guard_keeps_what_has_to_stay(parse, name):
    text, constants, left, opset = ROWS[name]
    graph = parse(f"agraph {text}", opset, **constants)
    after = labkit.optimize(graph).graph
    assert ops(after) == left.split()
    if ops(graph) == ops(after):
        assert sources(after) == sources(graph)
    labkit.verify(graph, after)


def test_concats_of_unknown_rank_along_one_axis_are_one(parse):
    text = '(float[2] x) => (float["n"] y) { a = Concat <axis: int = 0> (x, x) b = Concat <axis: int = 0> (a, x) y = Neg(b) }'
    graph = parse(f"agraph {text}")
    lost = {
        value.name: Value(value.name, TensorType(None, "float32")) for node in graph.nodes for value in node.results
    }
    nodes = [replace(node, outputs=(lost[node.output.name],)).rename(lost) for node in graph.nodes]
    assert ops(labkit.optimize(replace(graph, nodes=tuple(nodes))).graph) == ["Concat", "Neg"]


def test_random_nodes_of_one_input_stay_two(parse):
    graph = parse(
        "agraph (float[2] x) => (float[2] y) { a = RandomNormalLike(x) b = RandomNormalLike(x) y = Sub(a, b) }"
    )
    assert labkit.optimize(graph).graph is graph


def test_a_result_of_unknown_size_is_not_even_computed(parse, monkeypatch):
    monkeypatch.setattr(fold, "evaluate", lambda *args: pytest.fail("it was computed"))
    graph = parse('agraph (int64[1] x) => (int64["a", "b"] y) { k = NonZero(w) y = Add(x, k) }', w=f(3))
    report = labkit.optimize(graph)
    assert report.graph is graph
    assert [refusal.guard for refusal in report.refusals] == ["size unknown"]


def test_axes_named_twice_are_left_to_whoever_runs_them(parse):
    text = '(float[4] x) => (float["n"] y) { a = Slice(x, p, q, o) y = Neg(a) }'
    graph = parse(f"agraph {text}", p=i(1, 0), q=i(2, BIG), o=i(0, 0))
    assert labkit.optimize(graph).graph is graph


def test_a_cast_like_what_nobody_knows_stays(parse):
    text = """<ir_version: 8, opset_import: ["": 17, "com.acme": 1]>
        agraph (float[2] x) => (float[2] y) { a = com.acme.F(x) y = CastLike(x, a) }"""
    graph = from_model(onnx.parser.parse_model(text))
    assert labkit.optimize(graph).graph is graph


def test_what_reads_nothing_is_not_constant_for_that(parse):
    graph = parse("agraph (float[2] x) => (float[2] y) { r = RandomNormal <shape: ints = [2]> () y = Add(x, r) }")
    assert labkit.optimize(graph).graph is graph


def test_a_loop_over_constants_is_not_folded_and_says_so(parse):
    text = """(float[2] x) => (float[2] y) {
        v = Loop (m, c, w) <body = b (int64 i, bool cin, float[2] a) => (bool cout, float[2] r)
            { cout = Identity(cin) r = Neg(a) }>
        y = Add(x, v) }"""
    graph = parse(f"agraph {text}", m=np.array(3), c=np.array(True), w=f(2))
    report = labkit.optimize(graph)
    assert report.graph is graph
    assert [refusal.guard for refusal in report.refusals] == ["inner graph"]
    labkit.verify(graph, report.graph)


def test_a_cast_of_what_nobody_knows_stays(parse):
    text = """<ir_version: 8, opset_import: ["": 17, "com.acme": 1]>
        agraph (float[2] x) => (float[2] y) { a = com.acme.F(x) b = Cast <to: int = 1> (a) y = com.acme.F(b) }"""
    graph = from_model(onnx.parser.parse_model(text))
    assert graph.nodes[1].output.type is None or graph.nodes[1].output.shape is None
    assert labkit.optimize(graph).graph is graph


def test_a_chain_of_three_thousand_links_behind_a_shape_is_no_trouble(parse):
    chain = " ".join(f"s{n + 1} = Identity(s{n})" for n in range(3000))
    graph = parse(f'agraph (float["n", 3] x) => (float["a", "b"] y) {{ s0 = Shape(x) {chain} y = Reshape(x, s3000) }}')
    labkit.optimize(graph, passes=["fold"])
    assert ops(labkit.optimize(graph).graph) == ["Identity"]


@pytest.mark.parametrize(
    ("computed", "guard"),
    [(np.zeros(2), "type"), (np.zeros(3, np.float32), "type"), (["no", "array"], "no tensor")],
)
def test_what_is_computed_has_to_be_what_inference_promised(parse, monkeypatch, computed, guard):
    monkeypatch.setattr(fold, "evaluate", lambda *args: (computed,))
    graph = parse("agraph (float[2] x) => (float[2] y) { k = Exp(w) y = Add(x, k) }", w=f(2))
    report = labkit.optimize(graph)
    assert report.graph is graph
    assert [refusal.guard for refusal in report.refusals if refusal.node == "Exp 'k'"] == [guard]


def test_an_output_left_out_is_not_folded_into_a_constant(parse):
    graph = parse(
        'agraph (float[1, 1, 3] x) => (float[1, 1, 3] y) { "", h = RNN <hidden_size: int = 3> (k, w, r) y = Add(x, h) }',
        k=f(1, 1, 2), w=f(1, 3, 2), r=f(1, 3, 3),
    )  # fmt: skip
    after = labkit.optimize(graph).graph
    assert ops(after) == ["Add"]
    labkit.verify(graph, after)


def test_casts_from_bfloat16_and_back_lose_nothing(parse):
    text = "(bfloat16[4] x) => (bfloat16[4] y) { a = Cast <to: int = 1> (x) b = Cast <to: int = 16> (a) y = Neg(b) }"
    assert ops(labkit.optimize(parse(f"agraph {text}")).graph) == ["Neg"]
