"""Depth-first fusion: two kernels of windows become one when that moves fewer bytes than it computes again (spec §4).

A tile of the second kernel's output needs a tile of the first's with a halo around it. The tensor between them never
reaches DRAM; its halo is computed anew for each tile. Both are numbers, and both are turned into seconds on the
machine: bytes saved over its bandwidth, arithmetic added over its peak.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from labkit.bodies import all_names, fused_node, kernel_name, opened, own_name
from labkit.graph import Graph, Node
from labkit.hardware import Hardware
from labkit.lowering import Kernel
from labkit.pairs import WINDOWS, Halves, halves_of
from labkit.passes.rewriting import Refusal
from labkit.planning import Plan, plan
from labkit.scheduling import kernel_of
from labkit.units import format_bytes, format_count


@dataclass(frozen=True, eq=False)
class PairCandidate:
    """Two kernels that may be one ``node``, and what that would save and cost on a machine."""

    first: Node
    second: Node
    node: Node
    halves: Halves
    hardware: Hardware
    opset: int

    @cached_property
    def plan(self) -> Plan:
        """The two as one kernel at its best tile."""
        kernel = Kernel(self.node.steps, self.node.uses, self.node.results, halves=self.halves)
        return plan(kernel, self.hardware.sram_bytes)

    @cached_property
    def saved_bytes(self) -> int:
        """DRAM bytes of the two kernels, re-loads included, less those of the one."""
        apart = [plan(kernel_of(node, self.opset), self.hardware.sram_bytes) for node in (self.first, self.second)]
        return sum(one.dram_bytes for one in apart) - self.plan.dram_bytes

    @property
    def extra_flops(self) -> int:
        """Arithmetic that the one kernel does more than once."""
        return self.plan.extra_flops

    @property
    def pays(self) -> bool:
        """Whether it fits, saves bytes, and takes less time to compute again than it saves in moving."""
        saved_s = self.saved_bytes / self.hardware.dram_bytes_per_s
        return self.plan.fits and self.saved_bytes > 0 and self.extra_flops / self.hardware.peak_flops_per_s < saved_s

    @property
    def why(self) -> str:
        """The numbers in words."""
        room, needed = (format_bytes(n) for n in (self.hardware.sram_bytes, self.plan.working_set_bytes))
        if not self.plan.fits:
            return f"weights and the smallest tiles need {needed}; there are {room} of SRAM"
        moved = f"{format_bytes(abs(self.saved_bytes))} {'less' if self.saved_bytes >= 0 else 'more'}"
        again = f"{format_count(self.extra_flops)}FLOP are computed again"
        return f"one kernel would move {moved}; {again}, tiles of {self.plan.pair_tile} in {room} of SRAM"


def candidates(graph: Graph, hardware: Hardware) -> tuple[PairCandidate, ...]:
    """Every two kernels of windows of which the second alone reads what the first makes, in running order."""
    taken = set(all_names(graph))
    found = []
    for second in graph.nodes:
        first = graph.producers.get(second.uses[0].name) if second.uses else None
        if first is None or len(first.results) > 1 or graph.readers[first.output.name] > 1:
            continue
        if {first.steps[0].op, second.steps[0].op} <= WINDOWS:
            steps = (*opened(first, taken), *opened(second, taken))
            node = fused_node(steps, second.results, kernel_name(steps), graph.opsets)
            halves = halves_of(node.steps, node.uses, node.results)
            if halves is not None:
                found.append(PairCandidate(first, second, node, halves, hardware, graph.opset))
    return tuple(found)


@dataclass(frozen=True)
class FuseDepthFirst:
    """The pass: of all pairs that pay, the choice that saves the most bytes; a kernel is in one pair at most."""

    hardware: Hardware

    def __call__(self, graph: Graph) -> Graph:
        chosen = {pair.second: pair for pair in _best(candidates(graph, self.hardware))}
        if not chosen:
            return graph
        gone = {pair.first for pair in chosen.values()}
        taken = {node.op for node in graph.nodes if node.body}
        nodes: list[Node] = []
        for node in (node for node in graph.nodes if node not in gone):
            pair = chosen.get(node)
            nodes.append(replace(pair.node, op=own_name(pair.node.op, len(nodes), taken)) if pair else node)
        return replace(graph, nodes=tuple(nodes))

    def refusals(self, graph: Graph) -> Iterator[Refusal]:
        """The pairs that stay apart, and the numbers that say why."""
        for pair in candidates(graph, self.hardware):
            yield Refusal("recompute", pair.why, f"depth-first with {pair.second.label}", pair.first.label)


def _best(pairs: Sequence[PairCandidate]) -> tuple[PairCandidate, ...]:
    """The pairs that save the most together. Pairs that share a kernel form chains, so the best choice up to a kernel
    is that up to the one before it, or that up to the one before both and the pair of the two."""
    ending = {pair.second: pair for pair in pairs if pair.pays}
    nothing: Choice = (0, ())
    best: dict[Node, Choice] = {}
    for second, pair in ending.items():
        before = ending.get(pair.first)
        saved, chosen = best.get(before.first, nothing) if before else nothing
        joined = saved + pair.saved_bytes, (*chosen, pair)
        best[second] = max(best.get(pair.first, nothing), joined, key=lambda choice: choice[0])
    starts = {pair.first for pair in ending.values()}
    return tuple(pair for node, (_, chosen) in best.items() if node not in starts for pair in chosen)


Choice: TypeAlias = tuple[int, tuple[PairCandidate, ...]]
