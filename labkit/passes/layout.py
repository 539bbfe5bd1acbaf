"""Layout: which tensors lie in the machine's order of axes, decided for the whole graph at once (spec §2.4).

A kernel on images exists on a machine in one order. A value that somebody wants in the other has to be transformed,
which moves it twice. Where transforms stand is open: around each such kernel, at the borders of the graph, or wherever
they move the fewest bytes, which is a minimum cut (see layout_cut).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from labkit.errors import LabError
from labkit.graph import Graph, Node
from labkit.hardware import Hardware
from labkit.passes.layout_cut import Problem, Side
from labkit.passes.layout_kernels import IMAGES, Role, data, is_settled, role
from labkit.passes.layout_order import FILE, Order
from labkit.passes.layout_rewrite import rewritten
from labkit.passes.rewriting import Refusal
from labkit.units import format_bytes

MINIMUM_CUT = "minimum cut"
# The kernels that a strategy puts on a side beforehand. Without a penalty, kernels on images have but one.
_PINS: Mapping[str, Mapping[Role, Side]] = {
    "per operator": {Role.IMAGES: "hardware", Role.ADAPTABLE: "file"},
    "one layout everywhere": {Role.IMAGES: "hardware", Role.ADAPTABLE: "hardware"},
    MINIMUM_CUT: {},
}


@dataclass(frozen=True, eq=False)
class LayoutPlan:
    """What a strategy makes of a graph: ``inside`` are the positions of the nodes that it puts in the machine's order,
    beside those that it has to."""

    name: str
    problem: Problem
    inside: frozenset[int]

    @property
    def transforms(self) -> int:
        """Transforms between the two orders, those that the file had included as far as they stay."""
        stayed = sum(stay.transforms for stay in self.problem.stayed(self.inside))
        return len(self.problem.crossing(self.inside)) + stayed

    @property
    def dram_bytes(self) -> int:
        """What the transforms read and write."""
        crossing = sum(move.nbytes for move in self.problem.crossing(self.inside))
        return crossing + sum(stay.nbytes for stay in self.problem.stayed(self.inside) if stay.transforms)

    @property
    def penalty_bytes(self) -> int:
        """What kernels on images cost extra in the file's order."""
        return sum(stay.nbytes for stay in self.problem.stayed(self.inside) if not stay.transforms)

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The order of each kernel that works on images or could be had in both orders, by its first output."""
        order = self.problem.order
        inside = {"hardware", *self.inside}
        nodes = zip(self.problem.graph.nodes, self.problem.ends, strict=True)
        kernels = ((node, end) for node, (_, end) in nodes if role(node, order) is not Role.BARRIER)
        return {node.results[0].name: order.name if end in inside else FILE for node, end in kernels}

    def apply(self) -> Graph:
        """The graph with these kernels in these orders; the very same one when no kernel on images changes its order.

        (Where it is only about Transposes of the file, the rules about Transposes have done what there is to do.)
        """
        graph, order = self.problem.graph, self.problem.order
        on_images = (node.results[0].name for node in graph.nodes if role(node, order) is Role.IMAGES)
        if all(self.labels[name] == FILE for name in on_images):
            return graph
        return rewritten(self.problem, self.inside)

    def __str__(self) -> str:
        return f"{self.name}: {self.transforms} transforms, {format_bytes(self.dram_bytes)}"


def strategies(graph: Graph, hardware: Hardware, penalty_bytes: int | None = None) -> tuple[LayoutPlan, ...]:
    """Three ways to lay out a graph: each operator for itself, one layout wherever it goes, and the minimum cut.

    With ``penalty_bytes`` a kernel on images could run in the file's order, too, as slowly as if it moved so many bytes
    more; without, it cannot. LabError for a negative penalty and for a layout that does not order N, C, H and W.
    """
    return tuple(_plan(name, graph, hardware, penalty_bytes) for name in _PINS)


def _plan(name: str, graph: Graph, hardware: Hardware, penalty_bytes: int | None = None) -> LayoutPlan:
    if penalty_bytes is not None and penalty_bytes < 0:
        raise LabError(f"a penalty of {penalty_bytes} bytes: it must be 0 or more")
    pins = _PINS[name] if penalty_bytes is not None else {Role.IMAGES: "hardware", **_PINS[name]}
    problem = Problem(graph, Order(hardware.layout), pins, penalty_bytes or 0)
    return LayoutPlan(name, problem, problem.solve())


@dataclass(frozen=True)
class ConvertLayout:
    """The pass: kernels on images in the machine's order, transforms where they move the fewest bytes."""

    hardware: Hardware
    strategy: str = MINIMUM_CUT

    def __post_init__(self) -> None:
        if self.strategy not in _PINS:
            raise LabError(f"no strategy {self.strategy!r}; there are: {', '.join(_PINS)}")

    def __call__(self, graph: Graph) -> Graph:
        return _plan(self.strategy, graph, self.hardware).apply()

    def refusals(self, graph: Graph) -> Iterator[Refusal]:
        """The kernels that stay in the file's order, and the numbers that say why."""
        plan = _plan(self.strategy, graph, self.hardware)
        order = plan.problem.order
        for place, node in enumerate(graph.nodes):
            kind = role(node, order)
            if kind is Role.BARRIER and (why := _unsuited(node, order)):
                yield Refusal("no such order", why, f"layout {order.name}", node.label)
            if kind is Role.ADAPTABLE and (extra := _extra_bytes(plan, place)):
                why = f"in {order.name} its transforms would move {format_bytes(extra)} more"
                yield Refusal("bytes", why, f"layout {order.name}", node.label)


def _unsuited(node: Node, order: Order) -> str:
    """Why a kernel on images cannot be had in this order; nothing for other kernels, and for those that are."""
    if order.is_file or is_settled(node) or not any(step.op in IMAGES and not step.domain for step in node.steps):
        return ""
    return next(filter(None, (order.why_not(value) for value in (*data(node)[:1], *node.results[:1]))), "")


def _extra_bytes(plan: LayoutPlan, place: int) -> int:
    """What transforms would move more if one kernel alone left the order of the file; 0 for one that has left it."""
    return LayoutPlan(plan.name, plan.problem, plan.inside | {place}).dram_bytes - plan.dram_bytes
