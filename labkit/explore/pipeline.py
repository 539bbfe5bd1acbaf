"""The pipeline explorer: passes switched on and off over one network, what each step saved, and the roofline of it all.

``data`` is everything shown as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labkit.errors import LabError
from labkit.explore.roofline import LARGEST, Point
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.passes.pipeline import PASSES, optimize
from labkit.passes.report import Report

if TYPE_CHECKING:
    from labkit.explore.panel import HardwareState
    from labkit.explore.pipeline_view import PipelineView


@dataclass(frozen=True)
class PipelineState:
    """An optimisation with chosen passes, costed for a machine."""

    passes: tuple[str, ...]
    report: Report

    @property
    def points(self) -> tuple[Point, ...]:
        """The original network and each step that moved it on the roofline, with FLOPs and DRAM bytes.

        Where there are more than a plot holds, the last ones are kept: the fixed point has to be seen.
        """
        labels = ("original", *(f"{step.name}, round {step.round}" for step in self.report.steps))
        moved: list[Point] = []
        for label, cost in zip(labels, self.report.costs, strict=True):
            if not moved or (cost.flops, cost.dram_bytes) != moved[-1][1:]:
                moved.append((label, cost.flops, cost.dram_bytes))
        return (moved[0], *moved[1:][-(LARGEST - 1) :])

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The table of the report: a head, the original, and a row for each step."""
        return self.report.rows()

    @property
    def sentence(self) -> str:
        """The result in words."""
        before, after = self.report.costs[0], self.report.costs[-1]
        chosen = ", ".join(self.passes) or "none"
        saved = before.dram_bytes - after.dram_bytes
        return (
            f"Passes: {chosen}. {len(before.nodes)} nodes became {len(after.nodes)}; "
            f"{saved / before.dram_bytes:.1%} of the DRAM bytes are gone; "
            f"intensity {before.intensity:.2f} → {after.intensity:.2f} FLOP/byte; "
            f"{before.time_s / after.time_s:.2f} times as fast on {after.hardware.name}."
        )


def data(graph: Graph, passes: Sequence[str], hardware: Hardware) -> PipelineState:
    """Optimise ``graph`` with these passes, in the pipeline's order, until nothing changes.

    Raises LabError for a pass that is none.
    """
    if unknown := set(passes) - PASSES.keys():
        raise LabError(f"no pass {min(unknown)!r}; there are: {', '.join(PASSES)}")
    chosen = tuple(name for name in PASSES if name in passes)
    return PipelineState(chosen, optimize(graph, hardware=hardware, passes=chosen))


def show(graph: Graph, state: HardwareState | None = None) -> PipelineView:
    """The live view: a switch for each pass, the table of steps, and a roofline that follows ``state``."""
    from labkit.explore.panel import HardwareState
    from labkit.explore.pipeline_view import PipelineView

    return PipelineView(graph, HardwareState() if state is None else state)
