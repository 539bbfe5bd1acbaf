"""cost(): the DRAM traffic, FLOPs, arithmetic intensity and predicted time of a graph, for each node and in total."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from labkit.graph import Graph, Node
from labkit.hardware import Hardware
from labkit.memory.ledger import Ledger, Traffic
from labkit.ops import row
from labkit.roofline import RooflineEstimate


@dataclass(frozen=True)
class NodeCost:
    """What one node moves and computes: one node is one kernel, launched once."""

    node: Node
    traffic: Traffic
    estimate: RooflineEstimate


@dataclass(frozen=True)
class Cost:
    """What a graph moves and computes, op by op: each kernel reads its inputs from DRAM and writes its outputs there.

    ``ledger`` has a line for each transfer, ``assumed`` the dims that are no numbers and were counted as 1.
    """

    nodes: tuple[NodeCost, ...]
    ledger: Ledger
    hardware: Hardware
    assumed: tuple[str, ...]

    @cached_property
    def traffic(self) -> Traffic:
        """Bytes between DRAM and chip."""
        return self.ledger.traffic

    @property
    def dram_bytes(self) -> int:
        return self.traffic.nbytes

    @cached_property
    def flops(self) -> int:
        return sum(cost.estimate.flops for cost in self.nodes)

    @property
    def launches(self) -> int:
        """Kernels started: one a node."""
        return len(self.nodes)

    @property
    def intensity(self) -> float:
        """FLOP for each DRAM byte of the whole graph."""
        return self.flops / self.dram_bytes if self.dram_bytes else 0.0

    @cached_property
    def time_s(self) -> float:
        """Seconds by the roofline, the kernels running one after another."""
        return sum(cost.estimate.seconds for cost in self.nodes)

    def __iter__(self) -> Iterator[NodeCost]:
        return iter(self.nodes)


def cost(graph: Graph, hardware: Hardware) -> Cost:
    """Count a graph op by op (spec §4.1): a node reads each distinct input once, weights too, writes each output once.
    A fused node is one kernel: what stays inside its body moves nothing.

    FLOPs come from the op table; an operator without a row counts as moving data only.
    """
    ledger = Ledger()
    nodes = []
    for node in graph.nodes:
        lines = Ledger()
        kernel = next((value.name for value in node.results), node.op)
        for value in dict.fromkeys(node.uses):
            lines.record(kernel, value.name, "read", value.type.nbytes if value.type else 0)
        for value in node.results:
            lines.record(kernel, value.name, "write", value.type.nbytes if value.type else 0)
        flops = sum(op.flops(step) for step in node.steps if (op := row(step)))
        nodes.append(NodeCost(node, lines.traffic, RooflineEstimate(flops, lines.traffic.nbytes, 1, hardware)))
        ledger.extend(lines)
    return Cost(tuple(nodes), ledger, hardware, _symbols(graph))


def _symbols(graph: Graph) -> tuple[str, ...]:
    values = (*graph.inputs, *(value for node in graph.nodes for value in node.results))
    dims = (dim for value in values for dim in value.shape or () if isinstance(dim, str))
    return tuple(dict.fromkeys(dims))
