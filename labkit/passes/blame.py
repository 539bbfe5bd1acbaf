"""Which pass is to blame when an optimised graph computes something else, and the smallest graph that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from labkit.equivalence import verify
from labkit.errors import LabError, NotEquivalent
from labkit.graph import Graph
from labkit.passes.report import Report
from labkit.passes.rewriting import Pass
from labkit.shrink import shrink


@dataclass(frozen=True)
class Blame:
    """The first step that changed the meaning, and a graph on which its pass does so, as small as it could be made."""

    step: int
    pass_name: str
    graph: Graph

    def __str__(self) -> str:
        return f"step {self.step}, {self.pass_name}: shown by a graph of {len(self.graph.nodes)} nodes"


def blame(report: Report) -> Blame | None:
    """The first faulty step of a report; None when every step computes the same as the one before it."""
    before = report.original
    for index, step in enumerate(report.steps):
        pass_ = report.passes[step.name]
        if _differs(before, step.graph):
            return Blame(index, step.name, shrink(before, partial(_breaks, pass_)))
        before = step.graph
    return None


def _breaks(pass_: Pass, graph: Graph) -> bool:
    try:
        after = pass_(graph)
    except LabError:
        return False  # another fault than the one looked for
    return _differs(graph, after)


def _differs(before: Graph, after: Graph) -> bool:
    if after is before:
        return False
    try:
        verify(before, after)
    except NotEquivalent:
        return True
    except LabError:
        return False  # no input suits it: it shows nothing
    return False
