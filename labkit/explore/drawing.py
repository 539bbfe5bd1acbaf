"""Where the nodes of a small graph stand in a picture: rows by what has to run first, columns near what is read.

Shared by the pictures of lesson 05; ``graph.js`` draws what ``spec`` holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from labkit.errors import LabError
from labkit.graph import Graph, Node

MOST_NODES = 24  # more would be no picture but a carpet

# What a mark means; in text a mark is the sign in front of a line.
SIGNS = {"live": "●", "dead": "×", "unseen": "?", "new": "+", "gone": "-", "changed": "~", "kept": " "}


@dataclass(frozen=True)
class Box:
    """One thing in the picture: a node, or an input or output of the graph (a ``pill``)."""

    label: str
    name: str
    column: int
    row: int
    mark: str
    is_pill: bool = False
    is_now: bool = False


@dataclass(frozen=True)
class Drawing:
    """Boxes, the edges between them by index, the constants by name and mark, and the columns and rows to leave room
    for: all that any step needs, so that nothing moves from one to the next."""

    boxes: tuple[Box, ...]
    edges: tuple[tuple[int, int], ...]
    constants: tuple[tuple[str, str], ...]
    size: tuple[int, int]


def key(node: Node) -> str:
    """What a picture knows a node by: its first result."""
    return next((value.name for value in node.results), node.label)


def places(graphs: Sequence[Graph]) -> dict[str, tuple[int, int]]:
    """(column, row) of every input, node and output of some versions of one graph: what is in several keeps its place.

    A node stands a row below the lowest one it reads. Raises LabError for more nodes than a picture can hold.

    >>> from labkit.passes.guards import TRAPS
    >>> places([TRAPS[0].graph()])
    {'x': (0, 0), 'c': (0, 1), 'n': (0, 2), 'y': (0, 3), 'y→': (0, 4)}
    """
    found: dict[str, tuple[int, int]] = {}

    def put(name: str, row: int, wish: int) -> None:
        taken = set(found.values())
        column = next(c for far in count() for c in (wish + far, wish - far) if (c, row) not in taken)
        found[name] = column, row

    def below(name: str, parents: Sequence[str]) -> None:
        if name in found:
            return
        above = [found[parent] for parent in parents if parent in found]
        row = 1 + max((at for _, at in above), default=0)
        wish = round(sum(column for column, _ in above) / len(above)) if above else 0
        put(name, row, wish)
        for parent in parents:  # one that reads only constants stands just above its first reader
            if parent not in found:
                put(parent, row - 1, wish + 1)

    for graph in graphs:
        for value in graph.inputs:
            if value.name not in found:
                put(value.name, 0, 0)
        for node in graph.nodes:
            if sources := _sources(graph, node):
                below(key(node), sources)
        for node in graph.nodes:
            below(key(node), ())
    for value in dict.fromkeys(value for graph in graphs for value in graph.outputs):
        below(f"{value.name}→", [source(graphs[0], value.name)])
    if len(found) > MOST_NODES:
        raise LabError(f"{len(found)} nodes, inputs and outputs: a picture holds {MOST_NODES}")
    left = min((column for column, _ in found.values()), default=0)
    return {name: (column - left, row) for name, (column, row) in found.items()}


def source(graph: Graph, name: str) -> str:
    """The key of what makes a value: its node, or the value itself for an input."""
    return key(graph.producers[name]) if name in graph.producers else name


def edges(graph: Graph) -> dict[tuple[str, str], None]:
    """Who reads whom, by key; constants have no edges. A dict, to keep the order."""
    found = [(above, key(node)) for node in graph.nodes for above in _sources(graph, node)]
    return dict.fromkeys([*found, *((source(graph, v.name), f"{v.name}→") for v in graph.outputs)])


def _sources(graph: Graph, node: Node) -> list[str]:
    constant = graph.constants.keys() - graph.input_names
    return [source(graph, value.name) for value in node.uses if value.name not in constant]


def drawing(
    boxes: Iterable[Box],
    arrows: Iterable[tuple[str, str]],
    constants: Mapping[str, str],
    at: Mapping[str, tuple[int, int]],
) -> Drawing:
    """The boxes with the arrows between those that are there; ``constants`` gives a mark for each name."""
    listed = tuple(boxes)
    index = {box.name: i for i, box in enumerate(listed)}
    pairs = ((index[one], index[two]) for one, two in arrows if one in index and two in index)
    columns, rows = (1 + max((place[axis] for place in at.values()), default=0) for axis in (0, 1))
    return Drawing(listed, tuple(pairs), tuple(constants.items()), (columns, rows))


def spec(picture: Drawing) -> dict[str, Any]:
    """What graph.js needs to draw it."""
    return {
        "boxes": [
            [box.label, box.name, box.column, box.row, box.mark, int(box.is_pill), int(box.is_now)]
            for box in picture.boxes
        ],
        "edges": [list(pair) for pair in picture.edges],
        "size": list(picture.size),
        "shelf": [list(pair) for pair in picture.constants],
    }
