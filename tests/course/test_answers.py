"""Every exercise: its solution, planted wrong answers and other right answers, by the check that grades students."""

from __future__ import annotations

import doctest
import importlib
import warnings

import numpy as np
import pytest

from labkit.course.checking import GRADING_ROUNDS, CheckFailed, judge, parts_of
from tests.course.planted import SOURCES, Right, Wrong, run, solution, verdicts

EXERCISES = sorted(path.stem for path in SOURCES.glob("ex*.py"))
TABLES = {name: importlib.import_module(f"tests.course.answers.{name}") for name in EXERCISES}
WRONG: list[Wrong] = [wrong for table in TABLES.values() for wrong in table.WRONG]
RIGHT: list[Right] = [right for table in TABLES.values() for right in table.RIGHT]


def named(answer: Right) -> str:
    return f"{answer.exercise}-{answer.part} {answer.name}"


def parts() -> list[tuple[str, str]]:
    return [(exercise, part) for exercise in EXERCISES for part in parts_of(exercise)]


@pytest.mark.parametrize("wrong", WRONG, ids=named)
def test_a_planted_wrong_answer_loses_its_own_part_and_is_named(wrong: Wrong) -> None:
    found = verdicts(wrong.exercise, wrong.program(), own=wrong.part)
    assert [name for name, message in found.items() if message] == [wrong.part]
    message = found[wrong.part]
    assert "\n" not in message
    assert [words for words in wrong.says.split("|") if words not in message] == [], message


@pytest.mark.parametrize("right", RIGHT, ids=named)
def test_another_right_answer_has_full_marks(right: Right) -> None:
    assert set(verdicts(right.exercise, right.program(), own=right.part).values()) == {""}


@pytest.mark.parametrize("name", EXERCISES)
def test_the_tables_are_long_enough_and_no_name_comes_twice(name: str) -> None:
    table = TABLES[name]
    assert len(table.WRONG) >= 20
    assert len(table.RIGHT) >= 10
    assert {wrong.part for wrong in table.WRONG} == set(parts_of(name))
    names = [named(answer) for answer in (*table.WRONG, *table.RIGHT)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 52), marks=pytest.mark.slow)], ids=len)
@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_passes_the_variants_of_all_seeds(name: str, seeds: range) -> None:
    cells = [source for _, source in solution(name)]
    wrong = {}
    for seed in seeds:
        found = verdicts(name, [cell.replace("seed=0", f"seed={seed}") for cell in cells], own="public", seed=seed)
        wrong |= {(seed, part): message for part, message in found.items() if message}
    assert wrong == {}


@pytest.mark.parametrize(("exercise", "part"), parts())
def test_the_examples_of_an_exercise_are_true(exercise: str, part: str) -> None:
    namespace = run([source for _, source in solution(exercise)])
    name = parts_of(exercise)[part].function
    tests = doctest.DocTestFinder().find(namespace[name], name, globs=dict(namespace))
    results = [doctest.DocTestRunner().run(test) for test in tests]
    assert sum(result.attempted for result in results) >= 1
    assert sum(result.failed for result in results) == 0


@pytest.mark.parametrize("exercise", EXERCISES)
def test_points_and_functions_of_the_text_are_those_of_the_checks(exercise: str) -> None:
    text = (SOURCES / f"{exercise}.py").read_text(encoding="utf-8")
    for number, part in parts_of(exercise).items():
        section = text.split(f"## {number} · ")[1].split("\n# ## ")[0]
        points = f"({part.points} point" + "s" * (part.points > 1)
        assert points in section.splitlines()[0]
        assert f'-check", "grade": true, "points": {part.points}}}' in section
        assert f'check("{number}", {part.function})' in section
        assert f'{exercise}.grade("{number}", {part.function})' in section
        assert "<details><summary>Hint" in section


@pytest.mark.parametrize(("exercise", "part"), parts())
@pytest.mark.parametrize("value", [None, "12", 3.5, object()], ids=["nothing", "text", "fraction", "object"])
def test_a_result_of_the_wrong_kind_says_what_was_expected(exercise: str, part: str, value: object) -> None:
    with pytest.raises(CheckFailed):
        judge(part, parts_of(exercise)[part], lambda *_, **__: value)


@pytest.mark.parametrize(("exercise", "part"), parts())
def test_what_the_public_cases_expect_earns_nothing(exercise: str, part: str) -> None:
    graded, known = parts_of(exercise)[part], {}
    function = run([source for _, source in solution(exercise)])[graded.function]

    def remembers(*arguments: object, **options: object) -> object:
        known[repr(arguments[:-1])] = function(*arguments, **options)
        return known[repr(arguments[:-1])]

    def recalls(*arguments: object, **options: object) -> object:
        return known.get(repr(arguments[:-1]), next(iter(known.values())))

    judge(part, graded, remembers)
    with pytest.raises(CheckFailed):
        judge(part, graded, recalls, rounds=GRADING_ROUNDS)


class Anything:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Number(int):
    """A number that is equal to everything."""

    __eq__ = Anything.__eq__
    __hash__ = Anything.__hash__


@pytest.mark.parametrize(("exercise", "part"), parts())
@pytest.mark.parametrize("value", [Anything(), Number(1), [Number(1)] * 4, np.array([Anything()])], ids=range(4))
def test_an_object_equal_to_everything_earns_nothing(exercise: str, part: str, value: object) -> None:
    with pytest.raises(CheckFailed):
        judge(part, parts_of(exercise)[part], lambda *_, **__: value)


@pytest.mark.parametrize(("exercise", "part"), parts())
def test_a_right_function_that_warns_and_prints_keeps_its_points(exercise: str, part: str) -> None:
    graded = parts_of(exercise)[part]
    function = run([source for _, source in solution(exercise)])[graded.function]

    def noisy(*arguments: object, **options: object) -> object:
        print("here I am")
        warnings.warn("careful", stacklevel=1)
        return function(*arguments, **options)

    with pytest.warns(UserWarning, match="careful"):
        judge(part, graded, noisy)
