"""Loop nests: the closed form is held to a slow program that follows every address, and to numbers made by hand."""

from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.access import Operand
from labkit.errors import LabError
from labkit.loops import LoopNest
from labkit.memory.ledger import Traffic
from labkit.problems import ConvShape, Problem, conv, matmul

MATMUL = matmul(1024, 1024, 1024)
RESNET_CONV = conv(ConvShape(1, 64, 56, 56, 64, (3, 3), pads=(1, 1, 1, 1)))


def cubes(order: str = "mnk", **options) -> LoopNest:
    return LoopNest(MATMUL, (128, 128, 128), tuple(order), **options)


def elements(operand: Operand, ranges: dict[str, range]) -> set[tuple[int, ...]]:
    """The elements of one tile, one multi-index after another."""
    found = set()
    loops = sorted(operand.loops)
    for point in product(*(ranges[loop] for loop in loops)):
        at = dict(zip(loops, point, strict=True))
        index = tuple(axis.offset + sum(c * at[loop] for loop, c in axis.terms) for axis in operand.axes)
        if all(0 <= i < n for i, n in zip(index, operand.shape, strict=True)):
            found.add(index)
    return found


def followed(nest: LoopNest) -> tuple[int, int]:
    """Bytes read and written when each operand has one resident tile and nothing slides, step after step."""
    read = written = 0
    resident: dict[str, tuple[range, ...]] = {}
    seen = set()
    output = nest.problem.output
    for ranges in nest.steps():
        for x in nest.problem.operands:
            key = tuple(ranges[loop] for loop in sorted(x.loops))
            moved = resident.get(x.name) != key
            nbytes = len(elements(x, ranges)) * x.itemsize
            if x is not output:
                read += nbytes * moved
            elif moved or nest.c_policy == "spill":
                read += nbytes * (nest.c_policy != "store" or key in seen)
                written += nbytes  # whatever comes leaves once
                seen.add(key)
            resident[x.name] = key
    return read, written


@st.composite
def tiny_nests(draw: st.DrawFn) -> LoopNest:
    small = st.integers(1, 3)
    if draw(st.booleans()):
        problem: Problem = matmul(*(draw(st.integers(1, 6)) for _ in range(3)))
    else:
        kernel, strides = (draw(st.tuples(small, st.just(1))) for _ in range(2))
        pads = (draw(st.integers(0, 2)), 0, draw(st.integers(0, 2)), 0)
        shape = ConvShape(1, 2, draw(st.integers(kernel[0], 7)), draw(small), 2, kernel, strides, (1, 1), pads)
        problem = conv(shape, draw(st.sampled_from(["NCHW", "NHWC", "NCHW2c"])))
    tile = tuple(draw(st.integers(1, extent)) for extent in problem.loops.values())
    order = tuple(draw(st.permutations(list(problem.loops))))
    return LoopNest(problem, tile, order, draw(st.sampled_from(["store", "load_store", "spill"])))


@settings(max_examples=500, deadline=None)
@given(tiny_nests())
def test_the_closed_form_equals_following_every_address(nest: LoopNest) -> None:
    assert (nest.traffic.read_bytes, nest.traffic.write_bytes) == followed(nest)
    assert nest.traffic.nbytes >= nest.problem.compulsory_bytes


@pytest.mark.parametrize(
    ("policy", "nbytes", "intensity"), [("store", 68, 30.12), ("load_store", 72, 28.44), ("spill", 128, 16.0)]
)
def test_what_c_costs_decides_the_intensity(policy, nbytes: int, intensity: float) -> None:
    nest = cubes(c_policy=policy)
    assert nest.traffic.nbytes == nbytes * 2**20
    assert round(MATMUL.flops / nest.traffic.nbytes, 2) == intensity


def test_remainders_are_charged_at_their_real_size() -> None:
    """B07: N=1000 in tiles of 128 is seven and one of 104."""
    nest = LoopNest(matmul(1000, 1000, 1000), (128, 128, 128), ("m", "n", "k"))
    assert nest.by_operand["A"] == Traffic(8 * 1000 * 1000 * 4, 0, 512, 0)
    assert nest.by_operand["C"] == Traffic(0, 1000 * 1000 * 4, 0, 64)


@pytest.mark.parametrize(("halo", "elements"), [("reload", 48), ("slide", 18)])
def test_sliding_reuse_is_a_choice_that_has_a_name(halo, elements: int) -> None:
    """B09: P·R or P+R−1 for a 1-D convolution of 16 outputs and 3 taps, output by output."""
    nest = LoopNest.of(conv(ConvShape(1, 1, 18, 1, 1, (3, 1)))).split("p", 1)
    nest = LoopNest(nest.problem, nest.tile, nest.order, halo=halo)
    assert nest.by_operand["X"].read_bytes == elements * 4
    assert LoopNest.of(nest.problem).by_operand["X"].read_bytes == 18 * 4, "one tile: no halo at all"


@pytest.mark.parametrize(("buffers", "tiles"), [("single", 3), ("double", 5), ("double_all", 6)])
def test_buffers_take_room_and_move_nothing(buffers, tiles: int) -> None:
    nest = cubes(buffers=buffers)
    assert nest.working_set_bytes == tiles * 128 * 128 * 4
    assert nest.traffic == cubes().traffic


def test_an_operand_comes_once_when_only_loops_outside_repeat_it() -> None:
    reads = {order: cubes("".join(order)).by_operand["C"].reads for order in permutations("mnk")}
    assert {order for order, count in reads.items() if count} == {
        ("m", "k", "n"),
        ("k", "m", "n"),
        ("k", "n", "m"),
        ("n", "k", "m"),
    }


def test_split_and_reorder_are_values() -> None:
    whole = LoopNest.of(MATMUL)
    cut = whole.split("m", 100).split("k", 2000)
    assert whole.tile == (1024, 1024, 1024)
    assert cut.tiles == {"m": 100, "n": 1024, "k": 1024}
    assert cut.trips == {"m": 11, "n": 1, "k": 1}
    assert cut.reorder("k", "m").order == ("k", "n", "m")
    assert cut.clipped().tile == (100, 1024, 1024)
    assert whole.clipped() is whole


def test_the_obvious_nest_moves_what_is_compulsory() -> None:
    for problem in (MATMUL, RESNET_CONV):
        assert LoopNest.of(problem).traffic.nbytes == problem.compulsory_bytes


GOLDEN = {
    "mnk": """\
for m in range(0, 1024, 128):
    for n in range(0, 1024, 128):
        zero C 128×128
        for k in range(0, 1024, 128):
            load A 128×128
            load B 128×128
            C += A * B
        store C 128×128""",
    "mkn": """\
for m in range(0, 1024, 128):
    for k in range(0, 1024, 128):
        load A 128×128
        for n in range(0, 1024, 128):
            load B 128×128
            zero or load C 128×128
            C += A * B
            store C 128×128""",
}


@pytest.mark.parametrize("order", GOLDEN)
def test_a_nest_prints_itself(order: str) -> None:
    assert str(cubes(order)) == GOLDEN[order]


def test_policies_show_in_the_print() -> None:
    assert "load C 128×128\n        for k" in str(cubes(c_policy="load_store"))
    spilt = str(cubes(c_policy="spill"))
    assert "            C += A * B  # read from DRAM and written back" in spilt
    assert "store" not in spilt


def test_a_convolution_prints_its_halo() -> None:
    nest = LoopNest.of(RESNET_CONV).split("f", 16).split("p", 8).split("c", 16).reorder("p", "f", "c")
    assert (
        str(nest)
        == """\
for p in range(0, 56, 8):
    for f in range(0, 64, 16):
        zero Y 1×1×16×8×56
        for c in range(0, 64, 16):
            load X 1×1×16×10×56
            load W 1×16×16×3×3
            Y += X * W
        store Y 1×1×16×8×56"""
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LoopNest(MATMUL, (0, 1, 1), ("m", "n", "k")), "tile: m is 0, it must be a whole number of at least 1"),
        (lambda: LoopNest(MATMUL, (1, 1.5, 1), ("m", "n", "k")), "tile: n is 1.5"),
        (lambda: LoopNest(MATMUL, (1, 1), ("m", "n", "k")), "3 numbers are wanted, one for each of m, n, k"),
        (lambda: LoopNest(MATMUL, (1, 1, 1), ("m", "n", "x")), "loop order m,n,x: write each of m, n, k once"),
        (lambda: LoopNest(MATMUL, (1, 1, 1), ("m", "m", "k")), "write each of m, n, k once"),
        (lambda: cubes(c_policy="keep"), "C policy 'keep': choose one of store, load_store, spill"),
        (lambda: cubes(buffers="triple"), "buffers 'triple'"),
        (lambda: cubes(halo="cache"), "halo 'cache': choose one of reload, slide"),
        (lambda: LoopNest.of(MATMUL).split("z", 2), "no loop 'z'; there are: m, n, k"),
        (lambda: LoopNest.of(MATMUL).split("m", -3), "m is -3"),
        (lambda: LoopNest.of(MATMUL).reorder("m", "z"), "each must be one of m, n, k, once"),
        (lambda: LoopNest.of(MATMUL).reorder("m", "m"), "once"),
    ],
)
def test_bad_nests_are_refused_by_name(make, message: str) -> None:
    with pytest.raises(LabError, match=message):
        make()


def test_huge_problems_are_counted_without_overflow() -> None:
    nest = LoopNest.of(matmul(2**62, 2**62, 2**62)).split("m", 2**31).split("n", 2**31).split("k", 1)
    assert nest.by_operand["A"].read_bytes == 2**31 * 2**124 * 4
    assert nest.working_set_bytes == 2 * 2**31 * 4 + 2**62 * 4
    with pytest.raises(LabError, match="tiles along one axis"):
        LoopNest.of(conv(ConvShape(1, 1, 2**62, 1, 1, (3, 1)))).split("p", 1).traffic  # noqa: B018
