"""Fusion: the operators of a group become one kernel, where the machine's SRAM lets it (spec §4).

Which nodes may form a kernel at all, groups.py says. Whether they should depends on tiling: the operands that an
epilogue reads take room from the tiles, and a kernel with smaller tiles loads its inputs more often. So each group is
planned as one kernel at its best tile and, unless nothing could beat that, weighed against every way to cut it into
kernels that run one after another. The fewest DRAM bytes win, re-loads included, then the fewest kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Literal

from labkit.bodies import fused_node, inline, kernel_name, own_name
from labkit.errors import LabError
from labkit.graph import Graph, Node, Value
from labkit.hardware import Hardware
from labkit.passes.groups import groups
from labkit.passes.rewriting import Refusal
from labkit.planning import Plan, plan_kernel
from labkit.units import format_bytes

Nodes = tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A group that may be one kernel, and what becomes of it on a machine: ``parts`` are the kernels that it forms.

    Sizes are in bytes; traffic is that of the best tiles, re-loads included.
    """

    nodes: Nodes
    graph: Graph
    sram_bytes: int

    @property
    def verdict(self) -> Literal["fuse", "split", "refuse"]:
        """``fuse``: one kernel; ``split``: several, some of them fused; ``refuse``: each operator stays alone."""
        if len(self.parts) == 1:
            return "fuse"
        return "split" if len(self.parts) < len(self.nodes) else "refuse"

    @cached_property
    def parts(self) -> tuple[Nodes, ...]:
        """The kernels that move the fewest bytes together; of equals, the fewest kernels."""
        if len(self.nodes) == 1 or self.dram_bytes(self.nodes) <= self._least_if_cut:
            return (self.nodes,)
        best: list[tuple[float, int, tuple[Nodes, ...]]] = [(0, 0, ())]  # of the first so many nodes
        for end in range(1, len(self.nodes) + 1):
            options = []
            for start in range(end):
                part, (moved, kernels, parts) = self.nodes[start:end], best[start]
                if _is_connected(part):
                    options.append((moved + self.dram_bytes(part), kernels + 1, (*parts, part)))
            best.append(min(options, key=lambda option: option[:2]))
        return best[-1][2]

    @property
    def saved_bytes(self) -> int:
        """Traffic of the operators one by one, less that of ``parts``."""
        apart = sum(self.dram_bytes((node,)) for node in self.nodes)
        return int(apart - sum(map(self.dram_bytes, self.parts)))

    @property
    def working_set_bytes(self) -> int:
        """SRAM of all in one kernel: at its best tile, or at the smallest one when that is too much already."""
        plan = self._plan(self.nodes)
        return plan.working_set_bytes if plan else 0

    @property
    def why(self) -> str:
        """The verdict in words, with its numbers."""
        one, room = self.dram_bytes(self.nodes), format_bytes(self.sram_bytes)
        if self.verdict == "fuse":
            needed = format_bytes(self.working_set_bytes)
            return f"one kernel moves {format_bytes(self.saved_bytes)} less; it needs {needed} of SRAM"
        if one == inf:
            return f"its smallest tiles need {format_bytes(self.working_set_bytes)}; there are {room} of SRAM"
        apart = f"{len(self.parts)} kernels move {format_bytes(int(sum(map(self.dram_bytes, self.parts))))}"
        return f"within {room} of SRAM one kernel would move {format_bytes(int(one))}, {apart}"

    def dram_bytes(self, part: Nodes) -> float:
        """Traffic of some of the nodes as one kernel, infinite when not even its smallest tiles fit.

        An operator alone counts even then: nobody can make it smaller, so it decides nothing.
        """
        plan = self._plan(part)
        return plan.dram_bytes if plan and (plan.fits or len(part) == 1) else inf

    def reads(self, part: Nodes) -> tuple[Value, ...]:
        """The distinct values that a kernel of these nodes reads from DRAM."""
        made = {value.name for node in part for value in node.results}
        return tuple({v.name: v for node in part for v in node.uses if v.name not in made}.values())

    def makes(self, part: Nodes) -> tuple[Value, ...]:
        """The values that leave such a kernel: those read by other nodes, and outputs of the graph."""
        inside, users, outputs = set(part), self.graph.users, self.graph.output_names
        made = (value for node in part for value in node.results)
        return tuple(v for v in made if v.name in outputs or not inside.issuperset(users.get(v.name, ())))

    def _plan(self, part: Nodes) -> Plan | None:
        """The plan of some of the nodes as one kernel; None when their elements do not go together after all."""
        try:
            return plan_kernel(part, self.reads(part), self.makes(part), self.sram_bytes, opset=self.graph.opset)
        except LabError:
            return None

    @property
    def _least_if_cut(self) -> int:
        """What two or more kernels move at least: everything once, and one value that goes to DRAM and comes back."""
        leave = {value.name for value in self.makes(self.nodes)}
        inside = [v for node in self.nodes for v in node.results if v.name in self._read_inside]
        once = sum(map(_nbytes, (*self.reads(self.nodes), *self.makes(self.nodes))))
        return once + min(_nbytes(value) * (1 if value.name in leave else 2) for value in inside)

    @cached_property
    def _read_inside(self) -> frozenset[str]:
        return frozenset(value.name for node in self.nodes for value in node.uses)


def candidates(graph: Graph, hardware: Hardware) -> tuple[Candidate, ...]:
    """Every group of two or more operators that may be one kernel, in running order, with its verdict.

    Fused nodes are opened first: the question is asked anew, for this machine.
    """
    plain = inline(graph)
    return tuple(Candidate(nodes, plain, hardware.sram_bytes) for nodes in groups(plain) if len(nodes) > 1)


@dataclass(frozen=True)
class Fuse:
    """The pass: each group as the kernels that move the fewest bytes on this machine. What is fused stays fused."""

    hardware: Hardware

    def __call__(self, graph: Graph) -> Graph:
        found = [Candidate(nodes, graph, self.hardware.sram_bytes) for nodes in groups(graph)]
        if all(len(part) == 1 for candidate in found for part in candidate.parts):
            return graph
        taken = {node.op for node in graph.nodes if node.body}
        kernels = ((candidate, part) for candidate in found for part in candidate.parts)
        nodes = tuple(_kernel(*kernel, place, taken) for place, kernel in enumerate(kernels))
        return replace(graph, nodes=nodes)

    def refusals(self, graph: Graph) -> Iterator[Refusal]:
        """The groups that are not one kernel on this machine, and the numbers that say why."""
        for candidate in candidates(graph, self.hardware):
            if candidate.verdict != "fuse":
                yield Refusal("SRAM", candidate.why, f"fuse {kernel_name(candidate.nodes)}", candidate.nodes[0].label)


def _kernel(candidate: Candidate, part: Nodes, place: int, taken: set[str]) -> Node:
    """One node for a kernel, named after its operators and its place."""
    if len(part) == 1:
        return part[0]
    op = own_name(kernel_name(part), place, taken)
    return fused_node(part, candidate.makes(part), op, candidate.graph.opsets)


def _is_connected(part: Sequence[Node]) -> bool:
    """Whether values of their own hold the nodes together."""
    reached, waiting = {part[0]}, [part[0]]
    while waiting:
        node = waiting.pop()
        near = [other for other in part if other not in reached and (_feeds(node, other) or _feeds(other, node))]
        reached.update(near)
        waiting += near
    return len(reached) == len(part)


def _feeds(one: Node, other: Node) -> bool:
    return any(value.name in {used.name for used in other.uses} for value in one.results)


def _nbytes(value: Value) -> int:
    return value.type.nbytes if value.type else 0
