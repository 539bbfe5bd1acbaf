"""How fast the best tile is found: CPU milliseconds, medians of runs in turn, nothing remembered between them.

Goals: 1024³ at least 5 times faster than trying all 1.5 million candidates, with the same answer; each convolution of
ResNet-50 under 50 ms, all 53 together under 500 ms; a move of the SRAM slider under 2 ms.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from labkit import candidates, search
from labkit.access import Axis
from labkit.problems import ConvShape, conv, matmul
from labkit.search import best_tile, pareto

RUNS = 7
KIB = 1024
SRAM = 512 * KIB


def every_size(extent: int) -> np.ndarray:
    """The smallest of all tile sizes with the same number of tiles, found by looking at them all."""
    numbers = -(-extent // np.arange(1, extent + 1))
    return np.unique(numbers, return_index=True)[1] + 1


def exhaustive(extent: int, sram_bytes: int) -> tuple[int, int]:
    """The fewest float32 bytes over all tiles of a cube and all six orders, written out, and how many were tried."""
    size = every_size(extent)
    m, n, k = np.meshgrid(size, size, size, indexing="ij", sparse=True)
    trips = dict(zip("mnk", (-(-extent // x) for x in (m, n, k)), strict=True))
    fits = 4 * (m * k + k * n + m * n) <= sram_bytes
    least, tried = 2**62, 0
    for order in itertools.permutations("mnk"):
        passes = {}
        for name, absent in {"A": "n", "B": "m", "C": "k"}.items():
            inside = order[order.index(absent) + 1 :]
            moves = np.any(np.broadcast_arrays(*(trips[x] > 1 for x in inside)), axis=0) if inside else np.array(False)
            passes[name] = np.where(moves, trips[absent], 1)
        moved = 4 * extent**2 * (passes["A"] + passes["B"] + 2 * passes["C"] - 1)
        least = min(least, int(np.where(fits, moved, 2**62).min()))
        tried += fits.size
    return least, tried


def resnet50() -> Iterator[ConvShape]:
    """Its 53 convolutions, batch 1, version 1.5: the stride is that of the 3×3 (He et al., arXiv:1512.03385)."""
    yield ConvShape(1, 3, 224, 224, 64, (7, 7), (2, 2), pads=(3, 3, 3, 3))
    channels, side = 64, 56
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 * 2**stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            out = side // stride
            yield ConvShape(1, channels, side, side, width, (1, 1))
            yield ConvShape(1, width, side, side, width, (3, 3), (stride, stride), pads=(1, 1, 1, 1))
            yield ConvShape(1, width, out, out, 4 * width, (1, 1))
            if not block:
                yield ConvShape(1, channels, side, side, 4 * width, (1, 1), (stride, stride))
            channels, side = 4 * width, out


def forget() -> None:
    """Empty all that searches remember."""
    for memory in (search._best_tile, search._pareto, candidates._window_of, Axis.tile_counts):
        memory.cache_clear()


def cpu_ms(work: Callable[[], object]) -> float:
    """CPU time of one call that remembers nothing from before."""
    forget()
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def slider_ms() -> float:
    """One look at a curve that has been drawn."""
    cube = matmul(1024, 1024, 1024)
    pareto(cube)
    start = time.process_time()
    for sram_kib in range(1, 1001):
        pareto(cube).bytes_at(sram_kib * KIB)
    return (time.process_time() - start) * 1000 / 1000


def measure() -> dict[str, list[float]]:
    """Times of each kind of search, in turn, so that a busy moment of the machine hits all alike."""
    cube, layers = matmul(1024, 1024, 1024), [conv(shape) for shape in resnet50()]
    works: dict[str, Callable[[], object]] = {
        "1024³, all 1,500,282 candidates": lambda: exhaustive(1024, SRAM),
        "1024³, best_tile": lambda: best_tile(cube, SRAM),
        "1024³, pareto (all SRAM sizes)": lambda: pareto(cube),
        **{f"ResNet-50 layer 1, {halo}": lambda halo=halo: best_tile(layers[0], SRAM, halo=halo) for halo in HALOS},
        **{
            f"ResNet-50, all {len(layers)}, {halo}": lambda halo=halo: [best_tile(x, SRAM, halo=halo) for x in layers]
            for halo in HALOS
        },
    }
    rows: dict[str, list[float]] = {name: [] for name in works}
    slowest: list[float] = []
    sliders: list[float] = []
    for _ in range(RUNS):
        for name, work in works.items():
            rows[name].append(cpu_ms(work))
        slowest.append(max(cpu_ms(lambda x=x: best_tile(x, SRAM, halo="slide")) for x in layers))
        sliders.append(slider_ms())
    return {**rows, "ResNet-50, slowest layer, slide": slowest, "1024³, one move of the slider": sliders}


HALOS = ("reload", "slide")


def main() -> int:
    """Print the table; exit 1 when a goal is missed."""
    least, _ = exhaustive(1024, SRAM)
    same = best_tile(matmul(1024, 1024, 1024), SRAM).dram_bytes == least
    medians = {}
    print(f"{'CPU ms, ' + str(RUNS) + ' runs':<36} {'median':>9} {'min':>9} {'max':>9}")
    for name, times in measure().items():
        medians[name] = statistics.median(times)
        print(f"{name:<36} {medians[name]:9.3f} {min(times):9.3f} {max(times):9.3f}")
    ratio = medians["1024³, all 1,500,282 candidates"] / medians["1024³, best_tile"]
    print(f"best_tile against all candidates     {ratio:9.1f} ×   goal: 5 ×, same answer: {'yes' if same else 'NO'}")
    goals = {
        "ResNet-50, slowest layer, slide": 50,
        "ResNet-50, all 53, reload": 500,
        "ResNet-50, all 53, slide": 500,
        "1024³, one move of the slider": 2,
    }
    missed = [f"{name}: goal {goal} ms" for name, goal in goals.items() if medians[name] > goal]
    print("\n".join(missed) or "all goals met")
    return 0 if same and ratio >= 5 and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
