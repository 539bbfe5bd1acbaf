"""What a student sees in the notebook when a check is run."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from labkit.course import check
from labkit.course.checking import CheckFailed, Part, judge, parts_of
from labkit.errors import LabError


def wants_four(function: object) -> None:
    if function(2) != 4:  # type: ignore[operator]
        raise CheckFailed("twice(2) should be 4.")


PART = Part("doubling", 2, "twice", wants_four)


@pytest.fixture(autouse=True)
def exercise_90(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("labkit.course.checks.ex90")
    module.PARTS = {"90.1": PART}  # type: ignore[attr-defined]
    module.__spec__ = __spec__
    monkeypatch.setitem(sys.modules, module.__name__, module)


def unwritten(x: int) -> int:
    raise NotImplementedError


def test_a_right_function_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    check("90.1", lambda x: 2 * x)
    assert capsys.readouterr().out == "90.1 right: doubling\n"


def test_a_wrong_function_fails_with_the_checks_own_words() -> None:
    with pytest.raises(CheckFailed, match=r"twice\(2\) should be 4\."):
        check("90.1", lambda x: x)


def test_a_stub_is_not_written_yet() -> None:
    with pytest.raises(CheckFailed, match=r"90\.1 is not written yet\."):
        check("90.1", unwritten)


def test_a_failure_in_a_notebook_is_its_sentence_and_no_traceback() -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shown: list[list[str]] = []
    shell._showtraceback = lambda kind, value, lines: shown.append(lines)
    shell.user_ns.update(check=check, unwritten=unwritten)
    shell.run_cell("check('90.1', unwritten)")
    assert shown == [["90.1 is not written yet."]]


def test_an_error_of_the_students_own_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        check("90.1", lambda x: x / 0)


def test_something_else_than_a_function_is_named() -> None:
    with pytest.raises(CheckFailed, match="twice is 4, it should be a function"):
        judge("90.1", PART, 4)  # type: ignore[arg-type]


@pytest.mark.parametrize("part_id", ["90", "90.1.2", "x", "", "٣.1"])
def test_a_number_that_is_no_part_number_is_refused(part_id: str) -> None:
    with pytest.raises(LabError, match=r'numbered exercise\.part, such as "1\.2"'):
        check(part_id, unwritten)


def test_a_part_that_does_not_exist_lists_those_that_do() -> None:
    with pytest.raises(LabError, match=r"no part '90\.7' in this exercise; there are: 90\.1"):
        check("90.7", unwritten)


@pytest.mark.parametrize("exercise", ["ex98", "../ex01", "os", "ex1"])
def test_an_exercise_that_does_not_exist_is_refused(exercise: str) -> None:
    with pytest.raises(LabError, match="no exercise"):
        parts_of(exercise)
