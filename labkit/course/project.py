"""The course folder: where it is, and which notebook comes from which source."""

from __future__ import annotations

import os
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from labkit.errors import LabError

KINDS = ("lessons", "solutions")  # folders with a src/ of their own; exercises/ comes from solutions/src


@dataclass(frozen=True)
class Source:
    """One source file of the course: ``kind`` is its folder, ``lessons`` or ``solutions``."""

    kind: str
    path: Path

    @property
    def notebook(self) -> Path:
        """Where its executed notebook goes, relative to the course folder."""
        return Path(self.kind, f"{self.path.stem}.ipynb")

    @property
    def exercise(self) -> Path | None:
        """Where the exercise made of it goes; None for a lesson."""
        return Path("exercises", f"{self.path.stem}.ipynb") if self.kind == "solutions" else None


def find_project(start: Path) -> Path:
    """The course folder at or above ``start``: it has labkit's pyproject.toml and lessons/src. LabError if none has."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "lessons" / "src").is_dir() and _is_labkit(folder / "pyproject.toml"):
            return folder
    raise LabError(
        f"{start}: not inside the labkit course; change to the folder that has pyproject.toml and lessons/src"
    )


def _is_labkit(pyproject: Path) -> bool:
    try:
        table = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False
    return bool(table.get("project", {}).get("name") == "labkit")


def sources(root: Path) -> list[Source]:
    """Every source of the course, lessons first, in the order of their names."""
    return [Source(kind, path) for kind in KINDS for path in sorted((root / kind / "src").glob("*.py"))]


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader finds the old one or the new one, never a half: temporary file, then rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, 0o644)  # mkstemp makes it private
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
