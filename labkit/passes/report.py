"""What an optimisation did: every intermediate graph, its costs, and why the rest was left alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from labkit import text
from labkit.costing import Cost, cost
from labkit.errors import LabError
from labkit.graph import Graph, Node
from labkit.hardware import Hardware
from labkit.passes.rewriting import Pass, Refusal, explain
from labkit.scheduling import Schedule, schedule
from labkit.units import format_bytes, format_count, format_seconds


@dataclass(frozen=True)
class Step:
    """One pass that changed something: its name, the round it ran in, and the graph it made."""

    name: str
    round: int
    graph: Graph


@dataclass(frozen=True)
class Report:
    """The steps from the original graph to the optimised one, costed for one machine; ``passes`` are those that ran."""

    original: Graph
    steps: tuple[Step, ...]
    hardware: Hardware
    level: str
    passes: Mapping[str, Pass]

    @property
    def graph(self) -> Graph:
        """The optimised graph; the original itself when no pass changed anything."""
        return self.steps[-1].graph if self.steps else self.original

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """The cost of the original, then of the graph after each step."""
        return tuple(cost(graph, self.hardware) for graph in (self.original, *(step.graph for step in self.steps)))

    @cached_property
    def refusals(self) -> tuple[Refusal, ...]:
        """Why the optimised graph is not smaller: what each guard of each rule refuses in it."""
        return explain(self.graph, self.passes.values())

    @cached_property
    def schedule(self) -> Schedule:
        """The optimised graph's kernels at their best tiles on the machine; SramOverflow when one does not fit."""
        return schedule(self.graph, self.hardware)

    def on(self, hardware: Hardware) -> Report:
        """The same steps costed, and the same graph scheduled, for another machine."""
        return replace(self, hardware=hardware)

    def diff(self, step: int) -> str:
        """What one step changed, as lines of text; steps count from 0. LabError when there is no such step."""
        if not 0 <= step < len(self.steps):
            raise LabError(f"no step {step}; there are {len(self.steps)}, counted from 0")
        before = self.original if step == 0 else self.steps[step - 1].graph
        return text.diff(before, self.steps[step].graph)

    def why(self, name: str) -> str:
        """What became of a node, called by its name or an output, and why it is still there if it is.

        Raises LabError when no step knows such a node.
        """
        graphs = (self.original, *(step.graph for step in self.steps))
        present = [_named(graph, name) is not None for graph in graphs]
        if not any(present):
            raise LabError(f"no node {name!r} in the original or in any step; call it by its name or an output")
        said = []
        for index, step in enumerate(self.steps):
            if present[index] != present[index + 1]:
                verb = "made" if present[index + 1] else "removed"
                said.append(f"{verb} by {step.name} in round {step.round}")
        node = _named(self.graph, name)
        if node is None:
            return f"{name}: {'; '.join(said)}"
        refused = [f"{r.rule} refused, {r.guard}: {r.why}" for r in self.refusals if r.node == node.label]
        return f"{name}: {'; '.join([*said, *(refused or ['no rule has anything to do with it'])])}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data: steps, before, after, refusals; sizes in bytes, intensity in FLOP/byte."""
        graphs = (self.original, *(step.graph for step in self.steps))
        rows = [_row(graph, costs) for graph, costs in zip(graphs, self.costs, strict=True)]
        named = zip(self.steps, rows[1:], strict=True)
        return {
            "model": self.original.name,
            "hardware": self.hardware.name,
            "level": self.level,
            "steps": [{"pass": step.name, "round": step.round, **row} for step, row in named],
            "before": rows[0],
            "after": rows[-1],
            "refusals": [{"rule": r.rule, "node": r.node, "guard": r.guard, "why": r.why} for r in self.refusals],
            "assumed": list(self.costs[-1].assumed),
            **({"schedule": self.schedule.to_dict()} if self.level == "all" else {}),
        }

    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The table as text: a head, the original, and a row for each step."""
        data = self.to_dict()
        head = ("pass", "round", "nodes", "constants", "intermediates", "DRAM", "FLOP", "FLOP/byte", "time")
        steps = ((row["pass"], str(row["round"]), *_cells(row)) for row in data["steps"])
        return head, ("original", "", *_cells(data["before"])), *steps

    def table(self) -> str:
        """One line a step, for people."""
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ([cell.rjust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *cells[1:]]) for row, cells in zip(rows, lines, strict=True)
        )


def _named(graph: Graph, name: str) -> Node | None:
    return next((node for node in graph.nodes if node.name == name), graph.producers.get(name))


def _row(graph: Graph, costs: Cost) -> dict[str, Any]:
    inside = {value for node in graph.nodes for value in node.results if value.name not in graph.output_names}
    return {
        "nodes": len(graph.nodes),
        "constant_bytes": sum(array.nbytes for array in graph.constants.values()),
        "intermediate_bytes": sum(value.type.nbytes for value in inside if value.type),
        "dram_bytes": costs.dram_bytes,
        "flops": costs.flops,
        "intensity": costs.intensity,
        "time_s": costs.time_s,
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    sizes = (format_bytes(row[key]) for key in ("constant_bytes", "intermediate_bytes", "dram_bytes"))
    return (
        str(row["nodes"]),
        *sizes,
        format_count(row["flops"]) + "FLOP",
        f"{row['intensity']:.2f}",
        format_seconds(row["time_s"]),
    )
