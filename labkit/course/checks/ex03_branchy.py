"""Graphs that branch, and groups of their nodes, for exercise 03."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from random import Random

from labkit.course.checks.graphs import Draft
from labkit.graph import Graph, Value

Group = tuple[str, ...]


def branchy(draw: Random) -> Graph:
    """A graph that branches and meets again: convolutions, two that meet in an Add, poolings, elementwise work, a
    Transpose, and a gate a channel."""
    channels, edge = draw.randrange(3, 9), draw.randrange(6, 12)
    draft = Draft(draw, x=(1, channels, edge, edge), g=(1, channels, 1, 1))
    image, gate = draft.inputs
    values = [image]
    kinds = draw.choices(["Conv", "Relu", "Sigmoid", "Add", "Mul", "MaxPool"], [4, 3, 1, 5, 1, 1], k=7)
    for kind in draw.sample([*kinds, "gate", "join", "Transpose"], 10):
        values.append(_grown(draft, kind, values, gate))
    read = {value.name for node in draft.nodes for value in node.uses}
    ends = [value for value in values[1:] if value.name not in read]
    inner = [value for value in values[2:] if value.name in read]
    return draft.graph(*draw.sample(inner, min(len(inner), 1)), *ends)


def _grown(draft: Draft, kind: str, values: Sequence[Value], gate: Value) -> Value:
    draw = draft.draw
    one = values[-draw.choice([1, 1, 2, 3]) % len(values)]
    other = draw.choice([value for value in values[-4:] if value is not one] or [gate])
    if kind == "Conv":
        return draft.conv(one)
    if kind == "join":
        return draft.add("Add", draft.conv(one), draft.conv(draw.choice(values[-4:])))
    if kind == "gate":
        return draft.add("Mul", one, draft.add("Sigmoid", gate))
    if kind == "MaxPool":
        return draft.add("MaxPool", one, kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    if kind == "Transpose":
        return draft.add("Transpose", one, perm=(0, 1, 3, 2))
    return draft.add(kind, *((one, other) if kind in ("Add", "Mul") else (one,)))


def picked(draw: Random, graph: Graph, size: int) -> Group:
    """Nodes that hang together: one, then neighbours, as many as there are."""
    beside = neighbours(graph)
    found = {draw.choice(graph.nodes).output.name}
    while len(found) < size:
        near = sorted(set().union(*map(beside.__getitem__, found)) - found)
        if not near:
            break
        found.add(draw.choice(near))
    return tuple(name for name in graph.producers if name in found)


@lru_cache(maxsize=8)
def neighbours(graph: Graph) -> dict[str, frozenset[str]]:
    """The nodes that each node reads from, or that read from it."""
    found: dict[str, set[str]] = {name: set() for name in graph.producers}
    for node in graph.nodes:
        for value in node.uses:
            if value.name in found:
                found[value.name].add(node.output.name)
                found[node.output.name].add(value.name)
    return {name: frozenset(near) for name, near in found.items()}
