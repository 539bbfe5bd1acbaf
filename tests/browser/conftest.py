"""A private JupyterLab and a headless Chromium, and what tests do with a notebook in them.

The server listens on 127.0.0.1 only, keeps configuration, data and run-time files in a folder of its own, and ends with
the tests. Screenshots go to ``tests/browser/shots`` (not in git).
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

SHOTS = Path(__file__).with_name("shots")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync"]
CHROMIUM_FLAGS += ["--disable-background-networking", "--disable-component-update"]
NO_NEWS = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
PATIENCE_S = 120  # a busy class laptop or a shared CI machine, not an expectation

PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden)"
IDLE = """() => {
    const panel = window.jupyterapp?.shell.currentWidget;
    return panel?.sessionContext?.session?.kernel?.status === 'idle';
}"""
NARROW = "() => window.jupyterapp.commands.execute('application:toggle-left-area')"
RUN_ALL = "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"
CLOSE = "() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()"
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


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium; without one the tests are skipped, but fail where CI is set."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        message = "no Chromium found: apt-get install chromium chromium-driver"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=CHROMIUM_FLAGS, headless=True)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A running JupyterLab: its address, and the folder it serves. It starts only where there is a browser."""
    private, served = tmp_path_factory.mktemp("jupyter"), tmp_path_factory.mktemp("served")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = private / "server.log"
    with log.open("w") as out:
        server = subprocess.Popen(
            _command(port, served), stdout=out, stderr=subprocess.STDOUT, env=_environment(private), cwd=served
        )
        try:
            _wait_for(server, f"http://127.0.0.1:{port}/api/status", log)
            yield f"http://127.0.0.1:{port}", served
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _command(port: int, served: Path) -> list[str]:
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": served,
        "IdentityProvider.token": "",
        "LabApp.expose_app_in_browser": True,
    }
    flags = ["--no-browser", *(["--allow-root"] if hasattr(os, "getuid") and os.getuid() == 0 else [])]
    return [sys.executable, "-m", "jupyterlab", *flags, *(f"--{name}={value}" for name, value in options.items())]


def _environment(private: Path) -> dict[str, str]:
    settings = private / "config/labconfig"
    settings.mkdir(parents=True)
    news = {"@jupyterlab/apputils-extension:notification": NO_NEWS}
    (settings / "default_setting_overrides.json").write_text(json.dumps(news))
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    return dict(os.environ, **{name: str(private / folder) for name, folder in folders.items()})


def _wait_for(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    for _ in range(PATIENCE_S * 5):
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=5).read()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"JupyterLab did not answer: {log.read_text()[-2000:]}")


@pytest.fixture
def open_notebook(chromium: Any, lab: tuple[str, Path]) -> Iterator[Callable[..., NotebookPage]]:
    """Open a copy of a notebook in its own browser context; its kernel ends with the test.

    One that lies in the served folder already is opened as it is.
    """
    address, served = lab
    opened: list[NotebookPage] = []

    def open_(notebook: Path, width: int = 1400) -> NotebookPage:
        if notebook.parent != served:
            shutil.copy(notebook, served)
        page = chromium.new_context(viewport={"width": width, "height": 1000}).new_page()
        opened.append(NotebookPage(page, f"{address}/lab/workspaces/{notebook.stem}/tree/{notebook.name}?reset"))
        return opened[-1]

    yield open_
    for notebook in opened:
        notebook.page.evaluate(CLOSE)
        notebook.page.context.close()
