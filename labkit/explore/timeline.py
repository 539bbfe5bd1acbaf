"""Lesson 05: the time machine. The steps of an optimisation, each as a graph, a diff and a measure that fell.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.errors import LabError
from labkit.explore.drawing import SIGNS, Box, Drawing, drawing, edges, key, places
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.passes import measures
from labkit.passes.pipeline import MACHINE_PASSES, MEASURES, PASSES, optimize
from labkit.passes.report import Report, Step
from labkit.text import node_text
from labkit.units import format_bytes

if TYPE_CHECKING:
    from labkit.explore.panel import HardwareState
    from labkit.explore.timeline_view import TimelineView

CHOICES = (*PASSES, *(name for name in MACHINE_PASSES if name in MEASURES))
PLACES = ("first", "second", "third", "fourth", "fifth", "sixth")
ORDER = ("no-ops", "fold", "affine", "share", "dead")

# A block in which each pass has something to do, and stands in the way of another: an Identity hides the Conv from the
# BatchNormalization, a sum of constants is its variance, a dead branch reads the Conv a second time.
_TEXT = """block (float[1, 4, 8, 8] x) => (float[1, 4, 6, 6] y) {
  c = Conv(x, w)
  i = Identity(c)
  v = Add(variance, spread)
  n = BatchNormalization(i, scale, shift, mean, v)
  r = Relu(n)
  t = Relu(n)
  y = Add(r, t)
  d = Sigmoid(c)
  e = Exp(d)
}"""
_SHAPES = {"w": (4, 4, 3, 3)} | dict.fromkeys(("variance", "spread", "scale", "shift", "mean"), (4,))


@cache
def example() -> Graph:
    """The block, with constants that are the same every time."""
    import onnx

    from labkit.onnx_io import from_model

    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {_TEXT}')
    rng = np.random.default_rng(6)
    for name, shape in _SHAPES.items():
        array = rng.uniform(0.5, 1.5, shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return from_model(model)


@dataclass(frozen=True)
class TimelineState:
    """An optimisation with some passes in some order, after ``step`` of its steps; 0 is the original."""

    order: tuple[str, ...]
    report: Report
    step: int

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The original and the graph after each step."""
        return self.report.original, *(step.graph for step in self.report.steps)

    @property
    def graph(self) -> Graph:
        """The graph after this step."""
        return self.graphs[self.step]

    @property
    def before(self) -> Graph:
        """The graph before this step; of the original it is the original."""
        return self.graphs[max(0, self.step - 1)]

    @property
    def made(self) -> Step | None:
        """The step that made this graph; None for the original."""
        return self.report.steps[self.step - 1] if self.step else None

    @property
    def rounds(self) -> int:
        """Rounds that changed something."""
        return max((step.round for step in self.report.steps), default=0)

    @property
    def after_one_round(self) -> Graph:
        """What a single sweep of these passes leaves."""
        return next((step.graph for step in reversed(self.report.steps) if step.round == 1), self.report.original)

    @property
    def orphans(self) -> tuple[str, ...]:
        """Constants that are in this graph though nothing reads them."""
        return orphans(self.graph)

    @property
    def diff(self) -> str:
        """What this step changed, as lines; for the original, nothing."""
        return self.report.diff(self.step - 1) if self.step else "(the original)"

    @property
    def measure(self) -> str:
        """How the step changed what its pass promises to make smaller."""
        if self.made is None:
            return "no pass has run yet"
        return measures.described(MEASURES[self.made.name], self.before, self.graph)

    @cached_property
    def marks(self) -> dict[str, str]:
        """new, gone, changed or kept, for each node of the graph before and after, by its key."""
        old = {key(node): node_text(node) for node in self.before.nodes}
        new = {key(node): node_text(node) for node in self.graph.nodes}
        found = {name: "gone" for name in old if name not in new}
        for name, text in new.items():
            found[name] = "new" if name not in old else "kept" if old[name] == text else "changed"
        return found

    @property
    def constants(self) -> dict[str, str]:
        """gone, new, dead (an orphan) or kept, for each constant before and after."""
        lonely = set(self.orphans)
        found = {name: "gone" for name in self.before.constants if name not in self.graph.constants}
        for name in self.graph.constants:
            is_new = name not in self.before.constants
            found[name] = "dead" if name in lonely else "new" if is_new else "kept"
        return found

    @property
    def drawing(self) -> Drawing:
        """The graph after the step, and what the step took away; every box stays where it is over all steps."""
        at = places(self.graphs)
        nodes = {key(node): node for graph in (self.before, self.graph) for node in graph.nodes}
        boxes = [Box(v.name, v.name, *at[v.name], "kept", True) for v in self.graph.inputs]
        boxes += [Box(node.op, name, *at[name], self.marks[name]) for name, node in nodes.items()]
        boxes += [Box(v.name, f"{v.name}→", *at[f"{v.name}→"], "kept", True) for v in self.graph.outputs]
        arrows = edges(self.before) | edges(self.graph)
        gone = edges(self.before).keys() - edges(self.graph).keys()
        stay = {one for one, mark in self.marks.items() if mark != "gone"}
        shown = [pair for pair in arrows if pair not in gone or not stay.issuperset(pair)]
        return drawing(boxes, shown, self.constants, at)

    @property
    def chips(self) -> tuple[str, ...]:
        """A word for each graph of the timeline."""
        return "original", *(f"{step.name} {step.round}" for step in self.report.steps)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The state in words and numbers."""
        last, made, costs = len(self.report.steps), self.made, self.report.costs[self.step]
        held = sum(array.nbytes for array in self.graph.constants.values())
        first, rest = len(self.after_one_round.nodes), len(self.report.graph.nodes)
        return (
            (f"Step {self.step} of {last}", f"{made.name}, round {made.round}" if made else "the original"),
            ("Nodes", f"{len(self.before.nodes)} → {len(self.graph.nodes)}"),
            ("Constants", f"{len(self.graph.constants)}, {format_bytes(held)}"),
            ("Orphans among them", ", ".join(self.orphans) or "none"),
            ("DRAM, FLOP", f"{format_bytes(costs.dram_bytes)}, {costs.flops:,} FLOP"),
            ("Measure of the pass", self.measure),
            ("Nodes after round 1, and at rest", f"{first}, and {rest} after round {self.rounds}"),
        )

    @property
    def sentence(self) -> str:
        """The state in one line."""
        said = ". ".join(f"{label}: {words}" for label, words in self.facts)
        return f"Order: {', '.join(self.order) or 'no pass'}. {said}."

    @property
    def text(self) -> str:
        """The state, the diff, and the graph a line a node, with + or ~ for what this step made or changed."""
        lines = [f"{SIGNS[self.marks[key(node)]]} {node_text(node)}" for node in self.graph.nodes]
        return "\n".join([self.sentence, "", "diff of this step:", self.diff, "", "graph:", *lines])


def orphans(graph: Graph) -> tuple[str, ...]:
    """Constants that no node reads, and that are no output or default of an input.

    >>> orphans(example())
    ()
    """
    return tuple(name for name in graph.constants if not graph.readers.get(name) and name not in graph.input_names)


def data(
    graph: Graph | None = None,
    order: Sequence[str] = ORDER,
    step: int = 0,
    hardware: Hardware | None = None,
) -> TimelineState:
    """Optimise a graph (a small block unless given) with these passes in this order until it rests; show one step.

    Raises LabError for a pass that is none or stands twice, and a step that does not exist.
    """
    machine = hardware or Hardware.preset(Hardware.presets()[0])
    if twice := [name for name, times in Counter(order).items() if times > 1]:
        raise LabError(f"{twice[0]!r} stands twice in the order: a round runs each pass once")
    report = optimize(example() if graph is None else graph, hardware=machine, passes=order)
    if not 0 <= step <= len(report.steps):
        raise LabError(f"step {step}: there are {len(report.steps)}; 0 is the original")
    return TimelineState(tuple(order), report, step)


def show(
    state: HardwareState | None = None, graph: Graph | None = None, order: Sequence[str] = ORDER, **settings: Any
) -> TimelineView:
    """The live time machine on the machine of a panel: a menu for each place in the order, a slider over the steps.

    Raises LabError for an order that the menus cannot show.
    """
    from labkit.explore.panel import HardwareState
    from labkit.explore.timeline_view import TimelineView

    unknown = [name for name in order if name not in CHOICES]
    if unknown or len(order) > len(PLACES):
        what = f"no pass {unknown[0]!r}" if unknown else f"{len(order)} passes"
        raise LabError(f"{what}: choose up to {len(PLACES)} of {', '.join(CHOICES)}")
    whole = example() if graph is None else graph
    return TimelineView(whole, order, HardwareState() if state is None else state).set(**settings)
