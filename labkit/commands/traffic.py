"""``labkit traffic``: the bytes that a tiled loop nest moves between DRAM and an SRAM.

The kernel runs on a scratchpad and every transfer is counted, or the closed form is taken where it is too large to run
here in a moment; the tests hold the two equal. A tile is one number for each loop, or loop=size pairs: m, n, k for
matmul; n, g (group), f (filter), c (channel), p, q (output row, column), r, s (kernel row, column) for conv.
"""

from __future__ import annotations

import argparse
from math import prod
from typing import Any

from labkit.commands import Answer
from labkit.commands.cache_model import add_cache_arguments, cache_text, simulated, uses_cache
from labkit.commands.chain_model import chain_text, chain_traffic
from labkit.commands.problem_arguments import (
    add_problems,
    hardware_of,
    join_loops,
    parse_loops,
    parse_tile,
    problem_of,
    say_bytes,
)
from labkit.hardware import Hardware
from labkit.loops import LoopNest
from labkit.memory.ledger import Traffic
from labkit.roofline import RooflineEstimate
from labkit.tiling import bound_bytes
from labkit.units import MIB, format_rate, format_seconds

# What runs in a few seconds on a small laptop.
_MAX_FLOPS, _MAX_STEPS, _MAX_BYTES = 5 * 10**9, 50_000, 256 * MIB


def add_arguments(parser: argparse.ArgumentParser) -> None:
    matmul, conv, chain = add_problems(parser, ("matmul", "conv", "chain"))
    matmul.add_argument("--tile", required=True, metavar="TM,TN,TK", help="such as 128,128,64 or m=128,n=128")
    matmul.add_argument("--order", help="loops over tiles, outermost first (default mnk)")
    for child in (conv, chain):
        child.add_argument("--tile", required=True, help="loop=size pairs such as f=64,p=8, or a number for each loop")
        child.add_argument("--order", help="loops over tiles, outermost first (default ngfcpqrs)")
    for child in (matmul, conv):
        add_cache_arguments(child)


def run(args: argparse.Namespace) -> Answer:
    """Count, model or simulate the traffic of one nest; the answer is no when its tiles do not fit a scratchpad."""
    problem, hardware = problem_of(args), hardware_of(args)
    tile, order = parse_tile(args.tile, problem), parse_loops(args.order, problem)
    asked = LoopNest(problem, tile, order, args.c_policy, args.buffers, getattr(args, "halo", "reload"))
    nest = asked.clipped()
    data = _question(args.problem, nest, asked, hardware)
    if args.problem == "chain":
        data |= chain_traffic(nest, hardware)
    elif uses_cache(args):
        data |= simulated(nest, hardware, args.model, args.ways)
    elif data["fits"]:
        data |= _traffic(nest, hardware)
    if data["read_bytes"] is not None:
        moved_bytes = data["read_bytes"] + data["write_bytes"]
        estimate = RooflineEstimate(data["flops"], moved_bytes, launches=1, hardware=hardware)
        data |= {"intensity": estimate.intensity, "limit": estimate.limit, "seconds": estimate.seconds}
    return Answer(data, _text(data, nest, hardware), ok=data["read_bytes"] is not None)


def _question(problem: str, nest: LoopNest, asked: LoopNest, hardware: Hardware) -> dict[str, Any]:
    """What was asked, whether it fits, and the limits that hold for any schedule; the traffic keys are still empty."""
    needed = nest.working_set_bytes
    return {
        **{"problem": problem, "loops": dict(nest.problem.loops), "dtype": nest.problem.inputs[0].dtype},
        **{"tile": list(nest.tile), "tile_asked": list(asked.tile), "clipped": nest is not asked},
        **{"order": join_loops(nest.order), "c_policy": nest.c_policy, "buffers": nest.buffers, "halo": nest.halo},
        **{"hardware": hardware.name, "ridge": hardware.ridge, "sram_bytes": hardware.sram_bytes},
        **{"fits": needed <= hardware.sram_bytes, "working_set_bytes": needed, "flops": nest.problem.flops},
        "bound_bytes": bound_bytes(nest.problem, hardware.sram_bytes),
        "compulsory_bytes": nest.problem.compulsory_bytes,
        **dict.fromkeys(("source", "read_bytes", "write_bytes", "intensity", "limit", "seconds")),
    }


def _traffic(nest: LoopNest, hardware: Hardware) -> dict[str, Any]:
    small = _is_small(nest)
    traffic = _counted(nest, hardware) if small else nest.traffic
    source = "counted" if small else "modelled"
    return {"source": source, "read_bytes": traffic.read_bytes, "write_bytes": traffic.write_bytes}


def _is_small(nest: LoopNest) -> bool:
    """Whether the kernel runs in a few seconds: each tap of each step of a window is an operation of its own."""
    windows = (axis for x in nest.problem.inputs for axis in x.axes if not axis.is_plain)
    taps = prod(nest.tiles[loop] for axis in windows for loop in axis.loops[1:])
    steps = prod(nest.trips.values()) * taps
    problem = nest.problem
    return problem.flops <= _MAX_FLOPS and steps <= _MAX_STEPS and problem.compulsory_bytes <= _MAX_BYTES


def _counted(nest: LoopNest, hardware: Hardware) -> Traffic:
    """Run the kernel; bytes do not depend on what is multiplied."""
    import numpy as np

    from labkit.kernels.nest import run_nest
    from labkit.memory.scratchpad import Scratchpad

    pad = Scratchpad(hardware.sram_bytes)
    run_nest(nest, {x.name: np.ones(x.shape, x.dtype) for x in nest.problem.inputs}, pad)
    return pad.ledger.traffic


def _text(data: dict[str, Any], nest: LoopNest, hardware: Hardware) -> str:
    tile = ",".join(f"{loop}={size}" for loop, size in zip(data["loops"], data["tile"], strict=True))
    clipped = " (clipped to the problem)" if data["clipped"] else ""
    halo = f", halo {data['halo']}" if data["problem"] != "matmul" else ""
    lines = [
        f"{nest.problem.name} {data['dtype']}, tile {tile}{clipped}, "
        f"order {data['order']}, C policy {data['c_policy']}, {data['buffers']} buffers{halo}",
        f"working set: {say_bytes(data['working_set_bytes'])}; "
        f"{'fits' if data['fits'] else 'does not fit'} in {say_bytes(data['sram_bytes'])} of SRAM",
    ]
    if data["read_bytes"] is not None:
        moved_bytes = data["read_bytes"] + data["write_bytes"]
        estimate = RooflineEstimate(data["flops"], moved_bytes, launches=1, hardware=hardware)
        roof = format_rate(estimate.attainable_flops_per_s, "FLOP/s")
        lines += [
            f"DRAM: {say_bytes(data['read_bytes'])} read, {say_bytes(data['write_bytes'])} written ({data['source']}), "
            f"{moved_bytes / data['bound_bytes']:.2f} × the lower bound",
            f"intensity: {data['intensity']:.2f} FLOP/byte, {data['limit']}-bound on {hardware.name} "
            f"(ridge {hardware.ridge:.1f} FLOP/byte): at most {roof}, {format_seconds(data['seconds'])}",
            *cache_text(data),
            *chain_text(data),
        ]
    lines.append(
        f"any schedule in this SRAM: at least {say_bytes(data['bound_bytes'])} "
        f"(compulsory {say_bytes(data['compulsory_bytes'])})"
    )
    return "\n".join(lines)
