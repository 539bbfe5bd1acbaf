"""Graphs within a graph, the branches of an If and the bodies of a Loop or a Scan: every pass goes into them, too.

What an inner graph captures is for it a value like an input, of which the type is known; unless it is a constant around
it, which is constant inside as well. A large one is not: what is made of it inside would be a second copy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from labkit.bodies import all_names
from labkit.graph import Graph, Value
from labkit.passes.rewriting import Pass, Refusal, explain
from labkit.units import KIB

_COPIED_BYTES = 64 * KIB


@dataclass(frozen=True)
class Deep:
    """A pass over a graph and the graphs within it. It returns the very same graph when there was nothing to do."""

    pass_: Pass

    def __call__(self, graph: Graph) -> Graph:
        return self._within(self.pass_(graph), ())

    def refusals(self, graph: Graph) -> tuple[Refusal, ...]:
        """What the pass refuses in the graph itself."""
        return explain(graph, [self.pass_])

    def _within(self, graph: Graph, around: tuple[Graph, ...]) -> Graph:
        """The graph with what the pass makes of the graphs inside it; ``around`` are those it lies in itself."""
        if not graph.holders:
            return graph
        inner = partial(self._inner, around=(*around, graph))
        nodes = tuple(node.with_bodies(inner) if node in graph.holders else node for node in graph.nodes)
        changed = any(new is not old for new, old in zip(nodes, graph.nodes, strict=True))
        return replace(graph, nodes=nodes) if changed else graph

    def _inner(self, body: Graph, around: tuple[Graph, ...]) -> Graph:
        opened = _opened(body, around[-1])
        after = self.pass_(opened)
        if after is not opened:  # once more, with the names around it: they must not be taken for anything new
            after = self.pass_(_with_names(opened, around))
        after = self._within(after, around)
        return body if after is opened else _closed(after, body)


def _opened(body: Graph, outside: Graph) -> Graph:
    """An inner graph that has the small constants it captures as its own."""
    found = {value.name: array for value in body.captures if (array := outside.constant(value)) is not None}
    small = {name: array for name, array in found.items() if array.nbytes <= _COPIED_BYTES}
    if not small:
        return body
    captures = tuple(value for value in body.captures if value.name not in small)
    return replace(body, captures=captures, constants={**small, **body.constants})


def _with_names(body: Graph, around: tuple[Graph, ...]) -> Graph:
    """An inner graph that knows every name around it, as if it captured them all."""
    names = {name for graph in around for name in all_names(graph)}.difference(all_names(body))
    return replace(body, captures=(*body.captures, *map(Value, sorted(names))))


def _closed(body: Graph, before: Graph) -> Graph:
    """An inner graph that captures again what it had captured before, as far as it still reads it."""
    read = body.readers
    captured = {value.name for value in before.captures}
    constants = {name: array for name, array in body.constants.items() if name not in captured}
    return replace(body, captures=tuple(v for v in before.captures if v.name in read), constants=constants)
