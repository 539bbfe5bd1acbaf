"""``labkit build``: make the notebooks of the course from their sources, or check that they are up to date."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from labkit.commands import Answer
from labkit.errors import LabError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a notebook differs from its source"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="build into (or check) this folder, not the course")
    parser.add_argument(
        "--from-notebook",
        type=Path,
        metavar="FILE",
        help="take a lesson or solution edited in JupyterLab back into its source",
    )


def run(args: argparse.Namespace) -> Answer:
    """Build, check, or take a notebook back."""
    from labkit.course.build import build, check_built, from_notebook

    if args.from_notebook and (args.check or args.output):
        raise LabError("--from-notebook goes alone: it writes the source of that one notebook")
    if args.from_notebook:
        results = [from_notebook(Path.cwd(), args.from_notebook)]
    else:
        results = (check_built if args.check else build)(Path.cwd(), args.output)
    lines = [f"{result.status:<9}  {result.path}" + (f": {result.why}" if result.why else "") for result in results]
    good = all(result.status in ("written", "unchanged", "same") for result in results)
    if not good:
        lines.append("run `labkit build` to bring the notebooks up to date")
    return Answer({"notebooks": [asdict(result) for result in results]}, "\n".join(lines), ok=good)
