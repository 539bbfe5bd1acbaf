"""Milliseconds from a key on a slider to another picture in the browser: labkit's views beside `ipywidgets.interact`.

All run in one JupyterLab in a headless Chromium, a few keys each in turn, not counting the first, which wakes a page
that comes to the front; `interact` and the live figure draw the same plot. Before every frame the pixels of the
picture are read: the first that differ end the step. What is painted between two pictures is seen in a screencast only
(an image that loads anew keeps its old pixels on the screen, but not for scripts). Goals: labkit at least 8 times as
fast by the median, its 95th percentile at most a quarter of interact's median, no painted frame without its picture.
"""

from __future__ import annotations

import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))  # for the server of the browser tests
from tests.browser.conftest import CHROMIUM, CHROMIUM_FLAGS, _command, _environment, _wait_for

ROUNDS, KEYS, WARM = 4, 10, 3
GOAL_TIMES, GOAL_P95_SHARE = 8, 1 / 4
PATIENCE_MS = 120_000

PLOT = """
import numpy as np
rows, columns = np.indices((64, 64))
x = np.logspace(-2, 3, 200)

def drawn(figure, **moves):
    left, right = figure.subplots(1, 2)
    image = left.imshow(np.zeros((64, 64)), vmin=0, vmax=8, **moves)
    right.loglog(x, np.minimum(1e12, x * 1e11))
    (point,) = right.loglog([1], [1e11], "ro", **moves)
    return image, left.text(0, -2, "", **moves), point

def moved(parts, tile):
    image, title, point = parts
    image.set_data(np.where((rows < tile) & (columns < tile), 1 + (rows * 64 + columns) // 16 % 7, 0))
    title.set_text(f"T = {tile}, {tile / 4:.2f} FLOP/byte")
    point.set_data([tile / 4], [min(1e12, tile / 4 * 1e11)])
"""
INTERACT = """
%matplotlib inline
import matplotlib.pyplot as plt, ipywidgets

def view(tile):
    moved(drawn(plt.figure(figsize=(6, 3.2), dpi=100)), tile)
    plt.show()

ipywidgets.interact(view, tile=ipywidgets.IntSlider(value=1, min=1, max=64));
"""
LIVE = """
from dataclasses import dataclass
from labkit.explore.live import LiveFigure
from labkit.explore.view import slider

@dataclass(frozen=True)
class State:
    tile: int
    still = ()

    @property
    def sentence(self):
        return f"T = {self.tile}"

tile = slider("tile", 1, 1, 64)
LiveFigure(
    lambda: State(tile.value), lambda figure, state: drawn(figure, animated=True),
    lambda parts, state: moved(parts, state.tile), (6, 3.2), {"tile": tile},
)
"""
STRIP = """
from labkit.explore import layouts
layouts.show((2, 16, 8, 8), "NHWC")
"""
# Each view: the cells of its notebook, and the label of the slider that is moved.
VIEWS = {
    "interact, inline plot": ((PLOT, INTERACT), "tile"),
    "labkit, live figure": ((PLOT, LIVE), "tile"),
    "labkit, memory strip": ((STRIP,), "run"),
}

IDLE = "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
RUN_ALL = "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"
WATCH = """() => {
  const watch = window.watch = { frames: [], key: 0, on: false };
  const copy = document.createElement('canvas');
  const g = copy.getContext('2d', { willReadFrequently: true });
  const large = e => (e.naturalWidth || e.width) > 50;
  const digest = watch.digest = () => {
    const e = [...document.querySelectorAll('.jp-Cell-outputArea :is(canvas, img)')].filter(large).pop();
    if (!e) return null;
    copy.width = e.naturalWidth || e.width;
    copy.height = e.naturalHeight || e.height;
    g.drawImage(e, 0, 0);
    const pixels = new Uint32Array(g.getImageData(0, 0, copy.width, copy.height).data.buffer);
    if (!(pixels[0] >>> 24)) return null; // transparent: nothing was painted
    let sum = 7;
    for (const pixel of pixels) {
      sum = (Math.imul(sum, 31) + pixel) | 0;
    }
    return sum;
  };
  document.addEventListener('keydown', () => { watch.key = performance.now(); }, true);
  const tick = () => { // reading pixels takes time from the other pages, too: only where a key is awaited
    if (watch.on) watch.frames.push([performance.now(), digest()]);
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}"""
START = "() => { window.watch.frames = []; window.watch.on = true; return window.watch.digest(); }"
CHANGED = "before => window.watch.frames.some(([at, sum]) => at > window.watch.key && sum !== null && sum !== before)"
RESULT = """before => {
  const { frames, key } = window.watch;
  window.watch.on = false;
  return frames.find(([at, sum]) => at > key && sum !== null && sum !== before)[0] - key;
}"""
PICTURES = ".jp-Cell-outputArea :is(canvas, img)"


class View(NamedTuple):
    """A view's milliseconds for each key, and its painted frames: all, and those without the picture."""

    times: list[float]
    painted: int
    blank: int


@contextmanager
def jupyter(folder: Path) -> Iterator[str]:
    """The address of a JupyterLab that serves the folder."""
    private = folder / ".private"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    private.mkdir()
    log = private / "server.log"
    with log.open("w") as out:
        environment = _environment(private)
        server = subprocess.Popen(_command(port, folder), stdout=out, stderr=out, env=environment, cwd=folder)
        try:
            _wait_for(server, f"http://127.0.0.1:{port}/api/status", log)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(30)


def opened(browser: Any, address: str, folder: Path, number: int, cells: tuple[str, ...]) -> Any:
    """A page with a notebook of these cells, all run."""
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    code = [nbformat.v4.new_code_cell(cell.strip()) for cell in cells]
    book = nbformat.v4.new_notebook(cells=code, metadata=kernel)
    nbformat.write(book, folder / f"view{number}.ipynb")
    page = browser.new_context(viewport={"width": 1400, "height": 1000}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{address}/lab/workspaces/view{number}/tree/view{number}.ipynb?reset", wait_until="domcontentloaded")
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    page.wait_for_function(IDLE)
    page.evaluate(RUN_ALL)
    page.wait_for_function(IDLE)
    page.wait_for_selector(".widget-slider [role=slider]")
    page.evaluate(WATCH)
    return page


def pressed(page: Any, label: str) -> float:
    """Milliseconds that one key on the slider takes."""
    page.locator(f".widget-slider:has(.widget-label:text-is('{label}')) [role=slider]").first.focus()
    before = page.evaluate(START)
    page.keyboard.press("ArrowRight")
    page.wait_for_function(CHANGED, arg=before, polling="raf")
    return float(page.evaluate(RESULT, before))


def painted(page: Any, label: str) -> tuple[int, int]:
    """Frames of a screencast of some keys: all, and those with one colour where the picture belongs."""
    box = page.locator(PICTURES).last.bounding_box()
    area = box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]
    frames: list[str] = []
    client = page.context.new_cdp_session(page)

    def keep(frame: Any) -> None:
        frames.append(frame["data"])
        client.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})

    client.on("Page.screencastFrame", keep)
    client.send("Page.startScreencast", {"format": "png", "everyNthFrame": 1})
    for _ in range(KEYS):
        pressed(page, label)
    page.wait_for_timeout(500)
    client.send("Page.stopScreencast")
    pictures = (Image.open(BytesIO(b64decode(frame))).convert("RGB").crop(area) for frame in frames)
    return len(frames), sum(all(low == high for low, high in picture.getextrema()) for picture in pictures)


def measure() -> dict[str, View]:
    """Each view, in turn."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None:
        sys.exit("no Chromium found: apt-get install chromium chromium-driver")
    times: dict[str, list[float]] = {name: [] for name in VIEWS}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = stack.enter_context(jupyter(folder))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS, headless=True)
        pages = {
            name: opened(browser, address, folder, number, cells)
            for number, (name, (cells, _)) in enumerate(VIEWS.items())
        }
        for turn in range(ROUNDS + 1):  # the first is to warm up
            for name, page in pages.items():
                page.bring_to_front()
                _, *found = [pressed(page, VIEWS[name][1]) for _ in range(1 + (KEYS if turn else WARM))]
                times[name] += found if turn else []
        frames = {}
        for name, page in pages.items():
            page.bring_to_front()
            frames[name] = painted(page, VIEWS[name][1])
        browser.close()
    return {name: View(sorted(times[name]), *frames[name]) for name in VIEWS}


def main() -> int:
    """Print the table; exit 1 when a goal is missed."""
    views = measure()
    print(f"{f'key → picture, ms, {ROUNDS * KEYS} keys':<30} {'median':>8} {'p95':>8} {'faster':>8}   painted, blank")
    slow, *own = views
    interact = statistics.median(views[slow].times)
    missed = []
    for name, view in views.items():
        median, p95 = statistics.median(view.times), view.times[round(0.95 * (len(view.times) - 1))]
        print(f"{name:<30} {median:8.1f} {p95:8.1f} {interact / median:7.1f}× {view.painted:10}, {view.blank}")
        if name in own:
            missed += [f"{name}: less than {GOAL_TIMES} times as fast"] * (median * GOAL_TIMES > interact)
            missed += [f"{name}: p95 above {GOAL_P95_SHARE} of interact's median"] * (p95 > GOAL_P95_SHARE * interact)
            missed += [f"{name}: frames without a picture"] * (view.blank > 0 or not view.painted)
    print("\n".join(missed) or "all goals met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
