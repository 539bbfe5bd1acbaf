"""Why each pass comes to an end: a measure of the graph that every rewrite of the pass makes smaller.

A measure is a tuple of counts, compared like words in a dictionary: the first count that differs decides. All are at
least 0, so none can fall for ever. Most passes leave fewer nodes; one that only moves nodes needs a count that says in
which direction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from labkit.graph import Graph, Node
from labkit.passes.cse import equal_constants
from labkit.passes.layout_kernels import IMAGES, is_settled
from labkit.passes.reshaping import RESHAPES

Count: TypeAlias = Callable[[Graph], int]
Measure: TypeAlias = tuple[Count, ...]


def measured(measure: Measure, graph: Graph) -> tuple[int, ...]:
    """The counts of a measure, for a graph and all the graphs within it together."""
    own = (count(graph) for count in measure)
    inner = (measured(measure, body) for node in graph.nodes for body in node.bodies)
    return tuple(map(sum, zip(own, *inner, strict=True)))


def described(measure: Measure, before: Graph, after: Graph) -> str:
    """How a step changed each count of a measure.

    >>> from labkit.passes.guards import TRAPS
    >>> described((nodes, edges), TRAPS[0].graph(), TRAPS[2].graph())
    'nodes 3 → 4, edges 9 → 10'
    """
    pairs = zip(measured(measure, before), measured(measure, after), strict=True)
    names = (count.__name__.replace("_", " ") for count in measure)
    return ", ".join(f"{name} {old} → {new}" for name, (old, new) in zip(names, pairs, strict=True))


def nodes(graph: Graph) -> int:
    """Nodes. An If that is decided leaves fewer, those of its branches having counted as well."""
    return len(graph.nodes)


def nodes_that_compute(graph: Graph) -> int:
    """Nodes but for those that only give an output its name."""
    return sum(node.op != "Identity" for node in graph.nodes)


def edges(graph: Graph) -> int:
    """How often nodes read something."""
    return sum(len(node.uses) for node in graph.nodes)


def computed_edges(graph: Graph) -> int:
    """How often nodes read something that another node makes."""
    return sum(value.name in graph.producers for node in graph.nodes for value in node.uses)


def repeated_constants(graph: Graph) -> int:
    """How often nodes read a constant that has an equal before it."""
    repeats = equal_constants(graph)
    return sum(value.name in repeats for node in graph.nodes for value in node.uses)


def constants(graph: Graph) -> int:
    return len(graph.constants)


def waits(graph: Graph) -> int:
    """For each time that a node reads something, the nodes that have to run first."""
    ahead = _ahead(graph, lambda node: True)
    return sum(ahead.get(value.name, 0).bit_count() for node in graph.nodes for value in node.uses)


def waits_for_transposes(graph: Graph) -> int:
    """Pairs of a Transpose and a node behind it that is none."""
    return _behind(graph, {"Transpose"})


def waits_for_movers(graph: Graph) -> int:
    """Pairs of a Transpose or reshape and a node behind it that is none."""
    return _behind(graph, {"Transpose", *RESHAPES})


def waits_for_pads(graph: Graph) -> int:
    """Pairs of a Pad and a node behind it that is none."""
    return _behind(graph, {"Pad"})


def images_in_the_file_s_order(graph: Graph) -> int:
    """Kernels on images that have not changed to the machine's order of axes."""
    on_images = (node for node in graph.nodes if any(step.op in IMAGES and not step.domain for step in node.steps))
    return sum(not is_settled(node) for node in on_images)


def _behind(graph: Graph, ops: Collection[str]) -> int:
    ahead = _ahead(graph, lambda node: node.op in ops)
    return sum(
        ahead[value.name].bit_count() for node in graph.nodes if node.op not in ops for value in node.results[:1]
    )


def _ahead(graph: Graph, counts: Callable[[Node], bool]) -> dict[str, int]:
    """For each value, by name, the nodes that count among those that have to run for it: a bit each."""
    ahead: dict[str, int] = {}
    for place, node in enumerate(graph.nodes):
        found = 1 << place if counts(node) else 0
        for value in node.uses:
            found |= ahead.get(value.name, 0)
        ahead.update((value.name, found) for value in node.results)
    return ahead
