"""The live plot of lesson 02: the best tile for every SRAM, the bound, and one's own tile. No arithmetic here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from labkit.explore import tiling
from labkit.explore.live import LiveFigure
from labkit.explore.nest_controls import nest_controls, read_nest
from labkit.explore.panel import HardwareState
from labkit.explore.tiling import LEAST_SRAM, MOST_SRAM, Memory, TilingState
from labkit.explore.view import choice
from labkit.units import format_bytes

# Okabe and Ito's palette: told apart by all eyes, and each line has a style of its own.
_BEST, _OWN, _ROOM = "#0072B2", "#D55E00", "#555555"


@dataclass(frozen=True)
class _Parts:
    own: Line2D
    mark: Line2D
    label: Text
    room: Line2D
    room_label: Text


class TilingView(LiveFigure[TilingState, _Parts]):
    """The plot on the machine of ``state``: its SRAM, its lines, its element type and its ridge."""

    def __init__(self, state: HardwareState) -> None:
        self._panel = state
        controls = {**nest_controls(), "memory": choice("memory", get_args(Memory), "scratchpad", "180px")}
        super().__init__(
            self._data, _draw, _move, (9.6, 5.6), controls, follows=[(state, "hardware"), (state, "dtype")]
        )

    def _data(self) -> TilingState:
        memory = self.controls["memory"].value
        for name in ("c_policy", "buffers"):
            self.controls[name].disabled = memory != "scratchpad"
        chosen: dict[str, Any] = read_nest(self.controls)
        return tiling.data(**chosen, memory=memory, hardware=self._panel.hardware, dtype=self._panel.dtype)


def _draw(figure: Figure, state: TilingState) -> _Parts:
    """Axes, the best tiles, the bound and the floor; a tile of one's own that has no place yet."""
    axes = figure.add_axes((0.125, 0.235, 0.855, 0.695), xscale="log", yscale="log")
    floor, worst = state.nest.problem.compulsory_bytes, state.worst_bytes
    axes.set(xlim=(LEAST_SRAM, MOST_SRAM), ylim=(floor / 2, worst * 1.6))
    ticks = [4**i * LEAST_SRAM for i in range(10)]
    axes.set_xticks(ticks, [format_bytes(tick) for tick in ticks], fontsize=12)
    levels = [4**i * (1 << (floor.bit_length() - 1)) for i in range(20) if 4**i * floor < 2 * worst]
    axes.set_yticks(levels, [format_bytes(level) for level in levels], fontsize=12)
    axes.minorticks_off()
    axes.grid(True, color="#DDDDDD", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("SRAM", fontsize=13)
    axes.set_ylabel("DRAM bytes moved", fontsize=13)
    best = [(point.sram_bytes, point.dram_bytes) for point in state.slope.points]
    x, y = zip(*best, (MOST_SRAM, best[-1][1]), strict=True)
    axes.step(x, y, where="post", color=_BEST, linewidth=2.5, label="best tile for this SRAM (scratchpad)")
    axes.plot(*state.bound, color="black", linewidth=1.8, linestyle="--", label="proven: no schedule moves less")
    axes.axhline(floor, color="#777777", linewidth=1.2, linestyle=":", label="every input once, the output once")
    (own,) = axes.plot(
        [], [], color=_OWN, linewidth=2.2, linestyle="-.", drawstyle="steps-post", animated=True, zorder=4
    )
    axes.plot([], [], color=_OWN, linewidth=2.2, linestyle="-.", marker="*", markersize=13, label="your tile")
    (mark,) = axes.plot([], [], marker="*", markersize=21, color=_OWN, markeredgecolor="white", animated=True, zorder=6)
    label = axes.text(0, 0, "", fontsize=13, weight="bold", color=_OWN, animated=True, zorder=6)
    label.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1})
    (room,) = axes.plot([], [], color=_ROOM, linewidth=1.5, linestyle=(0, (1, 1)), animated=True, zorder=3)
    room_label = axes.text(0, 0, "", fontsize=12, color="#333333", ha="center", va="bottom", animated=True)
    figure.legend(loc="lower center", ncols=2, fontsize=12, frameon=False)
    return _Parts(own, mark, label, room, room_label)


def _move(parts: _Parts, state: TilingState) -> None:
    (x, y), sram = state.point, state.sram_bytes
    bottom, top = parts.room.axes.get_ylim()  # type: ignore[union-attr]
    parts.own.set_data(*state.own)
    parts.mark.set_data([x], [y])
    parts.mark.set_marker("*" if state.traffic else "X")
    words = f"{format_bytes(y)}" if state.traffic else f"needs {format_bytes(x)}: does not fit"
    parts.label.set_text(f" {words} ")
    is_right = x > 2**21
    parts.label.set_horizontalalignment("right" if is_right else "left")
    parts.label.set_position((x / 1.25 if is_right else x * 1.25, y * 1.12))
    parts.room.set_data([sram, sram], [bottom, top])
    parts.room_label.set_text(f"SRAM {format_bytes(sram)}")
    parts.room_label.set_position((sram, top * 1.1))
