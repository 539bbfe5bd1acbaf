"""A private JupyterLab and a headless Chromium, and what tests do with a notebook in them.

The server listens on 127.0.0.1 only, keeps configuration, data and run-time files in a folder of its own, and ends with
the tests. Screenshots go to ``tests/browser/shots`` (not in git).
"""

from __future__ import annotations

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

import pytest

from tests.browser.notebook_page import PATIENCE_S, NotebookPage

CLOSE = "() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync"]
CHROMIUM_FLAGS += ["--disable-background-networking", "--disable-component-update"]
NO_NEWS = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}


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
        "ServerApp.jpserver_extensions": "{'labkit.explore.server': True}",  # as `make lab`
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
