"""``labkit traffic``: the bytes that a schedule moves between DRAM and an SRAM.

``traffic matmul`` runs the tiled kernel on a scratchpad and counts, or takes the closed form where the product is too
large to run here in a moment; the tests hold the two equal.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from math import prod
from typing import Any

from labkit.commands import Answer
from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.memory.ledger import Traffic
from labkit.roofline import RooflineEstimate, attainable_flops_per_s
from labkit.tiling import Matmul, MatmulSchedule, Tile, modelled_traffic, working_set_bytes
from labkit.units import MIB, format_bytes, format_rate, format_seconds, parse_bytes

_ITEMSIZE = {"float32": 4, "float64": 8}
# What runs in a few seconds on a small laptop.
_MAX_FLOPS, _MAX_STEPS, _MAX_BYTES = 5 * 10**9, 50_000, 256 * MIB


def add_arguments(parser: argparse.ArgumentParser) -> None:
    problems = parser.add_subparsers(dest="problem", required=True, metavar="PROBLEM")
    matmul = problems.add_parser("matmul", help="a tiled matrix product C[m,n] = A[m,k] · B[k,n]")
    for dim in "mnk":
        matmul.add_argument(f"--{dim}", type=int, required=True, help=f"size {dim} of the product")
    matmul.add_argument("--tile", type=parse_tile, required=True, metavar="TM,TN,TK", help="for example 128,128,128")
    matmul.add_argument("--order", default="mnk", help="loops over tiles, outermost first (default mnk)")
    matmul.add_argument("--c-policy", default="store", help="store (default), load_store or spill")
    matmul.add_argument("--buffers", default="single", help="single (default) or double")
    matmul.add_argument("--sram", help="SRAM size, for example 512KiB (default: that of the hardware)")
    matmul.add_argument("--hardware", default="edge-npu", help="a preset, see labkit hardware (default edge-npu)")
    matmul.add_argument("--dtype", default="float32", choices=sorted(_ITEMSIZE), help="element type (default float32)")


def parse_tile(text: str) -> Tile:
    """Read ``"128,128,64"``; LabError when it is not three whole numbers."""
    try:
        tm, tn, tk = (int(part) for part in text.split(","))
    except ValueError:
        raise LabError(f"tile {text!r}: write three whole numbers TM,TN,TK, for example 128,128,128") from None
    return tm, tn, tk


def run(args: argparse.Namespace) -> Answer:
    """Count or model the traffic of one product; the answer is no when its tiles do not fit."""
    problem = Matmul(args.m, args.n, args.k, _ITEMSIZE[args.dtype])
    asked = MatmulSchedule(args.tile, args.order, args.c_policy, args.buffers)
    hardware = Hardware.preset(args.hardware)
    if args.sram:
        hardware = replace(hardware, sram_bytes=parse_bytes(args.sram))
    schedule = asked.clipped_to(problem)
    data = _question(problem, asked, schedule, hardware, args.dtype)
    if data["fits"]:
        data |= _traffic(problem, schedule, hardware, args.dtype)
    return Answer(data, _text(data, hardware), ok=data["fits"])


def _question(
    problem: Matmul, asked: MatmulSchedule, schedule: MatmulSchedule, hardware: Hardware, dtype: str
) -> dict[str, Any]:
    """What was asked, whether it fits, and the limits that hold for any schedule; the traffic keys are still empty."""
    needed = working_set_bytes(schedule.tile, problem.itemsize, schedule.buffers)
    return {
        **{"problem": "matmul", "m": problem.m, "n": problem.n, "k": problem.k, "dtype": dtype},
        **{"tile": list(schedule.tile), "tile_asked": list(asked.tile), "clipped": schedule is not asked},
        **{"order": schedule.order, "c_policy": schedule.c_policy, "buffers": schedule.buffers},
        **{"hardware": hardware.name, "ridge": hardware.ridge, "sram_bytes": hardware.sram_bytes},
        **{"fits": needed <= hardware.sram_bytes, "working_set_bytes": needed, "flops": problem.flops},
        "bound_bytes": problem.bound_bytes(hardware.sram_bytes),
        "compulsory_bytes": problem.compulsory_bytes,
        **dict.fromkeys(("source", "read_bytes", "write_bytes", "intensity", "limit", "seconds")),
    }


def _traffic(problem: Matmul, schedule: MatmulSchedule, hardware: Hardware, dtype: str) -> dict[str, Any]:
    steps = prod(schedule.trips(problem).values())
    small = problem.flops <= _MAX_FLOPS and steps <= _MAX_STEPS and problem.compulsory_bytes <= _MAX_BYTES
    traffic = _counted(problem, schedule, hardware, dtype) if small else modelled_traffic(problem, schedule)
    estimate = RooflineEstimate(problem.flops, traffic.nbytes, launches=1, hardware=hardware)
    return {
        "source": "counted" if small else "modelled",
        "read_bytes": traffic.read_bytes,
        "write_bytes": traffic.write_bytes,
        "intensity": estimate.intensity,
        "limit": estimate.limit,
        "seconds": estimate.seconds,
    }


def _counted(problem: Matmul, schedule: MatmulSchedule, hardware: Hardware, dtype: str) -> Traffic:
    """Run the kernel; bytes do not depend on what is multiplied."""
    import numpy as np

    from labkit.kernels.matmul import tiled_matmul
    from labkit.memory.scratchpad import Scratchpad

    A, B = np.ones((problem.m, problem.k), dtype), np.ones((problem.k, problem.n), dtype)
    pad = Scratchpad(hardware.sram_bytes)
    tiled_matmul(A, B, schedule.tile, pad, schedule.order, schedule.c_policy, schedule.buffers)
    return pad.ledger.traffic


def _text(data: dict[str, Any], hardware: Hardware) -> str:
    tile = ",".join(map(str, data["tile"]))
    clipped = " (clipped to the problem)" if data["clipped"] else ""
    lines = [
        f"matmul {data['m']} × {data['n']} × {data['k']} (m × n × k) {data['dtype']}, tile {tile}{clipped}, "
        f"order {data['order']}, C policy {data['c_policy']}, {data['buffers']} buffers",
        f"working set: {_bytes(data['working_set_bytes'])}; "
        f"{'fits' if data['fits'] else 'does not fit'} in {_bytes(data['sram_bytes'])} of SRAM",
    ]
    if data["fits"]:
        roof = format_rate(attainable_flops_per_s(data["intensity"], hardware), "FLOP/s")
        moved = data["read_bytes"] + data["write_bytes"]
        lines += [
            f"DRAM: {_bytes(data['read_bytes'])} read, {_bytes(data['write_bytes'])} written ({data['source']}), "
            f"{moved / data['bound_bytes']:.2f} × the lower bound",
            f"intensity: {data['intensity']:.2f} FLOP/byte, {data['limit']}-bound on {hardware.name} "
            f"(ridge {hardware.ridge:.1f} FLOP/byte): at most {roof}, {format_seconds(data['seconds'])}",
        ]
    lines.append(
        f"any schedule in this SRAM: at least {_bytes(data['bound_bytes'])} "
        f"(compulsory {_bytes(data['compulsory_bytes'])})"
    )
    return "\n".join(lines)


def _bytes(count: int) -> str:
    return f"{format_bytes(count)} ({count:,} bytes)"
