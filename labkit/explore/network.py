"""Lesson 06's whole networks: the kernels of one, before and after a level of passes, scheduled for a machine.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from labkit import networks, zoo
from labkit.errors import LabError
from labkit.explore.roofline import Point
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.loops import Buffers
from labkit.onnx_io import load
from labkit.passes.pipeline import LEVELS, optimize
from labkit.passes.report import Report
from labkit.scheduling import Schedule, ScheduledNode, schedule
from labkit.units import MIB, format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from labkit.explore.network_view import NetworkView
    from labkit.explore.panel import HardwareState

NETWORKS: dict[str, Callable[[], Graph]] = {
    "ResNet-50, cluttered": lambda: zoo.cluttered(zoo.resnet50()),
    "MobileNetV2": networks.mobilenet_v2,
    "U-Net with dead heads": networks.unet_with_dead_heads,
    "residual, small": networks.residual,
}
SHARES = (1, 2, 4, 8, 16, 32)
BUFFERS: tuple[Buffers, ...] = ("single", "double")
LIVE_NODES = 400  # the passes of a larger network take longer than a hand on a slider waits


class Bar(NamedTuple):
    """The bytes that one kernel moves."""

    weights: int
    read: int
    written: int

    @property
    def nbytes(self) -> int:
        return self.weights + self.read + self.written


@dataclass(frozen=True)
class NetworkState:
    """A network before and after some passes, each kernel at its best tiles in ``1/share`` of the machine's SRAM."""

    name: str
    report: Report
    hardware: Hardware
    share: int
    buffers: Buffers

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The network as it is, and after each step."""
        return self.report.original, *(step.graph for step in self.report.steps)

    @cached_property
    def schedules(self) -> tuple[Schedule, ...]:
        """One for each graph; SramOverflow when a kernel does not fit."""
        room = replace(self.hardware, sram_bytes=self.hardware.sram_bytes // self.share)
        return tuple(schedule(graph, room, self.buffers) for graph in self.graphs)

    @property
    def ends(self) -> tuple[Schedule, Schedule]:
        """As it is, and optimised."""
        return self.schedules[0], self.schedules[-1]

    @cached_property
    def bars(self) -> tuple[tuple[Bar, ...], tuple[Bar, ...]]:
        """What each kernel moves, in running order: as it is, and optimised."""
        before, after = (
            tuple(_bar(node, graph) for node in found)
            for found, graph in zip(self.ends, (self.report.original, self.report.graph), strict=True)
        )
        return before, after

    @property
    def top_mib(self) -> float:
        """The height of the picture: above the tallest bar, and rounded, so that a slider seldom moves it."""
        most = max((bar.nbytes for bars in self.bars for bar in bars), default=0) / MIB
        unit = 10.0 ** floor(log10(most)) if most else 1.0
        return next(nice * unit for nice in (1, 1.5, 2, 3, 5, 7, 10) if nice * unit >= most)

    @property
    def still(self) -> tuple[object, ...]:
        return (*map(len, self.bars), self.top_mib)

    @property
    def points(self) -> tuple[Point, ...]:
        """Both ends on the roofline."""
        before, after = self.ends
        return ("as it is", before.flops, before.dram_bytes), ("optimised", after.flops, after.dram_bytes)

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """A table: a head, the network as it is, and each step that changed it."""
        head = ("pass", "round", "kernels", "DRAM", "saved", "FLOP", "FLOP/byte", "time")
        names = [("as it is", ""), *((step.name, str(step.round)) for step in self.report.steps)]
        last = [self.schedules[0].dram_bytes, *(found.dram_bytes for found in self.schedules)]
        cells = (_cells(found, old - found.dram_bytes) for found, old in zip(self.schedules, last, strict=False))
        return head, *((*name, *cell) for name, cell in zip(names, cells, strict=True))

    @property
    def table(self) -> str:
        """The rows, a line each."""
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        lines = ([cell.rjust(width) for cell, width in zip(row, widths, strict=True)] for row in self.rows)
        return "\n".join("  ".join([cells[0].strip().ljust(widths[0]), *cells[1:]]) for cells in lines)

    @property
    def sentence(self) -> str:
        """The state in words, a line for each end."""
        before, after = self.ends
        fused_for = self.report.hardware.sram_bytes
        room = f"tiles in 1/{self.share} of " if self.share > 1 else ""
        saved = 1 - after.dram_bytes / before.dram_bytes if before.dram_bytes else 0.0
        lines = [
            f"{self.name}, level {self.report.level}, on {self.hardware.name}: "
            f"{room}{format_bytes(self.hardware.sram_bytes)} of SRAM, {self.buffers} buffers.",
            f"As it is: {_said(before)}.",
            f"Optimised: {_said(after)}; {saved:.1%} of the bytes are gone, "
            f"{before.time_s / after.time_s:.2f} times as fast.",
        ]
        if after.nodes:
            most = max(after, key=lambda node: node.traffic.nbytes)
            lines.append(f"Most bytes: {most.node.label}, {format_bytes(most.traffic.nbytes)}.")
        if fused_for != self.hardware.sram_bytes // self.share:
            lines.append(f"The kernels are those for {format_bytes(fused_for)} of SRAM; only their tiles are new.")
        if assumed := {name for found in self.ends for name in found.assumed}:
            lines.append(f"{len(assumed)} kernels of which labkit knows no loops: each tensor is counted once.")
        return "\n".join(lines)


def _said(found: Schedule) -> str:
    return (
        f"{len(found.nodes)} kernels, {format_bytes(found.dram_bytes)} of DRAM traffic, "
        f"{format_seconds(found.time_s)} with {format_seconds(len(found.nodes) * found.hardware.launch_s)} of launches"
    )


def _cells(found: Schedule, saved: int) -> tuple[str, ...]:
    intensity = found.flops / found.dram_bytes if found.dram_bytes else 0.0
    sign = "−" if saved < 0 else ""
    sizes = format_bytes(found.dram_bytes), sign + format_bytes(abs(saved))
    rest = f"{format_count(found.flops)}FLOP", f"{intensity:.2f}", format_seconds(found.time_s)
    return str(len(found.nodes)), *sizes, *rest


def _bar(found: ScheduledNode, graph: Graph) -> Bar:
    weights = read = 0
    for value, moved, _ in found.moves:
        if found.names[value.name] in graph.constants:
            weights += moved.read_bytes
        else:
            read += moved.read_bytes
    return Bar(weights, read, found.traffic.write_bytes)


@cache
def example(name: str) -> Graph:
    """One of the networks; LabError for a name that is none."""
    if name not in NETWORKS:
        raise LabError(f"no network {name!r}; there are: {'; '.join(NETWORKS)}")
    return NETWORKS[name]()


def opened(name: str, content: bytes) -> Graph:
    """The network in the bytes of an ONNX file. Raises LabError, which calls it ``name``, for anything else."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(content)
        try:
            return load(path)
        except LabError as error:
            raise LabError(str(error).replace(str(path), name)) from None


@lru_cache(maxsize=256)
def _optimised(graph: Graph, level: str, sram_bytes: int, layout: str) -> Report:
    """All of a machine that the passes ask for is its SRAM and its layout."""
    machine = Hardware.preset(Hardware.presets()[0])
    return optimize(graph, level, replace(machine, sram_bytes=sram_bytes, layout=layout))


def data(
    network: str | Graph = "ResNet-50, cluttered",
    level: str = "all",
    hardware: Hardware | None = None,
    share: int = 1,
    buffers: Buffers = "single",
    fused_for: int | None = None,
) -> NetworkState:
    """Optimise a network and schedule every kernel for the machine. ``fused_for`` is the SRAM, in bytes, that kernels
    are formed for: that of the tiles unless given.

    A network of more than LIVE_NODES nodes is fused for the first machine of the presets, whatever the machine.
    Raises LabError for a network, level or kind of buffers that is none, for a share below 1, and SramOverflow for a
    kernel that does not fit.

    >>> state = data("residual, small", "extended")
    >>> [len(found.nodes) for found in state.ends]
    [27, 10]
    """
    machine = hardware or Hardware.preset(Hardware.presets()[0])
    if level not in LEVELS:
        raise LabError(f"no level {level!r}; there are: {', '.join(LEVELS)}")
    if buffers not in BUFFERS:
        raise LabError(f"no buffers {buffers!r}; there are: {', '.join(BUFFERS)}")
    if share < 1:
        raise LabError(f"tiles in 1/{share} of the SRAM: the share must be 1 or more")
    graph, name = (example(network), network) if isinstance(network, str) else (network, network.name)
    if len(graph.nodes) > LIVE_NODES:
        fused_for = Hardware.preset(Hardware.presets()[0]).sram_bytes
    report = _optimised(graph, level, fused_for or machine.sram_bytes // share, machine.layout)
    state = NetworkState(name, report, machine, share, buffers)
    state.schedules  # noqa: B018 - what does not fit is refused here, not while it is drawn
    return state


def show(state: HardwareState | None = None, **settings: Any) -> NetworkView:
    """The live picture on the machine of a panel; ``settings`` are where its controls start."""
    from labkit.explore.network_view import NetworkView
    from labkit.explore.panel import HardwareState

    return NetworkView(HardwareState() if state is None else state).set(**settings)
