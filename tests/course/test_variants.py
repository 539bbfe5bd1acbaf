"""Variants: each student's own notebook, the same each time, graded with its own seed, solvable by the solution."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labkit.cli import main
from labkit.course import notebook as notebooks
from labkit.course.exercise import checksum
from labkit.course.grade import grade_notebook
from labkit.course.submission import read_answers
from labkit.course.variants import make_variants, read_roster, seed_of
from labkit.errors import LabError

ROOT = Path(__file__).parents[2]
EXERCISES = sorted(path.stem for path in (ROOT / "exercises").glob("ex*.ipynb"))


@pytest.fixture
def roster(tmp_path: Path) -> Path:
    path = tmp_path / "roster.csv"
    path.write_text("id,last_name\nada,Lovelace\nzoë k,K\n", encoding="utf-8")
    return path


def test_each_student_gets_each_exercise_with_a_seed_of_their_own(roster: Path, tmp_path: Path) -> None:
    made = make_variants(ROOT, roster, tmp_path / "out")
    assert [variant.path for variant in made] == [
        f"{student}/{name}.ipynb" for student in ("ada", "zoë k") for name in EXERCISES
    ]
    assert len({variant.seed for variant in made}) == len(made)
    for variant in made:
        answers = read_answers(tmp_path / "out" / variant.path)
        assert (answers.exercise, answers.seed) == (variant.exercise, variant.seed)


def test_a_variant_differs_from_the_exercise_in_the_seed_alone_and_stays_a_valid_assignment(
    roster: Path, tmp_path: Path
) -> None:
    made = make_variants(ROOT, roster, tmp_path)[0]
    own, common = (
        notebooks.read(path) for path in (tmp_path / made.path, ROOT / "exercises" / f"{made.exercise}.ipynb")
    )
    differing = [(ours, theirs) for ours, theirs in zip(own.cells, common.cells, strict=True) if ours != theirs]
    ((ours, theirs),) = differing
    assert ours.source == theirs.source.replace("seed=0", f"seed={made.seed}")
    mark = ours.metadata.nbgrader
    assert mark.checksum == checksum(ours.source, "code", mark) != theirs.metadata.nbgrader.checksum
    assert own.metadata == common.metadata


def test_two_runs_write_the_same_bytes(roster: Path, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        make_variants(ROOT, roster, tmp_path / folder)
    for path in (tmp_path / "one").rglob("*.ipynb"):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()


@pytest.mark.parametrize("name", EXERCISES)
def test_the_untouched_variant_has_no_point_and_the_solved_one_all(name: str, roster: Path, tmp_path: Path) -> None:
    made = next(variant for variant in make_variants(ROOT, roster, tmp_path) if variant.exercise == name)
    path = tmp_path / made.path
    assert grade_notebook(path).points == 0
    notebook, solution = notebooks.read(path), notebooks.read(ROOT / "solutions" / f"{name}.ipynb")
    for cell, solved in zip(notebook.cells, solution.cells, strict=True):
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = solved.source
    path.write_text(notebooks.dump(notebook), encoding="utf-8")
    graded = grade_notebook(path)
    assert (graded.is_full, graded.flags) == (True, ())


@pytest.mark.parametrize(
    ("cell", "seed"),
    [
        ('x = sheet("ex01", seed=12)', 12),
        ("x = sheet( 'ex01' , seed = 7 )", 7),
        ('x = sheet("ex02", seed=12)', 0),  # of another exercise
        ('x = sheet("ex01", seed=-3)', 0),
        ("seed=12", 0),
    ],
)
def test_the_seed_is_read_from_the_call_of_sheet(cell: str, seed: int, tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "metadata": {}, "source": cell}]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {"labkit": {"exercise": "ex01"}}}))
    assert read_answers(path).seed == seed


def test_a_seed_depends_on_exercise_and_student_and_is_never_the_common_one() -> None:
    seeds = [seed_of(exercise, f"s{i}") for exercise in ("ex01", "ex02") for i in range(500)]
    assert len(set(seeds)) > 990
    assert 0 < min(seeds) < max(seeds) <= 10**6


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("id\na\nb\n", ["a", "b"]),
        ("\ufeffstudent;name\r\na;A\r\nb;B\r\n", ["a", "b"]),
        ('name,id\n"A, B", a@b.org \n', ["a@b.org"]),
    ],
)
def test_a_roster_as_spreadsheets_write_it_is_read(text: str, ids: list[str], tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_bytes(text.encode())
    assert read_roster(path) == ids


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no students"),
        (b"id\n", "no students"),
        (b"name\nada\n", "a column id or student"),
        (b"id\n\xff\n", "save it as CSV in UTF-8"),
        (b"id\nada\n../../etc\n", r"line 3: id '\.\./\.\./etc' is no name for a folder"),
        (b"id,x\n,1\n", "line 2: id '' is no name"),
        (b"id\na.\n", "is no name for a folder"),
        (b"id\nada\nbob\nAda\n", "line 4: id 'Ada' comes twice, also in line 2"),
    ],
)
def test_a_roster_that_cannot_be_used_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_bytes(content)
    with pytest.raises(LabError, match=message):
        read_roster(path)
    with pytest.raises(LabError):
        make_variants(ROOT, path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_writes_and_lists_them(
    roster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    output = tmp_path / "out"
    assert main(["variants", "--students", str(roster), "--output", str(output), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["variants"][0]
    assert first == {"student": "ada", "exercise": "ex01", "seed": seed_of("ex01", "ada"), "path": "ada/ex01.ipynb"}
    assert (output / first["path"]).is_file()
    assert main(["variants", "--students", str(tmp_path / "absent.csv")]) == 2
    assert "no such roster" in capsys.readouterr().err
