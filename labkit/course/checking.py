"""Checks of an exercise: one Part a function, judged alike in the student's notebook and by ``labkit grade``."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from labkit.errors import LabError

Function = Callable[..., Any]


@dataclass(frozen=True)
class Part:
    """One graded part: the student writes ``function``, ``check`` calls it and raises CheckFailed where it is wrong."""

    title: str
    points: int
    function: str
    check: Callable[[Function], None]


class CheckFailed(Exception):
    """A wrong answer. The message is written to the student: what came out, what was expected, where to look."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints in place of a traceback: the sentence alone."""
        return [str(self)]


def parts_of(exercise: str) -> Mapping[str, Part]:
    """The parts of an exercise by number ("1.2"), from ``labkit/course/checks``; LabError when there is none."""
    module = f"labkit.course.checks.{exercise}"
    if not re.fullmatch(r"ex[0-9]{2}", exercise) or importlib.util.find_spec(module) is None:
        raise LabError(f"no exercise {exercise!r} in this course; exercises are named ex01, ex02 …")
    parts: Mapping[str, Part] = importlib.import_module(module).PARTS
    return parts


def check(part_id: str, function: Function) -> None:
    """Check a student's function and print one line when it is right.

    >>> check("one.two", len)
    Traceback (most recent call last):
    ...
    labkit.errors.LabError: no part 'one.two': parts are numbered exercise.part, such as "1.2"

    Raises CheckFailed (one sentence in a notebook) when it is wrong or not written yet. Any other error of the
    function comes through with its traceback, for it points at the student's own line.
    """
    if not isinstance(part_id, str) or not re.fullmatch(r"[0-9]{1,2}\.[0-9]{1,2}", part_id):
        raise LabError(f'no part {part_id!r}: parts are numbered exercise.part, such as "1.2"')
    parts = parts_of(f"ex{int(part_id.split('.')[0]):02d}")
    if part_id not in parts:
        raise LabError(f"no part {part_id!r} in this exercise; there are: {', '.join(parts)}")
    judge(part_id, parts[part_id], function)
    print(f"{part_id} right: {parts[part_id].title}")


def judge(part_id: str, part: Part, function: Function) -> None:
    """Run one part's check; an untouched stub is "not written yet", whatever called it."""
    if not callable(function):
        raise CheckFailed(f"{part_id}: {part.function} is {function!r}, it should be a function.")
    try:
        part.check(function)
    except NotImplementedError:
        raise CheckFailed(f"{part_id} is not written yet.") from None
