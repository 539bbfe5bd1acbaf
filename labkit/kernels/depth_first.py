"""Depth-first Conv → Conv: each tile of the second convolution's output with all that it needs of the first's.

The intermediate tensor never exists in DRAM. Neighbouring tiles need overlapping parts of it (a halo), and each part is
computed anew: bytes are saved and arithmetic is added. Sources: Alwani, Chen, Ferdman, Milder, "Fused-layer CNN
accelerators", MICRO 2016 (recompute); Mei, Goetschalckx, Symons, Verhelst, "DeFiNES", HPCA 2023 (fully-recompute).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.access import Operand, tile_ranges
from labkit.errors import LabError
from labkit.kernels.multiply import Multiply
from labkit.kernels.resident import tile_index
from labkit.loops import LoopNest
from labkit.memory.ledger import Traffic
from labkit.memory.scratchpad import Scratchpad
from labkit.problems import ConvShape, Problem, conv

Array = NDArray[Any]
Ranges = Mapping[str, range]


@dataclass(frozen=True)
class DepthFirst:
    """Two convolutions in one kernel, by tiles (rows, columns) of the second one's output, all channels at once.

    Both weights stay on chip. Tensors are NCHW, all of them float32.
    Raises LabError when the second does not take what the first makes.

    >>> first = ConvShape(1, 8, 32, 32, 8, (3, 3), pads=(1, 1, 1, 1))
    >>> pair = DepthFirst(first, first, (8, 8))
    >>> pair.saved_bytes, pair.extra_flops
    (63232, 483840)
    """

    first: ConvShape
    second: ConvShape
    tile: tuple[int, int]

    def __post_init__(self) -> None:
        made = (self.first.n, self.first.filters, *self.first.output_size)
        taken = (self.second.n, self.second.c, self.second.h, self.second.w)
        if made != taken:
            raise LabError(f"depth-first: the first convolution makes {made} (n, c, h, w), the second takes {taken}")
        if len(self.tile) != 2 or min(self.tile) < 1:
            raise LabError(f"depth-first tile {self.tile}: wanted (rows, columns), each at least 1")

    @cached_property
    def problems(self) -> tuple[Problem, Problem]:
        """The two convolutions as they are apart."""
        return conv(self.first), conv(self.second)

    def unfused_nests(self) -> tuple[LoopNest, LoopNest]:
        """The two as separate kernels, with the same tiles and weights on chip: what ``saved_bytes`` compares with."""
        rows, columns = self.tile
        first, second = (LoopNest.of(x).split("n", 1).split("p", rows).split("q", columns) for x in self.problems)
        return first, second

    @cached_property
    def traffic(self) -> Traffic:
        """Bytes and transfers: the image with its halo, both weights once, the output once."""
        (x, w1), y = self.problems[0].inputs, self.problems[1].output
        total = Traffic()
        for ranges, needed in self._tiles():
            read, written = x.tile_bytes(needed), y.tile_bytes(ranges)
            total += Traffic(read, written, int(read > 0), 1)
        return total + Traffic(w1.nbytes + self.problems[1].inputs[1].nbytes, 0, 2, 0)

    @cached_property
    def flops(self) -> int:
        """Arithmetic with what is computed again; as everywhere, products with padding are counted too."""
        first = sum(2 * prod(map(len, needed.values())) for _, needed in self._tiles())
        return first + self.problems[1].flops

    @property
    def extra_flops(self) -> int:
        """Arithmetic beyond that of the two apart; negative when the second skips some of what the first could make."""
        return self.flops - sum(problem.flops for problem in self.problems)

    @property
    def saved_bytes(self) -> int:
        """DRAM bytes of the two apart, less those of this kernel; negative when the image's halo costs more."""
        return sum(nest.traffic.nbytes for nest in self.unfused_nests()) - self.traffic.nbytes

    @cached_property
    def working_set_bytes(self) -> int:
        """SRAM: both weights, and the largest tile of the intermediate with the image's or the output's beside it."""
        (x, w1), (_, w2) = (problem.inputs for problem in self.problems)
        mid, y = (problem.output for problem in self.problems)
        tiles = (
            mid.tile_bytes(needed) + max(x.tile_bytes(needed), y.tile_bytes(ranges)) for ranges, needed in self._tiles()
        )
        return w1.nbytes + w2.nbytes + max(tiles)

    def run(self, x: Array, w1: Array, w2: Array, pad: Scratchpad) -> Array:
        """Run it: image (n, c, h, w) and two sets of filters (filters, c/groups, r, s) to the result (n, c, h, w).

        Raises SramOverflow when weights and tiles do not fit, LabError for arrays that are not float32 of the shapes.
        """
        first, second = self.problems
        image = _shaped("X", x, first.inputs[0])
        result = np.zeros(second.output.shape, second.output.dtype)
        multiply_first, multiply_second = Multiply(first), Multiply(second)
        with pad.kernel("conv+conv"):
            weights = [
                pad.load(name, _shaped(name, w, problem.inputs[1]))
                for name, w, problem in (("W1", w1, first), ("W2", w2, second))
            ]
            for ranges, needed in self._tiles():
                at = [axis.positions(needed) for axis in first.inputs[0].axes]
                tile = pad.load("X", image[tile_index(at)], runs=first.inputs[0].runs(at))
                mid = pad.alloc("mid", _shape(first.output, needed), first.output.dtype)
                multiply_first(mid, [tile, weights[0]], needed)
                pad.free("X")
                out = pad.alloc("Y", _shape(second.output, ranges), second.output.dtype)
                multiply_second(out, [self._as_input(mid, needed, ranges), weights[1]], ranges)
                pad.free("mid")
                pad.store("Y", result[tile_index([axis.positions(ranges) for axis in second.output.axes])])
                pad.free("Y")
            for name in ("W1", "W2"):
                pad.free(name)
        return result.reshape(self.second.n, self.second.filters, *self.second.output_size)

    def _tiles(self) -> Iterator[tuple[Ranges, Ranges]]:
        """For each tile: the loop ranges of the second convolution, and those of the first that it needs."""
        first, second = self.problems
        *_, rows, columns = second.inputs[0].axes
        cut = (("n", 1), ("p", self.tile[0]), ("q", self.tile[1]))
        for n, p, q in product(*(tile_ranges(second.loops[loop], size) for loop, size in cut)):
            ranges = {**_whole(second), "n": n, "p": p, "q": q}
            needed = {"n": n, "p": _hull(rows.positions(ranges)), "q": _hull(columns.positions(ranges))}
            yield ranges, {**_whole(first), **needed}

    def _as_input(self, mid: Array, needed: Ranges, ranges: Ranges) -> Array:
        """The intermediate tile as the second convolution's groups and strides see it."""
        x = self.problems[1].inputs[0]
        rows, columns = (
            axis.positions(ranges) - needed[loop].start for axis, loop in zip(x.axes[-2:], "pq", strict=True)
        )
        channels = mid.reshape(mid.shape[0], *x.shape[1:3], *mid.shape[-2:])
        return channels[..., rows[:, None], columns]


def _whole(problem: Problem) -> dict[str, range]:
    return {loop: range(extent) for loop, extent in problem.loops.items()}


def _hull(positions: Array) -> range:
    """From the first position to the last, gaps filled."""
    return range(int(positions[0]), int(positions[-1]) + 1) if len(positions) else range(0)


def _shaped(name: str, array: Array, operand: Operand) -> Array:
    """An array as the operand's axes have it; LabError when it is another tensor."""
    if array.size * array.itemsize != operand.nbytes or array.dtype != np.dtype(operand.dtype):
        raise LabError(f"depth-first: {name} is {array.dtype} {array.shape}: wanted {operand.dtype} {operand.shape}")
    return np.ascontiguousarray(array).reshape(operand.shape)


def _shape(operand: Operand, ranges: Ranges) -> tuple[int, ...]:
    return tuple(axis.count(ranges) for axis in operand.axes)
