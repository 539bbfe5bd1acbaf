"""Where transforms stand: a minimum cut over the bytes that they move.

A vertex is a kernel, on one side those in the machine's order, on the other those in the file's. A value that crosses
is transformed, once for all its readers on the other side: it costs what a transform reads and writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from labkit.graph import Graph, Node, Value
from labkit.mincut import Edge, minimum_cut
from labkit.passes.layout_kernels import Role, data, role
from labkit.passes.layout_order import Order

Side: TypeAlias = Literal["file", "hardware"]
Vertex: TypeAlias = Side | int  # a fixed side, or the position of a node that is free to be on either
Ends: TypeAlias = tuple[Vertex | None, Vertex]  # in which order a node reads (None: in any), and in which it writes


@dataclass(frozen=True)
class Move:
    """A value: who makes it, who reads it, and the bytes of a transform of it."""

    value: Value
    maker: Vertex
    readers: frozenset[Vertex]

    @property
    def nbytes(self) -> int:
        """A transform reads the value and writes it."""
        return 2 * self.value.type.nbytes if self.value.type else 0


@dataclass(frozen=True)
class Stay:
    """What it costs that a node stays in the file's order: a Transpose of the file does then move its bytes, and a
    kernel that is slow there pays a penalty."""

    vertex: int
    nbytes: int
    transforms: int


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph as a question of layout. ``pins`` says on which side the kernels of a role are, where that is fixed."""

    graph: Graph
    order: Order
    pins: Mapping[Role, Side]
    penalty_bytes: int = 0

    @cached_property
    def ends(self) -> tuple[Ends, ...]:
        """For each node."""
        return tuple(self._ends(place, node) for place, node in enumerate(self.graph.nodes))

    def _ends(self, place: int, node: Node) -> Ends:
        if node.op == "Transpose" and not node.domain and not self.order.split:
            return self._transpose_ends(place, node)
        kind = role(node, self.order)
        end = "file" if kind is Role.BARRIER else self.pins.get(kind, place)
        return end, end

    def _transpose_ends(self, place: int, node: Node) -> Ends:
        """A Transpose of the file that leads from the machine's order to the file's, or back, vanishes when the other
        side of it is in the machine's order. Any other can as well read and write either order."""
        if len(node.output.shape or ()) != 4:
            return "file", "file"
        perm = tuple(node.attrs.get("perm") or (3, 2, 1, 0))
        if perm == self.order.back:
            return "file", place if self.order.moves(node.output) else "file"
        if perm == self.order.perm:
            return place if self.order.moves(node.inputs[0]) else "file", "file"
        return None, place

    @cached_property
    def stays(self) -> tuple[Stay, ...]:
        return tuple(self._stays())

    def _stays(self) -> Iterator[Stay]:
        for place, (node, ends) in enumerate(zip(self.graph.nodes, self.ends, strict=True)):
            if node.op == "Transpose" and place in ends and None not in ends and node.output.type:
                yield Stay(place, 2 * node.output.type.nbytes, 1)
            if self.penalty_bytes and place in ends and role(node, self.order) is Role.IMAGES:
                yield Stay(place, self.penalty_bytes, 0)

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """Every value that can be in either order."""
        makers: dict[str, Vertex] = {}
        readers: dict[str, set[Vertex]] = {value.name: {"file"} for value in self.graph.outputs}
        for node, (reads, writes) in zip(self.graph.nodes, self.ends, strict=True):
            makers.update((value.name, writes) for value in node.results)
            as_data = {value.name for value in data(node)}
            for name in {value.name for value in node.uses}:
                end = reads if name in as_data else "file"
                if end is not None:
                    readers.setdefault(name, set()).add(end)
        values = (*self.graph.inputs, *(value for node in self.graph.nodes for value in node.results))
        return tuple(
            Move(value, makers.get(value.name, "file"), frozenset(readers.get(value.name, ())))
            for value in values
            if self.order.moves(value)
        )

    def solve(self) -> frozenset[int]:
        """The nodes that are in the machine's order: least bytes, then fewest transforms, then fewest such nodes."""
        cut = minimum_cut(self._edges(), "hardware", "file")
        return frozenset(vertex for vertex in cut.source_side if isinstance(vertex, int))

    def _edges(self) -> Iterator[Edge]:
        """What is cut where the first of two vertices is in the machine's order and the second is not. A capacity is
        a number of bytes and, in its last digits, of transforms."""
        scale = len(self.moves) * 2 + len(self.stays) + 1
        never = scale * (sum(m.nbytes for m in self.moves) * 2 + sum(s.nbytes for s in self.stays) + 1)
        for stay in self.stays:
            yield "hardware", stay.vertex, stay.nbytes * scale + stay.transforms
        for move in self.moves:
            weight, name = move.nbytes * scale + 1, move.value.name
            wants, leaves = ("wants", name), ("leaves", name)
            yield wants, move.maker, weight  # one reader in the machine's order makes "wants" be there, too
            yield move.maker, leaves, weight  # one reader in the file's order makes "leaves" be there
            for reader in move.readers:
                yield reader, wants, never
                yield leaves, reader, never

    def crossing(self, hardware: frozenset[int]) -> tuple[Move, ...]:
        """The values that cross when these nodes are in the machine's order."""
        inside = {"hardware", *hardware}
        return tuple(m for m in self.moves if any((r in inside) != (m.maker in inside) for r in m.readers))

    def stayed(self, hardware: frozenset[int]) -> tuple[Stay, ...]:
        return tuple(stay for stay in self.stays if stay.vertex not in hardware)
