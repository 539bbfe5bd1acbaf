"""Lesson 03 as a student meets it: every explorer by keyboard and mouse, at the width of an old projector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labkit.explore import depth, grouping, ledger

pytestmark = pytest.mark.browser

LESSON = Path(__file__).parents[2] / "lessons/03_fusion.ipynb"


def look_at(lesson: Any, view: str) -> None:
    """The text of what is off the page is not laid out."""
    lesson.page.locator(view).first.scroll_into_view_if_needed()


def says(state: Any) -> str:
    """What a list of facts looks like as text."""
    return " ".join(word for fact in state.facts for word in fact)


def test_every_explorer_of_lesson_03_follows_keyboard_and_mouse(open_notebook: Callable[..., Any]) -> None:
    lesson = open_notebook(LESSON, width=1024)
    lesson.run_all()
    _the_ledger(lesson)
    _the_kernels(lesson)
    _depth_first(lesson)
    _the_panel(lesson)
    assert lesson.errors == []


def _same(lesson: Any, view: str, expected: Any) -> None:
    """The page shows the text and the pixels of this view."""
    look_at(lesson, view)
    lesson.wait_for_text(f"{view} >> [role=status]", expected.text)
    lesson.wait_for_picture(f"{view} >> canvas", expected.png)


def _the_ledger(lesson: Any) -> None:
    view = lesson.view(".labkit-LedgerView >> nth=0")
    twin = ledger.show(block="Conv BN Add ReLU", version="fused")  # what the page must show, drawn here
    _same(lesson, view, twin)
    lesson.shot("lesson03-ledger-fused", show=view)
    version = lesson.control(view, "version")
    lesson.press(version, "ArrowLeft")
    _same(lesson, view, twin.set(version="folded"))
    lesson.choose(lesson.control(view, "block"), "Conv BN ReLU")
    lesson.choose(lesson.control(view, "channels"), "16")
    image = lesson.control(view, "image")
    lesson.drag(image, by_px=-50)
    at = lesson.rests(image)
    assert at < ledger.SIZES.index(56), "the mouse moves the image"
    _same(lesson, view, twin.set(block="Conv BN ReLU", size=ledger.SIZES[at], channels=16))
    lesson.shot("lesson03-ledger", show=view)


def _the_kernels(lesson: Any) -> None:
    view = lesson.view(".labkit-GroupingView >> nth=0")
    status, picture, code = f"{view} >> [role=status]", f"{view} >> canvas", f"{view} >> pre"
    look_at(lesson, view)
    lesson.wait_for_text(status, says(grouping.data("residual block", "best", 32)))
    lesson.shot("lesson03-residual", show=view)
    sram = lesson.control(view, "SRAM")
    before = lesson.pixels(picture)
    lesson.press(sram, "ArrowRight")
    lesson.wait_for_text(status, says(grouping.data("residual block", "best", 40)))
    lesson.wait_for_text(code, grouping.data("residual block", "best", 40).why)
    lesson.wait_until(lambda: lesson.pixels(picture) != before, "two kernels instead of three")
    lesson.drag(sram, by_px=-60)
    at = lesson.rests(sram)
    assert at < grouping.SRAM_KIB.index(40), "the mouse moves the SRAM"
    lesson.wait_for_text(status, says(grouping.data("residual block", "best", grouping.SRAM_KIB[at])))
    lesson.choose(lesson.control(view, "fuse"), "all: all that may be one kernel")
    lesson.wait_for_text(status, says(grouping.data("residual block", "all", grouping.SRAM_KIB[at])))
    for name in ("residual block, projected", "squeeze and excite", "diamond with a turn", "product and four sums"):
        before = lesson.pixels(picture)
        lesson.choose(lesson.control(view, "graph"), name)
        lesson.wait_for_text(code, grouping.data(name, "all", grouping.SRAM_KIB[at]).why)
        lesson.wait_until(lambda seen=before: lesson.pixels(picture) != seen, "another graph")
        lesson.shot(f"lesson03-{name.split()[-1]}", show=view)


def _depth_first(lesson: Any) -> None:
    view = lesson.view(".labkit-DepthView >> nth=0")
    twin = depth.show(form="strip", tile=5)
    _same(lesson, view, twin)
    tile = lesson.control(view, "tile (rows)")
    lesson.press(tile, "ArrowRight")
    _same(lesson, view, twin.set(tile=6))
    lesson.choose(lesson.control(view, "tiles are"), "square")
    lesson.drag(tile, by_px=60)
    lesson.wait_until(lambda: lesson.value(tile) > 6, "the mouse moves the tile")
    _same(lesson, view, twin.set(form="square", tile=lesson.rests(tile)))
    lesson.shot("lesson03-depth", show=view)


def _the_panel(lesson: Any) -> None:
    machine = lesson.view(".labkit-HardwarePanel >> nth=0")
    plot, graph = lesson.view(".labkit-LedgerView >> nth=0"), lesson.view(".labkit-GroupingView >> nth=0")
    deep = lesson.view(".labkit-DepthView >> nth=0")
    before = {}
    for view in (plot, graph, deep):
        look_at(lesson, view)
        before[view] = lesson.text(f"{view} >> [role=status]")
    look_at(lesson, machine)
    lesson.choose(lesson.control(machine, "machine"), "dsp")
    for view, text in before.items():
        look_at(lesson, view)
        lesson.wait_until(lambda v=view, t=text: lesson.text(f"{v} >> [role=status]") != t, f"{view} follows")
    lesson.press(lesson.control(machine, "large (projector)"), "Space")
    lesson.wait_until(
        lambda: lesson.page.locator(f"{plot} >> canvas").evaluate("e => e.width") == 1440, "the picture is large"
    )
    for name, view in (("ledger", plot), ("kernels", graph), ("depth", deep)):
        look_at(lesson, view)
        lesson.pixels(f"{view} >> canvas")
        lesson.page.wait_for_timeout(1000)  # for the notebook to lay out what was off the page
        lesson.shot(f"lesson03-large-{name}", show=view)
    lesson.press(lesson.control(machine, "large (projector)"), "Space")
