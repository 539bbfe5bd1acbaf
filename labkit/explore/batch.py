"""Lesson 00's batch: a fully connected layer on more and more images at a time, and what each of them costs.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.loops import LoopNest
from labkit.problems import matmul
from labkit.roofline import RooflineEstimate
from labkit.search import best_tile
from labkit.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from labkit.explore.batch_view import BatchView
    from labkit.explore.panel import HardwareState

BATCHES = tuple(2**power for power in range(11))
WIDTHS = (256, 1024, 4096)


@dataclass(frozen=True)
class BatchState:
    """A layer of ``width`` inputs and outputs on ``batch`` images: a product of batch×width and width×width, at the
    best tile for the machine's SRAM."""

    batch: int
    width: int
    hardware: Hardware
    dtype: str

    @cached_property
    def nest(self) -> LoopNest:
        return best_tile(matmul(self.batch, self.width, self.width, self.dtype), self.hardware).nest

    @property
    def estimate(self) -> RooflineEstimate:
        return RooflineEstimate.of(self.nest, self.hardware)

    @property
    def weights_bytes(self) -> int:
        """Bytes of the weights that come from DRAM, all re-loads included."""
        return self.nest.by_operand["B"].nbytes

    @cached_property
    def curve(self) -> tuple[RooflineEstimate, ...]:
        """The layer at each batch of the picture."""
        return tuple(replace(self, batch=batch).estimate for batch in BATCHES)

    @property
    def first_compute_bound(self) -> int | None:
        """The smallest batch of the picture that is compute-bound; None when none is."""
        bound = (b for b, estimate in zip(BATCHES, self.curve, strict=True) if estimate.limit == "compute")
        return next(bound, None)

    @property
    def still(self) -> tuple[object, ...]:
        return self.width, self.dtype, self.hardware

    @property
    def sentence(self) -> str:
        """The state in words and numbers."""
        estimate, moved = self.estimate, self.nest.traffic.nbytes
        images = f"{self.batch} image" + "s" * (self.batch > 1)
        first = self.first_compute_bound
        return "\n".join(
            (
                f"Layer {self.width:,}→{self.width:,}, {self.dtype}, {images} at a time on {self.hardware.name}.",
                f"{format_bytes(moved)} moved, {format_bytes(self.weights_bytes)} of them weights: "
                f"{self.weights_bytes / moved:.1%}.",
                f"{estimate.intensity:.3g} FLOP/byte, ridge {self.hardware.ridge:.3g}: {estimate.limit}-bound.",
                f"All: {format_seconds(estimate.seconds)}, launch included. Each image: transfers "
                f"{format_seconds(estimate.memory_s / self.batch)}, arithmetic "
                f"{format_seconds(estimate.compute_s / self.batch)}.",
                f"Compute-bound from a batch of {first} on."
                if first
                else f"Memory-bound up to {BATCHES[-1]:,} images.",
            )
        )


def data(batch: int = 1, width: int = 4096, hardware: Hardware | None = None, dtype: str = "float32") -> BatchState:
    """The layer on a machine. Raises LabError for sizes below 1, a type without accumulator, and too small an SRAM.

    >>> round(data(batch=8).estimate.intensity, 1)
    4.0
    """
    for name, value in (("batch", batch), ("width", width)):
        if value < 1:
            raise LabError(f"{name} is {value}, it must be at least 1")
    state = BatchState(batch, width, hardware or Hardware.preset(Hardware.presets()[0]), dtype)
    state.nest  # noqa: B018 - says at once what does not fit
    return state


def show(state: HardwareState | None = None, **settings: Any) -> BatchView:
    """The live picture on the machine of a panel; ``settings`` are where its controls start."""
    from labkit.explore.batch_view import BatchView
    from labkit.explore.panel import HardwareState

    return BatchView(HardwareState() if state is None else state).set(**settings)
