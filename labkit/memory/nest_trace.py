"""The address trace of any tiled loop nest: what its kernel asks of a memory, element by element.

The tensors lie row-major, one behind the other, each from the next multiple of ``align`` bytes on: inputs, then output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain
from math import prod

from labkit.access import Axis, Operand
from labkit.errors import LabError
from labkit.loops import LoopNest
from labkit.memory.affine import AffineTrace, Loop, Reference
from labkit.memory.ledger import Kind
from labkit.memory.trace import Body

_MOST_BORDERS = 1024  # output rows that reach into the padding: each is written out for itself
_MOST_PIECES = 20_000
Moves = tuple[tuple[str, int], ...]  # the loops of the trace around a reference: which loop of the problem, by how much


def nest_trace(nest: LoopNest, base: int = 0, align: int = 64) -> AffineTrace:
    """The accesses of a nest whose tiles are walked in its order.

    Inside a tile the loops of the output run outside, in the order of its memory, then the reductions, in the order of
    the first input's memory. Each step reads one element of each input; a step on padding is not made. The output
    element is in a register meanwhile: it is written after the reductions, and read before them if they are cut.

    Raises LabError for a padding that makes too many different pieces, and for addresses beyond 63 bit.

    >>> from labkit.problems import ConvShape, conv, matmul
    >>> nest_trace(LoopNest(matmul(2, 3, 4), (2, 2, 2), tuple("mnk"))).accesses
    72
    >>> nest_trace(LoopNest.of(conv(ConvShape(1, 1, 3, 3, 1, (3, 3), pads=(1, 1, 1, 1))))).accesses
    107
    """
    problem = nest.problem
    windows = {w.output: w for operand in problem.inputs for axis in operand.axes if (w := _Window.of(nest, axis))}
    pieces = prod(windows[loop].pieces if loop in windows else _pieces(nest, loop, windows) for loop in problem.loops)
    if pieces > _MOST_PIECES:
        raise LabError(
            f"{problem.name}: padding and tiles cut it into up to {pieces:,} pieces; at most {_MOST_PIECES:,}"
        )
    sizes = [-(-operand.nbytes // align) * align for operand in problem.operands]
    starts = accumulate(sizes[:-1], initial=-(-base // align) * align)
    arrays = [_array(operand, start) for operand, start in zip(problem.operands, starts, strict=True)]
    return AffineTrace(_Builder(nest, tuple(arrays), windows).tiles(nest.order, {}, ()))


def _pieces(nest: LoopNest, loop: str, windows: Mapping[str, _Window]) -> int:
    """Full tiles and an edge; tiles of taps that may fall on padding are all different."""
    if any(loop == window.taps for window in windows.values()):
        return nest.trips[loop]
    return 1 + (nest.problem.loops[loop] % nest.tiles[loop] > 0)


# ---- windows that reach into the padding


@dataclass(frozen=True)
class _Window:
    """Output rows of an axis and the kernel taps that fall inside its image; ``full`` are the rows with all taps."""

    axis: Axis
    output: str
    taps: str
    full: range
    tile: int
    borders: int

    @staticmethod
    def of(nest: LoopNest, axis: Axis) -> _Window | None:
        """The window of an axis with two loops, or None where no tap of any row falls on padding."""
        if len(axis.terms) != 2:
            return None
        (output, stride), (taps, dilation) = axis.terms
        rows, reach = nest.problem.loops[output], (nest.problem.loops[taps] - 1) * dilation
        first = min(rows, max(0, -(axis.offset // stride)))
        end = max(first, min(rows, (axis.extent - 1 - axis.offset - reach) // stride + 1))
        borders = rows - (end - first)
        if borders > _MOST_BORDERS:
            raise LabError(f"{nest.problem.name}: {borders:,} rows reach into the padding; at most {_MOST_BORDERS:,}")
        if borders and taps not in nest.problem.reductions:
            raise LabError(
                f"{nest.problem.name}: it writes its padding; a convolution only skips it, and can be traced"
            )
        return _Window(axis, output, taps, range(first, end), nest.tiles[output], borders) if borders else None

    @property
    def pieces(self) -> int:
        """No more pieces than this: those of the border, and those of the rows with all taps."""
        return self.borders + 3

    def cut(self, extent: int) -> list[tuple[int, range]]:
        """(how many tiles, the rows of the first one), in order; the tiles of full rows are alike."""
        size = self.tile
        alike = range(-(-self.full.start // size), self.full.stop // size)
        cuts = []
        at = 0
        while at * size < extent:
            count = len(alike) if alike and at == alike.start else 1
            cuts.append((count, range(at * size, min((at + 1) * size, extent))))
            at += count
        return cuts

    def parts(self, rows: range, taps: range) -> list[tuple[range, range]]:
        """(rows, taps inside the image) of neighbouring rows with the same ones, in order."""
        full = range(max(rows.start, self.full.start), min(rows.stop, self.full.stop))
        starts = sorted({*rows} if not full else {*range(rows.start, full.start + 1), *range(full.stop, rows.stop)})
        parts: list[tuple[range, range]] = []
        for start, stop in zip(starts, [*starts[1:], rows.stop], strict=True):
            inside = self._inside(start, taps)
            if parts and parts[-1][1] == inside:
                start = parts.pop()[0].start
            parts.append((range(start, stop), inside))
        return parts

    def _inside(self, row: int, taps: range) -> range:
        (_, stride), (_, dilation) = self.axis.terms
        start = row * stride + self.axis.offset
        first = max(taps.start, -(start // dilation))
        stop = min(taps.stop, (self.axis.extent - 1 - start) // dilation + 1)
        return range(first, stop) if first < stop else range(0)


# ---- references


@dataclass(frozen=True)
class _Array:
    """``start``: the address of all loops at 0; ``strides``: bytes a step of each loop that indexes it."""

    name: str
    start: int
    strides: Mapping[str, int]

    def at(self, ranges: Mapping[str, range], moves: Moves, kind: Kind = "read") -> Reference:
        base = self.start + sum(stride * ranges[loop].start for loop, stride in self.strides.items())
        return Reference(self.name, base, tuple(self.strides.get(loop, 0) * step for loop, step in moves), kind)


def _array(operand: Operand, start: int) -> _Array:
    strides: dict[str, int] = {}
    stride = operand.itemsize
    for axis in reversed(operand.axes):
        start += stride * axis.offset
        strides |= {loop: stride * coefficient for loop, coefficient in axis.terms}
        stride *= axis.extent
    return _Array(operand.name, start, strides)


@dataclass(frozen=True)
class _Builder:
    """Builds the trace from outside in; ``ranges`` are those of the first iteration of the loops built so far."""

    nest: LoopNest
    arrays: tuple[_Array, ...]
    windows: Mapping[str, _Window]

    def tiles(self, order: tuple[str, ...], ranges: Mapping[str, range], moves: Moves) -> Body:
        """The loops over tiles that are left, and what they hold."""
        if not order:
            outside = tuple(loop for axis in self.nest.problem.output.axes for loop in axis.loops)
            return self._elements(outside, ranges, moves)
        loop, extent, tile = order[0], self.nest.problem.loops[order[0]], self.nest.tiles[order[0]]
        if loop in self.windows:
            cuts = self.windows[loop].cut(extent)
        elif any(loop == window.taps for window in self.windows.values()):
            cuts = [(1, range(start, min(start + tile, extent))) for start in range(0, extent, tile)]
        else:
            full, edge = divmod(extent, tile)
            cuts = [(full, range(tile))] + ([(1, range(full * tile, extent))] if edge else [])
        bodies = (
            _looped(f"{loop}_tile", count, moves, (loop, tile), partial(self.tiles, order[1:], {**ranges, loop: first}))
            for count, first in cuts
        )
        return tuple(chain.from_iterable(bodies))

    def _elements(self, loops: tuple[str, ...], ranges: Mapping[str, range], moves: Moves) -> Body:
        """The loops over output elements that are left, and the reductions."""
        if not loops:
            return self._reductions(ranges, moves)
        loop, window = loops[0], self.windows.get(loops[0])
        parts = [{loop: ranges[loop]}]
        if window:
            parts = [{loop: rows, window.taps: taps} for rows, taps in window.parts(ranges[loop], ranges[window.taps])]
        bodies = (
            _looped(loop, len(part[loop]), moves, (loop, 1), partial(self._elements, loops[1:], {**ranges, **part}))
            for part in parts
        )
        return tuple(chain.from_iterable(bodies))

    def _reductions(self, ranges: Mapping[str, range], moves: Moves) -> Body:
        """The register of one output element: filled, added to, written."""
        problem, (*inputs, output) = self.nest.problem, self.arrays
        loops = [loop for axis in problem.inputs[0].axes for loop in axis.loops if loop in problem.reductions]
        is_cut = any(self.nest.tiles[loop] < problem.loops[loop] for loop in loops)
        read, write = output.at(ranges, moves), output.at(ranges, moves, "write")
        body: Body = ()
        if all(len(ranges[loop]) for loop in loops):
            every = (*moves, *((loop, 1) for loop in loops))
            body = tuple(x.at(ranges, every) for x in inputs)
            for loop in reversed(loops):
                body = (Loop(loop, len(ranges[loop]), body),)
        return (*((read,) if is_cut else ()), *body, write)


def _looped(name: str, count: int, moves: Moves, step: tuple[str, int], build: Callable[[Moves], Body]) -> Body:
    """A loop around what is built, or no loop around a single iteration."""
    return build(moves) if count == 1 else (Loop(name, count, build((*moves, step))),)
