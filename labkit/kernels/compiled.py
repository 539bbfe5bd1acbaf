"""Two kernels for a real CPU, compiled by numba; importing this module imports numba. ``labkit.measure`` times them."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from labkit.memory.jit import compiled

Array = NDArray[Any]


@compiled
def tiled_product(A: Array, B: Array, C: Array, tile: int) -> None:
    """C += A · B by tiles of ``tile`` cubed, loops m, n, k outside and inside: those of ``matmul_trace``."""
    m, n, k = A.shape[0], B.shape[1], A.shape[1]
    for i0 in range(0, m, tile):
        for j0 in range(0, n, tile):
            for k0 in range(0, k, tile):
                for i in range(i0, min(i0 + tile, m)):
                    for j in range(j0, min(j0 + tile, n)):
                        total = C[i, j]
                        for x in range(k0, min(k0 + tile, k)):
                            total += A[i, x] * B[x, j]
                        C[i, j] = total


@compiled
def channel_sums(x: Array, pixels: int, channels: int, pixel_step: int, channel_step: int, sums: Array) -> None:
    """The sum over all channels of each pixel of a flat tensor, one pixel after the other; steps in elements."""
    for pixel in range(pixels):
        at = pixel * pixel_step
        total = x[at]
        for _ in range(1, channels):
            at += channel_step
            total += x[at]
        sums[pixel] = total
