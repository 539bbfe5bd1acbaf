"""Sigmoids of straight lines, spelled out by exporters as Add, Clip and Div, as the one operator that they are.

HardSigmoid(x) is max(0, min(1, αx + β)); HardSwish is x times the one with α = 1/6 and β = 1/2. Both round where the
spelt-out form does, at the scale of 1, though not always the same way: this is algebra, as for a Conv's scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labkit.graph import Node, TensorType, Value
from labkit.passes.ranges import clip_bounds
from labkit.passes.rewriting import Rewrite, Table, View

_SWISH = (np.float32(1 / 6), np.float32(0.5))
_ONE = (1 - 2**-25, 1 + 2**-24)  # what is 1 in single precision


@dataclass(frozen=True)
class Line:
    """slope · x + offset."""

    x: Value
    slope: float
    offset: float


def hard_sigmoid(view: View, node: Node) -> Rewrite | None:
    """A line cut to an interval, which a scale makes that from 0 to 1, is a HardSigmoid."""
    scale, cut = 1.0, node
    if node.op != "Clip":
        scaled = _line(view, node)
        found = None if scaled is None else _only(view, scaled.x)
        if scaled is None or found is None:
            return None
        scale, cut = scaled.slope, found
    line = _cut_line(view, cut, scale)
    return None if line is None else Rewrite((_gate(node.output, line, node.name),))


def scale_of_gated(view: View, node: Node) -> Rewrite | None:
    """(x · cut line) · scale is x · HardSigmoid, where the scale makes the line's interval that from 0 to 1."""
    scaled = _line(view, node)
    product = None if scaled is None else _only(view, scaled.x)
    if scaled is None or product is None or product.op != "Mul":
        return None
    for x, gate in (product.inputs, product.inputs[::-1]):
        cut = _only(view, gate)
        line = None if cut is None else _cut_line(view, cut, scaled.slope)
        if line is None or gate is None or gate.type is None:
            continue
        middle = Value(view.fresh(f"{gate.name}_scaled"), TensorType(gate.shape, gate.type.dtype))
        return Rewrite((_gate(middle, line), Node("Mul", (x, middle), node.outputs, name=node.name)))
    return None


def hard_swish(view: View, node: Node) -> Rewrite | None:
    """x times its HardSigmoid of a sixth and a half is HardSwish(x), an operator since opset 14."""
    for x, gate in (node.inputs, node.inputs[::-1]):
        producer = _only(view, gate)
        if x is None or producer is None or producer.op != "HardSigmoid" or producer.inputs[0] != x:
            continue
        given = (producer.attrs.get("alpha", 0.2), producer.attrs.get("beta", 0.5))
        if view.opset >= 14 and tuple(map(np.float32, given)) == _SWISH:
            return Rewrite((Node("HardSwish", (x,), node.outputs, name=node.name),))
    return None


def _cut_line(view: View, cut: Node, scale: float) -> Line | None:
    """A line of one or two steps, scaled, where the Clip behind it, scaled alike, cuts to the interval from 0 to 1."""
    bounds = clip_bounds(view, cut) if cut.op == "Clip" else None
    if bounds is None or scale <= 0 or bounds.low != 0 or not _ONE[0] <= bounds.high * scale <= _ONE[1]:
        return None
    if cut.output.dtype != "float32":
        return None  # α and β are kept in single precision
    outer = _behind(view, cut.inputs[0])
    inner = None if outer is None else _behind(view, outer.x)
    if outer is None:
        return None
    if inner is not None:
        outer = Line(inner.x, outer.slope * inner.slope, outer.slope * inner.offset + outer.offset)
    return Line(outer.x, scale * outer.slope, scale * outer.offset)


def _behind(view: View, value: Value | None) -> Line | None:
    node = _only(view, value)
    return None if node is None else _line(view, node)


def _line(view: View, node: Node) -> Line | None:
    """What a node does to its input when it adds one number to it, or multiplies by one, and enlarges nothing."""
    if node.op not in _STEPS:
        return None
    for x, other in (node.inputs, node.inputs[::-1]):
        array = view.constant(other)
        if x is None or array is None or array.size != 1 or x.shape is None or x.shape != node.output.shape:
            continue
        number = float(array.item())
        if x is node.inputs[1] and node.op in ("Sub", "Div"):
            return None  # the number stands first
        if not np.isfinite(number) or (node.op in ("Mul", "Div") and number == 0):
            return None
        return Line(x, *_STEPS[node.op](number))
    return None


_STEPS: dict[str, Callable[[float], tuple[float, float]]] = {
    "Add": lambda number: (1.0, number),
    "Sub": lambda number: (1.0, -number),
    "Mul": lambda number: (number, 0.0),
    "Div": lambda number: (1 / number, 0.0),
}


def _only(view: View, value: Value | None) -> Node | None:
    """The node that makes a value which nobody else reads."""
    node = view.producer(value)
    return node if value is not None and node is not None and not node.domain and view.readers(value) == 1 else None


def _gate(out: Value, line: Line, name: str = "") -> Node:
    return Node("HardSigmoid", (line.x,), (out,), {"alpha": line.slope, "beta": line.offset}, name=name)


GATES: Table = {
    "Clip": (hard_sigmoid,),
    "Mul": (hard_swish, hard_sigmoid, scale_of_gated),
    "Div": (hard_sigmoid, scale_of_gated),
}
