"""Lesson 01: one run of a walk through a tensor, on the lines of a flat memory.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from labkit.errors import LabError
from labkit.layout import Layout
from labkit.memory.lines import WALKS, WEIGHT_WALKS, LineUse, addresses, line_use, straddling

if TYPE_CHECKING:
    from labkit.explore.layouts_view import LayoutExplorer

ORDERS = ("NCHW", "NHWC", "NCHW4c", "NCHW8c")
LINE_SIZES = (32, 64, 128)
WEIGHT_ORDERS = ("OIHW", "HWIO")
LARGEST = {"N": 2, "C": 16, "O": 16, "I": 8, "H": 8, "W": 8}
_ROWS = 14  # lines that fit on a screen
_NAMED = 4  # straddling runs named in the text; a longer list pushes the rest away


@dataclass(frozen=True)
class LayoutState:
    """All that the explorer shows: where each element lies, which ones run number ``run`` reads, what that costs.

    ``touched`` are offsets in elements, in ascending order; ``rows`` the numbers of the lines drawn; ``use`` the cost
    of this run, ``all_runs`` of all runs of the walk, ``straddling`` the runs that cross a line border.
    """

    layout: Layout
    order: str
    walk: str
    run: int
    itemsize: int
    line_bytes: int
    base: int
    touched: tuple[int, ...]
    rows: tuple[int, ...]
    use: LineUse
    all_runs: LineUse
    straddling: tuple[int, ...]

    @property
    def lines(self) -> int:
        """Number of lines from address 0 to the last element."""
        return -(-(self.base + self.layout.size * self.itemsize) // self.line_bytes)

    @property
    def position(self) -> str:
        """What this run reads, in words: "n=0 h=1 w=2, every c"."""
        inner = walks(self.order)[self.walk] or "".join(self.layout.logical_axes)
        sizes = dict(zip(self.layout.logical_axes, self.layout.logical_shape, strict=True))
        left = self.run
        fixed: list[str] = []
        for axis in reversed([axis for axis in sizes if axis not in inner]):
            left, index = divmod(left, sizes[axis])
            fixed.insert(0, f"{axis.lower()}={index}")
        every = "every " + ", ".join(inner.lower())
        return f"{' '.join(fixed)}, {every}" if fixed else every

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The state in words and numbers, a label and a value each."""
        known = WEIGHT_ORDERS if self.order in WEIGHT_ORDERS else ("NCHW", "NHWC")
        fits = [order for order in self.layout.orders(known) if order != self.order]
        named = ", ".join(map(str, self.straddling[:_NAMED])) + (" …" if len(self.straddling) > _NAMED else "")
        straddles = f"{len(self.straddling)}: run{'s' * (len(self.straddling) > 1)} {named}" if named else "0"
        return (
            ("Strides (elements)", "  ".join(f"{a} {self.layout.stride(a)}" for a in self.layout.memory_axes)),
            ("Memory order", self.order + (f", and {', '.join(fits)} too" if fits else "")),
            (f"Run {self.run} of {self.all_runs.runs}", self.position),
            ("Lines touched", str(self.use.lines_touched)),
            ("Bytes used", f"{self.use.bytes_used} of {self.use.bytes_fetched} fetched"),
            ("Useful share", f"{self.use.useful_share:.1%}"),
            ("Crosses a line border", "yes" if self.run in self.straddling else "no"),
            ("Straddles, all runs", straddles),
            ("Lines, all runs", f"{self.all_runs.lines_touched}"),
        )

    @property
    def headline(self) -> str:
        """What is looked at."""
        shape = "×".join(map(str, self.layout.logical_shape))
        return f"{shape} in {self.order}, walk {self.walk}, run {self.run} of {self.all_runs.runs} ({self.position})"

    @property
    def cost(self) -> str:
        """What it costs, in one sentence."""
        lines = f"{self.use.lines_touched} line{'s' * (self.use.lines_touched != 1)} of {self.line_bytes} bytes"
        share = f"{self.use.bytes_used} of {self.use.bytes_fetched} bytes used ({self.use.useful_share:.1%})"
        straddles = f"{self.all_runs.straddles} of the {self.all_runs.runs} runs straddle a line border"
        return f"{lines} touched, {share}; {straddles}."

    def strip(self) -> str:
        """The memory drawn with characters: one row a line, # read by this run, . not read, blank not of this tensor.

        >>> print(data((1, 3, 2, 2), "NHWC", run=1).strip())
        line 0 |...###......    |
        """
        width, first = self.line_bytes // self.itemsize, self.base // self.itemsize
        read = {offset + first for offset in self.touched}
        digits, text, after = len(str(self.lines - 1)), [], 0
        for row in (*self.rows, self.lines):
            if row > after:
                text.append(f"     ({row - after} line{'s' * (row - after > 1)} left out)")
            if row < self.lines:
                cells = range(row * width, (row + 1) * width)
                own = ["#" if c in read else "." if 0 <= c - first < self.layout.size else " " for c in cells]
                text.append(f"line {row:{digits}} |{''.join(own)}|")
            after = row + 1
        return "\n".join(text)


def data(
    shape: tuple[int, ...] = (2, 3, 4, 4),
    order: str = "NHWC",
    walk: str = "channel",
    run: int = 0,
    line_bytes: int = 64,
    itemsize: int = 4,
    base: int = 0,
) -> LayoutState:
    """The state of the explorer for a logical NCHW ``shape``; ``base`` is the byte address of the first element.

    With an order of WEIGHT_ORDERS it is one of weights: the shape is OIHW and the walks are WEIGHT_WALKS.
    LabError for what Layout and the walk refuse, a run that does not exist, and a line or a base that is not a
    whole number of elements (the strip could not draw it).
    """
    if line_bytes % itemsize or base % itemsize:
        raise LabError(f"line of {line_bytes} bytes, base {base}: the strip draws whole elements of {itemsize} bytes")
    layout = Layout.dense(shape, order)
    runs = addresses(layout, walk, itemsize, base)
    if not 0 <= run < len(runs):
        raise LabError(f"run {run}: the walk {walk!r} has {len(runs)} runs, numbered from 0")
    touched = tuple(sorted(int(address - base) // itemsize for address in runs[run]))
    return LayoutState(
        layout=layout,
        order=order,
        walk=walk,
        run=run,
        itemsize=itemsize,
        line_bytes=line_bytes,
        base=base,
        touched=touched,
        rows=_rows(touched, base // itemsize, layout.size, line_bytes // itemsize),
        use=line_use(runs[run], itemsize, line_bytes),
        all_runs=line_use(runs, itemsize, line_bytes),
        straddling=tuple(straddling(runs, itemsize, line_bytes)),
    )


def axes_of(order: str) -> str:
    """The logical axes of a tensor in this order."""
    return "OIHW" if order in WEIGHT_ORDERS else "NCHW"


def walks(order: str) -> Mapping[str, str | None]:
    """The walks through a tensor in this order."""
    return WEIGHT_WALKS if order in WEIGHT_ORDERS else WALKS


def run_count(shape: tuple[int, ...], walk: str, order: str = "NCHW") -> int:
    """Number of runs of a walk through a logical shape."""
    inner = walks(order)[walk] or axes_of(order)
    return prod(length for axis, length in zip(axes_of(order), shape, strict=True) if axis not in inner)


def show(shape: tuple[int, int, int, int] = (2, 3, 4, 4), order: str = "NHWC") -> LayoutExplorer:
    """The live explorer: sliders for shape, run, line and base, the memory strip, and its state in text.

    Of weights, where ``order`` is one of WEIGHT_ORDERS.
    """
    from labkit.explore.layouts_view import LayoutExplorer

    return LayoutExplorer(shape, order)


def _rows(touched: tuple[int, ...], first: int, size: int, width: int) -> tuple[int, ...]:
    """Lines to draw: all when they fit, else those the run touches and, while there is room, the first others."""
    every = range(first // width, (first + size - 1) // width + 1)
    needed = sorted({(offset + first) // width for offset in touched})[:_ROWS]
    others = [row for row in every if row not in needed]
    return tuple(sorted(needed + others[: _ROWS - len(needed)]))
