"""The live picture of a batch: transfers and arithmetic of one image, over the images at a time. No arithmetic here."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, NullLocator

from labkit.explore import batch
from labkit.explore.batch import BatchState
from labkit.explore.live import LiveFigure
from labkit.explore.panel import HardwareState
from labkit.explore.roofline import format_intensity
from labkit.explore.view import choice, stops
from labkit.units import format_seconds

_MOVED, _COMPUTED, _INTENSITY = "#0072B2", "#D55E00", "#009E73"  # Okabe-Ito; marker and kind of line say it too


@dataclass(frozen=True)
class _Parts:
    marks: tuple[Line2D, Line2D, Line2D]
    words: tuple[Text, Text, Text]


class BatchView(LiveFigure[BatchState, _Parts]):
    """The picture on the machine of ``state``."""

    def __init__(self, state: HardwareState) -> None:
        self._panel = state
        controls = {
            "batch": stops("images at a time", [(f"{b:,}", b) for b in batch.BATCHES], 1, "400px"),
            "width": choice("layer", [(f"{w:,}→{w:,}", w) for w in batch.WIDTHS], 4096, "200px"),
        }
        follows = [(state, "hardware"), (state, "dtype")]
        super().__init__(self._data, _draw, _move, (9.6, 4.7), controls, follows)

    def _data(self) -> BatchState:
        chosen = {name: control.value for name, control in self.controls.items()}
        return batch.data(**chosen, hardware=self._panel.hardware, dtype=self._panel.dtype)


def _draw(figure: Figure, state: BatchState) -> _Parts:
    """Time of one image on the left, intensity under the ridge on the right."""
    time = figure.add_axes((0.1, 0.14, 0.41, 0.66))
    moved = [estimate.memory_s / b for b, estimate in zip(batch.BATCHES, state.curve, strict=True)]
    computed = [estimate.compute_s / b for b, estimate in zip(batch.BATCHES, state.curve, strict=True)]
    time.plot(batch.BATCHES, moved, color=_MOVED, marker="o", linewidth=2.2)
    time.plot(batch.BATCHES, computed, color=_COMPUTED, marker="s", linewidth=2.2, linestyle="--")
    _axes(time, "time of one image")
    time.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: format_seconds(seconds)))
    rise = figure.add_axes((0.615, 0.14, 0.37, 0.66))
    rise.plot(batch.BATCHES, [e.intensity for e in state.curve], color=_INTENSITY, marker="^", linewidth=2.2)
    rise.axhline(state.hardware.ridge, color="#555555", linewidth=1.5, linestyle=":")
    _axes(rise, "FLOP/byte")
    rise.yaxis.set_major_formatter(FuncFormatter(lambda x, _: format_intensity(x)))
    rise.text(
        1, state.hardware.ridge * 1.12, f"ridge {format_intensity(state.hardware.ridge)}", fontsize=12, color="#333333"
    )
    rise.set_ylim(top=2.2 * max(state.hardware.ridge, *(e.intensity for e in state.curve)))
    styles = ((time, _MOVED, "o"), (time, _COMPUTED, "s"), (rise, _INTENSITY, "^"))
    marks = tuple(
        axes.plot([], [], color=c, marker=m, markersize=15, markeredgecolor="black", animated=True)[0]
        for axes, c, m in styles
    )
    places = ((0.1, 0.92, _MOVED), (0.1, 0.85, _COMPUTED), (0.615, 0.92, _INTENSITY))
    words = tuple(figure.text(x, y, "", fontsize=13, weight="bold", color=c, animated=True) for x, y, c in places)
    return _Parts((marks[0], marks[1], marks[2]), (words[0], words[1], words[2]))


def _axes(axes: Axes, label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(batch.BATCHES[::2], [str(b) for b in batch.BATCHES[::2]])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("images at a time", fontsize=13)
    axes.set_ylabel(label, fontsize=13)
    axes.tick_params(labelsize=12)
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def _move(parts: _Parts, state: BatchState) -> None:
    estimate = state.estimate
    moved, computed = estimate.memory_s / state.batch, estimate.compute_s / state.batch
    for mark, value in zip(parts.marks, (moved, computed, estimate.intensity), strict=True):
        mark.set_data([state.batch], [value])
    parts.words[0].set_text(f"● transfers: {format_seconds(moved)}")
    parts.words[1].set_text(f"■ arithmetic: {format_seconds(computed)}")
    parts.words[2].set_text(f"▲ {format_intensity(estimate.intensity)} FLOP/byte, {estimate.limit}-bound")
