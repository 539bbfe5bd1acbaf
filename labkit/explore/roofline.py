"""A roofline plot with labelled points, live on the hardware of a panel.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.roofline import RooflineEstimate
from labkit.units import format_rate

if TYPE_CHECKING:
    from labkit.explore.panel import HardwareState
    from labkit.explore.roofline_view import RooflineView

LARGEST = 8  # points in one picture: as many as there are colours that all eyes can tell apart
_LANE_GAP = 0.062  # smallest distance of two badges, in widths of the axes

Point = tuple[str, int, int]


@dataclass(frozen=True)
class RooflinePoint:
    """A kernel or network on the roofline: ``estimate`` holds its FLOPs, its DRAM bytes and the roof above it."""

    label: str
    estimate: RooflineEstimate

    @property
    def sentence(self) -> str:
        estimate = self.estimate
        return (
            f"{self.label}: {format_intensity(estimate.intensity)} FLOP/byte, {estimate.limit}-bound, "
            f"at most {format_rate(estimate.attainable_flops_per_s, 'FLOP/s')}"
        )


@dataclass(frozen=True)
class RooflineState:
    """All that the plot shows: a machine and points, with the window of the axes that holds them."""

    hardware: Hardware
    points: tuple[RooflinePoint, ...]

    @property
    def intensity_limits(self) -> tuple[float, float]:
        """Whole decades in FLOP/byte around the ridge and every point, at least 0.1 to 1,000."""
        values = [
            0.1,
            999.0,
            self.hardware.ridge / 1.5,
            self.hardware.ridge * 1.5,
            *(point.estimate.intensity for point in self.points),
        ]
        return 10.0 ** floor(log10(min(values))), 10.0 ** ceil(log10(max(values)))

    @property
    def rate_limits(self) -> tuple[float, float]:
        """Whole decades in FLOP/s: one above the peak for the badges, and down to the lowest point."""
        lowest = [point.estimate.attainable_flops_per_s for point in self.points]
        peak = self.hardware.peak_flops_per_s
        return 10.0 ** floor(log10(min([peak / 1000, *lowest]))), 10.0 ** (floor(log10(peak)) + 2)

    @property
    def badges(self) -> tuple[float, ...]:
        """Where along the intensity axis (0 to 1) the badge of each point stands: near the point, none on another."""
        low, high = map(log10, self.intensity_limits)
        return spread([(log10(p.estimate.intensity) - low) / (high - low) for p in self.points], _LANE_GAP)

    @property
    def still(self) -> tuple[object, ...]:
        """Axes, labels and badges: a slider leaves them in place until a point or the ridge enters another decade."""
        work = [(point.label, point.estimate.flops, point.estimate.dram_bytes) for point in self.points]
        return (self.intensity_limits, self.rate_limits, *work)

    @property
    def sentence(self) -> str:
        """The plot in words, a line a point."""
        hardware = self.hardware
        machine = (
            f"{hardware.name}: peak {format_rate(hardware.peak_flops_per_s, 'FLOP/s')}, "
            f"DRAM {format_rate(hardware.dram_bytes_per_s, 'B/s')}, ridge {format_intensity(hardware.ridge)} FLOP/byte."
        )
        return "\n".join([machine, *(f"{n}. {point.sentence}." for n, point in enumerate(self.points, 1))])


def data(points: Sequence[Point], hardware: Hardware) -> RooflineState:
    """The roofline of ``points``, each (label, flops, dram_bytes), on a machine.

    Raises LabError for a point without FLOPs or without traffic: it has no place on logarithmic axes.

    >>> print(data([("matmul", 2**31, 71_303_168)], Hardware.preset("edge-npu")).sentence)
    edge-npu: peak 1.02 TFLOP/s, DRAM 3.75 GB/s, ridge 273 FLOP/byte.
    1. matmul: 30.1 FLOP/byte, memory-bound, at most 113 GFLOP/s.
    """
    if len(points) > LARGEST:
        raise LabError(f"{len(points)} points: one roofline plot holds {LARGEST}, choose the ones that tell the story")
    for label, flops, dram_bytes in points:
        if flops <= 0 or dram_bytes <= 0:
            raise LabError(f"point {label!r} has {flops} FLOP and {dram_bytes} bytes: both must be above 0 to be drawn")
    made = (RooflinePoint(label, RooflineEstimate(flops, nbytes, 1, hardware)) for label, flops, nbytes in points)
    return RooflineState(hardware, tuple(made))


def show(points: Sequence[Point], state: HardwareState | None = None) -> RooflineView:
    """The live plot: it follows ``state`` (that of a hardware panel), and its ``points`` can be set anew."""
    from labkit.explore.panel import HardwareState
    from labkit.explore.roofline_view import RooflineView

    return RooflineView(points, HardwareState() if state is None else state)


def format_intensity(intensity: float) -> str:
    """Three digits, and no exponent where there is room for the number.

    >>> [format_intensity(x) for x in (0.0833, 2.5, 30.118, 273.07, 12345.6, 1e8)]
    ['0.0833', '2.5', '30.1', '273', '12,346', '1e+08']
    """
    return f"{intensity:,.0f}" if 100 <= intensity < 1e5 else f"{intensity:.3g}"


def spread(wanted: Sequence[float], gap: float) -> tuple[float, ...]:
    """Positions in [gap/2, 1 - gap/2], in the order of those wanted and near them, at least ``gap`` apart.

    >>> [round(x, 2) for x in spread([0.5, 0.5, 0.99], 0.1)]
    [0.5, 0.6, 0.95]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = list(wanted)
    edge = gap / 2
    for i in order:  # push to the right
        placed[i] = max(placed[i], edge)
        edge = placed[i] + gap
    edge = 1 - gap / 2
    for i in reversed(order):  # and back from the right end
        placed[i] = min(placed[i], edge)
        edge = placed[i] - gap
    return tuple(placed)
