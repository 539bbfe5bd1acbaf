"""What Reshape, Flatten, Squeeze and Unsqueeze have in common: elements keep their order, only the shape is another."""

from __future__ import annotations

import numpy as np

from labkit.graph import Node, Shape, TensorType, Value
from labkit.passes.rewriting import Rewrite, View, forward

RESHAPES = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"}


def long_axes(shape: Shape) -> list[int]:
    """The axes of more than one element, as far as is known: a symbol may turn out to be 1, and does no harm."""
    return [axis for axis, dim in enumerate(shape) if dim != 1]


def moves_units(node: Node) -> bool:
    """Whether one of RESHAPES only drops, adds or moves axes of one element: its long axes correspond in order."""
    x, out = node.inputs[0], node.output
    if x is None or x.shape is None or out.shape is None:
        return False
    return [dim for dim in x.shape if dim != 1] == [dim for dim in out.shape if dim != 1]


def keeps_order(node: Node) -> bool:
    """Whether one of RESHAPES, or a Transpose, leaves every element where it lies in memory: no axis that it moves has
    more than one element."""
    x = node.inputs[0]
    if node.op != "Transpose":
        return True
    if x is None or x.shape is None:
        return False
    perm = node.attrs.get("perm") or tuple(reversed(range(len(x.shape))))
    moved = [axis for axis in perm if x.shape[axis] != 1]
    return moved == sorted(moved)


def reshaped(view: View, x: Value, out: Value, name: str = "") -> Rewrite | None:
    """One Reshape of ``x`` to the shape of ``out``, whose dims have to be known but for one, which is written −1."""
    shape = out.shape
    if shape is None or 0 in shape or sum(isinstance(dim, str) for dim in shape) > 1:
        return None  # a 0 in the target would copy a dim
    target = np.array([-1 if isinstance(dim, str) else dim for dim in shape], dtype=np.int64)
    value = Value(view.fresh(f"{out.name}_shape"), TensorType.of(target))
    return Rewrite((Node("Reshape", (x, value), (out,), {}, name=name),), {value.name: target})


def to_shape(view: View, node: Node, x: Value) -> Rewrite | None:
    """``x`` in the shape of a node's output, in the node's place; nothing at all where it has that shape."""
    if x.shape is not None and x.shape == node.output.shape:
        return forward(view, node, x)
    return reshaped(view, x, node.output, node.name)
