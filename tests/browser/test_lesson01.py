"""Lesson 01 as a student meets it: controls moved by keyboard and mouse, and pictures and words that follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labkit.explore import layouts, placement

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


def says(state: Any) -> str:
    """What a list of facts looks like as text."""
    return " ".join(word for fact in state.facts for word in fact)


def test_the_strip_of_weights_and_the_game_follow_keyboard_and_mouse(open_notebook: Callable[..., Any]) -> None:
    lesson = open_notebook(LESSON, width=1024)
    lesson.run_all()
    _weights(lesson)
    _game(lesson)
    _quiz(lesson)
    assert lesson.errors == []


def _weights(lesson: Any) -> None:
    view = lesson.view(".labkit-LayoutExplorer:has(.widget-label:text-is('O')) >> nth=0")
    status, strip = f"{view} >> [role=status]", f"{view} >> canvas"
    lesson.choose(lesson.control(view, "walk"), "outputs")
    lesson.choose(lesson.control(view, "layout"), "OIHW")
    run = lesson.control(view, "run")
    lesson.press(run, "Home")
    lesson.wait_for_text(status, says(layouts.data((8, 4, 3, 3), "OIHW", "outputs")))
    before = lesson.pixels(strip)
    lesson.drag(run, by_px=120)
    lesson.wait_for_text(status, says(layouts.data((8, 4, 3, 3), "OIHW", "outputs", lesson.rests(run))))
    lesson.wait_until(lambda: lesson.pixels(strip) != before, "another run is hatched")
    lesson.shot("lesson01-weights", show=view)


def _game(lesson: Any) -> None:
    view = lesson.view(".labkit-PlacementView >> nth=0")
    status, picture = f"{view} >> [role=status]", f"{view} >> canvas"
    best = ["act", "both", "mean"]
    lesson.page.locator(view).first.scroll_into_view_if_needed()  # what is out of sight has no text
    lesson.wait_for_text(status, says(placement.data(best, compared=True)))
    before = lesson.pixels(picture)
    lesson.press(lesson.control(view, "norm in NHWC"), "Space")
    lesson.wait_for_text(status, says(placement.data([*best, "norm"], compared=True)))
    lesson.wait_until(lambda: lesson.pixels(picture) != before, "another arrow has a transpose")
    lesson.shot("lesson01-game", show=view)
    lesson.page.locator(lesson.control(view, "compare with the best")).first.click()
    lesson.wait_for_text(status, says(placement.data([*best, "norm"])))


def _quiz(lesson: Any) -> None:
    view = lesson.view(".labkit-Quiz >> nth=0")
    lesson.page.locator(view).first.scroll_into_view_if_needed()
    assert "48 elements" in lesson.text(view)
    lesson.shot("lesson01-quiz", show=view)
