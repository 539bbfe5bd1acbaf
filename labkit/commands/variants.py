"""``labkit variants``: a notebook of each exercise for each student, with shapes and sizes of their own."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from labkit.commands import Answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--students", type=Path, required=True, metavar="CSV", help="class list with a column id (as nbgrader's)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("variants"),
        metavar="DIR",
        help="where STUDENT/exNN.ipynb goes (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> Answer:
    """Write the notebooks of the course around the current folder."""
    from labkit.course.variants import make_variants

    made = make_variants(Path.cwd(), args.students, args.output)
    lines = [f"{args.output / variant.path}  seed {variant.seed}" for variant in made]
    return Answer({"output": str(args.output), "variants": [asdict(variant) for variant in made]}, "\n".join(lines))
