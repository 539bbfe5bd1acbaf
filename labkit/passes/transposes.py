"""Transposes sink: behind an operator that does not care about axes, towards the next Transpose, where pairs cancel.

Only what saves work moves: an elementwise node all of whose large inputs come through one and the same permutation, or
a Concat of such. The node then reads what was there before, and one Transpose stands behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from labkit.graph import Array, Node, TensorType, Value
from labkit.passes.rewriting import Rewrite, Table, View

UNARY = {
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "Ceil", "Celu", "Clip", "Cos",
    "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN",
    "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign",
    "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu",
}  # fmt: skip
BINARY = {
    "Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less",
    "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
}  # fmt: skip

Perm = tuple[int, ...]


def sink_through_unary(view: View, node: Node) -> Rewrite | None:
    """op(Transpose(x)) is Transpose(op(x))."""
    found = transposed(view, node.inputs[0])
    if found is None or view.readers(node.inputs[0] or node.output) > 1:
        return None
    return behind(view, node, (found[0], *node.inputs[1:]), found[1], {})


def sink_through_elementwise(view: View, node: Node) -> Rewrite | None:
    """op(Transpose(x), Transpose(y)) is Transpose(op(x, y)); constants are permuted the other way, here and now."""
    shape = node.output.shape
    large = [value for value in node.inputs if value is not None and value.shape == shape]
    perms = {found[1] for value in large if (found := transposed(view, value))}
    if len(perms) != 1 or shape is None:
        return None
    (perm,) = perms
    inputs: list[Value | None] = []
    constants: dict[str, Array] = {}
    for value in node.inputs:
        found = transposed(view, value)
        if found is not None and value in large:
            if view.readers(value) != node.inputs.count(value):
                return None  # the Transpose stays for somebody else: nothing would be saved
            inputs.append(found[0])
            continue
        if value is not None and value.shape is not None and set(value.shape) <= {1} and len(value.shape) <= len(perm):
            inputs.append(value)  # one element lies the same way in any order of axes
            continue
        array = view.constant(value)
        if value is None or array is None or array.ndim > len(perm):
            return None
        inputs.append(_permuted(view, value, array, perm, constants))
    return behind(view, node, tuple(inputs), perm, constants)


def sink_through_concat(view: View, node: Node) -> Rewrite | None:
    """Concat of tensors transposed alike is the Transpose of their Concat along the axis they had before."""
    found = [transposed(view, value) for value in node.inputs]
    sources = [(value, source) for value, source in zip(node.inputs, found, strict=True) if value and source]
    if len(sources) < len(node.inputs) or len({source[1] for _, source in sources}) != 1:
        return None
    if any(view.readers(value) != node.inputs.count(value) for value, _ in sources):
        return None
    perm = sources[0][1][1]
    axis = perm[node.attrs["axis"] % len(perm)]
    moved = replace(node, attrs={**node.attrs, "axis": axis})
    return behind(view, moved, tuple(source[0] for _, source in sources), perm, {})


def transposed(view: View, value: Value | None) -> tuple[Value, Perm] | None:
    """What a value was before a Transpose, and the permutation; None where it comes through none."""
    node = view.producer(value)
    if node is None or node.op != "Transpose" or node.domain or node.inputs[0] is None or value is None:
        return None
    rank = value.type.rank if value.type else None
    perm = node.attrs.get("perm") or (None if rank is None else tuple(reversed(range(rank))))
    return None if perm is None else (node.inputs[0], tuple(perm))


def _permuted(view: View, value: Value, array: Array, perm: Perm, constants: dict[str, Array]) -> Value:
    """A constant as it has to lie for the operator to run before the Transpose."""
    inverse = tuple(int(axis) for axis in np.argsort(perm))
    wide = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
    name = view.fresh(f"{value.name}_permuted")
    constants[name] = np.ascontiguousarray(wide.transpose(inverse))
    return Value(name, TensorType.of(constants[name]))


def behind(
    view: View, node: Node, inputs: tuple[Value | None, ...], perm: Perm, constants: Mapping[str, Array]
) -> Rewrite | None:
    """The node on untransposed inputs, and the Transpose behind it, under the node's output name."""
    out = node.output
    if out.type is None or out.shape is None or len(out.shape) != len(perm) or any(node.outputs[1:]):
        return None
    inverse = np.argsort(perm)
    before = Value(view.fresh(f"{out.name}_before"), TensorType(tuple(out.shape[i] for i in inverse), out.type.dtype))
    moved = replace(node, inputs=inputs, outputs=(before,))
    transpose = Node("Transpose", (before,), (out,), {"perm": perm})
    return Rewrite((moved, transpose), constants)


TRANSPOSES: Table = {
    **dict.fromkeys(UNARY, (sink_through_unary,)),
    **dict.fromkeys(BINARY, (sink_through_elementwise,)),
    "Concat": (sink_through_concat,),
}
