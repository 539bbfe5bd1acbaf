"""`make fuzz`: many random graphs through the passes, on all cores. Faults are printed, shrunk and saved as ONNX.

Should onnxruntime crash and take a process with it, the seeds at work are in files named process… beside the graphs.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.fuzz.differential import OUT, Fault, explained, faults

EVERY = 10  # of so many graphs one goes through each pass alone and through random orders, too


def checked(seeds: range, every: int) -> list[Fault]:
    found = []
    for seed in seeds:
        (OUT / f"process{os.getpid()}").write_text(str(seed))  # should the process die here, this says where
        found += faults(seed, thorough=not seed % every)
    return found


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="?", type=int, default=20_000)
    parser.add_argument("seed", nargs="?", type=int, default=10**6, help="the first seed; others count on from it")
    parser.add_argument("--every", type=int, default=EVERY, help="1: each pass alone for every graph")
    args = parser.parse_args()
    parts = [range(first, min(first + 100, args.seed + args.graphs))
             for first in range(args.seed, args.seed + args.graphs, 100)]  # fmt: skip
    found: list[Fault] = []
    OUT.mkdir(exist_ok=True)
    for left in OUT.glob("process*"):
        left.unlink()
    with ProcessPoolExecutor() as pool:
        for part, more in zip(parts, pool.map(partial(checked, every=args.every), parts), strict=True):
            found += more
            for fault in more[:1]:
                print(explained(fault), flush=True)
            if sys.stderr.isatty():
                print(f"\r{part.stop - args.seed} graphs, {len(found)} faults", end="", file=sys.stderr)
    print(f"{args.graphs} graphs from seed {args.seed}: {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
