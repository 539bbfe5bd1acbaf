"""Lesson 02: the input that tiles of a convolution's output ask for, and how often each pixel of it is loaded.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.access import Axis, tile_ranges
from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.kernels.conv import conv_nest
from labkit.loops import Halo, LoopNest
from labkit.problems import ConvShape
from labkit.roofline import arithmetic_intensity
from labkit.units import format_bytes

if TYPE_CHECKING:
    from labkit.explore.halo_view import HaloView
    from labkit.explore.panel import HardwareState

SIZES, KERNELS, STRIDES = (8, 14, 28, 56), (1, 3, 5, 7), (1, 2)


@dataclass(frozen=True)
class HaloState:
    """A convolution whose output is cut into tiles of rows p and columns q; one of them, ``number``, is looked at."""

    shape: ConvShape
    nest: LoopNest
    number: int
    hardware: Hardware

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of an output tile."""
        return self.nest.tiles["p"], self.nest.tiles["q"]

    @property
    def tiles(self) -> int:
        """Output tiles."""
        return self.nest.trips["p"] * self.nest.trips["q"]

    @property
    def output(self) -> tuple[range, range]:
        """Output rows and columns of the tile looked at."""
        row, column = divmod(self.number, self.nest.trips["q"])
        return self._ranges("p")[row], self._ranges("q")[column]

    @property
    def window(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Input rows and columns that it reads; what falls on the padding has no place here."""
        rows, columns = self.output
        return self._positions(self._rows, rows), self._positions(self._columns, columns)

    @cached_property
    def row_loads(self) -> NDArray[np.int64]:
        """How many times each input row is loaded, for one column of it."""
        return self._loads(self._rows)

    @cached_property
    def column_loads(self) -> NDArray[np.int64]:
        """How many times each input column is loaded, for one row of it."""
        return self._loads(self._columns)

    @property
    def loads(self) -> NDArray[np.int64]:
        """How many times each input pixel is loaded."""
        return np.multiply.outer(self.row_loads, self.column_loads)

    @property
    def shared(self) -> int:
        """Pixels of the window that another tile needs too."""
        rows, columns = self.window
        needed = np.multiply.outer(self._needed(self._rows)[rows], self._needed(self._columns)[columns])
        return int((needed > 1).sum())

    @property
    def fits(self) -> bool:
        return self.nest.working_set_bytes <= self.hardware.sram_bytes

    @property
    def still(self) -> tuple[int, ...]:
        """The axes of the picture depend on the sizes of input and output."""
        return (self.shape.h, *self.shape.output_size)

    @property
    def sentence(self) -> str:
        """The state in words and numbers."""
        rows, columns = (len(positions) for positions in self.window)
        (tp, tq), (p, q) = self.tile, (len(r) for r in self.output)
        stride, loaded, pixels = self.shape.strides[0], int(self.loads.sum()), self.shape.h * self.shape.w
        traffic = self.nest.traffic
        image = self.nest.by_operand["X"].read_bytes
        room = f"{format_bytes(self.nest.working_set_bytes)} of {format_bytes(self.hardware.sram_bytes)} SRAM"
        return "\n".join(
            (
                f"{self.nest.problem.name}, stride {stride}, output tiles of {tp}×{tq}, halo: {self.nest.halo}.",
                f"Tile {self.number + 1} of {self.tiles}: {p}×{q} outputs ask for {rows}×{columns} = {rows * columns} "
                f"input pixels; {self.shared} of them another tile needs too.",
                f"All tiles load {loaded:,} pixels of an image of {pixels:,}: {loaded / pixels:.3f} ×, "
                f"{format_bytes(image)} of X.",
                f"X, W and Y: {format_bytes(traffic.nbytes)}, "
                f"{arithmetic_intensity(self.nest.problem.flops, traffic.nbytes):.1f} FLOP/byte. "
                f"On chip: {room}{'' if self.fits else ', does not fit'}.",
            )
        )

    @property
    def _rows(self) -> Axis:
        return self.nest.problem.inputs[0].axes[-2]

    @property
    def _columns(self) -> Axis:
        return self.nest.problem.inputs[0].axes[-1]

    def _ranges(self, loop: str) -> list[range]:
        return list(tile_ranges(self.nest.problem.loops[loop], self.nest.tiles[loop]))

    def _positions(self, axis: Axis, outputs: range) -> NDArray[np.int64]:
        base, taps = axis.loops
        return axis.positions({base: outputs, taps: range(self.nest.problem.loops[taps])})

    def _needed(self, axis: Axis) -> NDArray[np.int64]:
        """By how many tiles along an axis each position is needed."""
        every = [self._positions(axis, outputs) for outputs in self._ranges(axis.loops[0])]
        return np.bincount(np.concatenate(every), minlength=axis.extent)

    def _loads(self, axis: Axis) -> NDArray[np.int64]:
        """How often each is loaded: once for each tile, or once at all where the window slides along this axis."""
        needed = self._needed(axis)
        slides = self.nest.slides(axis, self.nest.innermost_moving(self.nest.problem.inputs[0]))
        return np.minimum(needed, 1) if slides else needed


def data(
    size: int = 56,
    kernel: int = 3,
    stride: int = 1,
    tile: tuple[int, int] = (14, 14),
    halo: Halo = "reload",
    number: int = 0,
    channels: int = 64,
    hardware: Hardware | None = None,
    dtype: str = "float32",
) -> HaloState:
    """A convolution of ``size``² pixels, as many filters as channels, padded so that stride 1 keeps the size.

    Channels and filters are not cut. LabError for what makes no convolution or nest, and a tile that does not exist.

    >>> state = data(size=8, tile=(4, 4))
    >>> state.row_loads.tolist(), int(state.loads.sum())
    ([1, 1, 1, 2, 2, 1, 1, 1], 100)
    """
    machine = hardware or Hardware.preset(Hardware.presets()[0])
    pad = kernel // 2
    shape = ConvShape(1, channels, size, size, channels, (kernel, kernel), (stride, stride), pads=(pad,) * 4)
    nest = conv_nest(shape, dtype=dtype, tile={"p": tile[0], "q": tile[1]}, halo=halo)
    state = HaloState(shape, nest, number, machine)
    if not 0 <= number < state.tiles:
        raise LabError(f"tile {number}: the output has {state.tiles} tiles, numbered from 0")
    return state


def show(state: HardwareState | None = None, **settings: Any) -> HaloView:
    """The live picture on the machine of a panel; ``settings`` are where its controls start."""
    from labkit.explore.halo_view import HaloView
    from labkit.explore.panel import HardwareState

    return HaloView(HardwareState() if state is None else state).set(**settings)
