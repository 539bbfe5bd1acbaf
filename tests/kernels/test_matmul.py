"""Matrix products on the scratchpad. NumPy judges the result, the closed form and the proven bound the bytes."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labkit.errors import LabError, SramOverflow
from labkit.kernels.matmul import naive_matmul, tiled_matmul
from labkit.loops import LoopNest
from labkit.memory.ledger import Traffic
from labkit.memory.scratchpad import Scratchpad
from labkit.problems import matmul
from labkit.tiling import bound_bytes, working_set_bytes

ORDERS = ["".join(order) for order in itertools.permutations("mnk")]
POLICIES = ["store", "load_store", "spill"]
extent = st.integers(1, 40)
shapes = st.tuples(extent, extent, extent)
nests = st.builds(
    lambda shape, *options: LoopNest(matmul(*shape), *options),
    shapes,
    shapes,
    st.sampled_from(ORDERS).map(tuple),
    st.sampled_from(POLICIES),
    st.sampled_from(["single", "double", "double_all"]),
)


def nest_of(shape: tuple[int, int, int], tile: tuple[int, int, int], order: str) -> LoopNest:
    return LoopNest(matmul(*shape), tile, tuple(order))


def whole_numbers(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Small whole numbers in float32: every partial sum is exact, so results must be equal, not merely close."""
    return np.random.default_rng(seed).integers(-4, 5, (rows, columns)).astype(np.float32)


def run(nest: LoopNest, pad: Scratchpad) -> tuple[np.ndarray, np.ndarray]:
    """The product of whole numbers by this nest, and NumPy's."""
    m, n, k = nest.problem.loops.values()
    A, B = whole_numbers(m, k, 1), whole_numbers(k, n, 2)
    return tiled_matmul(A, B, nest.tile, pad, "".join(nest.order), nest.c_policy, nest.buffers), A @ B


def walk(nest: LoopNest) -> dict[str, Traffic]:
    """Judge of the bytes: three loops over tiles that compare the tile needed with the one held, element by element."""
    extents, sizes = nest.problem.loops, dict(zip("mnk", nest.tile, strict=True))
    held, seen = {}, set()
    reads, writes = {name: [] for name in "ABC"}, []
    outer, middle, inner = nest.order
    for i in range(0, extents[outer], sizes[outer]):
        for j in range(0, extents[middle], sizes[middle]):
            for l in range(0, extents[inner], sizes[inner]):  # noqa: E741
                start = {outer: i, middle: j, inner: l}
                length = {dim: min(sizes[dim], extents[dim] - start[dim]) for dim in "mnk"}
                for name, (row, column) in {"A": "mk", "B": "kn", "C": "mn"}.items():
                    tile = (start[row], start[column], length[row] * length[column] * 4)
                    if held.get(name) == tile:
                        continue
                    if name == "C" and "C" in held:
                        writes.append(held["C"][2])
                    if name != "C" or nest.c_policy != "store" or tile in seen:
                        reads[name].append(tile[2])
                    held[name] = tile
                    seen |= {tile} if name == "C" else set()
                if nest.c_policy == "spill":
                    writes.append(held.pop("C")[2])
    writes += [held["C"][2]] if "C" in held else []
    return {
        name: Traffic(sum(r), sum(writes) * (name == "C"), len(r), len(writes) * (name == "C"))
        for name, r in reads.items()
    }


@settings(max_examples=600, deadline=None)
@example(nest_of((8, 8, 8), (8, 2, 8), "nmk"))  # A is one tile: it never leaves
@example(nest_of((8, 8, 8), (2, 8, 3), "kmn"))  # C comes back unfinished
@example(nest_of((1, 1, 9), (1, 1, 2), "kmn"))  # C is one tile: it never leaves
@given(nests)
def test_counted_is_modelled_byte_for_byte_and_the_product_is_numpys(nest: LoopNest) -> None:
    needed = nest.working_set_bytes
    pad = Scratchpad(needed)
    product, wanted = run(nest, pad)
    assert np.array_equal(product, wanted)
    assert pad.ledger.by("value") == nest.by_operand == walk(nest)
    assert pad.ledger.traffic == nest.traffic
    assert pad.high_water_bytes == needed == working_set_bytes(nest.clipped().tile, 4, nest.buffers)
    assert pad.resident == {}
    assert pad.launches == 1
    assert pad.ledger.traffic.nbytes >= bound_bytes(nest.problem, needed)


@settings(deadline=None)
@given(nests)
def test_one_byte_less_than_the_working_set_overflows(nest: LoopNest) -> None:
    pad = Scratchpad(nest.working_set_bytes - 1)
    with pytest.raises(SramOverflow):
        run(nest, pad)
    assert pad.resident == {}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("policy", ["load_store", "spill"])
def test_policies_that_read_c_add_to_it_in_place(order: str, policy: str) -> None:
    A, B, C = whole_numbers(7, 5, 1), whole_numbers(5, 6, 2), whole_numbers(7, 6, 3)
    wanted = C + A @ B
    result = tiled_matmul(A, B, (3, 4, 2), Scratchpad("1KiB"), order, policy, C=C)
    assert result is C
    assert np.array_equal(C, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["mnk", "kmn"])
def test_rounding_stays_within_the_documented_tolerance(dtype: type, order: str) -> None:
    rng = np.random.default_rng(5)
    A, B = rng.standard_normal((65, 200)).astype(dtype), rng.standard_normal((200, 33)).astype(dtype)
    error = np.abs(tiled_matmul(A, B, (16, 16, 7), Scratchpad("64KiB"), order) - A @ B)
    assert (error <= 200 * np.finfo(dtype).eps * (np.abs(A) @ np.abs(B))).all()


def test_a_slice_of_dram_that_is_not_contiguous_multiplies_the_same() -> None:
    big = whole_numbers(20, 20)
    A, B = big[::2, 1:9], big[8:0:-1, ::3]
    assert np.array_equal(tiled_matmul(A, B, (4, 3, 5), Scratchpad("4KiB")), A @ B)


def test_the_kernel_reads_its_inputs_only_through_the_scratchpad(monkeypatch: pytest.MonkeyPatch) -> None:
    """What load delivers is what gets multiplied: deliver zeros and the product is zero."""
    load = Scratchpad.load

    def load_zeros(pad: Scratchpad, name: str, tile: np.ndarray, **options: int) -> np.ndarray:
        data = load(pad, name, tile, **options)
        data[...] = 0
        return data

    monkeypatch.setattr(Scratchpad, "load", load_zeros)
    A = whole_numbers(6, 6)
    assert not tiled_matmul(A, A, (2, 2, 2), Scratchpad("1KiB")).any()


@settings(deadline=None, max_examples=60)
@given(st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12)), st.sampled_from(["register", "memory"]))
def test_naive_counts_every_inner_step(shape, accumulator: str) -> None:
    """Judge: three loops in Python that count what an inner step touches."""
    m, n, k = shape
    A, B = whole_numbers(m, k, 1), whole_numbers(k, n, 2)
    pad = Scratchpad(12)
    assert np.array_equal(naive_matmul(A, B, pad, accumulator), A @ B)
    reads = writes = 0
    for _ in range(m):
        for _ in range(n):
            for _ in range(k):
                reads += 2 + (accumulator == "memory")
                writes += accumulator == "memory"
            writes += accumulator == "register"
    assert pad.ledger.traffic.read_bytes == 4 * reads
    assert pad.ledger.traffic.write_bytes == 4 * writes


def test_ledger_lines_say_which_kernel_moved_which_matrix() -> None:
    A = whole_numbers(4, 4)
    pad = Scratchpad("1KiB")
    tiled_matmul(A, A, (2, 2, 2), pad)
    assert pad.ledger.by("node") == {"tiled_matmul": Traffic(256, 64, 16, 4)}
    assert set(pad.ledger.by("value")) == {"A", "B", "C"}


@pytest.mark.parametrize(("dtype", "accumulator"), [(np.int8, np.int32), (np.float16, np.float32)])
def test_narrow_operands_are_added_up_in_a_wide_accumulator(dtype: type, accumulator: type) -> None:
    """300 products of 100 · 100 are 3,000,000: int8 would wrap round and float16 overflow."""
    A, B = np.full((2, 300), 100, dtype), np.full((300, 3), 100, dtype)
    for product in (
        tiled_matmul(A, B, (2, 2, 64), Scratchpad("1KiB")),
        naive_matmul(A, B, Scratchpad("1KiB")),
        naive_matmul(A, B, Scratchpad("1KiB"), "memory"),
    ):
        assert product.dtype == accumulator
        assert (product == 3_000_000).all()


F32 = np.zeros((4, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda pad: tiled_matmul(F32, F32[:3], (1, 1, 1), pad), r"shapes \(4, 4\) and \(3, 4\)"),
        (lambda pad: tiled_matmul(F32, F32.astype(np.float64), (1, 1, 1), pad), "float32 and float64"),
        (lambda pad: tiled_matmul(F32.astype(np.int64), F32.astype(np.int64), (1, 1, 1), pad), "no accumulator for"),
        (lambda pad: tiled_matmul(F32[0], F32, (1, 1, 1), pad), r"wanted \(m, k\) and \(k, n\)"),
        (lambda pad: tiled_matmul(F32[:0], F32, (1, 1, 1), pad), "m is 0"),
        (lambda pad: tiled_matmul(F32, F32, (0, 1, 1), pad), "m is 0, it must"),
        (lambda pad: tiled_matmul(F32, F32, (1, 1, 1), pad, C=F32), "store starts the output at zero"),
        (
            lambda pad: tiled_matmul(F32, F32, (1, 1, 1), pad, c_policy="spill", C=F32[:2]),
            r"C is float32 \(2, 4\): wanted float32 \(4, 4\)",
        ),
        (lambda pad: naive_matmul(F32, F32, pad, "cache"), "choose register or memory"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(LabError, match=message):
        call(Scratchpad("1KiB"))
