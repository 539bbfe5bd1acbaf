"""A submitted notebook as plain text: its code cells and which exercise it answers. Nothing of it is run here."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.errors import LabError
from labkit.units import format_bytes

_LARGEST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Cell:
    """One code cell: its position in the notebook from 1, and its text."""

    number: int
    source: str


@dataclass(frozen=True)
class Answers:
    """What a student handed in for ``exercise`` ("ex01"): code cells without the course's own check cells.

    ``seed`` is that of the student's variant, 0 for the common exercise.
    """

    exercise: str
    cells: tuple[Cell, ...]
    seed: int = 0


def read_answers(path: Path) -> Answers:
    """Read a submission; LabError when it is no notebook, too large, or of no exercise of this course."""
    cells = _cells(path)
    exercise = _exercise(cells.metadata, cells.all)
    if exercise is None:
        raise LabError(f"{path}: not an exercise of this course (neither its metadata nor its cells name one)")
    code = [
        Cell(number, _source(cell))
        for number, cell in enumerate(cells.all, start=1)
        if cell.get("cell_type") == "code" and not _is_check(cell)
    ]
    return Answers(exercise, tuple(code), _seed(exercise, code))


@dataclass(frozen=True)
class _Raw:
    metadata: dict[str, Any]
    all: list[dict[str, Any]]


def _cells(path: Path) -> _Raw:
    try:
        size = path.stat().st_size
        if size > _LARGEST_BYTES:
            raise LabError(f"{path}: {format_bytes(size)}, at most {format_bytes(_LARGEST_BYTES)}; clear its outputs")
        notebook = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise LabError(f"{path}: no such notebook") from None
    except (OSError, ValueError, RecursionError) as error:
        raise LabError(f"{path}: not a readable notebook ({type(error).__name__})") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise LabError(f"{path}: not a notebook: it has no list of cells (save it again in JupyterLab)")
    cells = [cell for cell in notebook["cells"] if isinstance(cell, dict)]
    return _Raw(_table(notebook, "metadata"), cells)


def _table(of: dict[str, Any], key: str) -> dict[str, Any]:
    value = of.get(key)
    return value if isinstance(value, dict) else {}


def _mark(cell: dict[str, Any]) -> dict[str, Any]:
    return _table(_table(cell, "metadata"), "nbgrader")


def _exercise(metadata: dict[str, Any], cells: list[dict[str, Any]]) -> str | None:
    """From the notebook's metadata, else from the first cell whose grade_id starts with an exercise's name."""
    names = [_table(metadata, "labkit").get("exercise"), *(_mark(cell).get("grade_id") for cell in cells)]
    for name in names:
        found = re.match(r"ex[0-9]{2}(?![0-9])", name) if isinstance(name, str) else None
        if found:
            return found[0]
    return None


def _seed(exercise: str, code: list[Cell]) -> int:
    """From the setup cell, the one place where it stands."""
    call = re.compile(rf"""sheet\(\s*["']{exercise}["']\s*,\s*seed\s*=\s*([0-9]{{1,9}})\s*\)""")
    found = (call.search(cell.source) for cell in code)
    return next((int(match[1]) for match in found if match), 0)


def _is_check(cell: dict[str, Any]) -> bool:
    """A cell that nbgrader grades and the student does not write: the course runs its own checks instead."""
    mark = _mark(cell)
    return bool(mark.get("grade")) and not mark.get("solution")


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    lines = source if isinstance(source, list) else [source]
    return "".join(line for line in lines if isinstance(line, str))
