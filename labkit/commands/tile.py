"""``labkit tile``: the tile and loop order that move the fewest bytes between DRAM and an SRAM.

It is the exact optimum of the scratchpad model over all tiles and all loop orders. "seconds" is the time of the search,
"predicted_seconds" that of the kernel on the roofline; "candidates" is the number of nests that it is the best of,
those left out that cannot be better.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from labkit.commands import Answer
from labkit.commands.problem_arguments import add_problems, hardware_of, join_loops, problem_of, say_bytes
from labkit.hardware import Hardware
from labkit.roofline import RooflineEstimate
from labkit.search import BestTile, best_tile
from labkit.tiling import bound_bytes
from labkit.units import format_seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_problems(parser)


def run(args: argparse.Namespace) -> Answer:
    """Search, and say what the best nest moves and how close to the lower bound that is."""
    problem, hardware = problem_of(args), hardware_of(args)
    start = time.perf_counter()
    best = best_tile(
        problem, hardware, c_policy=args.c_policy, buffers=args.buffers, halo=getattr(args, "halo", "reload")
    )
    data = _data(args.problem, best, hardware, time.perf_counter() - start)
    return Answer(data, _text(data, best))


def _data(problem: str, best: BestTile, hardware: Hardware, seconds: float) -> dict[str, Any]:
    nest = best.nest
    estimate = RooflineEstimate.of(nest, hardware)
    return {
        **{"problem": problem, "loops": dict(nest.problem.loops), "dtype": nest.problem.inputs[0].dtype},
        **{"tile": list(nest.tile), "order": join_loops(nest.order)},
        **{"c_policy": nest.c_policy, "buffers": nest.buffers, "halo": nest.halo},
        **{"hardware": hardware.name, "sram_bytes": hardware.sram_bytes},
        **{"working_set_bytes": nest.working_set_bytes, "flops": nest.problem.flops},
        **{"read_bytes": nest.traffic.read_bytes, "write_bytes": nest.traffic.write_bytes},
        "bound_bytes": bound_bytes(nest.problem, hardware.sram_bytes),
        "compulsory_bytes": nest.problem.compulsory_bytes,
        **{"intensity": estimate.intensity, "limit": estimate.limit, "predicted_seconds": estimate.seconds},
        **{"candidates": best.candidates, "seconds": seconds},
    }


def _text(data: dict[str, Any], best: BestTile) -> str:
    tile = ",".join(f"{loop}={size}" for loop, size in zip(data["loops"], data["tile"], strict=True))
    moved = data["read_bytes"] + data["write_bytes"]
    return "\n".join(
        (
            f"{best.nest.problem.name} {data['dtype']} in {say_bytes(data['sram_bytes'])} of SRAM",
            f"best tile {tile}, order {data['order']}: working set {say_bytes(data['working_set_bytes'])}",
            f"DRAM: {say_bytes(data['read_bytes'])} read, {say_bytes(data['write_bytes'])} written, "
            f"{moved / data['bound_bytes']:.2f} × the lower bound of {say_bytes(data['bound_bytes'])}",
            f"intensity: {data['intensity']:.2f} FLOP/byte, {data['limit']}-bound on {data['hardware']}, "
            f"{format_seconds(data['predicted_seconds'])}",
            f"best of {data['candidates']:,} candidates, found in {format_seconds(data['seconds'])}",
            "",
            str(best.nest),
        )
    )
