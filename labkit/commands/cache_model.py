"""What ``labkit traffic matmul|conv --model lru|opt`` adds: the same loops in front of a cache, not a scratchpad."""

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
    halo = getattr(args, "halo", "reload")
    chosen = (("c-policy", args.c_policy, "store"), ("buffers", args.buffers, "single"), ("halo", halo, "reload"))
    for option, value, default in chosen:
        if value != default:
            raise LabError(f"--{option} {value}: that is for a scratchpad, a cache has no choice; leave it out")
    return True


def simulated(nest: LoopNest, hardware: Hardware, model: str, ways: int | None) -> dict[str, Any]:
    """Misses and bytes of the tiled loops, element by element, from a cold cache with a flush at the end.

    ``nest_trace`` says in which order the elements of a tile run; a miss moves a whole line.
    """
    from labkit.memory.cache import Cache, simulate
    from labkit.memory.nest_trace import nest_trace
    from labkit.memory.reuse import simulate_optimal

    trace = nest_trace(nest, align=hardware.line_bytes)
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
