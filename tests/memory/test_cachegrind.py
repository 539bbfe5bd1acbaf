"""The simulated product against cachegrind on the same loops, compiled from C.

What the program does before and after the loops is measured with an empty run and subtracted. Each operand is
``volatile``, so that the compiler makes exactly the accesses that are written, and the variables of the loops stay in
registers (-O1). What remains: cachegrind runs a real process, whose stack lines are in the cache at the start.
"""

import re
import shutil
import subprocess

import pytest

from labkit.memory.cache import Cache, simulate
from labkit.memory.trace import matmul_trace

pytestmark = pytest.mark.slow

PROGRAM = r"""
#define N 128
#define T 32
static volatile float memory[3 * N * N] __attribute__((aligned(4096)));
#define A (memory)
#define B (memory + N * N)
#define C (memory + 2 * N * N)

static void naive(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < N; k++) sum += A[i * N + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
}

static void tiled(void) {
    for (int i0 = 0; i0 < N; i0 += T)
        for (int j0 = 0; j0 < N; j0 += T)
            for (int k0 = 0; k0 < N; k0 += T)
                for (int i = i0; i < i0 + T; i++)
                    for (int j = j0; j < j0 + T; j++) {
                        float sum = C[i * N + j];
                        for (int k = k0; k < k0 + T; k++) sum += A[i * N + k] * B[k * N + j];
                        C[i * N + j] = sum;
                    }
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc == 2) naive();
    if (argc == 3) tiled();
    return 0;
}
"""


@pytest.fixture(scope="module")
def cachegrind(tmp_path_factory):
    """D1 misses of the program with so many arguments, in a 32 KiB 8-way cache of 64-byte lines."""
    compiler = next((name for name in ("gcc", "cc", "clang") if shutil.which(name)), None)
    if compiler is None:
        pytest.skip("no C compiler (gcc, cc or clang) here: the judge of this test is a compiled program")
    if shutil.which("valgrind") is None:
        pytest.skip("no valgrind here: the judge of this test is its cachegrind (apt-get install valgrind)")
    folder = tmp_path_factory.mktemp("cachegrind")
    (folder / "product.c").write_text(PROGRAM, encoding="utf-8")
    subprocess.run([compiler, "-O1", "-o", "product", "product.c"], cwd=folder, check=True)

    def misses(*arguments: str) -> int:
        command = [
            "valgrind",
            "--tool=cachegrind",
            "--cache-sim=yes",
            "--D1=32768,8,64",
            "--cachegrind-out-file=/dev/null",
        ]
        run = subprocess.run(
            [*command, "./product", *arguments], cwd=folder, check=True, capture_output=True, text=True
        )
        return int(re.search(r"D1\s+misses:\s+([\d,]+)", run.stderr)[1].replace(",", ""))

    return misses


@pytest.mark.parametrize(("arguments", "tile", "tolerance"), [(["n"], None, 0.001), (["t", "t"], (32, 32, 32), 0.01)])
def test_misses_are_those_of_cachegrind_on_the_same_loops_in_c(cachegrind, arguments, tile, tolerance):
    measured = cachegrind(*arguments) - cachegrind()
    counts = simulate(matmul_trace(128, 128, 128, tile=tile, base=4096, align=4096), Cache(32 * 1024, 8, 64))
    print(f"cachegrind {measured}, simulated {counts.misses}")
    assert counts.misses == pytest.approx(measured, rel=tolerance)
