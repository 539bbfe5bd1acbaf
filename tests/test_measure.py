"""Ranks and noise of injected timings. The kernels run once each, untimed; no clock decides a test."""

import builtins
import itertools
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit import measure
from labkit.errors import LabError
from labkit.measure import Comparison, Timing, compare_layouts, compare_tiles, rank_correlation, time_in_turn
from labkit.memory.cache import Cache

L1 = Cache(32 * 1024, ways=8)


def machine(noise: float) -> Comparison:
    """Four tiles, the fewer misses the faster, each timed 5 times with this much noise."""
    shake = (0.0, noise, -noise, noise / 2, -noise / 2)
    return Comparison(tuple(Timing(f"T={m}", m, tuple(m * (1 + s) for s in shake)) for m in (100, 110, 120, 130)))


def test_a_clean_machine_confirms_the_model() -> None:
    clean = machine(noise=0.01)
    assert clean.spearman == 1
    assert not clean.is_too_noisy
    assert clean.within == pytest.approx(0.01)  # quartiles half a noise below and above the median
    assert clean.between == pytest.approx(30 / 115)


def test_a_noisy_machine_is_called_noisy() -> None:
    assert machine(noise=0.2).is_too_noisy
    assert not machine(noise=0.12).is_too_noisy  # 2 · 0.12 is just below 30 / 115


def test_misses_that_mislead_are_seen() -> None:
    timings = [Timing("a", 1, (3.0,) * 3), Timing("b", 2, (2.0,) * 3), Timing("c", 3, (1.0,) * 3)]
    assert Comparison(tuple(timings)).spearman == -1


def test_spearman_against_its_shortcut() -> None:
    """Without ties ρ is 1 − 6·Σd² / (n·(n² − 1)), d being differences of ranks."""
    for ranks in itertools.permutations(range(5)):
        d2 = sum((a - b) ** 2 for a, b in enumerate(ranks))
        assert rank_correlation(range(5), [10.0**r for r in ranks]) == pytest.approx(1 - 6 * d2 / 120)


def test_equal_values_share_their_rank() -> None:
    """By hand: ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4."""
    assert rank_correlation([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / np.sqrt(4.5 * 5))
    assert rank_correlation([7, 7, 7], [1, 2, 3]) == 0


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=8))
def test_only_the_order_matters(pairs: list[tuple[int, int]]) -> None:
    xs, ys = zip(*pairs, strict=True)
    assert rank_correlation(xs, ys) == rank_correlation([x**3 for x in xs], [2 * y - 5 for y in ys])
    assert -1 <= rank_correlation(xs, ys) == rank_correlation(ys, xs) <= 1


def test_variants_take_turns_after_an_untimed_one() -> None:
    calls: list[str] = []
    clock = itertools.count().__next__
    seconds = time_in_turn({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3, clock)
    assert "".join(calls) == "ab" * 4
    assert seconds == {"a": (1, 1, 1), "b": (1, 1, 1)}


def test_the_tiles_that_are_timed_are_those_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each variant multiplies like NumPy; the misses come from the same tiles."""
    products = []

    def run_once(works, runs, clock):
        for work in works.values():
            work()
        return dict.fromkeys(works, (1.0,) * runs)

    kernels = measure._kernels()
    kernel = kernels.tiled_product

    def watch(A: np.ndarray, B: np.ndarray, C: np.ndarray, tile: int) -> None:
        fresh = np.zeros_like(C)
        kernel(A, B, fresh, tile)
        products.append((tile, np.allclose(fresh, A @ B, rtol=1e-4)))

    monkeypatch.setattr(kernels, "tiled_product", watch)
    monkeypatch.setattr(measure, "time_in_turn", run_once)
    found = compare_tiles(50, 3, Cache(2048, ways=2))
    assert products == [(8, True), (16, True), (32, True), (50, True)]
    assert [t.label for t in found.timings] == ["T=8", "T=16", "T=32", "T=50"]
    assert found.timings[0].misses < found.timings[-1].misses


def test_the_walk_sums_channels_and_nhwc_misses_less(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = []
    kernels = measure._kernels()
    kernel = kernels.channel_sums

    def watch(x, pixels, channels, pixel_step, channel_step, out) -> None:
        counted = np.arange(x.size, dtype=np.float32)
        kernel(counted, pixels, channels, pixel_step, channel_step, out)
        shape = (channels, pixels) if pixel_step == 1 else (pixels, channels)
        sums.append(np.allclose(out, counted.reshape(shape).sum(axis=0 if pixel_step == 1 else 1), rtol=1e-4))

    monkeypatch.setattr(kernels, "channel_sums", watch)
    nchw, nhwc = compare_layouts(3, L1, clock=itertools.count().__next__).timings
    assert set(sums) == {True}
    assert nhwc.misses == 64 * 112 * 112 * 4 // 64  # each line once
    assert nchw.misses > nhwc.misses


def test_without_numba_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def no_numba(name: str, *rest: object, **options: object) -> object:
        if name.split(".")[0] == "numba":
            raise ImportError("No module named 'numba'")
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", no_numba)
    for name in ("labkit.kernels.compiled", "labkit.memory.jit"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr("labkit.kernels.compiled", raising=False)
    with pytest.raises(LabError, match="needs numba"):
        compare_layouts(3, L1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: compare_tiles(8, 3, L1), "size 8: choose 16 to 2048"),
        (lambda: compare_tiles(10**6, 3, L1), "size 1000000"),
        (lambda: time_in_turn({}, 2, itertools.count().__next__), "2 runs: at least 3"),
    ],
)
def test_bad_input_is_named(make, message: str) -> None:
    with pytest.raises(LabError, match=message):
        make()
