"""Lesson 03's kernels on a graph: which operators a compiler may put into one kernel, which it does, and why not.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from labkit.costing import cost
from labkit.errors import LabError
from labkit.explore.blocks import GRAPHS, example
from labkit.explore.drawing import key, places, source
from labkit.graph import Graph, Node
from labkit.hardware import Hardware
from labkit.passes.fuse import Candidate
from labkit.passes.groups import groups
from labkit.passes.op_classes import OpClass, op_class
from labkit.roofline import RooflineEstimate
from labkit.units import KIB, format_bytes, format_seconds

if TYPE_CHECKING:
    from labkit.explore.grouping_view import GroupingView
    from labkit.explore.panel import HardwareState

POLICIES = {
    "none": "each operator alone",
    "best": "what moves the fewest bytes",
    "all": "all that may be one kernel",
}
SRAM_KIB = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 512, 1024)
SHORT = {"BatchNormalization": "BN", "GlobalAveragePool": "GlobalPool"}


class Kernel(NamedTuple):
    """Operators of one launch: what they move, infinitely much when they do not fit, and the SRAM they need."""

    nodes: tuple[Node, ...]
    dram_bytes: float
    working_set_bytes: int
    flops: int

    @property
    def name(self) -> str:
        return " ".join(SHORT.get(node.op, node.op) for node in self.nodes)


@lru_cache(maxsize=512)
def _candidates(name: str, sram_bytes: int) -> tuple[Candidate, ...]:
    """The groups of a graph, those of one operator too."""
    graph = example(name)
    return tuple(Candidate(nodes, graph, sram_bytes) for nodes in groups(graph))


@dataclass(frozen=True)
class GroupingState:
    """A graph as kernels on a machine, by one of three policies."""

    name: str
    policy: str
    sram_bytes: int
    hardware: Hardware

    @property
    def graph(self) -> Graph:
        return example(self.name)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The groups that may be one kernel, and operators that join nothing."""
        return _candidates(self.name, self.sram_bytes)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The launches, one after another, by the policy."""
        return self._kernels(self.policy)

    def _kernels(self, policy: str) -> tuple[Kernel, ...]:
        flops = {key(found.node): found.estimate.flops for found in cost(self.graph, self.hardware)}
        kernels = []
        for candidate in self.candidates:
            parts = candidate.parts if policy == "best" else (candidate.nodes,)
            for part in parts if policy != "none" else ((node,) for node in candidate.nodes):
                alone = Candidate(part, self.graph, self.sram_bytes)
                work = sum(flops[key(node)] for node in part)
                kernels.append(Kernel(part, alone.dram_bytes(part), alone.working_set_bytes, work))
        return tuple(kernels)

    @cached_property
    def totals(self) -> dict[str, float]:
        """The bytes of every policy; infinite when a kernel does not fit."""
        return {policy: sum(kernel.dram_bytes for kernel in self._kernels(policy)) for policy in POLICIES}

    @property
    def seconds(self) -> float:
        """By the roofline; infinite when a kernel does not fit."""
        return (
            inf if self.totals[self.policy] == inf else sum(self._estimate(kernel).seconds for kernel in self.kernels)
        )

    def _estimate(self, kernel: Kernel) -> RooflineEstimate:
        return RooflineEstimate(kernel.flops, int(kernel.dram_bytes), 1, self.hardware)

    @cached_property
    def number(self) -> dict[str, int]:
        """The kernel of each operator, counted from 1."""
        return {key(node): i for i, kernel in enumerate(self.kernels, 1) for node in kernel.nodes}

    @property
    def cuts(self) -> tuple[tuple[str, str, str], ...]:
        """Every edge that goes through DRAM: who makes, who reads, and why they are not one kernel."""
        pairs = dict.fromkeys(self._edges())
        return tuple((a, b, self._why(a, b)) for a, b in pairs if self.number[a] != self.number[b])

    def _edges(self) -> Iterator[tuple[str, str]]:
        for node in self.graph.nodes:
            for value in node.uses:
                if value.name in self.graph.producers:
                    yield source(self.graph, value.name), key(node)

    def _why(self, maker: str, reader: str) -> str:
        nodes = {key(node): node for node in self.graph.nodes}
        group = {key(node): c.nodes for c in self.candidates for node in c.nodes}
        one, two = group[maker], group[reader]
        if one is two:
            return "nobody fuses" if self.policy == "none" else f"SRAM of {format_bytes(self.sram_bytes)}"
        return next(words for holds, words in _REASONS if holds(nodes[reader], one, two))

    # ---- in words

    @property
    def table(self) -> str:
        """A line a kernel."""
        return "\n".join(
            f"{i} {kernel.name}: {_bytes(kernel.dram_bytes)}, room {format_bytes(kernel.working_set_bytes)}"
            for i, kernel in enumerate(self.kernels, 1)
        )

    @property
    def why(self) -> str:
        """A line for each edge that goes through DRAM."""
        cuts = [f"{maker} → {reader}: {words}" for maker, reader, words in self.cuts]
        return "\n".join(["Through DRAM, because:", *(cuts or ["nothing has to"])])

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The state in words and numbers."""
        moved = self.totals[self.policy]
        time = "does not fit" if moved == inf else f"{format_seconds(self.seconds)} on {self.hardware.name}"
        return (
            (f"SRAM {format_bytes(self.sram_bytes)}", POLICIES[self.policy]),
            ("Kernels", f"{len(self.kernels)} for {len(self.graph.nodes)} operators"),
            ("DRAM traffic", _bytes(moved)),
            ("none · best · all", " · ".join(_bytes(total) for total in self.totals.values())),
            ("Time, launches included", time),
        )

    @property
    def sentence(self) -> str:
        """The state in one line."""
        return f"{self.name}. " + ". ".join(f"{label}: {words}" for label, words in self.facts) + "."

    @property
    def text(self) -> str:
        return f"{self.sentence}\n\n{self.table}\n\n{self.why}"

    @property
    def places(self) -> dict[str, tuple[int, int]]:
        """(column, row) of each operator and of the graph's ends."""
        return _places(self.name)


@cache
def _places(name: str) -> dict[str, tuple[int, int]]:
    return places([example(name)])


def _bytes(count: float) -> str:
    return "does not fit" if count == inf else format_bytes(int(count))


# ---- why two groups are not one, tried in this order

Nodes = tuple[Node, ...]


def _has(nodes: Nodes, kind: OpClass) -> bool:
    return any(op_class(node) is kind for node in nodes)


def _elements(nodes: Nodes) -> Any:
    return nodes[-1].output.shape


_REASONS: tuple[tuple[Callable[[Node, Nodes, Nodes], bool], str], ...] = (
    (lambda reader, one, two: _has((*one, *two), OpClass.OPAQUE), "opaque: it reads elements from anywhere"),
    (lambda reader, one, two: op_class(reader) is OpClass.ANCHOR, "an anchor reads more than the tile at hand"),
    (lambda reader, one, two: _has(one, OpClass.ANCHOR) and _has(two, OpClass.ANCHOR), "a kernel has one anchor"),
    (lambda reader, one, two: _has(two, OpClass.REDUCTION), "a reduction needs a whole row"),
    (lambda reader, one, two: _elements(one) != _elements(two), "other elements: not one to one"),
    (lambda reader, one, two: True, "detour: another kernel in between"),
)


def data(
    name: str = GRAPHS[0], policy: str = "best", sram_kib: int = 48, hardware: Hardware | None = None
) -> GroupingState:
    """One of the graphs as kernels in an SRAM of ``sram_kib`` KiB; of the machine only the rates and the launch count.

    Raises LabError for a graph or a policy that is none, and an SRAM of nothing.

    >>> [kernel.name for kernel in data().kernels]
    ['Conv BN Relu', 'Conv BN Add Relu']
    """
    if policy not in POLICIES:
        raise LabError(f"no policy {policy!r}; there are: {', '.join(POLICIES)}")
    if sram_kib < 1:
        raise LabError(f"SRAM of {sram_kib} KiB: it must be at least 1")
    example(name)
    return GroupingState(name, policy, sram_kib * KIB, hardware or Hardware.preset(Hardware.presets()[0]))


def show(state: HardwareState | None = None, **settings: Any) -> GroupingView:
    """The live picture, with an SRAM of its own; rates and launch are those of the panel's machine."""
    from labkit.explore.grouping_view import GroupingView
    from labkit.explore.panel import HardwareState

    return GroupingView(HardwareState() if state is None else state).set(**settings)
