"""The live picture of bloat: bytes of the file beside bytes an inference moves. No arithmetic here."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, NullLocator

from labkit.explore import bloat
from labkit.explore.bloat import BloatState
from labkit.explore.live import LiveFigure
from labkit.explore.panel import HardwareState
from labkit.explore.view import choice, slider
from labkit.units import KIB, MIB, format_bytes

_LOOK = {0: ("#BBBBBB", ""), 1: ("#D55E00", "xx"), 2: ("#56B4E9", "//"), 3: ("#009E73", "..")}
_LOW, _HIGH = 64, 64 * MIB


@dataclass(frozen=True)
class _Parts:
    bars: tuple[tuple[Rectangle, ...], tuple[Rectangle, ...]]
    numbers: tuple[tuple[Text, ...], tuple[Text, ...]]


class BloatView(LiveFigure[BloatState, _Parts]):
    """The bars on the machine of ``state``."""

    def __init__(self, state: HardwareState) -> None:
        self._panel = state
        controls = {
            "form": choice("constant", bloat.FORMS, next(iter(bloat.FORMS)), "250px"),
            "side": slider("side of x", bloat.LARGEST, 1, bloat.LARGEST, "360px"),
            "limit_kib": choice("limit", [(f"{kib} KiB", kib) for kib in bloat.LIMITS_KIB], 64, "150px"),
        }
        super().__init__(self._data, _draw, _move, (9.6, 3.4), controls, [(state, "hardware")])

    def _data(self) -> BloatState:
        form, side, limit_kib = (self.controls[name].value for name in ("form", "side", "limit_kib"))
        return bloat.data(form, side, limit_kib, self._panel.hardware)


def _draw(figure: Figure, _state: BloatState) -> _Parts:
    """Two frames with a place for each version, the first one on top."""
    file = figure.add_axes((0.15, 0.16, 0.4, 0.72))
    dram = figure.add_axes((0.58, 0.16, 0.4, 0.72))
    for axes, title in ((file, "bytes of the file"), (dram, "bytes of DRAM traffic, each inference")):
        _frame(axes, title)
    file.set_yticks(range(len(bloat.VERSIONS)), bloat.VERSIONS, fontsize=12)
    dram.set_yticks(range(len(bloat.VERSIONS)), [""] * len(bloat.VERSIONS))
    return _Parts((_bars(file), _bars(dram)), (_numbers(file), _numbers(dram)))


def _frame(axes: Axes, title: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xlim(_LOW, _HIGH * 8)
    axes.set_ylim(len(bloat.VERSIONS) - 0.4, -0.6)
    axes.set_xticks([KIB // 4, 4 * KIB, 64 * KIB, MIB, 16 * MIB])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda nbytes, _: format_bytes(int(nbytes))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=12)
    axes.set_title(title, fontsize=13)


def _bars(axes: Axes) -> tuple[Rectangle, ...]:
    bars = []
    for place in range(len(bloat.VERSIONS)):
        colour, hatch = _LOOK[place]
        bar = Rectangle((_LOW, place - 0.35), 0, 0.7, facecolor=colour, edgecolor="black", hatch=hatch, animated=True)
        axes.add_patch(bar)
        bars.append(bar)
    return tuple(bars)


def _numbers(axes: Axes) -> tuple[Text, ...]:
    places = range(len(bloat.VERSIONS))
    return tuple(axes.text(_LOW, place, "", fontsize=12, va="center", animated=True) for place in places)


def _move(parts: _Parts, state: BloatState) -> None:
    for place, (_, file_bytes, dram_bytes, _, _) in enumerate(state.measured):
        for side, nbytes in enumerate((file_bytes, dram_bytes)):
            parts.bars[side][place].set_width(max(0, nbytes - _LOW))
            number = parts.numbers[side][place]
            number.set_text(f" {format_bytes(nbytes)}")
            number.set_x(max(_LOW, nbytes))
