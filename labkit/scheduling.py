"""schedule(): a plan for each kernel of a graph on one machine, and what all of them move, hold and take (spec §3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from labkit.errors import SramOverflow
from labkit.graph import Graph, Node
from labkit.hardware import Hardware
from labkit.loops import Buffers
from labkit.lowering import Kernel, lower
from labkit.memory.dma import DmaCost, KernelTime
from labkit.memory.ledger import Ledger, Traffic
from labkit.planning import Plan, plan
from labkit.pseudocode import written
from labkit.units import format_bytes, format_seconds


@dataclass(frozen=True, eq=False)
class ScheduledNode:
    """One node as one kernel: its loops, the plan for them, and its time."""

    node: Node
    kernel: Kernel
    plan: Plan
    time: KernelTime

    @property
    def name(self) -> str:
        """The first value that it makes, which is what its lines in the ledger are entered under."""
        return next((value.name for value in self.node.results), self.node.op)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """What the graph calls each tensor that the kernel reads or makes."""
        inner = self.node if self.node.body is None else self.node.body
        ends = ((inner.inputs, self.node.inputs), (inner.outputs, self.node.outputs))
        names = {a.name: b.name for own, outer in ends for a, b in zip(own, outer, strict=True) if a and b}
        for move in self.kernel.arranged:
            old, new = move.uses[0].name, move.output.name
            names |= {new: names[old]} if old in names else {old: names[new]}
        return names

    @property
    def traffic(self) -> dict[str, Traffic]:
        """Bytes and transfers of each tensor."""
        found: dict[str, Traffic] = {}
        for name, moved in self.plan.moved(self.kernel):
            found[self.names[name]] = found.get(self.names[name], Traffic()) + moved
        return found

    @property
    def tile(self) -> str:
        """The size of each loop's tile that is cut or not, such as ``f=64,c=3``; empty for a stream."""
        return ",".join(f"{loop}={size}" for loop, size in self.plan.nest.tiles.items()) if self.plan.nest else ""

    @property
    def order(self) -> str:
        """The loops over tiles, outermost first; empty for a stream."""
        return ",".join(self.plan.nest.order) if self.plan.nest else ""

    def to_dict(self) -> dict[str, Any]:
        """Its figures; the values are those of JSON."""
        return {
            **{"name": self.name, "op": self.node.op, "tile": self.tile, "order": self.order},
            **{"dram_bytes": self.plan.dram_bytes, "transactions": self.plan.transactions},
            **{"working_set_bytes": self.plan.working_set_bytes, "needed_bytes": self.plan.needed_bytes},
            **{"flops": self.kernel.flops, "time_s": self.time.seconds, "is_assumed": self.kernel.is_assumed},
        }

    def __str__(self) -> str:
        assumed = ", each tensor assumed to move once" if self.kernel.is_assumed else ""
        head = (
            f"{self.node.label}: {format_bytes(self.plan.dram_bytes)} in {self.plan.transactions:,} transfers, "
            f"working set {format_bytes(self.plan.working_set_bytes)}, {format_seconds(self.time.seconds)}{assumed}"
        )
        return "\n    ".join([head, *written(self.kernel, self.plan.nest, self.names)])


@dataclass(frozen=True, eq=False)
class Schedule:
    """Kernels that run one after another, each with all of the SRAM.

    ``time_s`` adds up the kernels: what has two buffers moves while the kernel computes (see KernelTime).
    """

    nodes: tuple[ScheduledNode, ...]
    hardware: Hardware
    buffers: Buffers

    @cached_property
    def ledger(self) -> Ledger:
        """A line for each tensor that a kernel reads or writes; a run is a transfer."""
        ledger = Ledger()
        for node in self.nodes:
            for value, moved in node.traffic.items():
                ledger.record(node.name, value, "read", moved.read_bytes, runs=moved.reads)
                ledger.record(node.name, value, "write", moved.write_bytes, runs=moved.writes)
        return ledger

    @property
    def dram_bytes(self) -> int:
        """Bytes between DRAM and chip, re-loads included."""
        return sum(node.plan.dram_bytes for node in self.nodes)

    @property
    def transactions(self) -> int:
        """Transfers that the DMA engine makes."""
        return sum(node.plan.transactions for node in self.nodes)

    @property
    def flops(self) -> int:
        return sum(node.kernel.flops for node in self.nodes)

    @property
    def time_s(self) -> float:
        """Seconds of all kernels."""
        return sum(node.time.seconds for node in self.nodes)

    @property
    def high_water_bytes(self) -> int:
        """The most SRAM that a kernel takes."""
        return max((node.plan.working_set_bytes for node in self.nodes), default=0)

    @property
    def assumed(self) -> tuple[str, ...]:
        """Kernels of which too little is known to tile them: each of their tensors is counted once."""
        return tuple(node.name for node in self.nodes if node.kernel.is_assumed)

    def __iter__(self) -> Iterator[ScheduledNode]:
        return iter(self.nodes)

    def to_dict(self) -> dict[str, Any]:
        """Totals and the figures of each kernel; the values are those of JSON."""
        return {
            **{"hardware": self.hardware.name, "sram_bytes": self.hardware.sram_bytes, "buffers": self.buffers},
            **{"dram_bytes": self.dram_bytes, "transactions": self.transactions, "flops": self.flops},
            **{"time_s": self.time_s, "high_water_bytes": self.high_water_bytes, "assumed": list(self.assumed)},
            "nodes": [node.to_dict() for node in self.nodes],
        }

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.nodes))


def schedule(graph: Graph, hardware: Hardware, buffers: Buffers = "single", dma: DmaCost | None = None) -> Schedule:
    """A plan for each node of a graph: the fewest DRAM bytes that a tiled kernel moves in this machine's SRAM.

    A dim that is no number counts as 1. Without ``dma`` a transfer costs its bytes only. Raises SramOverflow when not
    even the smallest tiles of a node fit.
    """
    dma = dma or DmaCost.of(hardware)
    return Schedule(
        tuple(_scheduled(node, graph.opset, hardware, buffers, dma) for node in graph.nodes), hardware, buffers
    )


def metadata(found: Schedule) -> dict[str, dict[str, str]]:
    """What an exported file says of each node, by the name of its first output."""
    return {
        node.name: {
            **({"labkit.tile": node.tile, "labkit.order": node.order} if node.plan.nest else {}),
            "labkit.dram_bytes": str(node.plan.dram_bytes),
            "labkit.working_set_bytes": str(node.plan.working_set_bytes),
        }
        for node in found
    }


def _scheduled(node: Node, opset: int, hardware: Hardware, buffers: Buffers, dma: DmaCost) -> ScheduledNode:
    kernel = kernel_of(node, opset)
    chosen = plan(kernel, hardware.sram_bytes, buffers)
    if not chosen.fits:
        raise SramOverflow(
            f"{node.label}: its smallest tiles take {format_bytes(chosen.working_set_bytes)} "
            f"({chosen.working_set_bytes:,} bytes); there are {format_bytes(hardware.sram_bytes)} of SRAM"
        )
    inputs_s, outputs_s = (dma.seconds(part.transfers, part.nbytes) for part in (chosen.inputs, chosen.output))
    compute_s = kernel.flops / hardware.peak_flops_per_s
    return ScheduledNode(node, kernel, chosen, KernelTime(inputs_s, outputs_s, compute_s, hardware.launch_s, buffers))


@lru_cache(maxsize=4096)  # another machine asks the same of every node
def kernel_of(node: Node, opset: int) -> Kernel:
    """A node, fused or not, as loops."""
    ends = node if node.body is None else node.body
    inputs = node.uses if node.body is None else node.body.inputs
    outputs = tuple(value for value in ends.outputs if value is not None)
    return lower(node.steps, tuple(dict.fromkeys(inputs)), outputs, opset)
