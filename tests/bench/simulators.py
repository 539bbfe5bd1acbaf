"""Rates of the cache simulators, their peak memory, the wait for numba's compiler, and the cost of a slider step.

Rates are accesses of the trace a CPU second, the best of three, in millions; the cache is 32 KiB, 8 ways, 64 B lines.
Compare them within one run only. cachegrind runs where valgrind and a C compiler are; pycachesim (AGPL, so never a
dependency) only if someone has installed it by hand.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from labkit.memory.cache import Cache, simulate
from labkit.memory.conv_trace import conv_trace
from labkit.memory.engine import EngineName
from labkit.memory.reuse import miss_curve
from labkit.memory.trace import AddressTrace, Trace, chunks, matmul_trace

CACHE = Cache(32 * 1024, 8, 64)
C_LOOPS = """
static volatile float A[16384] __attribute__((aligned(4096))), B[16384], C[16384];
int main(int argc, char **argv) {
    (void)argv;
    for (int i = 0; i < (argc > 1 ? 128 : 0); i++)
        for (int j = 0; j < 128; j++) {
            float sum = 0;
            for (int k = 0; k < 128; k++) sum += A[i * 128 + k] * B[k * 128 + j];
            C[i * 128 + j] = sum;
        }
    return 0;
}
"""
FRESH = """
import resource, sys, time
import numpy as np
from labkit.memory.cache import Cache, simulate
from labkit.memory.reuse import miss_curve
from labkit.memory.trace import AddressTrace, chunks, matmul_trace
def work(trace, what):
    if "lru" in what: simulate(trace, Cache(32 * 1024, 8, 64), kinds=False, engine="compiled")
    if "curve" in what: miss_curve(trace, engine="compiled")
trace, what = matmul_trace(*[int(sys.argv[1])] * 3), sys.argv[2]
if "list" in what:
    parts = list(chunks(trace))
    addresses = np.concatenate([c.addresses for c in parts])
    trace = AddressTrace(addresses, np.concatenate([c.writes for c in parts]))
    del parts
if "list" in what or "nest" in what: work(matmul_trace(2, 2, 2), what)
loaded = time.perf_counter()
work(trace, what)
used = resource.getrusage(resource.RUSAGE_SELF)
print(time.perf_counter() - loaded, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def main() -> int:
    """Print the tables."""
    growth()  # first: the peak of a child counts from the size of its parent
    compiler()
    slider()
    rates(pycachesim_rate())
    return 0


# ---- rates


def written_out(trace: Trace) -> AddressTrace:
    """The same accesses as a plain list of addresses."""
    parts = list(chunks(trace))
    return AddressTrace(np.concatenate([c.addresses for c in parts]), np.concatenate([c.writes for c in parts]))


def rates(base: float | None) -> None:
    """The table of rates, with the ratio to pycachesim where that is there."""
    random = np.random.default_rng(0)
    uniform = [
        AddressTrace.of(random.integers(0, n, 4_000_000) * 64, random.random(4_000_000) < 0.3) for n in (2_000, 100_000)
    ]
    traces: dict[str, tuple[Trace, EngineName]] = {
        "addresses: naive 128³": (written_out(matmul_trace(128, 128, 128)), "compiled"),
        "addresses: random, 2,000 lines": (uniform[0], "compiled"),
        "addresses: random, 100,000 lines": (uniform[1], "compiled"),
        "nest: naive 128³": (matmul_trace(128, 128, 128), "compiled"),
        "nest: naive 256³": (matmul_trace(256, 256, 256), "compiled"),
        "nest: naive 250³": (matmul_trace(250, 250, 250), "compiled"),
        "nest: tiled 256³, T=32": (matmul_trace(256, 256, 256, tile=(32, 32, 32)), "compiled"),
        "nest: tiled 250³, T=32": (matmul_trace(250, 250, 250, tile=(32, 32, 32)), "compiled"),
        "nest: 3×3, 64×56×56, padded, NHWC": (conv_trace(1, 64, 56, 56, 64, 3, pad=1, order="NHWC"), "compiled"),
        "nest: 3×3, 64×56×56, padded, NCHW": (conv_trace(1, 64, 56, 56, 64, 3, pad=1), "compiled"),
        "nest: tiled 1024³, T=32": (matmul_trace(1024, 1024, 1024, tile=(32, 32, 32)), "compiled"),
        "addresses: naive 64³, plain Python": (written_out(matmul_trace(64, 64, 64)), "interpreted"),
        "nest: naive 128³, plain Python": (matmul_trace(128, 128, 128), "interpreted"),
    }
    print(f"{'million accesses/CPU s':<36} {'LRU':>9} {'all sizes':>10} {'LRU/pycachesim':>15} {'all/pycachesim':>15}")
    for name, (trace, engine) in traces.items():
        lru = rate(trace, lambda trace=trace, engine=engine: simulate(trace, CACHE, kinds=False, engine=engine))
        every = rate(trace, lambda trace=trace, engine=engine: miss_curve(trace, engine=engine))
        ratios = (f"{lru / base:14.1f}×", f"{every / base:14.1f}×") if base else ("", "")
        print(f"{name:<36} {lru:9.1f} {every:10.1f} {ratios[0]:>15} {ratios[1]:>15}")
    print(f"{'pycachesim, batched, naive 64³':<36} " + (f"{base:9.1f}" if base else "not installed"))
    grind = cachegrind_rate()
    print(f"{'cachegrind, naive 128³ in C':<36} " + (f"{grind:9.1f}" if grind else "no valgrind or C compiler"))
    print("goals: addresses 120 LRU, 40 all sizes; nests 20× and 10× pycachesim; plain Python 3; 1024³ 2,200 (1 s)\n")


def rate(trace: Trace, run: Callable[[], object]) -> float:
    """Million accesses a CPU second, best of three after one to warm up."""
    times = [elapsed(run, time.process_time) for _ in range(4)]
    return trace.accesses / min(times[1:]) / 1e6


def elapsed(run: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of one call, by this clock: others may be at work on the machine, and CPU time leaves them out."""
    start = clock()
    run()
    return clock() - start


def pycachesim_rate() -> float | None:
    """Loads of the naive 64³ product in one call, or None where it is not installed."""
    if importlib.util.find_spec("cachesim") is None:
        return None
    import cachesim

    memory = cachesim.MainMemory()
    level = cachesim.Cache("L1", 64, 8, 64, "LRU")
    memory.load_to(level)
    memory.store_from(level)
    simulator, trace = cachesim.CacheSimulator(level, memory), matmul_trace(64, 64, 64)
    addresses = written_out(trace).addresses.tolist()
    return rate(trace, lambda: simulator.load(addresses, length=4))


def cachegrind_rate() -> float | None:
    """cachegrind on the naive 128³ product, an empty run subtracted, or None where it cannot run."""
    compiler = next((name for name in ("gcc", "cc", "clang") if shutil.which(name)), None)
    if compiler is None or shutil.which("valgrind") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "product.c").write_text(C_LOOPS, encoding="utf-8")
        subprocess.run([compiler, "-O1", "-o", "product", "product.c"], cwd=folder, check=True)
        command = [
            "valgrind",
            "--tool=cachegrind",
            "--cache-sim=yes",
            "--D1=32768,8,64",
            "--cachegrind-out-file=/dev/null",
        ]

        def run(*arguments: str) -> object:
            return subprocess.run([*command, "./product", *arguments], cwd=folder, check=True, capture_output=True)

        seconds = elapsed(lambda: run("all")) - elapsed(lambda: run())
    return matmul_trace(128, 128, 128).accesses / seconds / 1e6


# ---- fresh processes


def fresh(size: int, what: str, cache_folder: str | None = None) -> tuple[float, float, float]:
    """(seconds of the work, CPU seconds of the whole process, peak MiB) of a process of its own."""
    environment = {**os.environ} | ({"NUMBA_CACHE_DIR": cache_folder} if cache_folder else {})
    command = [sys.executable, "-c", FRESH, str(size), what]
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    seconds, cpu, kib = map(float, re.findall(r"[\d.e-]+", output))
    return seconds, cpu, kib / 1024


def growth() -> None:
    """Time and peak memory over the length of the trace: with outer loops left out, and access by access."""
    print(f"{'naive product; peak goal: 400 MiB':<36} {'accesses':>12} {'LRU s':>8} {'MiB':>6} {'all s':>8} {'MiB':>6}")
    for way in ("nest", "list"):
        for size in (64, 128, 256):
            (lru, _, lru_mib), (every, _, every_mib) = fresh(size, f"{way} lru"), fresh(size, f"{way} curve")
            accesses = matmul_trace(size, size, size).accesses
            print(
                f"{f'{size}³, as a {way}':<36} {accesses:12,} {lru:8.3f} {lru_mib:6.0f} {every:8.3f} {every_mib:6.0f}"
            )
    print("(a process each, the compiled engine loaded before; the list is made before too, and counts as memory)\n")


def compiler() -> None:
    """What numba's compiler costs in the first process and in the second."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = fresh(64, "lru", folder), fresh(64, "lru", folder)
        both = fresh(64, "lru curve", folder)
    imports = cpu_of("import labkit.memory.cache")
    numba = cpu_of("import labkit.memory.cache, numba")
    print("CPU seconds of a process, imports included")
    print(f"{'import NumPy and the simulator':<36} {imports:8.2f}   with numba {numba:.2f}")
    print(f"{'first LRU ever, compiles':<36} {first[1]:8.2f}   goal: 4")
    print(f"{'second process, from the disk cache':<36} {second[1]:8.2f}   goal: 1; the call {second[0]:.2f} s")
    print(f"{'first curve ever, after that':<36} {both[1]:8.2f}\n")


def cpu_of(statement: str) -> float:
    """CPU seconds of a process that does only this."""
    command = [sys.executable, "-c", f"import time; {statement}; print(time.process_time())"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def slider() -> None:
    """One step of the SRAM slider once the curve is there."""
    curve = miss_curve(matmul_trace(256, 256, 256, tile=(32, 32, 32)))
    sizes = [64 * (1 + step * 37 % 8000) for step in range(10_000)]
    seconds = elapsed(lambda: [curve.misses(size) for size in sizes]) / len(sizes)
    print(f"{'a slider step: curve.misses(size)':<36} {seconds * 1e6:8.1f} µs   goal: 2,000 µs")


if __name__ == "__main__":
    sys.exit(main())
