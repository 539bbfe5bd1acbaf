"""An ArgMax behind what keeps the order of elements: gone where rounding hardly ties them, kept where it does."""

import numpy as np
import pytest

import labkit
from labkit.errors import NotEquivalent
from labkit.ties import left_open

RNG = np.random.default_rng(31)
ALONG = "agraph ({0}[4, 3] x) => (int64[4, 1] y) {{ s = {1} <axis: int = {2}> (x) y = {3} <axis: int = {4}> (s) }}"


def ops(graph):
    return [node.op for node in graph.nodes]


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(
    ("dtype", "axis", "place", "opset"),
    [("float", 1, 1, 13), ("double", -1, 1, 17), ("float", 1, -1, 21), ("float", 1, 1, 11)],
)
def test_argmax_reads_what_a_softmax_along_its_axis_reads(parse, judge, op, dtype, axis, place, opset):
    graph = parse(ALONG.format(dtype, op, axis, "ArgMax", place), opset)
    after = labkit.optimize(graph).graph
    assert ops(after) == ["ArgMax"]
    labkit.verify(graph, after)
    x = RNG.standard_normal((4, 3)).astype("float32" if dtype == "float" else "float64")
    np.testing.assert_array_equal(judge(after, {"x": x})[0], judge(graph, {"x": x})[0])


def test_argmax_of_a_chain_of_them_reads_the_first_input(parse):
    graph = parse("agraph (float[4, 3] x) => (int64[4, 1] y) "
                  "{ s = Softmax (x) l = LogSoftmax (s) i = Identity(l) y = ArgMax <axis: int = -1> (i) }")  # fmt: skip
    after = labkit.optimize(graph).graph
    assert ops(after) == ["ArgMax"]
    labkit.verify(graph, after)


@pytest.mark.parametrize(
    ("text", "opset", "refused"),
    [
        (ALONG.format("float", "Softmax", 0, "ArgMax", 1), 17, []),
        (ALONG.format("float", "Softmax", 1, "ArgMin", 1), 17, ["ties"]),  # exp(−200) and exp(−300) are both 0
        (ALONG.format("float16", "Softmax", 1, "ArgMax", 1), 17, ["ties"]),
        ("agraph (float[4, 3] x) => (int64[4, 1] y) { s = Exp(x) y = ArgMax <axis: int = 1> (s) }", 17, ["ties"]),
        ("agraph (float[4, 3, 2] x) => (int64[4, 1, 2] y) { s = Softmax(x) y = ArgMax <axis: int = 1> (s) }", 11, []),
        ("agraph (float[4, 3] x) => (int64[4, 1] y, float[4, 3] s) { s = Softmax(x) y = ArgMax <axis: int = 1> (s) }",
         17, []),
    ],
    ids=["another axis", "the smallest", "half precision", "what overflows", "all axes behind", "read elsewhere"],
)  # fmt: skip
def test_what_ties_far_elements_or_runs_over_others_stays(parse, text, opset, refused):
    graph = parse(text, opset)
    report = labkit.optimize(graph)
    assert report.graph is graph
    assert [refusal.guard for refusal in report.refusals] == refused


@pytest.mark.parametrize(("op", "x"), [("Exp", [200, 300]), ("Sigmoid", [20, 25]), ("Tanh", [10, 11])])
def test_what_stays_would_change_the_answer(parse, judge, op, x):
    """The second is the larger one, but not for onnxruntime."""
    graph = parse(f"agraph (float[2] x) => (int64[1] y) {{ s = {op} (x) y = ArgMax <axis: int = -1> (s) }}")
    assert labkit.optimize(graph).graph is graph
    assert judge(graph, {"x": np.array(x, np.float32)})[0] == [0]


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 10, 1000, 20_000])
def test_onnxruntime_ties_only_what_lies_within_the_stated_distance(parse, judge, op, dtype, n):
    """Rows of near-equal elements, of every size, and ordinary ones: how far below the largest is the one named?"""
    kind = "float" if dtype == "float32" else "double"
    graph = parse(f"agraph ({kind}[100, {n}] x) => (int64[100, 1] y) "
                  f"{{ s = {op} (x) y = ArgMax <axis: int = -1> (s) }}")  # fmt: skip
    epsilon = np.finfo(dtype).eps
    farthest = 0.0
    for size in (1e-6, 1e-3, 1.0, 30.0):
        base = RNG.standard_normal((100, 1)) * size
        for rows in (RNG.standard_normal((100, n)) * size, base + RNG.integers(-20, 1, (100, n)) * epsilon * 0.1):
            x = rows.astype(dtype)
            named = judge(graph, {"x": x})[0]
            farthest = max(farthest, float((x.max(1, keepdims=True) - np.take_along_axis(x, named, 1)).max()))
    assert 0 < farthest < epsilon * max(1.0, np.log(n)), "some are tied, and none that is farther"


TIED = {"x": np.array([[0, 1e-9, -1], [0, 1, 2]], np.float32)}
PLACE = "s = Softmax(x) t = Mul(s, k) y = ArgMax <axis: int = 1> (t)"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, {"y"}),
        ({"x": np.array([[0, 1, -1], [0, 0, 0]], np.float32)}, set()),  # equal from the start: the first is right
        ({"x": np.array([[0, 1, -1], [0, 1, np.nan]], np.float32)}, {"y"}),
        ({"text": PLACE.replace("y = ArgMax", "a = ArgMax") + " y = Neg(a)"}, {"y"}),
        ({"text": PLACE.replace("Softmax(x)", "Exp(x)")}, set()),
        ({"text": PLACE.replace("ArgMax", "ArgMin")}, set()),
        ({"text": PLACE.replace("Mul(s, k)", "Mul(s, s)")}, set()),  # two inputs that vary: another function of x
    ],
)
def test_left_open_is_what_hangs_on_a_tie_that_rounding_makes(parse, change, found):
    text = change.pop("text", PLACE)
    graph = parse(f"agraph (float[2, 3] x) => (int64[2, 1] y, float[2, 3] z) {{ {text} z = Neg(x) }}", k=np.float32(1))
    assert left_open(graph, {**TIED, **change}) == found


def test_a_rewrite_that_names_another_of_equal_elements_is_seen(parse):
    """Zeros tie from the start; of those the first is right, and which one a file asks for must not be lost."""
    text = """agraph (float[2, 3] x) => (int64[2, 1] y) {{
        {0} y = ArgMax <axis: int = 1, select_last_index: int = {1}> ({2}) }}"""
    graph = parse(text.format("s = Softmax(x)", 1, "s"))
    labkit.verify(graph, parse(text.format("", 1, "x")))
    with pytest.raises(NotEquivalent, match="zeros inputs"):
        labkit.verify(graph, parse(text.format("", 0, "x")))


def test_a_tied_output_still_has_its_shape(parse):
    text = "agraph (float[2, 3] x) => (int64[2, {0}] y) {{ s = Softmax(x) y = ArgMax <axis: int = 1> ({1}) }}"
    other = "agraph (float[2, 3] x) => (int64[2] y) { y = ArgMax <axis: int = 1, keepdims: int = 0> (x) }"
    with pytest.raises(NotEquivalent, match="became int64"):
        labkit.verify(parse(text.format(1, "s")), parse(other))


IF = ("{1} = If (c) <then_branch = {1}t () => (int64[1, 5] {1}1) {{ {0} }}, "
      "else_branch = {1}e () => (int64[1, 5] {1}2) {{ {1}2 = ArgMax(x) }}>")  # fmt: skip
CHOSEN = IF.format("s = Softmax <axis: int = 0> (x) y1 = ArgMax(s)", "y")


@pytest.mark.parametrize(
    "text", [f"{CHOSEN} z = Neg(y)", f"{CHOSEN} z = Identity(y)", IF.format(f"{CHOSEN} z1 = Identity(y)", "z")]
)
def test_within_an_if_too_a_tie_is_left_open(parse, text):
    """Nobody sees the elements that tie there; what has no such tie in it is compared."""
    graph = parse(f"agraph (float[3, 5] x, bool c) => (int64[1, 5] z, float[3, 5] w) {{ {text} w = Neg(x) }}")
    after = labkit.optimize(graph).graph
    feeds = {"x": np.zeros((3, 5), np.float32), "c": np.array(True)}
    assert (left_open(graph, feeds), left_open(after, feeds)) == ({"z"}, set())
    for seed in range(20):
        labkit.verify(graph, after, seed=seed)


def test_what_an_if_makes_beside_a_tie_is_compared(parse):
    branch = """{0}_branch = {0} () => (int64[1, 5] {0}1, float[3, 5] {0}2) {{
        {0}s = Softmax <axis: int = 0> (x) {0}1 = ArgMax({0}s) {0}2 = {1}(x) }}"""
    one, wrong = (
        parse("agraph (float[3, 5] x, bool c) => (int64[1, 5] y, float[3, 5] z) { y, z = If (c) <"
              f"{branch.format('then', op)}, {branch.format('else', 'Exp')}> }}")
        for op in ("Neg", "Abs")
    )  # fmt: skip
    assert left_open(one, {"x": np.zeros((3, 5), np.float32), "c": np.array(True)}) == {"y"}
    with pytest.raises(NotEquivalent, match="output 'z'"):
        labkit.verify(one, wrong)


LOOP = """agraph (float[3, 5] x, int64 turns, bool c, int64[1, 5] first) => (int64[1, 5] y, float[3, 5] z) {{
    y, z = Loop (turns, c, first, x) <body = b (int64 i, bool go, int64[1, 5] p, float[3, 5] q)
        => (bool on, int64[1, 5] r, float[3, 5] t) {{
            on = Identity(go) s = Softmax <axis: int = 0> (q) {} t = Neg(q) }}> }}"""


@pytest.mark.parametrize(
    ("text", "found"), [("r = ArgMax(s)", {"y", "z"}), ("a = ArgMax(s) r = Neg(p)", set()), ("r = ArgMax(q)", set())]
)
def test_what_goes_round_in_a_loop_with_a_tie_is_left_open(parse, text, found):
    feeds = {
        "x": np.zeros((3, 5), np.float32),
        "turns": np.array(2),
        "c": np.array(True),
        "first": np.zeros((1, 5), int),
    }
    assert left_open(parse(LOOP.format(text)), feeds) == found
