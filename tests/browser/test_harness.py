"""The harness itself, on a notebook of one slider: a key press reaches the kernel and comes back as text and pixels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

pytestmark = pytest.mark.browser

CELL = """\
import io
import ipywidgets
from PIL import Image

def png(value):
    file = io.BytesIO()
    Image.new("RGB", (64, 64), (25 * value, 0, 64)).save(file, "png")
    return file.getvalue()

slider = ipywidgets.IntSlider(value=3, min=0, max=9, description="value")
picture = ipywidgets.Image(value=png(3), format="png")
status = ipywidgets.HTML("value is 3").add_class("status")

def show(change):
    picture.value, status.value = png(change.new), f"value is {change.new}"

slider.observe(show, "value")
ipywidgets.VBox([slider, picture, status]).add_class("view")
"""


def test_a_key_on_a_slider_changes_picture_and_text(open_notebook: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "slider.ipynb"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)], metadata=kernel), path)
    notebook = open_notebook(path)
    notebook.run_all()
    view, status = notebook.view(".view"), notebook.view(".status")
    notebook.wait_until(lambda: "value is 3" in notebook.text(status), "the view appears")
    before = notebook.pixels(view)
    notebook.press(f"{view} [role=slider]", "ArrowRight")
    notebook.wait_until(lambda: "value is 4" in notebook.text(status), "the text says 4")
    notebook.wait_until(lambda: notebook.pixels(view) != before, "the picture changes")
    notebook.shot("harness")
    assert notebook.errors == []
