"""`make mutants`: each guard of each pass removed in turn. A test has to notice; what nobody notices is listed."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.mutants.guards import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
PASSES = Path("labkit") / "passes"
FILES = ("affine", "weights", "pads", "no_ops", "merges", "repeated", "quantised", "parts", "fold", "shapes", "slicing",
         "transposes", "permuted", "reshaping", "unit_axes", "pad_order", "gates", "products", "sequences", "signs",
         "spread", "extremes", "ranges", "cse", "control", "editor", "rewriting", "dead")  # fmt: skip
EQUIVALENT = Path(__file__).parent / "equivalent.txt"
# All tests take less than 200; a mutant may well run for ever. The clock on the wall says little on a busy machine.
CPU_SECONDS = 900
# The fast tests of the passes, those that kill most first.
TESTS = ("test_catalogue.py", "test_guards.py", "test_guards_of_shapes.py", "test_guards_of_axes.py",
         "test_guards_of_gates.py", "test_guards_of_resizes.py", "test_guards_of_ifs.py", "test_guards_of_dims.py",
         "test_ties.py", "test_parts.py", "test_repeated.py", "test_quantised.py", "test_movers.py", "test_rules.py",
         "test_bug_reports.py", "test_editor_and_sweep.py", "test_pipeline.py", "test_variations.py")  # fmt: skip


def equivalent() -> dict[tuple[str, str], str]:
    """Guards whose removal changes nothing that can be observed: (file, key) to the reason why."""
    entries = {}
    for line in EQUIVALENT.read_text().splitlines():
        if line and not line.startswith("#"):
            guard, _, reason = line.partition("  # ")
            file, _, key = guard.partition(" ")
            entries[file, key] = reason
    return entries


def survives(mutant: Mutant, *, tests: tuple[str, ...]) -> bool:
    """Whether all tests pass without this guard: run in a copy of the package, beside the same tests."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(ROOT / "labkit", root / "labkit", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", root)
        (root / "tests").symlink_to(ROOT / "tests")
        (root / PASSES / mutant.file).write_text(mutant.source)
        paths = [f"tests/passes/{name}" for name in tests if (ROOT / "tests/passes" / name).exists()]
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *paths]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, preexec_fn=_limit_cpu)
        return done.returncode == 0


def _limit_cpu() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", default=FILES, help="names of files in labkit/passes; all by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    known, total, survivors, stale = equivalent(), 0, 0, 0
    for name in args.files:
        path = ROOT / PASSES / f"{name}.py"
        every = list(mutants(path.name, path.read_text()))
        found = [m for m in every if (m.file, m.key) not in known]
        gone = [key for file, key in known if file == path.name and key not in {m.key for m in every}]
        for key in gone:
            print(f"{EQUIVALENT.name} lists a guard that {path.name} no longer has: {key}")
        with ThreadPoolExecutor(args.jobs) as pool:
            alive = [
                m for m, lives in zip(found, pool.map(partial(survives, tests=TESTS), found), strict=True) if lives
            ]
        for mutant in alive:
            print(f"{PASSES / mutant.file}:{mutant.line}: nothing notices that this is gone from {mutant.key}")
        print(f"{name}: {len(found)} guards removed, {len(found) - len(alive)} noticed", flush=True)
        total, survivors, stale = total + len(found), survivors + len(alive), stale + len(gone)
    print(f"{total} guards removed, {total - survivors} noticed; {len(known)} more change nothing (equivalent.txt)")
    return 1 if survivors or stale else 0


if __name__ == "__main__":
    sys.exit(main())
