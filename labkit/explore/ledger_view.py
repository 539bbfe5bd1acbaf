"""The live ledger: bars of bytes by tensor, and the time of each version. No arithmetic here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from labkit.explore import ledger
from labkit.explore.ledger import LedgerState
from labkit.explore.live import LiveFigure
from labkit.explore.panel import HardwareState
from labkit.explore.view import choice, stops
from labkit.units import KIB, format_bytes, format_seconds

_READ: dict[str, Any] = {"facecolor": "#0072B2", "edgecolor": "black"}  # Okabe-Ito; a hatch says it too
_WRITE: dict[str, Any] = {"facecolor": "#E69F00", "edgecolor": "black", "hatch": "//"}
_WORK: dict[str, Any] = {"facecolor": "#56B4E9", "edgecolor": "black"}
_LAUNCH: dict[str, Any] = {"facecolor": "#D55E00", "edgecolor": "black", "hatch": "xx"}
_THICK = 0.62


@dataclass(frozen=True)
class _Parts:
    tensors: dict[str, tuple[Rectangle, Rectangle, Text]]
    versions: dict[str, tuple[Rectangle, Rectangle, Text, Text]]
    counters: tuple[Text, Text]


class LedgerView(LiveFigure[LedgerState, _Parts]):
    """The picture on the machine of ``state``."""

    def __init__(self, state: HardwareState) -> None:
        self._panel = state
        controls = {
            "version": stops("version", [*ledger.VERSIONS], "apart", "300px"),
            "block": choice("block", ledger.BLOCKS, ledger.BLOCKS[0], "220px"),
            "channels": choice("channels", ledger.CHANNELS, 64, "150px"),
            "size": stops("image", [(f"{size}×{size}", size) for size in ledger.SIZES], 56, "268px"),
        }
        super().__init__(self._data, _draw, _move, (9.6, 4.9), controls, [(state, "hardware")])

    def _data(self) -> LedgerState:
        return ledger.data(
            **{name: control.value for name, control in self.controls.items()}, hardware=self._panel.hardware
        )


def _draw(figure: Figure, state: LedgerState) -> _Parts:
    """Rows for the tensors on the left, for the versions on the right."""
    names = list(state.nbytes)
    most = max(traffic.nbytes for traffic in state.versions["apart"].moved.values())
    axes = figure.add_axes((0.1, 0.13, 0.44, 0.72), xlim=(0, most * 1.3 / KIB), ylim=(len(names) - 0.4, -0.6))
    axes.set_yticks(range(len(names)), names, fontsize=13)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("KiB between DRAM and chip", fontsize=13)
    axes.tick_params(labelsize=12)
    axes.tick_params(axis="y", length=0, labelsize=13)
    axes.spines[["top", "right"]].set_visible(False)
    tensors = {name: (*_pair(axes, _READ, _WRITE), _words(axes)) for name in names}
    right = figure.add_axes((0.6, 0.13, 0.38, 0.42), xlim=(0, 1.0), ylim=(3.7, -0.75))
    right.axis("off")
    right.set_title("time of each version", fontsize=13, loc="left", weight="bold")
    versions = {v: (*_pair(right, _WORK, _LAUNCH), _words(right), _words(right)) for v in ledger.VERSIONS}
    figure.legend(
        handles=[Patch(label="read", **_READ), Patch(label="written", **_WRITE)],
        loc="upper left",
        bbox_to_anchor=(0.09, 0.985),
        ncols=2,
        frameon=False,
        fontsize=12,
    )
    figure.legend(
        handles=[Patch(label="transfers or arithmetic", **_WORK), Patch(label="launches", **_LAUNCH)],
        loc="lower left",
        bbox_to_anchor=(0.585, 0.005),
        ncols=2,
        frameon=False,
        fontsize=12,
        columnspacing=1.0,
        handletextpad=0.5,
    )
    counters = tuple(figure.text(0.6, y, "", fontsize=17, weight="bold", animated=True) for y in (0.84, 0.74))
    return _Parts(tensors, versions, (counters[0], counters[1]))


def _pair(axes: Axes, *styles: dict[str, Any]) -> tuple[Rectangle, Rectangle]:
    one, two = (Rectangle((0, 0), 0, 0, linewidth=0.8, animated=True, **style) for style in styles)
    for bar in (one, two):
        axes.add_patch(bar)
    return one, two


def _words(axes: Axes) -> Text:
    return axes.text(0, 0, "", fontsize=12, va="center", animated=True)


def _move(parts: _Parts, state: LedgerState) -> None:
    for row, (name, traffic) in enumerate(state.moved.items()):
        read, written, words = parts.tensors[name]
        _place(read, 0, row, traffic.read_bytes / KIB)
        _place(written, traffic.read_bytes / KIB, row, traffic.write_bytes / KIB)
        words.set_text(f" {format_bytes(traffic.nbytes)}" if traffic.nbytes else " never in DRAM")
        words.set_position((traffic.nbytes / KIB, row))
    whole = max(one.work_s + one.launch_s for one in state.versions.values())
    for row, (version, one) in enumerate(state.versions.items()):
        work, launch, words, title = parts.versions[version]
        unit = 0.72 / whole
        _place(work, 0, row + 0.18, one.work_s * unit, 0.4)
        _place(launch, one.work_s * unit, row + 0.18, one.launch_s * unit, 0.4)
        words.set_text(f" {format_seconds(one.work_s + one.launch_s)}")
        words.set_position(((one.work_s + one.launch_s) * unit, row + 0.18))
        title.set_text(f"{'▶ ' if version == state.version else ''}{version}")
        title.set_fontweight("bold" if version == state.version else "normal")
        title.set_position((0, row - 0.27))
    parts.counters[0].set_text(f"{format_bytes(state.ledger.traffic.nbytes)} of DRAM traffic")
    parts.counters[1].set_text(f"{state.launches} {'launch' if state.launches == 1 else 'launches'}")


def _place(bar: Rectangle, left: float, row: float, width: float, height: float = _THICK) -> None:
    bar.set_bounds(left, row - height / 2, width, height)
