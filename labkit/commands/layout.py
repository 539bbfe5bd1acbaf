"""``labkit layout``: strides of a memory order, and the lines a walk through it touches.

lines_touched, bytes_used and bytes_fetched are those of ONE run of the walk (--at; the first unless said), for
"channel" all channels of one pixel. straddles counts, over ALL runs of the tensor, those that cross a line border;
straddling_runs lists their numbers and all_runs gives the sums when every run fetches its own lines.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

import numpy as np

from labkit.commands import Answer
from labkit.errors import LabError
from labkit.layout import Layout
from labkit.memory.lines import WALKS, WEIGHT_WALKS, LineUse, addresses, line_use, straddling
from labkit.units import parse_bytes

_LISTED = 64  # straddling runs printed for people; --json gives all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--shape", required=True, help="logical lengths, such as 2,3,4,4 for N,C,H,W")
    parser.add_argument("--order", default="NCHW", help="memory order: NCHW, NHWC, NCHW8c, OIHW ... (default NCHW)")
    parser.add_argument(
        "--walk", default="channel", help=f"what a run reads: {', '.join(WALKS | WEIGHT_WALKS)} (default channel)"
    )
    parser.add_argument(
        "--at", type=int, metavar="RUN", default=0, help="number of the run to count, from 0 (default 0)"
    )
    parser.add_argument("--line-bytes", default="64", help="bytes in a line (default 64)")
    parser.add_argument("--dtype", default="float32", help="type of an element (default float32)")
    parser.add_argument("--base", type=int, default=0, help="byte address of the first element (default 0)")


def run(args: argparse.Namespace) -> Answer:
    """Count one run and all runs of the walk."""
    layout = Layout.dense(_shape(args.shape), args.order)
    itemsize, line_bytes = _itemsize(args.dtype), parse_bytes(args.line_bytes)
    walk = addresses(layout, args.walk, itemsize, args.base)
    if not 0 <= args.at < max(len(walk), 1):
        raise LabError(f"--at {args.at}: the walk {args.walk!r} has {len(walk)} runs, numbered from 0")
    one = line_use(walk[args.at : args.at + 1], itemsize, line_bytes)
    every = line_use(walk, itemsize, line_bytes)
    crossing = straddling(walk, itemsize, line_bytes)
    data = {
        "shape": list(layout.logical_shape),
        "order": args.order,
        "axes": list(layout.axes),
        "strides": list(layout.strides),
        "strides_in_memory_order": {axis: layout.stride(axis) for axis in layout.memory_axes},
        "size": layout.size,
        "nbytes": layout.size * itemsize,
        "walk": args.walk,
        "run": args.at,
        "line_bytes": line_bytes,
        "lines_touched": one.lines_touched,
        "bytes_used": one.bytes_used,
        "bytes_fetched": one.bytes_fetched,
        "straddles": every.straddles,
        "straddling_runs": crossing,
        "all_runs": asdict(every),
    }
    return Answer(data, _text(layout, args, itemsize, one, every, crossing))


def _text(
    layout: Layout, args: argparse.Namespace, itemsize: int, one: LineUse, every: LineUse, crossing: list[int]
) -> str:
    strides = "  ".join(f"{axis} {layout.stride(axis)}" for axis in layout.memory_axes)
    numbers = ", ".join(map(str, crossing[:_LISTED])) + (", ..." if len(crossing) > _LISTED else "")
    return "\n".join(
        (
            f"{args.order} of {args.shape}: {layout.size} elements, {layout.size * itemsize} bytes",
            f"strides, slowest axis first: {strides}",
            f"walk {args.walk}, run {args.at} of {every.runs}: lines touched {one.lines_touched}, "
            f"bytes used {one.bytes_used} of {one.bytes_fetched} fetched ({one.useful_share:.1%})",
            f"all runs: lines touched {every.lines_touched}, bytes used {every.bytes_used} of {every.bytes_fetched} "
            f"fetched ({every.useful_share:.1%}), runs that straddle a line border {every.straddles}"
            + (f": {numbers}" if crossing else ""),
        )
    )


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(length) for length in text.split(","))
    except ValueError:
        raise LabError(f"--shape {text!r}: write lengths with commas between, such as 2,3,4,4") from None


def _itemsize(name: str) -> int:
    try:
        dtype = np.dtype(name)
    except TypeError:
        raise LabError(f"--dtype {name!r} is no element type: write float32, float16, int8 ...") from None
    if dtype.kind not in "biufc":
        raise LabError(f"--dtype {name!r} is no number: write float32, float16, int8 ...")
    return dtype.itemsize
