"""Notebooks as values: source text to notebook and back, cleaned of everything that differs from run to run."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from labkit.errors import LabError

_FORMAT = "py:percent"
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
_KEPT = ("tags", "nbgrader", "slideshow")  # cell metadata that a person writes; the rest is a tool's own
_NBGRADER = {"grade": False, "locked": False, "schema_version": 3, "solution": False, "task": False}
_SET_BY_NBGRADER = ("checksum", "cell_type")
_NOISE = (
    (re.compile(r"0x[0-9a-fA-F]{6,}"), "0xADDR"),
    (re.compile(r"\S*/ipykernel_\d+/\d+\.py"), "IPYKERNEL.py"),
)


def parse(path: Path) -> Any:
    """The notebook a percent-format source describes, with stable cell ids and no outputs."""
    text = path.read_text(encoding="utf-8")
    notebook = _jupytext().reads(text, fmt=_FORMAT)
    metadata: dict[str, Any] = {"kernelspec": dict(_KERNEL), "language_info": {"name": "python"}}
    if re.fullmatch(r"ex[0-9]{2}", path.stem):
        metadata["labkit"] = {"exercise": path.stem}
    notebook.metadata.clear()
    notebook.metadata.update(metadata)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata["nbgrader"] = _complete(cell.metadata["nbgrader"], path)
    _number(notebook.cells)
    return notebook


def to_source(notebook: Any, path: Path) -> str:
    """The percent-format text of a notebook, for a source at ``path``: the inverse of ``parse``, in house style."""
    for cell in notebook.cells:
        kept = {key: cell.metadata[key] for key in _KEPT if key in cell.metadata}
        if "nbgrader" in kept:
            kept["nbgrader"] = _shorten(kept["nbgrader"])
        cell.metadata.clear()
        cell.metadata.update(kept)
    notebook.metadata.clear()
    notebook.metadata["jupytext"] = {"notebook_metadata_filter": "-all", "cell_metadata_filter": ",".join(_KEPT)}
    text = _jupytext().writes(notebook, fmt=_FORMAT)
    return _formatted(re.sub(r"\n{2,}(?=# %%)", "\n\n", text), path)


def _formatted(text: str, path: Path) -> str:
    """The text as ``ruff format`` leaves the sources: jupytext has other habits with blank lines."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(path), "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        raise LabError(f"{path}: ruff cannot format it: {(done.stderr.strip().splitlines() or ['not installed'])[-1]}")
    return done.stdout


def read(path: Path) -> Any:
    """A notebook file; LabError when it is missing or is none."""
    import nbformat

    try:
        return nbformat.read(path, as_version=4)
    except FileNotFoundError:
        raise LabError(f"{path}: no such notebook") from None
    except Exception as error:  # nbformat raises whatever its parts raise on a file that is no notebook
        raise LabError(
            f"{path}: not a readable notebook ({str(error).splitlines()[0] if str(error) else 'empty'})"
        ) from None


def dump(notebook: Any) -> str:
    """The text of a notebook file: keys sorted, so equal notebooks are equal bytes."""
    import nbformat

    nbformat.validate(notebook)
    return str(nbformat.writes(notebook, version=4)).rstrip("\n") + "\n"


def clean(notebook: Any) -> None:
    """Take out, in place, what differs between two runs: time stamps, widget state and models, addresses, paths."""
    for key in set(notebook.metadata) - {"kernelspec", "language_info", "labkit"}:
        del notebook.metadata[key]
    notebook.metadata["kernelspec"] = dict(_KERNEL)
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = _quiet(output["text"])
            if "traceback" in output:
                output["traceback"] = [_quiet(line) for line in output["traceback"]]
            data = output.get("data", {})
            data.pop(_WIDGET_VIEW, None)  # it points at a model that lives in the kernel, which has ended
            data.update({kind: _quiet(text) for kind, text in data.items() if kind.startswith("text/")})


def _quiet(text: str) -> str:
    for pattern, word in _NOISE:
        text = pattern.sub(word, text)
    return text


def _complete(given: Any, path: Path) -> dict[str, Any]:
    """nbgrader's metadata with its defaults; a source only says what is special about a cell."""
    if not isinstance(given, dict) or not isinstance(given.get("grade_id"), str):
        raise LabError(f"{path.name}: nbgrader metadata needs a grade_id, got {given!r}")
    if given.get("grade") and "points" not in given:
        raise LabError(f"{path.name}: {given['grade_id']} is graded and has no points")
    full = {**_NBGRADER, **given}
    full["locked"] = bool(given.get("locked", full["grade"])) and not full["solution"]
    return full


def _shorten(full: dict[str, Any]) -> dict[str, Any]:
    """The inverse of ``_complete``: what is special about the cell, its name first."""
    standard = {**_NBGRADER, "locked": bool(full.get("grade")) and not full.get("solution")}
    special = [key for key in sorted(full) if key not in _SET_BY_NBGRADER and standard.get(key, ...) != full[key]]
    return {key: full[key] for key in ["grade_id", *special] if key in full}


def _number(cells: list[Any]) -> None:
    """Cell ids from what a cell is (its grade_id, else its text), not from chance: a rebuild then changes no line."""
    seen: Counter[str] = Counter()
    for cell in cells:
        digest = hashlib.sha256((cell.cell_type + cell.source).encode()).hexdigest()[:8]
        name = re.sub(r"[^A-Za-z0-9_-]", "-", cell.metadata.get("nbgrader", {}).get("grade_id", digest))[:60]
        seen[name] += 1
        cell["id"] = name if seen[name] == 1 else f"{name}-{seen[name]}"


def _jupytext() -> Any:
    try:
        import jupytext
    except ImportError:
        raise LabError("building notebooks needs jupytext: pip install -r requirements-dev.txt") from None
    return jupytext
