"""Operators that ONNX's reference runs in their newer spelling only: Resize and Upsample before opset 11."""

from __future__ import annotations

import numpy as np

from labkit.graph import Array
from labkit.ops.compute import Args, Operator, Results


def resize(args: Args) -> Results:
    """An image at other sizes, axis by axis. None from opset 11 on, whose Resize says more."""
    along = _ALONG.get(args.attrs.get("mode", "nearest"))
    if args.opset >= 11 or along is None:
        return None
    array = args[0]
    scales = np.asarray(args.attrs["scales"] if args.opset < 9 else args[1], np.float32)
    for axis, scale in zip(range(array.ndim), scales, strict=True):
        array = array if scale == 1 else along(array, axis, scale)
    return (array,)


def _places(size: int, scale: np.float32) -> Array:
    """Where each element of the result lies among those of the input: at its number over the scale."""
    return np.arange(np.floor(np.float32(size) * scale), dtype=np.float32) / scale


def _nearest(array: Array, axis: int, scale: np.float32) -> Array:
    """The element at or in front of a place; behind it where the axis shrinks, as onnxruntime has it."""
    places = _places(array.shape[axis], scale)
    whole = (np.ceil if scale < 1 else np.floor)(places).astype(np.int64)
    return np.asarray(np.take(array, np.minimum(whole, array.shape[axis] - 1), axis))


def _linear(array: Array, axis: int, scale: np.float32) -> Array:
    places = np.minimum(_places(array.shape[axis], scale), array.shape[axis] - 1)
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, array.shape[axis] - 1)
    share = (places - below).reshape(-1, *(1,) * (array.ndim - axis - 1))
    mixed = np.take(array, below, axis) * (1 - share) + np.take(array, above, axis) * share
    return np.asarray(mixed, array.dtype)


_ALONG = {"nearest": _nearest, "linear": _linear}
OLDER: dict[str, Operator] = {"Resize": resize, "Upsample": resize}
