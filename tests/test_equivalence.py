"""verify() is itself a judge: it must see small faults and must not see rounding."""

from dataclasses import replace

import numpy as np
import pytest

import labkit
from labkit import equivalence
from labkit.errors import LabError, NotEquivalent

RNG = np.random.default_rng(11)
W = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)


@pytest.fixture(params=["onnxruntime", "labkit"])
def either_judge(request, monkeypatch):
    """Both judges: onnxruntime, and the interpreter that stands in where it is not installed."""
    if request.param == "labkit":
        monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    return request.param


def conv(parse, weight=W, tail="y = Relu(c)"):
    return parse(f'agraph (float[1, 3, 9, 9] x) => (float[1, 4, "h", "w"] y) {{ c = Conv(x, w) {tail} }}', w=weight)


def test_equal_graphs_are_equivalent_on_every_draw(parse, either_judge):
    verdict = labkit.verify(conv(parse), conv(parse))
    assert (verdict.max_abs, verdict.max_rel, verdict.inputs, verdict.judge) == (0.0, 0.0, 6, either_judge)


def test_rounding_passes(parse, either_judge):
    assert labkit.verify(conv(parse), conv(parse, W * np.float32(1 + 1e-6))).max_rel < 1e-5


def test_a_result_written_as_double_is_no_more_exact_than_what_computed_it(parse, either_judge):
    """Digits that float32 lost do not come back; what is double all the way is held to 1e-9."""
    text = "agraph ({0}[9] x) => (double[9] y) {{ a = Mul(x, k) y = Cast <to: int = 11> (a) }}"
    k = np.full(9, 3.0)
    one, two = (parse(text.format("float"), k=(k * (1 + fault)).astype(np.float32)) for fault in (0, 1e-6))
    assert labkit.verify(one, two).max_rel > 1e-9
    one, two = (parse(text.format("double"), k=k * (1 + fault)) for fault in (0, 1e-6))
    with pytest.raises(NotEquivalent):
        labkit.verify(one, two)


def test_of_what_a_nan_becomes_one_judge_in_two_has_to_see_no_difference(parse):
    """onnxruntime makes −inf of a MaxPool's NaN times 2, NumPy NaN: without the pool both say NaN."""
    one = parse("agraph (float[1, 4, 600] x) => (float[1, 4, 600] y) "
                "{ p = MaxPool <kernel_shape: ints = [1]> (x) y = Mul(p, k) }", k=np.float32(2))  # fmt: skip
    two = parse("agraph (float[1, 4, 600] x) => (float[1, 4, 600] y) { y = Mul(x, k) }", k=np.float32(2))
    labkit.verify(one, two)


def test_the_judges_may_take_turns_from_output_to_output(parse):
    """Of a NaN one output is the same by onnxruntime only, the other by NumPy only."""
    frame = """agraph (float[1, 4, 600] x) => (float[1, 4, 600] y, float[1, 4, 600] z) {{
        p = MaxPool {} y = Mul({}, k) z = {}(p) }}"""
    pool, k = "<kernel_shape: ints = [1]> (x)", np.float32(2)
    one, two, wrong = (parse(frame.format(pool, *rest), k=k) for rest in (("p", "Relu"), ("x", "Relu"), ("x", "Abs")))
    labkit.verify(one, two)
    with pytest.raises(NotEquivalent, match="output 'z'"):
        labkit.verify(one, wrong)


def test_where_the_greatest_of_nan_stands_one_judge_in_two_has_to_see_no_difference(parse):
    frame = "agraph (float[3] x) => (int64 y) {{ {} }}"
    nan = np.array([1, np.nan, 2], np.float32)
    one = parse(frame.format("p = Identity(k) y = ArgMax <keepdims: int = 0> (p)"), k=nan)
    labkit.verify(one, parse(frame.format("y = Identity(k)"), k=np.array(1)))
    with pytest.raises(NotEquivalent, match="int64 must be equal"):
        labkit.verify(one, parse(frame.format("y = Identity(k)"), k=np.array(0)))


def test_an_output_that_only_onnxruntime_can_run_does_not_hide_the_other_judge_s_word(parse):
    """ONNX's reference has no MaxRoiPool: about the NaN of y it is still asked."""
    frame = """agraph (float[1, 4, 600] x, float[1, 1, 2, 2] u) => (float[1, 4, 600] y, float[1, 1, 2, 2] z) {{
        z = MaxRoiPool <pooled_shape: ints = [2, 2]> (u, r)
        p = MaxPool <kernel_shape: ints = [1]> (x) y = Mul({}, k) }}"""
    constants = {"k": np.float32(2), "r": np.float32([[0, 0, 0, 1, 1]])}
    one, two = (parse(frame.format(read), 9, **constants) for read in ("p", "x"))
    labkit.verify(one, two)
    with pytest.raises(NotEquivalent, match="output 'y'"):
        labkit.verify(one, parse(frame.format("x"), 9, **{**constants, "k": np.float32(3)}))


def test_a_rounding_to_half_that_onnxruntime_leaves_out_is_no_difference(parse):
    """Behind the Identity it casts what was rounded to half, without it what was not: 2 and 1.9998 are then 2 and 1."""
    frame = "agraph (float16[64, 64] x) => (int64[64, 64] y) {{ {} y = Cast <to: int = 7> ({}) }}"
    k = np.float16(3.3)
    one = parse(frame.format("m = Mul(x, k) i = Identity(m)", "i"), k=k)
    labkit.verify(one, parse(frame.format("m = Mul(x, k)", "m"), k=k))
    with pytest.raises(NotEquivalent):
        labkit.verify(one, parse(frame.format("m = Mul(x, k)", "m"), k=np.float16(3.4)))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"weight": W * np.float32(1.001)}, "became"),
        ({"weight": -W}, "became"),
        ({"tail": "n = Neg(c) m = Relu(n) y = Neg(m)"}, "became"),
        ({"tail": "z = Sub(c, c) n = Div(z, z) y = Max(c, n)"}, "NaN or infinity"),
        ({"tail": "y = Transpose <perm: ints = [0, 1, 3, 2]> (c)"}, "became"),
        ({"tail": "y = GlobalAveragePool(c)"}, r"float32 \(1, 4, 7, 7\) became float32 \(1, 4, 1, 1\)"),
    ],
)
def test_a_planted_fault_is_seen_and_described(parse, either_judge, fault, message):
    with pytest.raises(NotEquivalent, match=message):
        labkit.verify(conv(parse, tail="y = Identity(c)"), conv(parse, **{"tail": "y = Identity(c)", **fault}))


def test_swapped_outputs_of_equal_shape_are_seen(parse, either_judge):
    one = parse("agraph (float[3] x) => (float[3] y, float[3] z) { y = Relu(x) z = Neg(x) }")
    two = parse("agraph (float[3] x) => (float[3] y, float[3] z) { z = Relu(x) y = Neg(x) }")
    with pytest.raises(NotEquivalent, match="output 'y'"):
        labkit.verify(one, two)


def test_another_element_type_is_seen(parse, either_judge):
    one = parse("agraph (float[3] x) => (float[3] y) { y = Relu(x) }")
    two = parse("agraph (float[3] x) => (double[3] y) { a = Relu(x) y = Cast <to: int = 11> (a) }")
    with pytest.raises(NotEquivalent, match="float32"):
        labkit.verify(one, two)


def test_a_fault_that_only_negative_inputs_show_is_seen(parse, either_judge):
    pad = "p = Constant <value = int64[8] {0, 0, 1, 1, 0, 0, 1, 1}> () y = MaxPool <kernel_shape: ints = [3, 3]"
    one = parse(
        f'agraph (float[1, 1, 3, 3] x) => (float[1, 1, "h", "w"] y) {{ {pad}> (q) }}'.replace(
            "y = M", "q = Pad(x, p) y = M"
        )
    )
    two = parse(
        f'agraph (float[1, 1, 3, 3] x) => (float[1, 1, "h", "w"] y) {{ {pad}, pads: ints = [1, 1, 1, 1]> (x) }}'
    )
    with pytest.raises(NotEquivalent, match=r"\((normal|normal again|negative) inputs\)"):
        labkit.verify(one, two)


def test_another_interface_is_seen(parse):
    one = parse("agraph (float[3] x) => (float[3] y) { y = Relu(x) }")
    two = parse("agraph (float[3] z) => (float[3] y) { y = Relu(z) }")
    with pytest.raises(NotEquivalent, match="inputs are x in one graph and z in the other"):
        labkit.verify(one, two)


def test_a_model_that_no_draw_suits_is_an_error_not_a_success(parse):
    graph = parse("agraph (float[3] x) => (float[3] y) { y = Relu(x) }")
    broken = replace(graph, nodes=(replace(graph.nodes[0], op="Magic", domain="com.acme"),))
    with pytest.raises(LabError, match="could not run on any input"):
        labkit.verify(broken, broken)


def test_the_draws_hold_what_their_names_say(parse):
    graph = parse('agraph (float["n", 50] x, int64[3] i, bool[4] b) => (float["n", 50] x, int64[3] i, bool[4] b) {}')
    drawn = dict(equivalence.draws(graph, 0))
    assert drawn["normal"]["x"].shape == (2, 50)
    assert (drawn["negative"]["x"] <= 0).all()
    assert set(np.signbit(drawn["zeros"]["x"]).ravel()) == {True, False}
    assert not drawn["zeros"]["x"].any()
    tiny = np.abs(drawn["denormals"]["x"])
    assert (tiny < np.finfo(np.float32).tiny).all()
    assert tiny.any()
    odd = parse("agraph (float[4000] x) => (float[4000] x) {}")
    strange = dict(equivalence.draws(odd, 0))["NaN and infinities"]["x"]
    assert np.isnan(strange).any()
    assert np.isposinf(strange).any()
    assert np.isneginf(strange).any()
    assert np.isfinite(strange).mean() > 0.9


@pytest.mark.parametrize("op", ["then", "else"])
@pytest.mark.parametrize("seed", range(4))
def test_a_fault_in_either_branch_of_an_if_is_seen_by_ordinary_numbers(parse, either_judge, op, seed):
    """Of negative numbers Abs is Neg, so the draw of those does not tell."""
    frame = """agraph (float[30] x, bool c) => (float[30] y) {{ y = If (c) <
        then_branch = t () => (float[30] p) {{ p = {then}(x) }},
        else_branch = e () => (float[30] q) {{ q = {else}(x) }}> }}"""
    plain = {"then": "Neg", "else": "Neg"}
    with pytest.raises(NotEquivalent, match="normal"):
        labkit.verify(parse(frame.format(**plain)), parse(frame.format(**{**plain, op: "Abs"})), seed=seed)


def test_a_saturated_sigmoid_may_round_at_the_scale_of_one(parse):
    """Weights that push every output to about 1e-7: the sigmoid itself is no more exact than that."""
    text = "c = Mul(x, k) d = Sub(c, b) y = Sigmoid(d)"
    one = parse(f"agraph (float[64] x) => (float[64] y) {{ {text} }}", k=np.float32(0.5), b=np.float32(15.5))
    two = parse(f"agraph (float[64] x) => (float[64] y) {{ {text} }}", k=np.float32(0.5), b=np.float32(15.502))
    assert labkit.verify(one, two).max_abs < 1e-6
    three = parse(f"agraph (float[64] x) => (float[64] y) {{ {text} }}", k=np.float32(0.5), b=np.float32(9))
    with pytest.raises(NotEquivalent):
        labkit.verify(one, three)
