"""Lesson 00's machines side by side: one kernel on each of them, under its own roof.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from labkit.errors import LabError
from labkit.explore.roofline import format_intensity
from labkit.hardware import Hardware
from labkit.problems import matmul
from labkit.roofline import RooflineEstimate
from labkit.search import best_tile
from labkit.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from labkit.explore.machines_view import MachinesView
    from labkit.explore.panel import HardwareState

FLOAT = 4  # bytes of a float32
SIZES = tuple(2**power for power in range(4, 13))


def _add(n: int, sram_bytes: int) -> tuple[int, int]:
    return n * n, 3 * n * n * FLOAT


def _vector(n: int, sram_bytes: int) -> tuple[int, int]:
    return _product_of(n, 1, n, sram_bytes)


def _product(n: int, sram_bytes: int) -> tuple[int, int]:
    return _product_of(n, n, n, sram_bytes)


def _naive(n: int, sram_bytes: int) -> tuple[int, int]:
    """Both elements of each step come from DRAM; the sum stays in a register."""
    return 2 * n**3, (2 * n**3 + n * n) * FLOAT


def _product_of(m: int, columns: int, k: int, sram_bytes: int) -> tuple[int, int]:
    problem = matmul(m, columns, k)
    return problem.flops, best_tile(problem, sram_bytes).dram_bytes


# A kernel of size n -> its FLOP and its DRAM bytes in an SRAM of so many bytes.
KERNELS: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "add n×n": _add,
    "matrix n×n × vector": _vector,
    "product n×n×n, naive": _naive,
    "product n×n×n, best tile": _product,
}


@dataclass(frozen=True)
class MachinesState:
    """A kernel of size n on some machines."""

    kernel: str
    n: int
    machines: tuple[Hardware, ...]

    @cached_property
    def estimates(self) -> tuple[RooflineEstimate, ...]:
        """One for each machine: its SRAM decides the bytes, its rates the time."""
        count = KERNELS[self.kernel]
        return tuple(RooflineEstimate(*count(self.n, machine.sram_bytes), 1, machine) for machine in self.machines)

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of its peak that each machine reaches at most."""
        return tuple(e.attainable_flops_per_s / e.hardware.peak_flops_per_s for e in self.estimates)

    @property
    def limits(self) -> tuple[float, float]:
        """Whole decades in FLOP/byte around every kernel and ridge."""
        values = [0.05, 900.0, *(m.ridge for m in self.machines), *(e.intensity for e in self.estimates)]
        return 10.0 ** floor(log10(min(values))), 10.0 ** ceil(log10(max(values)))

    @property
    def still(self) -> tuple[object, ...]:
        """The roofs, and the window that they are drawn in."""
        return tuple((m.name, m.ridge) for m in self.machines), self.limits

    @property
    def sentence(self) -> str:
        """The state in words and numbers, a line a machine."""
        lines = [f"{self.kernel}, n = {self.n}: {format_count(self.estimates[0].flops)}FLOP, the same on each machine."]
        for estimate, share in zip(self.estimates, self.shares, strict=True):
            machine = estimate.hardware
            lines.append(
                f"{machine.name}: ridge {format_intensity(machine.ridge)}, {format_bytes(estimate.dram_bytes)} moved, "
                f"{format_intensity(estimate.intensity)} FLOP/byte, {estimate.limit}-bound, {_percent(share)} of peak, "
                f"{format_seconds(estimate.seconds)}."
            )
        return "\n".join(lines)


def _percent(share: float) -> str:
    """Three digits.

    >>> _percent(1.0), _percent(0.00030518)
    ('100 %', '0.0305 %')
    """
    return f"{100 * share:.3g} %"


def data(kernel: str = "add n×n", n: int = 1024, hardware: Hardware | None = None) -> MachinesState:
    """A kernel on the machines that come with the course; ``hardware`` is one more, unless it is one of them.

    Raises LabError for a kernel that is none, a size below 1, and a machine on which nothing fits.

    >>> [round(share, 4) for share in data().shares]
    [0.0003, 0.0056, 0.0015, 0.0066]
    """
    if kernel not in KERNELS:
        raise LabError(f"no kernel {kernel!r}; there are: {'; '.join(KERNELS)}")
    if n < 1:
        raise LabError(f"n is {n}, it must be at least 1")
    machines = tuple(map(Hardware.preset, Hardware.presets()))
    state = MachinesState(kernel, n, machines if hardware is None or hardware in machines else (*machines, hardware))
    state.estimates  # noqa: B018 - says at once what does not fit
    return state


def show(state: HardwareState | None = None, **settings: Any) -> MachinesView:
    """The live picture; a machine of the panel that is no preset joins it."""
    from labkit.explore.machines_view import MachinesView
    from labkit.explore.panel import HardwareState

    return MachinesView(HardwareState() if state is None else state).set(**settings)
