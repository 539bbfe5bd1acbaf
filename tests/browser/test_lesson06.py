"""Lesson 06 as an instructor shows it: switch a pass off, change the machine, and table and roofline follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labkit.passes.pipeline import PASSES

pytestmark = pytest.mark.browser

LESSON = Path(__file__).parents[2] / "lessons/06_pipeline.ipynb"


def test_a_pass_switched_off_and_another_machine_change_table_text_and_roofline(
    open_notebook: Callable[[Path], Any],
) -> None:
    lesson = open_notebook(LESSON)
    lesson.run_all()
    view = lesson.view(".labkit-PipelineView")
    status, table, plot = (f"{view} {part}" for part in ("[role=status]", "table", "img"))
    before = lesson.text(status), lesson.text(table), lesson.pixels(plot)

    others = ", ".join(name for name in PASSES if name != "affine")
    lesson.press(lesson.control(view, "affine"), "Space")
    lesson.wait_until(lambda: f"Passes: {others}." in lesson.text(status), "the text says affine is off")
    lesson.wait_until(lambda: lesson.pixels(plot) != before[2], "the roofline moved")
    switched = lesson.text(table), lesson.pixels(plot)
    assert "affine" not in switched[0]
    lesson.shot("lesson06-passes", show=view)

    slider = lesson.view(".widget-slider:has(.widget-label:text-is('DRAM')) [role=slider]")
    lesson.press(slider, "Home")
    lesson.wait_until(lambda: lesson.text(table) != switched[0], "the times follow the bandwidth")
    lesson.wait_until(lambda: lesson.pixels(plot) != switched[1], "the roof follows the bandwidth")
    lesson.shot("lesson06-machine", show=plot)
    assert "as fast on custom" in lesson.text(status)
    assert lesson.errors == []
