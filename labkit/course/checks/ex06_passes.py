"""Exercise 06: what each pass of a report saved, the fewest runs to the fixed point, and a pass of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np

from labkit.costing import cost
from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.ex06_networks import cluttered, pooled, traps
from labkit.course.checks.graphs import shown
from labkit.course.checks.plain import kind, whole
from labkit.course.checks.question import until_one_suits
from labkit.equivalence import verify
from labkit.errors import LabError, NotEquivalent
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.passes.judge import check_pass
from labkit.passes.pipeline import PASSES, optimize
from labkit.passes.report import Report
from labkit.passes.rewriting import Pass

_NAMES = ("no-ops", "merges", "affine", "dead")


# ---- 6.2 reading a report


def _savings(report: Report, changes: Sequence[int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for step, change in zip(report.steps, changes, strict=True):
        found[step.name] = found.get(step.name, 0) + change
    return found


def _known(report: Report) -> Sequence[tuple[str, Callable[[], dict[str, int]]]]:
    """What to look at, and the wrong answer that shows it."""
    moved = [costs.dram_bytes for costs in report.costs]
    nodes = [len(graph.nodes) for graph in (report.original, *(step.graph for step in report.steps))]
    saved = [before - after for before, after in pairwise(moved)]
    names = [step.name for step in report.steps]
    pairs = list(zip(names, saved, strict=True))
    return (
        ("that is what its last step saved; a pass may run in several rounds.", lambda: dict(pairs)),
        ("that is what its first step saved; a pass may run in several rounds.", lambda: dict(reversed(pairs))),
        (
            "those are nodes; bytes are asked.",
            lambda: _savings(report, [a - b for a, b in pairwise(nodes)]),
        ),
        (
            "less than nothing: what was before, less what is after.",
            lambda: _savings(report, [-change for change in saved]),
        ),
        (
            "each step is compared with the original; what did the graph look like right before it?",
            lambda: _savings(report, [moved[0] - after for after in moved[1:]]),
        ),
        ("that is what is left behind a step, not what it saved.", lambda: _savings(report, moved[1:])),
        ("that is what moved before the step, not what it saved.", lambda: _savings(report, moved[:-1])),
        (
            "one step too late: the first cost of a report is that of the original.",
            lambda: _savings(report, [*saved[1:], 0]),
        ),
    )


def _telling_report(draw: Random) -> Report:
    """A report in which a pass saves bytes in two rounds, and every slip shows."""
    return until_one_suits(lambda: _if_telling(_report(draw)), "report in which every slip shows")


def _report(draw: Random) -> Report:
    return optimize(cluttered(draw), hardware=Hardware.preset(draw.choice(Hardware.presets())))


def _if_telling(report: Report) -> Report | None:
    answers = [answer() for _, answer in _known(report)]
    return report if all(one != other for i, one in enumerate(answers) for other in answers[:i]) else None


def check_saved(function: Function, draw: Random) -> None:
    """6.2: bytes by pass, from the steps of a report."""
    report = _telling_report(draw)
    steps = " ".join(f"{step.name}/{step.round}" for step in report.steps)
    call = f"saved_by_pass(report) with steps {steps}"
    got = _bytes_by_name(function(report), call)
    moved = [costs.dram_bytes for costs in report.costs]
    right = _savings(report, [before - after for before, after in pairwise(moved)])
    if {name: nbytes for name, nbytes in got.items() if nbytes} == {name: n for name, n in right.items() if n}:
        return
    otherwise = "take two graphs that follow each other; the step between them is to be credited with the difference."
    why = next((why for why, wrong in _known(report) if got == wrong()), otherwise)
    raise CheckFailed(f"{call} gave {got!s:.100}: {why}")


def _bytes_by_name(value: object, call: str) -> dict[str, int]:
    if value is None:
        raise CheckFailed(f"{call} gave nothing back: does the function end with return?")
    if not isinstance(value, dict):
        raise CheckFailed(f"{call} gave {kind(value)}; expected a dictionary from pass to bytes.")
    return {
        str(name): whole(nbytes, f"{call}, at {name!s:.20},") for name, nbytes in value.items() if type(name) is str
    }


# ---- 6.3 the fewest runs


def _shortest(graph: Graph, passes: Mapping[str, Pass]) -> int:
    """Breadth first: how many runs lead to a graph that every pass leaves alone."""
    waiting, runs = [graph], 0
    while True:
        following = []
        for current in waiting:
            after = [pass_(current) for pass_ in passes.values()]
            if all(result is current for result in after):
                return runs
            following += [result for result in after if result is not current]
        waiting, runs = following, runs + 1


def check_shortest(function: Function, draw: Random) -> None:
    """6.3: passes under names that tell nothing; the fewest runs to the fixed point."""
    graph = cluttered(draw)
    letters = draw.sample("pqrs", len(_NAMES))
    passes: dict[str, Pass] = {
        x: lru_cache(maxsize=None)(PASSES[n]) for x, n in sorted(zip(letters, _NAMES, strict=True))
    }
    call = f"fewest_runs([{' '.join(node.op for node in graph.nodes)}], passes)"
    _shortest(graph, passes)  # runs that are remembered cost the student's search no time
    order = _order(function(graph, dict(passes)), passes, call)
    current, idle = graph, []
    for name in order:
        after = passes[name](current)
        idle += [name] * (after is current)
        current = after
    said = f"{call} gave {' '.join(order)}"
    if restless := [name for name, pass_ in passes.items() if pass_(current) is not current]:
        raise CheckFailed(f"{said}: that is no fixed point, {restless[0]} would still change the graph.")
    least = _shortest(graph, passes)
    if len(order) > least:
        hint = f"{idle[0]} runs in vain; when?" if idle else "which pass makes work for which? Let that one go first."
        raise CheckFailed(f"{said}: {len(order)} runs, {least} can do: {hint}")


def _order(value: object, passes: Mapping[str, Pass], call: str) -> list[str]:
    if value is None:
        raise CheckFailed(f"{call} gave nothing back: does the function end with return?")
    if type(value) not in (list, tuple, str):
        raise CheckFailed(f"{call} gave {kind(value)}; expected a list of names, in the order to run them.")
    assert isinstance(value, Sequence)
    order = [str(name) if type(name) in (str, np.str_) else "?" for name in value]
    if strange := [name for name in order if name not in passes]:
        raise CheckFailed(f"{call} gave {strange[0]!r:.20}; the passes are {' '.join(passes)}.")
    return order


# ---- 6.4 a pass of your own


def check_own_pass(function: Function, draw: Random) -> None:
    """6.4: Relu behind MaxPool, by check_pass on a drawn graph, and on graphs where a guard has to say no."""
    case = pooled(draw)
    name = "relu_behind_pool"
    call = f"{name}({shown(case.graph)})"
    _applied(function, case.graph, call)
    verdict = check_pass(function, case.graph)
    for finding in verdict.findings:
        raise CheckFailed(f"{call}: {finding.rule}: {_one_line(finding.why)}")
    if verdict.bytes_saved < case.saved_bytes:
        raise CheckFailed(
            f"{call} saves {verdict.bytes_saved:,} bytes, {case.saved_bytes:,} can be saved: a Relu may pass several "
            "pools, and every value that changed its shape needs its new type."
        )
    for trap in traps(draw):
        call = f"{name}({shown(trap.graph)})"
        after = _applied(function, trap.graph, call, trap.why)
        if why := _harm(trap.graph, after):
            raise CheckFailed(f"{call}: {why}: {trap.why}")


def _applied(function: Function, graph: Graph, call: str, why: str = "") -> Graph:
    """What the pass makes of a graph; CheckFailed for what is none, and for what cannot be one, with ``why`` behind."""
    try:
        after: Any = function(graph)
    except LabError as error:
        told = f"{call} raised {type(error).__name__}: {_one_line(str(error))}"
        raise CheckFailed(f"{told}: {why}" if why else told) from None
    if after is None:
        raise CheckFailed(f"{call} gave nothing back: does the function end with return?")
    if type(after) is not Graph:
        raise CheckFailed(f"{call} gave {kind(after)}; a pass gives a Graph.")
    return after


def _harm(before: Graph, after: Graph) -> str:
    """What a pass did to a graph that it had better left alone; "" when nothing."""
    machine = Hardware.preset("edge-npu")
    if after is before:
        return ""
    try:
        verify(before, after)
    except (NotEquivalent, LabError) as error:
        return f"not the same function any more ({_one_line(str(error))})"
    more = cost(after, machine).dram_bytes - cost(before, machine).dram_bytes
    return f"it moves {more:,} bytes more" if more > 0 else ""


def _one_line(text: str) -> str:
    return f"{text.splitlines()[0]:.120}" if text else ""
