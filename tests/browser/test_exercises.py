"""Each exercise as a student works it: open it untouched, type the answers, run everything, save, full marks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labkit.course.checking import parts_of
from labkit.course.grade import grade_notebook

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
EXERCISES = sorted(path.stem for path in (ROOT / "solutions/src").glob("ex*.py"))
RUN_ALL = "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"
GO_TO = """async index => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    notebook.activeCellIndex = index;
    await notebook.scrollToItem(index);
}"""
TEXT_OF = "index => window.jupyterapp.shell.currentWidget.content.widgets[index].model.sharedModel.getSource()"
ERRORS = """() => window.jupyterapp.shell.currentWidget.content.widgets
    .flatMap(cell => cell.model.type === 'code' ? cell.model.sharedModel.getOutputs() : [])
    .filter(output => output.output_type === 'error').map(output => output.traceback.join('\\n'))"""
PRINTED = """() => window.jupyterapp.shell.currentWidget.content.widgets
    .flatMap(cell => cell.model.type === 'code' ? cell.model.sharedModel.getOutputs() : [])
    .filter(output => output.output_type === 'stream').map(output => [output.text].flat().join('')).join('\\n')"""


def answers(name: str) -> dict[int, str]:
    """Text of the solution by the position of its cell."""
    cells = json.loads((ROOT / "solutions" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    written = {i for i, cell in enumerate(cells) if cell["metadata"].get("nbgrader", {}).get("solution")}
    return {i: "".join(cells[i]["source"]) for i in sorted(written)}


def type_into(notebook: Any, index: int, text: str) -> None:
    notebook.page.evaluate(GO_TO, index)
    notebook.page.locator(".jp-Notebook:visible .jp-mod-active .cm-content").click()
    notebook.page.keyboard.press("ControlOrMeta+a")
    notebook.page.keyboard.insert_text(text)
    assert notebook.page.evaluate(TEXT_OF, index) == text


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_is_worked_from_untouched_to_full_marks(
    name: str, open_notebook: Callable[[Path], Any], lab: tuple[str, Path]
) -> None:
    notebook = open_notebook(ROOT / "exercises" / f"{name}.ipynb")
    parts = parts_of(name)
    first = next(iter(parts))
    notebook.page.evaluate(RUN_ALL)  # it stops at the first check
    notebook.wait_until(lambda: notebook.page.evaluate(ERRORS) == [f"{first} is not written yet."], "the first check")
    hint = notebook.page.locator(".jp-Notebook:visible details").first
    hint.scroll_into_view_if_needed()
    folded = hint.bounding_box()["height"]
    hint.locator("summary").click()
    assert hint.bounding_box()["height"] > folded
    for index, text in answers(name).items():
        type_into(notebook, index, text)
    notebook.page.evaluate(RUN_ALL)
    expected = [f"{part_id} right: {part.title}" for part_id, part in parts.items()]
    notebook.wait_until(
        lambda: [line for line in notebook.page.evaluate(PRINTED).splitlines() if " right: " in line] == expected,
        "every check says right",
    )
    assert notebook.page.evaluate(ERRORS) == []
    notebook.shot(name)
    notebook.page.evaluate(SAVE)
    graded = grade_notebook(lab[1] / f"{name}.ipynb")
    assert (graded.is_full, graded.flags) == (True, ())
    assert notebook.errors == []
