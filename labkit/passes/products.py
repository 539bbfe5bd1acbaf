"""Matrix products that a Gemm does whole: a bias added behind, a transposed operand in front."""

from __future__ import annotations

from dataclasses import replace

from labkit.graph import Node, Shape, TensorType, Value
from labkit.passes.editor import better
from labkit.passes.reshaping import RESHAPES
from labkit.passes.rewriting import Refusal, Rewrite, Table, View, before
from labkit.passes.shapes import known_dims

_FLOATS = {"float16", "float32", "float64", "bfloat16"}


def bias_into_gemm(view: View, node: Node) -> Rewrite | Refusal | None:
    """MatMul or a bias-free Gemm, then Add: one Gemm. The bias may be any tensor that spreads over the product."""
    if len(node.inputs) != 2:
        return None
    for x, bias in (node.inputs, node.inputs[::-1]):
        product = view.producer(x)
        if x is None or bias is None or product is None or product.domain or product.op not in ("MatMul", "Gemm"):
            continue
        if product.op == "Gemm" and any(product.inputs[2:]):
            continue
        if x.dtype not in _FLOATS or any(
            value is None or value.type is None or value.type.rank != 2 for value in product.inputs[:2]
        ):
            return Refusal("rank", "a product with a bias is a Gemm, which multiplies matrices only")
        if not _spreads(bias, x):
            continue
        if view.readers(x) > 1:
            return Refusal("second reader", f"{x.name!r} is also read elsewhere, without the bias")
        attrs = {name: value for name, value in product.attrs.items() if name != "beta"}  # it scaled no bias yet
        inputs = (*product.inputs[:2], bias)
        return Rewrite((replace(product, op="Gemm", inputs=inputs, outputs=node.outputs, attrs=attrs),))
    return None


def transpose_into_product(view: View, node: Node) -> Rewrite | None:
    """A product of matrices, one transposed in front, is a Gemm (which needs no bias since opset 11)."""
    if view.opset < 11 or node.output.dtype not in _FLOATS:
        return None
    for index, flag in enumerate(("transA", "transB")):
        x = _transposed_matrix(view, node.inputs[index])
        other = node.inputs[1 - index]
        if x is None or other is None or other.shape is None or len(other.shape) != 2:
            continue
        inputs = (x, other) if index == 0 else (other, x)
        return Rewrite((replace(node, op="Gemm", inputs=inputs, attrs={flag: 1}),))
    return None


def _transposed_matrix(view: View, value: Value | None) -> Value | None:
    """The matrix in front of a Transpose that only one node reads."""
    transpose = view.producer(value)
    if transpose is None or value is None or transpose.op != "Transpose" or transpose.domain or view.readers(value) > 1:
        return None
    x = transpose.inputs[0]
    is_matrix = x is not None and x.shape is not None and len(x.shape) == 2
    return x if is_matrix and tuple(transpose.attrs.get("perm") or (1, 0)) == (1, 0) else None


def bias_of_zeros(view: View, node: Node) -> Rewrite | None:
    """A bias that adds nothing is left out."""
    array = view.constant(node.inputs[2]) if len(node.inputs) == 3 else None
    if array is None or array.any() or (node.op == "Gemm" and view.opset < 11):
        return None
    return Rewrite((replace(node, inputs=node.inputs[:2]),))


def _spreads(bias: Value, product: Value) -> bool:
    """Whether a tensor broadcasts one way to a matrix; a symbol only to itself."""
    if bias.shape is None or product.shape is None or len(bias.shape) > 2:
        return False
    return all(b in (1, p) for b, p in zip(reversed(bias.shape), reversed(product.shape), strict=False))


def transpose_into_gemm(view: View, node: Node) -> Rewrite | None:
    """A Gemm reads either operand transposed at no cost. (Only perm (1, 0): (0, 1) transposes nothing.)"""
    for index, flag in enumerate(("transA", "transB")):
        transpose = view.producer(node.inputs[index])
        if transpose is None or transpose.op != "Transpose" or transpose.domain or transpose.inputs[0] is None:
            continue
        if tuple(transpose.attrs.get("perm") or (1, 0)) != (1, 0):
            continue
        inputs = tuple(transpose.inputs[0] if i == index else value for i, value in enumerate(node.inputs))
        attrs = {**node.attrs, flag: 1 - node.attrs.get(flag, 0)}
        return Rewrite((replace(node, inputs=inputs, attrs=attrs),))
    return None


def product_of_rows(view: View, node: Node) -> Rewrite | None:
    """A tensor taken as a matrix of rows, times a matrix, and taken apart again: the product does without, as it works
    on the last axis. A bias is then added behind it, as a Gemm has two axes."""
    product = before(view, node, {"MatMul", "Gemm"})
    if product is None or view.readers(product.output) > 1:
        return None
    rows = before(view, product, RESHAPES)
    if rows is None or view.readers(rows.output) > 1 or not rows.uses[0].shape or rows.output.shape is None:
        return None
    (*lead, last), x, w = rows.uses[0].shape, rows.uses[0], product.uses[1]
    if w.shape is None or len(w.shape) != 2 or last != rows.output.shape[-1]:
        return None
    shape = (*lead, w.shape[1])
    if not _makes(view, node, shape) or any(product.attrs.get(name, usual) != usual for name, usual in _PLAIN.items()):
        return None
    out = better(node.output, TensorType(shape, node.output.dtype or ""))
    bias = product.uses[2] if len(product.uses) > 2 else None
    if bias is None:
        return Rewrite((Node("MatMul", (x, w), (out,), name=product.name),))
    if bias.shape is None or len(bias.shape) > len(shape) or any(dim != 1 for dim in bias.shape[:-1]):
        return None
    inside = Value(view.fresh(f"{out.name}_product"), out.type)
    plain = Node("MatMul", (x, w), (inside,), name=product.name)
    return Rewrite((plain, Node("Add", (inside, bias), (out,), name=node.name)))


_PLAIN = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}


def _makes(view: View, node: Node, shape: Shape) -> bool:
    """Whether a reshape leads to this shape; one dim may be left to it (−1), as then no other one would fit."""
    if node.output.shape == shape:
        return True
    dims = known_dims(view, node.inputs[1]) if node.op == "Reshape" else None
    if dims is None or len(dims) != len(shape) or 0 in dims:
        return False
    free = [dim for dim, wanted in zip(dims, shape, strict=True) if dim != wanted]
    return free in ([], [-1])


PRODUCTS: Table = {
    **dict.fromkeys(RESHAPES, (product_of_rows,)),
    "Add": (bias_into_gemm,),
    "Sum": (bias_into_gemm,),
    "MatMul": (transpose_into_product,),
    "Gemm": (transpose_into_gemm, bias_of_zeros),
    **dict.fromkeys(("Conv", "ConvTranspose"), (bias_of_zeros,)),
}
