"""Lesson 04 as a student meets it: the guard zoo and the bloat by keyboard and mouse, on an old projector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labkit import Hardware
from labkit.explore import bloat, guards
from labkit.explore.panel import HardwareState

pytestmark = pytest.mark.browser

LESSON = Path(__file__).parents[2] / "lessons/04_folding.ipynb"


def test_every_explorer_of_lesson_04_follows_keyboard_and_mouse(open_notebook: Callable[..., Any]) -> None:
    lesson = open_notebook(LESSON, width=1024)
    lesson.run_all()
    _the_zoo(lesson)
    _the_bloat(lesson)
    _the_panel(lesson)
    _the_quiz(lesson)
    assert lesson.errors == []


def _the_zoo(lesson: Any) -> None:
    view = lesson.view(".labkit-GuardsView >> nth=0")
    twin = guards.show(trap="shared weight", guard=True)  # what the page must show, drawn here
    _same(lesson, view, twin)
    lesson.press(lesson.control(view, "guard"), "Space")
    _same(lesson, view, twin.set(guard=False))
    lesson.shot("lesson04-zoo", show=view)
    lesson.choose(lesson.control(view, "inputs"), "negative")
    _same(lesson, view, twin.set(kind="negative"))
    for trap in guards.NAMES:
        lesson.choose(lesson.control(view, "trap"), trap)
        _same(lesson, view, twin.set(trap=trap))
    lesson.page.locator(lesson.control(view, "guard")).first.click()
    _same(lesson, view, twin.set(guard=True))
    lesson.choose(lesson.control(view, "inputs"), "with NaN")
    _same(lesson, view, twin.set(kind="with NaN"))


def _same(lesson: Any, view: str, expected: Any) -> None:
    """The page shows the text and the pixels of this view."""
    lesson.page.locator(view).first.scroll_into_view_if_needed()
    lesson.wait_for_text(f"{view} >> [role=status]", expected.text)
    lesson.wait_for_picture(f"{view} >> canvas", expected.png)


def _the_bloat(lesson: Any) -> None:
    view = lesson.view(".labkit-BloatView >> nth=0")
    twin = bloat.show(form="sums of rows", side=1024, limit_kib=256)
    _same(lesson, view, twin)
    side = lesson.control(view, "side of x")
    lesson.press(side, "ArrowLeft")
    _same(lesson, view, twin.set(side=1023))
    lesson.choose(lesson.control(view, "constant"), "column × row")
    lesson.drag(side, by_px=-90)
    lesson.wait_until(lambda: lesson.value(side) < 1023, "the mouse moves the side")
    lesson.page.wait_for_timeout(500)
    _same(lesson, view, twin.set(form="column × row", side=int(lesson.value(side))))
    lesson.choose(lesson.control(view, "limit"), "4096 KiB")
    _same(lesson, view, twin.set(limit_kib=4096))
    lesson.shot("lesson04-bloat", show=view)


def _the_panel(lesson: Any) -> None:
    panel = lesson.view(".labkit-HardwarePanel >> nth=0")
    view = lesson.view(".labkit-BloatView >> nth=0")
    settings = _settings(lesson, view)
    lesson.choose(lesson.control(panel, "machine"), "dsp")
    dsp = HardwareState(hardware=Hardware.preset("dsp"))
    _same(lesson, view, bloat.show(dsp, **settings))
    lesson.press(lesson.control(panel, "large (projector)"), "Space")
    wide = "e => e.width"
    for name in ("GuardsView", "BloatView"):
        shown = lesson.view(f".labkit-{name} >> nth=0")
        lesson.page.locator(shown).first.scroll_into_view_if_needed()
        image = lesson.page.locator(f"{shown} >> canvas").first
        lesson.wait_until(lambda image=image: image.evaluate(wide) == 1440, "the picture is large")
        lesson.shot(f"lesson04-large-{name}", show=shown)
    lesson.press(lesson.control(panel, "large (projector)"), "Space")


def _settings(lesson: Any, view: str) -> dict[str, Any]:
    """Where the bloat's controls stand."""
    form = lesson.page.locator(lesson.control(view, "constant")).first.input_value()
    return {"form": form, "side": int(lesson.value(lesson.control(view, "side of x"))), "limit_kib": 4096}


def _the_quiz(lesson: Any) -> None:
    """It was revealed by the cell below it, so it is locked."""
    view = lesson.view(".labkit-Quiz")
    lesson.page.locator(view).first.scroll_into_view_if_needed()
    lesson.wait_until(lambda: "3. 2 arrays. Each is scaled" in lesson.text(f"{view} [role=status]"), "the answers show")
    assert lesson.page.locator(f"{view} input").first.is_disabled()
    lesson.shot("lesson04-quiz", show=view)
