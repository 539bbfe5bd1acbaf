"""Grades: from a submitted notebook to points, each submission in processes of its own.

What is graded is a function, called by the course's own checks; the check cells in the notebook are only for the
student. The verdict is "wrong" until a reply with the run's secret token says "right". This keeps honest mistakes
apart (loops, exits, memory, noise); it is no sandbox against an attack.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labkit.course.checking import parts_of
from labkit.course.submission import Answers, read_answers
from labkit.errors import LabError

_REPLY_BYTES = 1024 * 1024
_MOST_PROCESSES = 12  # a notebook with more loops and exits than that is graded on what came out so far


@dataclass(frozen=True)
class Limits:
    """What one process of a submission may use: seconds by the clock and bytes of address space (not on Windows)."""

    seconds: float = 60.0
    memory_bytes: int = 4 * 1024**3


@dataclass(frozen=True)
class PartResult:
    """Points for one function; ``message`` says to the student what is wrong, "" when it is right."""

    name: str
    points: int
    max_points: int
    message: str


@dataclass(frozen=True)
class Submission:
    """The grade of one notebook. ``flags`` are remarks for the instructor: cells that raised, units that were ended."""

    file: str
    exercise: str
    parts: tuple[PartResult, ...]
    flags: tuple[str, ...] = ()

    @property
    def points(self) -> int:
        return sum(part.points for part in self.parts)

    @property
    def max_points(self) -> int:
        return sum(part.max_points for part in self.parts)

    @property
    def is_full(self) -> bool:
        """Full marks; a notebook that could not be read has none to give."""
        return self.max_points > 0 and self.points == self.max_points

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "points": self.points, "max_points": self.max_points}


@dataclass(frozen=True)
class Outcome:
    """How one unit (a cell "cell 3" or a part "1.2") ended; ``alone`` is false when its process went down with it."""

    right: bool
    message: str
    alone: bool = True


def grade_all(paths: Iterable[Path], limits: Limits | None = None) -> list[Submission]:
    """Grade several notebooks; one that is unreadable becomes a flagged entry, unless it is the only one (LabError)."""
    files = list(paths)
    results = []
    for path in files:
        try:
            results.append(grade_notebook(path, limits))
        except LabError as error:
            if len(files) == 1:
                raise
            results.append(Submission(str(path), "", (), (str(error),)))
    return results


def grade_notebook(path: Path, limits: Limits | None = None) -> Submission:
    """The grade of one notebook; LabError when it cannot be read or is of no exercise of this course."""
    answers = read_answers(path)
    parts = parts_of(answers.exercise)
    outcomes = _outcomes(answers, list(parts), limits or Limits())
    results = []
    for name, part in parts.items():
        outcome = outcomes.get(name, Outcome(False, f"{name} was not reached."))
        results.append(PartResult(name, part.points if outcome.right else 0, part.points, outcome.message))
    flagged = [outcome.message for unit, outcome in outcomes.items() if outcome.message and _is_remark(unit, outcome)]
    return Submission(str(path), answers.exercise, tuple(results), tuple(flagged))


def _is_remark(unit: str, outcome: Outcome) -> bool:
    """Cells that raised, and any unit that took its process down: the rest is told by the parts."""
    return unit.startswith("cell ") or not outcome.alone


def _outcomes(answers: Answers, parts: list[str], limits: Limits) -> dict[str, Outcome]:
    """Run until every part has an outcome. A unit that hangs or kills its process is left out of the next one."""
    outcomes: dict[str, Outcome] = {}
    broken: set[str] = set()
    for _ in range(_MOST_PROCESSES):
        missing = [name for name in parts if name not in outcomes]
        cells = [(cell.number, cell.source) for cell in answers.cells if f"cell {cell.number}" not in broken]
        job = {"exercise": answers.exercise, "seed": answers.seed, "cells": cells, "parts": missing}
        found, last, why = _run({**job, "memory_bytes": limits.memory_bytes}, limits.seconds)
        outcomes.update({unit: outcome for unit, outcome in found.items() if unit not in outcomes})
        if last is None:
            break  # it came to its end, or fell over between two units: what is missing stays wrong
        outcomes[last] = Outcome(False, f"{last} {why}.", alone=False)
        broken.add(last)
    return outcomes


def _run(job: dict[str, Any], seconds: float) -> tuple[dict[str, Outcome], str | None, str]:
    """One process: outcomes of the units that finished, the unit that was running when it ended early, and why."""
    token = secrets.token_hex(16)
    with tempfile.TemporaryFile() as replies, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "labkit.course.worker"],
            stdin=subprocess.PIPE,
            stdout=replies,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=dict(os.environ, MPLBACKEND="Agg", PYTHONHASHSEED="0"),
            start_new_session=True,
        )
        why = "ended the process"
        try:
            process.communicate(json.dumps({**job, "token": token}).encode(), timeout=seconds)
        except subprocess.TimeoutExpired:
            why = f"took longer than {seconds:g} s"
        finally:
            _end(process)
        replies.seek(0)
        found, last = _read(replies.read(_REPLY_BYTES), token)
    return found, last, why


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and, where the system has process groups, whatever it started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _read(replies: bytes, token: str) -> tuple[dict[str, Outcome], str | None]:
    """Outcomes by unit, and the unit that was running when the replies stop. Lines without the token are noise."""
    found: dict[str, Outcome] = {}
    running: str | None = None
    for line in replies.decode("utf-8", "replace").splitlines():
        try:
            reply = json.loads(line)
        except ValueError:
            continue
        if not isinstance(reply, dict) or not secrets.compare_digest(str(reply.get("token")).encode(), token.encode()):
            continue
        if reply["event"] == "start":
            running = reply["unit"]
        elif reply["event"] == "done":
            found[reply["unit"]] = Outcome(reply["right"] is True, str(reply["message"]))
            running = None
    return found, running
