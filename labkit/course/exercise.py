"""Solution notebook to exercise notebook: solutions cut to stubs, hidden tests cut out, nbgrader's marks set.

The result is what ``nbgrader generate_assignment`` makes of the same notebook, so an institution that runs nbgrader can
release it as it is (https://nbgrader.readthedocs.io, "Creating and grading assignments").
"""

from __future__ import annotations

import copy
import hashlib
from typing import Any

from labkit.errors import LabError

_STUB = {"code": ("# YOUR CODE HERE", "raise NotImplementedError()"), "markdown": ("YOUR ANSWER HERE",)}
_SOLUTION = ("### BEGIN SOLUTION", "### END SOLUTION")
_CUT_OUT = (
    ("### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"),
    ("=== BEGIN MARK SCHEME ===", "=== END MARK SCHEME ==="),
)


def to_exercise(solution: Any) -> Any:
    """A copy of the notebook without solutions and outputs; LabError for a region that is not closed or not marked."""
    notebook = copy.deepcopy(solution)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        mark = cell.metadata.get("nbgrader")
        if mark is None:
            if any(word in cell.source for pair in (_SOLUTION, *_CUT_OUT) for word in pair):
                raise LabError(f"a cell has a solution or hidden region but no nbgrader metadata: {cell.source[:60]!r}")
            continue
        cell.source = _student_text(cell.source, cell.cell_type, mark)
        _lock(cell, mark)
    return notebook


def _student_text(text: str, cell_type: str, mark: dict[str, Any]) -> str:
    cut, found = _cut(text, *_SOLUTION, _STUB[cell_type])
    if mark["solution"] and not found:
        cut = "\n".join(_STUB[cell_type])
    for begin, end in _CUT_OUT:
        cut, _ = _cut(cut, begin, end, ())
    return cut


def _cut(text: str, begin: str, end: str, stub: tuple[str, ...]) -> tuple[str, bool]:
    """The text with each region replaced by the stub, as far in as its first marker; and whether there was one."""
    lines: list[str] = []
    inside = found = False
    for line in text.split("\n"):
        if begin in line:
            if inside:
                raise LabError(f"{begin!r} inside another one")
            inside = found = True
            indent = line[: len(line) - len(line.lstrip())]
            lines.extend(indent + part for part in stub)
        elif end in line and inside:
            inside = False
        elif end in line:
            raise LabError(f"{end!r} without its {begin!r}")
        elif not inside:
            lines.append(line)
    if inside:
        raise LabError(f"{begin!r} without its {end!r}")
    return "\n".join(lines), found


def _lock(cell: Any, mark: dict[str, Any]) -> None:
    mark["locked"] = _is_locked(mark)
    if mark["locked"]:
        cell.metadata.update(editable=False, deletable=False)
    elif mark["solution"] or mark["grade"]:
        cell.metadata["deletable"] = False
    else:
        return  # a manually named cell without a role: nbgrader leaves it alone
    mark["cell_type"] = cell.cell_type
    mark["checksum"] = checksum(cell.source, cell.cell_type, mark)


def _is_locked(mark: dict[str, Any]) -> bool:
    return not mark["solution"] and bool(mark["locked"] or mark["grade"])


def checksum(text: str, cell_type: str, mark: dict[str, Any]) -> str:
    """nbgrader's fingerprint of a cell: md5 over its text, type and marks, in nbgrader's own order and spelling."""
    words = [text, cell_type, *(str(bool(mark[key])) for key in ("grade", "solution"))]
    words += [str(_is_locked(mark)), mark["grade_id"]]
    if mark["grade"]:
        words.append(str(float(mark["points"])))
    digest = hashlib.md5(usedforsecurity=False)
    for word in words:
        digest.update(word.encode())
    return digest.hexdigest()
