"""Lesson 01 as a student meets it: run everything, move a slider by keyboard, see picture and text follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

LESSON = Path(__file__).parents[2] / "lessons/01_layouts.ipynb"


def test_a_key_on_a_slider_of_lesson_01_moves_picture_and_text(open_notebook: Callable[[Path], Any]) -> None:
    lesson = open_notebook(LESSON)
    lesson.run_all()
    strip, status = lesson.view(".labkit-strip canvas"), lesson.view(".labkit-strip [role=status]")
    slider = lesson.view(".widget-slider:has(.widget-label:text-is('run')) [role=slider]")
    lesson.press(slider, "Home")
    lesson.wait_until(lambda: lesson.value(slider) == 0, "the slider stands at its start")
    seen = {(lesson.pixels(strip), lesson.text(status))}
    for run in (1, 2):
        lesson.press(slider, "ArrowRight")
        lesson.wait_until(lambda run=run: lesson.value(slider) == run, f"the slider stands at {run}")
        pictures, texts = ({state[i] for state in seen} for i in (0, 1))
        lesson.wait_until(lambda known=texts: lesson.text(status) not in known, f"the text says run {run}")
        lesson.wait_until(lambda known=pictures: lesson.pixels(strip) not in known, f"the picture shows run {run}")
        seen.add((lesson.pixels(strip), lesson.text(status)))
    lesson.shot("lesson01", show=lesson.view(".labkit-strip"))
    assert len(seen) == 3
    assert lesson.errors == []
