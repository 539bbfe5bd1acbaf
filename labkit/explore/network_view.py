"""The live network: bars of all kernels before and after, the table of passes, a roofline. No arithmetic here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from labkit.errors import LabError
from labkit.explore import network, roofline
from labkit.explore.live import LiveFigure
from labkit.explore.network import Bar, NetworkState
from labkit.explore.panel import HardwareState
from labkit.explore.turns import in_turn
from labkit.explore.view import choice, field, stops, table
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.onnx_io import load
from labkit.passes.pipeline import LEVELS
from labkit.units import MIB, format_bytes

OWN = "your own"
_ANEW, _ONCE = "fused for this SRAM", "fused once, tiled anew"
_STYLES: dict[str, dict[str, Any]] = {  # Okabe-Ito; a hatch says it too
    "weights": {"facecolor": "#0072B2", "edgecolor": "#003B5C"},
    "activations read": {"facecolor": "#9AD0F0", "edgecolor": "#2A6F94", "hatch": ".."},
    "activations written": {"facecolor": "#E69F00", "edgecolor": "#7A5500", "hatch": "////"},
}


@dataclass(frozen=True)
class _Side:
    """One of the two rows of bars."""

    title: Text
    bars: tuple[PolyCollection, ...]


class NetworkView(LiveFigure[NetworkState, tuple[_Side, _Side]]):
    """A network of the menu, or one from a file, on the machine of ``state``."""

    def __init__(self, state: HardwareState) -> None:
        self._panel = state
        self._own: Graph | LabError = LabError("choose a file with the button, or type the path of an .onnx file")
        tiles = [("all SRAM", 1), *((f"1/{share} SRAM", share) for share in network.SHARES[1:])]
        upload = ipywidgets.FileUpload(accept=".onnx", description="open .onnx", layout={"width": "150px"})
        path = field("or its path", "", "300px")
        upload.observe(self._uploaded, "value")
        path.observe(self._typed, "value")
        controls = {
            "network": choice("network", [*network.NETWORKS, OWN], next(iter(network.NETWORKS)), "270px"),
            "level": choice("level", LEVELS, "all", "160px"),
            "kernels": choice("kernels", (_ANEW, _ONCE), _ANEW, "250px"),
            "share": stops("tiles in", tiles, 1, "300px"),
            "buffers": choice("buffers", network.BUFFERS, "single", "160px"),
            "upload": upload,
            "path": path,
        }
        self._table = ipywidgets.HTML()
        first = network.data(hardware=state.hardware)
        self.plot = roofline.show(first.points, state)
        follows = [(state, "hardware")]
        super().__init__(self._data, _draw, _move, (9.6, 5.6), controls, follows, [self._table, self.plot])

    def _data(self) -> NetworkState:
        chosen = {name: self.controls[name].value for name in ("network", "level", "share", "buffers")}
        if chosen["network"] == OWN:
            if isinstance(self._own, LabError):
                raise self._own
            chosen["network"] = self._own
        once = Hardware.preset(Hardware.presets()[0]).sram_bytes if self.controls["kernels"].value == _ONCE else None
        return network.data(**chosen, hardware=self._panel.hardware, fused_for=once)

    @in_turn
    def refresh(self, change: object = None) -> None:
        """Show the present state: the bars, and below them the table and the roofline."""
        super().refresh(change)
        if self.state is not None:
            self._table.value = table(self.state.rows)
            self.plot.points = self.state.points

    @in_turn
    def _uploaded(self, change: Any) -> None:
        if change["new"]:
            file = change["new"][-1]
            self._take(lambda: network.opened(file["name"], bytes(file["content"])))

    @in_turn
    def _typed(self, change: Any) -> None:
        if change["new"].strip():
            self._take(lambda: load(change["new"].strip()))

    def _take(self, read: Callable[[], Graph]) -> None:
        """Open a file now, once, and turn the menu to it; what goes wrong is said by the view."""
        try:
            self._own = read()
        except LabError as error:
            self._own = error
        except Exception as error:  # a file can be wrong in ways that nobody thought of
            self._own = LabError(f"this file cannot be opened: {type(error).__name__}: {error}")
        self.controls["network"].value = OWN


def _draw(figure: Figure, state: NetworkState) -> tuple[_Side, _Side]:
    """Two rows of bars on one scale: as it is above, optimised below."""
    sides = [
        _side(figure, bottom, len(bars), state.top_mib) for bottom, bars in zip((0.575, 0.105), state.bars, strict=True)
    ]
    figure.legend(
        handles=[Patch(label=name, **style) for name, style in _STYLES.items()],
        loc="upper right",
        bbox_to_anchor=(0.99, 1.0),
        ncols=3,
        frameon=False,
        fontsize=12,
    )
    return sides[0], sides[1]


def _side(figure: Figure, bottom: float, count: int, top_mib: float) -> _Side:
    axes = figure.add_axes((0.085, bottom, 0.9, 0.31), xlim=(0, max(1, count)), ylim=(0, top_mib))
    axes.set_ylabel("MiB", fontsize=13)
    axes.set_xlabel("kernels in running order", fontsize=12, labelpad=1)
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(labelsize=12)
    axes.spines[["top", "right"]].set_visible(False)
    title = axes.text(0, 1.06, "", fontsize=13, weight="bold", transform=axes.transAxes, animated=True)
    return _Side(title, tuple(_pile(axes, style) for style in _STYLES.values()))


def _pile(axes: Axes, style: dict[str, Any]) -> PolyCollection:
    pile = PolyCollection([], linewidth=0.4, animated=True, **style)
    axes.add_collection(pile, autolim=False)
    return pile


def _move(parts: tuple[_Side, _Side], state: NetworkState) -> None:
    for side, bars, found, said in zip(parts, state.bars, state.ends, ("as it is", "optimised"), strict=True):
        side.title.set_text(f"{said}: {len(bars)} kernels, {format_bytes(found.dram_bytes)}")
        for level, pile in enumerate(side.bars):
            pile.set_verts([_box(place, bar, level) for place, bar in enumerate(bars)])


def _box(place: int, bar: Bar, level: int) -> Sequence[tuple[float, float]]:
    """The corners of one part of a bar, on those below it."""
    low, high = sum(bar[:level]) / MIB, sum(bar[: level + 1]) / MIB
    return [(place + 0.1, low), (place + 0.9, low), (place + 0.9, high), (place + 0.1, high)]
