"""The operators in NumPy, plain enough to read and fast enough for ResNet-50: arrays in, arrays out.

A function returns None when a node asks for something rare that it does not cover; the interpreter then turns to ONNX's
reference implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from labkit.graph import Array
from labkit.ops.windows import Window


@dataclass(frozen=True)
class Args:
    """What an operator is given: attributes, input arrays (None where left out), opset, number of outputs wanted."""

    attrs: Mapping[str, Any]
    arrays: tuple[Array | None, ...]
    opset: int
    wanted: int

    def __getitem__(self, index: int) -> Array:
        found = self.get(index)
        assert found is not None, f"input {index} is missing"
        return found

    def get(self, index: int) -> Array | None:
        return self.arrays[index] if index < len(self.arrays) else None

    def ints(self, name: str, index: int, since: int) -> tuple[int, ...] | None:
        """Integers that are an attribute before opset ``since`` and an input from then on."""
        found = self.attrs.get(name) if self.opset < since else self.get(index)
        return None if found is None else tuple(int(v) for v in np.ravel(found))


Results: TypeAlias = tuple[Array, ...] | None
Operator: TypeAlias = Callable[[Args], Results]


def elementwise(function: Callable[..., Any]) -> Operator:
    """An operator that applies ``function`` to its inputs, broadcasting, and keeps the element type."""

    def run(args: Args) -> Results:
        return (np.asarray(function(*args.arrays), dtype=args[0].dtype),)

    return run


def relu(args: Args) -> Results:
    return (np.maximum(args[0], args[0].dtype.type(0)),)


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), through the tail that cannot overflow."""
    tail = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1, tail) / (1 + tail))


def divide(a: Array, b: Array) -> Array:
    """Division as ONNX means it: integers truncate towards zero."""
    if a.dtype.kind == "f" or a.dtype.kind == "V":
        return np.asarray(a / b)
    quotient = np.floor_divide(a, b)
    return np.asarray(quotient + ((quotient < 0) & (quotient * b != a)))


def total(*arrays: Array) -> Array:
    return reduce(np.add, arrays)


def mean(*arrays: Array) -> Array:
    return np.asarray(total(*arrays) / len(arrays))


def largest(*arrays: Array) -> Array:
    return reduce(np.maximum, arrays)


def smallest(*arrays: Array) -> Array:
    return reduce(np.minimum, arrays)


def clip(args: Args) -> Results:
    """Clip: bounds are optional inputs; before opset 11 attributes, and the largest float32 where they are left out."""
    x, largest = args[0], float(np.finfo(np.float32).max)
    low, high = args.get(1), args.get(2)
    if args.opset < 11:
        low, high = args.attrs.get("min", -largest), args.attrs.get("max", largest)
    if low is not None:
        x = np.maximum(x, np.asarray(low, dtype=x.dtype))
    if high is not None:
        x = np.minimum(x, np.asarray(high, dtype=x.dtype))
    return (x,)


def conv(args: Args) -> Results:
    """Convolution as one matrix product a group: weights (M/g, C/g·K) times the windows (C/g·K, positions)."""
    x, w, groups = args[0], args[1], args.attrs.get("group", 1)
    if args.attrs.get("kernel_shape") not in (None, w.shape[2:]):
        return None
    windows = Window.of(args.attrs, w.shape[2:]).positions(precise(x), 0)
    rank, out = w.ndim - 2, windows.shape[2 : w.ndim]
    taps = tuple(range(2 + rank, 2 + 2 * rank))
    columns = windows.transpose(0, 1, *taps, *range(2, 2 + rank)).reshape(x.shape[0], groups, -1, int(np.prod(out)))
    rows = precise(w).reshape(groups, w.shape[0] // groups, -1)
    y = np.matmul(rows, columns).reshape(x.shape[0], w.shape[0], *out)
    bias = args.get(2)
    if bias is not None:
        y += bias.reshape(-1, *(1 for _ in out))
    return (y.astype(x.dtype, copy=False),)


def batch_norm(args: Args) -> Results:
    """BatchNormalization as the file's opset means it.

    Inference uses the stored statistics. Training mode, an attribute since opset 14 and before that the presence of
    further outputs, uses the batch's own and returns the updated running ones.
    """
    x, scale, bias, mean, var = (args[i] for i in range(5))
    epsilon, momentum = args.attrs.get("epsilon", 1e-5), args.attrs.get("momentum", 0.9)
    if args.opset < 9 and args.attrs.get("spatial", 1) == 0:
        return None
    training = bool(args.attrs.get("training_mode", 0)) if args.opset >= 14 else args.wanted > 1
    running: tuple[Array, ...] = ()
    if training:
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        batch_mean, batch_var = precise(x).mean(axis=axes), precise(x).var(axis=axes)
        pairs = ((mean, batch_mean), (var, batch_var))
        running = tuple((old * momentum + new * (1 - momentum)).astype(old.dtype) for old, new in pairs)
        if args.opset < 14:
            running += batch_mean.astype(mean.dtype), batch_var.astype(var.dtype)
        mean, var = batch_mean, batch_var
    along = (-1, *(1 for _ in x.shape[2:]))
    factor = (scale / np.sqrt(var + np.asarray(epsilon, dtype=var.dtype))).reshape(along)
    y = (x - mean.reshape(along)) * factor + bias.reshape(along)
    return (y.astype(x.dtype, copy=False), *running)


def dropout(args: Args) -> Results:
    """Dropout at inference passes its input on. A training-mode node is random and is left to the reference."""
    training = args.get(2) if args.opset >= 12 else None
    if training is not None and bool(training):
        return None
    # Before opset 12 no document says what the mask holds at inference; onnxruntime gives zeros, and so do we.
    mask = np.full(args[0].shape, args.opset >= 12, dtype=bool if args.opset >= 10 else args[0].dtype)
    return args[0], mask


def max_pool(args: Args) -> Results:
    """The largest of each window, and where it stood: its place in the whole input, flattened."""
    x = args[0]
    if x.dtype.kind == "V":
        return None
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    window = Window.of(args.attrs, args.attrs["kernel_shape"])
    windows = window.positions(x, lowest)
    largest = windows.max(axis=tuple(range(x.ndim, windows.ndim)))
    if args.wanted < 2:
        return (largest,)
    flat = windows.reshape(*largest.shape, -1)
    order: Any = "F" if args.attrs.get("storage_order", 0) else "C"
    plane = np.arange(np.prod(x.shape[2:], dtype=np.int64)).reshape(1, 1, *x.shape[2:], order=order)
    places = np.broadcast_to(window.positions(plane, -1), windows.shape).reshape(flat.shape)
    found = np.take_along_axis(places, flat.argmax(axis=-1)[..., None], axis=-1)[..., 0]
    planes = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *(1 for _ in x.shape[2:]))
    return largest, found + planes * plane.size


def average_pool(args: Args) -> Results:
    """Mean of each window; padding counts only with count_include_pad, what ceil_mode adds behind it never does."""
    x, window = args[0], Window.of(args.attrs, args.attrs["kernel_shape"])
    windows = window.positions(x, 0)
    taps = tuple(range(x.ndim, windows.ndim))
    inside = np.ones((1, 1, *x.shape[2:]), dtype=x.dtype)
    if args.attrs.get("count_include_pad", 0):
        pairs = window.pads(x.shape[2:])
        inside = np.ones((1, 1, *(s + a + b for s, (a, b) in zip(x.shape[2:], pairs, strict=True))), dtype=x.dtype)
        window = Window(
            window.kernel, window.strides, window.dilations, (0,) * len(pairs), (0,) * len(pairs), ceil=window.ceil
        )
    count = window.positions(inside, 0).sum(axis=taps)
    count = count[tuple(slice(0, n) for n in (1, 1, *windows.shape[2 : x.ndim]))]
    return ((windows.sum(axis=taps) / count).astype(x.dtype, copy=False),)


def global_average_pool(args: Args) -> Results:
    mean = precise(args[0]).mean(axis=tuple(range(2, args[0].ndim)), keepdims=True)
    return (mean.astype(args[0].dtype, copy=False),)


def global_max_pool(args: Args) -> Results:
    return (args[0].max(axis=tuple(range(2, args[0].ndim)), keepdims=True),)


def lrn(args: Args) -> Results:
    """Local response normalisation across channels (Krizhevsky et al. 2012, as ONNX's LRN)."""
    x, size = args[0], args.attrs["size"]
    before = (size - 1) // 2
    padded = np.pad(np.square(x), [(0, 0), (before, size - 1 - before), *((0, 0) for _ in x.shape[2:])])
    sums = np.lib.stride_tricks.sliding_window_view(padded, size, axis=1).sum(axis=-1)
    alpha, beta, bias = args.attrs.get("alpha", 1e-4), args.attrs.get("beta", 0.75), args.attrs.get("bias", 1.0)
    return ((x / (bias + alpha / size * sums) ** beta).astype(x.dtype, copy=False),)


def product(a: Array, b: Array) -> Array:
    """Matrix product; sums of a 16-bit type are kept in float32, then rounded once."""
    return np.asarray(np.matmul(precise(a), precise(b))).astype(a.dtype, copy=False)


def precise(x: Array) -> Array:
    """float16 and bfloat16 as float32, in which their sums are kept; anything else as it is."""
    return x.astype(np.float32) if x.dtype.kind in "fV" and x.dtype.itemsize == 2 else x


def matmul(args: Args) -> Results:
    return (product(args[0], args[1]),)


def gemm(args: Args) -> Results:
    a, b, c = args[0], args[1], args.get(2)
    y = product(a.T if args.attrs.get("transA") else a, b.T if args.attrs.get("transB") else b)
    y = y * np.asarray(args.attrs.get("alpha", 1.0), dtype=a.dtype)
    if c is not None:
        y = y + c * np.asarray(args.attrs.get("beta", 1.0), dtype=a.dtype)
    return (y.astype(a.dtype, copy=False),)


def softmax(args: Args) -> Results:
    """Softmax: along one axis since opset 13, over all axes from ``axis`` on before."""
    x = args[0]
    axis = args.attrs.get("axis", -1 if args.opset >= 13 else 1)
    over: Any = axis if args.opset >= 13 else tuple(range(axis % x.ndim if x.ndim else 0, x.ndim))
    power = np.exp(precise(x) - precise(x).max(axis=over, keepdims=True))
    return ((power / power.sum(axis=over, keepdims=True)).astype(x.dtype, copy=False),)
