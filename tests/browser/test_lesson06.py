"""Lesson 06 as an instructor shows it: passes, levels, machines and files change, and pictures and words follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import labkit
from labkit import Hardware, networks
from labkit.explore import network
from labkit.explore.panel import HardwareState
from labkit.passes.pipeline import PASSES

pytestmark = pytest.mark.browser

LESSON = Path(__file__).parents[2] / "lessons/06_pipeline.ipynb"


def test_a_pass_switched_off_and_another_machine_change_table_text_and_roofline(
    open_notebook: Callable[[Path], Any],
) -> None:
    lesson = open_notebook(LESSON)
    lesson.run_all()
    view = lesson.view(".labkit-PipelineView")
    status, table, plot = (f"{view} {part}" for part in ("[role=status]", "table", "canvas"))
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


def test_levels_machines_and_files_schedule_a_whole_network_anew(
    open_notebook: Callable[..., Any], tmp_path: Path
) -> None:
    lesson = open_notebook(LESSON, width=1024)
    lesson.run_all()
    view = lesson.view(".labkit-NetworkView >> nth=0")
    twin = network.show(HardwareState())
    lesson.choose(lesson.control(view, "network"), "U-Net with dead heads")
    _shows(lesson, view, twin.set(network="U-Net with dead heads"))
    lesson.choose(lesson.control(view, "level"), "basic")
    _shows(lesson, view, twin.set(level="basic"))
    assert "dead" in lesson.text(f"{view} >> table")
    lesson.shot("lesson06-network", show=view)
    lesson.press(lesson.control(view, "tiles in"), "ArrowRight")
    _shows(lesson, view, twin.set(share=2))
    lesson.choose(lesson.control(view, "buffers"), "double")
    _shows(lesson, view, twin.set(buffers="double"))
    lesson.choose(lesson.control(view, "kernels"), "fused once, tiled anew")
    _shows(lesson, view, twin.set(kernels="fused once, tiled anew"))
    _files(lesson, view, twin, tmp_path)
    lesson.choose(lesson.control(view, "network"), "residual, small")
    lesson.choose(lesson.view(".widget-dropdown:has(.widget-label:text-is('machine')) select"), "dsp")
    dsp = HardwareState(hardware=Hardware.preset("dsp"))
    chosen = {"network": "residual, small", "level": "basic", "share": 2, "buffers": "double"}
    _shows(lesson, view, network.show(dsp, **chosen, kernels="fused once, tiled anew"))
    assert lesson.errors == []


def _files(lesson: Any, view: str, twin: Any, folder: Path) -> None:
    """A real network and garbage through the button, and a path that leads nowhere."""
    status, own = f"{view} >> [role=status]", folder / "mine.onnx"
    labkit.save(networks.residual(blocks=2), own)
    garbage = folder / "garbage.onnx"
    garbage.write_bytes(b"\x00 no model")
    _upload(lesson, view, own)
    _shows(lesson, view, twin.set(path=str(own)))
    picture = lesson.pixels(f"{view} >> canvas >> nth=0")
    _upload(lesson, view, garbage)
    lesson.wait_until(lambda: "garbage.onnx: not an ONNX model" in lesson.text(status), "garbage is a sentence")
    lesson.shot("lesson06-garbage", show=view)
    assert lesson.pixels(f"{view} >> canvas >> nth=0") == picture
    lesson.type(lesson.control(view, "or its path"), "nowhere.onnx")
    lesson.wait_until(lambda: "nowhere.onnx: no such file" in lesson.text(status), "so is a path to nothing")


def _upload(lesson: Any, view: str, file: Path) -> None:
    with lesson.page.expect_file_chooser() as chooser:
        lesson.page.locator(f"{view} >> button:has-text('open .onnx')").first.click()
    chooser.value.set_files(str(file))


def _shows(lesson: Any, view: str, expected: Any) -> None:
    """The view has the words and the bars of this one; its second picture is the roofline."""
    lesson.page.locator(view).first.scroll_into_view_if_needed()  # what is out of sight has no text
    lesson.wait_for_text(f"{view} >> [role=status] >> nth=0", expected.text)
    lesson.wait_for_picture(f"{view} >> canvas >> nth=0", expected.png)
