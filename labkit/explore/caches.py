"""A tiled product in front of a cache, small enough to be simulated while a slider waits."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from labkit.errors import LabError
from labkit.loops import LoopNest
from labkit.memory.nest_trace import nest_trace
from labkit.memory.reuse import MissCurve, miss_curve, simulate_optimal

Shape = tuple[int, int, int]

_MOST_FLOPS = 2 * 320**3  # what a slider can wait for: about a second
_MOST_STEPS = 1500


def twin(shape: Shape, tile: Shape, sram_bytes: int, factor: int) -> tuple[Shape, Shape, int]:
    """The same product ``factor`` times smaller: lengths and tile shrink by it, the SRAM by its square.

    Each tile then stands to the SRAM as before. Bytes become ``factor``² times fewer, FLOP per byte ``factor`` times.

    >>> twin((1024, 1024, 1024), (256, 256, 256), 512 * 1024, 4)
    ((256, 256, 256), (64, 64, 64), 32768)
    """
    if any(length % factor for length in (*shape, *tile)) or sram_bytes % factor**2:
        raise LabError(f"a twin {factor} times smaller: {factor} must divide {shape} and {tile}, its square the SRAM")
    m, n, k = (length // factor for length in shape)
    tm, tn, tk = (length // factor for length in tile)
    return (m, n, k), (tm, tn, tk), sram_bytes // factor**2


@lru_cache(maxsize=64)  # the SRAM slider asks for one curve again and again
def lru(nest: LoopNest, line_bytes: int) -> MissCurve:
    """Misses and write-backs of LRU caches of all sizes; LabError for a product too large to wait for."""
    return miss_curve(nest_trace(_small(nest), align=line_bytes), line_bytes)


@lru_cache(maxsize=64)
def opt(nest: LoopNest, line_bytes: int, sram_bytes: int) -> tuple[int, int]:
    """Lines read and written by Belady's cache of one size; LabError for a product too large to wait for."""
    counts = simulate_optimal(nest_trace(_small(nest), align=line_bytes), sram_bytes, line_bytes)
    return counts.misses, counts.write_backs


def _small(nest: LoopNest) -> LoopNest:
    """LabError for a product that takes too long, before its trace is made."""
    if nest.problem.flops > _MOST_FLOPS:
        raise LabError(
            f"{nest.problem.name} is too large to simulate a cache while you wait: take a twin of up to 320×320×320 "
            "(lengths and tile a quarter, SRAM a sixteenth; then bytes are a sixteenth, FLOP/byte a quarter)"
        )
    return nest


def steps(curve: MissCurve) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes of LRU caches at which the bytes they move change, and those bytes, from one line on."""
    tables = [table.sum(axis=0) for table in (curve.miss_table, curve.dirty_table)]
    length = max(map(len, tables)) + 1
    misses, dirty = (np.pad(table, (0, length - len(table)), mode="edge") for table in tables)
    lines = misses + dirty
    rooms = np.flatnonzero(np.diff(lines)) + 1  # with room for no line everything misses, so 1 may be no step
    rooms = np.union1d(rooms, [1])
    if len(rooms) > _MOST_STEPS:
        rooms = rooms[np.linspace(0, len(rooms) - 1, _MOST_STEPS).astype(int)]
    sizes, moved = rooms * curve.line_bytes, lines[rooms] * curve.line_bytes
    return tuple(sizes.tolist()), tuple(moved.tolist())
