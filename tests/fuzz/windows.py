"""Operators that slide a window over an image: convolutions and pools."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.graph import Value
from tests.fuzz.draft import Draft, Unsuitable


def image(d: Draft) -> tuple[Value, int, int]:
    """Something a window can slide over, its channels and its smallest spatial dim."""
    x = d.tensor(3, 5, dtypes=("float32",))
    channels, *spatial = (x.shape or ())[1:]
    if not isinstance(channels, int) or any(not isinstance(dim, int) for dim in spatial) or 0 in (x.shape or ()):
        raise Unsuitable  # onnxruntime 1.32 crashes on windows over an empty tensor
    return x, channels, min(spatial)


def window(d: Draft, kernel: tuple[int, ...], smallest: int) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    if smallest < max(kernel) or d.chance(0.3):
        attrs["pads"] = tuple(k // 2 for k in kernel) * 2 if d.chance(0.7) else tuple(0 for k in kernel) * 2
    elif d.chance(0.12):
        attrs["auto_pad"] = d.choose(["SAME_UPPER", "SAME_LOWER", "VALID"])
    if d.chance(0.2):
        attrs["strides"] = (2,) * len(kernel)
    elif d.chance(0.1):
        attrs["strides"] = (1,) * len(kernel)
    return attrs


def conv(d: Draft) -> None:
    x, channels, smallest = image(d)
    free = len(x.shape or ()) - 2
    transposed = d.chance(0.3)
    kernel = (d.choose([1, 1, 2, 3]),) * free
    groups = d.choose([g for g in (1, 1, 1, 2, channels) if channels % g == 0])
    out = d.choose([channels, channels, groups, 2 * groups])
    out += -out % groups
    attrs = window(d, kernel, smallest)
    if transposed:
        attrs.pop("auto_pad", None)
        if attrs.get("pads") and smallest <= max(kernel):
            attrs.pop("pads")
    elif smallest < max(kernel) and "pads" not in attrs:
        raise Unsuitable
    if groups > 1 or d.chance(0.2):
        attrs["group"] = groups
    if d.chance(0.3):
        attrs["kernel_shape"] = kernel
    shape = (channels, out // groups, *kernel) if transposed else (out, channels // groups, *kernel)
    weight = d.floats(shape)
    if d.chance(0.06):
        weight = d.overridable_constant(d.rng.standard_normal(shape).astype(np.float32))
    d.add("ConvTranspose" if transposed else "Conv", [x, weight, d.floats((out,)) if d.chance(0.4) else None], attrs)


def pool(d: Draft) -> None:
    x, _, smallest = image(d)
    if d.chance(0.25):
        d.add(d.choose(["GlobalAveragePool", "GlobalMaxPool"]), [x])
        return
    kernel = (d.choose([1, 2, 2, 3]),) * (len(x.shape or ()) - 2)
    if smallest < max(kernel):
        raise Unsuitable
    attrs = {"kernel_shape": kernel, **window(d, kernel, smallest)}
    if d.chance(0.5):
        if d.opset >= 10 and not any(attrs.get("pads", ())) and d.chance(0.25):
            attrs["ceil_mode"] = 1  # with pads ONNX's own shape inference counts a window too many before opset 22
        d.add("MaxPool", [x], attrs, 2 if d.chance(0.15) else 1)
    else:
        d.add("AveragePool", [x], {**attrs, **({"count_include_pad": 1} if d.chance(0.3) else {})})
