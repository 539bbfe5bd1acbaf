"""The roofline model: how fast a kernel can run, given its arithmetic intensity and the machine.

Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.loops import LoopNest


def arithmetic_intensity(flops: int, dram_bytes: int) -> float:
    """FLOP per DRAM byte; 0 for a kernel without arithmetic, infinite for arithmetic that moves nothing.

    >>> arithmetic_intensity(4_194_304, 131_072)
    32.0
    """
    if not flops:
        return 0.0
    return flops / dram_bytes if dram_bytes else inf


def attainable_flops_per_s(intensity: float, hardware: Hardware) -> float:
    """The roof above an intensity in FLOP/byte: min(peak, intensity × DRAM bandwidth)."""
    return min(hardware.peak_flops_per_s, intensity * hardware.dram_bytes_per_s)


@dataclass(frozen=True)
class RooflineEstimate:
    """The time predicted for ``flops`` of arithmetic and ``dram_bytes`` of traffic, in ``launches`` kernels.

    Arithmetic and transfers overlap perfectly, so the longer one counts; a launch overlaps with nothing.
    Raises LabError for a negative count.

    >>> estimate = RooflineEstimate(2**31, 71_303_168, 1, Hardware.preset("edge-npu"))
    >>> round(estimate.intensity, 2), estimate.limit
    (30.12, 'memory')
    """

    flops: int
    dram_bytes: int
    launches: int
    hardware: Hardware

    def __post_init__(self) -> None:
        for name in ("flops", "dram_bytes", "launches"):
            if getattr(self, name) < 0:
                raise LabError(f"roofline: {name} is {getattr(self, name)}, it cannot be negative")

    @staticmethod
    def of(nest: LoopNest, hardware: Hardware) -> RooflineEstimate:
        """The estimate for a loop nest as one kernel, from the bytes that its closed form gives.

        Whether its tiles fit the hardware's SRAM is another question: ``nest.working_set_bytes``.

        >>> from labkit.problems import matmul
        >>> nest = LoopNest(matmul(1024, 1024, 1024), (342, 342, 1), tuple("mnk"))
        >>> round(RooflineEstimate.of(nest, Hardware.preset("edge-npu")).intensity, 1)
        73.1
        """
        return RooflineEstimate(nest.problem.flops, nest.traffic.nbytes, 1, hardware)

    @property
    def intensity(self) -> float:
        """Arithmetic intensity in FLOP/byte."""
        return arithmetic_intensity(self.flops, self.dram_bytes)

    @property
    def attainable_flops_per_s(self) -> float:
        """The roof above this intensity."""
        return attainable_flops_per_s(self.intensity, self.hardware)

    @property
    def limit(self) -> Literal["memory", "compute"]:
        """What holds it back: ``memory`` below the ridge, ``compute`` from the ridge on."""
        return "memory" if self.intensity < self.hardware.ridge else "compute"

    @property
    def compute_s(self) -> float:
        """Seconds of arithmetic at peak."""
        return self.flops / self.hardware.peak_flops_per_s

    @property
    def memory_s(self) -> float:
        """Seconds of DRAM traffic at full bandwidth."""
        return self.dram_bytes / self.hardware.dram_bytes_per_s

    @property
    def seconds(self) -> float:
        """Predicted time: the longer of arithmetic and traffic, and the launches."""
        return max(self.compute_s, self.memory_s) + self.launches * self.hardware.launch_s
