"""Min and Max in a row, the places of extremes, and reductions that put an axis back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labkit.graph import Array, Node, TensorType, Value
from labkit.passes.op_classes import reduced_axes
from labkit.passes.ranges import Bounds, clip_bounds, clip_node
from labkit.passes.rewriting import Refusal, Rewrite, Table, View, before
from labkit.ties import HARDLY_ROUNDED

_NUMPY = {"Min": np.minimum, "Max": np.maximum}
_REDUCTIONS = {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
               "ReduceProd", "ReduceSum", "ReduceSumSquare", "ArgMax", "ArgMin"}  # fmt: skip

_RISING = {"Exp", "Log", "LogSoftmax", "Sigmoid", "Softmax", "Sqrt", "Tanh"}


def extreme_of_extreme(view: View, node: Node) -> Rewrite | None:
    """Max(Max(x, 1), 2) is Max(x, 2): constants of one sign meet, the rest is listed once."""
    flat: list[Value] = []
    for value in node.inputs:
        inner = view.producer(value)
        alike = inner is not None and (inner.op, inner.domain) == (node.op, "") and view.readers(inner.output) == 1
        flat += [v for v in (inner.inputs if inner is not None and alike else (value,)) if v]
    known = [(value, array) for value in flat if (array := view.constant(value)) is not None]
    if len(flat) == len(node.inputs) and len(known) < 2:
        return None
    rest = [value for value in flat if view.constant(value) is None]
    constants: dict[str, Array] = {}
    if known:
        combined = known[0][1]
        for _, array in known[1:]:
            combined = _NUMPY[node.op](combined, array)
        name = view.fresh(f"{node.output.name}_bound")
        constants[name] = np.asarray(combined)
        rest.append(Value(name, TensorType.of(constants[name])))
    return Rewrite((replace(node, inputs=tuple(rest)),), constants) if len(rest) > 1 else None


def extremes_to_clip(view: View, node: Node) -> Rewrite | None:
    """Min(Max(x, low), high) with one number a side is Clip(x, low, high); so is a Min or Max behind a Relu or Clip."""
    outer = _bounds(view, node)
    if outer is None or view.opset < 11 or node.output.dtype not in ("float16", "float32", "float64"):
        return None
    x, bounds = outer
    inner = view.producer(x)
    if inner is None or inner.domain or view.readers(x) > 1:
        return None
    found = _bounds(view, inner)
    return None if found is None else clip_node(view, found[0], node, found[1].then(bounds))


def _bounds(view: View, node: Node) -> tuple[Value, Bounds] | None:
    """The tensor a node cuts, and to which interval, when the node is a Relu, a Clip, or Min or Max with one number."""
    if node.op in ("Relu", "Clip") and node.inputs[0] is not None:
        bounds = clip_bounds(view, node)
        return None if bounds is None else (node.inputs[0], bounds)
    if node.op not in _NUMPY or len(node.inputs) != 2:
        return None
    for x, other in (node.inputs, node.inputs[::-1]):
        array = view.constant(other)
        if (
            x is not None
            and array is not None
            and array.size == 1
            and x.shape is not None
            and x.shape == node.output.shape
        ):
            number = array.ravel()[0].item()
            return x, Bounds(number, np.inf) if node.op == "Max" else Bounds(-np.inf, number)
    return None


def unsqueeze_of_reduce(view: View, node: Node) -> Rewrite | None:
    """A reduction that drops axes which an Unsqueeze puts back keeps them instead (keepdims)."""
    return _kept(view, node, keeps=False)


def squeeze_of_reduce(view: View, node: Node) -> Rewrite | None:
    """A reduction that keeps axes which a Squeeze drops does not keep them."""
    return _kept(view, node, keeps=True)


def _kept(view: View, node: Node, *, keeps: bool) -> Rewrite | None:
    """The reduction in front of a node that turns round whether it keeps its axes, and that alone reads it."""
    reduce = before(view, node, _REDUCTIONS)
    x = reduce.inputs[0] if reduce else None
    if reduce is None or x is None or x.shape is None or view.readers(reduce.output) > 1:
        return None
    if bool(reduce.attrs.get("keepdims", 1)) != keeps:
        return None
    reduced, named = _reduced_axes(view, reduce), _named_axes(view, node)
    rank = len(x.shape)
    if reduced is None or named is None:
        return None
    if sorted(int(a) % rank for a in np.ravel(reduced)) != sorted(int(a) % rank for a in np.ravel(named)):
        return None
    return Rewrite((replace(reduce, outputs=node.outputs, attrs={**reduce.attrs, "keepdims": int(not keeps)}),))


def _reduced_axes(view: View, reduce: Node) -> Array | tuple[int, ...] | None:
    if reduce.op.startswith("Arg"):
        return (reduce.attrs.get("axis", 0),)
    if len(reduce.inputs) > 1 and reduce.inputs[1] is not None:
        return view.constant(reduce.inputs[1])
    x = reduce.inputs[0]
    everything = None if x is None or x.shape is None or reduce.attrs.get("noop_with_empty_axes") else len(x.shape)
    return reduce.attrs.get("axes") or (None if everything is None else tuple(range(everything)))


def _named_axes(view: View, node: Node) -> Array | tuple[int, ...] | None:
    """The axes of a Squeeze or an Unsqueeze; a Squeeze that names none takes all of one element."""
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        return view.constant(node.inputs[1])
    x = node.inputs[0]
    if node.attrs.get("axes") or x is None or x.type is None or not x.type.is_static:
        return node.attrs.get("axes")
    return tuple(axis for axis, dim in enumerate(x.shape or ()) if dim == 1)


def place_before_rounding(view: View, node: Node) -> Rewrite | Refusal | None:
    """ArgMax(Softmax(x)) is ArgMax(x): a Softmax keeps the order of the elements it runs over.

    It makes two of them equal only where float32 hardly tells them apart (``labkit.ties`` says how near), far less
    than a folded BatchNormalization moves them. Whatever rounds more coarsely stays, and a Refusal says so.
    """
    rising = before(view, node, _RISING)
    x = rising.inputs[0] if rising else None
    if rising is None or x is None or x.shape is None or view.readers(rising.output) > 1:
        return None
    axis = node.attrs.get("axis", 0) % len(x.shape)
    if rising.op in HARDLY_ROUNDED and reduced_axes(rising, view.opset, view.constant) != (axis,):
        return None
    if node.op == "ArgMax" and rising.op in HARDLY_ROUNDED and x.dtype in ("float32", "float64"):
        return Rewrite((replace(node, inputs=(x,)),))
    return Refusal(
        "ties",
        f"{rising.op} keeps the order of elements but rounds: some come out equal that were far apart, and {node.op} "
        "then names another of them",
    )


EXTREMES: Table = {
    **dict.fromkeys(_NUMPY, (extreme_of_extreme, extremes_to_clip)),
    **dict.fromkeys(("Relu", "Clip"), (extremes_to_clip,)),
    **dict.fromkeys(("ArgMax", "ArgMin"), (place_before_rounding,)),
    "Unsqueeze": (unsqueeze_of_reduce,),
    "Squeeze": (squeeze_of_reduce,),
}
