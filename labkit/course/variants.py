"""Variants: each student's own copy of an exercise, with shapes, sizes and graphs from a seed of their own.

The seed follows from the exercise and the student's id, so a second run gives the same notebooks. It stands in one
place, the setup cell, where the grader reads it; 0 is the common exercise.
"""

from __future__ import annotations

import csv
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.course import notebook as notebooks
from labkit.course.checking import parts_of
from labkit.course.exercise import checksum
from labkit.course.project import find_project, write_whole
from labkit.errors import LabError

_COLUMNS = ("id", "student")
_COMMON = "seed=0"
_SEEDS = 10**6


@dataclass(frozen=True)
class Variant:
    """One notebook that was written: ``path`` is relative to the output folder."""

    student: str
    exercise: str
    seed: int
    path: str


def make_variants(start: Path, roster: Path, output: Path) -> list[Variant]:
    """Write ``output/STUDENT/exNN.ipynb`` for each student of the roster and each exercise of the course."""
    students = read_roster(roster)
    exercises = sorted((find_project(start) / "exercises").glob("ex*.ipynb"))
    if not exercises:
        raise LabError(f"{start}: no exercises in the course; run `labkit build` first")
    made, texts = [], {}
    for student in students:
        for exercise in exercises:
            seed, path = seed_of(exercise.stem, student), f"{student}/{exercise.name}"
            texts[path] = _with_seed(exercise, seed)
            made.append(Variant(student, exercise.stem, seed, path))
    for path, text in texts.items():  # nothing is written before all is made
        write_whole(output / path, text)
    return made


def seed_of(exercise: str, student: str) -> int:
    """The student's seed, from 1 to 1,000,000.

    >>> seed_of("ex02", "ada"), seed_of("ex02", "alan"), seed_of("ex03", "ada")
    (78939, 414264, 7987)
    """
    digest = hashlib.sha256(f"{exercise} {student}".encode()).digest()
    return 1 + int.from_bytes(digest[:8], "big") % _SEEDS


def read_roster(path: Path) -> list[str]:
    """The ids of a class list: a CSV file with a column ``id`` (nbgrader's name for it) or ``student``.

    Raises LabError for a file that is none, an id that comes twice, or one that is no name for a folder.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise LabError(f"{path}: no such roster") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"{path}: not a readable roster ({type(error).__name__}); save it as CSV in UTF-8") from None
    lines = text.splitlines()
    delimiter = ";" if lines and ";" in lines[0] else ","
    rows = list(csv.DictReader(lines, delimiter=delimiter))
    column = next((name for name in _COLUMNS if rows and name in rows[0]), None)
    if column is None:
        raise LabError(f"{path}: no students; the first line must name a column {' or '.join(_COLUMNS)}")
    return _checked([(row[column] or "").strip() for row in rows], path)


def _checked(students: list[str], path: Path) -> list[str]:
    seen: dict[str, int] = {}
    for line, student in enumerate(students, start=2):
        if not re.fullmatch(r"\w[\w.@+ -]*", student) or student.endswith("."):
            raise LabError(f"{path}: line {line}: id {student!r} is no name for a folder: use letters, digits, _ - . @")
        if student.casefold() in seen:
            raise LabError(f"{path}: line {line}: id {student!r} comes twice, also in line {seen[student.casefold()]}")
        seen[student.casefold()] = line
    return students


def _with_seed(exercise: Path, seed: int) -> str:
    parts_of(exercise.stem)
    notebook = notebooks.read(exercise)
    cell = next((cell for cell in notebook.cells if _grade_id(cell) == f"{exercise.stem}-setup"), None)
    if cell is None or cell.source.count(_COMMON) != 1:
        raise LabError(f"{exercise}: its setup cell must have {_COMMON} once; run `labkit build`")
    cell.source = cell.source.replace(_COMMON, f"seed={seed}")
    mark = cell.metadata["nbgrader"]
    mark["checksum"] = checksum(cell.source, cell.cell_type, mark)
    return notebooks.dump(notebook)


def _grade_id(cell: Any) -> str:
    return str(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
