"""shrink(): the smallest part of a graph that still shows a fault, to look at in place of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from labkit.errors import GraphError
from labkit.graph import Graph, Node, Value


def shrink(graph: Graph, still_fails: Callable[[Graph], bool], *, tries: int = 1000) -> Graph:
    """A graph as small as simple cuts make it, for which ``still_fails`` holds as it does for ``graph``.

    Cuts: outputs dropped, nodes cut out (what they made becomes an input, or what they read an output), a node
    replaced by its input. ``still_fails`` is asked at most ``tries`` times. Raises GraphError when ``graph`` itself
    does not fail: then there is nothing to keep.
    """
    if not still_fails(graph):
        raise GraphError(f"graph {graph.name!r} does not fail, so no part of it can be kept for failing")
    left = tries
    while True:
        for smaller in _cuts(graph):
            left -= 1
            if left < 0:
                return graph
            if still_fails(smaller):
                graph = smaller
                break
        else:
            return graph


def _cuts(graph: Graph) -> Iterator[Graph]:
    """Smaller graphs, the boldest first, each valid."""
    for make in _attempts(graph):
        try:
            smaller = _pruned(make())
        except GraphError:
            continue
        if _size(smaller) < _size(graph):
            yield smaller


def _size(graph: Graph) -> tuple[int, ...]:
    return len(graph.nodes), len(graph.outputs), len(graph.inputs), len(graph.constants)


def _attempts(graph: Graph) -> Iterator[Callable[[], Graph]]:
    for value in graph.outputs if len(graph.outputs) > 1 else ():
        yield lambda value=value: replace(graph, outputs=(value,))  # type: ignore[misc]
    many = len(graph.nodes)
    chunk = many
    while chunk > 1:
        chunk = (chunk + 1) // 2
        for start in reversed(range(0, many, chunk)):
            yield lambda part=graph.nodes[start : start + chunk]: _without(graph, part)  # type: ignore[misc]
    for node in graph.nodes:
        for value in node.uses:
            if len(node.results) == 1 and value.type == node.output.type:
                yield lambda node=node, value=value: _bypassed(graph, node, value)  # type: ignore[misc]
    for value in graph.outputs if len(graph.outputs) > 2 else ():
        yield lambda value=value: replace(graph, outputs=tuple(v for v in graph.outputs if v != value))  # type: ignore[misc]
    yield lambda: graph


def _without(graph: Graph, cut: Sequence[Node]) -> Graph:
    """The graph without some nodes: what they made is fed; if they made all outputs, what they read is one."""
    gone = set(map(id, cut))
    kept = tuple(node for node in graph.nodes if id(node) not in gone)
    made = {value.name: value for node in cut for value in node.results}
    read = {value.name for node in kept for value in node.uses}
    fed = tuple(value for name, value in made.items() if name in read)
    outputs = tuple(value for value in graph.outputs if value.name not in made)
    if not outputs:
        inside = {value.name for node in kept for value in node.results}
        outputs = tuple(dict.fromkeys(value for node in cut for value in node.uses if value.name in inside))
    if not outputs:
        raise GraphError(f"graph {graph.name!r}: nothing would be left of it")
    return replace(graph, nodes=kept, inputs=(*graph.inputs, *fed), outputs=outputs)


def _bypassed(graph: Graph, node: Node, value: Value) -> Graph:
    """The graph with everything that read a node's output reading one of its inputs."""
    new = {node.output.name: value}
    nodes = tuple(other.rename(new) for other in graph.nodes if other is not node)
    outputs = tuple(dict.fromkeys(new.get(out.name, out) for out in graph.outputs))
    return replace(graph, nodes=nodes, outputs=outputs)


def _pruned(graph: Graph) -> Graph:
    """Only the nodes that the outputs depend on, and the inputs and constants that something reads."""
    live = {value.name for value in graph.outputs}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(value.name in live for value in node.results):
            live.update(value.name for value in node.uses)
            kept.append(node)
    inputs = tuple(value for value in graph.inputs if value.name in live)
    constants = {name: array for name, array in graph.constants.items() if name in live}
    return replace(graph, nodes=tuple(reversed(kept)), inputs=inputs, constants=constants)
