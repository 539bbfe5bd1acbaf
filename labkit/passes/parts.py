"""Parts of tensors: slices of slices, and parts that are put together again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labkit.graph import Node, TensorType, Value
from labkit.passes.rewriting import Refusal, Rewrite, Table, View, before, forward
from labkit.passes.slicing import slice_node, spans


def slice_of_slice(view: View, node: Node) -> Rewrite | Refusal | None:
    """Slice∘Slice along known axes is one Slice: starts add up, steps multiply."""
    inner = before(view, node, {"Slice"})
    if inner is None or inner.inputs[0] is None:
        return None
    first, second = spans(view, inner), spans(view, node)
    if first is None or second is None:
        return None
    if view.readers(inner.output) > 1:
        return Refusal("second reader", f"the first Slice stays for whoever else reads {inner.output.name!r}")
    cut: dict[int, tuple[int, int, int]] = {}
    for axis in sorted(first.keys() | second.keys()):
        whole = inner.inputs[0].shape[axis] if inner.inputs[0].shape else "?"
        if isinstance(whole, str):
            return None
        steps = range(whole)
        for span in (found[axis] for found in (first, second) if axis in found):
            if isinstance(span.stop, str):
                return None
            steps = steps[slice(span.start, span.stop if span.stop >= 0 else None, span.step)]
        cut[axis] = (steps.start, steps.stop, steps.step) if steps else (0, 0, 1)
    return slice_node(view, inner.inputs[0], node, cut)


def slice_of_concat(view: View, node: Node) -> Rewrite | None:
    """A Slice that takes only elements of one part of a Concat takes them from that part."""
    concat = before(view, node, {"Concat"})
    cut = None if concat is None else spans(view, node)
    if concat is None or not cut or concat.output.shape is None:
        return None
    axis = concat.attrs["axis"] % len(concat.output.shape)
    if axis not in cut or any(isinstance(span.stop, str) for span in cut.values()) or cut[axis].step < 1:
        return None
    numbers = {place: (span.start, int(span.stop), span.step) for place, span in cut.items()}
    start, stop, step = numbers[axis]
    first = 0
    for part in concat.inputs:
        size = part.shape[axis] if part is not None and part.shape is not None else "?"
        if part is None or isinstance(size, str):
            return None
        if first <= start and stop <= first + size:
            return slice_node(view, part, node, {**numbers, axis: (start - first, stop - first, step)})
        first += size
    return None


def concat_of_split(view: View, node: Node) -> Rewrite | None:
    """A Concat of all parts of one Split, in order and along its axis, gives back what was split."""
    split = before(view, node, {"Split"})
    x = split.inputs[0] if split else None
    if split is None or x is None or node.inputs != split.outputs or x.shape is None:
        return None
    rank = len(x.shape)
    same_axis = node.attrs["axis"] % rank == split.attrs.get("axis", 0) % rank
    return forward(view, node, x) if same_axis else None


def concat_of_slices(view: View, node: Node) -> Rewrite | None:
    """A Concat of Slices that follow one another along its axis, from the first element to the last, gives back what
    was sliced."""
    x = _sliced(view, node.inputs[0])
    if x is None or x.shape is None or any(_sliced(view, value) != x for value in node.inputs):
        return None
    axis = node.attrs["axis"] % len(x.shape)
    cuts = [spans(view, part) for part in map(view.producer, node.inputs) if part]
    found = [cut[axis] for cut in cuts if cut and cut.keys() == {axis} and cut[axis].step == 1]
    ends = [0, *(span.stop for span in found if isinstance(span.stop, int))]
    if len(ends) <= len(cuts) or ends[-1] != x.shape[axis] or ends != sorted(ends):
        return None
    return forward(view, node, x) if [span.start for span in found] == ends[:-1] else None


def _sliced(view: View, value: Value | None) -> Value | None:
    """What the Slice that makes a value reads."""
    found = view.producer(value)
    return found.inputs[0] if found and (found.op, found.domain) == ("Slice", "") else None


def concat_of_concat(view: View, node: Node) -> Rewrite | None:
    """A Concat among the inputs of a Concat along the same axis is taken apart, when nothing else reads it."""
    flat: list[Value | None] = []
    for value in node.inputs:
        inner = view.producer(value)
        nested = inner is not None and (inner.op, inner.domain) == ("Concat", "") and view.readers(inner.output) == 1
        if inner is not None and nested and _same_axis(inner, node):
            flat += inner.inputs
        else:
            flat.append(value)
    return None if len(flat) == len(node.inputs) else Rewrite((replace(node, inputs=tuple(flat)),))


def concat_without_nothing(view: View, node: Node) -> Rewrite | None:
    """A Concat leaves out what has no elements along its axis, as long as something is left."""
    axis, rank = node.attrs["axis"], node.output.type.rank if node.output.type else None
    if rank is None:
        return None
    rest = tuple(value for value in node.inputs if value and not (value.shape and value.shape[axis % rank] == 0))
    return Rewrite((replace(node, inputs=rest),)) if 0 < len(rest) < len(node.inputs) else None


def _same_axis(one: Node, two: Node) -> bool:
    rank = one.output.type.rank if one.output.type else None
    return one.attrs["axis"] == two.attrs["axis"] or (
        rank is not None and one.attrs["axis"] % rank == two.attrs["axis"] % rank
    )


def squeeze_of_gather(view: View, node: Node) -> Rewrite | None:
    """A Squeeze of the axis along which a Gather takes one element: a Gather at a scalar has no such axis."""
    gather = before(view, node, {"Gather"})
    places = view.constant(gather.inputs[1]) if gather else None
    if gather is None or places is None or places.shape != (1,) or view.readers(gather.output) > 1:
        return None
    out, shape = gather.output.shape, node.output.shape
    axis = gather.attrs.get("axis", 0)
    if out is None or shape is None or shape != out[: axis % len(out)] + out[axis % len(out) + 1 :]:
        return None
    name = view.fresh(f"{node.output.name}_place")
    array = np.asarray(places).reshape(())
    inputs = (gather.inputs[0], Value(name, TensorType.of(array)))
    return Rewrite((replace(gather, inputs=inputs, outputs=node.outputs),), {name: array})


PARTS: Table = {
    "Slice": (slice_of_slice, slice_of_concat),
    "Concat": (concat_of_split, concat_of_slices, concat_of_concat, concat_without_nothing),
    "Squeeze": (squeeze_of_gather,),
}
