"""A course of two tiny sources in a temporary folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from labkit.course.build import build

LESSON = """\
# %% [markdown]
# # A tiny lesson

# %%
import ipywidgets
import matplotlib.pyplot as plt

plt.plot([1, 2, 3])
plt.show()

# %%
slider = ipywidgets.IntSlider(value=3)
slider

# %% tags=["raises-exception"]
print(object(), flush=True)
print(1 / 3, 67108864)
{}["missing"]
"""

SOLUTION = '''\
# %% [markdown]
# # Exercise 90

# %% nbgrader={"grade_id": "ex90-setup", "locked": true}
import math


# %% nbgrader={"grade_id": "ex90-1", "solution": true}
def twice(x: int) -> int:
    """Two times x."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex90-1-check", "grade": true, "points": 2}
assert twice(4) == 8
### BEGIN HIDDEN TESTS
assert twice(-1) == -2
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "ex90-2", "grade": true, "points": 1, "solution": true}
# Because 2 is two.
'''


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """The folder of a course with one lesson and one solution, nothing built."""
    return write_course(tmp_path)


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same course with its notebooks, built a single time: a kernel takes seconds to start."""
    folder = write_course(tmp_path_factory.mktemp("built"))
    build(folder)
    return folder


@pytest.fixture
def built(built_once: Path, tmp_path: Path) -> Path:
    """A copy of the built course, to change at will."""
    return Path(shutil.copytree(built_once, tmp_path / "course"))


def write_course(folder: Path) -> Path:
    for path, text in {
        "pyproject.toml": '[project]\nname = "labkit"\n',
        "lessons/src/01_tiny.py": LESSON,
        "solutions/src/ex90.py": SOLUTION,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder
