"""What transfers cost in time: a DMA engine, and whether it works while the kernel computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.memory.ledger import Ledger

Buffers = Literal["single", "double", "double_all"]


@dataclass(frozen=True)
class DmaCost:
    """Moving n bytes that lie in k contiguous runs takes k · ``setup_s`` + n / ``bytes_per_s`` seconds.

    The linear cost of a message, latency and bandwidth (Hockney, "The communication challenge for MPP", Parallel
    Computing 20, 1994). An engine that moves strided blocks in one go has a smaller ``setup_s``.

    Raises LabError for a negative set-up time and for a rate that is not above zero.

    >>> DmaCost(setup_s=0.5, bytes_per_s=1024.0).seconds(runs=10, nbytes=2048)
    7.0
    """

    setup_s: float
    bytes_per_s: float

    def __post_init__(self) -> None:
        if not (self.setup_s >= 0 and self.bytes_per_s > 0):
            raise LabError(f"DMA: {self.setup_s} s for each run, {self.bytes_per_s} B/s: wanted ≥ 0 and > 0")

    @staticmethod
    def of(hardware: Hardware, setup_s: float = 0.0) -> DmaCost:
        """An engine that uses the whole DRAM bandwidth of a machine."""
        return DmaCost(setup_s, hardware.dram_bytes_per_s)

    def seconds(self, runs: int, nbytes: int) -> float:
        """Time of these transfers, one after another."""
        return runs * self.setup_s + nbytes / self.bytes_per_s


@dataclass(frozen=True)
class KernelTime:
    """The parts of one kernel's time. What has two buffers moves while the kernel computes, so the longer one counts;
    the rest is added. Left out: the first tile in and the last one out, which overlap with nothing.

    With ``single`` buffers nothing overlaps; with ``double`` the inputs do; with ``double_all`` the output does too.

    >>> [KernelTime(3.0, 2.0, 4.0, 0.5, buffers).seconds for buffers in ("single", "double", "double_all")]
    [9.5, 6.5, 5.5]
    """

    input_s: float
    output_s: float
    compute_s: float
    launch_s: float
    buffers: Buffers = "single"

    @property
    def seconds(self) -> float:
        if self.buffers == "single":
            return self.input_s + self.output_s + self.compute_s + self.launch_s
        if self.buffers == "double":
            return max(self.input_s, self.compute_s) + self.output_s + self.launch_s
        return max(self.input_s + self.output_s, self.compute_s) + self.launch_s


def kernel_times(
    ledger: Ledger, flops: Mapping[str, int], hardware: Hardware, dma: DmaCost, buffers: Buffers = "single"
) -> dict[str, KernelTime]:
    """The time of each kernel in a ledger, which run one after another; a node of the ledger is one launch.

    ``flops`` is the arithmetic of each node; one that is not named computes nothing that counts. A tensor that a node
    writes is its output, with all that the node reads of it.
    """
    times = {}
    for node in ledger.by("node"):
        lines = [access for access in ledger if access.node == node]
        written = {access.value for access in lines if access.kind == "write"}
        inputs = Ledger(access for access in lines if access.value not in written)
        output = Ledger(access for access in lines if access.value in written)
        input_s, output_s = (dma.seconds(part.runs, part.traffic.nbytes) for part in (inputs, output))
        compute_s = flops.get(node, 0) / hardware.peak_flops_per_s
        times[node] = KernelTime(input_s, output_s, compute_s, hardware.launch_s, buffers)
    return times
