"""The notebooks are assignments of nbgrader: its own commands release them and give the marks that we give."""

from __future__ import annotations

import csv
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from labkit.course import notebook as notebooks
from labkit.course.grade import grade_notebook
from labkit.course.variants import _with_seed
from tests.course.planted import Right
from tests.course.test_answers import EXERCISES, TABLES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
STUBS = ROOT / "tests/stubs"


@pytest.fixture
def nbgrader(tmp_path: Path) -> Callable[..., None]:
    """Run one command of nbgrader in an empty course, with a home and a PATH of its own."""
    if importlib.util.find_spec("nbgrader") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "nbgrader is not installed: pip install -e .[instructor]"
        )
    home = tmp_path / "home"
    home.mkdir()
    own = {name: str(home / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # nbgrader calls alembic by name
    environment = {**os.environ, **own, "HOME": str(home), "PATH": path, "PYTHONPATH": str(STUBS)}

    def run(*arguments: str) -> None:
        command = [sys.executable, "-m", "nbgrader", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]

    return run


def changed(exercise: str, answer: Right) -> str:
    """The solution notebook with a planted answer."""
    notebook = notebooks.read(ROOT / "solutions" / f"{exercise}.ipynb")
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == answer.grade_id:
            cell.source = answer.changed(cell.source)
    return notebooks.dump(notebook)


def submissions(exercise: str) -> dict[str, str]:
    """Notebooks by student: both ends, a right answer that warns, wrong ones from three parts, and a variant."""
    table, solved = TABLES[exercise], (ROOT / "solutions" / f"{exercise}.ipynb").read_text(encoding="utf-8")
    by_part = {wrong.part: wrong for wrong in table.WRONG}
    first, middle, last = (sorted(by_part)[place] for place in (0, len(by_part) // 2, -1))
    warning = next((right for right in table.RIGHT if "warn" in right.new), table.RIGHT[0])
    return {
        "solution": solved,
        "untouched": (ROOT / "exercises" / f"{exercise}.ipynb").read_text(encoding="utf-8"),
        "other": changed(exercise, warning),
        **{f"wrong{i}": changed(exercise, by_part[part]) for i, part in enumerate((first, middle, last))},
        "variant": _with_seed(ROOT / "solutions" / f"{exercise}.ipynb", 271828),
    }


@pytest.mark.parametrize("exercise", EXERCISES)
def test_nbgrader_releases_our_exercise_and_gives_our_marks(
    exercise: str, nbgrader: Callable[..., None], tmp_path: Path
) -> None:
    source = tmp_path / "source" / exercise
    source.mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / f"{exercise}.ipynb", source)
    nbgrader("generate_assignment", exercise, "--create")
    released = tmp_path / "release" / exercise / f"{exercise}.ipynb"
    assert released.read_bytes() == (ROOT / "exercises" / f"{exercise}.ipynb").read_bytes()
    ours = {}
    for student, text in submissions(exercise).items():
        path = tmp_path / "submitted" / student / exercise / f"{exercise}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
        graded = grade_notebook(path)
        ours[student] = (graded.points, graded.max_points)
    nbgrader("autograde", exercise, "--create")
    nbgrader("export", "--to", "grades.csv")
    with (tmp_path / "grades.csv").open(encoding="utf-8") as file:
        theirs = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)}
    assert theirs == ours
    full = ours["solution"][1]
    assert (ours["solution"][0], ours["other"][0], ours["variant"][0], ours["untouched"][0]) == (full, full, full, 0)
    assert all(0 < ours[f"wrong{i}"][0] < full for i in range(3))
