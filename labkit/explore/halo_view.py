"""The live picture of a halo: the input, how often each pixel of it is loaded, and one tile. No arithmetic here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from labkit.explore import halo
from labkit.explore.halo import HaloState
from labkit.explore.live import LiveFigure
from labkit.explore.panel import HardwareState
from labkit.explore.view import choice, slider

# One hue from light to dark, so that it reads without colour too; the steps along both sides say the same once more.
_SHADES = ("#FFFFFF", "#DCE9F5", "#8DBBE0", "#3F80BC", "#0B3C6F")
_TILE = "#D55E00"
_MOST = len(_SHADES) - 1


@dataclass(frozen=True)
class _Parts:
    loads: AxesImage
    window: Rectangle
    rows: Line2D
    columns: Line2D
    borders: Line2D
    tile: Rectangle
    titles: tuple[Text, Text]


class HaloView(LiveFigure[HaloState, _Parts]):
    """The picture on the machine of ``state``."""

    def __init__(self, state: HardwareState) -> None:
        self._panel = state
        controls = {
            "size": choice("image", [(f"{size}×{size}", size) for size in halo.SIZES], 56, "150px"),
            "kernel": choice("kernel", [(f"{k}×{k}", k) for k in halo.KERNELS], 3, "130px"),
            "stride": choice("stride", halo.STRIDES, 1, "110px"),
            "halo": choice("halo", ("reload", "slide"), "reload", "150px"),
            "TP": slider("TP (rows)", 14, 1, 56),
            "TQ": slider("TQ (columns)", 14, 1, 56),
            "number": slider("output tile", 0, 0, 15, "400px"),
        }
        follows = [(state, "hardware"), (state, "dtype")]
        super().__init__(self._data, _draw, _move, (9.6, 5.4), controls, follows)

    def _data(self) -> HaloState:
        chosen: dict[str, Any] = {name: self.controls[name].value for name in ("size", "kernel", "stride", "halo")}
        tile = self.controls["TP"].value, self.controls["TQ"].value
        chosen |= {"tile": tile, "hardware": self._panel.hardware, "dtype": self._panel.dtype}
        first = halo.data(**chosen)
        for name, extent in zip(("TP", "TQ"), first.shape.output_size, strict=True):
            self.controls[name].max = extent
        self.controls["number"].max = first.tiles - 1
        return halo.data(**chosen, number=min(self.controls["number"].value, first.tiles - 1))


def _draw(figure: Figure, state: HaloState) -> _Parts:
    """The frames of input, its two sides and the output."""
    size, (p, q) = state.shape.h, state.shape.output_size
    image = figure.add_axes((0.1, 0.1, 0.405, 0.72), xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5))
    loads = image.imshow(
        np.zeros((size, size)), cmap=ListedColormap(_SHADES), vmin=-0.5, vmax=_MOST + 0.5, animated=True, aspect="auto"
    )
    window = _frame(image)
    above = figure.add_axes((0.1, 0.835, 0.405, 0.075), sharex=image, ylim=(0, _MOST + 0.6))
    beside = figure.add_axes((0.515, 0.1, 0.042, 0.72), sharey=image, xlim=(0, _MOST + 0.6))
    for axes in (above, beside):
        axes.tick_params(labelbottom=False, labelleft=False, bottom=False, left=False)
        axes.spines[["top", "right"]].set_visible(False)
    (columns,) = above.plot([], [], color="black", linewidth=2, drawstyle="steps-mid", animated=True)
    (rows,) = beside.plot([], [], color="black", linewidth=2, animated=True)
    result = figure.add_axes((0.625, 0.1, 0.36, 0.64), xlim=(0, q), ylim=(p, 0))
    (borders,) = result.plot([], [], color="#555555", linewidth=1.2, animated=True)
    tile = _frame(result)
    for axes, name in ((image, "input"), (result, "output")):
        axes.set_xlabel(f"{name} column", fontsize=13)
        axes.set_ylabel(f"{name} row", fontsize=13)
        axes.tick_params(labelsize=12)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    _legend(figure)
    titles = tuple(figure.text(x, 0.93, "", fontsize=13, weight="bold", animated=True) for x in (0.1, 0.625))
    return _Parts(loads, window, rows, columns, borders, tile, (titles[0], titles[1]))


def _legend(figure: Figure) -> None:
    """What the shades mean, above the output."""
    figure.text(0.625, 0.872, "an input pixel is loaded … times", fontsize=12)
    for count, shade in enumerate(_SHADES):
        x = 0.625 + 0.072 * count
        figure.add_artist(Rectangle((x, 0.815), 0.03, 0.036, facecolor=shade, edgecolor="black", linewidth=0.8))
        figure.text(x + 0.035, 0.82, f"{count}{'+' if count == _MOST else ''}", fontsize=12)


def _frame(axes: Axes) -> Rectangle:
    frame = Rectangle((0, 0), 0, 0, fill=False, edgecolor=_TILE, linewidth=3.5, hatch="//", animated=True)
    axes.add_patch(frame)
    return frame


def _move(parts: _Parts, state: HaloState) -> None:
    (rows, columns), (p, q) = state.window, state.output
    parts.loads.set_data(np.minimum(state.loads, _MOST))
    _place(parts.window, rows[0] - 0.5, columns[0] - 0.5, rows[-1] + 0.5, columns[-1] + 0.5)
    _place(parts.tile, p.start, q.start, p.stop, q.stop)
    at = np.arange(state.shape.h)
    parts.columns.set_data(at, np.minimum(state.column_loads, _MOST))
    parts.rows.set_data(np.repeat(np.minimum(state.row_loads, _MOST), 2), np.stack([at - 0.5, at + 0.5], 1).ravel())
    parts.borders.set_data(*_grid(state.tile, state.shape.output_size))
    parts.titles[0].set_text(f"window of {len(rows)}×{len(columns)}")
    parts.titles[1].set_text(f"tile {state.number + 1} of {state.tiles}: {len(p)}×{len(q)}")


def _place(frame: Rectangle, top: float, left: float, bottom: float, right: float) -> None:
    frame.set_bounds(left, top, right - left, bottom - top)


def _grid(tile: tuple[int, int], size: tuple[int, int]) -> tuple[Sequence[float], Sequence[float]]:
    """All borders between tiles as one broken line."""
    gap = float("nan")
    x: list[float] = []
    y: list[float] = []
    for row in range(0, size[0] + 1, tile[0]):
        x, y = [*x, 0, size[1], gap], [*y, row, row, gap]
    for column in range(0, size[1] + 1, tile[1]):
        x, y = [*x, column, column, gap], [*y, 0, size[0], gap]
    return x, y
