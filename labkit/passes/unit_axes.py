"""Axes of one element come and go: a reshape that only moves them passes Transposes and elementwise work.

Exporters squeeze an axis before nearly every operator and put it back behind it. Once such a reshape stands next to
another one, or next to a Transpose, one of the two is enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from labkit.graph import Array, Node, Shape, TensorType, Value
from labkit.passes.reshaping import RESHAPES, keeps_order, long_axes, moves_units, reshaped, to_shape
from labkit.passes.rewriting import Rewrite, Table, View, before
from labkit.passes.transposes import BINARY, UNARY, Perm, transposed


def transpose_in_order(view: View, node: Node) -> Rewrite | None:
    """A reshape in front of a Transpose of axes of one element, or behind it: the order stays, so one Reshape does."""
    inner = before(view, node, {"Transpose"} if node.op in RESHAPES else RESHAPES)
    x = inner.inputs[0] if inner else None
    if inner is None or x is None or not keeps_order(inner) or not keeps_order(node) or view.readers(inner.output) > 1:
        return None
    return to_shape(view, node, x)


def transpose_of_reshape(view: View, node: Node) -> Rewrite | None:
    """Transpose∘reshape is one Transpose where the reshape only moves axes of one element and keeps their number."""
    inner = before(view, node, RESHAPES)
    x = inner.inputs[0] if inner else None
    if inner is None or x is None or not moves_units(inner) or x.shape is None or inner.output.shape is None:
        return None
    shape, middle = node.output.shape, inner.output.shape
    if shape is None or len(shape) != len(x.shape):
        return None
    perm = node.attrs.get("perm") or tuple(reversed(range(len(middle))))
    earlier = dict(zip(long_axes(middle), long_axes(x.shape), strict=True))
    order = [earlier[axis] for axis in perm if axis in earlier]
    return Rewrite((replace(node, inputs=(x,), attrs={"perm": _perm(shape, order, _units(x.shape))}),))


def reshape_of_transpose(view: View, node: Node) -> Rewrite | None:
    """reshape∘Transpose, where the reshape only moves axes of one element: one Transpose when it keeps their number,
    and else the reshape goes first, to meet what stands in front."""
    found = transposed(view, node.inputs[0])
    shape = node.output.shape
    if found is None or shape is None or not moves_units(node) or view.readers(node.inputs[0] or node.output) > 1:
        return None
    x, perm = found
    order = [axis for axis in perm if x.shape is None or x.shape[axis] != 1]
    if x.shape is None:
        return None
    if len(shape) == len(x.shape):
        return Rewrite((Node("Transpose", (x,), node.outputs, {"perm": _perm(shape, order, _units(x.shape))}),))
    places = dict(zip(sorted(order), long_axes(shape), strict=True))
    dims = {place: x.shape[axis] for axis, place in places.items()}
    middle = tuple(dims.get(place, 1) for place in range(len(shape)))
    out = Value(view.fresh(f"{node.output.name}_before"), TensorType(middle, node.output.dtype or ""))
    first = reshaped(view, x, out)
    if first is None:
        return None
    perm = _perm(shape, [places[axis] for axis in order], _units(shape))
    return first._replace(nodes=(*first.nodes, Node("Transpose", (out,), node.outputs, {"perm": perm})))


def sink_through_unary(view: View, node: Node) -> Rewrite | None:
    """op(reshape(x)) is reshape(op(x)), whatever the reshape."""
    inner = before(view, node, RESHAPES)
    if inner is None or view.readers(inner.output) > 1:
        return None
    return _behind(view, node, (inner.inputs[0], *node.inputs[1:]), inner, {})


def sink_through_elementwise(view: View, node: Node) -> Rewrite | None:
    """op(reshape(x), reshape(y)) is reshape(op(x, y)); constants get and lose the same axes of one element."""
    found = {v.name: p for v in node.inputs if v and (p := view.producer(v)) and p.op in RESHAPES and not p.domain}
    sources = {p.inputs[0].shape if p.inputs[0] else None for p in found.values()}
    if len(sources) != 1 or any(p.output.shape != node.output.shape for p in found.values()):
        return None
    (shape,) = sources
    inner = next(iter(found.values()))
    inputs: list[Value | None] = []
    constants: dict[str, Array] = {}
    for value in node.inputs:
        if value is not None and value.name in found:
            if view.readers(value) != node.inputs.count(value):
                return None  # the reshape stays for somebody else: nothing would be saved
            inputs.append(found[value.name].inputs[0])
            continue
        array = view.constant(value)
        if value is None or array is None or shape is None:
            return None
        if array.size != 1 or array.ndim > len(shape):
            if not moves_units(inner):
                return None
            value = _regrouped(view, value, array, inner, constants)
        inputs.append(value)
    return _behind(view, node, tuple(inputs), inner, constants)


def _regrouped(view: View, value: Value, array: Array, inner: Node, constants: dict[str, Array]) -> Value:
    """A constant with axes of one element where the source of the reshape has them."""
    source, shape = inner.inputs[0].shape if inner.inputs[0] else None, inner.output.shape
    assert source is not None
    assert shape is not None
    wide = (1,) * (len(shape) - array.ndim) + array.shape
    dims = dict(zip(long_axes(source), (wide[axis] for axis in long_axes(shape)), strict=True))
    name = view.fresh(f"{value.name}_regrouped")
    constants[name] = array.reshape([dims.get(axis, 1) for axis in range(len(source))])
    return Value(name, TensorType.of(constants[name]))


def _behind(
    view: View, node: Node, inputs: tuple[Value | None, ...], inner: Node, constants: dict[str, Array]
) -> Rewrite | None:
    """The node on what the reshape had read, and the reshape behind it, under the node's output name."""
    x, out = inner.inputs[0], node.output
    if x is None or x.shape is None or out.type is None or out.shape != inner.output.shape:
        return None
    middle = Value(view.fresh(f"{out.name}_before"), TensorType(x.shape, out.type.dtype))
    moved = replace(node, inputs=inputs, outputs=(middle,))
    return Rewrite((moved, replace(inner, inputs=(middle, *inner.inputs[1:]), outputs=(out,))), constants)


def _units(shape: Shape) -> list[int]:
    return [axis for axis, dim in enumerate(shape) if dim == 1]


def _perm(shape: Shape, long: Iterable[int], units: Iterable[int]) -> Perm:
    """The permutation that makes a shape, its long axes and its axes of one element each taken from a list."""
    rest = {False: iter(long), True: iter(units)}
    return tuple(next(rest[dim == 1]) for dim in shape)


UNITS: Table = {
    **dict.fromkeys(RESHAPES, (transpose_in_order, reshape_of_transpose)),
    "Transpose": (transpose_in_order, transpose_of_reshape),
}
UNITS_SINK: Table = {
    **dict.fromkeys(UNARY, (sink_through_unary,)),
    **dict.fromkeys(BINARY, (sink_through_elementwise,)),
}
