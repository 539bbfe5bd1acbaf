"""Type inference for operators that compute, a small function for each shape rule: input types in, output types out."""

from __future__ import annotations

from labkit.errors import GraphError
from labkit.graph import Dim, TensorType
from labkit.ops.call import Call, Types, broadcast_shapes
from labkit.ops.windows import Window


def same(call: Call) -> Types:
    """The output is like the first input."""
    return (call.type(),)


def dropout(call: Call) -> Types:
    mask = "bool" if call.opset >= 10 else call.type().dtype
    return call.type(), TensorType(call.shape(), mask)


def broadcast(call: Call) -> Types:
    """Elementwise over all inputs, NumPy's broadcasting."""
    shapes = [kind.shape for kind in call.types if kind is not None]
    return (TensorType(broadcast_shapes(shapes), call.type().dtype),)


def conv(call: Call) -> Types:
    x, w = call.shape(0), call.shape(1)
    if x is None or w is None:
        return (TensorType(call.unknown(len(x or w or ()) or None), call.type().dtype),)
    groups = call.attrs.get("group", 1)
    if len(x) < 3 or len(w) != len(x):
        raise GraphError(f"input of rank {len(x)} and weight of rank {len(w)}: both need N or M, C and spatial axes")
    if isinstance(x[1], int) and isinstance(w[1], int) and x[1] != w[1] * groups:
        raise GraphError(f"input has {x[1]} channels, weight wants {w[1]} in each of {groups} groups")
    kernel = [k for k in w[2:] if isinstance(k, int)]
    if len(kernel) < len(w) - 2:
        return (TensorType((x[0], w[0], *(call.unknown(len(x)) or ())[2:]), call.type().dtype),)
    return (TensorType((x[0], w[0], *Window.of(call.attrs, kernel).output_sizes(x[2:])), call.type().dtype),)


def pool(call: Call) -> Types:
    """MaxPool (whose second output holds int64 indices) and AveragePool."""
    x = call.shape()
    if x is None:
        shape = None
    else:
        window = Window.of(call.attrs, call.attrs.get("kernel_shape", ()))
        if len(window.kernel) != len(x) - 2:
            raise GraphError(f"kernel_shape {window.kernel} for an input with {len(x) - 2} spatial axes")
        shape = (*x[:2], *window.output_sizes(x[2:]))
    return TensorType(shape, call.type().dtype), TensorType(shape, "int64")


def global_pool(call: Call) -> Types:
    x = call.shape()
    return (TensorType(None if x is None else (*x[:2], *(1 for _ in x[2:])), call.type().dtype),)


def batch_norm(call: Call) -> Types:
    """Y, then the statistics that only a training-mode node has."""
    return (call.type(0), *(TensorType(call.shape(3), call.type(3).dtype) for _ in range(4)))


def gemm(call: Call) -> Types:
    a, b = call.shape(0), call.shape(1)
    if a is None or b is None:
        return (TensorType(call.unknown(2), call.type().dtype),)
    if len(a) != 2 or len(b) != 2:
        raise GraphError(f"Gemm multiplies matrices; A has rank {len(a)}, B has rank {len(b)}")
    (m, k), (k2, n) = a[:: -1 if call.attrs.get("transA") else 1], b[:: -1 if call.attrs.get("transB") else 1]
    _check_inner(k, k2)
    return (TensorType((m, n), call.type().dtype),)


def matmul(call: Call) -> Types:
    """NumPy's matmul: the last two axes are multiplied, those before them broadcast, a vector stands for a matrix."""
    a, b = call.shape(0), call.shape(1)
    if a is None or b is None:
        return (TensorType(None, call.type().dtype),)
    left, right = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
    if len(left) < 2 or len(right) < 2:
        raise GraphError("MatMul multiplies vectors, matrices or stacks of matrices; an input is a scalar")
    _check_inner(left[-1], right[-2])
    stack = broadcast_shapes([left[:-2], right[:-2]]) or ()
    return (TensorType((*stack, *left[-2:-1] * (len(a) > 1), *right[-1:] * (len(b) > 1)), call.type().dtype),)


def _check_inner(left: Dim, right: Dim) -> None:
    if isinstance(left, int) and isinstance(right, int) and left != right:
        raise GraphError(f"inner sizes {left} and {right} differ; a product needs them equal")
