"""A notebook that was run, saved and opened again, its kernel gone: pictures and sentences, not empty boxes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from labkit.explore import tiling

pytestmark = pytest.mark.browser

CELLS = (
    "from labkit.explore import layouts, panel, tiling, walk\nhw = panel.show()\nhw",
    "tiling.show(hw.state)",
    "walk.show(hw.state, step=9)",
    "layouts.show()",
)
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"
OUTPUT = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-OutputArea-output"


def test_a_saved_notebook_shows_pictures_and_sentences_without_its_kernel(
    open_notebook: Callable[..., Any], lab: tuple[str, Path]
) -> None:
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    path = lab[1] / "saved.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    first = open_notebook(path)
    first.run_all()
    first.wait_until(lambda: first.page.locator(".labkit-WalkView canvas").count() > 0, "the views appear")
    first.page.evaluate(SAVE)
    saved = nbformat.read(path, as_version=4)
    assert all("text/plain" in cell.outputs[0].data for cell in saved.cells)
    first.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")

    again = open_notebook(path)
    canvas = f"{OUTPUT} canvas"
    for sentence in ("edge-npu: 1.02 TFLOP/s", "Step 9 of 512", "12 of 64 fetched"):
        again.wait_until(lambda said=sentence: any(said in t for t in texts(again)), f"the page says {sentence!r}")
    again.wait_for_picture(f"{canvas} >> nth=0", tiling.show().png)
    again.wait_until(lambda: again.page.locator(canvas).count() == 3, "all canvases are there")
    assert all(again.pixels(f"{canvas} >> nth={i}") == first.pixels(f"{canvas} >> nth={i}") for i in range(3))
    again.shot("saved", show=f"{canvas} >> nth=0")
    assert "model not found" not in " ".join(texts(again))
    assert again.errors == []


def texts(notebook: Any) -> list[str]:
    return list(notebook.page.locator(OUTPUT).all_inner_texts())
