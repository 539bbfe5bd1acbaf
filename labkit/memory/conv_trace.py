"""The address trace of a direct convolution, as a loop nest; the places of its arrays are as in ``trace``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from math import prod

from labkit.errors import LabError
from labkit.layout import Layout
from labkit.memory.affine import AffineTrace, Loop, Reference
from labkit.memory.ledger import Kind
from labkit.memory.trace import Body, check_sizes, place

_LONGEST = 2**20


@dataclass(frozen=True)
class _Piece:
    """``count`` output rows (or columns) from ``first`` on whose kernel taps inside the image are the same ones."""

    first: int
    count: int
    tap: int
    taps: int


@dataclass(frozen=True)
class _Steps:
    """What separates two output rows, and two taps, in input rows; and how many rows the padding adds in front."""

    stride: int
    pad: int
    dilation: int

    def pieces(self, length: int, kernel: int) -> list[_Piece]:
        """The output rows of an input of so many rows, in order; the border rows have pieces of their own."""
        outputs = (length + 2 * self.pad - self.dilation * (kernel - 1) - 1) // self.stride + 1
        if not 1 <= outputs <= _LONGEST:
            raise LabError(
                f"conv: length {length}, kernel {kernel}, stride {self.stride}, pad {self.pad}, dilation "
                f"{self.dilation} give {outputs} output rows: from 1 to {_LONGEST} can be traced"
            )
        taps = (self._taps(at, length, kernel) for at in range(outputs))
        return list(_runs(taps))

    def _taps(self, output: int, length: int, kernel: int) -> tuple[int, int]:
        """(first tap, number of taps) that fall inside the image."""
        start = output * self.stride - self.pad
        first = max(0, -(start // self.dilation))
        last = min(kernel - 1, (length - 1 - start) // self.dilation)
        return (first, last - first + 1) if last >= first else (0, 0)

    def input_row(self, piece: _Piece) -> int:
        """The input row of the piece's first tap for its first output row."""
        return piece.first * self.stride - self.pad + piece.tap * self.dilation


def _runs(taps: Iterator[tuple[int, int]]) -> Iterator[_Piece]:
    first = 0
    for (tap, number), group in groupby(taps):
        count = len(list(group))
        yield _Piece(first, count, tap, number)
        first += count


def conv_trace(
    n: int,
    c: int,
    h: int,
    w: int,
    filters: int,
    kernel: int,
    stride: int = 1,
    pad: int = 0,
    dilation: int = 1,
    groups: int = 1,
    order: str = "NCHW",
    itemsize: int = 4,
    base: int = 0,
    align: int = 64,
) -> AffineTrace:
    """A direct 2-D convolution of x[n,c,h,w] with square kernels W, all tensors in ``order``, "NCHW" or "NHWC".

    The loops run in the order of memory. NCHW: image, group, filter, output row and column, then channel, kernel row
    and column. NHWC: image, output row and column, group, filter, then kernel row and column, channel. Each innermost
    step reads x, then W; after the three inner loops y is written once. Steps that fall into the padding are not made.

    Raises LabError for sizes below 1, groups that do not divide the channels and filters, an output without elements.

    >>> conv_trace(1, 1, 3, 3, 1, 3).accesses, conv_trace(1, 1, 3, 3, 1, 3, pad=1).accesses
    (19, 107)
    """
    sizes = {"n": n, "c": c, "h": h, "w": w, "filters": filters, "kernel": kernel, "stride": stride}
    check_sizes({**sizes, "dilation": dilation, "groups": groups, "itemsize": itemsize, "align": align})
    if order not in ("NCHW", "NHWC") or pad < 0:
        raise LabError(f"conv: order {order!r}, pad {pad}: choose NCHW or NHWC, and a pad of 0 or more")
    if c % groups or filters % groups:
        raise LabError(f"conv: {groups} groups must divide the {c} channels and the {filters} filters")
    steps = _Steps(stride, pad, dilation)
    rows, columns = steps.pieces(h, kernel), steps.pieces(w, kernel)
    outputs = [sum(piece.count for piece in pieces) for pieces in (rows, columns)]
    shapes = {"x": (n, c, h, w), "W": (filters, c // groups, kernel, kernel), "y": (n, filters, *outputs)}
    starts = place({name: prod(shape) for name, shape in shapes.items()}, itemsize, base, align)
    tensors = {
        name: _Tensor(name, start, {axis: Layout.dense(shape, order).stride(axis) * itemsize for axis in "NCHW"})
        for (name, shape), start in zip(shapes.items(), starts, strict=True)
    }
    return AffineTrace(_Nest(tensors, steps, n, groups, filters // groups, c // groups, order).body(rows, columns))


@dataclass(frozen=True)
class _Tensor:
    name: str
    base: int
    strides: dict[str, int]  # bytes a step of N, C, H or W; the filters of W are its N

    def at(self, steps: dict[str, int], offset: int, kind: Kind = "read") -> Reference:
        return Reference(self.name, self.base + offset, tuple(steps.values()), kind)


@dataclass(frozen=True)
class _Nest:
    tensors: dict[str, _Tensor]
    steps: _Steps
    n: int
    groups: int
    filters: int  # of a group
    channels: int  # of a group
    order: str

    def body(self, rows: list[_Piece], columns: list[_Piece]) -> Body:
        """The loops outside the kernel, pieces of output rows and columns in the place of their loops."""
        outside = ("n", "g", "f", "row", "column") if self.order == "NCHW" else ("n", "row", "column", "g", "f")
        return self._outside(outside, {"row": rows, "column": columns}, {})

    def _outside(self, loops: tuple[str, ...], pieces: dict[str, list[_Piece]], chosen: dict[str, _Piece]) -> Body:
        if not loops:
            return self._inside(chosen["row"], chosen["column"])
        name, rest = loops[0], loops[1:]
        if name in pieces:
            return tuple(
                Loop(name, piece.count, self._outside(rest, pieces, {**chosen, name: piece})) for piece in pieces[name]
            )
        count = {"n": self.n, "g": self.groups, "f": self.filters}[name]
        return (Loop(name, count, self._outside(rest, pieces, chosen)),)

    def _inside(self, row: _Piece, column: _Piece) -> Body:
        x, W, y = (self.tensors[name] for name in ("x", "W", "y"))
        sx, sw, sy, move = x.strides, W.strides, y.strides, self.steps
        outside = ("n", "g", "f", "row", "column") if self.order == "NCHW" else ("n", "row", "column", "g", "f")
        inside = ("c", "r", "s") if self.order == "NCHW" else ("r", "s", "c")
        x_steps = {
            "n": sx["N"], "g": self.channels * sx["C"], "f": 0, "c": sx["C"],
            "row": move.stride * sx["H"], "column": move.stride * sx["W"],
            "r": move.dilation * sx["H"], "s": move.dilation * sx["W"],
        }  # fmt: skip
        w_steps = {
            "n": 0, "g": self.filters * sw["N"], "f": sw["N"], "row": 0, "column": 0,
            "c": sw["C"], "r": sw["H"], "s": sw["W"],
        }  # fmt: skip
        y_steps = {"n": sy["N"], "g": self.filters * sy["C"], "f": sy["C"], "row": sy["H"], "column": sy["W"]}
        store = y.at({name: y_steps[name] for name in outside}, row.first * sy["H"] + column.first * sy["W"], "write")
        if not row.taps * column.taps:
            return (store,)
        every = (*outside, *inside)
        x_start = move.input_row(row) * sx["H"] + move.input_row(column) * sx["W"]
        body: Body = (
            x.at({name: x_steps[name] for name in every}, x_start),
            W.at({name: w_steps[name] for name in every}, row.tap * sw["H"] + column.tap * sw["W"]),
        )
        for name in reversed(inside):
            count = {"c": self.channels, "r": row.taps, "s": column.taps}[name]
            body = (Loop(name, count, body),)
        return (*body, store)
