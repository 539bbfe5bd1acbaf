"""Lesson 03's ledger: what each tensor of Conv → BatchNormalization → ReLU moves, apart, folded and fused.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.kernels.conv import conv_nest
from labkit.kernels.elementwise import ElementwiseOp
from labkit.kernels.fused import Chain, add, batch_norm, relu
from labkit.loops import LoopNest
from labkit.memory.ledger import Ledger, Traffic
from labkit.problems import ConvShape
from labkit.roofline import RooflineEstimate
from labkit.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from labkit.explore.ledger_view import LedgerView
    from labkit.explore.panel import HardwareState

BLOCKS = ("Conv BN ReLU", "Conv BN Add ReLU")
VERSIONS = {
    "apart": "a kernel for each operator",
    "folded": "BN folded into the weights",
    "fused": "one kernel",
    "folded, fused": "BN folded, then one kernel",
}
CHANNELS, SIZES = (16, 32, 64), (7, 14, 28, 56, 112)

# A tensor of the picture -> what the kernels of labkit call it.
TENSORS = {
    "image": ("X",),
    "weights": ("W",),
    "vectors": ("bn_scale", "bn_shift", "bn_mean", "bn_variance", "bias"),
    "skip": ("residual",),
    "conv out": ("Y",),
    "BN out": ("bn_out",),
    "sum": ("add_out",),
    "result": ("relu_out",),
}


class Kernel(NamedTuple):
    """What one launch reads, makes and computes."""

    name: str
    reads: tuple[str, ...]
    makes: str
    flops: int


@dataclass(frozen=True)
class LedgerState:
    """The block in one of its versions. The image is walked in strips of rows: weights stay, no byte comes twice."""

    shape: ConvShape
    block: str
    version: str
    hardware: Hardware

    @property
    def is_fused(self) -> bool:
        return self.version in ("fused", "folded, fused")

    @property
    def is_folded(self) -> bool:
        return self.version in ("folded", "folded, fused")

    @cached_property
    def nbytes(self) -> dict[str, int]:
        """The size of each tensor that the block has in any version, in the order of the picture."""
        x, w = self.nest.problem.inputs
        y = self.nest.problem.output.nbytes
        vectors = (1 if self.is_folded else 4) * self.shape.filters * w.itemsize
        sizes = {"image": x.nbytes, "weights": w.nbytes, "vectors": vectors, "skip": y, "conv out": y, "BN out": y}
        sizes |= {"sum": y, "result": y}
        return {name: sizes[name] for name in TENSORS if "Add" in self.block or name not in ("skip", "sum")}

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The launches, one after another."""
        steps = tuple(self._steps())
        if not self.is_fused:
            return steps
        made = {step.makes for step in steps}
        reads = tuple(name for step in steps for name in step.reads if name not in made)
        name = "+".join(step.name for step in steps)
        return (Kernel(name, reads, steps[-1].makes, sum(step.flops for step in steps)),)

    def _steps(self) -> Iterator[Kernel]:
        elements = self.nest.problem.output.nbytes // self.nest.problem.output.itemsize
        flops, vectors = self.nest.problem.flops, ("vectors",)
        last = "conv out"
        yield Kernel(
            "conv", ("image", "weights", *(vectors if self.is_folded else ())), last, flops + elements * self.is_folded
        )
        if not self.is_folded:
            yield Kernel("bn", (last, *vectors), "BN out", 2 * elements)
            last = "BN out"
        if "Add" in self.block:
            yield Kernel("add", (last, "skip"), "sum", elements)
            last = "sum"
        yield Kernel("relu", (last,), "result", elements)

    @cached_property
    def ledger(self) -> Ledger:
        """A line for each tensor that a kernel reads or writes."""
        ledger = Ledger()
        for kernel in self.kernels:
            for name in kernel.reads:
                ledger.record(kernel.name, name, "read", self.nbytes[name])
            ledger.record(kernel.name, kernel.makes, "write", self.nbytes[kernel.makes])
        return ledger

    @cached_property
    def moved(self) -> dict[str, Traffic]:
        """The traffic of each tensor of the block; of one that never leaves the chip it is nothing."""
        found = self.ledger.by("value")
        return {name: found.get(name, Traffic()) for name in self.nbytes}

    @property
    def launches(self) -> int:
        return len(self.kernels)

    @cached_property
    def estimates(self) -> tuple[RooflineEstimate, ...]:
        """The roofline of each kernel."""
        by = self.ledger.by("node")
        return tuple(RooflineEstimate(k.flops, by[k.name].nbytes, 1, self.hardware) for k in self.kernels)

    @property
    def launch_s(self) -> float:
        """Seconds that go into starting kernels."""
        return self.launches * self.hardware.launch_s

    @property
    def work_s(self) -> float:
        """Seconds of the kernels themselves: of each, its transfers or its arithmetic."""
        return sum(estimate.seconds for estimate in self.estimates) - self.launch_s

    @cached_property
    def versions(self) -> dict[str, LedgerState]:
        """This block in all versions."""
        return {version: replace(self, version=version) for version in VERSIONS}

    # ---- the same as a chain that can be run

    @cached_property
    def chain(self) -> Chain:
        """The nest and what follows it; run it with ``fused=state.is_fused``."""
        return Chain(self.nest, *self._ops(self.nest))

    def _ops(self, nest: LoopNest) -> tuple[tuple[ElementwiseOp, ...], tuple[ElementwiseOp, ...]]:
        vector = np.ones((1, 1, self.shape.filters, 1, 1), np.float32)
        bn = batch_norm(vector, vector.copy(), vector.copy(), vector.copy())
        bias = add(vector, "bias", "bias")
        skip = np.broadcast_to(np.float32(0), nest.problem.output.shape)
        adds = (add(skip),) if "Add" in self.block else ()
        follow = (*(() if self.is_folded else (bn,)), *adds, relu())
        return follow, (replace(bias, output="Y"),) if self.is_folded else ()

    @cached_property
    def nest(self) -> LoopNest:
        """The convolution in strips of as many rows as fit into the SRAM with all that one kernel holds."""
        rows, _ = self.shape.output_size
        for p in range(rows, 0, -1):
            nest = conv_nest(self.shape, tile={"p": p}, halo="slide")
            if (needed := self._room(nest)) <= self.hardware.sram_bytes:
                return nest
        raise LabError(
            f"{self.block}, {self.shape.c} channels: one row at a time needs {format_bytes(needed)} of SRAM; "
            f"there are {format_bytes(self.hardware.sram_bytes)}"
        )

    def _room(self, nest: LoopNest) -> int:
        follow, own = self._ops(nest)
        return Chain(nest, follow if self.is_fused else (), own).working_set_bytes

    @property
    def working_set_bytes(self) -> int:
        """SRAM of the kernel that needs the most."""
        return self._room(self.nest)

    # ---- in words

    @property
    def still(self) -> tuple[object, ...]:
        return self.block, self.shape

    @property
    def sentence(self) -> str:
        """The state in words and numbers, a line a kernel."""
        apart, moved = self.versions["apart"].ledger.traffic.nbytes, self.ledger.traffic.nbytes
        c, size = self.shape.c, self.shape.h
        lines = [
            f"{self.block}, {c}×{size}×{size}: {VERSIONS[self.version]}.",
            f"Launches: {self.launches}. DRAM: {moved:,} bytes = {format_bytes(moved)}; "
            f"{apart - moved:,} fewer than apart.",
        ]
        for kernel, estimate in zip(self.kernels, self.estimates, strict=True):
            lines.append(
                f"{kernel.name}: {format_bytes(estimate.dram_bytes)}, {estimate.intensity:.3g} FLOP/byte, "
                f"{estimate.limit}-bound, {format_seconds(estimate.seconds)} with its launch."
            )
        room = f"{format_bytes(self.working_set_bytes)} of {format_bytes(self.hardware.sram_bytes)} SRAM"
        lines.append(
            f"On chip: strips of {self.nest.tiles['p']} rows, {room}. "
            f"Work {format_seconds(self.work_s)} + launches {format_seconds(self.launch_s)}."
        )
        return "\n".join(lines)


def data(
    block: str = BLOCKS[0],
    version: str = "apart",
    channels: int = 64,
    size: int = 56,
    hardware: Hardware | None = None,
) -> LedgerState:
    """A 3×3 convolution that keeps the size, with as many filters as channels, and what follows it.

    Raises LabError for a block or version that is none, sizes that make no convolution, and too small an SRAM.

    >>> state = data()
    >>> state.ledger.traffic.nbytes - data(version="fused").ledger.traffic.nbytes
    3211264
    """
    for what, value, known in (("block", block, BLOCKS), ("version", version, VERSIONS)):
        if value not in known:
            raise LabError(f"no {what} {value!r}; there are: {'; '.join(known)}")
    shape = ConvShape(1, channels, size, size, channels, (3, 3), pads=(1, 1, 1, 1))
    state = LedgerState(shape, block, version, hardware or Hardware.preset(Hardware.presets()[0]))
    for one in state.versions.values():
        one.nest  # noqa: B018 - each version must fit: the picture compares them
    return state


def show(state: HardwareState | None = None, **settings: Any) -> LedgerView:
    """The live picture on the machine of a panel; ``settings`` are where its controls start."""
    from labkit.explore.ledger_view import LedgerView
    from labkit.explore.panel import HardwareState

    return LedgerView(HardwareState() if state is None else state).set(**settings)
