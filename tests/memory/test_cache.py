"""Caches against a list for each set, and against figures that anyone can work out."""

from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from labkit import LabError
from labkit.memory import cache as cache_module
from labkit.memory import planning
from labkit.memory.cache import Cache, simulate
from labkit.memory.conv_trace import conv_trace
from labkit.memory.expansion import Batch
from labkit.memory.stream import Batches
from labkit.memory.sweep import Sets, Sweep
from labkit.memory.trace import AddressTrace, AffineTrace, Loop, Reference, chunks, matmul_trace

ENGINES = ["interpreted", "compiled"]


@pytest.fixture(autouse=True, scope="module")
def short_blocks():
    """Outer loops are cut into blocks however short they are, so that small nests reach every line of the code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache_module, "_BLOCK_ENTRIES", 1)
        yield


class ObviousCache:
    """A list of [line, dirty] for each set, least recently used first."""

    def __init__(self, cache):
        self.ways = cache.lines if cache.ways is None else cache.ways
        self.sets = [[] for _ in range(cache.lines // self.ways)]

    def run(self, accesses, line_bytes):
        """(hit or miss of each access, number of dirty lines thrown out)."""
        hits, thrown_out = [], 0
        for address, write in accesses:
            line = address // line_bytes
            lines = self.sets[line % len(self.sets)]
            found = [entry for entry in lines if entry[0] == line]
            hits.append(bool(found))
            if found:
                lines.remove(found[0])
            elif len(lines) == self.ways:
                thrown_out += lines.pop(0)[1]
            lines.append([line, write or bool(found and found[0][1])])
        return hits, thrown_out

    def dirty(self):
        return sum(dirty for lines in self.sets for _, dirty in lines)


def accesses_of(trace):
    return [pair for c in chunks(trace) for pair in zip(c.addresses.tolist(), c.writes.tolist(), strict=True)]


def check(trace, cache, engine):
    """Cold and steady counts of a trace equal the obvious ones."""
    accesses, line_bytes = accesses_of(trace), cache.line_bytes
    obvious, associative = ObviousCache(cache), ObviousCache(Cache(cache.size_bytes, None, line_bytes))
    for steady in (False, True):
        hits, thrown_out = obvious.run(accesses, line_bytes)
        whole, _ = associative.run(accesses, line_bytes)
        counts = simulate(trace, cache, steady=steady, engine=engine)
        assert (counts.hits, counts.misses) == (hits.count(True), hits.count(False))
        assert (counts.write_backs, counts.flushed) == (thrown_out, 0 if steady else obvious.dirty())
        assert counts.compulsory == (0 if steady else len({address // line_bytes for address, _ in accesses}))
        assert counts.capacity == whole.count(False) - counts.compulsory
        assert counts.conflict == hits.count(False) - whole.count(False)
        assert counts.start == ("steady" if steady else "cold")
        if counts.by_tensor:
            assert {name: one.misses for name, one in counts.by_tensor.items()} == misses_by_tensor(trace, hits)
            parts = [(one.write_backs, one.flushed, one.compulsory) for one in counts.by_tensor.values()]
            assert tuple(map(sum, zip(*parts, strict=True))) == (thrown_out, counts.flushed, counts.compulsory)


def misses_by_tensor(trace, hits):
    if isinstance(trace, AddressTrace):
        return {"trace": hits.count(False)}
    owners = tensors_of(trace.body)
    missed = Counter(tensor for tensor, hit in zip(owners, hits, strict=True) if not hit)
    return {tensor: missed[tensor] for tensor in trace.tensors}


def tensors_of(body):
    for item in body:
        if isinstance(item, Reference):
            yield item.tensor
        else:
            yield from list(tensors_of(item.body)) * item.count


FULLY = st.builds(lambda lines, line: Cache(lines * line, None, line), st.integers(1, 40), st.sampled_from([16, 64]))
CACHES = FULLY | st.builds(
    lambda ways, sets, line: Cache(ways * sets * line, ways, line),
    st.sampled_from([1, 2, 3, 4, 8]), st.sampled_from([1, 2, 3, 4, 5, 16]), st.sampled_from([16, 32, 48, 64]),
)  # fmt: skip
ADDRESSES = st.lists(
    st.tuples(st.integers(0, 1500) | st.sampled_from([2**32, 2**32 + 64, 2**62]), st.booleans()),
    min_size=1,
    max_size=200,
)


@pytest.mark.parametrize("engine", ENGINES)
@given(accesses=ADDRESSES, cache=CACHES)
@settings(deadline=None, max_examples=50)
def test_random_addresses_count_as_in_a_list_for_each_set(engine, accesses, cache):
    check(AddressTrace.of(*zip(*accesses, strict=True)), cache, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cache", [Cache(64 * 8 * 4, 8, 64), Cache(64 * 8 * 3, 8, 64), Cache(64 * 4 * 4, 4, 64)])
def test_a_long_list_counts_as_in_a_list_for_each_set(engine, cache):
    """Most accesses hit, at every place of a set, and many write again what is dirty."""
    random = np.random.default_rng(0)
    addresses = np.repeat(random.integers(0, 64 * 40, 2000), random.integers(1, 3, 2000))
    check(AddressTrace.of(addresses, random.random(addresses.size) < 0.4), cache, engine)


@pytest.mark.parametrize("engine", ENGINES)
@given(data=st.data(), cache=CACHES)
@settings(deadline=None, max_examples=30)
def test_random_nests_count_as_in_a_list_for_each_set(engine, nests, data, cache):
    check(data.draw(nests), cache, engine)


@pytest.mark.parametrize("engine", ENGINES)
@given(data=st.data(), cache=CACHES)
@settings(deadline=None, max_examples=30)
def test_long_nests_are_counted_to_the_end_though_not_made_to_the_end(engine, long_nests, data, cache):
    check(data.draw(long_nests), cache, engine)


STILL = Reference("y", 2048, (0,), "write")
CHASE = AffineTrace((Loop("i", 40, (Reference("x", 128, (64,), "write"), Reference("x", 0, (64,)))),))
KERNELS = [
    CHASE,  # what is written is read two steps later
    matmul_trace(24, 8, 12), matmul_trace(21, 8, 12, order="nkm"),
    matmul_trace(9, 20, 8, order="kmn", accumulator="memory"),
    matmul_trace(26, 10, 9, tile=(4, 4, 4)), matmul_trace(24, 24, 8, 1, "nmk", (5, 3, 8)),
    conv_trace(1, 2, 20, 8, 3, 3, pad=1), conv_trace(1, 4, 24, 8, 2, 3, pad=1, order="NHWC"),
    conv_trace(6, 2, 9, 9, 4, 3, stride=2, groups=2), conv_trace(1, 1, 40, 6, 1, 5, pad=2, dilation=2, order="NHWC"),
]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("trace", KERNELS, ids=range(len(KERNELS)))
@pytest.mark.parametrize("cache", [Cache(256, 2, 16), Cache(192, 1, 32), Cache(320, None, 16)])
def test_kernels_count_as_in_a_list_for_each_set(engine, trace, cache):
    check(trace, cache, engine)


@pytest.fixture
def only_sweeps(monkeypatch):
    """Every loop that can be made as a sweep is."""
    monkeypatch.setattr(planning, "cost", lambda *_: 0.0)


UNALIGNED = [
    matmul_trace(5, 21, 13), matmul_trace(3, 30, 7, 8, "nmk"), matmul_trace(9, 11, 10, accumulator="memory"),
    matmul_trace(13, 18, 11, tile=(4, 7, 5)), matmul_trace(4, 40, 6, 1, "mkn", base=64),
    conv_trace(1, 3, 9, 7, 4, 3, pad=1), conv_trace(1, 3, 9, 7, 4, 3, pad=1, order="NHWC"),
    AffineTrace((Loop("i", 50, (Reference("x", 1000, (-4,), "write"), Reference("x", 900, (12,)), STILL)),)),
]  # fmt: skip


@pytest.mark.parametrize("trace", UNALIGNED + KERNELS, ids=range(len(UNALIGNED + KERNELS)))
@pytest.mark.parametrize("cache", [Cache(512, 8, 16), Cache(288, 3, 32)])
def test_sweeps_count_as_in_a_list_for_each_set(only_sweeps, trace, cache):
    check(trace, cache, "compiled")


@given(data=st.data(), cache=CACHES)
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sweeps_of_random_nests_count_as_in_a_list_for_each_set(only_sweeps, nests, long_nests, data, cache):
    check(data.draw(nests | long_nests), cache, "compiled")


@pytest.fixture
def only_digests(monkeypatch):
    """Every loop that can be made as a digest is, the outermost ones first."""
    cost = planning.Planner._digest_cost

    def cheaper_outside(planner, level):
        return cost(planner, level) - 1e30 / 1e4**level.depth

    monkeypatch.setattr(planning.Planner, "_digest_cost", cheaper_outside)
    monkeypatch.setattr(planning, "_DIGESTED", 1)


FITTING = [
    matmul_trace(13, 9, 11, tile=(4, 3, 5)), matmul_trace(9, 9, 9, 8, "nkm", (4, 9, 2), accumulator="memory"),
    AffineTrace((Loop("i", 30, (Loop("j", 3, (Reference("x", 0, (36, 20)), Reference("y", 2048, (0, 0)))), STILL)),)),
]  # fmt: skip


@pytest.mark.parametrize("trace", FITTING + UNALIGNED + KERNELS, ids=range(len(FITTING + UNALIGNED + KERNELS)))
@pytest.mark.parametrize("cache", [Cache(192, 1, 32), Cache(1024, 8, 16)])
def test_digests_count_as_in_a_list_for_each_set(only_digests, trace, cache):
    check(trace, cache, "compiled")


@given(data=st.data(), cache=CACHES)
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_digests_of_random_nests_count_as_in_a_list_for_each_set(only_digests, nests, long_nests, data, cache):
    check(data.draw(nests | long_nests), cache, "compiled")


def test_tiles_that_fit_a_cache_are_digested():
    """3 tiles of 32 rows lie in about 80 lines each. A piece that is made once only needs no digest."""
    product = matmul_trace(250, 250, 250, tile=(32, 32, 32))
    batches = Batches(product, 64)
    batches.allow_forms(Sets(64, 8))
    pieces = [piece for item in batches.program.top for piece in batches.pieces(item)]
    entries = sum(piece.lines.size for piece in pieces if isinstance(piece, Batch))
    entries += sum(piece.starts.size * piece.iterations for piece in pieces if isinstance(piece, Sweep))
    assert entries < product.accesses / 40


def test_a_product_whose_rows_are_no_whole_lines_is_swept():
    """Few of the 201 lines of an iteration are new, and in no set are they more than 8."""
    batches = Batches(matmul_trace(100, 100, 100), 64)
    batches.allow_forms(Sets(64, 8))
    pieces = list(batches.pieces(batches.program.top[0]))
    assert all(isinstance(piece, Sweep) for piece in pieces)
    assert sum(piece.starts.size * piece.iterations for piece in pieces) == matmul_trace(100, 100, 100).accesses


BEFORE = (Reference("a", 2**20, ()), Reference("b", 2**21, ()))
STREAM = Loop("i", 40, (Reference("x", 0, (64,), "write"),))


NESTS_WITH_MORE = [
    pytest.param(AffineTrace((*BEFORE, STREAM)), id="lines from before the loop"),
    pytest.param(CHASE, id="lines written long ago"),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("trace", NESTS_WITH_MORE)
@pytest.mark.parametrize("room", [1, 2, 3, 4, 5, 6, 7, 8, 50])
def test_what_is_dirty_in_the_end_is_known_though_blocks_were_left_out(engine, trace, room):
    """The lines that the few blocks which were made have left behind are not always those of the last blocks."""
    check(trace, Cache(room * 64, None, 64), engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_address_keeps_its_upper_half(engine):
    """B05: with addresses cut to 32 bits, the third access would hit."""
    cache, addresses = Cache(32, 1, 32), [0xF, 0xF, 0xF + 2**32, 0xF + 2**32]
    hits = [simulate(AddressTrace.of(addresses[:end]), cache, engine=engine).hits for end in (1, 2, 3, 4)]
    assert hits == [0, 1, 1, 2]


@pytest.mark.parametrize("ways", [None, 1, 8])
def test_a_stream_of_writes_is_written_back_once_a_line_at_every_length(ways):
    """B01: N float64 written once leave N · 8 / 64 write-backs after the flush, never fewer for a longer stream."""
    written = []
    for elements in (1, 8, 9, 4096, 4097, 50_000, 999_999, 1_000_000):
        stream = AffineTrace((Loop("i", elements, (Reference("y", 0, (8,), "write"),)),))
        counts = simulate(stream, Cache(32 * 1024, ways, 64))
        assert counts.write_backs + counts.flushed == -(-elements * 8 // 64)
        assert counts.write_bytes == counts.read_bytes == -(-elements * 8 // 64) * 64
        written.append(counts.write_backs + counts.flushed)
    assert written[-1] == 125_000
    assert written == sorted(written)


def test_a_cold_stream_moves_its_size_and_a_steady_one_only_what_does_not_fit():
    """B03: the counts say whether the cache was empty when they began."""
    cache = Cache(32 * 1024, 8, 64)
    stream = AffineTrace((Loop("i", 2_500_000, (Reference("x", 0, (8,)),)),))
    cold, steady = simulate(stream, cache), simulate(stream, cache, steady=True)
    assert (cold.start, cold.read_bytes, cold.compulsory) == ("cold", 2_500_000 * 8, cold.misses)
    assert (steady.start, steady.read_bytes, steady.compulsory) == ("steady", 2_500_000 * 8, 0)
    fits = AffineTrace((Loop("i", 4096, (Reference("x", 0, (8,)),)),))
    assert (simulate(fits, cache).misses, simulate(fits, cache, steady=True).misses) == (512, 0)


@pytest.mark.parametrize(("tile", "misses"), [(None, 2_130_960), ((32, 32, 32), 10_632)], ids=["naive", "tiled"])
def test_the_products_of_the_lesson_in_a_32_kib_cache(tile, misses):
    counts = simulate(matmul_trace(128, 128, 128, tile=tile), Cache(32 * 1024, 8, 64))
    assert counts.misses == misses
    assert counts.compulsory == 3 * 128 * 128 * 4 // 64


def test_conflict_misses_can_be_negative():
    """One line more than fits, in a cycle: LRU over the whole always misses, the sets keep what they have."""
    cycle = AddressTrace.of([64 * line for line in range(5)] * 3)
    counts = simulate(cycle, Cache(4 * 64, 2, 64))
    assert (counts.misses, counts.fully_associative, counts.conflict) == (11, 15, -4)


def test_the_kinds_of_misses_can_be_left_out():
    counts = simulate(matmul_trace(4, 4, 4), Cache(128, 2, 16), kinds=False)
    assert (counts.compulsory, counts.capacity, counts.conflict) == (None, None, None)


def test_a_product_of_2_billion_accesses_is_exact():
    """Each tile of A and B is far apart in memory (4 KiB rows), so the tiles do not fit in 64 sets of 8 ways; yet all
    rows of tiles are alike: two of them differ only in the first touches."""
    cache = Cache(32 * 1024, 8, 64)
    large, small = (simulate(matmul_trace(m, 1024, 1024, tile=(32, 32, 32)), cache, kinds=False) for m in (1024, 64))
    smaller = simulate(matmul_trace(32, 1024, 1024, tile=(32, 32, 32)), cache, kinds=False)
    assert large.accesses == 2 * 1024**3 + 2 * 1024 * 1024 * 32
    assert large.misses == small.misses + 30 * (small.misses - smaller.misses)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cache(1000, 2, 64), r"1000 bytes is no multiple of 2 ways × 64 bytes = 128"),
        (lambda: Cache(100, None, 64), "100 bytes is no multiple of 1 ways × 64"),
        (lambda: Cache(0, 1, 64), "cache of 0 bytes"),
        (lambda: Cache(64, 0, 64), "0 ways"),
        (lambda: simulate(matmul_trace(2**20, 2**20, 2**20), Cache(64, 1, 64)), "accesses remain"),
        (lambda: simulate(matmul_trace(2, 2, 2), Cache(64, 1, 64), engine="gpu"), "engine 'gpu'"),
    ],
)
def test_bad_input_is_refused_with_the_numbers(make, message):
    with pytest.raises(LabError, match=message):
        make()


def test_few_accesses_do_not_wait_for_the_compiler(monkeypatch):
    from labkit.memory import engine

    monkeypatch.delitem(__import__("sys").modules, "labkit.memory.compiled", raising=False)
    assert engine.choose(500_000).__name__ == "labkit.memory.interpreted"
    monkeypatch.setitem(__import__("sys").modules, "labkit.memory.compiled", None)  # as without numba
    assert engine.choose(10**7).__name__ == "labkit.memory.interpreted"
    with pytest.raises(LabError, match="needs numba"):
        engine.choose(10**7, "compiled")


def test_where_numba_may_write_no_folder_it_compiles_all_the_same(monkeypatch):
    caching = pytest.importorskip("numba.core.caching")
    from labkit.memory import jit

    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    assert jit.compiled(lambda x: x + 1)(2) == 3


def test_counts_print_in_a_line():
    counts = simulate(AddressTrace.of(np.arange(0, 4096, 8), True), Cache(1024, 4, 64))
    assert str(counts) == "cold: 512 accesses, 64 misses; read 4 KiB, written 4 KiB"
