"""The live picture of a depth-first pair: what each tile saves and adds, and the windows of one. No arithmetic here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from labkit.explore import depth
from labkit.explore.depth import DepthState
from labkit.explore.live import LiveFigure
from labkit.explore.panel import HardwareState
from labkit.explore.view import choice, slider
from labkit.units import KIB, format_bytes

_SAVED, _ADDED, _ROOM = "#0072B2", "#D55E00", "#555555"
# Image, tensor between, result: from light to dark, each with a frame and a hatch of its own.
_WINDOWS = (("#CFE8F7", "#0072B2", ".."), ("#F6D9A8", "#D55E00", "//"), ("#009E73", "#000000", ""))
_NAMES = ("of the image", "of the tensor between", "of the result")
_LOWEST, _MOST_PERCENT = -0.2, 160  # a tile of one element would squeeze all others


@dataclass(frozen=True)
class _Parts:
    axes: tuple[Axes, Axes]
    marks: tuple[Line2D, Line2D]
    words: tuple[Text, Text]
    room: Line2D
    room_label: Text
    windows: tuple[Rectangle, ...]
    sizes: tuple[Text, ...]


class DepthView(LiveFigure[DepthState, _Parts]):
    """The picture on the machine of ``state``."""

    def __init__(self, state: HardwareState) -> None:
        self._panel = state
        controls = {
            "tile": slider("tile (rows)", 14, 1, 56, "400px"),
            "form": choice(
                "tiles are", [("square", "square"), ("strips of the whole width", "strip")], "square", "260px"
            ),
            "size": choice("image", [(f"{size}×{size}", size) for size in depth.SIZES], 56, "150px"),
            "channels": choice("channels", depth.CHANNELS, 64, "150px"),
            "kernel": choice("kernel", [(f"{k}×{k}", k) for k in depth.KERNELS], 3, "130px"),
        }
        super().__init__(self._data, _draw, _move, (9.6, 4.9), controls, [(state, "hardware")])

    def _data(self) -> DepthState:
        chosen = {name: control.value for name, control in self.controls.items()}
        chosen["tile"] = min(chosen["tile"], chosen["size"])
        self.controls["tile"].max = chosen["size"]
        return depth.data(**chosen, hardware=self._panel.hardware)


def _draw(figure: Figure, state: DepthState) -> _Parts:
    """Both curves over one axis of tiles, and a frame for the windows."""
    tiles = np.arange(1, state.shape.h + 1)
    saved = figure.add_axes((0.095, 0.13, 0.44, 0.72), xlim=(0, state.shape.h + 1))
    added = saved.twinx()
    saved.plot(tiles, [one.saved_bytes / KIB for one in state.curve], color=_SAVED, linewidth=2.5)
    added.plot(
        tiles, [_percent(state, one.extra_flops) for one in state.curve], color=_ADDED, linewidth=2.5, linestyle="--"
    )
    top = max(one.saved_bytes for one in state.curve) / KIB
    saved.set_ylim(_LOWEST * top, 1.25 * top)
    added.set_ylim(_LOWEST * _MOST_PERCENT, 1.25 * _MOST_PERCENT)
    saved.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    saved.axhline(0, color="#999999", linewidth=1)
    saved.set_xlabel("rows of a tile", fontsize=13)
    saved.set_ylabel("— KiB saved", fontsize=13, color=_SAVED)
    added.set_ylabel("- - arithmetic added, %", fontsize=13, color=_ADDED)
    for axes in (saved, added):
        axes.tick_params(labelsize=12)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines["top"].set_visible(False)
    (room,) = saved.plot([], [], color=_ROOM, linewidth=1.5, linestyle=":", animated=True)
    label = saved.text(0, 1.2 * top, "", fontsize=12, color=_ROOM, va="center", animated=True)
    marks = _mark(saved, _SAVED, "o"), _mark(added, _ADDED, "s")
    words = tuple(
        figure.text(x, 0.91, "", fontsize=13, weight="bold", color=c, animated=True)
        for x, c in ((0.095, _SAVED), (0.32, _ADDED))
    )
    windows, sizes = _draw_windows(figure, state)
    return _Parts((saved, added), marks, (words[0], words[1]), room, label, windows, sizes)


def _draw_windows(figure: Figure, state: DepthState) -> tuple[tuple[Rectangle, ...], tuple[Text, ...]]:
    size = state.shape.h
    plane = figure.add_axes((0.705, 0.13, 0.275, 0.539), xlim=(0, size), ylim=(size, 0))
    plane.tick_params(labelsize=12)
    plane.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    plane.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    plane.set_xlabel("column", fontsize=13)
    plane.set_ylabel("row", fontsize=13)
    figure.text(0.65, 0.91, "a tile in the middle takes", fontsize=13, weight="bold")
    windows: list[Rectangle] = []
    sizes: list[Text] = []
    for line, (face, edge, hatch) in enumerate(_WINDOWS):
        style: dict[str, Any] = {"facecolor": face, "edgecolor": edge, "hatch": hatch, "linewidth": 1.5}
        windows.append(Rectangle((0, 0), 0, 0, animated=True, **style))
        plane.add_patch(windows[-1])
        y = 0.855 - 0.052 * line
        figure.add_artist(Rectangle((0.652, y - 0.008), 0.026, 0.036, **style))
        sizes.append(figure.text(0.69, y, "", fontsize=12, animated=True))
    return tuple(windows), tuple(sizes)


def _mark(axes: Axes, colour: str, marker: str) -> Line2D:
    (mark,) = axes.plot(
        [], [], color=colour, marker=marker, markersize=13, markeredgecolor="white", animated=True, clip_on=False
    )
    return mark


def _percent(state: DepthState, flops: int) -> float:
    return 100 * flops / state.base_flops


def _move(parts: _Parts, state: DepthState) -> None:
    saved, added = state.gain.saved_bytes / KIB, _percent(state, state.gain.extra_flops)
    for mark, axes, value in zip(parts.marks, parts.axes, (saved, added), strict=True):
        low, high = axes.get_ylim()
        mark.set_data([state.tile], [min(max(value, low), high)])  # at the edge when it is beyond
    moved = format_bytes(abs(state.gain.saved_bytes))
    parts.words[0].set_text(f"● {moved} {'saved' if saved >= 0 else 'more'}")
    parts.words[1].set_text(f"■ {added:.1f} % added")
    parts.room.set_data([state.largest] * 2, parts.axes[0].get_ylim())
    late = state.largest > state.shape.h / 2
    parts.room_label.set_text(f" largest that fits: {state.largest} " if state.largest else " none fits")
    parts.room_label.set_horizontalalignment("right" if late else "left")
    parts.room_label.set_x(state.largest)
    for rectangle, text, window, name in zip(parts.windows, parts.sizes, state.windows, _NAMES, strict=True):
        rectangle.set_bounds(window.left, window.top, window.columns, window.rows)
        text.set_text(f"{window.rows}×{window.columns} {name}")
