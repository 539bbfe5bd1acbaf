"""check_pass(): a pass of your own, judged: does it keep the meaning, rest when idle, end, and which guard it lacks."""

from __future__ import annotations

from dataclasses import dataclass, field

from labkit.costing import cost
from labkit.equivalence import verify
from labkit.errors import LabError, NotEquivalent
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.passes.guards import TRAPS
from labkit.passes.rewriting import Pass
from labkit.units import format_bytes

_ROUNDS = 100


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: which rule is broken, in a sentence, and the graph that shows it."""

    rule: str
    why: str
    graph: Graph = field(repr=False)

    def __str__(self) -> str:
        return f"{self.rule}: {self.why}"


@dataclass(frozen=True)
class PassVerdict:
    """What ``check_pass`` found: everything wrong, and what the pass saved on the graph it was given."""

    findings: tuple[Finding, ...]
    nodes_saved: int
    bytes_saved: int

    @property
    def ok(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        saved = f"saves {self.nodes_saved} nodes and {format_bytes(self.bytes_saved)} of DRAM traffic"
        return f"right; {saved}" if self.ok else "\n".join(map(str, self.findings))


def check_pass(pass_: Pass, graph: Graph) -> PassVerdict:
    """Judge a pass on one graph and on a zoo of small ones, each a trap for a missing guard.

    The rules: the result computes the same (``verify``); a pass with nothing to do returns the very same object, so
    that running it twice is running it once; repeated, it comes to an end; nothing it does is wrong in a trap. A
    finding carries the graph that breaks the rule.

    >>> from labkit.passes.dead import eliminate_dead
    >>> check_pass(eliminate_dead, TRAPS[0].graph()).ok
    True
    >>> print(check_pass(lambda graph: Graph("g", graph.inputs, graph.inputs, ()), TRAPS[8].graph()).findings[0].rule)
    equivalence
    """
    findings: list[Finding] = []
    after = _applied(pass_, graph, findings)
    if after is None:
        return PassVerdict(tuple(findings), 0, 0)
    if broken := _difference(graph, after):
        findings.append(Finding("equivalence", broken, graph))
    if pass_(after) is not after:
        findings.append(_restless(pass_, after))
    for trap in TRAPS:
        small = trap.graph()
        result = _applied(pass_, small, findings)
        if result is not None and _difference(small, result):
            findings.append(Finding(f"guard {trap.guard!r}", trap.why, small))
    machine = Hardware.preset("edge-npu")
    saved = cost(graph, machine).dram_bytes - cost(after, machine).dram_bytes
    return PassVerdict(tuple(findings), len(graph.nodes) - len(after.nodes), saved)


def _applied(pass_: Pass, graph: Graph, findings: list[Finding]) -> Graph | None:
    """The pass's result; what it raises, or returns in place of a Graph, is a finding."""
    try:
        after = pass_(graph)
    except Exception as error:  # a student's pass may raise anything
        findings.append(Finding("no crash", f"it raised {type(error).__name__}: {error}", graph))
        return None
    if not isinstance(after, Graph):
        findings.append(Finding("a pass returns a Graph", f"it returned {type(after).__name__}", graph))
        return None
    return after


def _difference(before: Graph, after: Graph) -> str:
    """How two graphs differ; empty when they do not."""
    if after is before:
        return ""
    try:
        verify(before, after)
    except (NotEquivalent, LabError) as error:
        return str(error)
    return ""


def _restless(pass_: Pass, graph: Graph) -> Finding:
    """Tell a pass that needs more rounds from one that never ends, or that makes a new object for the same graph."""
    current = graph
    for rounds in range(1, _ROUNDS + 1):
        following = pass_(current)
        if following is current:
            why = f"it needed {rounds} more rounds to come to rest: one sweep should do all it can"
            return Finding("idempotence", why, graph)
        if following.nodes == current.nodes:
            why = "with nothing to do it returned a new object: return the graph it was given"
            return Finding("same object when idle", why, graph)
        current = following
    return Finding("termination", f"it still changes the graph after {_ROUNDS} rounds", graph)
