"""``labkit grade``: points for submitted notebooks, each run in processes of its own."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.commands import Answer
from labkit.errors import LabError

if TYPE_CHECKING:
    from labkit.course.grade import Submission

_MOST_SECONDS = 3600


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK", help="a submitted exercise")
    parser.add_argument("--csv", action="store_true", help="print one line a notebook, for a spreadsheet")
    parser.add_argument("--seconds", type=float, default=60.0, help="longest run of one process (default: %(default)g)")


def run(args: argparse.Namespace) -> Answer:
    """Grade the notebooks in order; the answer is yes when every one has full marks."""
    from labkit.course.grade import Limits, grade_all

    if args.csv and args.json:
        raise LabError("choose --csv or --json, not both")
    if not 0 < args.seconds <= _MOST_SECONDS:
        raise LabError(f"--seconds is {args.seconds:g}, it must be above 0 and at most {_MOST_SECONDS}")
    graded = grade_all(args.notebooks, Limits(seconds=args.seconds))
    text = _table(graded) if args.csv else "\n\n".join(map(_page, graded))
    data = {"submissions": [submission.to_dict() for submission in graded]}
    return Answer(data, text, ok=all(submission.is_full for submission in graded))


def _page(submission: Submission) -> str:
    lines = [f"{submission.file}: {submission.points} of {submission.max_points} points"]
    for part in submission.parts:
        lines.append(f"  {part.name}  {part.points}/{part.max_points}  {part.message or 'right'}")
    return "\n".join([*lines, *(f"  note: {flag}" for flag in submission.flags)])


def _table(graded: list[Submission]) -> str:
    """CSV with one column a part; parts of another exercise stay empty."""
    names = list(dict.fromkeys(part.name for submission in graded for part in submission.parts))
    text = io.StringIO()
    columns = ["file", "exercise", "points", "max_points", *names, "flags"]
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for submission in graded:
        row = {part.name: part.points for part in submission.parts}
        total = {"points": submission.points, "max_points": submission.max_points}
        source = {"file": submission.file, "exercise": submission.exercise}
        writer.writerow({**source, **total, **row, "flags": "; ".join(submission.flags)})
    return text.getvalue().rstrip("\n")
