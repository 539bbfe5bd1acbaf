"""Lesson 05: reachability. From the chosen outputs a walk goes backwards and marks what is live; the rest is dead.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.costing import Cost, cost
from labkit.errors import LabError
from labkit.explore.drawing import MOST_NODES, SIGNS, Box, Drawing, drawing, edges, key, places
from labkit.graph import Graph, Node, Value
from labkit.hardware import Hardware
from labkit.passes.dead import eliminate_dead
from labkit.text import node_text
from labkit.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from labkit.explore.panel import HardwareState
    from labkit.explore.reach_view import ReachView

# A classifier as an exporter may leave it: a second head that only training needed, and a probe for debugging.
_TEXT = """network (float[1, 3, 16, 16] image) => (float[1, 10, 1, 1] classes) {
  stem = Conv(image, w1)
  act = Relu(stem)
  probe = ReduceMean(act)
  pool = MaxPool <kernel_shape: ints = [2, 2], strides: ints = [2, 2]> (act)
  deep = Conv(pool, w2)
  mean = GlobalAveragePool(deep)
  classes = Conv(mean, w3)
  side = Conv(pool, w4)
  bent = Relu(side)
  sum = GlobalAveragePool(bent)
  training = Conv(sum, w5)
}"""
_WEIGHTS = {"w1": (8, 3, 3, 3), "w2": (16, 8, 3, 3), "w3": (10, 16, 1, 1), "w4": (32, 8, 3, 3), "w5": (10, 32, 1, 1)}


@cache
def example() -> Graph:
    """The classifier with a training head and a probe."""
    import onnx

    from labkit.onnx_io import from_model

    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {_TEXT}')
    rng = np.random.default_rng(5)
    for name, shape in _WEIGHTS.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(rng.random(shape, dtype=np.float32), name))
    return from_model(model)


def candidates(graph: Graph) -> tuple[Value, ...]:
    """What can be an output: the graph's own outputs, and every result that nobody reads."""
    loose = (v for node in graph.nodes for v in node.results if v.name not in graph.users)
    return tuple({value.name: value for value in (*graph.outputs, *loose)}.values())


@dataclass(frozen=True)
class ReachState:
    """A walk over a graph that is asked for ``outputs``, after it has looked at ``looked`` nodes, the last first."""

    graph: Graph
    outputs: tuple[Value, ...]
    looked: int
    hardware: Hardware

    @property
    def path(self) -> tuple[Node, ...]:
        """The nodes looked at, in the order of the walk."""
        return tuple(reversed(self.graph.nodes))[: self.looked]

    @property
    def now(self) -> Node | None:
        """The node the walk looked at last."""
        return self.path[-1] if self.path else None

    @cached_property
    def _walk(self) -> tuple[dict[str, str], frozenset[str]]:
        """The mark of each node looked at, and the names known to be wanted so far."""
        wanted = {value.name for value in self.outputs}
        found = {}
        for node in self.path:
            is_live = any(value.name in wanted for value in node.results)
            found[key(node)] = "live" if is_live else "dead"
            if is_live:
                wanted.update(value.name for value in node.uses)
        return found, frozenset(wanted)

    @property
    def marks(self) -> dict[str, str]:
        """live, dead or unseen, for every node by its key."""
        return {key(node): self._walk[0].get(key(node), "unseen") for node in self.graph.nodes}

    @cached_property
    def constants(self) -> dict[str, str]:
        """live, dead or unseen, for every constant: dead is sure only when all nodes were looked at."""
        otherwise = "dead" if self.looked == len(self.graph.nodes) else "unseen"
        return {name: "live" if name in self._walk[1] else otherwise for name in self.graph.constants}

    @cached_property
    def costs(self) -> tuple[Cost, Cost]:
        """With everything run, and with the dead nodes gone."""
        return cost(self.graph, self.hardware), cost(self.pruned, self.hardware)

    @cached_property
    def pruned(self) -> Graph:
        """What the pass leaves of the graph when it is asked for these outputs."""
        return eliminate_dead(replace(self.graph, outputs=self.outputs))

    @property
    def drawing(self) -> Drawing:
        """The graph, inputs above and possible outputs below."""
        ends = candidates(self.graph)
        whole = replace(self.graph, outputs=ends)
        at = places([whole])
        chosen = set(self.outputs)
        boxes = [Box(v.name, v.name, *at[v.name], self._input(v), True) for v in self.graph.inputs]
        for node in self.graph.nodes:
            name = key(node)
            boxes.append(Box(node.op, name, *at[name], self.marks[name], False, node is self.now))
        for value in ends:
            tick = "live" if value in chosen else "dead"
            boxes.append(Box(value.name, f"{value.name}→", *at[f"{value.name}→"], tick, True))
        return drawing(boxes, edges(whole), self.constants, at)

    def _input(self, value: Value) -> str:
        if value.name in self._walk[1]:
            return "live"
        return "dead" if self.looked == len(self.graph.nodes) else "unseen"

    @property
    def verdict(self) -> str:
        """What the walk says of the node it looks at, and why."""
        if self.now is None:
            return "nothing yet: the walk starts at the last node"
        name = key(self.now)
        if self.marks[name] == "dead":
            return f"{name} is dead: it is no chosen output, and nothing live reads it"
        read = [value.name for value in self.now.uses]
        return f"{name} is live, and so is what it reads: {', '.join(read)}"

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The state in words and numbers."""
        counts = [list(self.marks.values()).count(mark) for mark in ("live", "dead", "unseen")]
        orphans = [name for name, mark in self.constants.items() if mark == "dead"]
        before, after = self.costs
        return (
            ("Outputs", ", ".join(value.name for value in self.outputs) or "none"),
            (f"Looked at {self.looked} of {len(self.graph.nodes)} nodes", self.verdict),
            ("Nodes", f"{counts[0]} live, {counts[1]} dead, {counts[2]} not looked at"),
            ("Constants that nothing live reads", ", ".join(orphans) or "none known"),
            ("DRAM, all nodes → live ones", f"{format_bytes(before.dram_bytes)} → {format_bytes(after.dram_bytes)}"),
            (f"Time on {self.hardware.name}", f"{format_seconds(before.time_s)} → {format_seconds(after.time_s)}"),
        )

    @property
    def sentence(self) -> str:
        """The state in one line."""
        return ". ".join(f"{label}: {words}" for label, words in self.facts) + "."

    @property
    def text(self) -> str:
        """The state, and the graph a line a node: ● live, × dead, ? not looked at."""
        lines = [f"{SIGNS[self.marks[key(node)]]} {node_text(node)}" for node in self.graph.nodes]
        return "\n".join([self.sentence, "", *lines])


def data(
    graph: Graph | None = None,
    outputs: Sequence[str] | None = None,
    looked: int | None = None,
    hardware: Hardware | None = None,
) -> ReachState:
    """The walk from ``outputs`` (the graph's own unless given), after ``looked`` nodes (all unless given).

    Raises LabError for an output that nobody could ask for, a walk longer than the graph, and one too large to draw.
    """
    whole = example() if graph is None else graph
    if len(whole.nodes) > MOST_NODES:
        raise LabError(f"{len(whole.nodes)} nodes: a picture holds {MOST_NODES}")
    known = {value.name: value for value in candidates(whole)}
    names = [value.name for value in whole.outputs] if outputs is None else list(outputs)
    if unknown := [name for name in names if name not in known]:
        raise LabError(f"no output {unknown[0]!r}; there are: {', '.join(known)}")
    steps = len(whole.nodes) if looked is None else looked
    if not 0 <= steps <= len(whole.nodes):
        raise LabError(f"looked at {steps} nodes; the graph has {len(whole.nodes)}")
    machine = hardware or Hardware.preset(Hardware.presets()[0])
    return ReachState(whole, tuple(known[name] for name in known if name in names), steps, machine)


def show(state: HardwareState | None = None, graph: Graph | None = None, **settings: Any) -> ReachView:
    """The live walk on the machine of a panel: a box for each possible output, a slider for the walk."""
    from labkit.explore.panel import HardwareState
    from labkit.explore.reach_view import ReachView

    whole = example() if graph is None else graph
    return ReachView(whole, HardwareState() if state is None else state).set(**settings)
