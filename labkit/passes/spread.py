"""Few values spread wide: a ConstantOfShape or an Expand in front of an operator that broadcasts anyway.

Folding them would bloat the model (a ConstantOfShape of 100 bytes can stand for gigabytes); reading them unspread does
not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labkit.errors import GraphError
from labkit.graph import Array, Node, Shape, TensorType, Value
from labkit.interpreter import evaluate
from labkit.ops.call import broadcast_shapes
from labkit.passes.editor import better
from labkit.passes.rewriting import Rewrite, Table, View, before
from labkit.passes.shapes import known_dims
from labkit.passes.transposes import BINARY, UNARY


def filled_through_unary(view: View, node: Node) -> Rewrite | None:
    """op(ConstantOfShape(s, v)) is ConstantOfShape(s, op(v))."""
    fill = before(view, node, {"ConstantOfShape"})
    if fill is None or any(node.inputs[1:]) or node.inputs[0] is None:
        return None
    try:
        (result,) = evaluate(node, {node.inputs[0].name: _value(fill)}, view.opsets)
    except GraphError:
        return None
    array = np.asarray(result)
    if array.shape != (1,) or TensorType.of(array).dtype != node.output.dtype:
        return None
    return Rewrite((replace(fill, outputs=node.outputs, attrs={"value": array}, name=node.name),))


def unspread(view: View, node: Node) -> Rewrite | None:
    """An operand that another one is as large as need not be spread: the operator broadcasts it. How large it would be
    may be computed at run time, from dims that have a name."""
    for index, value in enumerate(node.inputs):
        producer = view.producer(value)
        if value is None or producer is None or producer.domain or producer.op not in ("ConstantOfShape", "Expand"):
            continue
        constants: dict[str, Array] = {}
        narrow = producer.inputs[0]
        if producer.op == "ConstantOfShape":
            name = view.fresh(f"{value.name}_value")
            constants[name] = _value(producer).reshape(())
            narrow = Value(name, TensorType.of(constants[name]))
        others = [other.shape for i, other in enumerate(node.inputs) if other and i != index]
        if narrow is None or not others:
            continue
        shape = _common([*others, _spread(view, producer, narrow)])
        if shape is None or _common([*others, narrow.shape]) != shape:
            continue
        inputs = tuple(narrow if i == index else old for i, old in enumerate(node.inputs))
        out = better(node.output, TensorType(shape, node.output.dtype or ""))
        return Rewrite((replace(node, inputs=inputs, outputs=(out,)),), constants)
    return None


def expand_of_expand(view: View, node: Node) -> Rewrite | None:
    """Of two Expands in a row the first is spared where the second spreads as wide without it."""
    inner = before(view, node, {"Expand"})
    narrow, dims = inner.inputs[0] if inner else None, known_dims(view, node.inputs[1])
    shape = _spread(view, inner, narrow) if inner and narrow else None
    if dims is None or narrow is None or shape is None or _common([shape, dims]) != _common([narrow.shape, dims]):
        return None
    return Rewrite((replace(node, inputs=(narrow, node.inputs[1])),))


def _spread(view: View, node: Node, narrow: Value) -> Shape | None:
    """The shape to which an Expand or a ConstantOfShape spreads what is narrow."""
    dims = known_dims(view, node.inputs[-1])
    return node.output.shape if dims is None else _common([narrow.shape, dims])


def _common(shapes: list[Shape | None]) -> Shape | None:
    try:
        return broadcast_shapes(shapes)
    except GraphError:
        return None


def _value(fill: Node) -> Array:
    """What a ConstantOfShape is filled with, as an array of one element."""
    value = fill.attrs.get("value")
    return np.zeros(1, np.float32) if value is None else np.asarray(value).reshape(1)


SPREAD: Table = {
    **dict.fromkeys(UNARY - {"Identity"}, (filled_through_unary,)),
    **dict.fromkeys(BINARY - {"PRelu"}, (unspread,)),
    "Expand": (expand_of_expand,),
}
