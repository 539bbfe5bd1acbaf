"""Each rule of the tables: what it rewrites, and each guard that stops it."""

import numpy as np
import pytest

import labkit
from labkit.passes.fold import FoldConstant
from labkit.passes.pipeline import PASSES
from labkit.passes.rewriting import Sweep, explain

RNG = np.random.default_rng(7)
NO_OPS, MERGES, FOLD, AFFINE = (PASSES[name] for name in ("no-ops", "merges", "fold", "affine"))


def ops(graph):
    return [node.op for node in graph.nodes]


def guards(graph, sweep):
    return [refusal.guard for refusal in explain(graph, (sweep,))]


# --- no-ops ---


def test_dropout_goes_at_inference_and_stays_when_its_mask_is_read(parse):
    gone = parse("agraph (float[2] x) => (float[2] y) { a, mask = Dropout(x) y = Relu(a) }")
    kept = parse("agraph (float[2] x) => (float[2] y, bool[2] mask) { a, mask = Dropout(x) y = Relu(a) }")
    assert ops(NO_OPS(gone)) == ["Relu"]
    assert NO_OPS(kept) is kept
    assert guards(kept, NO_OPS) == ["mask is read"]


def test_dropout_stays_when_training_or_when_a_caller_decides(parse):
    text = "a = Dropout(x, r, t) y = Relu(a)"
    ratio, true = np.float32(0.5), np.array(True)
    training = parse(f"agraph (float[2] x) => (float[2] y) {{ {text} }}", r=ratio, t=true)
    caller = parse(f"agraph (float[2] x, bool t) => (float[2] y) {{ {text} }}", r=ratio)
    off = parse(f"agraph (float[2] x) => (float[2] y) {{ {text} }}", r=ratio, t=~true)
    assert guards(training, NO_OPS) == guards(caller, NO_OPS) == ["training mode"]
    assert NO_OPS(training) is training
    assert NO_OPS(caller) is caller
    assert ops(NO_OPS(off)) == ["Relu"]


@pytest.mark.parametrize("target", ["{2, 3}", "{0, 0}", "{0, -1}", "{-1, 3}"])
@pytest.mark.parametrize("batch", ["2", '"n"'])
def test_a_reshape_to_its_own_shape_goes_with_a_dynamic_batch_too(parse, target, batch):
    text = f"s = Constant <value = int64[2] {target}> () r = Relu(x) a = Reshape(r, s) y = Neg(a)"
    graph = parse(f"agraph (float[{batch}, 3] x) => (float[{batch}, 3] y) {{ {text} }}")
    provable = batch == "2" or target != "{2, 3}"
    assert ops(NO_OPS(graph)) == (["Relu", "Neg"] if provable else ["Relu", "Reshape", "Neg"])


def test_a_reshape_that_only_keeps_the_element_count_stays(parse):
    text = "s = Constant <value = int64[2] {3, 2}> () y = Reshape(x, s)"
    graph = parse(f"agraph (float[2, 3] x) => (float[3, 2] y) {{ {text} }}")
    assert NO_OPS(graph) is graph


TRANSPOSES = [
    ((2, 3, 4), (0, 1, 2), True),
    ((1, 1, 4), (1, 0, 2), True),
    ((1, 3, 1), (2, 1, 0), True),
    ((2, 2, 4), (1, 0, 2), False),
    ((1, 3, 4), (1, 0, 2), False),
]


@pytest.mark.parametrize(("shape", "perm", "goes"), TRANSPOSES)
def test_a_transpose_goes_when_no_element_moves(parse, shape, perm, goes):
    dims, out = ", ".join(map(str, shape)), ", ".join(str(shape[axis]) for axis in perm)
    text = f"a = Relu(x) t = Transpose <perm: ints = {list(perm)}> (a) y = Neg(t)"
    graph = parse(f"agraph (float[{dims}] x) => (float[{out}] y) {{ {text} }}")
    assert ops(NO_OPS(graph)) == (["Relu", "Neg"] if goes else ["Relu", "Transpose", "Neg"])


# --- merges ---


@pytest.mark.parametrize("first", [(1, 2, 0), (2, 0, 1), (0, 2, 1), None])
@pytest.mark.parametrize("second", [(1, 2, 0), (2, 1, 0), None])
def test_transposes_in_a_row_become_one_or_none_as_numpy_composes_them(parse, first, second):
    def spell(perm):
        return f"<perm: ints = {list(perm)}>" if perm else ""

    text = f"a = Relu(x) b = Transpose {spell(first)} (a) c = Transpose {spell(second)} (b) y = Neg(c)"
    graph = parse(f'agraph (float[2, 3, 4] x) => (float["a", "b", "c"] y) {{ {text} }}')
    after = labkit.optimize(graph).graph
    x = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    expected = -np.maximum(x, 0).transpose(first).transpose(second)
    np.testing.assert_array_equal(labkit.run(after, {"x": x})["y"], expected)
    same = expected.shape == x.shape and np.array_equal(expected, -np.maximum(x, 0))
    assert ops(after).count("Transpose") == (0 if same else 1)


def test_a_transpose_that_others_read_too_stays_for_them(parse):
    text = "a = Transpose <perm: ints = [1, 0]> (x) y = Transpose <perm: ints = [1, 0]> (a) z = Relu(a)"
    graph = parse(f"agraph (float[2, 3] x) => (float[2, 3] y, float[3, 2] z) {{ {text} }}")
    after = MERGES(graph)
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    found = labkit.run(after, {"x": x})
    np.testing.assert_array_equal(found["y"], x)
    np.testing.assert_array_equal(found["z"], np.maximum(x.T, 0))


# --- folding ---


def test_a_constant_subgraph_becomes_one_constant_that_owns_its_bytes(parse):
    text = (
        "k = Constant <value = float[2, 3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}> () t = Transpose(k) u = Neg(t) y = Add(x, u)"
    )
    graph = parse(f"agraph (float[3, 2] x) => (float[3, 2] y) {{ {text} }}")
    after = FOLD(graph)
    assert ops(after) == ["Add"]
    folded = after.constants["u"]
    assert folded.base is not None
    assert not np.shares_memory(folded, graph.constants["k"])
    np.testing.assert_array_equal(folded, -np.arange(1, 7, dtype=np.float32).reshape(2, 3).T)


def test_folding_a_shape_makes_the_types_behind_it_known(parse):
    text = """a = Constant <value = int64[1] {2}> () b = Constant <value = int64[1] {-1}> ()
              s = Concat <axis: int = 0> (a, b) y = Reshape(x, s)"""
    graph = parse(f'agraph (float[4, 3] x) => (float["p", "q"] y) {{ {text} }}')
    assert graph.nodes[-1].output.shape == ("?y.0", "?y.1")
    assert FOLD(graph).nodes[-1].output.shape == (2, 6)


def test_folding_that_would_bloat_the_model_is_refused_with_both_sizes(parse):
    text = "s = Constant <value = int64[2] {4096, 4096}> () k = ConstantOfShape(s) y = Add(x, k)"
    graph = parse(f"agraph (float[1, 1] x) => (float[4096, 4096] y) {{ {text} }}")
    assert FOLD(graph) is graph
    (refusal,) = explain(graph, (FOLD,))
    assert refusal.guard == "size limit"
    assert "64 MiB of result, 64 KiB allowed" in str(refusal)


def test_a_hostile_size_is_refused_before_anything_is_allocated(parse):
    text = "s = Constant <value = int64[1] {17592186044416}> () k = ConstantOfShape(s) y = Add(x, k)"
    graph = parse(f'agraph (float[1] x) => (float["n"] y) {{ {text} }}')
    assert labkit.optimize(graph).graph is graph


def test_the_limit_is_an_option_of_the_rule(parse):
    text = "s = Constant <value = int64[1] {1000}> () k = ConstantOfShape(s) y = Add(x, k)"
    graph = parse(f"agraph (float[1] x) => (float[1000] y) {{ {text} }}")
    assert ops(Sweep("fold", {"*": (FoldConstant(limit_bytes=4000),)})(graph)) == ["Add"]
    assert Sweep("fold", {"*": (FoldConstant(limit_bytes=3999),)})(graph) is graph


def test_random_results_and_overridable_constants_are_never_folded(parse):
    k = np.ones(2, np.float32)
    random = parse("agraph (float[2] x) => (float[2] y) { r = RandomNormalLike(k) y = Add(x, r) }", k=k)
    assert FOLD(random) is random
    assert guards(random, FOLD) == ["random"]
    overridable = parse("agraph (float[2] x, float[2] k) => (float[2] y) { n = Exp(k) y = Add(x, n) }", k=k)
    assert labkit.optimize(overridable).graph is overridable
    assert guards(overridable, FOLD) == ["overridable"]


# --- BatchNormalization into Conv ---


STATISTICS = ("w", "s", "b", "m", "v")


def conv_bn(
    parse,
    conv="Conv(x, w)",
    bn="n = BatchNormalization <epsilon: float = 0.001> (c, s, b, m, v)",
    tail="y = Relu(n)",
    outputs='float[1, 4, "h"] y',
    inputs="float[1, 4, 9] x",
    opset=17,
    variance=1.0,
    constants=STATISTICS,
    group=1,
):
    """A Conv → BatchNormalization → Relu over one spatial axis, with whatever one test wants different."""
    arrays = {"w": RNG.standard_normal((4, 4 // group, 3)), "v": np.full(4, variance)}
    arrays |= {name: RNG.standard_normal(4) for name in "ksbm"}
    chosen = {name: arrays[name].astype(np.float32) for name in (*constants, "k")}
    return parse(f"agraph ({inputs}) => ({outputs}) {{ c = {conv} {bn} {tail} }}", opset, **chosen)


def assert_equal_by(judge, graph, after):
    feeds = {"x": RNG.standard_normal((1, 4, 9)).astype(np.float32)}
    for one, two in zip(judge(graph, feeds), judge(after, feeds), strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-5)  # one rounding of each weight, sums of 12 terms


@pytest.mark.parametrize("opset", [9, 13, 14, 15, 17])
@pytest.mark.parametrize(
    "conv", ["Conv(x, w)", "Conv(x, w, k)", "Conv <dilations: ints = [2], pads: ints = [1, 2]> (x, w)"]
)
def test_batch_norm_behind_a_conv_is_folded_at_every_opset_with_and_without_bias(parse, judge, opset, conv):
    graph = conv_bn(parse, conv=conv, opset=opset)
    after = labkit.optimize(graph).graph
    assert ops(after) == ["Conv", "Relu"]
    assert_equal_by(judge, graph, after)


@pytest.mark.parametrize("group", [2, 4])
def test_grouped_and_depthwise_convs_scale_their_own_channels(parse, judge, group):
    graph = conv_bn(parse, conv=f"Conv <group: int = {group}> (x, w)", group=group)
    after = labkit.optimize(graph).graph
    assert ops(after) == ["Conv", "Relu"]
    assert_equal_by(judge, graph, after)


def test_convs_that_share_a_weight_each_get_their_own_copy(parse, judge):
    tail = "c2 = Conv(x, w) y = Add(n, c2)"
    graph = conv_bn(parse, tail=tail)
    after = labkit.optimize(graph).graph
    assert sorted(ops(after)) == ["Add", "Conv", "Conv"]
    assert_equal_by(judge, graph, after)


def test_a_shift_alone_makes_no_copy_of_the_weight(parse, judge):
    text = "agraph (float[1, 4, 9] x) => (float[1, 4, 7] y) { c = Conv(x, w) y = Add(c, t) }"
    weight, shift = (RNG.standard_normal(shape).astype(np.float32) for shape in ((4, 4, 3), (4, 1)))
    graph = parse(text, w=weight, t=shift)
    (conv,) = labkit.optimize(graph).graph.nodes
    assert conv.inputs[1].name == "w"
    assert_equal_by(judge, graph, labkit.optimize(graph).graph)


@pytest.mark.parametrize(
    ("guard", "different"),
    [
        ("second reader", {"tail": "r = Relu(n) y = Add(r, c)"}),
        ("second reader", {"outputs": 'float[1, 4, "h"] y, float[1, 4, "h"] c'}),
        ("constant", {"inputs": "float[1, 4, 9] x, float[4, 4, 3] w", "constants": ("s", "b", "m", "v")}),
        ("constant", {"inputs": "float[1, 4, 9] x, float[4] s"}),  # overridable: an input with a default
        ("constant", {"inputs": "float[1, 4, 9] x, float[4] q", "conv": "Conv(x, w, q)"}),
        ("training mode", {"bn": "n = BatchNormalization <training_mode: int = 1> (c, s, b, m, v)"}),
        ("finite", {"variance": -1.0}),
        ("finite", {"variance": -0.001}),
    ],
)  # fmt: skip
def test_each_guard_refuses_the_fold_and_says_so(parse, guard, different):
    graph = conv_bn(parse, **different)
    assert AFFINE(graph) is graph
    assert guards(graph, AFFINE) == [guard]


def test_before_opset_14_further_outputs_mean_training_mode(parse):
    inference = conv_bn(parse, bn="n = BatchNormalization (c, s, b, m, v)", opset=9)
    assert ops(AFFINE(inference)) == ["Conv", "Relu"]
    training = conv_bn(parse, bn="n, m2, v2, sm, sv = BatchNormalization (c, s, b, m, v)", opset=9)
    assert AFFINE(training) is training
    assert guards(training, AFFINE) == ["training mode"]


def test_per_element_statistics_of_opset_7_are_left_alone(parse):
    graph = conv_bn(parse, bn="n = BatchNormalization <spatial: int = 0> (c, s, b, m, v)", opset=7)
    assert guards(graph, AFFINE) == ["per element"]


def test_half_precision_weights_that_would_overflow_are_left_alone(parse):
    text = "c = Conv(x, w) y = BatchNormalization(c, s, b, b, v)"
    large, zero, one = (np.full(1, value, np.float16) for value in (1000, 0, 1))
    graph = parse(f"agraph (float16[1, 1, 4] x) => (float16[1, 1, 4] y) {{ {text} }}",
                  w=large.reshape(1, 1, 1), s=large, b=zero, v=one)  # fmt: skip
    assert AFFINE(graph) is graph
    assert guards(graph, AFFINE) == ["finite"]
