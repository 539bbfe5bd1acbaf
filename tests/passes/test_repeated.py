"""Operators twice in a row, products of rows, signs of scales."""

import onnx
import pytest

import labkit
from labkit.onnx_io import from_model
from tests.passes.test_catalogue import f, i, n, read_in

MEAN, MAX = (f"{op} <axes: ints = [{{}}], keepdims: int = {{}}>" for op in ("ReduceMean", "ReduceMax"))


def ops(graph):
    return [node.op for node in graph.nodes]


CONSTANTS = {"i0": i(0), "i1": i(1), "i2": i(2), "m1": i(-1), "i01": i(0, 1), "places": i(3, 0, -1, 1), "some": i(2, -1, 0), "far": i(1, 4),
             "back": i(-4), "below": i(0, -5), "table": i(3, 0, 1, 2).reshape(2, 2), "twice": i(1, 2, 1), "thrice": i(3, 1, 1), "k": f(4), "c": n(3)}  # fmt: skip
# name: (nodes from x, which is float[2, 3, 4], to y; rank of y; operators left)
ROWS = {
    "some of some": ("a = Gather <axis: int = 2> (x, places) y = Gather <axis: int = 2> (a, some)", 3, "Gather"),
    "one of some": ("a = Gather <axis: int = -1> (x, places) y = Gather <axis: int = 2> (a, back)", 3, "Gather"),
    "a table of some": ("a = Gather <axis: int = 2> (x, places) y = Gather <axis: int = 2> (a, table)", 4, "Gather"),
    "some of a table": ("a = Gather <axis: int = 2> (x, table) y = Gather <axis: int = 2> (a, i1)", 4, "Gather Gather"),
    "some along two axes": ("a = Gather <axis: int = 2> (x, places) y = Gather <axis: int = 1> (a, i01)", 3, "Gather Gather"),
    "places that are none": ("a = Gather <axis: int = 2> (x, places) y = Gather <axis: int = 2> (a, far)", 3, "Gather Gather"),
    "places in front of the first": ("a = Gather <axis: int = 2> (x, places) y = Gather <axis: int = 2> (a, below)", 3, "Gather Gather"),
    "some that are read elsewhere": (
        "a = Gather <axis: int = 1> (x, i01) b = Gather <axis: int = 1> (a, i0) y = Mul(a, b)", 3, "Gather Gather Mul"),
    "places that are fed, then some": ("a = Gather <axis: int = 2> (x, z) y = Gather <axis: int = 2> (a, i0)", 3, "Gather Gather"),
    "some, then places that are fed": ("a = Gather <axis: int = 2> (x, places) y = Gather <axis: int = 2> (a, z)", 3, "Gather Gather"),
    "copies of as many as are fed": ("a = Tile(x, z) y = Tile(a, twice)", 3, "Tile Tile"),
    "as many copies as are fed": ("a = Tile(x, twice) y = Tile(a, z)", 3, "Tile Tile"),
    "copies of copies": ("a = Tile(x, twice) y = Tile(a, thrice)", 3, "Tile"),
    "copies that are read elsewhere": ("a = Tile(x, twice) b = Tile(a, thrice) s = Exp(a) t = Tile(s, thrice) y = Add(b, t)", 3,
                                       "Tile Tile Exp Tile Add"),
    "a sum of sums": ("a = ReduceSum <keepdims: int = 0> (x, i2) y = ReduceSum <keepdims: int = 0> (a, i0)", 1, "ReduceSum"),
    "a sum of sums, axes kept": ("a = ReduceSum(x, m1) y = ReduceSum(a, i0)", 3, "ReduceSum"),
    "a sum of sums, axes first kept": ("a = ReduceSum(x, i2) y = ReduceSum <keepdims: int = 0> (a, i2)", 2, "ReduceSum ReduceSum"),
    "a mean of means": (f"a = {MEAN.format(2, 0)} (x) y = {MEAN.format(-1, 0)} (a)", 1, "ReduceMean"),
    "a mean of all means": (f"a = {MEAN.format(1, 0)} (x) y = ReduceMean <keepdims: int = 0> (a)", 0, "ReduceMean"),
    "the greatest of the greatest": (f"a = {MAX.format(0, 1)} (x) y = {MAX.format(2, 1)} (a)", 3, "ReduceMax"),
    "the greatest of sums": (f"a = ReduceSum(x, i0) y = {MAX.format(2, 1)} (a)", 3, "ReduceSum ReduceMax"),
    "sums that are read elsewhere": ("a = ReduceSum(x, i0) b = ReduceSum(a, i2) y = Mul(a, b)", 3, "ReduceSum ReduceSum Mul"),
    "sums along an axis that is fed": ("a = ReduceSum(x, z) y = ReduceSum(a, i2)", 3, "ReduceSum ReduceSum"),
    "sums, then along an axis that is fed": ("a = ReduceSum(x, i2) y = ReduceSum(a, z)", 3, "ReduceSum ReduceSum"),
    "means of half precision": (
        f"h = Cast <to: int = 10> (x) a = {MEAN.format(0, 1)} (h) b = {MEAN.format(2, 1)} (a) y = Cast <to: int = 1> (b)", 3,
        "Cast ReduceMean ReduceMean Cast"),
    "sums of half precision": (
        "h = Cast <to: int = 10> (x) a = ReduceSum(h, i0) b = ReduceSum(a, i2) y = Cast <to: int = 1> (b)", 3, "Cast ReduceSum ReduceSum Cast"),
    "sums of integers": ("h = Cast <to: int = 7> (x) a = ReduceSum(h, i0) b = ReduceSum(a, i2) y = Cast <to: int = 1> (b)", 3, "Cast ReduceSum Cast"),
    "means of integers": (
        f"h = Cast <to: int = 6> (x) a = {MEAN.format(0, 1)} (h) b = {MEAN.format(2, 1)} (a) y = Cast <to: int = 1> (b)", 3,
        "Cast ReduceMean ReduceMean Cast"),
    "a sign, then a scale": ("a = Neg(x) y = Mul(k, a)", 3, "Mul"),
    "a quotient, then a sign": ("a = Div(x, c) y = Neg(a)", 3, "Mul"),
    "a sign that is read elsewhere": ("a = Neg(x) b = Mul(a, c) y = Pow(a, b)", 3, "Neg Mul Pow"),
    "a sign of what is read elsewhere": ("a = Mul(x, c) b = Neg(a) y = Pow(a, b)", 3, "Mul Neg Pow"),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_what_stands_twice_is_left_once_or_as_it_is(parse, name):
    text, rank, left = ROWS[name]
    used = read_in(text, CONSTANTS)
    dims = ", ".join(f'"{letter}"' for letter in "pqrs"[:rank])
    second = f", int64[{3 if 'Tile' in text else 2 if 'Gather' in text else 1}] z" if " z)" in text else ""
    graph = parse(f"agraph (float[2, 3, 4] x{second}) => (float[{dims}] y) {{ {text} }}", **used)
    after = labkit.optimize(graph).graph
    assert ops(after) == left.split()
    assert ops(graph) != ops(after) or after is graph, "what stays stays as it is"
    if after is not graph:
        labkit.verify(graph, after)


@pytest.mark.parametrize(
    ("opset", "reduce"), [(12, "<keepdims: int = 0, axes: ints = [-1]> ({})"), (18, "<keepdims: int = 0> ({}, last)")]
)
def test_reductions_in_a_row_name_their_axes_as_their_opset_does(opset, reduce):
    text = f"""<ir_version: 8, opset_import: ["": {opset}]>
        agraph (float["b", 3, 4, 5] x) => (float["b", 3] y) <int64[1] last = {{-1}}> {{
            a = ReduceMean {reduce.format("x")} y = ReduceMean {reduce.format("a")} }}"""
    graph = from_model(onnx.parser.parse_model(text))
    after = labkit.optimize(graph).graph
    assert ops(after) == ["ReduceMean"]
    labkit.verify(graph, after)


M = "m = MatMul(r, w)"
PRODUCTS = {
    "rows": (f"r = Reshape(x, flat) {M} y = Reshape(m, apart)", "MatMul"),
    "rows by flattening": (f"r = Flatten <axis: int = 2> (x) {M} y = Reshape(m, apart)", "MatMul"),
    "rows of an open batch": (f"r = Reshape(x, flat) {M} y = Reshape(m, open)", "MatMul"),
    "rows and a bias": (f"r = Reshape(x, flat) {M} a = Add(m, b) y = Reshape(a, open)", "MatMul Add"),
    "rows and a bias of one number": ("r = Reshape(x, flat) m = Gemm(r, w, one) y = Reshape(m, open)", "MatMul Add"),
    "a gemm without a bias": ("r = Reshape(x, flat) m = Gemm(r, w) y = Reshape(m, open)", "MatMul"),
    "a shape that is computed": (
        f"s = Shape <end: int = 2> (x) t = Concat <axis: int = 0> (s, five) r = Reshape(x, flat) {M} y = Reshape(m, t)", "MatMul"),
    "other rows": (f"r = Reshape(x, flat) {M} y = Reshape(m, other)", "Reshape MatMul Reshape"),
    "rows of other columns": ("r = Reshape(x, pairs) m = MatMul(r, v) y = Reshape(m, open)", "Reshape MatMul Reshape"),
    "other columns behind": (f"r = Reshape(x, flat) {M} y = Reshape(m, swapped)", "Reshape MatMul Reshape"),
    "one axis only": (f"r = Reshape(x, flat) {M} y = Reshape(m, line)", "Reshape MatMul Reshape"),
    "a weighted gemm": ("r = Reshape(x, flat) m = Gemm <alpha: float = 2.0> (r, w, b) y = Reshape(m, open)", "Reshape Gemm Reshape"),
    "a weighted bias": ("r = Reshape(x, flat) m = Gemm <beta: float = 2.0> (r, w, b) y = Reshape(m, open)", "Reshape Gemm Reshape"),
    "a gemm of a transposed matrix": ("r = Reshape(x, flat) m = Gemm <transB: int = 1> (r, wt, b) y = Reshape(m, open)", "Reshape Gemm Reshape"),
    "rows that are read elsewhere": (
        f"r = Reshape(x, flat) {M} e = Reshape(m, open) s = ReduceSum(r) y = Add(e, s)", "Reshape MatMul Reshape ReduceSum Add"),
    "a product that is read elsewhere": (
        f"r = Reshape(x, flat) {M} e = Reshape(m, open) s = ReduceSum(m) y = Add(e, s)", "Reshape MatMul Reshape ReduceSum Add"),
    "rows to a shape that is fed": (f"r = Reshape(x, z) {M} y = Reshape(m, open)", "Reshape MatMul Reshape"),
    "taken apart to a shape that is fed": (f"r = Reshape(x, flat) {M} y = Reshape(m, z3)", "Reshape MatMul Reshape"),
    "no rows": ("r = Exp(x) m = MatMul(r, w) y = Reshape(m, other)", "Exp MatMul Reshape"),
    "a stack of matrices": ("r = Reshape(x, stack) m = MatMul(r, ws) y = Reshape(m, square)", "Reshape MatMul Reshape"),
    "a copied dim": (f"r = Reshape(x, flat) {M} y = Reshape(m, copied)", "Reshape MatMul Reshape"),
}  # fmt: skip
MATRICES = {"w": f(4, 5), "wt": f(5, 4), "v": f(2, 5), "ws": f(3, 4, 4), "square": i(-1, 3, 4), "b": f(5), "one": n(0.5), "flat": i(-1, 4), "apart": i(-1, 3, 5), "open": i(-1, 3, 5),
            "other": i(3, -1, 5), "pairs": i(-1, 2), "swapped": i(-1, 5, 3), "line": i(-1), "five": i(5), "stack": i(3, -1, 4), "copied": i(0, -1, 5)}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_of_rows_does_without_reshapes_or_stays(parse, name):
    text, left = PRODUCTS[name]
    used = read_in(text, MATRICES)
    dims = ", ".join(f'"{letter}"' for letter in ("q" if "line" in text else "qrs"))
    shapes = 'int64["u"] z, int64[3] z3'
    graph = parse(f'agraph (float["b", 3, 4] x, {shapes}) => (float[{dims}] y) {{ {text} }}', **used)
    after = labkit.optimize(graph).graph
    assert ops(after) == left.split()
    if after is not graph:
        labkit.verify(graph, after)


def test_a_zero_copies_a_dim_and_is_none(parse):
    graph = parse("agraph (float[2, 0, 4] x) => (float[0, 5, 5] y) { r = Reshape(x, flat) m = MatMul(r, w) y = Reshape(m, out) }",
                  flat=i(-1, 4), w=f(4, 5), out=i(-1, 0, 5))  # fmt: skip
    assert ops(labkit.optimize(graph).graph) == ["Reshape", "MatMul", "Reshape"]


# name: (shape of x, of the rows, of the bias, of y; operators left)
BIASES = {
    "one for each column": ((2, 3, 4), (6, 4), (5,), (2, 3, 5), "MatMul Add"),
    "a row of them": ((2, 3, 4), (6, 4), (1, 5), (2, 3, 5), "MatMul Add"),
    "one for each row": ((2, 3, 4), (6, 4), (6, 1), (2, 3, 5), "Reshape Gemm Reshape"),
    "one for each element": ((2, 3, 4), (6, 4), (6, 5), (2, 3, 5), "Reshape Gemm Reshape"),
    "one for each column, of one row": ((4,), (1, 4), (5,), (5,), "MatMul Add"),
    "a row of them, of one row": ((4,), (1, 4), (1, 5), (5,), "Reshape Gemm Reshape"),
}


@pytest.mark.parametrize("name", BIASES)
def test_a_bias_of_rows_is_added_where_it_spreads_the_same_way(parse, name):
    x, rows, bias, y, left = BIASES[name]
    graph = parse(
        f"agraph (float{list(x)} x) => (float{list(y)} y) {{ r = Reshape(x, rows) m = Gemm(r, w, b) y = Reshape(m, out) }}",
        rows=i(*rows), w=f(4, 5), b=f(*bias), out=i(*y),
    )  # fmt: skip
    after = labkit.optimize(graph).graph
    assert ops(after) == left.split()
    labkit.verify(graph, after)


def test_a_row_made_of_one_number_is_no_row(parse):
    graph = parse("agraph (float x) => (float[5] y) { r = Reshape(x, rows) m = MatMul(r, w) y = Reshape(m, out) }",
                  rows=i(1, 1), w=f(1, 5), out=i(5))  # fmt: skip
    assert ops(labkit.optimize(graph).graph) == ["Reshape", "MatMul", "Reshape"]


def test_what_the_file_says_of_the_middle_does_not_tell_how_it_was_made():
    """The file declares the shape between the two, though along which axis is fed."""
    text = """<ir_version: 8, opset_import: ["": 17]>
        agraph (float[2, 3, 4] x, int64[1] z) => (float["p"] y) <float[3, 4] a, int64[1] one = {1}> {
            a = ReduceSum <keepdims: int = 0> (x, z) y = ReduceSum <keepdims: int = 0> (a, one) }"""
    graph = from_model(onnx.parser.parse_model(text))
    assert labkit.optimize(graph).graph is graph


def test_operators_in_a_row_on_what_has_no_rank_stay():
    text = """<ir_version: 8, opset_import: ["": 17, "com.acme": 1]>
        agraph (float[2, 3] x, float[1, 2, 3] v) => (float["a"] y, float["b"] z, float["c"] w)
        <int64[1] zero = {0}, int64[1] one = {1}, float[3, 2] m = {1, 2, 3, 4, 5, 6}, int64[2] rows = {-1, 3},
         int64[3] apart = {1, 2, 2}> {
            f = com.acme.F(x) g = Gather(f, zero) y = Gather(g, zero) r = ReduceSum(f, zero) z = ReduceSum(r, one)
            a = Reshape(f, rows) p = MatMul(a, m) e = Exp(f) u = Reshape(v, rows) t = Flatten <axis: int = 2> (v)
            q = MatMul(u, e) b = Gemm(t, m, e)
            s = Reshape(q, apart) k = Reshape(b, apart) w = Concat <axis: int = 0> (p, s, k) }"""
    graph = from_model(onnx.parser.parse_model(text))
    assert labkit.optimize(graph).graph is graph
