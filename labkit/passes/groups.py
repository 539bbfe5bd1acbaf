"""Which nodes may form one kernel: groups grown along the edges of the graph, before anybody asks what fits on chip.

The rule is TVM's (see op_classes): a kernel has at most one anchor, and what joins it is elementwise in the anchor's
output; elementwise operators join each other; a reduction joins the rows that it reduces. TVM fuses a node with its
immediate post-dominator, the first node through which every path to an output leads, when all nodes between them may
join: then the kernel makes one value and nothing inside is missed outside. Grown edge by edge such a region comes
about by itself, one join after the other. Two things go beyond it: a value that is also read outside may be inside, as
one more output of the kernel; and of two groups that meet in a node both may join. What is always asked is that a group
is convex: no path leaves it and comes back, for then neither the kernel nor what is on that path could run first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from labkit.graph import Graph, Node, Shape
from labkit.passes.op_classes import OpClass, op_class, reduced_axes

LARGEST = 64  # operators in one kernel; nobody reads a longer one, and weighing how to split it takes the square


@dataclass(frozen=True)
class Space:
    """What the members of a group have in common: the shape of their elements, the axes that its reductions run over,
    and whether one is an anchor."""

    shape: Shape
    axes: tuple[int, ...] = ()
    anchored: bool = False

    @cached_property
    def shapes(self) -> tuple[Shape, Shape]:
        """The shapes that a member may have: of all elements, and of one for each row."""
        return self.shape, tuple(1 if axis in self.axes else dim for axis, dim in enumerate(self.shape))

    def join(self, other: Space) -> Space | None:
        """The space of both together, or None when their elements do not go with each other."""
        whole = self if self.axes or not other.axes else other
        both = Space(whole.shape, whole.axes, self.anchored or other.anchored)
        if (self.anchored and other.anchored) or (both.anchored and both.axes):
            return None
        fits = all(space.axes in ((), both.axes) and space.shape in both.shapes for space in (self, other))
        return both if fits else None


@dataclass(eq=False)
class _Group:
    """Positions of nodes in the graph, in running order. ``rank`` is above that of every group that it reads from."""

    members: list[int]
    space: Space | None
    rank: int


def groups(graph: Graph) -> Iterator[tuple[Node, ...]]:
    """The nodes in groups, in an order in which they can run one after another as kernels.

    Nodes that may join nothing are groups of one.
    """
    growing = _Growing(graph)
    for position in range(len(graph.nodes)):
        growing.add(position)
    return growing.finish()


class _Growing:
    """The groups so far; as kernels they always form a graph without a cycle."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.group: list[_Group] = []  # of each node so far
        self.maker = {value.name: i for i, node in enumerate(graph.nodes) for value in node.results}
        self.readers: dict[int, list[int]] = {}  # the nodes so far that read from a node

    def add(self, position: int) -> None:
        """A group for one more node, joined with those that it reads from, the latest first."""
        node = self.graph.nodes[position]
        sources = sorted({self.maker[v.name] for v in node.uses if v.name in self.maker}, reverse=True)
        for source in sources:
            self.readers.setdefault(source, []).append(position)
        rank = 1 + max((self.group[source].rank for source in sources), default=0)
        self.group.append(_Group([position], _space(node, self.graph), rank))
        if op_class(node) not in (OpClass.ANCHOR, OpClass.OPAQUE):
            for source in sources:
                self._join(self.group[source], self.group[position])

    def _join(self, one: _Group, other: _Group) -> None:
        if one is other or one.space is None or other.space is None:
            return
        space, members = one.space.join(other.space), sorted(one.members + other.members)
        if space is None or len(members) > LARGEST or self._feeds_anchor(members) or self._detour(one, other):
            return
        one.members, one.space, one.rank = members, space, max(one.rank, other.rank)
        for position in other.members:
            self.group[position] = one
        self._lift(one)

    def _feeds_anchor(self, members: list[int]) -> bool:
        """Whether an anchor would read what its own kernel makes: it needs more of that than the tile at hand."""
        anchors = (self.graph.nodes[p] for p in members if op_class(self.graph.nodes[p]) is OpClass.ANCHOR)
        return any(self.maker.get(value.name) in members for anchor in anchors for value in anchor.uses)

    def _sources(self, group: _Group) -> set[_Group]:
        """The groups that a group reads from."""
        read = (value.name for position in group.members for value in self.graph.nodes[position].uses)
        return {self.group[self.maker[name]] for name in read if name in self.maker} - {group}

    def _detour(self, start: _Group, end: _Group) -> bool:
        """Whether a path leads from one group to the other through a third."""
        waiting = list(self._sources(end) - {start})
        seen = set(waiting)
        while waiting:
            group = waiting.pop()
            if group.rank <= start.rank:
                continue  # ranks rise along a path
            for source in self._sources(group) - seen:
                if source is start:
                    return True
                seen.add(source)
                waiting.append(source)
        return False

    def _lift(self, group: _Group) -> None:
        """Put the readers of a group above it again."""
        waiting = [group]
        while waiting:
            low = waiting.pop()
            for position in (reader for member in low.members for reader in self.readers.get(member, ())):
                reader = self.group[position] if position < len(self.group) else low
                if reader is not low and reader.rank <= low.rank:
                    reader.rank = low.rank + 1
                    waiting.append(reader)

    def finish(self) -> Iterator[tuple[Node, ...]]:
        """The groups in running order, of those that can run the one whose last node stood first; anchors lead."""
        every = dict.fromkeys(self.group)
        readers: dict[_Group, list[_Group]] = {}
        for group in every:
            for source in self._sources(group):
                readers.setdefault(source, []).append(group)
        missing = {group: len(self._sources(group)) for group in every}
        ready = [(group.members[-1], group.members) for group in every if not missing[group]]
        heapq.heapify(ready)
        while ready:
            last, members = heapq.heappop(ready)
            nodes = (self.graph.nodes[position] for position in members)
            yield tuple(sorted(nodes, key=lambda node: op_class(node) is not OpClass.ANCHOR))
            for reader in readers.get(self.group[last], ()):
                missing[reader] -= 1
                if not missing[reader]:
                    heapq.heappush(ready, (reader.members[-1], reader.members))


def _space(node: Node, graph: Graph) -> Space | None:
    """The space of a node alone; None for one that joins nothing."""
    kind = op_class(node)
    if kind is OpClass.OPAQUE or node.output.shape is None:
        return None
    if kind is not OpClass.REDUCTION:
        return Space(node.output.shape, anchored=kind is OpClass.ANCHOR)
    source, axes = node.uses[0].shape, reduced_axes(node, graph.opset, graph.constant)
    return None if source is None or axes is None else Space(source, axes)
