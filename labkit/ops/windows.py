"""Sliding windows: the arithmetic that Conv and the pools share, for any number of spatial axes (ONNX operators Conv,
MaxPool, AveragePool)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.errors import GraphError
from labkit.graph import Array, Dim


@dataclass(frozen=True)
class Window:
    """Kernel, stride, dilation and padding along each spatial axis, in elements.

    ``before``/``after`` are explicit pads; ``auto`` is ONNX's auto_pad, which computes them from the input size.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    auto: str = "NOTSET"
    ceil: bool = False

    @staticmethod
    def of(attrs: Mapping[str, Any], kernel: Sequence[int]) -> Window:
        """Read the attributes of a Conv or a pool; GraphError when a list has not one entry for each spatial axis."""
        rank = len(kernel)
        ones, zeros = (1,) * rank, (0,) * 2 * rank
        strides = tuple(attrs.get("strides") or ones)
        dilations = tuple(attrs.get("dilations") or ones)
        pads = tuple(attrs.get("pads") or zeros)
        if (len(strides), len(dilations), len(pads)) != (rank, rank, 2 * rank):
            raise GraphError(f"strides {strides}, dilations {dilations}, pads {pads} do not fit {rank} spatial axes")
        if min((*kernel, *strides, *dilations), default=1) < 1:
            raise GraphError(f"kernel {tuple(kernel)}, strides {strides} and dilations {dilations} must be 1 or more")
        auto, ceil = attrs.get("auto_pad", "NOTSET"), bool(attrs.get("ceil_mode", 0))
        return Window(tuple(kernel), strides, dilations, pads[:rank], pads[rank:], auto, ceil)

    @property
    def extents(self) -> tuple[int, ...]:
        """Input elements from the first tap to the last, along each axis."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def pads(self, sizes: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """(before, after) along each axis for an input of these sizes."""
        if self.auto == "NOTSET":
            return tuple(zip(self.before, self.after, strict=True))
        if self.auto == "VALID":
            return ((0, 0),) * len(sizes)
        pairs = []
        for size, stride, extent in zip(sizes, self.strides, self.extents, strict=True):
            total = max((-(-size // stride) - 1) * stride + extent - size, 0)
            small, large = total // 2, total - total // 2
            pairs.append((small, large) if self.auto == "SAME_UPPER" else (large, small))
        return tuple(pairs)

    def output_size(self, axis: int, size: Dim) -> Dim:
        """Number of window positions along one spatial axis; an expression when the input size is symbolic."""
        extent, stride = self.extents[axis], self.strides[axis]
        if isinstance(size, str):
            pads = self.auto if self.auto != "NOTSET" else self.before[axis] + self.after[axis]
            rounding = "ceil" if self.ceil else "floor"
            unchanged = stride == 1 and (self.auto.startswith("SAME") or pads == extent - 1)
            return size if unchanged else f"{rounding}(({size}+{pads}-{extent})/{stride}+1)"
        if self.auto.startswith("SAME"):
            return -(-size // stride)
        before, after = (0, 0) if self.auto == "VALID" else (self.before[axis], self.after[axis])
        room = size + before + after - extent
        count = (-(-room // stride) if self.ceil else room // stride) + 1
        count = max(count, 0)
        # A window that would start in the padding behind the input is left out (only ceil_mode can make one).
        return count - 1 if self.ceil and (count - 1) * stride >= size + before else count

    def output_sizes(self, sizes: Sequence[Dim]) -> tuple[Dim, ...]:
        """Number of window positions along each spatial axis."""
        return tuple(self.output_size(axis, size) for axis, size in enumerate(sizes))

    def positions(self, x: Array, fill: float) -> Array:
        """Every window of ``x`` (N, C, *spatial) as a view (N, C, *out, *kernel); padding reads as ``fill``."""
        sizes, rank = x.shape[2:], len(self.kernel)
        out = [int(size) for size in self.output_sizes(sizes)]
        pairs = []
        for axis, (before, after) in enumerate(self.pads(sizes)):
            reach = max(out[axis] - 1, 0) * self.strides[axis] + self.extents[axis]
            pairs.append((before, max(after, reach - sizes[axis] - before)))
        if any(pair != (0, 0) for pair in pairs):
            x = np.pad(x, [(0, 0), (0, 0), *pairs], constant_values=fill)
        spatial = tuple(range(2, 2 + rank))
        windows = np.lib.stride_tricks.sliding_window_view(x, self.extents, axis=spatial)
        starts = tuple(slice(0, max((n - 1) * s + 1, 0), s) for n, s in zip(out, self.strides, strict=True))
        taps = tuple(slice(None, None, d) for d in self.dilations)
        return windows[(slice(None), slice(None), *starts, *taps)]
