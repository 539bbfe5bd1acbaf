"""The live guard zoo: controls, and the outputs of both graphs element by element. No arithmetic here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from labkit.explore import guards
from labkit.explore.guards import GuardState
from labkit.explore.live import LiveFigure
from labkit.explore.view import choice
from labkit.graph import Array

_RIGHT, _WRONG = "#0072B2", "#D55E00"


@dataclass(frozen=True)
class _Parts:
    after: Line2D
    apart: Line2D
    verdict: Text


class GuardsView(LiveFigure[GuardState, _Parts]):
    """The zoo with some of the traps."""

    def __init__(self, traps: Sequence[str]) -> None:
        width = ipywidgets.Layout(width="auto")
        controls = {
            "trap": choice("trap", traps, traps[0], "250px"),
            "guard": ipywidgets.Checkbox(value=False, description="guard", indent=False, layout=width),
            "kind": choice("inputs", guards.KINDS, guards.KINDS[0], "200px"),
        }
        super().__init__(self._data, _draw, _move, (9.6, 3.6), controls)

    def _data(self) -> GuardState:
        return guards.data(*(self.controls[name].value for name in ("trap", "guard", "kind")))


def _draw(figure: Figure, state: GuardState) -> _Parts:
    """Frames, and the output of the graph as it was."""
    gap = state.gap(state.kind)
    axes = figure.add_axes((0.08, 0.16, 0.9, 0.6))
    low, high = state.limits
    room = (high - low) * 0.12 or 1.0
    bottom = low - 2 * room  # where NaN is drawn
    last = gap.start + min(guards.MOST_DRAWN, gap.before.size)
    axes.set_xlim(gap.start - 0.7, max(last, gap.start + 6) - 0.3)
    axes.set_ylim(bottom - room, high + room)
    axes.set_xlabel(f"element of output {gap.output}", fontsize=13)
    axes.set_ylabel("value", fontsize=13)
    axes.tick_params(labelsize=12)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _line_for_nan(axes, bottom + room / 2, bottom)
    axes.plot(*_points(gap.before, gap.start, bottom), "o", mfc="none", mec="black", ms=11, mew=1.6, label="as it was")
    (apart,) = axes.plot([], [], color=_WRONG, linewidth=2.5, animated=True)
    (after,) = axes.plot([], [], "x", ms=9, mew=2.4, animated=True)
    figure.text(0.08, 0.8, "○ the graph as it was    × the rewritten graph    line: the difference", fontsize=13)
    verdict = figure.text(0.08, 0.9, "", fontsize=14, weight="bold", animated=True)
    return _Parts(after, apart, verdict)


def _line_for_nan(axes: Axes, border: float, at: float) -> None:
    """Below the numbers, a strip for what is none."""
    axes.axhline(border, color="#888888", linewidth=1, linestyle=":")
    axes.annotate("not finite", (0.99, at), xycoords=("axes fraction", "data"), ha="right", va="center", fontsize=12)


def _points(array: Array, start: int, bottom: float) -> tuple[Array, Array]:
    """Elements by number, those that are not finite at the bottom."""
    values = array.ravel()[start : start + guards.MOST_DRAWN]
    return np.arange(start, start + values.size), np.where(np.isfinite(values), values, bottom)


def _move(parts: _Parts, state: GuardState) -> None:
    gap = state.gap(state.kind)
    low, high = state.limits
    bottom = low - 2 * ((high - low) * 0.12 or 1.0)
    found = _points(np.zeros(0) if gap.after is None else gap.after, gap.start, bottom)
    before = _points(gap.before, gap.start, bottom)
    count = min(found[0].size, before[0].size)
    parts.after.set_data(*found)
    parts.after.set_color(_WRONG if gap.is_wrong else _RIGHT)
    gaps = np.full(count, np.nan)
    ends = np.stack([before[1][:count], found[1][:count], gaps], 1)
    parts.apart.set_data(np.repeat(before[0][:count], 3), ends.ravel())
    guard = "on" if state.guard else "off"
    parts.verdict.set_text(f"{state.trap.guard}, guard {guard}: {'✗ wrong' if gap.is_wrong else '✓ right'}")
