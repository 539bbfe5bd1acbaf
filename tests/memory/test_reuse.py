"""The curve of all sizes against a simulation of each size; optimal replacement against a search through the future."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from labkit import LabError
from labkit.memory import planning
from labkit.memory.conv_trace import conv_trace
from labkit.memory.digest import Digested
from labkit.memory.distances import DistanceRun
from labkit.memory.reuse import miss_curve, simulate_optimal
from labkit.memory.stream import Batches
from labkit.memory.trace import AddressTrace, AffineTrace, Loop, Reference, chunks, matmul_trace

ENGINES = ["interpreted", "compiled"]
ADDRESSES = st.lists(
    st.tuples(st.integers(0, 900) | st.sampled_from([2**32, 2**32 + 64, 2**62]), st.booleans()),
    min_size=1, max_size=150,
).map(lambda pairs: AddressTrace.of(*zip(*pairs, strict=True)))  # fmt: skip


def lines_of(trace, line_bytes):
    """[(line, written)] of a whole trace."""
    pairs = (zip(c.addresses.tolist(), c.writes.tolist(), strict=True) for c in chunks(trace))
    return [(address // line_bytes, write) for part in pairs for address, write in part]


def least_recently_used(accesses, room, passes):
    """[(misses, lines dirtied)] of each pass: a list of lines, least recently used first."""
    resident, dirty, counted = [], set(), []
    for _ in range(passes):
        misses = dirtied = 0
        for line, write in accesses:
            if line in resident:
                resident.remove(line)
            else:
                misses += 1
                if len(resident) == room:
                    dirty.discard(resident.pop(0))
            resident.append(line)
            dirtied += write and line not in dirty
            if write:
                dirty.add(line)
        counted.append((misses, dirtied))
    return counted


def furthest_next_use(accesses, room):
    """(misses, lines dirtied): the line that is thrown out is found by looking through the rest of the trace."""
    lines = [line for line, _ in accesses]
    resident, dirty, misses, dirtied = set(), set(), 0, 0
    for now, (line, write) in enumerate(accesses):
        if line not in resident:
            misses += 1
            if len(resident) == room:
                rest = lines[now:]
                out = max(resident, key=lambda one: rest.index(one) if one in rest else len(lines))
                resident.remove(out)
                dirty.discard(out)
            resident.add(line)
        dirtied += write and line not in dirty
        if write:
            dirty.add(line)
    return misses, dirtied


def check_curve(trace, line_bytes, engine):
    """At every size, the curve has the misses and write-backs of the simulation of that size."""
    accesses = lines_of(trace, line_bytes)
    distinct = len({line for line, _ in accesses})
    cold = miss_curve(trace, line_bytes, engine=engine)
    steady = miss_curve(trace, line_bytes, steady=True, engine=engine)
    sizes = sorted({1, 2, 3, 6, distinct - 1, distinct, distinct + 1, distinct // 2, distinct // 4} - {0})
    for room in sizes:
        first, second = least_recently_used(accesses, room, 2)
        size = room * line_bytes
        assert (cold.misses(size), cold.write_backs(size)) == first
        assert (steady.misses(size), steady.write_backs(size)) == second
        assert sum(cold.misses(size, tensor) for tensor in trace.tensors) == first[0]
    assert (cold.compulsory, steady.compulsory) == (distinct, 0)
    assert (cold.start, steady.start) == ("cold", "steady")


@pytest.mark.parametrize("engine", ENGINES)
@given(trace=ADDRESSES, line_bytes=st.sampled_from([16, 64]))
@settings(deadline=None, max_examples=30)
def test_the_curve_of_random_addresses_is_the_simulation_of_each_size(engine, trace, line_bytes):
    check_curve(trace, line_bytes, engine)


@pytest.mark.parametrize("engine", ENGINES)
@given(data=st.data(), line_bytes=st.sampled_from([16, 48, 64]))
@settings(deadline=None, max_examples=15)
def test_the_curve_of_random_nests_is_the_simulation_of_each_size(engine, nests, long_nests, data, line_bytes):
    check_curve(data.draw(nests | long_nests), line_bytes, engine)


CHASE = AffineTrace((Loop("i", 40, (Reference("x", 128, (64,), "write"), Reference("x", 0, (64,)))),))
AGAIN = AffineTrace((Reference("a", 2**20, ()), Loop("i", 40, (Reference("x", 0, (16,)),)), Reference("a", 2**20, ())))
KERNELS = [
    CHASE,  # what is written is read two steps later
    AGAIN,  # all that the loop touches lies between two touches of a
    matmul_trace(24, 8, 12), matmul_trace(9, 20, 8, order="kmn", accumulator="memory"),
    matmul_trace(26, 10, 9, tile=(4, 4, 4)), matmul_trace(8, 24, 24, 1, "nmk", (5, 3, 8)),
    conv_trace(1, 2, 20, 8, 3, 3, pad=1), conv_trace(1, 4, 24, 8, 2, 3, pad=1, order="NHWC"),
    conv_trace(9, 2, 9, 9, 4, 3, stride=2, groups=2), conv_trace(1, 1, 40, 6, 1, 5, pad=2, dilation=2, order="NHWC"),
]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("trace", KERNELS, ids=range(len(KERNELS)))
def test_the_curve_of_a_kernel_is_the_simulation_of_each_size(engine, trace):
    check_curve(trace, 16, engine)


PADDED = st.builds(
    lambda c, rows, columns, filters, kernel, stride, pad, dilation: conv_trace(
        1, c, rows + dilation * kernel, columns + dilation * kernel, filters, kernel, stride, pad, dilation, 1, "NHWC"
    ),
    st.sampled_from([1, 2, 3, 4, 8]), st.integers(1, 24), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3),
    st.integers(1, 2), st.integers(0, 3), st.integers(1, 2),
)  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@given(trace=PADDED, line_bytes=st.sampled_from([8, 16, 48, 64]))
@settings(deadline=None, max_examples=15)
def test_the_curve_of_a_padded_convolution_is_the_simulation_of_each_size(engine, trace, line_bytes):
    """The rows inside repeat each other; the rows at the border before and after them share lines with them."""
    check_curve(trace, line_bytes, engine)


A_FIXED = Reference("w", 2**20, ())
WINDOW = Loop("r", 3, (Reference("x", 64, (64, 64)),))
BETWEEN = [
    # w before and after, and in every block or in none
    (True, (A_FIXED, Loop("i", 40, (WINDOW, Reference("w", 2**20, (0,)))), A_FIXED)),
    (False, (A_FIXED, Loop("i", 40, (WINDOW,)), A_FIXED)),
    (False, (A_FIXED, Loop("i", 40, (WINDOW, Reference("w", 2**20 + 64, (0,)))), Reference("w", 2**20, ()))),
    # after the loop: its last lines, lines of the blocks left out, its last lines to be written
    (True, (Loop("i", 40, (WINDOW,)), Reference("x", 64 * 42, ()))),
    (False, (Loop("i", 40, (WINDOW,)), Reference("x", 64 * 30, ()))),
    (False, (Loop("i", 40, (WINDOW,)), Reference("x", 64 * 42, (), "write"))),
    # downwards in memory
    (True, (Loop("i", 40, (Loop("r", 3, (Reference("x", 64 * 50, (-64, -64)),)),)), Reference("x", 64 * 10, ()))),
    (False, (Loop("i", 40, (Loop("r", 3, (Reference("x", 64 * 50, (-64, -64)),)),)), Reference("x", 64 * 20, ()))),
]


@pytest.mark.parametrize(("left_out", "body"), BETWEEN)
@pytest.mark.parametrize("engine", ENGINES)
def test_blocks_are_left_out_where_what_lies_around_the_loop_allows_it(engine, left_out, body):
    trace = AffineTrace(body)
    assert (DistanceRun(trace, 64, engine)._skip is not None) == left_out
    check_curve(trace, 64, engine)


@pytest.fixture
def only_digests(monkeypatch):
    """Every loop that can be made as digested pieces is, the outermost ones first."""
    cost = planning.Planner._digest_cost

    def cheaper_outside(planner, level):
        return cost(planner, level) - 1e30 / 1e4**level.depth

    monkeypatch.setattr(planning.Planner, "_digest_cost", cheaper_outside)
    monkeypatch.setattr(planning, "_DIGESTED", 1)
    monkeypatch.setattr(planning, "_COUNT_INSIDE", 0)


MANY = Loop("j", 10, (Reference("x", 0, (0, 16)),))
PIECES = [
    # y goes furthest away inside a piece: before it is written there, and before it is written after all of them
    AffineTrace((Loop("i", 30, (Reference("y", 2048, (1,)), MANY, Reference("y", 2048, (1,), "write"))),)),
    AffineTrace((Loop("i", 30, (Reference("y", 2048, (1,), "write"), MANY, Reference("y", 2048, (1,)))),)),
    AffineTrace((
        Reference("y", 2048, (), "write"), Loop("i", 9, (Reference("y", 2048, (0,)), MANY, Reference("y", 2048, (0,)))),
        Reference("y", 2048, (), "write"),
    )),
    matmul_trace(13, 9, 11, tile=(4, 3, 5)), matmul_trace(9, 9, 9, 8, "nkm", (4, 9, 2), accumulator="memory"),
    matmul_trace(11, 7, 10), conv_trace(1, 3, 9, 7, 4, 3, pad=1, order="NHWC"),
    AffineTrace((Loop("i", 30, (  # y is read, then written, then read again; z is written first; w only read
        Loop("j", 3, (Reference("x", 0, (36, 20)), Reference("y", 2048, (8, 0)))), Reference("y", 2048, (8,), "write"),
        Reference("z", 4096, (12,), "write"),
        Loop("j", 5, (Reference("w", 8192, (0, 16)), Reference("y", 2048, (8, 0)))),
        Loop("j", 4, (Reference("z", 4096, (12, 0), "write"), Reference("w", 8192, (0, 32)))),
    )),)),
]  # fmt: skip


@pytest.mark.parametrize("trace", PIECES + KERNELS, ids=range(len(PIECES + KERNELS)))
def test_the_curve_from_digested_pieces_is_the_simulation_of_each_size(only_digests, trace):
    check_curve(trace, 16, "compiled")


@given(data=st.data(), line_bytes=st.sampled_from([16, 48, 64]))
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_curve_of_random_nests_in_digested_pieces(only_digests, nests, long_nests, data, line_bytes):
    check_curve(data.draw(nests | long_nests), line_bytes, "compiled")


def test_the_tiles_of_a_product_are_digested():
    batches = Batches(matmul_trace(250, 250, 250, tile=(32, 32, 32)), 64)
    batches.allow_forms()
    pieces = [piece for item in batches.program.top for piece in batches.pieces(item)]
    assert isinstance(pieces[0], Digested)
    assert sum(piece.lines.size for piece in pieces) < batches.trace.accesses / 20


@given(st.data(), st.integers(1, 60))
@settings(deadline=None, max_examples=15)
def test_more_room_never_misses_more(nests, data, room):
    curve = miss_curve(data.draw(nests), 16)
    sizes = [16 * lines for lines in range(1, room)]
    misses = [curve.misses(size) for size in sizes]
    assert misses == sorted(misses, reverse=True)
    assert all(total >= curve.compulsory for total in misses)


def test_the_steps_are_the_sizes_at_which_misses_become_fewer():
    curve = miss_curve(AddressTrace.of([0, 64, 128, 0, 64, 0]), 64)
    sizes, misses = curve.steps
    assert sizes.tolist() == [64, 128, 192]
    assert misses.tolist() == [curve.misses(size) for size in (64, 128, 192)] == [6, 5, 3]


def test_far_distances_are_counted_after_the_positions_were_renumbered():
    """A cycle through 5,000 lines and one through 100,000: the positions run out several times in each."""
    for lines in (5_000, 100_000):
        cycle = AffineTrace((Loop("again", 5, (Loop("i", lines, (Reference("x", 0, (0, 64)),)),)),))
        addresses = np.concatenate([c.addresses for c in chunks(cycle)])
        for trace in (cycle, AddressTrace.of(addresses)):
            curve = miss_curve(trace, 64, engine="compiled")
            assert curve.misses(64 * lines - 64) == 5 * lines
            assert curve.misses(64 * lines) == lines


@pytest.mark.parametrize("engine", ENGINES)
@given(trace=ADDRESSES, room=st.integers(1, 20))
@settings(deadline=None, max_examples=30)
def test_optimal_replacement_throws_out_the_line_used_last(engine, trace, room):
    counts = simulate_optimal(trace, 16 * room, 16, engine=engine)
    assert (counts.misses, counts.write_backs) == furthest_next_use(lines_of(trace, 16), room)


@pytest.mark.parametrize("engine", ENGINES)
@given(data=st.data(), room=st.integers(1, 30))
@settings(deadline=None, max_examples=15)
def test_optimal_replacement_of_nests(engine, nests, data, room):
    trace = data.draw(nests)
    accesses = lines_of(trace, 16)
    if len(accesses) > 1500:
        return
    counts = simulate_optimal(trace, 16 * room, 16, engine=engine)
    assert (counts.misses, counts.write_backs) == furthest_next_use(accesses, room)
    assert counts.misses <= miss_curve(trace, 16, engine=engine).misses(16 * room)


def test_the_engines_agree_on_optimal_replacement_of_a_long_trace():
    trace = matmul_trace(30, 30, 30, tile=(8, 8, 8))
    for room in (8, 40, 100):
        both = [simulate_optimal(trace, 16 * room, 16, engine=engine) for engine in ENGINES]
        assert both[0] == both[1]
        assert both[0].misses < miss_curve(trace, 16).misses(16 * room)


def test_the_lru_story_of_a_large_tile():
    """ERRATA 3.4, all lengths a quarter of the lesson's: 256³ for 1024³, 32 KiB for 512 KiB, T=64 for T=256.

    Three tiles of 32 fit. At 64 each tile is half the cache: LRU gives C away between its visits, and intensity about
    halves. It only collapses at 128, when a single tile does not fit.
    """
    matrix = 256 * 256 * 4 // 64
    curves = {t: miss_curve(matmul_trace(256, 256, 256, tile=(t, t, t))) for t in (32, 64, 128)}
    moved = {t: curve.misses(32 * 1024) + curve.write_backs(32 * 1024) for t, curve in curves.items()}
    assert moved[32] == pytest.approx((8 + 8 + 2) * matrix, rel=0.01)  # A and B 8 times; C comes and goes once
    assert moved[64] == pytest.approx((4 + 4 + 2 * 4) * matrix, rel=0.01)  # C comes and goes at each of 4 visits
    assert 1.7 < moved[64] / ((4 + 4 + 1) * matrix) < 1.8  # against a scratchpad that writes C once
    assert moved[128] > 10 * moved[64]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: miss_curve(AddressTrace.of([0])).misses(63), "63 bytes does not hold one line of 64"),
        (lambda: miss_curve(AddressTrace.of([0])).misses(64, "A"), "no tensor 'A'"),
        (lambda: miss_curve(AddressTrace.of([0]), 0), "line of 0 bytes"),
        (lambda: miss_curve(matmul_trace(2**17, 2**17, 4)), "lines of 64 bytes"),
        (lambda: simulate_optimal(AddressTrace.of([0]), 32), "32 bytes does not hold one line"),
        (lambda: simulate_optimal(matmul_trace(1024, 1024, 1024), 1024), "optimal replacement is simulated for up to"),
    ],
)
def test_bad_input_is_refused_with_the_numbers(make, message):
    with pytest.raises(LabError, match=message):
        make()
