"""``labkit measure``: times compiled loops on this machine and compares their order with the model's.

Nothing here is exact: two runs differ, and so do two machines. Nothing here is graded.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from labkit.commands import Answer
from labkit.units import format_bytes, format_seconds, parse_bytes

if TYPE_CHECKING:
    from labkit.measure import Comparison

_WHY = """\
Why this machine is not the one that the course models: a CPU hides misses. It prefetches lines, runs on while they
come, and has two or three caches where the model has one; and these loops spend most of their time on additions and on
the overhead of short inner loops, which the model does not know. So misses alone often rank tiles poorly here. An NPU
moves whole tiles by DMA into a scratchpad, at hundreds of operations in the time of one byte: there, bytes decide."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", type=int, default=256, help="side of the matrices (default 256)")
    parser.add_argument("--runs", type=int, default=7, help="runs of each variant (default 7, at least 3)")
    parser.add_argument("--cache", default="32KiB", help="the cache that the model simulates (default 32KiB)")
    parser.add_argument("--ways", type=int, default=8, help="lines in one of its sets (default 8)")


def run(args: argparse.Namespace) -> Answer:
    """Time tiles and walks, and compare; a machine too noisy to tell is said so, and is no error."""
    from labkit.measure import compare_layouts, compare_tiles
    from labkit.memory.cache import Cache

    cache = Cache(parse_bytes(args.cache), args.ways)
    tiles, walk = compare_tiles(args.size, args.runs, cache), compare_layouts(args.runs, cache)
    data = {
        **{"size": args.size, "runs": args.runs, "cache_bytes": cache.size_bytes, "ways": args.ways},
        **{"tiles": _data(tiles), "spearman": tiles.spearman, "walk": _data(walk)},
    }
    return Answer(data, _text(data, tiles, walk))


def _data(comparison: Comparison) -> dict[str, Any]:
    return {
        "timings": [
            {"label": t.label, "misses": t.misses, "median_s": t.median_s, "spread": t.spread, "seconds": t.seconds}
            for t in comparison.timings
        ],
        **{"spearman": comparison.spearman, "within": comparison.within, "between": comparison.between},
        "too_noisy": comparison.is_too_noisy,
    }


def _text(data: dict[str, Any], tiles: Comparison, walk: Comparison) -> str:
    cache = f"{format_bytes(data['cache_bytes'])}, {data['ways']} ways, 64-byte lines"
    return "\n".join(
        (
            f"tiled product {data['size']}³ float32, {data['runs']} runs; misses simulated in {cache}",
            *_table(tiles),
            f"Spearman's rank correlation of misses and times: {tiles.spearman:.2f} (1: fewer misses always faster, "
            "0: no relation)",
            _verdict(tiles),
            "",
            "sum over the channels of each pixel, 1×64×112×112 float32",
            *_table(walk),
            _verdict(walk),
            "",
            _WHY,
        )
    )


def _table(comparison: Comparison) -> list[str]:
    rows = [f"{'':8} {'misses':>14} {'median time':>12} {'spread':>7}"]
    for t in comparison.timings:
        rows.append(f"{t.label:8} {t.misses:14,} {format_seconds(t.median_s):>12} {t.spread:7.1%}")
    return rows


def _verdict(comparison: Comparison) -> str:
    noise = f"runs of one variant spread by {comparison.within:.1%}, the variants differ by {comparison.between:.1%}"
    if comparison.is_too_noisy:
        return f"too noisy to tell: {noise}; close other programs, take more --runs, and try again"
    return f"clear enough: {noise}"
