"""Arguments that several commands share: a matmul or a convolution, tiles and orders of its loops, and a machine."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace

from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.problems import ACCUMULATORS, ConvShape, Problem, conv, matmul
from labkit.units import format_bytes, parse_bytes

_PROBLEMS = {
    "matmul": "a matrix product C[m,n] = A[m,k] · B[k,n]",
    "conv": "a 2-D convolution Y = X * W",
    "chain": "that convolution, BatchNormalization and ReLU: in three kernels, and fused into one",
}
_CONV_SIZES = {"c": "input channels", "h": "image rows", "w": "image columns", "filters": "output channels"}


def add_problems(
    parser: argparse.ArgumentParser, names: Sequence[str] = ("matmul", "conv")
) -> list[argparse.ArgumentParser]:
    """Sub-commands with the sizes of their problems and what is common to all; returns them."""
    problems = parser.add_subparsers(dest="problem", required=True, metavar="PROBLEM")
    children = []
    for name in names:
        child = problems.add_parser(name, help=_PROBLEMS[name])
        if name == "matmul":
            for loop in "mnk":
                child.add_argument(f"--{loop}", type=int, required=True, help=f"size {loop} of the product")
        else:
            _add_convolution(child)
        child.add_argument("--c-policy", default="store", help="output: store (default), load_store or spill")
        child.add_argument("--buffers", default="single", help="single (default), double or double_all")
        child.add_argument("--sram", help="SRAM size, for example 512KiB (default: that of the hardware)")
        child.add_argument("--hardware", default="edge-npu", help="a preset, see labkit hardware (default edge-npu)")
        child.add_argument("--dtype", default="float32", choices=sorted(ACCUMULATORS), help="default float32")
        children.append(child)
    return children


def _add_convolution(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--n", type=int, default=1, help="images in the batch (default 1)")
    for name, what in _CONV_SIZES.items():
        parser.add_argument(f"--{name}", type=int, required=True, help=what)
    parser.add_argument("--kernel", required=True, metavar="K", help="rows,columns of a filter, or one number")
    parser.add_argument("--stride", default="1", help="rows,columns or one number (default 1)")
    parser.add_argument("--dilation", default="1", help="rows,columns or one number (default 1)")
    parser.add_argument("--pad", default="0", help="one number, rows,columns or top,left,bottom,right (default 0)")
    parser.add_argument("--groups", type=int, default=1, help="groups of channels (default 1)")
    parser.add_argument("--layout", default="NCHW", help="memory order of X and Y: NCHW (default), NHWC or NCHW8c")
    parser.add_argument("--halo", default="reload", help="overlap of windows: reload (default) or slide")


def problem_of(args: argparse.Namespace) -> Problem:
    """The problem that the arguments describe."""
    if args.problem == "matmul":
        return matmul(args.m, args.n, args.k, args.dtype)
    kernel, stride, dilation = (_pair(f"--{name}", getattr(args, name)) for name in ("kernel", "stride", "dilation"))
    sizes = (args.n, args.c, args.h, args.w, args.filters)
    return conv(ConvShape(*sizes, kernel, stride, dilation, _pads(args.pad), args.groups), args.layout, args.dtype)


def hardware_of(args: argparse.Namespace) -> Hardware:
    """The preset that was named, with the SRAM that was asked for."""
    hardware = Hardware.preset(args.hardware)
    return replace(hardware, sram_bytes=parse_bytes(args.sram)) if args.sram else hardware


def parse_tile(text: str, problem: Problem) -> tuple[int, ...]:
    """Read a tile: one number for each loop in the problem's order, or loop=size pairs, the other loops uncut.

    >>> parse_tile("128,128,64", matmul(1024, 1024, 1024)), parse_tile("k=64", matmul(1024, 1024, 1024))
    ((128, 128, 64), (1024, 1024, 64))
    """
    parts = [part.strip() for part in text.split(",")]
    if "=" not in text:
        if len(parts) != len(problem.loops) or not all(map(_is_whole, parts)):
            raise LabError(f"tile {text!r}: {_how_to_tile(problem)}")
        return tuple(map(int, parts))
    sizes = dict(problem.loops)
    named = [re.fullmatch(r"(\w+)\s*=\s*(.+)", part) for part in parts]
    for pair in named:
        if pair is None or not _is_whole(pair[2]):
            raise LabError(f"tile {text!r}: {_how_to_tile(problem)}")
        if pair[1] not in sizes:
            raise LabError(f"tile {text!r}: {problem.name} has no loop {pair[1]!r}; {_how_to_tile(problem)}")
        sizes[pair[1]] = int(pair[2])
    if len({pair[1] for pair in named if pair}) < len(parts):
        raise LabError(f"tile {text!r}: a loop is named twice")
    return tuple(sizes.values())


def parse_loops(text: str | None, problem: Problem) -> tuple[str, ...]:
    """Read a loop order such as ``"kmn"`` or ``"k,m,n"``, outermost first; the problem's own when there is none."""
    if text is None:
        return tuple(problem.loops)
    return tuple(part.strip() for part in text.split(",")) if "," in text else tuple(text)


def join_loops(loops: tuple[str, ...]) -> str:
    """The text that ``parse_loops`` reads: ``"kmn"``, with commas where a loop has a longer name."""
    return ("" if all(len(loop) == 1 for loop in loops) else ",").join(loops)


def say_bytes(count: int) -> str:
    """Bytes for people, with the exact number."""
    return f"{format_bytes(count)} ({count:,} bytes)"


def _how_to_tile(problem: Problem) -> str:
    loops = list(problem.loops)
    pairs = f"{loops[-1]}=8"
    return (
        f"write {len(loops)} whole numbers for {','.join(loops)}, or loop=size pairs such as {pairs}, "
        f"which leave the other loops uncut"
    )


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]{1,100}", text) is not None


def _numbers(name: str, text: str, wanted: str, counts: tuple[int, ...]) -> tuple[int, ...]:
    parts = [part.strip() for part in text.replace("x", ",").replace("×", ",").split(",")]
    if len(parts) not in counts or not all(map(_is_whole, parts)):
        raise LabError(f"{name} {text!r}: write {wanted}")
    return tuple(map(int, parts))


def _pair(name: str, text: str) -> tuple[int, int]:
    numbers = _numbers(name, text, "one whole number, or rows,columns such as 3,1", (1, 2))
    return numbers[0], numbers[-1]


def _pads(text: str) -> tuple[int, int, int, int]:
    pads = _numbers("--pad", text, "one whole number, rows,columns or top,left,bottom,right", (1, 2, 4))
    top, left, *rest = pads if len(pads) > 1 else pads * 2
    bottom, right = rest or (top, left)
    return top, left, bottom, right
