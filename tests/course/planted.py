"""Planted answers: the solution of an exercise with a small change, judged by the very check that grades students.

One table an exercise, ``tests/course/answers/exNN.py``, with ``WRONG`` and ``RIGHT``.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from labkit.course import notebook as notebooks
from labkit.course.checking import GRADING_ROUNDS, parts_of
from labkit.course.worker import verdict

SOURCES = Path(__file__).parents[2] / "solutions/src"


@dataclass(frozen=True)
class Right:
    """Another right answer to one part: in its solution cell ``old``, which stands there once, becomes ``new``.

    Without ``old`` the code ``new`` comes behind the cell: it may define the function anew, or wrap it.
    """

    name: str
    part: str
    old: str
    new: str

    @property
    def exercise(self) -> str:
        return f"ex{int(self.part.split('.')[0]):02d}"

    @property
    def grade_id(self) -> str:
        return f"{self.exercise}-{self.part.split('.')[1]}"

    def changed(self, source: str) -> str:
        """The solution cell with this answer in it."""
        if not self.old:
            return f"{source}\n\n\n{self.new}"
        assert source.count(self.old) == 1, f"{self.name}: {self.old!r} does not stand there once"
        return source.replace(self.old, self.new)

    def program(self) -> list[str]:
        """The code cells of the changed solution."""
        cells = solution(self.exercise)
        return [self.changed(source) if grade_id == self.grade_id else source for grade_id, source in cells]


@dataclass(frozen=True)
class Wrong(Right):
    """A misconception: ``name`` says which, the message to the student has all the words ``says``, split at "|"."""

    says: str


@lru_cache
def solution(exercise: str) -> list[tuple[str, str]]:
    """Grade id and text of each code cell of a solution that is no check."""
    marked = [
        (cell.metadata.get("nbgrader", {}), cell.source)
        for cell in notebooks.parse(SOURCES / f"{exercise}.py").cells
        if cell.cell_type == "code"
    ]
    return [(mark.get("grade_id", ""), source) for mark, source in marked if not mark.get("grade")]


def run(cells: list[str]) -> dict[str, Any]:
    """What the cells define; prints are dropped."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        for number, source in enumerate(cells, start=1):
            exec(compile(source, f"cell {number}", "exec"), namespace)
    return namespace


def verdicts(exercise: str, cells: list[str], own: str = "", seed: int = 0) -> dict[str, str]:
    """The message on each part, "" where it is right. Part ``own`` is judged as at grading, the others in one round."""
    namespace = run(cells)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: verdict(name, part, namespace, seed, GRADING_ROUNDS if own in ("", name) else 1)
            for name, part in parts_of(exercise).items()
        }
