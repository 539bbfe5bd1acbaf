"""Operators that ONNX's reference runs in their newer spelling only: Resize and Upsample before opset 11."""

from __future__ import annotations

import numpy as np

from labkit.graph import Array
from labkit.ops.compute import Args, Results


def older(op: str, args: Args) -> Results:
    """The results of such a node; None for any other."""
    if op not in ("Resize", "Upsample") or args.opset >= 11 or args.attrs.get("mode", "nearest") not in _AXIS:
        return None
    scales = args.attrs["scales"] if args.opset < 9 else args[1]
    array = args[0]
    for axis, scale in enumerate(np.asarray(scales, np.float32)):
        if scale != 1:
            array = _AXIS[args.attrs.get("mode", "nearest")](array, axis, scale)
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


_AXIS = {"nearest": _nearest, "linear": _linear}
