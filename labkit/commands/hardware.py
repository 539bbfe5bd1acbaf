"""``labkit hardware``: the machines that come with the course."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from labkit.commands import Answer
from labkit.hardware import Hardware


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", help="a TOML file of your own, with one table a machine")


def run(args: argparse.Namespace) -> Answer:
    """List the presets, or the first machine of a file."""
    machines = [Hardware.load(args.file)] if args.file else [Hardware.preset(n) for n in Hardware.presets()]
    data = {machine.name: {**asdict(machine), "ridge": machine.ridge} for machine in machines}
    return Answer({"hardware": data}, "\n".join(machine.summary() for machine in machines))
