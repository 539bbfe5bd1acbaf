"""ConvTranspose: each input element spread over the output by the kernel, where Conv gathers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labkit.errors import GraphError
from labkit.graph import Dim, TensorType
from labkit.ops.call import Call, Types
from labkit.ops.compute import Args, Results
from labkit.ops.windows import Window

Pairs = list[tuple[int, int]]


def _layout(attrs: Mapping[str, Any], sizes: Sequence[int], kernel: Sequence[int]) -> tuple[list[int], Pairs]:
    """Output sizes before cropping, and what is cropped before and behind, along each spatial axis."""
    window = Window.of(attrs, kernel)
    rank = len(kernel)
    further = tuple(attrs.get("output_padding") or (0,) * rank)
    wanted = attrs.get("output_shape")
    auto = attrs.get("auto_pad", "NOTSET")
    if auto.startswith("SAME") and wanted is None:
        wanted = [size * stride for size, stride in zip(sizes, window.strides, strict=True)]
    full = [
        (size - 1) * stride + extent + more
        for size, stride, extent, more in zip(sizes, window.strides, window.extents, further, strict=True)
    ]
    if wanted is None:
        zeros = (0,) * rank
        before, after = (zeros, zeros) if auto == "VALID" else (window.before, window.after)
        return full, list(zip(before, after, strict=True))
    totals = [have - want for have, want in zip(full, list(wanted)[-rank:], strict=True)]
    small = [total // 2 for total in totals]
    large = [total - half for total, half in zip(totals, small, strict=True)]
    # ONNX puts the odd element in front unless auto_pad is SAME_UPPER.
    return full, list(zip(small, large, strict=True) if auto == "SAME_UPPER" else zip(large, small, strict=True))


def infer(call: Call) -> Types:
    x, w = call.shape(0), call.shape(1)
    if x is None or w is None:
        return (TensorType(call.unknown(len(x or w or ()) or None), call.type().dtype),)
    groups = call.attrs.get("group", 1)
    if len(x) < 3 or len(w) != len(x):
        raise GraphError(f"input of rank {len(x)} and weight of rank {len(w)}: both need N or C, M and spatial axes")
    if isinstance(x[1], int) and isinstance(w[0], int) and x[1] != w[0]:
        raise GraphError(f"input has {x[1]} channels, weight wants {w[0]}")
    channels: Dim = w[1] * groups if isinstance(w[1], int) else f"?{call.key}.1"
    sizes, kernel = ([dim for dim in dims if isinstance(dim, int)] for dims in (x[2:], w[2:]))
    if len(sizes) + len(kernel) < 2 * (len(x) - 2):
        return (TensorType((x[0], channels, *(call.unknown(len(x)) or ())[2:]), call.type().dtype),)
    full, crops = _layout(call.attrs, sizes, kernel)
    spatial = (size - before - after for size, (before, after) in zip(full, crops, strict=True))
    return (TensorType((x[0], channels, *spatial), call.type().dtype),)


def run(args: Args) -> Results:
    """One scaled copy of the input for each tap of the kernel; weights are (C, M/g, …)."""
    x, w, groups = args[0], args[1], args.attrs.get("group", 1)
    kernel = w.shape[2:]
    window = Window.of(args.attrs, kernel)
    full, crops = _layout(args.attrs, x.shape[2:], kernel)
    if min(side for pair in crops for side in pair) < 0 or args.attrs.get("kernel_shape") not in (None, kernel):
        return None
    precise = np.float32 if x.dtype == np.float16 else x.dtype
    source = x.astype(precise, copy=False).reshape(x.shape[0], groups, -1, *x.shape[2:])
    weight = w.astype(precise, copy=False).reshape(groups, -1, *w.shape[1:])
    y = np.zeros((x.shape[0], groups, w.shape[1], *full), dtype=precise)
    for tap in np.ndindex(*kernel):
        places = tuple(
            slice(t * dilation, t * dilation + (size - 1) * stride + 1, stride)
            for t, dilation, size, stride in zip(tap, window.dilations, x.shape[2:], window.strides, strict=True)
        )
        y[(slice(None),) * 3 + places] += np.einsum("ngc...,gcm->ngm...", source, weight[(slice(None),) * 3 + tap])
    inside = tuple(slice(before, size - after) for size, (before, after) in zip(full, crops, strict=True))
    y = y[(slice(None),) * 3 + inside].reshape(x.shape[0], -1, *(part.stop - part.start for part in inside))
    bias = args.get(2)
    if bias is not None:
        y = y + bias.reshape(-1, *(1 for _ in kernel))
    return (np.ascontiguousarray(y, dtype=x.dtype),)
