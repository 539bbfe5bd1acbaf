"""What a walk through a tensor costs in lines: each figure is counted from the addresses, none is a formula."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabError
from labkit.layout import Layout

# A walk is a sequence of runs, and a run is what is read together: these axes of the tensor. None means all of them.
WALKS = {"channel": "C", "row": "W", "plane": "HW", "image": "CHW", "whole": None}
# The same of the weights of a convolution: axes O (filters), I (channels), H, W.
WEIGHT_WALKS = {"outputs": "O", "inputs": "I", "row": "W", "filter": "IHW", "whole": None}
MAX_ADDRESSES = 2**24

Addresses = NDArray[np.int64]


@dataclass(frozen=True)
class LineUse:
    """What ``runs`` runs cost when each fetches its own lines and nothing stays on the chip from one to the next.

    ``lines_touched``: for each run the different lines with at least one of its bytes, summed. ``bytes_used``: the
    different bytes the runs ask for. ``bytes_fetched``: whole lines. ``straddles``: runs with a gapless piece that
    crosses a line border.
    """

    runs: int
    lines_touched: int
    bytes_used: int
    bytes_fetched: int
    straddles: int

    @property
    def useful_share(self) -> float:
        """Share of the fetched bytes that were asked for, 0 to 1; 0 when nothing was fetched."""
        return self.bytes_used / self.bytes_fetched if self.bytes_fetched else 0.0


def addresses(layout: Layout, walk: str = "channel", itemsize: int = 4, base: int = 0) -> Addresses:
    """Byte address of each element a walk reads: int64 of shape (runs, elements in a run), both in logical order.

    "channel" reads all channels of one pixel in a run (one run for each n, h, w), "row" one row of W, "plane" one
    channel's H by W, "image" one n, "whole" everything in a single run; of weights "outputs" reads all O of one
    (i, h, w), "inputs" all I of one (o, h, w), "filter" one o. ``base`` is the address of offset 0.

    Raises LabError for an unknown walk, an axis the layout lacks, addresses beyond 64 bit, more than 2**24 of them.

    >>> addresses(Layout.dense((1, 3, 1, 2), "NHWC"), "channel").tolist()
    [[0, 4, 8], [12, 16, 20]]
    """
    inner = _run_axes(layout, walk)
    if layout.size > MAX_ADDRESSES:
        raise LabError(f"shape {layout.shape} has {layout.size} elements, a walk is counted for up to {MAX_ADDRESSES}")
    low, high = layout.bounds or (0, 0)
    if itemsize < 1 or base < 0 or base + high * itemsize >= 2**63 - itemsize or base + low * itemsize < 0:
        raise LabError(f"base {base} and item size {itemsize}: addresses start at 0 and must fit 64 bit")
    outer = [axis for axis in layout.logical_axes if axis not in inner]
    lengths = dict(zip(layout.logical_axes, layout.logical_shape, strict=True))
    split = [a for axis in (*outer, *inner) for a in (axis, axis.lower()) if a in layout.axes]
    runs, elements = prod(lengths[axis] for axis in outer), prod(lengths[axis] for axis in inner)
    return base + itemsize * layout.permute(split).offsets().reshape(runs, elements)


def line_use(addresses: Addresses, itemsize: int, line_bytes: int) -> LineUse:
    """Count the lines of one run (a 1-D array of byte addresses) or of many (2-D, one run a row).

    >>> line_use(np.array([60, 64, 68]), itemsize=4, line_bytes=64)
    LineUse(runs=1, lines_touched=2, bytes_used=12, bytes_fetched=128, straddles=1)
    """
    runs = _sorted_runs(addresses)
    lines = int(_lines_of_runs(runs, itemsize, line_bytes).sum())
    crossing = _crosses(runs, itemsize, line_bytes)
    steps = np.minimum(np.diff(runs, axis=1), itemsize)  # an address that comes twice asks for no new byte
    used = int(steps.sum()) + (runs.shape[0] * itemsize if runs.size else 0)
    return LineUse(runs.shape[0], lines, used, lines * line_bytes, int(crossing.sum()))


def straddling(addresses: Addresses, itemsize: int, line_bytes: int) -> list[int]:
    """Numbers of the runs, counted from 0, that have a gapless piece across a line border.

    >>> straddling(addresses(Layout.dense((1, 3, 4, 4), "NHWC")), itemsize=4, line_bytes=64)
    [5, 10]
    """
    crossing = _crosses(_sorted_runs(addresses), itemsize, line_bytes)
    return [int(run) for run in np.flatnonzero(crossing)]


def _run_axes(layout: Layout, walk: str) -> tuple[str, ...]:
    known = WALKS | WEIGHT_WALKS
    if walk not in known:
        raise LabError(f"no walk {walk!r}; there are: {', '.join(known)}")
    axes = known[walk]
    missing = [axis for axis in axes or () if axis not in layout.axes]
    if missing:
        raise LabError(f"walk {walk!r} runs along {', '.join(axes or ())}: no axis {missing[0]} here; try whole")
    return layout.logical_axes if axes is None else tuple(axes)


def _sorted_runs(addresses: Addresses) -> Addresses:
    return np.sort(np.atleast_2d(addresses), axis=1)


def _first_and_last_line(runs: Addresses, itemsize: int, line_bytes: int) -> tuple[Addresses, Addresses]:
    if line_bytes < 1:
        raise LabError(f"a line of {line_bytes} bytes: a line has 1 byte or more")
    return runs // line_bytes, (runs + itemsize - 1) // line_bytes


def _lines_of_runs(runs: Addresses, itemsize: int, line_bytes: int) -> Addresses:
    first, last = _first_and_last_line(runs, itemsize, line_bytes)
    known = np.concatenate([first[:, :1] - 1, last[:, :-1]], axis=1)  # the highest line counted so far
    lines: Addresses = (last - np.maximum(first - 1, known)).sum(axis=1)
    return lines


def _crosses(runs: Addresses, itemsize: int, line_bytes: int) -> NDArray[np.bool_]:
    first, last = _first_and_last_line(runs, itemsize, line_bytes)
    neighbours = np.diff(runs, axis=1) <= itemsize
    border = np.diff(last, axis=1) > 0
    crossing: NDArray[np.bool_] = (first != last).any(axis=1) | (neighbours & border).any(axis=1)
    return crossing
