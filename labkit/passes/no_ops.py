"""Nodes that change nothing, each with its proof (spec §6.2)."""

from __future__ import annotations

from labkit.graph import Node, Shape
from labkit.passes.rewriting import Refusal, Rewrite, Sweep, View, forward


def identity(view: View, node: Node) -> Rewrite | None:
    """Identity(x) is x."""
    return forward(view, node, node.inputs[0])


def dropout(view: View, node: Node) -> Rewrite | Refusal | None:
    """Dropout at inference is its input (ONNX Dropout: training_mode is an input since opset 12, absent before)."""
    mask = node.outputs[1] if len(node.outputs) > 1 else None
    if mask is not None and view.readers(mask):
        return Refusal("mask is read", f"something reads the mask {mask.name!r}")
    mode = node.inputs[2] if len(node.inputs) > 2 else None
    if mode is not None:
        training = view.constant(mode)
        if training is None:
            return Refusal("training mode", f"{mode.name!r} decides at run time whether elements are dropped")
        if training.any():
            return Refusal("training mode", "it drops elements at random")
    return forward(view, node, node.inputs[0])


def reshape_to_same(view: View, node: Node) -> Rewrite | None:
    """A Reshape to the shape its input has already."""
    x = node.inputs[0]
    if x is None or not _same_shape(x.shape, node.output.shape):
        return None
    return forward(view, node, x)


def transpose_in_place(view: View, node: Node) -> Rewrite | None:
    """A Transpose that leaves every element where it was: only axes of one element move, and the shape stays."""
    x = node.inputs[0]
    if x is None or x.shape is None:
        return None
    perm = node.attrs.get("perm") or tuple(reversed(range(len(x.shape))))
    moved = [axis for axis in perm if x.shape[axis] != 1]
    if moved != sorted(moved) or not _same_shape(x.shape, node.output.shape):
        return None
    return forward(view, node, x)


def _same_shape(one: Shape | None, two: Shape | None) -> bool:
    """Equal dim by dim; a symbol is equal to itself, so a dynamic batch counts too."""
    return one is not None and one == two


NO_OPS = Sweep(
    "no-ops",
    {
        "Identity": (identity,),
        "Dropout": (dropout,),
        "Reshape": (reshape_to_same,),
        "Transpose": (transpose_in_place,),
    },
)
