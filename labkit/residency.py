"""Residency: small tensors that stay on chip from the kernel that makes them to the last that reads them.

Such a tensor takes its room, as a whole, beside the tiles of every kernel that runs while it lives; it is never written
and never read back (spec §4.3 counts an intermediate that has to leave the chip). Which ones stay is decided so that
more SRAM never makes more traffic. Each kernel has the room in which it moves no more than it must. Tensors
stand in a fixed order: those that save most for each byte and step that they take come first, small ones before large.
Each needs the room of the kernels it lives through, of all before it in that order that live beside it, and its own:
it stays if there is as much. So the tensors that stay in some SRAM also stay in every larger one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from labkit.graph import Graph
from labkit.planning import plan
from labkit.scheduling import Schedule, ScheduledNode

_UNLIMITED = 2**62


@dataclass(frozen=True)
class Resident:
    """A tensor that may stay on chip from step ``first`` to step ``last`` (positions of kernels), and what for.

    ``needed_bytes`` is the SRAM from which on it stays.
    """

    value: str
    nbytes: int
    first: int
    last: int
    saved_bytes: int
    needed_bytes: int = 0

    @property
    def steps(self) -> range:
        return range(self.first, self.last + 1)


@dataclass(frozen=True, eq=False)
class Residency:
    """A schedule in which some tensors stay on chip, and the one ``before``, in which none does. ``candidates`` are all
    that could stay, in the order of their claims."""

    before: Schedule
    schedule: Schedule
    candidates: tuple[Resident, ...]

    @cached_property
    def kept(self) -> tuple[Resident, ...]:
        """Those that stay."""
        return tuple(x for x in self.candidates if x.needed_bytes <= self.schedule.hardware.sram_bytes)

    @property
    def saved_bytes(self) -> int:
        """Traffic that does not happen."""
        return self.before.dram_bytes - self.schedule.dram_bytes


def reside(found: Schedule, graph: Graph) -> Residency:
    """Keep on chip what fits beside the kernels of a schedule; ``graph`` is what was scheduled."""
    rooms = [plan(node.kernel, _UNLIMITED, found.buffers).needed_bytes for node in found]
    candidates = _with_needs(_candidates(found, graph), rooms)
    kept = [x for x in candidates if x.needed_bytes <= found.hardware.sram_bytes]
    beside: list[dict[str, int]] = [{} for _ in found.nodes]
    for resident in kept:
        for step in resident.steps:
            beside[step][resident.value] = resident.nbytes
    nodes = tuple(_beside(node, held) for node, held in zip(found, beside, strict=True))
    return Residency(found, replace(found, nodes=nodes), candidates)


def _candidates(found: Schedule, graph: Graph) -> list[Resident]:
    """What is made here and read here. An output of the graph is written all the same, so it is none."""
    made = {value.name: (step, value) for step, node in enumerate(found) for value in node.node.results}
    last: dict[str, int] = {}
    for step, node in enumerate(found):
        last |= {value.name: step for value in node.node.uses if value.name in made}
    needs = [plan(node.kernel, _UNLIMITED, found.buffers).moves(node.kernel) for node in found]
    saved: dict[str, int] = {}
    for node, moves in zip(found, needs, strict=True):
        for value, traffic, _ in moves:
            name = node.names[value.name]
            saved[name] = saved.get(name, 0) + traffic.nbytes
    return [
        Resident(name, value.type.nbytes, first, last[name], saved.get(name, 0))
        for name, (first, value) in made.items()
        if name in last and name not in graph.output_names and value.type is not None and value.type.is_static
    ]


def _with_needs(candidates: list[Resident], rooms: list[int]) -> tuple[Resident, ...]:
    """The candidates in order, with the SRAM that each needs; ``rooms`` are those of the kernels."""
    taken = list(rooms)
    placed = []
    for x in sorted(candidates, key=lambda x: (-x.saved_bytes / max(x.nbytes * len(x.steps), 1), x.nbytes, x.first)):
        for step in x.steps:
            taken[step] += x.nbytes
        placed.append(replace(x, needed_bytes=max(taken[step] for step in x.steps)))
    return tuple(placed)


def _beside(node: ScheduledNode, held: Mapping[str, int]) -> ScheduledNode:
    """A kernel beside resident tensors, in the room that they leave."""
    if not held:
        return node
    room = node.hardware.sram_bytes - sum(held.values())
    return replace(node, plan=plan(node.kernel, room, node.buffers), resident=held)
