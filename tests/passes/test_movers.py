"""Affine maps behind Transposes and reshapes: absorbed where their values still meet the channels in front."""

import pytest

import labkit
from tests.passes.test_catalogue import f, i, read_in

BN = "BatchNormalization"
SWAP = "Transpose <perm: ints = [0, 1, 3, 2]>"
LAST = "Transpose <perm: ints = [0, 2, 3, 1]>"


def ops(graph):
    return [node.op for node in graph.nodes]


# name: (nodes from x, which is float[1, 3, 4, 5], to y; rank of y; operators left)
ROWS = {
    "a row of pixels squeezed": (f"a = ReduceMax <axes: ints = [2]> (x) c = Conv(a, w) s = Squeeze(c, one) y = {BN} (s, k, k, k, k)", 3,
                                 "ReduceMax Conv Squeeze"),
    "pixels in one row": (f"c = Conv(x, w) r = Reshape(c, row) y = {BN} (r, k, k, k, k)", 3, "Conv Reshape"),
    "rows and columns swapped, then in one row": (
        f"c = Conv(x, w, k) t = {SWAP} (c) r = Reshape(t, row) y = {BN} (r, k, k, k, k)", 3, "Conv Transpose Reshape"),
    "between two reshapes": (
        f"c = Conv(x, w) r = Reshape(c, row) n = {BN} (r, k, k, k, k) e = Relu(n) u = Reshape(e, image) y = Conv(u, w)", 4,
        "Conv Relu Conv"),
    "a product by pixels, channels to the front": (
        f"t = {LAST} (x) r = Reshape(t, rows) e = Exp(r) m = MatMul(e, v) b = Reshape(m, last) "
        f"p = Transpose <perm: ints = [0, 3, 1, 2]> (b) y = {BN} (p, k, k, k, k)", 4,
        "Exp Transpose MatMul Add Transpose"),
    "a scale of channels that went last": (f"c = Conv(x, w) t = {LAST} (c) r = Reshape(t, rows) y = Mul(r, k)", 2, "Conv Transpose Reshape"),
    "channels that went last, rows normalised": (
        f"c = Conv(x, w) t = {LAST} (c) y = {BN} (t, four, four, four, four)", 4, f"Conv Transpose {BN}"),
    "channels and rows joined": (f"c = Conv(x, w) r = Reshape(c, joined) y = {BN} (r, twelve, twelve, twelve, twelve)", 3, f"Conv Reshape {BN}"),
    "channels taken apart": (f"c = Conv(x, w) r = Reshape(c, apart) y = {BN} (r, five, five, five, five)", 4, f"Conv Reshape {BN}"),
    "a mover that is read elsewhere": (
        f"c = Conv(x, w) r = Reshape(c, row) n = {BN} (r, k, k, k, k) y = Add(n, r)", 3, f"Conv Reshape {BN} Add"),
    "a conv that is read elsewhere": (
        f"c = Conv(x, w) r = Reshape(c, row) n = {BN} (r, k, k, k, k) e = Exp(c) u = Reshape(e, row) y = Add(n, u)", 3,
        f"Conv Reshape {BN} Exp Reshape Add"),
    "the statistics of the batch": (
        f"c = Conv(x, w) r = Reshape(c, row) y, m, s = {BN} <training_mode: int = 1> (r, k, k, k, k)", 3, f"Conv Reshape {BN}"),
    "a mean of the batch": (
        f"o, m, s = {BN} <training_mode: int = 1> (x, k, k, k, k) u = Unsqueeze(m, two) a = Add(u, kk) z = Mul(o, a) y = Neg(z)", 4,
        f"{BN} Add Unsqueeze Mul Neg"),
    "weights that are computed": (
        f"g = Exp(w) h = Mul(g, x1) c = Conv(x, h) r = Reshape(c, row) y = {BN} (r, k, k, k, k)", 3, f"Mul Conv Reshape {BN}"),
    "what has no weights": (f"e = Exp(x) r = Reshape(e, row) y = {BN} (r, k, k, k, k)", 3, f"Exp Reshape {BN}"),
}  # fmt: skip
CONSTANTS = {"w": f(3, 3, 1, 1), "v": f(3, 3), "k": f(3), "kk": f(3, 1, 1), "single": f(1), "four": f(4), "five": f(5), "twelve": f(12), "one": i(2), "two": i(1, 2),
             "row": i(1, 3, 20), "image": i(1, 3, 4, 5), "rows": i(20, 3), "last": i(1, 4, 5, 3), "joined": i(1, 12, 5),
             "apart": i(1, 5, 4, 3)}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_an_affine_map_behind_movers_meets_its_channels_or_stays(parse, name):
    text, rank, left = ROWS[name]
    used = read_in(text, CONSTANTS)
    shape = ", ".join(f'"d{axis}"' for axis in range(rank))
    extra = ", float x1" if "x1" in text else ""
    graph = parse(f"agraph (float[1, 3, 4, 5] x{extra}) => (float[{shape}] y) {{ {text} }}", **used)
    after = labkit.optimize(graph).graph
    assert ops(after) == left.split()
    labkit.verify(graph, after)


def test_a_map_that_may_be_fed_is_left_behind_its_movers(parse):
    graph = parse(
        f"agraph (float[1, 3, 4, 5] x, float[3] k) => (float[1, 3, 20] y) {{ c = Conv(x, w) r = Reshape(c, row) y = {BN} (r, k, k, k, k) }}",
        w=f(3, 3, 1, 1), row=i(1, 3, 20),
    )  # fmt: skip
    assert labkit.optimize(graph).graph is graph


@pytest.mark.parametrize("opset", [8, 17])
def test_statistics_for_each_position_are_no_map_of_channels(parse, opset):
    spatial = " <spatial: int = 0>" if opset == 8 else ""
    graph = parse(
        f"agraph (float[1, 3, 4, 1] x) => (float[1, 3, 4] y) {{ c = Conv(x, w) r = Reshape(c, row) y = {BN}{spatial} (r, k, k, k, k) }}",
        opset, w=f(3, 3, 1, 1), row=i(1, 3, 4), k=f(3, 4) if spatial else f(3),
    )  # fmt: skip
    assert ops(labkit.optimize(graph).graph) == (["Conv", "Reshape", BN] if spatial else ["Conv", "Reshape"])


@pytest.mark.parametrize(
    "text",
    [
        f"c = Conv(x, w) r = Reshape(c, t) y = {BN} (r, k, k, k, k)",
        f"r = Reshape(x, t) m = {BN} (r, k, k, k, k) s = Reshape(m, row) y = {BN} (s, k, k, k, k)",
        f"r = Reshape(x, t) m = {BN} (r, k, k, k, k) s = Reshape(m, row) y = Relu(s)",
        f"r = Reshape(x, t) m = {BN} (r, k, k, k, k) s = Reshape(m, row) y = Mul(s, single)",
    ],
    ids=["behind the mover", "in front of it", "under elementwise work", "under a scale"],
)
def test_channels_of_an_unknown_rank_are_nowhere(parse, text):
    inputs = 'float[1, 3, 4, 5] x, int64["rank"] t'
    used = read_in(text, CONSTANTS)
    graph = parse(f'agraph ({inputs}) => (float["a", "b", "c"] y) {{ {text} }}', **used)
    assert labkit.optimize(graph).graph is graph


def test_statistics_of_another_size_than_the_channels_of_a_transposed_conv_are_refused(parse):
    """Such a model is not valid; it must not end in an error of NumPy's."""
    graph = parse(
        f'agraph (float[1, "channels", 6, 6] x) => (float["a", "b", "c", "d"] y) {{ m = {BN} (x, k, k, k, k) y = ConvTranspose(m, w) }}',
        k=f(4), w=f(3, 2, 3, 3),
    )  # fmt: skip
    report = labkit.optimize(graph)
    assert report.graph is graph
    assert [refusal.guard for refusal in report.refusals] == ["channels"]
