"""Nodes that hand their input on unchanged, each with its proof (spec §6.2)."""

from __future__ import annotations

import numpy as np

from labkit.graph import Array, Node, Shape, Value
from labkit.passes.ranges import Bounds, clip_bounds
from labkit.passes.rewriting import Refusal, Rewrite, Table, View, forward
from labkit.passes.shapes import known_dims
from labkit.passes.slicing import Span, spans

# What leaves x as it is when it stands second; for the commutative ones it may stand first as well.
_UNITS = {"Mul": 1, "Div": 1, "Add": 0, "Sub": 0, "Sum": 0, "Pow": 1, "Max": -np.inf, "Min": np.inf, "And": True,
          "Or": False, "Xor": False}  # fmt: skip
_COMMUTATIVE = {"Mul", "Add", "Sum", "Max", "Min", "And", "Or", "Xor"}
_OVER_ALL = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
_MOVING = {"tf_crop_and_resize", "tf_half_pixel_for_nn"}


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


def same_shape(view: View, node: Node) -> Rewrite | None:
    """Reshape, Flatten, Squeeze, Unsqueeze, Expand and Tile keep the order of elements: where they also keep the shape
    they keep everything. A symbol equals itself, so a dynamic batch counts too."""
    x = node.inputs[0]
    return forward(view, node, x) if x and _same(x.shape, node.output.shape) else None


def tile_by_one(view: View, node: Node) -> Rewrite | None:
    """A Tile that repeats every axis once, whatever its sizes."""
    repeats = view.constant(node.inputs[1])
    return forward(view, node, node.inputs[0]) if repeats is not None and (repeats == 1).all() else None


def scatter_over_all(view: View, node: Node) -> Rewrite | None:
    """A ScatterND that overwrites every slice of its input, in order, is what it writes."""
    x, places, updates = node.inputs
    array = view.constant(places)
    if x is None or not x.shape or updates is None or array is None or not _same(x.shape, updates.shape):
        return None
    size = x.shape[0]
    if isinstance(size, str) or node.attrs.get("reduction", "none") != "none":
        return None
    return forward(view, node, updates) if np.array_equal(array, np.arange(size)[:, None]) else None


def clip_to_anything(view: View, node: Node) -> Rewrite | None:
    """A Clip without bounds, or with infinite ones. (Before opset 11 a bound that is left out is a number.)"""
    return forward(view, node, node.inputs[0]) if clip_bounds(view, node) == Bounds(-np.inf, np.inf) else None


def of_the_same(view: View, node: Node) -> Rewrite | None:
    """The greater or the lesser of x and x is x; so is x and x, x or x."""
    return forward(view, node, node.inputs[0]) if len(set(node.inputs)) == 1 else None


def transpose_in_place(view: View, node: Node) -> Rewrite | None:
    """A Transpose that leaves every element where it was: only axes of one element move, and the shape stays."""
    x = node.inputs[0]
    if x is None or x.shape is None:
        return None
    perm = node.attrs.get("perm") or tuple(reversed(range(len(x.shape))))
    moved = [axis for axis in perm if x.shape[axis] != 1]
    if moved != sorted(moved) or not _same(x.shape, node.output.shape):
        return None
    return forward(view, node, x)


def slice_of_all(view: View, node: Node) -> Rewrite | None:
    """A Slice that takes every element of every axis in order, in whichever spelling."""
    cut = spans(view, node)
    if cut is None or not all(span == Span.whole(span.size) for span in cut.values()):
        return None
    return forward(view, node, node.inputs[0])


def cast_to_same(view: View, node: Node) -> Rewrite | None:
    """A Cast to the type that its input has."""
    x = node.inputs[0]
    return forward(view, node, x) if x and x.dtype and x.dtype == node.output.dtype else None


def pad_by_nothing(view: View, node: Node) -> Rewrite | None:
    """A Pad by zero everywhere. (Equal shapes are no proof: +1 in front and −1 behind shift the elements.)"""
    pads = node.attrs.get("pads") if view.opset < 11 else view.constant(node.inputs[1])
    return None if pads is None or np.any(pads) else forward(view, node, node.inputs[0])


def of_one(view: View, node: Node) -> Rewrite | None:
    """Concat, Sum, Max, Min or Mean of a single tensor is that tensor; so is a Split into one part."""
    if len(node.inputs if node.op != "Split" else node.outputs) != 1:
        return None
    return forward(view, node, node.inputs[0])


def resize_by_one(view: View, node: Node) -> Rewrite | None:
    """A Resize or Upsample to the size that its input has, by factors of 1: 3 elements times 1.2 are 3 as well, and yet
    others. Two coordinate transformations move elements even then."""
    x, factors = node.inputs[0], _factors(view, node)
    if factors is None or not (factors == 1).all() or node.attrs.get("coordinate_transformation_mode") in _MOVING:
        return None
    sizes = known_dims(view, node.inputs[3] if len(node.inputs) > 3 else None)
    return forward(view, node, x) if x and (_same(x.shape, node.output.shape) or _same(x.shape, sizes)) else None


def _factors(view: View, node: Node) -> Array | None:
    """What a Resize multiplies sizes by: an attribute, then an input of ONNX's; none where it is told sizes instead."""
    if "scales" in node.attrs:
        return np.array(node.attrs["scales"])
    if any(node.inputs[3:]):
        return np.ones(0)
    at = 1 if node.op == "Upsample" or view.opset < 11 else 2
    return view.constant(node.inputs[at]) if at < len(node.inputs) else None


def gather_of_all(view: View, node: Node) -> Rewrite | None:
    """A Gather of every element along an axis, in order."""
    x, places = node.inputs[0], view.constant(node.inputs[1])
    if x is None or x.shape is None or places is None:
        return None
    size = x.shape[node.attrs.get("axis", 0)]
    return forward(view, node, x) if isinstance(size, int) and np.array_equal(places, np.arange(size)) else None


def where_one_way(view: View, node: Node) -> Rewrite | None:
    """A Where with a constant condition that is the same everywhere, or with the same tensor on both sides."""
    condition, *sides = node.inputs
    array = view.constant(condition)
    if array is not None and array.size and (array.all() or not array.any()):
        sides = sides[:1] if array.all() else sides[1:]
    chosen = sides[0]
    if chosen is None or any(side != chosen for side in sides) or not _same(chosen.shape, node.output.shape):
        return None
    return forward(view, node, chosen)


def reduction_of_one(view: View, node: Node) -> Rewrite | None:
    """A sum, mean, product or extreme along axes of one element, which are kept."""
    x = node.inputs[0]
    return forward(view, node, x) if x and _same(x.shape, node.output.shape) else None


def pool_of_one(view: View, node: Node) -> Rewrite | None:
    """A MaxPool or AveragePool whose windows are single elements, one behind the other."""
    ones = (*node.attrs.get("kernel_shape", ()), *node.attrs.get("strides", ()))
    if set(ones) != {1} or any(node.attrs.get("pads", ())):
        return None
    if len(node.outputs) > 1 and node.outputs[1] is not None and view.readers(node.outputs[1]):
        return None
    return forward(view, node, node.inputs[0])


def unit(view: View, node: Node) -> Rewrite | Refusal | None:
    """x·1, x/1, x+0, x−0, x¹, max(x, −∞) and their logical kin, the unit in any shape that does not enlarge x."""
    if len(node.inputs) != 2:
        return None
    for x, constant in ((node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])):
        array = view.constant(constant)
        if x is not None and array is not None and (x is node.inputs[0] or node.op in _COMMUTATIVE):
            if not _all_equal(array, _UNITS[node.op]):
                continue
            if not _same(x.shape, node.output.shape):
                return Refusal("broadcast", f"the constant enlarges {_show(x)} to {_show(node.output)}")
            return forward(view, node, x)
    return None


def _all_equal(array: Array, unit_value: float) -> bool:
    return array.dtype != object and bool(np.count_nonzero(array == unit_value) == array.size > 0)


def _same(one: Shape | None, two: Shape | None) -> bool:
    return one is not None and one == two


def _show(value: Value) -> str:
    return "×".join(map(str, value.shape)) if value.shape is not None else "an unknown shape"


NO_OPS: Table = {
    "Identity": (identity,),
    "Dropout": (dropout,),
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand"), (same_shape,)),
    "Tile": (same_shape, tile_by_one),
    "ScatterND": (scatter_over_all,),
    "Transpose": (transpose_in_place,),
    "Slice": (slice_of_all,),
    "Cast": (cast_to_same,),
    "Pad": (pad_by_nothing,),
    "Gather": (gather_of_all,),
    "Where": (where_one_way,),
    **dict.fromkeys((*_OVER_ALL, "GlobalAveragePool", "GlobalMaxPool"), (reduction_of_one,)),
    **dict.fromkeys(("Concat", "Mean", "Split"), (of_one,)),
    "Clip": (clip_to_anything,),
    **dict.fromkeys(("Resize", "Upsample"), (resize_by_one,)),
    **dict.fromkeys(("MaxPool", "AveragePool"), (pool_of_one,)),
    **dict.fromkeys(_UNITS, (unit,)),
    **dict.fromkeys(("And", "Or"), (unit, of_the_same)),
    "Sum": (of_one, unit),
    **dict.fromkeys(("Max", "Min"), (of_one, of_the_same, unit)),
}
