"""Lesson 01's game: which kernels of a small graph work in NHWC, and which bytes the transposes between them move.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.errors import LabError
from labkit.explore.drawing import edges, key, places
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.passes.layout import LayoutPlan, strategies
from labkit.passes.layout_cut import Side
from labkit.units import format_bytes

if TYPE_CHECKING:
    from labkit.explore.placement_view import PlacementView

# Convolutions exist in NHWC only; Reshape, Flatten and Gemm take elements as the file has them, in NCHW.
_TEXT = """game (float[1,16,32,32] x) => (float[1,16,32,32] mask, float[1,10] scores) {
  norm = Mul(x, gain)
  rows = Reshape(norm, flat_shape)
  heat = Softmax(rows)
  table = Reshape(heat, image_shape)
  conv1 = Conv <pads = [1, 1, 1, 1]> (norm, w1)
  act = Relu(conv1)
  both = Concat <axis = 1> (act, table)
  mean = ReduceMean <axes = [2, 3], keepdims = 1> (both)
  list = Flatten(mean)
  scores = Gemm(list, w3)
  conv2 = Conv <pads = [1, 1, 1, 1]> (act, w2)
  sum = Add(conv2, norm)
  mask = Sigmoid(sum)
}"""
FREE = ("norm", "act", "both", "mean", "sum", "mask")


@cache
def example() -> Graph:
    """The graph of the game."""
    import onnx

    from labkit.onnx_io import from_model

    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {_TEXT}')
    arrays = {
        "gain": np.ones((1, 16, 1, 1), np.float32),
        "flat_shape": np.array([16, 1024]),
        "image_shape": np.array([1, 16, 32, 32]),
        "w1": np.zeros((32, 16, 3, 3), np.float32),
        "w2": np.zeros((16, 32, 3, 3), np.float32),
        "w3": np.zeros((48, 10), np.float32),
    }
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    return from_model(model)


@cache
def _plans() -> tuple[LayoutPlan, ...]:
    """What labkit's three strategies make of it, on a machine whose kernels want NHWC."""
    return strategies(example(), Hardware.preset("edge-npu"))


@dataclass(frozen=True)
class PlacementState:
    """A placement: ``inside`` are the free kernels that work in NHWC. ``compared``: the best one is shown, too."""

    inside: frozenset[str]
    compared: bool

    @cached_property
    def plan(self) -> LayoutPlan:
        """The placement, counted as the layout pass counts."""
        problem = _plans()[-1].problem
        at = {key(node): place for place, node in enumerate(problem.graph.nodes)}
        return LayoutPlan("yours", problem, frozenset(at[name] for name in self.inside))

    @property
    def best(self) -> LayoutPlan:
        """The minimum cut."""
        return _plans()[-1]

    @property
    def sides(self) -> dict[str, Side]:
        """The side of each node, by what it makes; inputs and outputs of the graph lie in the file's order."""
        inside = {"hardware", *self.plan.inside}
        problem = self.plan.problem
        pairs = zip(problem.graph.nodes, problem.ends, strict=True)
        return {key(node): "hardware" if end in inside else "file" for node, (_, end) in pairs}

    @property
    def transposes(self) -> tuple[tuple[str, int], ...]:
        """Each value that is transposed, once for all its readers, and the bytes that this moves."""
        return tuple((move.value.name, move.nbytes) for move in self.plan.problem.crossing(self.plan.inside))

    @property
    def crossings(self) -> frozenset[tuple[str, str]]:
        """The edges of the picture with a transpose on them."""
        moved, sides = {name for name, _ in self.transposes}, self.sides

        def side(name: str) -> Side:
            return sides.get(name, "file")

        return frozenset((a, b) for a, b in edges(example()) if a in moved and side(a) != side(b))

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The state in words and numbers."""
        listed = ", ".join(f"{name} {format_bytes(nbytes)}" for name, nbytes in self.transposes)
        mine = (
            ("In NHWC, of the free ones", ", ".join(name for name in FREE if name in self.inside) or "none"),
            ("Transposes", f"{self.plan.transforms}: {listed}" if listed else "0"),
            ("Bytes they move", format_bytes(self.plan.dram_bytes)),
        )
        if not self.compared:
            return (*mine, ("Best", "compare when you cannot do better"))
        others = ((plan.name, f"{plan.transforms}, {format_bytes(plan.dram_bytes)}") for plan in _plans())
        extra = self.plan.dram_bytes - self.best.dram_bytes
        return (*mine, *others, ("Yours moves", f"{format_bytes(extra)} more than the best" if extra else "no more"))

    @property
    def sentence(self) -> str:
        """The state in one line."""
        return ". ".join(f"{label}: {words}" for label, words in self.facts) + "."

    @property
    def text(self) -> str:
        """The state, and a line a node: N for NHWC, C for NCHW, and what is transposed on the way in."""
        lines = [self.sentence]
        for node in example().nodes:
            sign = "N" if self.sides[key(node)] == "hardware" else "C"
            crossed = [a for a, b in sorted(self.crossings) if b == key(node)]
            lines.append(f"{sign} {node.op} {key(node)}" + (f"  <- transpose {', '.join(crossed)}" if crossed else ""))
        return "\n".join(lines)

    @property
    def places(self) -> dict[str, tuple[int, int]]:
        """(column, row) of each node and of the graph's ends."""
        return places([example()])


def data(inside: Collection[str] = (), compared: bool = False) -> PlacementState:
    """The game with these free kernels in NHWC; LabError for a kernel that is not free.

    >>> data().plan.transforms, data(["act"]).plan.transforms
    (4, 3)
    """
    if wrong := sorted(set(inside) - set(FREE)):
        raise LabError(f"{wrong[0]!r} is not free to choose; these are: {', '.join(FREE)}")
    return PlacementState(frozenset(inside), compared)


def show(**settings: Any) -> PlacementView:
    """The live game: a switch for each free kernel, and one that compares; ``settings`` are where they start."""
    from labkit.explore.placement_view import PlacementView

    return PlacementView().set(**settings)
