"""Sources to notebooks: same bytes twice, stubs where solutions were, and a check that sees each kind of difference."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from labkit.course import notebook as notebooks
from labkit.course.build import build, check_built, differences, from_notebook
from labkit.course.exercise import to_exercise
from labkit.errors import LabError

BUILT = ["lessons/01_tiny.ipynb", "exercises/ex90.ipynb", "solutions/ex90.ipynb"]


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def outputs(path: Path) -> list[dict[str, Any]]:
    return [output for cell in load(path)["cells"] for output in cell.get("outputs", [])]


def test_two_builds_give_the_same_bytes(built: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    again = build(built / "lessons", other)  # from a folder below, into a folder elsewhere
    assert sorted(result.path for result in again) == sorted(BUILT)
    assert {result.status for result in again} == {"written"}
    assert all((other / path).read_bytes() == (built / path).read_bytes() for path in BUILT)
    assert {result.status for result in build(built)} == {"unchanged"}
    assert {result.status for result in check_built(built)} == {"same"}


def test_a_lesson_keeps_picture_and_text_and_loses_what_belongs_to_one_run(built: Path) -> None:
    lesson = load(built / "lessons/01_tiny.ipynb")
    kinds = [set(output.get("data", ())) for output in outputs(built / "lessons/01_tiny.ipynb")]
    assert any("image/png" in kind for kind in kinds)
    assert {"text/plain"} in kinds  # the slider in words, without its dead model
    text = json.dumps(lesson)
    assert "widget-view" not in text
    assert "ipykernel_" not in text
    assert "object at 0xADDR" in text
    assert set(lesson["metadata"]) == {"kernelspec", "language_info"}
    assert all("execution" not in cell["metadata"] for cell in lesson["cells"])


def test_every_built_notebook_is_valid_and_its_ids_are_unique(built: Path) -> None:
    for path in BUILT:
        nbformat.validate(load(built / path))
        ids = [cell["id"] for cell in load(built / path)["cells"]]
        assert len(set(ids)) == len(ids)


def test_an_exercise_has_stubs_no_hidden_tests_no_outputs_and_names_itself(built: Path) -> None:
    exercise = load(built / "exercises/ex90.ipynb")
    cells = {cell["id"]: cell for cell in exercise["cells"] if "nbgrader" in cell["metadata"]}
    assert exercise["metadata"]["labkit"] == {"exercise": "ex90"}
    written = "".join(cells["ex90-1"]["source"])
    assert written.endswith('    """Two times x."""\n    # YOUR CODE HERE\n    raise NotImplementedError()')
    assert cells["ex90-2"]["source"] == ["YOUR ANSWER HERE"]
    assert "".join(cells["ex90-1-check"]["source"]) == "assert twice(4) == 8"
    assert outputs(built / "exercises/ex90.ipynb") == []
    assert all(cell.get("execution_count") is None for cell in exercise["cells"])
    assert cells["ex90-1-check"]["metadata"]["editable"] is False
    assert cells["ex90-1"]["metadata"] == cells["ex90-1"]["metadata"] | {"deletable": False}
    assert "editable" not in cells["ex90-1"]["metadata"]


def test_checksums_are_those_of_nbgrader(course: Path) -> None:
    """The figures came from nbgrader 0.9.6, ``nbgrader generate_assignment`` on this solution."""
    exercise = to_exercise(notebooks.parse(course / "solutions/src/ex90.py"))
    marks = [cell.metadata.nbgrader for cell in exercise.cells if "nbgrader" in cell.metadata]
    assert {mark["grade_id"]: mark["checksum"] for mark in marks} == {
        "ex90-setup": "32600a48b3b9250f5675069c634ea188",
        "ex90-1": "2b6f0d519d5f8aaf624f8700c739b16b",
        "ex90-1-check": "f88b2d3c0d0782b008bcf51d52439bc7",
        "ex90-2": "cafb96b03ea9126abbf5f0c614bafce9",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('# %% nbgrader={"solution": true}\nx = 1\n', "needs a grade_id"),
        ('# %% nbgrader={"grade_id": "a", "grade": true}\nx = 1\n', "no points"),
        ('# %% nbgrader={"grade_id": "a", "solution": true}\n### BEGIN SOLUTION\nx = 1\n', "without its '### END"),
        ('# %% nbgrader={"grade_id": "a", "solution": true}\nx = 1\n### END SOLUTION\n', "without its '### BEGIN"),
        ("# %%\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION\n", "no nbgrader metadata"),
    ],
)
def test_a_solution_with_wrong_marks_is_refused(course: Path, text: str, message: str) -> None:
    (course / "solutions/src/ex90.py").write_text(text, encoding="utf-8")
    with pytest.raises(LabError, match=message):
        build(course)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x = 1\n1 / 0\n", r"lessons/src/01_tiny.py: cell 1 \(x = 1\): ZeroDivisionError: division by zero"),
        ("import sys\nprint('careful', file=sys.stderr)\n", r"01_tiny.py: cell 1 \(import sys\): writes to stderr"),
        ("import os\nos._exit(3)\n", "01_tiny.py: a cell hung or ended its kernel"),
    ],
)
def test_a_cell_that_fails_is_named_and_nothing_is_written(course: Path, cell: str, message: str) -> None:
    (course / "lessons/src/01_tiny.py").write_text(f"# %%\n{cell}", encoding="utf-8")
    with pytest.raises(LabError, match=message):
        build(course)
    assert [path for path in course.rglob("*") if path.suffix == ".ipynb"] == []


def test_check_names_missing_changed_and_orphaned_notebooks(built: Path) -> None:
    lesson = load(built / "lessons/01_tiny.ipynb")
    lesson["cells"][0]["source"] = ["# Another lesson"]
    (built / "lessons/01_tiny.ipynb").write_text(json.dumps(lesson), encoding="utf-8")
    (built / "solutions/ex90.ipynb").unlink()
    (built / "exercises/ex90.ipynb").write_text("{", encoding="utf-8")
    (built / "lessons/old.ipynb").write_text("{}", encoding="utf-8")
    found = {result.path: (result.status, result.why) for result in check_built(built)}
    assert found["lessons/01_tiny.ipynb"][0] == "differs"
    assert found["lessons/01_tiny.ipynb"][1].endswith("source")
    assert found["solutions/ex90.ipynb"] == ("missing", "")
    assert found["exercises/ex90.ipynb"] == ("differs", "not a readable notebook (JSONDecodeError)")
    assert found["lessons/old.ipynb"] == ("no source", "")


def notebook(text: str = "0.333333333 of 67108864", picture: str = "aaaa") -> dict[str, Any]:
    data = {"image/png": picture, "text/plain": [text]}
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    cell = {"id": "a", "cell_type": "code", "source": ["x"], "metadata": {}, "outputs": [output]}
    return {"metadata": {"kernelspec": {"name": "python3"}}, "cells": [cell]}


def test_a_check_forgives_picture_bytes_and_the_last_digits_of_floats() -> None:
    assert differences(notebook(), notebook(text="0.333333334 of 67108864", picture="bbbb")) == ""


@pytest.mark.parametrize("text", ["0.33334 of 67108864", "0.333333333 of 67108865", "0.333333333 in 67108864", ""])
def test_a_check_does_not_forgive_another_number_or_word(text: str) -> None:
    assert differences(notebook(), notebook(text=text)) == "cell 1 (a): output"


@pytest.mark.parametrize("key", ["cell_type", "source", "id", "metadata"])
def test_a_check_compares_all_of_a_cell(key: str) -> None:
    changed = copy.deepcopy(notebook())
    changed["cells"][0][key] = "other"
    assert key in differences(notebook(), changed)


def test_a_notebook_goes_back_to_the_source_it_came_from(built: Path) -> None:
    for kind, name in (("lessons", "01_tiny"), ("solutions", "ex90")):
        source = built / kind / "src" / f"{name}.py"
        before = source.read_text(encoding="utf-8")
        assert from_notebook(built, built / kind / f"{name}.ipynb").status == "unchanged"
        assert source.read_text(encoding="utf-8") == before


def test_an_edit_made_in_jupyterlab_reaches_the_source(built: Path) -> None:
    path = built / "lessons/01_tiny.ipynb"
    lesson = load(path)
    lesson["cells"][0]["source"] = ["# A better title"]
    lesson["cells"][0]["metadata"]["trusted"] = True
    path.write_text(json.dumps(lesson), encoding="utf-8")
    from_notebook(built, path)
    source = (built / "lessons/src/01_tiny.py").read_text(encoding="utf-8")
    assert source.startswith("# %% [markdown]\n# # A better title\n")


@pytest.mark.parametrize("file", ["exercises/ex90.ipynb", "elsewhere.ipynb", "/tmp/elsewhere.ipynb"])
def test_only_lessons_and_solutions_go_back(course: Path, file: str) -> None:
    with pytest.raises(LabError, match="only notebooks in lessons and solutions"):
        from_notebook(course, course / file)


def test_outside_a_course_the_error_says_where_to_go(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="not inside the labkit course"):
        build(tmp_path)
