"""A notebook open in JupyterLab, as tests use it: controls by label, keys and mouse, texts and pixels to wait for."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

SHOTS = Path(__file__).with_name("shots")
PATIENCE_S = 120  # a busy class laptop or a shared CI machine, not an expectation
PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden)"
IDLE = """() => {
    const panel = window.jupyterapp?.shell.currentWidget;
    return panel?.sessionContext?.session?.kernel?.status === 'idle';
}"""
NARROW = "() => window.jupyterapp.commands.execute('application:toggle-left-area')"
RUN_ALL = "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"
PICTURES = """elements => elements
    .flatMap(e => [e, ...e.querySelectorAll('*')])
    .filter(e => e.tagName === 'CANVAS' || (e.tagName === 'IMG' && e.complete && e.naturalWidth > 16))
    .map(e => {
        const copy = document.createElement('canvas');
        copy.width = e.naturalWidth || e.width;
        copy.height = e.naturalHeight || e.height;
        if (copy.width * copy.height === 0) return '';
        copy.getContext('2d').drawImage(e, 0, 0);
        return copy.toDataURL();
    }).join('|')"""


class NotebookPage:
    """One notebook open in JupyterLab. ``errors`` gathers what the page throws or logs as an error."""

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.errors: list[str] = []
        self.taken_from = float("nan")
        page.set_default_timeout(PATIENCE_S * 1000)
        page.on("pageerror", lambda error: self.errors.append(f"thrown: {error}"))
        page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)
        page.goto(url, wait_until="domcontentloaded")
        page.wait_for_selector(f"{PANEL} .jp-Notebook .jp-CodeCell")
        page.wait_for_function(IDLE)
        page.evaluate(NARROW)  # the notebook has the whole width, as on a projector

    def run_all(self) -> None:
        """Run every cell and wait for the last one; an error in a cell fails the test."""
        self.page.evaluate(RUN_ALL)  # the command's promise ends when the last cell has
        self.page.wait_for_function(IDLE)
        errors = self.page.locator(f"{PANEL} .jp-OutputArea-output[data-mime-type='application/vnd.jupyter.error']")
        assert errors.count() == 0, errors.first.inner_text()

    def view(self, selector: str) -> str:
        """Selector of one live view in this notebook."""
        return f"{PANEL} .jp-OutputArea {selector}"

    def pixels(self, selector: str) -> str:
        """A digest of the pixels of every canvas and image in a view; there must be one."""
        pictures = self.page.locator(selector).evaluate_all(PICTURES)
        assert pictures, f"no picture in {selector}"
        return hashlib.sha256(pictures.encode()).hexdigest()

    def wait_for_picture(self, selector: str, png: bytes) -> None:
        """Wait until an image shows these very pixels."""
        wanted = _rgb(png)

        def shows() -> bool:
            pictures = self.page.locator(selector).evaluate_all(PICTURES)
            return bool(pictures) and np.array_equal(_rgb(base64.b64decode(pictures.split(",", 1)[1])), wanted)

        self.wait_until(shows, f"{selector} shows the picture that labkit draws")

    def wait_for_view(self, view: str, expected: Any) -> None:
        """Wait until a view with a figure has the text and the pixels of this one, made in the test."""
        self.page.locator(view).first.scroll_into_view_if_needed()
        self.wait_for_text(f"{view} >> [role=status]", expected.text)
        self.wait_for_picture(f"{view} >> canvas", expected.png)

    def rests(self, slider: str) -> int:
        """Where the slider stands that the mouse last took elsewhere, once it has stood there for half a second."""
        self.wait_until(lambda: self.value(slider) != self.taken_from, f"{slider} leaves {self.taken_from:g}")
        before = float("nan")
        while before != (now := self.value(slider)):
            before = now
            self.page.wait_for_timeout(500)
        return int(now)

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def value(self, slider: str) -> float:
        """Where a slider stands, as a screen reader is told."""
        return float(self.page.locator(slider).first.get_attribute("aria-valuenow") or "nan")

    def control(self, view: str, label: str) -> str:
        """Selector of the one control of a view that has this label: a slider's handle, a menu, a field, a box."""
        labelled = f":has(> .widget-label:text-is({label!r}))"
        inside = {"slider": "[role=slider]", "dropdown": "select", "text": "input"}
        parts = [f".widget-{kind}{labelled} {part}" for kind, part in inside.items()]
        return f"{view} >> " + ", ".join([*parts, f".widget-checkbox label:has(span:text-is({label!r})) input"])

    def drag(self, slider: str, by_px: int, moves: int = 60) -> None:
        """Take a slider's handle with the mouse, move it fast in many small steps, and let it go."""
        handle = self.page.locator(slider).first
        handle.scroll_into_view_if_needed()
        self.taken_from = self.value(slider)
        box = handle.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        for step in range(1, moves + 1):
            self.page.mouse.move(x + by_px * step / moves, y)
        self.page.mouse.up()

    def choose(self, menu: str, value: str) -> None:
        """Take another line of a menu."""
        self.page.locator(menu).first.select_option(value)

    def type(self, field: str, text: str) -> None:
        """Type into a field and press Enter."""
        self.page.locator(field).first.fill(text)
        self.press(field, "Enter")

    def wait_for_text(self, selector: str, text: str) -> None:
        """Wait until an element says exactly this, spaces and line ends aside."""
        self.wait_until(lambda: self.text(selector).split() == text.split(), f"{selector} says {text[:200]!r}")

    def press(self, selector: str, key: str) -> None:
        """Give one control the keyboard's focus and press a key, as a person without a mouse does."""
        control = self.page.locator(selector).first
        control.scroll_into_view_if_needed()
        control.focus()
        self.page.keyboard.press(key)

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Ask again and again, for as long as a slow machine may take."""
        for _ in range(PATIENCE_S * 10):
            if condition():
                return
            self.page.wait_for_timeout(100)
        self.shot("failed")
        pytest.fail(f"waited {PATIENCE_S} s: {what}; the page logged {self.errors}")

    def shot(self, name: str, show: str | None = None) -> Path:
        """A picture of the page, with the element ``show`` in view."""
        if show is not None:
            self.page.locator(show).first.scroll_into_view_if_needed()
        SHOTS.mkdir(exist_ok=True)
        path = SHOTS / f"{name}.png"
        self.page.screenshot(path=path)
        return path


def _rgb(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
