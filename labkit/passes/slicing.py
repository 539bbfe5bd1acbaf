"""What a Slice takes of each axis, whatever its spelling: attributes or inputs, negative, too large, any step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from labkit.graph import Dim, Node, TensorType, Value
from labkit.passes.rewriting import Rewrite, View

_UNBOUNDED = 2**31 - 1  # exporters write the largest int32 or int64 for "to the end"


@dataclass(frozen=True)
class Span:
    """``start``, ``stop`` and ``step`` along an axis of ``size`` elements, normalised as by Python's slice.indices."""

    start: int
    stop: Dim
    step: int
    size: Dim

    @staticmethod
    def whole(size: Dim) -> Span:
        """All elements in order."""
        return Span(0, size, 1, size)


def spans(view: View, node: Node) -> dict[int, Span] | None:
    """The span of each axis that the Slice names; None when any part of it is not known.

    A symbolic axis is understood in one case only: everything from its start to an end beyond all bounds.
    """
    x = node.inputs[0]
    if x is None or x.shape is None:
        return None
    names = ("starts", "ends", "axes", "steps")
    if view.opset < 10:
        lists = [node.attrs.get(name) for name in names]
    else:
        arrays = [view.constant(value) if value else None for value in (*node.inputs[1:], *[None] * 4)[:4]]
        if any(array is None and i < len(node.inputs) - 1 and node.inputs[i + 1] for i, array in enumerate(arrays)):
            return None
        lists = [None if array is None else tuple(int(v) for v in array.ravel()) for array in arrays]
    starts, ends, axes, steps = lists
    if starts is None or ends is None:
        return None
    found = {}
    for i, axis in enumerate(axes if axes is not None else range(len(starts))):
        place = axis % len(x.shape)
        span = _span(x.shape[place], starts[i], ends[i], steps[i] if steps else 1)
        if span is None or place in found:
            return None
        found[place] = span
    return found


def _span(size: Dim, start: int, end: int, step: int) -> Span | None:
    if isinstance(size, str):
        return Span.whole(size) if (start, step) == (0, 1) and end >= _UNBOUNDED else None
    if step == 0:
        return None
    first, last, step = slice(start, end, step).indices(size)
    return Span(first, last, step, size)


def slice_node(view: View, x: Value, node: Node, cut: Mapping[int, tuple[int, int, int]]) -> Rewrite:
    """A Slice of ``x`` in the place of ``node``: along each axis from a start to before a stop, by a step."""
    starts, stops, steps = (tuple(part) for part in zip(*cut.values(), strict=True))
    # A walk down to the first element stops before index −1, which a Slice reads as the last element.
    stops = tuple(stop if stop >= 0 else -(2**31) for stop in stops)
    if view.opset < 10:
        attrs = {"starts": starts, "ends": stops, "axes": tuple(cut)}
        return Rewrite((Node("Slice", (x,), node.outputs, attrs, name=node.name),))
    arrays = {
        view.fresh(f"{node.output.name}_{name}"): np.array(numbers, dtype=np.int64)
        for name, numbers in (("starts", starts), ("ends", stops), ("axes", tuple(cut)), ("steps", steps))
    }
    values = tuple(Value(name, TensorType.of(array)) for name, array in arrays.items())
    return Rewrite((Node("Slice", (x, *values), node.outputs, name=node.name),), arrays)
