"""Groups of nodes in exercise 03: what a kernel of them moves, and whether they may be one kernel."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from random import Random
from typing import Any

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.ex03_branchy import Group, branchy, neighbours, picked
from labkit.course.checks.graphs import (
    entering,
    group_bytes,
    is_own,
    leaving,
    nbytes,
    shown,
)
from labkit.course.checks.plain import truth
from labkit.course.checks.question import Question, Slip, until_one_suits
from labkit.graph import Graph
from labkit.passes.groups import groups

ANCHORS = ("Conv", "MaxPool")
ELEMENTWISE = ("Add", "Mul", "Relu", "Sigmoid")


# ---- 3.5 what a kernel moves


def _draw_group(draw: Random) -> tuple[Any, ...]:
    """A group of a new graph, of several one in which a value is read inside and leaves."""
    graph = branchy(draw)
    several = [picked(draw, graph, draw.randrange(4, 8)) for _ in range(6)]
    return graph, max(several, key=lambda group: bool(_read_inside(graph, group)) + (_unread(graph, group) != []))


def _written(graph: Graph, group: Group) -> int:
    return sum(nbytes(graph.producers[name].output) for name in leaving(graph, group))


def _every_read(graph: Graph, group: Group) -> int:
    """Each read of a value from outside counted, however often the same value is read."""
    return sum(nbytes(v) for name in group for v in graph.producers[name].uses if v.name not in group)


def _apart(graph: Graph, group: Group) -> int:
    return sum(group_bytes(graph, (name,)) for name in group)


def _without_written(graph: Graph, group: Group, dropped: Collection[str]) -> int:
    return group_bytes(graph, group) - sum(nbytes(graph.producers[name].output) for name in dropped)


def _read_inside(graph: Graph, group: Group) -> list[str]:
    """What leaves although somebody inside reads it, too."""
    return [n for n in leaving(graph, group) if any(u.output.name in group for u in graph.users.get(n, ()))]


def _unread(graph: Graph, group: Group) -> list[str]:
    """What leaves although no node outside reads it: outputs of the graph."""
    return [name for name in leaving(graph, group) if is_own(graph, group, name)]


kernel_bytes = Question(
    "kernel_bytes",
    _draw_group,
    group_bytes,
    (
        Slip(
            lambda g, s: group_bytes(g, s) - sum(nbytes(v) for v in entering(g, s).values() if v.name in g.constants),
            "the weights are missing; a kernel reads them as well.",
        ),
        Slip(
            lambda g, s: _every_read(g, s) + _written(g, s),
            "a value that several of its nodes read from outside is counted for each; one kernel loads it once.",
        ),
        Slip(
            lambda g, s: _without_written(g, s, _read_inside(g, s)),
            "a value that is read inside, and outside or by the caller as well, has to be written all the same.",
        ),
        Slip(
            lambda g, s: _without_written(g, s, _unread(g, s)),
            "outputs of the graph are written even when no other node reads them: who reads them then?",
        ),
        Slip(
            lambda g, s: group_bytes(g, s) - _written(g, s) + sum(nbytes(g.producers[n].output) for n in s),
            "everything that it makes is written; which of it does anybody outside ever see?",
        ),
        Slip(_apart, "that is one kernel for each node; what do they hand to each other on chip?"),
        Slip(lambda g, s: group_bytes(g, s) // 4, "elements; bytes are asked."),
        Slip(lambda g, s: group_bytes(g, s) - _written(g, s), "only what is read; what has to be written?"),
        Slip(_written, "only what is written; what does it read?"),
    ),
    "list what comes from outside, each value once, and what somebody outside reads.",
    cases=2,
    show=shown,
)


# ---- 3.6 which nodes may be one kernel


def faults(graph: Graph, group: Group) -> Iterator[str]:
    """Why the nodes are no kernel, as hints; none when they may be one."""
    nodes = [graph.producers[name] for name in group]
    anchors = [node for node in nodes if node.op in ANCHORS]
    if len(group) == 1:
        return
    if any(node.op not in ANCHORS + ELEMENTWISE for node in nodes):
        yield "look at the class of each operator: may all of them join others?"
    if len(anchors) > 1:
        yield "how many anchors has it? Each walks its own loops over tiles."
    if any(value.name in group for node in anchors for value in node.uses):
        yield "what does its anchor read? It needs more of that than the tile at hand."
    if len({node.output.shape for node in nodes}) > 1:
        yield "compare the shapes of what its nodes make: does one tile fit them all?"
    if not _holds_together(graph, group):
        yield "do values of its own hold it together, or are there two separate pieces?"
    if detour := _detour(graph, group):
        yield f"follow the paths that leave it: when could {detour} run?"


def fault(graph: Graph, group: Group) -> str:
    """The first of its faults, "" when there is none."""
    return next(faults(graph, group), "")


def _holds_together(graph: Graph, group: Group) -> bool:
    beside, reached = neighbours(graph), {group[0]}
    while near := set().union(*map(beside.__getitem__, reached)) & set(group) - reached:
        reached |= near
    return len(reached) == len(group)


def _detour(graph: Graph, group: Group) -> str:
    """A node outside that needs something of the group and that the group needs; "" when it is convex."""
    behind: set[str] = set()
    for node in graph.nodes:
        read = {value.name for value in node.uses}
        if node.output.name in group and read & behind:
            return sorted(read & behind)[0]
        if node.output.name not in group and read & (behind | set(group)):
            behind.add(node.output.name)
    return ""


def _cases(draw: Random) -> tuple[Graph, list[Group]]:
    """A graph, and groups of it: two that have each fault and no other, and as many that may be one kernel, those of
    labkit among them."""
    return until_one_suits(lambda: _groups_to_ask(branchy(draw), draw), "graph with groups of every fault")


def _groups_to_ask(graph: Graph, draw: Random) -> tuple[Graph, list[Group]] | None:
    """The graph with its groups; None where one kind of them was not drawn."""
    found: dict[str, list[Group]] = {}
    for _ in range(160):
        group = picked(draw, graph, draw.choice([2, 2, 3, 3, 4]))
        if draw.random() < 0.2:
            group = tuple(draw.sample(list(graph.producers), 2))
        why = [hint[:18] for hint in faults(graph, group)]
        if len(why) < 2 and group not in found.setdefault("".join(why), []):
            found["".join(why)].append(group)
    kernels = [tuple(node.output.name for node in nodes) for nodes in groups(graph) if len(nodes) > 1]
    fine = found.pop("", [])
    free = [group for group in fine if not _is_anchored(graph, group)]
    tapped = [group for group in fine if _read_inside(graph, group)]
    if len(found) < 6 or not (kernels and tapped and free):
        return None
    faulty = [group for known in found.values() for group in known[:2]]
    return graph, [*faulty, *kernels, *tapped[:3], *free[:2], *fine[:4], (graph.nodes[0].output.name,)]


def _is_anchored(graph: Graph, group: Group) -> bool:
    return any(graph.producers[name].op in ANCHORS for name in group)


def check_may_be_one(function: Function, draw: Random) -> None:
    """3.6: groups of a drawn graph, by the rules of the text; labkit's own groups must pass."""
    graph, asked = _cases(draw)
    draw.shuffle(asked)
    for group in asked:
        call = f"may_be_one_kernel({shown(graph)}, {' '.join(group)})"
        got, why = truth(function(graph, group), call), fault(graph, group)
        if got and why:
            raise CheckFailed(f"{call} gave True: {why}")
        if not got and not why:
            raise CheckFailed(f"{call} gave False: {_why_not_refused(graph, group)}")


def _why_not_refused(graph: Graph, group: Group) -> str:
    if len(group) == 1:
        return "a node alone is always a kernel."
    known = (
        ("Elementwise nodes need no anchor. ", not _is_anchored(graph, group)),
        ("What is read outside, too, is no obstacle: a kernel may have several outputs. ", _read_inside(graph, group)),
    )
    said = "".join(why for why, holds in known if holds)
    return said.strip() or "which rule does it break? Go through them one by one."
