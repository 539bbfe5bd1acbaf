"""A Pad in front of a window operator becomes padding of that operator, where padding means the same.

Whoever else reads the padded tensor keeps the Pad: the window still reads less.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from labkit.graph import Array, Node
from labkit.ops.call import full_pads
from labkit.passes.ranges import lowest
from labkit.passes.rewriting import Refusal, Rewrite, Table, View, before


def pad_into_conv(view: View, node: Node) -> Rewrite | Refusal | None:
    """Conv pads with zeros: so does a constant Pad of 0 over its spatial axes."""
    return _absorb(view, node, neutral=lambda fill: fill == 0, named="a Conv pads with 0")


def pad_into_conv_integer(view: View, node: Node) -> Rewrite | Refusal | None:
    """ConvInteger pads with its zero point, which is 0 unless given."""
    given = node.inputs[2] if len(node.inputs) > 2 else None
    zero = np.array(0) if given is None else view.constant(given)
    if zero is None:
        return None
    return _absorb(
        view, node, neutral=lambda fill: fill == zero.ravel()[0], named=f"a ConvInteger pads with {zero.item()}"
    )


def pad_into_max_pool(view: View, node: Node) -> Rewrite | Refusal | None:
    """MaxPool never picks padding, which acts as −∞; a Pad of 0 wins where all else is negative, which nothing is that
    comes out of a Relu."""
    if len(node.outputs) > 1 and node.outputs[1] is not None:
        return None  # indices count the padding of a Pad, not of the pool
    pad = before(view, node, {"Pad"})
    floor = -inf if pad is None else lowest(view, pad.inputs[0])
    named = "a MaxPool pads with the lowest number"
    return _absorb(view, node, neutral=lambda fill: _is_lowest(fill) or fill <= floor, named=named)


def pad_into_average_pool(view: View, node: Node) -> Rewrite | Refusal | None:
    """AveragePool counts padding only with count_include_pad, as the mean behind a Pad counts its zeros."""
    own = any(node.attrs.get("pads", ())) and not node.attrs.get("count_include_pad", 0)
    if own or node.attrs.get("ceil_mode", 0):
        return None
    return _absorb(view, node, neutral=lambda fill: fill == 0, named="an AveragePool pads with 0", count_include_pad=1)


def _absorb(view: View, node: Node, *, neutral: Any, named: str, **attrs: Any) -> Rewrite | Refusal | None:
    pad = before(view, node, {"Pad"})
    x = pad.inputs[0] if pad else None
    if pad is None or x is None or x.shape is None:
        return None
    if pad.attrs.get("mode", "constant") != "constant":
        return Refusal("mode", f"{pad.label} pads by mode {pad.attrs['mode']}, not with a constant")
    pads, fill = pads_of(view, pad, len(x.shape)), fill_of(view, pad)
    if pads is None or fill is None:
        return Refusal("constant", f"what {pad.label} pads can change between calls")
    if not neutral(fill):
        return Refusal("value", f"{pad.label} pads with {fill.item():g}; {named}")
    rank = len(x.shape)
    if any(pads[i] for i in (0, 1, rank, rank + 1)) or min(pads) < 0:
        return Refusal("axes", f"{pad.label} pads batch or channels, or crops")
    if node.attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return Refusal("auto_pad", "the padding depends on the size of its input")
    own = tuple(node.attrs.get("pads") or (0,) * (2 * rank - 4))
    added = (*pads[2:rank], *pads[rank + 2 :])
    new = {**{k: v for k, v in node.attrs.items() if k != "auto_pad"}, **attrs}
    new["pads"] = tuple(a + b for a, b in zip(own, added, strict=True))
    kernel = () if node.op.startswith("Conv") else node.attrs.get("kernel_shape", ())
    if any(size <= pad for size, pad in zip(kernel * 2, new["pads"], strict=False)):
        return Refusal("kernel", "a window would lie in the padding altogether, which runtimes do not pool")
    return Rewrite((replace(node, inputs=(x, *node.inputs[1:]), attrs=new),))


def pads_of(view: View, pad: Node, rank: int) -> tuple[int, ...] | None:
    """Pads before and behind every axis; opset 18 may name only some axes."""
    if view.opset < 11:
        return tuple(pad.attrs.get("pads", ()))
    array, axes = view.constant(pad.inputs[1]), pad.inputs[3] if len(pad.inputs) > 3 else None
    if array is None:
        return None
    named = view.constant(axes)
    if axes is not None and named is None:
        return None
    return full_pads(array.tolist(), rank, None if named is None else named.tolist())


def fill_of(view: View, pad: Node) -> Array | None:
    """What a Pad with a constant pads with; None when a caller can change it."""
    if view.opset < 11:
        return np.array(pad.attrs.get("value", 0.0))
    value = pad.inputs[2] if len(pad.inputs) > 2 else None
    return np.array(0) if value is None else view.constant(value)


def _is_lowest(fill: Array) -> bool:
    """−∞, or the lowest number of the type."""
    if fill.dtype.kind == "f":
        return bool(fill == -np.inf or fill == np.finfo(fill.dtype).min)
    return fill.dtype.kind in "iu" and bool(fill == np.iinfo(fill.dtype).min)


PADS: Table = {
    "Conv": (pad_into_conv,),
    "ConvInteger": (pad_into_conv_integer,),
    "MaxPool": (pad_into_max_pool,),
    "AveragePool": (pad_into_average_pool,),
}
