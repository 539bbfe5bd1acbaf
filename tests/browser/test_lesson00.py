"""Lesson 00 as a student meets it: every explorer by keyboard and mouse, at the width of an old projector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labkit import Hardware
from labkit.explore import batch, machines
from labkit.explore.panel import HardwareState

pytestmark = pytest.mark.browser

LESSON = Path(__file__).parents[2] / "lessons/00_memory_wall.ipynb"


def test_every_explorer_of_lesson_00_follows_keyboard_and_mouse(open_notebook: Callable[..., Any]) -> None:
    lesson = open_notebook(LESSON, width=1024)
    lesson.run_all()
    state = HardwareState()
    side, images = machines.show(state, kernel="product n×n×n, best tile"), batch.show(state, batch=16)
    _the_machines(lesson, side)
    _the_batch(lesson, images)
    _the_panel(lesson, state, side, images)
    assert lesson.errors == []


def _same(lesson: Any, view: str, expected: Any) -> None:
    """The page shows the text and the pixels of this view."""
    lesson.page.locator(view).first.scroll_into_view_if_needed()
    lesson.wait_for_text(f"{view} >> [role=status]", expected.text)
    lesson.wait_for_picture(f"{view} >> canvas", expected.png)


def _the_machines(lesson: Any, twin: Any) -> None:
    view = lesson.view(".labkit-MachinesView >> nth=0")
    _same(lesson, view, twin)
    size = lesson.control(view, "n")
    lesson.press(size, "ArrowLeft")
    _same(lesson, view, twin.set(n=512))
    lesson.drag(size, by_px=-80)
    at = lesson.rests(size)
    assert at < machines.SIZES.index(512), "the mouse moves n"
    _same(lesson, view, twin.set(n=machines.SIZES[at]))
    for kernel in machines.KERNELS:
        lesson.choose(lesson.control(view, "kernel"), kernel)
        _same(lesson, view, twin.set(kernel=kernel))
    lesson.shot("lesson00-machines", show=view)


def _the_batch(lesson: Any, twin: Any) -> None:
    view = lesson.view(".labkit-BatchView >> nth=0")
    _same(lesson, view, twin)
    size = lesson.control(view, "images at a time")
    lesson.press(size, "ArrowRight")
    _same(lesson, view, twin.set(batch=32))
    lesson.drag(size, by_px=60)
    at = lesson.rests(size)
    assert at > batch.BATCHES.index(32), "the mouse moves the batch"
    _same(lesson, view, twin.set(batch=batch.BATCHES[at]))
    lesson.choose(lesson.control(view, "layer"), "1,024→1,024")
    _same(lesson, view, twin.set(width=1024))
    lesson.shot("lesson00-batch", show=view)


def _the_panel(lesson: Any, state: HardwareState, side: Any, images: Any) -> None:
    machine, roof = lesson.view(".labkit-HardwarePanel >> nth=0"), lesson.view(".labkit-RooflineView >> nth=0")
    lesson.page.locator(machine).scroll_into_view_if_needed()
    lesson.choose(lesson.control(machine, "machine"), "dsp")
    state.hardware = Hardware.preset("dsp")
    for view, twin in ((".labkit-MachinesView >> nth=0", side), (".labkit-BatchView >> nth=0", images)):
        _same(lesson, lesson.view(view), twin)
    lesson.page.locator(roof).scroll_into_view_if_needed()
    lesson.wait_until(lambda: "ridge 15 FLOP/byte" in lesson.text(f"{roof} >> [role=status]"), "the roof of the DSP")
    lesson.shot("lesson00-roof", show=roof)
    lesson.page.locator(machine).scroll_into_view_if_needed()
    lesson.press(lesson.control(machine, "launch"), "ArrowRight")
    lesson.wait_until(lambda: "custom" in lesson.text(f"{machine} >> [role=status]"), "a machine of its own")
    view = lesson.view(".labkit-MachinesView >> nth=0")
    lesson.page.locator(view).scroll_into_view_if_needed()
    lesson.wait_until(lambda: "custom: ridge 15" in lesson.text(f"{view} >> [role=status]"), "it joins the picture")
    lesson.shot("lesson00-custom", show=view)
    lesson.page.locator(machine).scroll_into_view_if_needed()
    lesson.press(lesson.control(machine, "large (projector)"), "Space")
    for name, large in (("machines", view), ("batch", lesson.view(".labkit-BatchView >> nth=0"))):
        lesson.page.locator(large).scroll_into_view_if_needed()
        image = lesson.page.locator(f"{large} >> canvas")
        lesson.wait_until(lambda i=image: i.evaluate("e => e.width") == 1440, "the picture is large")
        lesson.shot(f"lesson00-large-{name}", show=large)
    lesson.page.locator(machine).scroll_into_view_if_needed()
    lesson.press(lesson.control(machine, "large (projector)"), "Space")
