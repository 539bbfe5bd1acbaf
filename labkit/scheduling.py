"""schedule(): a plan for each kernel of a graph on one machine, and what all of them move, hold and take (spec §3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from labkit.errors import SramOverflow
from labkit.graph import Graph, Node
from labkit.hardware import Hardware
from labkit.loops import Buffers
from labkit.lowering import Kernel, lower
from labkit.memory.dma import DmaCost, KernelTime
from labkit.memory.ledger import Ledger, Traffic
from labkit.planning import Move, Plan, plan
from labkit.pseudocode import written, written_pair
from labkit.units import format_bytes, format_seconds


@dataclass(frozen=True, eq=False)
class ScheduledNode:
    """One node as one kernel: its loops, and the plan for them on a machine.

    ``resident`` are tensors of the graph that are on chip all the while, as a whole: for these nothing moves.
    """

    node: Node
    kernel: Kernel
    plan: Plan
    hardware: Hardware
    buffers: Buffers
    dma: DmaCost
    resident: Mapping[str, int] = field(default_factory=dict)

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
        names = {value.name: value.name for value in self.node.uses} | names
        for move in self.kernel.arranged:
            old, new = move.uses[0].name, move.output.name
            names |= {new: names[old]} if old in names else {old: names[new]}
        return names

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """What moves between DRAM and chip, tensor by tensor."""
        found = self.plan.moves(self.kernel)
        return tuple(move for move in found if self.names[move.value.name] not in self.resident)

    @cached_property
    def traffic(self) -> Traffic:
        """Bytes and transfers of all tensors."""
        return sum((move.traffic for move in self.moves), Traffic())

    @property
    def sram_bytes(self) -> int:
        """The SRAM that is taken while it runs."""
        return self.plan.working_set_bytes + sum(self.resident.values())

    @property
    def time(self) -> KernelTime:
        """What its transfers and its arithmetic take."""
        parts: list[Traffic] = [
            sum((move.traffic for move in self.moves if move.is_input == inputs), Traffic()) for inputs in (True, False)
        ]
        input_s, output_s = (self.dma.seconds(part.transfers, part.nbytes) for part in parts)
        compute_s = self.flops / self.hardware.peak_flops_per_s
        return KernelTime(input_s, output_s, compute_s, self.hardware.launch_s, self.buffers)

    @property
    def flops(self) -> int:
        """Floating-point operations, those that a depth-first pair does again included."""
        return self.kernel.flops + self.plan.extra_flops

    @property
    def tile(self) -> str:
        """The size of each loop's tile that is cut or not, such as ``f=64,c=3``; empty for a stream."""
        if self.plan.pair_tile:
            return "p={},q={}".format(*self.plan.pair_tile)
        return ",".join(f"{loop}={size}" for loop, size in self.plan.nest.tiles.items()) if self.plan.nest else ""

    @property
    def order(self) -> str:
        """The loops over tiles, outermost first; empty for a stream."""
        if self.plan.pair_tile:
            return "n,p,q"
        return ",".join(self.plan.nest.order) if self.plan.nest else ""

    def to_dict(self) -> dict[str, Any]:
        """Its figures; the values are those of JSON."""
        return {
            **{"name": self.name, "op": self.node.op, "tile": self.tile, "order": self.order},
            **{"dram_bytes": self.traffic.nbytes, "transactions": self.traffic.transfers},
            **{"working_set_bytes": self.plan.working_set_bytes, "needed_bytes": self.plan.needed_bytes},
            **{
                "flops": self.flops,
                "extra_flops": self.plan.extra_flops,
                "time_s": self.time.seconds,
                "is_assumed": self.kernel.is_assumed,
            },
        }

    def __str__(self) -> str:
        assumed = ", each tensor assumed to move once" if self.kernel.is_assumed else ""
        head = (
            f"{self.node.label}: {format_bytes(self.traffic.nbytes)} in {self.traffic.transfers:,} transfers, "
            f"working set {format_bytes(self.plan.working_set_bytes)}, {format_seconds(self.time.seconds)}{assumed}"
        )
        return "\n    ".join([head, *self._lines()])

    def _lines(self) -> list[str]:
        if self.kernel.halves and self.plan.pair_tile:
            return written_pair(self.kernel.halves, self.plan.pair_tile, self.names)
        return written(self.kernel, self.plan.nest, self.names)


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
            for value, moved, _ in node.moves:
                name = node.names[value.name]
                ledger.record(node.name, name, "read", moved.read_bytes, runs=moved.reads)
                ledger.record(node.name, name, "write", moved.write_bytes, runs=moved.writes)
        return ledger

    @property
    def dram_bytes(self) -> int:
        """Bytes between DRAM and chip, re-loads included."""
        return sum(node.traffic.nbytes for node in self.nodes)

    @property
    def transactions(self) -> int:
        """Transfers that the DMA engine makes."""
        return sum(node.traffic.transfers for node in self.nodes)

    @property
    def flops(self) -> int:
        return sum(node.flops for node in self.nodes)

    @property
    def time_s(self) -> float:
        """Seconds of all kernels."""
        return sum(node.time.seconds for node in self.nodes)

    @property
    def high_water_bytes(self) -> int:
        """The most SRAM that is ever taken."""
        return max((node.sram_bytes for node in self.nodes), default=0)

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
    engine = dma or DmaCost.of(hardware)
    nodes = []
    for node in graph.nodes:
        kernel = kernel_of(node, graph.opset)
        found = plan(kernel, hardware.sram_bytes, buffers)
        if not found.fits:
            raise SramOverflow(
                f"{node.label}: its smallest tiles take {format_bytes(found.working_set_bytes)} "
                f"({found.working_set_bytes:,} bytes); there are {format_bytes(hardware.sram_bytes)} of SRAM"
            )
        nodes.append(ScheduledNode(node, kernel, found, hardware, buffers, engine))
    return Schedule(tuple(nodes), hardware, buffers)


def metadata(found: Schedule) -> dict[str, dict[str, str]]:
    """What an exported file says of each node, by the name of its first output."""
    return {
        node.name: {
            **({"labkit.tile": node.tile, "labkit.order": node.order} if node.tile else {}),
            "labkit.dram_bytes": str(node.traffic.nbytes),
            "labkit.working_set_bytes": str(node.plan.working_set_bytes),
        }
        for node in found
    }


@lru_cache(maxsize=4096)  # another machine asks the same of every node
def kernel_of(node: Node, opset: int) -> Kernel:
    """A node, fused or not, as loops."""
    ends = node if node.body is None else node.body
    inputs = node.uses if node.body is None else node.body.inputs
    outputs = tuple(value for value in ends.outputs if value is not None)
    return lower(node.steps, tuple(dict.fromkeys(inputs)), outputs, opset)
