"""Lesson 02 as a student meets it: every explorer by keyboard and mouse, at the width of an old projector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labkit import Hardware
from labkit.explore import halo, tiling, walk
from labkit.explore.panel import HardwareState

pytestmark = pytest.mark.browser

LESSON = Path(__file__).parents[2] / "lessons/02_tiling.ipynb"
NPU = Hardware.preset("edge-npu")


def says(state: Any) -> str:
    """What a list of facts looks like as text."""
    return " ".join(word for fact in state.facts for word in fact)


def test_every_explorer_of_lesson_02_follows_keyboard_and_mouse(open_notebook: Callable[..., Any]) -> None:
    lesson = open_notebook(LESSON, width=1024)
    lesson.run_all()
    _the_plot(lesson)
    _the_walk(lesson)
    _the_halo(lesson)
    _the_twin(lesson)
    _the_panel(lesson)
    _the_quiz(lesson)
    assert lesson.errors == []


def _the_plot(lesson: Any) -> None:
    view = lesson.view(".labkit-TilingView >> nth=0")
    twin = tiling.show(TM=342, TN=342, TK=1, square=False)  # what the page must show, drawn here
    lesson.wait_for_view(view, twin)
    lesson.press(lesson.control(view, "TK"), "ArrowRight")
    lesson.wait_for_view(view, twin.set(TK=2))
    tm = lesson.control(view, "TM")
    lesson.drag(tm, by_px=-30)
    lesson.wait_until(lambda: lesson.value(tm) < 342, "the mouse moves TM")
    lesson.wait_for_view(view, twin.set(TM=lesson.rests(tm)))
    lesson.shot("lesson02-plot", show=view)
    lesson.type(lesson.control(view, "m,n,k"), "-5")
    lesson.wait_until(lambda: "Cannot show this: matmul: m is -5" in lesson.text(f"{view} >> [role=status]"), "why")
    lesson.type(lesson.control(view, "m,n,k"), "1024")
    lesson.wait_for_view(view, twin)


def _the_walk(lesson: Any) -> None:
    view = lesson.view(".labkit-WalkView >> nth=0")
    status, picture = f"{view} >> [role=status]", f"{view} >> canvas"
    step = lesson.control(view, "step")
    lesson.press(step, "ArrowRight")
    lesson.wait_for_text(status, says(walk.data(order="mkn", step=10)))
    lesson.shot("lesson02-walk", show=view)
    before = lesson.pixels(picture)
    lesson.drag(step, by_px=120)
    lesson.wait_until(lambda: lesson.value(step) > 10, "the mouse moves the step")
    lesson.wait_for_text(status, says(walk.data(order="mkn", step=lesson.rests(step))))
    lesson.wait_until(lambda: lesson.pixels(picture) != before, "another tile is marked")
    before = lesson.pixels(picture)
    lesson.choose(lesson.control(view, "order"), "nkm")
    nest = walk.data(order="nkm").nest
    lesson.wait_for_text(f"{view} >> pre", str(nest))
    lesson.wait_until(lambda: lesson.pixels(picture) != before, "the walk takes another order")


def _the_halo(lesson: Any) -> None:
    view = lesson.view(".labkit-HaloView >> nth=0")
    twin = halo.show(TP=28, TQ=7, halo="slide", number=5)
    lesson.wait_for_view(view, twin)
    lesson.press(lesson.control(view, "output tile"), "ArrowRight")
    lesson.wait_for_view(view, twin.set(number=6))
    lesson.choose(lesson.control(view, "halo"), "reload")
    rows = lesson.control(view, "TP (rows)")
    lesson.drag(rows, by_px=-40)
    lesson.wait_until(lambda: lesson.value(rows) < 28, "the mouse moves TP")
    lesson.wait_for_view(view, twin.set(halo="reload", TP=lesson.rests(rows)))
    lesson.shot("lesson02-halo", show=view)


def _the_twin(lesson: Any) -> None:
    view = lesson.view(".labkit-TilingView >> nth=1")
    small = replace(NPU, name="custom", sram_bytes=32 * 1024)
    twin = tiling.show(HardwareState(hardware=small), shape="256", TM=64)
    for memory in ("lru", "scratchpad", "opt", "lru"):
        lesson.choose(lesson.control(view, "memory"), memory)
        lesson.wait_for_view(view, twin.set(memory=memory))
    lesson.shot("lesson02-twin", show=view)


def _the_panel(lesson: Any) -> None:
    panel = lesson.view(".labkit-HardwarePanel >> nth=0")
    plot = lesson.view(".labkit-TilingView >> nth=0")
    before = lesson.text(f"{plot} >> [role=status]")
    lesson.press(lesson.control(panel, "SRAM"), "ArrowLeft")
    lesson.wait_until(lambda: "SRAM 448 KiB" in lesson.text(f"{panel} >> [role=status]"), "the panel says 448 KiB")
    lesson.wait_until(lambda: lesson.text(f"{plot} >> [role=status]") != before, "the plot follows")
    lesson.shot("lesson02-panel", show=panel)
    lesson.press(lesson.control(panel, "large (projector)"), "Space")
    image = f"{plot} >> canvas"
    wide = "e => e.width"
    lesson.wait_until(lambda: lesson.page.locator(image).evaluate(wide) == 1440, "the picture is large")
    lesson.shot("lesson02-large-plot", show=plot)
    lesson.shot("lesson02-large-walk", show=lesson.view(".labkit-WalkView >> nth=0"))
    lesson.press(lesson.control(panel, "large (projector)"), "Space")


def _the_quiz(lesson: Any) -> None:
    """It was revealed by the cell below it, so it is locked."""
    view = lesson.view(".labkit-Quiz")
    lesson.page.locator(view).first.scroll_into_view_if_needed()
    lesson.wait_until(lambda: "1. 209. 3·T²·2 bytes." in lesson.text(f"{view} [role=status]"), "the answers show")
    assert lesson.page.locator(f"{view} input").first.is_disabled()
    lesson.shot("lesson02-quiz", show=view)
