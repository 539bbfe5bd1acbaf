"""``labkit compare``: one model through labkit and every other optimiser that is installed, in one table."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from labkit.commands import Answer
from labkit.errors import LabError
from labkit.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from labkit.peers import Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="an ONNX file")
    parser.add_argument(
        "--shape", action="append", default=[], metavar="INPUT=1,3,224,224", help="the size of an input to count at"
    )


def run(args: argparse.Namespace) -> Answer:
    """Optimise the model with each, count and run the results."""
    shapes = dict(map(_shape, args.shape))
    from labkit.peers import compare

    outcomes = compare(args.model, shapes)
    return Answer({"model": args.model, "optimisers": [asdict(outcome) for outcome in outcomes]}, _table(outcomes))


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, sizes = text.rpartition("=")
    if not equals or not all(size.strip().isdigit() for size in sizes.split(",")):
        raise LabError(f"--shape {text!r}: write the input's name and its sizes, such as x=1,3,224,224")
    return name, tuple(int(size) for size in sizes.split(","))


def _table(outcomes: tuple[Outcome, ...]) -> str:
    head = ("", "nodes", "DRAM bytes", "max error", "CPU time", "")
    rows = [head, *map(_cells, outcomes)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (" ".join(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)) for row in rows)
    return "\n".join(f"{row[0].ljust(widths[0])} {line}".rstrip() for row, line in zip(rows, lines, strict=True))


def _cells(outcome: Outcome) -> tuple[str, ...]:
    return (
        outcome.name,
        "" if outcome.nodes is None else str(outcome.nodes),
        "" if outcome.dram_bytes is None else format_bytes(outcome.dram_bytes),
        "" if outcome.max_abs is None else f"{outcome.max_abs:.2g}",
        "" if outcome.seconds is None else format_seconds(outcome.seconds),
        outcome.note,
    )
