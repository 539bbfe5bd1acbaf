"""Layout transforms as kernels on a Scratchpad: no arithmetic, every byte moved twice, and every run counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from labkit.errors import LabError
from labkit.kernels.arrange import arrange
from labkit.kernels.nest import run_nest
from labkit.loops import LoopNest
from labkit.memory.scratchpad import Scratchpad
from labkit.problems import transform

Array = NDArray[Any]


def transform_nest(
    shape: tuple[int, int, int, int],
    source: str,
    target: str,
    dtype: str = "float32",
    tile: Mapping[str, int] | None = None,
    order: Sequence[str] = (),
) -> LoopNest:
    """The nest of a transform: loops n, c, h, w, and ci inside a block. ``tile`` has sizes of some of them."""
    nest = LoopNest.of(transform(shape, source, target, dtype)).reorder(*order)
    for loop, size in (tile or {}).items():
        nest = nest.split(loop, size)
    return nest


def run_transform(
    x: Array,
    source: str,
    target: str,
    pad: Scratchpad,
    tile: Mapping[str, int] | None = None,
    order: Sequence[str] = (),
) -> Array:
    """A tensor of logical shape (n, c, h, w), moved from one memory order into another tile by tile.

    Returns the memory of the result: its bytes in ``target`` order. X is first put into ``source`` order, which costs
    nothing. Every element is read once and written once whatever the tile; what the tile decides is how many contiguous
    runs that takes (spec §2.4), and whether it fits.

    >>> import numpy as np
    >>> pad = Scratchpad("1KiB")
    >>> x = np.arange(16, dtype=np.float32).reshape(1, 4, 2, 2)
    >>> run_transform(x, "NCHW", "NHWC", pad)[:5].tolist(), pad.ledger.traffic.nbytes, pad.ledger.runs
    ([0.0, 4.0, 8.0, 12.0, 1.0], 128, 2)
    """
    if x.ndim != 4:
        raise LabError(f"transform of shape {x.shape}: wanted the logical (n, c, h, w)")
    nest = transform_nest(x.shape, source, target, x.dtype.name, tile, order)
    (operand,) = nest.problem.inputs
    memory = arrange(x, source, by_group=False).reshape(operand.shape)
    return run_nest(nest, {"X": memory}, pad, name=f"{source} to {target}").ravel()
