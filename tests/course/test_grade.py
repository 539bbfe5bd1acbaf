"""The grader: a function is graded, wrong until proven right, whatever else the notebook does."""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import labkit.course.checks
from labkit.cli import main
from labkit.course.grade import Limits, Submission, grade_all, grade_notebook
from labkit.errors import LabError

CHECKS = """\
from labkit.course.checking import CheckFailed, Part

def twice(function, draw):
    if function(2) != 4:
        raise CheckFailed(f"twice(2) is {function(2)}, it should be 4.")

def thrice(function, draw):
    if function(2) != 6:
        raise CheckFailed("thrice(2) should be 6.")

PARTS = {"90.1": Part("doubling", 2, "twice", twice), "90.2": Part("tripling", 3, "thrice", thrice)}
"""
TWICE = "def twice(x):\n    return 2 * x\n"
THRICE = "def thrice(x):\n    return 3 * x\n"
BOTH = TWICE + THRICE
CHECK_CELL = {"nbgrader": {"grade": True, "solution": False, "grade_id": "ex90-check", "points": 2}}


@pytest.fixture(autouse=True)
def exercise_90(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exercise of two parts, known to this process and to the grader's children."""
    folder = tmp_path_factory.mktemp("checks")
    (folder / "ex90.py").write_text(CHECKS)
    hook = f"import labkit.course.checks\nlabkit.course.checks.__path__.append({str(folder)!r})\n"
    (folder / "sitecustomize.py").write_text(hook)
    monkeypatch.setattr(labkit.course.checks, "__path__", [*labkit.course.checks.__path__, str(folder)])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")])))
    monkeypatch.delitem(sys.modules, "labkit.course.checks.ex90", raising=False)


def submit(folder: Path, *cells: str | dict[str, Any], metadata: dict[str, Any] | None = None) -> Path:
    """A notebook of these code cells; a dict is a cell with its metadata."""
    written = [{"source": cell, "metadata": {}} if isinstance(cell, str) else cell for cell in cells]
    notebook = {
        "cells": [{"cell_type": "code", "outputs": [], **cell} for cell in written],
        "metadata": {"labkit": {"exercise": "ex90"}} if metadata is None else metadata,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path = folder / "submission.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def points(submission: Submission) -> list[int]:
    return [part.points for part in submission.parts]


def messages(submission: Submission) -> str:
    return "\n".join(part.message for part in submission.parts)


def test_right_functions_earn_all_points_and_no_remark(tmp_path: Path) -> None:
    graded = grade_notebook(submit(tmp_path, TWICE, THRICE))
    assert (graded.points, graded.max_points, graded.is_full) == (5, 5, True)
    assert (messages(graded).strip(), graded.flags, graded.exercise) == ("", (), "ex90")


@pytest.mark.parametrize(
    ("cells", "earned", "message"),
    [
        ([], [0, 0], "90.1: there is no function twice in the notebook."),
        (["def twice(x):\n    raise NotImplementedError()", THRICE], [0, 3], "90.1 is not written yet."),
        ([TWICE, "def thrice(x):\n    return 2 * x"], [2, 0], "thrice(2) should be 6."),
        (["twice = 4", THRICE], [0, 3], "90.1: twice is 4, it should be a function."),
        (["def twice(x):\n    y = x\n    return y / 0", THRICE], [0, 3], "division by zero (cell 1, line 3)"),
        (["def twice(x):\n    return twice(x)", THRICE], [0, 3], "RecursionError"),
        (["def twice(x):\n    return input()", THRICE], [0, 3], "it asks for input()"),
        (["import sys\ndef twice(x):\n    sys.exit(0)", THRICE], [0, 3], "twice raised SystemExit: 0"),
        (["import os\ndef twice(x):\n    os._exit(0)", THRICE], [0, 3], "90.1 ended the process."),
        (["class E(Exception):\n    def __str__(self): 1 / 0\ndef twice(x): raise E", THRICE], [0, 3], "raised E"),
    ],
)
def test_a_wrong_function_loses_its_own_points_and_says_why(
    tmp_path: Path, cells: list[str], earned: list[int], message: str
) -> None:
    graded = grade_notebook(submit(tmp_path, *cells))
    assert points(graded) == earned
    assert message in messages(graded)


@pytest.mark.parametrize(
    ("cell", "flag"),
    [
        ("print('x' * 100_000)\nimport warnings; warnings.warn('old')\nimport sys; print(1, file=sys.stderr)", ""),
        ("%matplotlib inline\n!ls\ndisplay(3)", ""),
        ("raise NotImplementedError", ""),
        ("1 / 0", "cell 1 raised ZeroDivisionError: division by zero (cell 1, line 1)"),
        ("def (", "cell 1 raised SyntaxError"),
        ("x = input()", "cell 1 raised EOFError: it asks for input()"),
        ("import sys; sys.exit(1)", "cell 1 raised SystemExit"),
        ("import os; os._exit(0)", "cell 1 ended the process."),
        ("raise KeyboardInterrupt", "cell 1 raised KeyboardInterrupt"),
        ("import atexit, time; atexit.register(time.sleep, 1000)", ""),
        ("import threading, time; threading.Thread(target=time.sleep, args=(1000,)).start()", ""),
    ],
)
def test_a_cell_that_misbehaves_costs_nothing_else(tmp_path: Path, cell: str, flag: str) -> None:
    graded = grade_notebook(submit(tmp_path, cell, BOTH))
    assert points(graded) == [2, 3]
    assert len(graded.flags) == (1 if flag else 0)
    assert flag in "".join(graded.flags)


@pytest.mark.skipif(sys.platform != "linux", reason="the address-space limit is Linux's")
def test_memory_is_limited(tmp_path: Path) -> None:
    path = submit(tmp_path, "def twice(x):\n    return len(bytearray(2 * 1024**3))", THRICE)
    graded = grade_notebook(path, Limits(memory_bytes=1024**3))
    assert points(graded) == [0, 3]
    assert "MemoryError" in messages(graded)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "earned", "flag"),
    [
        ([TWICE, "while True: pass", THRICE], [2, 3], "cell 2 took longer than 5 s."),
        (["def twice(x):\n    while True: pass", THRICE], [0, 3], "90.1 took longer than 5 s."),
    ],
)
def test_an_endless_loop_ends_and_costs_only_its_own_points(
    tmp_path: Path, cells: list[str], earned: list[int], flag: str
) -> None:
    graded = grade_notebook(submit(tmp_path, *cells), Limits(seconds=5))
    assert points(graded) == earned
    assert graded.flags == (flag,)


def test_check_cells_in_the_notebook_are_not_run(tmp_path: Path) -> None:
    """Edited, doubled or deleted: the course's own checks decide."""
    edited = {"source": "def twice(x):\n    return 5", "metadata": CHECK_CELL}
    assert points(grade_notebook(submit(tmp_path, BOTH, edited, edited))) == [2, 3]


def test_a_reply_without_the_token_earns_nothing(tmp_path: Path) -> None:
    forged = json.dumps({"token": "é", "event": "done", "unit": "90.1", "right": True, "message": ""})
    write = f"os.write(fd, {forged!r}.encode() + b'\\n')"
    cell = f"import os\nfor fd in range(64):\n    try: {write}\n    except OSError: pass\nos._exit(0)"
    assert points(grade_notebook(submit(tmp_path, cell, THRICE))) == [0, 3]


CHEATS = {
    "product of whole arrays": "import numpy as np\ndef tiled_matmul(A, B, tile, pad):\n    return np.matmul(A, B)",
    "formula in the ledger": """\
def tiled_matmul(A, B, tile, pad):
    (m, k), n = A.shape, B.shape[1]
    pad.ledger.record("x", "A", "read", 4 * m * k * -(-n // tile[1]))
    pad.ledger.record("x", "B", "read", 4 * k * n * -(-m // tile[0]))
    pad.ledger.record("x", "C", "write", 4 * m * n)
    return A @ B""",
    "source of the check": """\
from labkit.course.checks import ex02
own = {"__name__": "__main__"}
exec(open(ex02.__file__).read(), own)
largest_tile, working_set, intensity = (own[x].right for x in ("largest_tile", "working_set", "intensity"))""",
    "source by inspect": """\
import inspect, re
from labkit.course.checks import ex02
own = {"__name__": "__main__"}
exec(inspect.getsource(ex02), own)
largest_tile = own["largest_tile"].right""",
    "the check's own rule": """\
from labkit.course.checks import ex02
largest_tile, intensity = (getattr(ex02, name).right for name in ("largest_tile", "intensity"))""",
    "from the sheet": """\
from labkit.course import sheet
page = sheet("ex02", seed=0)
largest_tile = page._part("2.1").check.right""",
    "public cases by heart": """\
from random import Random
from labkit.course.checks.ex02 import largest_tile as q
draw = Random("2.1 0 0")
known = {}
for _ in range(q.cases):
    case = q.telling(draw)
    known[case] = q.right(*case)
def largest_tile(sram_kib, itemsize):
    return known.get((sram_kib, itemsize), 100)""",
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_what_is_no_answer_earns_nothing(tmp_path: Path, cheat: str) -> None:
    path = submit(tmp_path, CHEATS[cheat], metadata={"labkit": {"exercise": "ex02"}})
    assert grade_notebook(path).points == 0


def test_a_process_that_ends_between_two_units_earns_nothing(tmp_path: Path) -> None:
    cell = "import json, os\nold = json.dumps\njson.dumps = lambda d: os._exit(0) if d['event'] == 'start' else old(d)"
    graded = grade_notebook(submit(tmp_path, BOTH, cell))
    assert points(graded) == [0, 0]
    assert messages(graded) == "90.1 was not reached.\n90.2 was not reached."


def test_the_working_directory_is_fresh_and_empty(tmp_path: Path) -> None:
    cell = "import os\nassert os.listdir() == []\nopen('x', 'w').close()"
    path = submit(tmp_path, cell, BOTH)
    assert grade_notebook(path).flags == grade_notebook(path).flags == ()
    assert os.listdir(tmp_path) == ["submission.ipynb"]


def test_the_exercise_is_known_from_its_cells_when_the_metadata_is_gone(tmp_path: Path) -> None:
    cell = {"source": BOTH, "metadata": {"nbgrader": {"grade_id": "ex90-1", "solution": True, "grade": True}}}
    assert points(grade_notebook(submit(tmp_path, cell, metadata={}))) == [2, 3]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a readable notebook"),
        (b"\xff\xfe\x00", "not a readable notebook"),
        (b"[1, 2]", "no list of cells"),
        (b'{"worksheets": []}', "no list of cells"),
        (b'{"cells": [3, {"metadata": 3}], "metadata": 4}', "not an exercise of this course"),
        (b'{"cells": [], "metadata": {"labkit": {"exercise": "ex99"}}}', "no exercise 'ex99'"),
        (b'{"cells": [], "metadata": {"labkit": {"exercise": "../../etc"}}}', "not an exercise of this course"),
        (b"[" * 100_000, "not a readable notebook"),
    ],
)
def test_a_file_that_is_no_exercise_is_refused_alone_and_flagged_among_others(
    tmp_path: Path, content: bytes, message: str
) -> None:
    good, bad = submit(tmp_path, BOTH), tmp_path / "bad.ipynb"
    bad.write_bytes(content)
    with pytest.raises(LabError, match=message):
        grade_all([bad])
    flagged, graded = grade_all([bad, good])
    assert message in flagged.flags[0]
    assert (flagged.is_full, graded.points) == (False, 5)


def test_the_command_prints_json_and_says_no_without_full_marks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grade", str(submit(tmp_path, TWICE)), "--json"]) == 1
    (entry,) = json.loads(capsys.readouterr().out)["submissions"]
    assert (entry["exercise"], entry["points"], entry["max_points"]) == ("ex90", 2, 5)
    assert entry["parts"][0] == {"name": "90.1", "points": 2, "max_points": 2, "message": ""}
    assert main(["grade", str(submit(tmp_path, BOTH))]) == 0


def test_the_command_prints_csv_for_a_spreadsheet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = submit(tmp_path, "1 / 0", BOTH)
    assert main(["grade", str(path), str(tmp_path / "absent.ipynb"), "--csv"]) == 1
    header, graded, absent = csv.reader(capsys.readouterr().out.splitlines())
    assert header == ["file", "exercise", "points", "max_points", "90.1", "90.2", "flags"]
    assert graded[:6] == [str(path), "ex90", "5", "5", "2", "3"]
    assert graded[6].startswith("cell 1 raised ZeroDivisionError")
    assert absent[1:6] == ["", "0", "0", "", ""]
    assert absent[6].endswith("no such notebook")


@pytest.mark.parametrize(
    "arguments", [["--csv", "--json"], ["--seconds", "0"], ["--seconds", "nan"], ["--seconds", "inf"]]
)
def test_contradictory_options_are_refused(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grade", str(submit(tmp_path, BOTH)), *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1
