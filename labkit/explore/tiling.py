"""Lesson 02: what one tiled product moves, beside the best tile for every SRAM size and the bound no schedule beats.

``data`` is everything shown as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from labkit.errors import LabError
from labkit.explore import caches
from labkit.explore.roofline import format_intensity
from labkit.hardware import Hardware
from labkit.loops import Buffers, CPolicy, LoopNest
from labkit.memory.ledger import Traffic
from labkit.problems import matmul
from labkit.roofline import RooflineEstimate
from labkit.search import Pareto, pareto
from labkit.tiling import bound_bytes
from labkit.units import MIB, format_bytes

if TYPE_CHECKING:
    from labkit.explore.panel import HardwareState
    from labkit.explore.tiling_view import TilingView

Memory = Literal["scratchpad", "lru", "opt"]
Shape = tuple[int, int, int]
Curve = tuple[tuple[int, ...], tuple[int, ...]]  # SRAM sizes and DRAM bytes; a step function, constant until the next

ORDERS = ("mnk", "mkn", "nmk", "nkm", "kmn", "knm")
LEAST_SRAM, MOST_SRAM = 256, 128 * MIB  # what the plot shows


@dataclass(frozen=True)
class TilingState:
    """A nest in front of one kind of memory. ``traffic`` is None where the tiles do not fit the scratchpad."""

    nest: LoopNest
    memory: Memory
    hardware: Hardware
    traffic: Traffic | None

    @property
    def sram_bytes(self) -> int:
        return self.hardware.sram_bytes

    @property
    def dtype(self) -> str:
        return self.nest.problem.inputs[0].dtype

    @cached_property
    def bound_bytes(self) -> int:
        """What every schedule moves at least with this SRAM."""
        return bound_bytes(self.nest.problem, self.sram_bytes)

    @property
    def slope(self) -> Pareto:
        """The best tile for every SRAM size."""
        nest = self.nest
        return pareto(nest.problem, c_policy=nest.c_policy, buffers=nest.buffers)

    @property
    def worst_bytes(self) -> int:
        """More than any nest moves: both inputs come, and the output comes and goes, at each step."""
        problem = self.nest.problem
        sizes = [operand.itemsize for operand in (*problem.operands, problem.output)]
        return problem.flops // len(problem.inputs) * sum(sizes)

    @property
    def estimate(self) -> RooflineEstimate | None:
        """Intensity and time on the machine; None where nothing runs."""
        if self.traffic is None:
            return None
        return RooflineEstimate(self.nest.problem.flops, self.traffic.nbytes, 1, self.hardware)

    @cached_property
    def bound(self) -> Curve:
        """The proven bound over the SRAM sizes of the plot."""
        sizes = tuple(int(2**power) for power in np.arange(8, 27.01, 0.125))
        return sizes, tuple(bound_bytes(self.nest.problem, size) for size in sizes)

    @cached_property
    def own(self) -> Curve:
        """What this nest moves with other SRAM sizes: one level from its working set on, or the steps of a cache.

        Of OPT only the present size is known: it has no one pass that answers for all.
        """
        if self.memory == "lru":
            sizes, moved = caches.steps(caches.lru(self.nest, self.hardware.line_bytes))
            return (*sizes, MOST_SRAM), (*moved, moved[-1])
        if self.memory == "opt" and self.traffic is not None:
            return (self.sram_bytes,), (self.traffic.nbytes,)
        return (self.nest.working_set_bytes, MOST_SRAM), (self.nest.traffic.nbytes,) * 2

    @property
    def point(self) -> tuple[int, int]:
        """Where this nest stands in the plot: SRAM and DRAM bytes. On a scratchpad the SRAM is what its tiles need."""
        if self.memory == "scratchpad" or self.traffic is None:
            return self.nest.working_set_bytes, self.nest.traffic.nbytes
        return self.sram_bytes, self.traffic.nbytes

    @property
    def still(self) -> tuple[object, ...]:
        """What the best tile and the bound depend on: moving a tile or the SRAM leaves them in place."""
        return self.nest.problem.name, self.dtype, self.nest.c_policy, self.nest.buffers

    @property
    def sentence(self) -> str:
        """The state in words and numbers."""
        return "\n".join((self._what, self._fit, *self._moved, *self._beside))

    @property
    def _what(self) -> str:
        nest = self.nest
        text = f"{nest.problem.name} {self.dtype}, tile {tile_text(nest)}, order {''.join(nest.order)}"
        if self.memory != "scratchpad":
            return text
        return f"{text}, C policy {nest.c_policy}, {nest.buffers.replace('_', ' ')} buffers"

    @property
    def _fit(self) -> str:
        room, needed = format_bytes(self.sram_bytes), format_bytes(self.nest.working_set_bytes)
        if self.memory == "scratchpad":
            verdict = "fits" if self.traffic else "does not fit: the kernel stops before it moves a byte"
            return f"Scratchpad of {room}: the tiles need {needed}, which {verdict}."
        return (
            f"{self.memory.upper()} cache of {room}, lines of {self.hardware.line_bytes} bytes: nothing has to fit; "
            f"one tile of each operand is {needed}."
        )

    @property
    def _moved(self) -> tuple[str, ...]:
        if self.traffic is None or self.estimate is None:
            return ()
        read, written = map(format_bytes, (self.traffic.read_bytes, self.traffic.write_bytes))
        total, ridge = format_bytes(self.traffic.nbytes), format_intensity(self.hardware.ridge)
        return (
            f"DRAM: {read} read + {written} written = {total}, {self.estimate.intensity:.2f} FLOP/byte, "
            f"{self.estimate.limit}-bound on {self.hardware.name} (ridge {ridge}).",
        )

    @property
    def _beside(self) -> tuple[str, ...]:
        """The bound and the best tile for this SRAM."""
        best, bound = self.slope.bytes_at(self.sram_bytes), self.bound_bytes
        ratio = f"; you move {self.traffic.nbytes / bound:.2f} × as much" if self.traffic else ""
        return (
            f"No schedule moves less than {format_bytes(bound)} with this SRAM{ratio}. "
            f"The best tile on a scratchpad moves {format_bytes(best)}.",
        )


def data(
    shape: Shape = (1024, 1024, 1024),
    tile: Shape = (128, 128, 128),
    order: str = "mnk",
    c_policy: CPolicy = "store",
    buffers: Buffers = "single",
    memory: Memory = "scratchpad",
    hardware: Hardware | None = None,
    dtype: str = "float32",
) -> TilingState:
    """The product of ``shape`` (m, n, k) by ``tile`` (TM, TN, TK) on a machine (the first preset unless given).

    A cache knows neither C policy nor buffers: it ignores both. LabError for what makes no nest, and for a product
    too large to simulate while a slider waits.

    >>> data().estimate.intensity, data(tile=(256, 256, 256)).traffic
    (30.11764705882353, None)
    """
    machine = hardware or Hardware.preset(Hardware.presets()[0])
    if memory not in get_args(Memory):
        raise LabError(f"memory {memory!r}: choose one of {', '.join(get_args(Memory))}")
    if memory != "scratchpad":
        c_policy, buffers = "store", "single"
    nest = nest_of(shape, tile, order, c_policy, buffers, dtype)
    return TilingState(nest, memory, machine, _traffic(nest, memory, machine))


def nest_of(
    shape: Shape,
    tile: Shape,
    order: str,
    c_policy: CPolicy = "store",
    buffers: Buffers = "single",
    dtype: str = "float32",
) -> LoopNest:
    """The tiled product, tiles no larger than the problem."""
    return LoopNest(matmul(*shape, dtype), tile, tuple(order), c_policy, buffers).clipped()


def tile_text(nest: LoopNest) -> str:
    """The sizes of a tile, TM×TN×TK."""
    return "×".join(map(str, nest.tile))


def show(state: HardwareState | None = None, **settings: object) -> TilingView:
    """The live plot on the machine of a panel; ``settings`` are where its controls start."""
    from labkit.explore.panel import HardwareState
    from labkit.explore.tiling_view import TilingView

    return TilingView(HardwareState() if state is None else state).set(**settings)


def _traffic(nest: LoopNest, memory: Memory, hardware: Hardware) -> Traffic | None:
    if memory == "scratchpad":
        return nest.traffic if nest.working_set_bytes <= hardware.sram_bytes else None
    line, sram = hardware.line_bytes, hardware.sram_bytes
    if memory == "lru":
        curve = caches.lru(nest, line)
        reads, writes = curve.misses(sram), curve.write_backs(sram)
    else:
        reads, writes = caches.opt(nest, line, sram)
    return Traffic(reads * line, writes * line, reads, writes)
