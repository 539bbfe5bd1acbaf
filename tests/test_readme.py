"""The README is true: its code prints what it says, its commands and files exist."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\]\(((?!https?:)[^)]+)\)", README)


def test_the_code_prints_what_the_readme_shows() -> None:
    code, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL).groups()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == shown


@pytest.mark.parametrize("link", LINKS)
def test_every_linked_file_exists(link: str) -> None:
    assert (ROOT / link).exists()


def test_every_lesson_is_in_the_table() -> None:
    assert {path.name for path in (ROOT / "lessons/src").glob("*.py")} == {
        f"{Path(link).stem}.py" for link in LINKS if link.startswith("lessons/")
    }


def test_the_commands_without_make_are_those_of_the_makefile() -> None:
    """What follows ``-m pytest`` and ``-r`` must not drift apart."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace(" $(ARGS)", "").replace("$(JOBS)", "auto")
    for pattern in (r"-m pytest (--.*)", r"-r (requirements.*)"):
        found = set(re.findall(pattern, README))
        assert found
        assert found == set(re.findall(pattern, makefile))
