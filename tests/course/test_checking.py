"""What a student sees in the notebook when a check is run."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from random import Random
from types import ModuleType

import pytest

from labkit.course import sheet
from labkit.course.checking import GRADING_ROUNDS, CheckFailed, Part, judge, parts_of
from labkit.errors import LabError


def wants_four(function: object, draw: Random) -> None:
    ASKED.append(draw.random())
    if function(2) != 4:  # type: ignore[operator]
        raise CheckFailed("twice(2) should be 4.")


ASKED: list[float] = []
PART = Part("doubling", 2, "twice", wants_four)


@pytest.fixture(autouse=True)
def exercise_90(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("labkit.course.checks.ex90")
    module.PARTS = {"90.1": PART}  # type: ignore[attr-defined]
    module.given = lambda draw: draw.randrange(1000)  # type: ignore[attr-defined]
    module.__spec__ = __spec__
    monkeypatch.setitem(sys.modules, module.__name__, module)


def unwritten(x: int) -> int:
    raise NotImplementedError


def test_a_right_function_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    sheet("ex90").check("90.1", lambda x: 2 * x)
    assert capsys.readouterr().out == "90.1 right: doubling\n"


def test_a_wrong_function_fails_with_the_checks_own_words() -> None:
    with pytest.raises(CheckFailed, match=r"twice\(2\) should be 4\."):
        sheet("ex90").check("90.1", lambda x: x)


def test_a_stub_is_not_written_yet() -> None:
    with pytest.raises(CheckFailed, match=r"90\.1 is not written yet\."):
        sheet("ex90").check("90.1", unwritten)


def test_a_failure_in_a_notebook_is_its_sentence_and_no_traceback() -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shown: list[list[str]] = []
    shell._showtraceback = lambda kind, value, lines: shown.append(lines)
    shell.user_ns.update(check=sheet("ex90").check, unwritten=unwritten)
    shell.run_cell("check('90.1', unwritten)")
    assert shown == [["90.1 is not written yet."]]


def test_an_error_of_the_students_own_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        sheet("ex90").check("90.1", lambda x: x / 0)


def test_something_else_than_a_function_is_named() -> None:
    with pytest.raises(CheckFailed, match="twice is 4, it should be a function"):
        judge("90.1", PART, 4)  # type: ignore[arg-type]


@pytest.mark.parametrize("part_id", ["90", "90.1.2", "x", "", "٣.1"])
def test_a_number_that_is_no_part_number_is_refused(part_id: str) -> None:
    with pytest.raises(LabError, match=r'numbered exercise\.part, such as "1\.2"'):
        sheet("ex90").check(part_id, unwritten)


def test_a_part_that_does_not_exist_lists_those_that_do() -> None:
    with pytest.raises(LabError, match=r"no part '90\.7' in this exercise; there are: 90\.1"):
        sheet("ex90").check("90.7", unwritten)


@pytest.mark.parametrize("exercise", ["ex98", "../ex01", "os", "ex1"])
def test_an_exercise_that_does_not_exist_is_refused(exercise: str) -> None:
    with pytest.raises(LabError, match="no exercise"):
        parts_of(exercise)


def asked(seed: int, graded: bool = False) -> list[float]:
    """What the check draws, round by round."""
    ASKED.clear()
    page = sheet("ex90", seed)
    (page.grade if graded else page.check)("90.1", lambda x: 2 * x)
    return list(ASKED)


def test_the_same_seed_asks_the_same_and_another_one_something_else() -> None:
    assert asked(0) == asked(0)
    assert asked(0) != asked(1)
    assert sheet("ex90", 5).given == sheet("ex90", 5).given
    assert len({sheet("ex90", seed).given for seed in range(50)}) > 40


def test_grading_asks_what_the_notebook_asks_and_more() -> None:
    rounds = asked(3, graded=True)
    assert len(set(rounds)) == len(rounds) == GRADING_ROUNDS > 1
    assert rounds[:1] == asked(3)


def test_a_part_whose_rounds_are_long_is_graded_in_fewer() -> None:
    ASKED.clear()
    judge("90.1", replace(PART, rounds=2), lambda x: 4, rounds=GRADING_ROUNDS)
    assert len(set(ASKED)) == len(ASKED) == 2
    assert [name for name, part in parts_of("ex06").items() if part.rounds < 2] == []


def test_a_function_right_for_the_public_cases_only_is_not_right_when_graded() -> None:
    public = asked(0)

    def knows_the_public_case(x: int) -> int:
        return 4 if ASKED[-1] in public else 0

    sheet("ex90").check("90.1", knows_the_public_case)
    with pytest.raises(CheckFailed):
        sheet("ex90").grade("90.1", knows_the_public_case)


def test_warnings_and_stderr_come_out_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    """nbgrader takes any text on stderr for a failure."""

    def noisy(x: int) -> int:
        warnings.warn("careful", stacklevel=1)
        print("here", file=sys.stderr)
        return 2 * x

    sheet("ex90").check("90.1", noisy)
    out, err = capsys.readouterr()
    assert (out.splitlines(), err) == (["here", "note: UserWarning: careful", "90.1 right: doubling"], "")


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True])
def test_a_seed_that_is_no_whole_number_is_refused(seed: object) -> None:
    with pytest.raises(LabError, match="seed"):
        sheet("ex90", seed)  # type: ignore[arg-type]


def test_an_exercise_without_values_of_its_own_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules["labkit.course.checks.ex90"], "given")
    with pytest.raises(LabError, match="gives no values"):
        sheet("ex90").given  # noqa: B018
