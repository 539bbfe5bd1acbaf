"""The command line: argparse only. Commands live in ``labkit/commands``; this file wires them and ends the process.

Exit status: 0 done, 1 ran and the answer is no, 2 bad input (one line on stderr, nothing written).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Sequence

from labkit.errors import LabError

COMMANDS = {
    "optimize": "make a model smaller without changing what it computes",
    "compare": "labkit beside the other optimisers that are installed",
    "build": "make the course's notebooks from their sources",
    "doctor": "is this machine ready for the course?",
    "grade": "points for submitted notebooks",
    "variants": "an exercise of their own for each student of a class list",
    "traffic": "bytes that a tiled kernel moves between DRAM and SRAM",
    "tile": "the tile and loop order that move the fewest bytes",
    "measure": "times compiled loops here, and compares their order with the model's",
    "layout": "strides of a memory order, and the lines a walk through it touches",
    "hardware": "list the hardware presets, or show a file of your own",
}


class _Parser(argparse.ArgumentParser):
    """An argparse parser whose errors are one line, like every other error of labkit."""

    def error(self, message: str) -> object:  # type: ignore[override]
        raise LabError(f"{message} (see {self.prog} --help)")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; a module of ``labkit/commands`` is imported for each, none of them loads ONNX."""
    parser = _Parser(prog="labkit", description="Tensor layouts, tiling and graph-level optimisation, counted.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for name, purpose in COMMANDS.items():
        module = importlib.import_module(f"labkit.commands.{name}")
        command = commands.add_parser(name, help=purpose, description=(module.__doc__ or "").strip())
        module.add_arguments(command)
        _add_json(command)
        command.set_defaults(run=module.run)
    return parser


def _add_json(parser: argparse.ArgumentParser) -> None:
    """--json on a command, or on each of its sub-commands where it has some."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                _add_json(child)
            return
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    try:
        args = build_parser().parse_args(argv)
        answer = args.run(args)
    except LabError as error:
        print(f"labkit: {error}".replace("\n", " "), file=sys.stderr)
        return 2
    try:
        print(json.dumps(answer.data, ensure_ascii=False) if args.json else answer.text, flush=True)
    except BrokenPipeError:  # whoever read us has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0 if answer.ok else 1


if __name__ == "__main__":
    sys.exit(main())
