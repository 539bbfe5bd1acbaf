"""Checks of an exercise: one Part a function, judged alike in the student's notebook and by ``labkit grade``.

A check draws its cases: the same exercise with another seed asks with other shapes. In the notebook it runs once;
at grading it runs ``GRADING_ROUNDS`` times or as often as the part says, each round with cases of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from types import ModuleType
from typing import Any

from labkit.course.closed import watched
from labkit.errors import LabError

Function = Callable[..., Any]
GRADING_ROUNDS = 4


@dataclass(frozen=True)
class Part:
    """One graded part: the student writes ``function``, ``check`` calls it and raises CheckFailed where it is wrong.

    ``check`` takes the function and a random generator for its cases. ``closed`` are modules of labkit that hold the
    answer: the function may not call into them. ``rounds`` are those of grading; fewer where a round is long.
    """

    title: str
    points: int
    function: str
    check: Callable[[Function, Random], None]
    closed: tuple[str, ...] = ()
    rounds: int = GRADING_ROUNDS


class CheckFailed(Exception):
    """A wrong answer. The message is written to the student: what came out, what was expected, where to look."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints in place of a traceback: the sentence alone."""
        return [str(self)]


@dataclass(frozen=True)
class Sheet:
    """An exercise sheet as one student has it: ``seed`` says which shapes, sizes and graphs (0: the common ones)."""

    name: str
    seed: int = 0

    @cached_property
    def given(self) -> Any:
        """The numbers or graphs that this student works with; LabError for an exercise that gives none."""
        module = _module_of(self.name)
        if not hasattr(module, "given"):
            raise LabError(f"{self.name} gives no values of its own")
        return module.given(Random(f"{self.name} given {self.seed}"))

    def check(self, part_id: str, function: Function) -> None:
        """Check a student's function and print one line when it is right.

        Raises CheckFailed (one sentence in a notebook) when it is wrong or not written yet. Any other error of the
        function comes through with its traceback, for it points at the student's own line.
        """
        part = self._part(part_id)
        with _notes_on_stdout():
            judge(part_id, part, function, self.seed)
        print(f"{part_id} right: {part.title}")

    def grade(self, part_id: str, function: Function) -> None:
        """The same with the cases of the grader; it prints nothing when the function is right."""
        with _notes_on_stdout():
            judge(part_id, self._part(part_id), function, self.seed, GRADING_ROUNDS)

    def _part(self, part_id: str) -> Part:
        if not isinstance(part_id, str) or not re.fullmatch(r"[0-9]{1,2}\.[0-9]{1,2}", part_id):
            raise LabError(f'no part {part_id!r}: parts are numbered exercise.part, such as "1.2"')
        parts = parts_of(self.name)
        if part_id not in parts:
            raise LabError(f"no part {part_id!r} in this exercise; there are: {', '.join(parts)}")
        return parts[part_id]


def sheet(name: str, seed: int = 0) -> Sheet:
    """The sheet of an exercise, "ex01", "ex02" …; LabError when there is none, or for a seed that is none.

    >>> sheet("ex01").check("one.two", len)
    Traceback (most recent call last):
    ...
    labkit.errors.LabError: no part 'one.two': parts are numbered exercise.part, such as "1.2"
    """
    parts_of(name)
    if type(seed) is not int or seed < 0:
        raise LabError(f"seed {seed!r}: it must be a whole number of at least 0")
    return Sheet(name, seed)


def parts_of(exercise: str) -> Mapping[str, Part]:
    """The parts of an exercise by number ("1.2"), from ``labkit/course/checks``; LabError when there is none."""
    parts: Mapping[str, Part] = _module_of(exercise).PARTS
    return parts


def judge(part_id: str, part: Part, function: Function, seed: int = 0, rounds: int = 1) -> None:
    """Run one part's check, in no more rounds than the part has; an untouched stub is "not written yet", whatever
    called it."""
    if not callable(function):
        raise CheckFailed(f"{part_id}: {part.function} is {function!r}, it should be a function.")
    for number in range(min(rounds, part.rounds)):
        try:
            part.check(watched(function, part.closed, CheckFailed), Random(f"{part_id} {seed} {number}"))
        except NotImplementedError:
            raise CheckFailed(f"{part_id} is not written yet.") from None


def _module_of(exercise: str) -> ModuleType:
    module = f"labkit.course.checks.{exercise}"
    if not re.fullmatch(r"ex[0-9]{2}", str(exercise)) or importlib.util.find_spec(module) is None:
        raise LabError(f"no exercise {exercise!r} in this course; exercises are named ex01, ex02 …")
    return importlib.import_module(module)


@contextlib.contextmanager
def _notes_on_stdout() -> Iterator[None]:
    """Warnings and stderr of the student's function go to stdout: nbgrader takes any text on stderr for a failure."""
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stderr(sys.stdout):
        warnings.simplefilter("default")
        try:
            yield
        finally:
            for warning in caught:
                print(f"note: {warning.category.__name__}: {warning.message}")
