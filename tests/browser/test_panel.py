"""The hardware panel and the roofline plot in a browser: what only a browser does to sliders and views."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

pytestmark = pytest.mark.browser

CELLS = (
    "from labkit.explore import panel, roofline\nhw = panel.show().add_class('panel')\nhw",
    "roofline.show([('none', 8_200, 520), ('fused', 8_180, 250)], hw.state).add_class('roofline')",
)


def test_a_browser_leaves_the_preset_alone_and_a_key_moves_the_roof(
    open_notebook: Callable[[Path], Any], tmp_path: Path
) -> None:
    """A browser sends back the value of a slider that is off its grid; the machine must survive being looked at."""
    path = tmp_path / "panel.ipynb"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    notebook = open_notebook(path)
    notebook.run_all()
    panel, roofline = notebook.view(".panel"), notebook.view(".roofline")
    status = f"{roofline} [role=status]"
    notebook.wait_until(lambda: "1. none" in notebook.text(status), "the plot appears")
    notebook.choose(notebook.control(panel, "machine"), "dsp")
    notebook.wait_until(lambda: "dsp: peak 160 GFLOP/s, DRAM 10.7 GB/s" in notebook.text(status), "the next preset")
    before = notebook.pixels(roofline)
    notebook.press(f"{panel} .widget-hslider:has-text('DRAM') [role=slider]", "ArrowRight")
    notebook.wait_until(lambda: "custom: peak 160 GFLOP/s, DRAM 11 GB/s" in notebook.text(status), "the next stop")
    notebook.wait_until(lambda: notebook.pixels(roofline) != before, "the picture changes")
    notebook.choose(notebook.control(panel, "elements"), "int8")
    notebook.wait_until(lambda: notebook.text(f"{panel} [role=status]").endswith("int8"), "the panel says the type")
    notebook.type(notebook.control(panel, "file"), "mine.toml")
    notebook.page.locator(f"{panel} button:has-text('save')").click()
    notebook.wait_until(lambda: "mine.toml: written" in notebook.text(f"{panel} [role=status]"), "the file is saved")
    notebook.choose(notebook.control(panel, "machine"), "edge-npu")
    notebook.wait_until(lambda: "edge-npu: peak" in notebook.text(status), "another machine")
    notebook.page.locator(f"{panel} button:has-text('load')").click()
    notebook.wait_until(lambda: "custom: peak 160 GFLOP/s, DRAM 11 GB/s" in notebook.text(status), "the saved machine")
    notebook.type(notebook.control(panel, "file"), "none.toml")
    notebook.page.locator(f"{panel} button:has-text('load')").click()
    notebook.wait_until(lambda: "no such hardware file" in notebook.text(f"{panel} [role=status]"), "a sentence")
    notebook.shot("panel")
    assert notebook.errors == []
