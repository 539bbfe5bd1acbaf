"""What ``labkit traffic matmul --model lru|opt`` adds: the same loops in front of a cache instead of a scratchpad."""

from __future__ import annotations

import argparse
from typing import Any

from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.loops import LoopNest

MODELS = ("scratchpad", "lru", "opt")
_MOST_ACCESSES = 2**33  # a minute or so


def add_cache_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        default="scratchpad",
        choices=MODELS,
        help="scratchpad (default): tiles that the kernel loads and stores; lru: a write-back, write-allocate cache of "
        "the same size; opt: a cache that evicts the line used furthest in the future",
    )
    parser.add_argument("--ways", type=int, help="with --model lru: lines in a set (default: fully associative)")


def uses_cache(args: argparse.Namespace) -> bool:
    """Whether a cache was asked for; LabError for an option that the other model has."""
    if args.ways is not None and args.model != "lru":
        raise LabError(f"--ways {args.ways}: only --model lru has sets, {args.model} has none")
    if args.model == "scratchpad":
        return False
    for option, value, default in (("c-policy", args.c_policy, "store"), ("buffers", args.buffers, "single")):
        if value != default:
            raise LabError(f"--{option} {value}: that is for a scratchpad, a cache has no choice; leave it out")
    return True


def simulated(nest: LoopNest, hardware: Hardware, model: str, ways: int | None) -> dict[str, Any]:
    """Misses and bytes of the tiled loops, element by element, from a cold cache with a flush at the end.

    The elements of a tile run in the order m, n, k with the accumulator in a register; a miss moves a whole line.
    """
    from labkit.memory.cache import Cache, simulate
    from labkit.memory.reuse import simulate_optimal
    from labkit.memory.trace import matmul_trace

    operands = nest.problem.operands
    if len({operand.itemsize for operand in operands}) > 1:
        raise LabError(
            f"--model {model}: {operands[0].dtype} adds up in {operands[-1].dtype}; choose float32 or float64"
        )
    (m, n, k), (tm, tn, tk) = nest.problem.loops.values(), nest.tile
    trace = matmul_trace(m, n, k, operands[0].itemsize, order="".join(nest.order), tile=(tm, tn, tk))
    if trace.accesses > _MOST_ACCESSES:
        raise LabError(f"{trace.accesses:,} accesses: labkit traffic simulates up to {_MOST_ACCESSES:,}")
    cache = Cache(hardware.sram_bytes, ways, hardware.line_bytes)
    if model == "lru":
        counts = simulate(trace, cache, kinds=False)
        misses, written = counts.misses, counts.write_bytes
    else:
        optimal = simulate_optimal(trace, cache.size_bytes, cache.line_bytes)
        misses, written = optimal.misses, optimal.write_backs * cache.line_bytes
    return {
        **{"source": "simulated", "read_bytes": misses * cache.line_bytes, "write_bytes": written},
        **{"model": model, "ways": ways, "line_bytes": cache.line_bytes},
        **{"accesses": trace.accesses, "misses": misses},
    }


def cache_text(data: dict[str, Any]) -> list[str]:
    """The line about the cache; none for a scratchpad."""
    if "misses" not in data:
        return []
    ways = "fully associative" if data["ways"] is None else f"{data['ways']} ways"
    return [
        f"{data['model']} cache, {ways}, lines of {data['line_bytes']} bytes: {data['misses']:,} misses in "
        f"{data['accesses']:,} accesses, from cold"
    ]
