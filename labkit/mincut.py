"""Minimum cut: split the vertices of a network in two so that the edges from one side to the other weigh least."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from labkit.errors import LabError

Vertex: TypeAlias = Hashable
Edge: TypeAlias = tuple[Vertex, Vertex, int]


@dataclass(frozen=True)
class Cut:
    """The least total capacity of edges that lead from the source's side to the sink's, and the source's side."""

    capacity: int
    source_side: frozenset[Vertex]


def minimum_cut(edges: Iterable[Edge], source: Vertex, sink: Vertex) -> Cut:
    """A cut of least capacity; of all such cuts the one with the smallest source side, so the answer is unique.

    ``edges`` are (from, to, capacity). Capacities are whole numbers of any size. LabError for one below 0 and for a
    source that is the sink. Source: Dinic, "Algorithm for solution of a problem of maximum flow", 1970.

    >>> minimum_cut([("s", "a", 3), ("a", "b", 1), ("b", "t", 5)], "s", "t").capacity
    1
    """
    if source == sink:
        raise LabError(f"a cut must part two vertices; source and sink are both {source!r}")
    network, flow = _Network(), 0
    for start, end, capacity in edges:
        network.add(start, end, capacity)
    while sink in (level := network.levels(source)):
        left = {vertex: len(out) for vertex, out in network.out.items()}
        while path := network.path(source, sink, level, left):
            flow += network.push(path)
    return Cut(flow, frozenset(level))


@dataclass
class _Network:
    """What each edge can still carry. Edge i and i ^ 1, its reverse, are a pair: what one loses the other gains."""

    ends: list[Vertex] = field(default_factory=list)
    room: list[int] = field(default_factory=list)
    out: dict[Vertex, list[int]] = field(default_factory=dict)

    def add(self, start: Vertex, end: Vertex, capacity: int) -> None:
        if capacity < 0:
            raise LabError(f"edge {start!r} to {end!r} has capacity {capacity}; it must be 0 or more")
        for tail, head, room in ((start, end, capacity), (end, start, 0)):
            self.out.setdefault(tail, []).append(len(self.ends))
            self.ends.append(head)
            self.room.append(room)

    def levels(self, source: Vertex) -> dict[Vertex, int]:
        """Steps from the source along edges with room, for every vertex that can be reached."""
        level, queue = {source: 0}, deque([source])
        while queue:
            vertex = queue.popleft()
            for edge in self.out.get(vertex, ()):
                if self.room[edge] and self.ends[edge] not in level:
                    level[self.ends[edge]] = level[vertex] + 1
                    queue.append(self.ends[edge])
        return level

    def path(self, source: Vertex, sink: Vertex, level: dict[Vertex, int], left: dict[Vertex, int]) -> list[int]:
        """Edges of a path that goes up one level a step. ``left`` counts the edges of a vertex not yet known to lead
        nowhere; they are given up from the last to the first."""
        path: list[int] = []
        vertex = source
        while vertex != sink:
            if not left[vertex]:
                if not path:
                    return []
                vertex = self.ends[path.pop() ^ 1]
                left[vertex] -= 1
                continue
            edge = self.out[vertex][left[vertex] - 1]
            if self.room[edge] and level.get(self.ends[edge]) == level[vertex] + 1:
                path.append(edge)
                vertex = self.ends[edge]
            else:
                left[vertex] -= 1
        return path

    def push(self, path: list[int]) -> int:
        """Fill a path up to what its narrowest edge can carry."""
        amount = min(self.room[edge] for edge in path)
        for edge in path:
            self.room[edge] -= amount
            self.room[edge ^ 1] += amount
        return amount
