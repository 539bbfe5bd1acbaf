"""Lesson 05 as a student meets it: reachability and the time machine by keyboard and mouse, on an old projector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labkit import Hardware
from labkit.explore import guards, reach, timeline

pytestmark = pytest.mark.browser

LESSON = Path(__file__).parents[2] / "lessons/05_elimination.ipynb"
SLOW = ("dead", "affine", "fold", "no-ops", "share")  # the order in which the lesson leaves the time machine


def says(state: Any) -> str:
    """What a list of facts looks like as text."""
    return " ".join(word for fact in state.facts for word in fact)


def test_every_explorer_of_lesson_05_follows_keyboard_and_mouse(open_notebook: Callable[..., Any]) -> None:
    lesson = open_notebook(LESSON, width=1024)
    lesson.run_all()
    _reachability(lesson)
    _the_near_no_ops(lesson)
    _the_time_machine(lesson)
    _the_panel(lesson)
    _the_quiz(lesson)
    assert lesson.errors == []


def _reachability(lesson: Any) -> None:
    view = lesson.view(".labkit-ReachView >> nth=0")
    status, picture = f"{view} >> [role=status]", f"{view} >> canvas"
    looked = lesson.control(view, "looked at")
    lesson.press(looked, "ArrowRight")
    lesson.wait_for_text(status, says(reach.data(looked=4)))
    lesson.shot("lesson05-reach", show=view)
    before = lesson.pixels(picture)
    lesson.press(lesson.control(view, "output probe"), "Space")
    lesson.wait_for_text(status, says(reach.data(outputs=["classes", "probe"], looked=4)))
    lesson.wait_until(lambda: lesson.pixels(picture) != before, "the probe is an output now")
    before = lesson.pixels(picture)
    lesson.page.locator(lesson.control(view, "output classes")).first.click()
    lesson.wait_for_text(status, says(reach.data(outputs=["probe"], looked=4)))
    lesson.drag(looked, by_px=150)
    lesson.wait_until(lambda: lesson.value(looked) > 4, "the mouse moves the walk")
    lesson.wait_for_text(status, says(reach.data(outputs=["probe"], looked=lesson.rests(looked))))
    lesson.wait_until(lambda: lesson.pixels(picture) != before, "more nodes are marked")
    lesson.press(looked, "End")
    lesson.wait_for_text(status, says(reach.data(outputs=["probe"], looked=11)))


def _the_near_no_ops(lesson: Any) -> None:
    view = lesson.view(".labkit-GuardsView >> nth=0")
    twin = guards.show(trap="not a number", kind="with NaN")
    for change in ({}, {"trap": "lossy cast"}, {"trap": "broadcast"}):
        if change:
            lesson.choose(lesson.control(view, "trap"), change["trap"])
        twin.set(**change)
        lesson.page.locator(view).first.scroll_into_view_if_needed()
        lesson.wait_for_text(f"{view} >> [role=status]", twin.text)
        lesson.wait_for_picture(f"{view} >> canvas", twin.png)
    lesson.shot("lesson05-near", show=view)


def _the_time_machine(lesson: Any) -> None:
    view = lesson.view(".labkit-TimelineView >> nth=0")
    picture = f"{view} >> canvas"
    step = lesson.control(view, "step")
    _shows(lesson, view, timeline.data(order=SLOW, step=5))
    before = lesson.pixels(picture)
    lesson.press(step, "ArrowRight")
    _shows(lesson, view, timeline.data(order=SLOW, step=6))
    lesson.wait_until(lambda: lesson.pixels(picture) != before, "one step on")
    lesson.shot("lesson05-timeline", show=view)
    lesson.press(step, "ArrowLeft")
    _shows(lesson, view, timeline.data(order=SLOW, step=5))
    lesson.wait_until(lambda: lesson.pixels(picture) == before, "undone, to the pixel")
    lesson.drag(step, by_px=-200)
    lesson.wait_until(lambda: lesson.value(step) < 5, "the mouse moves the step")
    _shows(lesson, view, timeline.data(order=SLOW, step=lesson.rests(step)))
    lesson.choose(lesson.control(view, "second"), "fuse")  # pushes affine out
    order = ("dead", "fuse", "fold", "no-ops", "share")
    lesson.press(step, "Home")
    _shows(lesson, view, timeline.data(order=order, step=0))
    lesson.choose(lesson.control(view, "first"), "share")  # swaps with dead
    order = ("share", "fuse", "fold", "no-ops", "dead")
    _shows(lesson, view, timeline.data(order=order, step=0))
    lesson.press(step, "End")
    end = timeline.data(order=order, step=len(timeline.data(order=order).report.steps))
    _shows(lesson, view, end)
    assert lesson.page.locator(lesson.control(view, "fifth")).first.input_value() == "dead"


def _shows(lesson: Any, view: str, state: Any) -> None:
    lesson.page.locator(view).first.scroll_into_view_if_needed()
    lesson.wait_for_text(f"{view} >> [role=status]", says(state))
    lesson.wait_for_text(f"{view} >> pre", state.diff)


def _the_panel(lesson: Any) -> None:
    panel = lesson.view(".labkit-HardwarePanel >> nth=0")
    walk = lesson.view(".labkit-ReachView >> nth=0")
    lesson.choose(lesson.control(panel, "machine"), "dsp")
    lesson.page.locator(walk).first.scroll_into_view_if_needed()
    dsp = Hardware.preset("dsp")
    lesson.wait_for_text(f"{walk} >> [role=status]", says(reach.data(outputs=["probe"], looked=11, hardware=dsp)))
    lesson.press(lesson.control(panel, "large (projector)"), "Space")
    canvas = f"{walk} >> canvas"
    narrow = "e => e.getBoundingClientRect().width <= e.parentElement.parentElement.clientWidth"
    lesson.wait_until(lambda: lesson.page.locator(canvas).evaluate(narrow), "the picture fits its column")
    lesson.shot("lesson05-large-reach", show=walk)
    lesson.shot("lesson05-large-timeline", show=lesson.view(".labkit-TimelineView >> nth=0"))
    lesson.press(lesson.control(panel, "large (projector)"), "Space")


def _the_quiz(lesson: Any) -> None:
    """It was revealed by the cell below it, so it is locked."""
    view = lesson.view(".labkit-Quiz")
    lesson.page.locator(view).first.scroll_into_view_if_needed()
    lesson.wait_until(lambda: "4. 7 nodes. d and e go." in lesson.text(f"{view} [role=status]"), "the answers show")
    assert lesson.page.locator(f"{view} input").first.is_disabled()
    lesson.shot("lesson05-quiz", show=view)
