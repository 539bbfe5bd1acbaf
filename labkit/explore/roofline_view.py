"""The live roofline plot: still axes, and a roof, points and labels that move. No arithmetic here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from labkit.explore import roofline
from labkit.explore.live import LiveFigure
from labkit.explore.panel import HardwareState
from labkit.explore.roofline import Point, RooflineState, format_intensity
from labkit.units import format_rate

# Okabe and Ito's palette ("Color universal design", 2008), its yellow darkened so that it shows on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C7A00", "#000000")
_MARKERS = "os^DvPX*"
_LANE, _BADGE_RADIUS = 0.93, 0.035  # height of the row of badges, in heights of the axes
_NAME_LENGTH = 23


@dataclass(frozen=True)
class _PointParts:
    mark: Line2D
    leader: Line2D
    foot: tuple[float, float]
    rate: Text


@dataclass(frozen=True)
class _Parts:
    roof: Line2D
    ridge: Line2D
    ridge_text: Text
    machine: Text
    points: tuple[_PointParts, ...]


class RooflineView(LiveFigure[RooflineState, _Parts]):
    """The plot of ``points`` on the hardware of ``state``; set ``points`` to show others."""

    def __init__(self, points: Sequence[Point], state: HardwareState) -> None:
        self._points, self._panel = tuple(points), state
        super().__init__(self._data, _draw, _move, follows=[(state, "hardware")])

    @property
    def points(self) -> tuple[Point, ...]:
        return self._points

    @points.setter
    def points(self, points: Sequence[Point]) -> None:
        if tuple(points) != self._points:
            self._points = tuple(points)
            self.refresh()

    def _data(self) -> RooflineState:
        return roofline.data(self._points, self._panel.hardware)


def _draw(figure: Figure, state: RooflineState) -> _Parts:
    """Axes, list of points and badges; a roof and marks that have no place yet."""
    axes = figure.add_axes((0.085, 0.135, 0.545, 0.775), xscale="log", yscale="log")
    axes.set(xlim=state.intensity_limits, ylim=state.rate_limits)
    axes.set_xlabel("arithmetic intensity, FLOP/byte", fontsize=13)
    axes.set_ylabel("attainable FLOP/s", fontsize=13)
    axes.tick_params(labelsize=12)
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    (roof,) = axes.plot([], [], color="black", linewidth=2.5, animated=True, zorder=3)
    (ridge,) = axes.plot([], [], color="#555555", linewidth=1.2, linestyle="--", animated=True, zorder=2)
    ridge_text = axes.text(0, 0, "", fontsize=12, color="#333333", va="bottom", animated=True)
    machine = figure.text(0.085, 0.945, "", fontsize=13, weight="bold", animated=True)
    points = tuple(_draw_point(figure, axes, i, state) for i in range(len(state.points)))
    return _Parts(roof, ridge, ridge_text, machine, points)


def _draw_point(figure: Figure, axes: Axes, i: int, state: RooflineState) -> _PointParts:
    """A row of the list, and a numbered badge above the roof that a thin line ties to the mark."""
    point, colour = state.points[i], _COLOURS[i]
    style: dict[str, Any] = {"color": colour, "marker": _MARKERS[i], "linestyle": "none"}
    style |= {"markeredgecolor": "white", "markeredgewidth": 1.0}
    (left, right), (bottom, top) = state.intensity_limits, state.rate_limits
    x = left * (right / left) ** state.badges[i]
    badge, foot = ((x, bottom * (top / bottom) ** height) for height in (_LANE, _LANE - _BADGE_RADIUS))
    # Later marks are smaller: where two fall on one place, the rim of the first still shows.
    (mark,) = axes.plot([], [], animated=True, zorder=5, markersize=15 - i / 2, **style)
    (leader,) = axes.plot([], [], color=colour, linewidth=1.0, animated=True, zorder=2.5)
    axes.plot(*badge, marker="o", markersize=19, color=colour)
    axes.text(*badge, str(i + 1), fontsize=13, weight="bold", color="white", ha="center", va="center_baseline")
    row = 0.865 - 0.102 * i
    figure.add_artist(Line2D([0.66], [row + 0.012], transform=figure.transFigure, markersize=11, **style))
    name = point.label if len(point.label) <= _NAME_LENGTH else point.label[: _NAME_LENGTH - 1] + "…"
    figure.text(0.682, row, f"{i + 1}  {name}", fontsize=13, weight="bold")
    intensity = f"{format_intensity(point.estimate.intensity)} FLOP/byte"
    figure.text(0.682, row - 0.042, intensity, fontsize=11.5, color="#333333")
    rate = figure.text(0.845, row - 0.042, "", fontsize=11.5, color="#333333", animated=True)
    return _PointParts(mark, leader, foot, rate)


def _move(parts: _Parts, state: RooflineState) -> None:
    hardware = state.hardware
    (left, right), (bottom, _) = state.intensity_limits, state.rate_limits
    ridge, peak = hardware.ridge, hardware.peak_flops_per_s
    parts.roof.set_data([left, ridge, right], [left * hardware.dram_bytes_per_s, peak, peak])
    parts.ridge.set_data([ridge, ridge], [bottom, peak])
    parts.ridge_text.set_horizontalalignment("right" if ridge**4 > left * right**3 else "left")
    parts.ridge_text.set_text(f" ridge {format_intensity(ridge)} ")
    parts.ridge_text.set_position((ridge, bottom * 1.15))
    parts.machine.set_text(
        f"{hardware.name}: peak {format_rate(peak, 'FLOP/s')}, DRAM {format_rate(hardware.dram_bytes_per_s, 'B/s')}"
    )
    for part, point in zip(parts.points, state.points, strict=True):
        x, y = point.estimate.intensity, point.estimate.attainable_flops_per_s
        part.mark.set_data([x], [y])
        part.leader.set_data([x, part.foot[0]], [y, part.foot[1]])
        part.rate.set_text(format_rate(y, "FLOP/s"))
