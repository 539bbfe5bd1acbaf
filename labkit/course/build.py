"""Sources to notebooks: lessons and solutions are executed, exercises are cut from the solutions.

Two builds on one machine give the same bytes. Nothing is written before everything has run.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.course import notebook as notebooks
from labkit.course.execute import execute
from labkit.course.exercise import to_exercise
from labkit.course.project import KINDS, Source, find_project, sources, write_whole
from labkit.errors import LabError

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_FLOAT_NOISE = 1e-6  # relative; the last digits of a float depend on the BLAS of the machine


@dataclass(frozen=True)
class Built:
    """What became of one notebook: ``path`` relative to the course, ``status``, and ``why`` where a word is needed."""

    path: str
    status: str  # written, unchanged; of a check: same, differs, missing, no source
    why: str = ""


def build(start: Path, output: Path | None = None) -> list[Built]:
    """Build every notebook of the course around ``start``, into it or into ``output``."""
    root = find_project(start)
    target = output or root
    return [_write(target / path, text, path) for path, text in _all(root).items()]


def check_built(start: Path, output: Path | None = None) -> list[Built]:
    """Build in memory and compare, by ``differences``, with the notebooks that are there (in ``output`` if given)."""
    root = find_project(start)
    target = output or root
    expected = _all(root)
    results = [_compare(target / path, text, path) for path, text in expected.items()]
    for folder in (*KINDS, "exercises"):
        strays = [path.relative_to(target) for path in sorted((target / folder).glob("*.ipynb"))]
        results += [Built(path.as_posix(), "no source") for path in strays if path not in expected]
    return results


def from_notebook(start: Path, file: Path) -> Built:
    """Take a lesson or a solution edited in JupyterLab back into its source; outputs and tool metadata stay behind."""
    root = find_project(start)
    kind = file.resolve().parent.relative_to(root).as_posix() if file.resolve().is_relative_to(root) else ""
    if kind not in KINDS:
        raise LabError(
            f"{file}: only notebooks in {' and '.join(KINDS)} have a source; exercises are made of the solutions"
        )
    path = Path(kind, "src", f"{file.stem}.py")
    return _write(root / path, notebooks.to_source(notebooks.read(file), root / path), path)


def _all(root: Path) -> dict[Path, str]:
    found = sources(root)
    if not found:
        raise LabError(f"{root}: no sources in {' or '.join(f'{kind}/src' for kind in KINDS)}")
    texts: dict[Path, str] = {}
    for source in found:
        texts.update(_texts(source, root))
    return texts


def _texts(source: Source, root: Path) -> dict[Path, str]:
    notebook = notebooks.parse(source.path)
    texts: dict[Path, str] = {}
    if source.exercise is not None:
        texts[source.exercise] = notebooks.dump(to_exercise(notebook))
    execute(notebook, source.path.relative_to(root).as_posix(), root / source.kind)
    notebooks.clean(notebook)
    texts[source.notebook] = notebooks.dump(notebook)
    return texts


def _write(target: Path, text: str, path: Path) -> Built:
    if target.is_file() and target.read_bytes() == text.encode():
        return Built(path.as_posix(), "unchanged")
    write_whole(target, text)
    return Built(path.as_posix(), "written")


def _compare(target: Path, text: str, path: Path) -> Built:
    if not target.is_file():
        return Built(path.as_posix(), "missing")
    try:
        why = differences(json.loads(text), json.loads(target.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"not a readable notebook ({type(error).__name__})"
    return Built(path.as_posix(), "differs" if why else "same", why)


def differences(expected: dict[str, Any], found: dict[str, Any]) -> str:
    """The first difference of two notebook files in words, "" when there is none that counts.

    Compared: metadata, cells' ids, types, sources and metadata, and the text of the outputs, with floats equal to
    within 1e-6. Pictures are not: their bytes depend on the fonts and the matplotlib of the machine.

    >>> cell = {"id": "a", "cell_type": "code", "source": "x", "metadata": {}, "outputs": []}
    >>> differences({"metadata": {}, "cells": [cell]}, {"metadata": {}, "cells": [cell | {"source": "y"}]})
    'cell 1 (a): source'
    """
    if expected["metadata"] != found["metadata"]:
        return "metadata of the notebook"
    if len(expected["cells"]) != len(found["cells"]):
        return f"{len(found['cells'])} cells, the source gives {len(expected['cells'])}"
    for index, (ours, theirs) in enumerate(zip(expected["cells"], found["cells"], strict=True), start=1):
        for key in ("cell_type", "source", "id", "metadata"):
            if ours.get(key) != theirs.get(key):
                return f"cell {index} ({ours['id']}): {key}"
        if not _same_outputs(ours.get("outputs", []), theirs.get("outputs", [])):
            return f"cell {index} ({ours['id']}): output"
    return ""


def _same_outputs(ours: list[Any], theirs: list[Any]) -> bool:
    return len(ours) == len(theirs) and all(map(_same_text, map(_text, ours), map(_text, theirs)))


def _text(output: dict[str, Any]) -> str:
    """All that is text in one output, with the kind of each piece; of a picture only that it is there."""
    pieces = {key: value for key, value in output.items() if key not in ("data", "execution_count", "metadata")}
    for kind, value in output.get("data", {}).items():
        pieces[kind] = value if kind.startswith("text/") else "not compared"
    return json.dumps(pieces, sort_keys=True, ensure_ascii=False)


def _same_text(ours: str, theirs: str) -> bool:
    if ours == theirs:
        return True
    if _NUMBER.split(ours) != _NUMBER.split(theirs):
        return False
    return all(map(_same_number, _NUMBER.findall(ours), _NUMBER.findall(theirs)))


def _same_number(ours: str, theirs: str) -> bool:
    """Integers are equal or not; where one is a float both may differ in the last digits."""
    if ours == theirs:
        return True
    if not set(".eE") & set(ours + theirs):
        return False
    return math.isclose(float(ours), float(theirs), rel_tol=_FLOAT_NOISE)
