"""Lesson 03's depth-first pair of convolutions: DRAM bytes saved against arithmetic added, over the size of the tile.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from labkit.access import Axis
from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.kernels.depth_first import DepthFirst
from labkit.problems import ConvShape
from labkit.roofline import RooflineEstimate
from labkit.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from labkit.explore.depth_view import DepthView
    from labkit.explore.panel import HardwareState

FORMS = ("square", "strip")
CHANNELS, SIZES, KERNELS = (16, 32, 64), (14, 28, 56), (1, 3, 5)


class Window(NamedTuple):
    """A rectangle of one tensor: its first row and column, its rows and columns."""

    top: int
    left: int
    rows: int
    columns: int


class Gain(NamedTuple):
    """What one kernel instead of two saves and adds, at one tile."""

    saved_bytes: int
    extra_flops: int


@dataclass(frozen=True)
class DepthState:
    """Two equal convolutions in one kernel, by tiles of ``tile`` rows: square ones, or strips of the whole width."""

    shape: ConvShape
    form: str
    tile: int
    hardware: Hardware

    @property
    def pair(self) -> DepthFirst:
        """The kernel that can be run."""
        return _pair(self.shape, self.form, self.tile)

    @property
    def gain(self) -> Gain:
        return gain(self.shape, self.form, self.tile)

    @property
    def curve(self) -> tuple[Gain, ...]:
        """The gain at each size of tile, from 1 on."""
        return tuple(gain(self.shape, self.form, tile) for tile in range(1, self.shape.h + 1))

    @property
    def base_flops(self) -> int:
        """Arithmetic of the two apart."""
        return sum(problem.flops for problem in self.pair.problems)

    @property
    def extra_share(self) -> float:
        """Added arithmetic as a share of that of the two apart."""
        return self.gain.extra_flops / self.base_flops

    @cached_property
    def apart(self) -> tuple[RooflineEstimate, ...]:
        """The two as separate kernels, with the same tiles."""
        return tuple(RooflineEstimate.of(nest, self.hardware) for nest in self.pair.unfused_nests())

    @cached_property
    def together(self) -> RooflineEstimate:
        moved = sum(estimate.dram_bytes for estimate in self.apart) - self.gain.saved_bytes
        return RooflineEstimate(self.base_flops + self.gain.extra_flops, moved, 1, self.hardware)

    @property
    def apart_s(self) -> float:
        return sum(estimate.seconds for estimate in self.apart)

    @property
    def fits(self) -> bool:
        return self.pair.working_set_bytes <= self.hardware.sram_bytes

    @property
    def largest(self) -> int:
        """The largest tile that fits into the SRAM; 0 when none does."""
        return largest(self.shape, self.form, self.hardware.sram_bytes)

    @property
    def windows(self) -> tuple[Window, Window, Window]:
        """What a tile in the middle takes: of the image, of the tensor between, of the result."""
        first, second = self.pair.problems
        columns = self.tile if self.form == "square" else self.shape.w
        middle = [self._range(size) for size in (self.tile, columns)]
        between = self._needed(second.inputs[0].axes[-2:], middle)
        return _window(self._needed(first.inputs[0].axes[-2:], between)), _window(between), _window(middle)

    def _needed(self, axes: Iterable[Axis], outputs: Iterable[range]) -> list[range]:
        """Rows and columns that a convolution reads for those of its output."""
        found = []
        for axis, wanted in zip(axes, outputs, strict=True):
            base, taps = axis.loops
            reach = axis.positions({base: wanted, taps: range(self.shape.kernel[0])})
            found.append(range(int(reach[0]), int(reach[-1]) + 1))
        return found

    def _range(self, size: int) -> range:
        start = (-(-self.shape.h // size) // 2) * size  # the tile in the middle
        return range(start, min(start + size, self.shape.h))

    @property
    def still(self) -> tuple[object, ...]:
        return self.shape, self.form

    @property
    def sentence(self) -> str:
        """The state in words and numbers."""
        c, size, k = self.shape.c, self.shape.h, self.shape.kernel[0]
        image, between, result = (f"{window.rows}×{window.columns}" for window in self.windows)
        saved, added = self.gain
        verb = "fewer" if saved >= 0 else "more"
        room = f"{format_bytes(self.pair.working_set_bytes)} of {format_bytes(self.hardware.sram_bytes)} SRAM"
        faster = self.apart_s / self.together.seconds
        time = (
            f"Time on {self.hardware.name}: apart {format_seconds(self.apart_s)}, depth-first "
            f"{format_seconds(self.together.seconds)} ({self.together.limit}-bound): {faster:.2f} × as fast."
        )
        return "\n".join(
            (
                f"Two {k}×{k} convolutions, {c}×{size}×{size}, depth-first, {self.form} tiles of {self.tile} "
                f"{'rows' if self.form == 'strip' or self.tile > 1 else 'row'}.",
                f"A tile of {result} results needs {between} of the tensor between and {image} of the image.",
                f"It moves {format_bytes(self.together.dram_bytes)}, {format_bytes(abs(saved))} {verb} than two "
                f"kernels with these tiles, and adds {format_count(added)}FLOP: {self.extra_share:.1%} more.",
                f"On chip: {room}{'' if self.fits else ', does not fit'}. Largest that fits: {self.largest or 'none'}.",
                time if self.fits else f"No time: {self.hardware.name} cannot run a tile that does not fit.",
            )
        )


@lru_cache(maxsize=4096)
def gain(shape: ConvShape, form: str, tile: int) -> Gain:
    """What DepthFirst says of this tile. Tiles form a grid, so what they need again is that of its rows times that of
    its columns: strips tell it for both, and there are few of them."""
    strips = _pair(shape, "strip", tile)
    if form == "strip":
        return Gain(strips.saved_bytes, strips.extra_flops)
    pair = _pair(shape, form, tile)
    (x, w1), (_, w2), y = pair.problems[0].inputs, pair.problems[1].inputs, pair.problems[1].output
    weights = w1.nbytes + w2.nbytes
    image = (strips.traffic.read_bytes - weights) ** 2 // x.nbytes
    first = strips.flops - pair.problems[1].flops
    extra = first**2 // pair.problems[0].flops - pair.problems[0].flops
    apart = sum(nest.traffic.nbytes for nest in pair.unfused_nests())
    return Gain(apart - image - weights - y.nbytes, extra)


@lru_cache(maxsize=256)
def largest(shape: ConvShape, form: str, sram_bytes: int) -> int:
    """The largest tile whose working set fits; 0 when none does. A smaller one may need more: it has a halo on every
    side, where a large one ends at the image."""
    sizes = range(shape.h, 0, -1)
    return next((tile for tile in sizes if _pair(shape, form, tile).working_set_bytes <= sram_bytes), 0)


@lru_cache(maxsize=512)
def _pair(shape: ConvShape, form: str, tile: int) -> DepthFirst:
    return DepthFirst(shape, shape, (tile, tile if form == "square" else shape.w))


def _window(sides: list[range]) -> Window:
    rows, columns = sides
    return Window(rows.start, columns.start, len(rows), len(columns))


def data(
    size: int = 56,
    channels: int = 64,
    kernel: int = 3,
    form: str = "square",
    tile: int = 14,
    hardware: Hardware | None = None,
) -> DepthState:
    """Two convolutions that keep the size, with as many filters as channels, as one depth-first kernel.

    Raises LabError for a form that is none, a tile that does not exist, and sizes that make no convolution.

    >>> state = data(size=32, channels=8, tile=8)
    >>> state.gain, state.windows[0]
    (Gain(saved_bytes=63232, extra_flops=483840), Window(top=14, left=14, rows=12, columns=12))
    """
    if form not in FORMS:
        raise LabError(f"no form of tile {form!r}; there are: {', '.join(FORMS)}")
    pad = kernel // 2
    shape = ConvShape(1, channels, size, size, channels, (kernel, kernel), pads=(pad,) * 4)
    if not 1 <= tile <= size:
        raise LabError(f"tile of {tile} rows: the result has {size}")
    return DepthState(shape, form, tile, hardware or Hardware.preset(Hardware.presets()[0]))


def show(state: HardwareState | None = None, **settings: Any) -> DepthView:
    """The live picture on the machine of a panel; ``settings`` are where its controls start."""
    from labkit.explore.depth_view import DepthView
    from labkit.explore.panel import HardwareState

    return DepthView(HardwareState() if state is None else state).set(**settings)
