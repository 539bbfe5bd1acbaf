"""nbval replays the outputs of a lesson: a number changed in one of them is caught, and so is one changed in labkit."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LESSONS = ["00_memory_wall", *os.environ.get("LESSONS", "").split()]  # LESSONS="01_layouts ...": others, too
# Of the edge NPU, in hardware.toml.
CONSTANTS = {"dram_bytes_per_s = 3.75e9": "dram_bytes_per_s = 3.95e9", "line_bytes = 64": "line_bytes = 128"}


def replay(notebook: Path, labkit: Path = ROOT) -> tuple[int, str]:
    """nbval's exit status and what it prints, for a lesson and the library in a folder."""
    options = ["--nbval", "--nbval-current-env", "--nbval-sanitize-with", str(ROOT / "tests/sanitize.cfg"), "-q"]
    paths = os.pathsep.join(map(str, (labkit, ROOT / "tests/stubs")))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *options, str(notebook)],
        cwd=labkit, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stdout


def beside_its_files(folder: Path) -> None:
    """All lessons in a folder: one of them opens another as a file. And pytest's settings."""
    for path in (*(ROOT / "lessons").glob("*.ipynb"), ROOT / "pyproject.toml"):
        shutil.copy(path, folder)


def planted(text: str) -> tuple[str, int]:
    """The notebook with a digit raised in the text of the last output that has one, and the number of its cell."""
    notebook = json.loads(text)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in reversed(list(enumerate(code))):
        for output in cell["outputs"]:
            lines = output.get("text", [])
            found = next((i for i, line in enumerate(lines) if re.search(r"\d", line)), None)
            if found is not None:
                lines[found] = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), lines[found], count=1)
                return json.dumps(notebook), number
    raise AssertionError("no printed number in this notebook")


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_number_changed_in_an_output_is_caught_in_its_cell(lesson: str, tmp_path: Path) -> None:
    beside_its_files(tmp_path)
    text, number = planted((ROOT / f"lessons/{lesson}.ipynb").read_text(encoding="utf-8"))
    (tmp_path / f"{lesson}.ipynb").write_text(text, encoding="utf-8")
    status, said = replay(tmp_path / f"{lesson}.ipynb")
    assert status == 1
    assert re.findall(r"^FAILED .*::Cell (\d+)", said, re.MULTILINE) == [str(number)]


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS)
def test_constants_changed_in_the_library_are_caught(lesson: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "labkit", tmp_path / "labkit", ignore=shutil.ignore_patterns("__pycache__"))
    table = tmp_path / "labkit/hardware.toml"
    changed = table.read_text(encoding="utf-8")
    for old, new in CONSTANTS.items():
        assert old in changed
        changed = changed.replace(old, new, 1)
    table.write_text(changed, encoding="utf-8")
    beside_its_files(tmp_path)
    status, said = replay(tmp_path / f"{lesson}.ipynb", tmp_path)
    assert status == 1
    assert "FAILED" in said
