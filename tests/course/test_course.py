"""The course itself: notebooks are up to date, solutions earn everything, untouched exercises nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.course.build import check_built
from labkit.course.checking import parts_of
from labkit.course.grade import grade_notebook
from labkit.course.notebook import parse, to_source
from labkit.course.project import Source, sources

ROOT = Path(__file__).parents[2]
EXERCISES = sorted(path.stem for path in (ROOT / "solutions/src").glob("*.py"))


@pytest.mark.slow
def test_every_notebook_is_what_its_source_gives() -> None:
    assert [result for result in check_built(ROOT) if result.status != "same"] == []


@pytest.mark.parametrize("source", sources(ROOT), ids=lambda source: source.path.stem)
def test_a_source_comes_back_from_its_notebook_as_it_was(source: Source) -> None:
    assert to_source(parse(source.path), source.path) == source.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_has_full_marks_and_no_remark(name: str) -> None:
    graded = grade_notebook(ROOT / "solutions" / f"{name}.ipynb")
    assert [part.message for part in graded.parts if part.message] == []
    assert (graded.is_full, graded.flags) == (True, ())


@pytest.mark.parametrize("name", EXERCISES)
def test_the_untouched_exercise_has_no_point_and_says_what_to_do(name: str) -> None:
    graded = grade_notebook(ROOT / "exercises" / f"{name}.ipynb")
    assert graded.points == 0
    assert [part.message for part in graded.parts] == [f"{part} is not written yet." for part in parts_of(name)]
    assert graded.flags == ()
