"""On your own machine: do cache misses predict how fast tiles and walks are? Times, ranks and noise, as values.

Nothing here is exact or repeatable, and nothing here is graded: two runs differ, and so do two machines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import TYPE_CHECKING

import numpy as np

from labkit.errors import LabError
from labkit.layout import Layout
from labkit.memory.cache import Cache, simulate
from labkit.memory.trace import matmul_trace, walk_trace

if TYPE_CHECKING:
    from types import ModuleType

Clock = Callable[[], float]
LEAST_RUNS, LARGEST_SIZE = 3, 2048
WALK_SHAPE = (1, 64, 112, 112)  # 3 MiB of float32: more than the first two caches of most machines


@dataclass(frozen=True)
class Timing:
    """One variant: what the model predicts for it (misses), and the seconds of each run."""

    label: str
    misses: int
    seconds: tuple[float, ...]

    @property
    def median_s(self) -> float:
        return median(self.seconds)

    @property
    def spread(self) -> float:
        """Distance of the quartiles, as a share of the median."""
        first, _, third = quantiles(self.seconds, n=4, method="inclusive")
        return (third - first) / self.median_s


@dataclass(frozen=True)
class Comparison:
    """Timings of variants of one computation, against the model."""

    timings: tuple[Timing, ...]

    @property
    def spearman(self) -> float:
        """Rank correlation of predicted misses and median times: 1 when fewer misses always is faster."""
        return rank_correlation([t.misses for t in self.timings], [t.median_s for t in self.timings])

    @property
    def within(self) -> float:
        """Noise: the typical spread of the runs of one variant."""
        return median(t.spread for t in self.timings)

    @property
    def between(self) -> float:
        """Signal: from the fastest variant to the slowest, as a share of the typical time."""
        medians = [t.median_s for t in self.timings]
        return (max(medians) - min(medians)) / median(medians)

    @property
    def is_too_noisy(self) -> bool:
        """Whether runs of one variant differ by half as much as the variants do, so that the order means little."""
        return 2 * self.within > self.between


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Spearman's ρ: the correlation of the ranks, equal values sharing the mean of theirs; 0 where all are equal.

    Source: Spearman, "The proof and measurement of association between two things", Am. J. Psychol. 15, 1904.

    >>> rank_correlation([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    ranks = [[sum(other < v for other in row) + sum(other == v for other in row) / 2 for v in row] for row in (xs, ys)]
    a, b = (np.array(row) - np.mean(row) for row in ranks)
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return round(float(a @ b) / scale, 12) if scale else 0.0


def time_in_turn(works: Mapping[str, Callable[[], object]], runs: int, clock: Clock) -> dict[str, tuple[float, ...]]:
    """Seconds of each work, ``runs`` times; all take turns, so that a busy moment hits all alike. A first, untimed
    turn pays for compilation and cold memory."""
    if runs < LEAST_RUNS:
        raise LabError(f"{runs} runs: at least {LEAST_RUNS} are needed to see the noise")
    for work in works.values():
        work()
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            start = clock()
            work()
            found[name].append(clock() - start)
    return {name: tuple(seconds) for name, seconds in found.items()}


def compare_tiles(size: int, runs: int, cache: Cache, clock: Clock = time.perf_counter) -> Comparison:
    """A float32 product of size³ by tiles of 8, 16, 32 ... and uncut, against simulated misses of one cache."""
    if not 16 <= size <= LARGEST_SIZE:
        raise LabError(f"size {size}: choose 16 to {LARGEST_SIZE}; from about 256 on caches matter")
    kernels = _kernels()
    rng = np.random.default_rng(0)
    A, B = rng.random((2, size, size), dtype=np.float32)
    C = np.zeros_like(A)
    tiles = [*(tile for tile in (8, 16, 32, 64, 128, 256, 512, 1024) if tile < size), size]
    works = {f"T={tile}": lambda tile=tile: kernels.tiled_product(A, B, C, tile) for tile in tiles}
    misses = [_misses_of_tile(size, tile, cache) for tile in tiles]
    seconds = time_in_turn(works, runs, clock)
    return Comparison(tuple(Timing(name, m, seconds[name]) for name, m in zip(works, misses, strict=True)))


def compare_layouts(runs: int, cache: Cache, clock: Clock = time.perf_counter) -> Comparison:
    """The channels of each pixel summed up, in NCHW and in NHWC, against simulated misses of one cache."""
    kernels = _kernels()
    n, channels, h, w = WALK_SHAPE
    x, sums = np.ones(n * channels * h * w, np.float32), np.empty(n * h * w, np.float32)
    layouts = {order: Layout.dense(WALK_SHAPE, order) for order in ("NCHW", "NHWC")}
    works = {
        order: lambda layout=layout: kernels.channel_sums(
            x, n * h * w, channels, layout.stride("W"), layout.stride("C"), sums
        )
        for order, layout in layouts.items()
    }
    misses = {
        order: simulate(walk_trace(layout, "NHWC"), cache, kinds=False).misses for order, layout in layouts.items()
    }
    seconds = time_in_turn(works, runs, clock)
    return Comparison(tuple(Timing(order, misses[order], seconds[order]) for order in layouts))


def _misses_of_tile(size: int, tile: int, cache: Cache) -> int:
    return simulate(matmul_trace(size, size, size, tile=(tile, tile, tile)), cache, kinds=False).misses


def _kernels() -> ModuleType:
    try:
        from labkit.kernels import compiled
    except ImportError:
        raise LabError("labkit measure needs numba, which compiles the loops it times: pip install numba") from None
    return compiled
