"""The live picture of machines side by side: roofs, and what share of its peak each reaches. No arithmetic here."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from labkit.explore import machines
from labkit.explore.live import LiveFigure
from labkit.explore.machines import MachinesState
from labkit.explore.panel import HardwareState
from labkit.explore.view import choice, stops
from labkit.units import format_seconds

# Okabe-Ito; the marker and the kind of line say it too.
_STYLES = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#000000", "*", "-"),
)
_LEAST_PERCENT = 0.01


@dataclass(frozen=True)
class _Parts:
    marks: tuple[Line2D, ...]
    bars: tuple[Rectangle, ...]
    words: tuple[Text, ...]
    title: Text


class MachinesView(LiveFigure[MachinesState, _Parts]):
    """The picture of the presets, and of the machine of ``state`` when it is another."""

    def __init__(self, state: HardwareState) -> None:
        self._panel = state
        first, *_ = machines.KERNELS
        controls = {
            "kernel": choice("kernel", machines.KERNELS, first, "300px"),
            "n": stops("n", [(f"{n:,}", n) for n in machines.SIZES], 1024, "400px"),
        }
        super().__init__(self._data, _draw, _move, (9.6, 4.9), controls, [(state, "hardware")])

    def _data(self) -> MachinesState:
        chosen = {name: control.value for name, control in self.controls.items()}
        return machines.data(**chosen, hardware=self._panel.hardware)


def _draw(figure: Figure, state: MachinesState) -> _Parts:
    """A roof for each machine on the left, a row for each on the right."""
    roofs = figure.add_axes((0.085, 0.13, 0.46, 0.74), xscale="log", yscale="log")
    roofs.set(xlim=state.limits, ylim=(_LEAST_PERCENT, 250))
    roofs.set_xlabel("arithmetic intensity, FLOP/byte", fontsize=13)
    roofs.set_ylabel("% of the machine's own peak", fontsize=13)
    roofs.set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    roofs.tick_params(labelsize=12)
    roofs.grid(True, which="major", color="#DDDDDD", linewidth=0.8)
    roofs.spines[["top", "right"]].set_visible(False)
    rows = figure.add_axes((0.6, 0.09, 0.385, 0.78), xlim=(0, 1), ylim=(len(state.machines) - 0.35, -0.6))
    rows.axis("off")
    left, right = state.limits
    marks, bars, words = [], [], []
    for row, (machine, (colour, marker, line)) in enumerate(zip(state.machines, _STYLES, strict=False)):
        roof = [100 * left / machine.ridge, 100, 100]
        roofs.plot([left, machine.ridge, right], roof, color=colour, linestyle=line, linewidth=2.2)
        (mark,) = roofs.plot([], [], color=colour, marker=marker, markersize=14, markeredgecolor="white", animated=True)
        marks.append(mark)
        rows.plot([0.025], [row - 0.35], color=colour, marker=marker, markersize=11)
        rows.text(
            0.07, row - 0.35, f"{machine.name}, ridge {machine.ridge:.3g}", fontsize=13, weight="bold", va="center"
        )
        rows.add_patch(Rectangle((0, row - 0.12), 1, 0.18, facecolor="#F0F0F0", edgecolor="black", linewidth=0.8))
        bars.append(Rectangle((0, row - 0.12), 0, 0.18, facecolor=colour, animated=True))
        rows.add_patch(bars[-1])
        words.append(rows.text(0, row + 0.26, "", fontsize=12, va="center", animated=True))
    title = figure.text(0.085, 0.92, "", fontsize=13, weight="bold", animated=True)
    figure.text(0.6, 0.92, "share of the peak that is reached", fontsize=13, weight="bold")
    return _Parts(tuple(marks), tuple(bars), tuple(words), title)


def _move(parts: _Parts, state: MachinesState) -> None:
    parts.title.set_text(f"{state.kernel}, n = {state.n:,}")
    rows = zip(parts.marks, parts.bars, parts.words, state.estimates, state.shares, strict=True)
    for mark, bar, words, estimate, share in rows:
        mark.set_data([estimate.intensity], [max(100 * share, _LEAST_PERCENT)])
        bar.set_width(share)
        words.set_text(f"{100 * share:.3g} %, {format_seconds(estimate.seconds)}, {estimate.limit}-bound")
