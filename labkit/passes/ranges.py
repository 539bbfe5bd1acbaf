"""Relu and Clip as what they are: intervals to which values are cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from labkit.graph import Array, Node, TensorType, Value
from labkit.passes.rewriting import Rewrite, View, forward
from labkit.schemas import default_attributes


@dataclass(frozen=True)
class Bounds:
    """min(max(x, low), high), with infinities where a side is open."""

    low: float
    high: float

    def cut(self, x: float) -> float:
        return min(max(x, self.low), self.high)

    def then(self, later: Bounds) -> Bounds:
        """Both cuts, one after the other, as a single one."""
        return Bounds(later.cut(self.cut(-inf)), later.cut(self.cut(inf)))


def clip_bounds(view: View, node: Node) -> Bounds | None:
    """The interval of a Relu or a Clip; None when a caller can change a bound, or a bound is NaN. Before opset 11 a
    bound that is left out is the largest float32, so that infinity is cut."""
    if node.op == "Relu":
        return Bounds(0, inf)
    if view.opset < 11:
        named = {**default_attributes("Clip", view.opset), **node.attrs}
        return Bounds(named["min"], named["max"])
    ends = []
    for index, open_end in ((1, -inf), (2, inf)):
        value = node.inputs[index] if index < len(node.inputs) else None
        array = view.constant(value)
        if value is not None and (array is None or array.size != 1):
            return None
        ends.append(open_end if array is None else array.ravel()[0].item())
    return None if any(end != end for end in ends) else Bounds(*ends)


_NOT_NEGATIVE = {"Abs", "Exp", "HardSigmoid", "ReduceL1", "ReduceL2", "ReduceSumSquare", "Relu", "Sigmoid", "Softmax",
                 "Softplus", "Sqrt"}  # fmt: skip
_SOME_OF_ITS_INPUT = {"Flatten", "Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}


def lowest(view: View, value: Value | None) -> float:
    """What no element of a value is below; −∞ where that is not known."""
    node = view.producer(value)
    while node is not None and not node.domain and node.op in _SOME_OF_ITS_INPUT:
        node = view.producer(node.inputs[0])
    if node is None or node.domain:
        return -inf
    if node.op == "Clip":
        bounds = clip_bounds(view, node)
        return -inf if bounds is None else bounds.cut(-inf)
    # Integers overflow: the lowest one has no positive counterpart, and a sum of squares may come out negative.
    is_integer = (node.output.dtype or "").startswith("int")
    return 0 if node.op == "Relu" or (node.op in _NOT_NEGATIVE and not is_integer) else -inf


def clip_node(view: View, x: Value | None, node: Node, bounds: Bounds) -> Rewrite | None:
    """The plainest node that cuts ``x`` to ``bounds``, in the place of ``node``."""
    if bounds == Bounds(-inf, inf):
        return forward(view, node, x)
    if bounds == Bounds(0, inf):
        return Rewrite((Node("Relu", (x,), node.outputs, name=node.name),))
    ends = {"min": bounds.low, "max": bounds.high}
    if view.opset < 11:
        usual = default_attributes("Clip", view.opset)
        named = {name: float(end) for name, end in ends.items() if end != usual[name]}
        return Rewrite((Node("Clip", (x,), node.outputs, named, name=node.name),))
    given = {name: float(end) for name, end in ends.items() if abs(end) != inf}
    arrays: dict[str, Array] = {}
    inputs: list[Value | None] = [x]
    for name in ends:
        if name in given:
            array = np.array(given[name], dtype=node.output.dtype)
            fresh = view.fresh(f"{node.output.name}_{name}")
            arrays[fresh] = array
            inputs.append(Value(fresh, TensorType.of(array)))
        elif name == "min":
            inputs.append(None)
    return Rewrite((replace(node, op="Clip", inputs=tuple(inputs), attrs={}),), arrays)
