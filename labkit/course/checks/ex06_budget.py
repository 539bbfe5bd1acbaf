"""The open part of exercise 06: the smallest SRAM with which a network stays within a budget of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from random import Random

import numpy as np

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.ex06_networks import residual
from labkit.course.checks.plain import truth, whole
from labkit.course.checks.question import until_one_suits
from labkit.errors import SramOverflow
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.passes.pipeline import optimize
from labkit.residency import reside
from labkit.scheduling import schedule
from labkit.units import KIB
from labkit.zoo import resnet50

Choice = tuple[str, int, bool]  # level, SRAM in KiB, whether small tensors may stay on chip
_LEVELS = ("none", "basic", "extended", "layout")  # those that compute nothing twice


@dataclass(frozen=True)
class Budget:
    """A network, a machine, the SRAM sizes that can be bought, and the bytes that it may move. ``least_kib`` is the
    smallest size that will do."""

    graph: Graph
    hardware: Hardware
    sizes_kib: tuple[int, ...]
    budget_bytes: int
    least_kib: int


def budget(draw: Random) -> Budget:
    """A budget that is met with some SRAM by fusing and by keeping small tensors on chip, and not by one of these.

    The network has one block: enough to try things on.
    """
    return until_one_suits(lambda: _of_one_block(draw), "budget that takes fusing and tensors that stay")


def resnet_budget(draw: Random) -> Budget:
    """The same for ResNet-50 on a machine that may have from half to twice its SRAM."""
    return until_one_suits(lambda: _of_resnet(draw), "budget of ResNet-50 that takes fusing and tensors that stay")


def _of_one_block(draw: Random) -> Budget | None:
    graph = residual(draw, 1, draw.randrange(6, 11), draw.randrange(12, 17))
    return _met(draw, graph, _machine(draw), draw.sample(range(6, 26), 5))


def _of_resnet(draw: Random) -> Budget | None:
    machine = _machine(draw)
    own = machine.sram_bytes // KIB
    return _met(draw, _resnet(), machine, draw.sample(range(own // 2, 2 * own + 1, own // 16), 4))


def _machine(draw: Random) -> Hardware:
    return Hardware.preset(draw.choice(["edge-npu", "dsp", "phone-npu"]))


@cache
def _resnet() -> Graph:
    """Drawing 25 million weights takes a second, so it is done once in a process."""
    return resnet50()


def _met(draw: Random, graph: Graph, machine: Hardware, sizes_kib: Sequence[int]) -> Budget | None:
    """A budget for which one of the sizes, neither the smallest nor the largest, is the least that will do."""
    sizes = tuple(sorted(sizes_kib))
    for place in draw.sample(range(1, len(sizes) - 1), len(sizes) - 2):
        size, smaller = sizes[place], sizes[:place]
        least = moved(graph, machine, ("extended", size, True))
        worse: list[Choice] = [("basic", size, True), ("extended", size, False)]
        worse += [("extended", other, True) for other in smaller]
        spare = min(moved(graph, machine, choice) for choice in worse) - least
        if spare > 0:
            return Budget(graph, machine, sizes, int(least + spare // 2), size)
    return None


@lru_cache(maxsize=256)
def moved(graph: Graph, hardware: Hardware, choice: Choice) -> float:
    """Bytes that the network moves, kernel by kernel at the best tiles; endless when a kernel does not fit."""
    level, sram_kib, resident = choice
    machine = replace(hardware, sram_bytes=sram_kib * KIB)
    network = _optimized(graph, level, machine)
    try:
        found = schedule(network, machine)
    except SramOverflow:
        return float("inf")
    return (reside(found, network).schedule if resident else found).dram_bytes


@lru_cache(maxsize=4)  # a level may have weights of its own, which are large
def _optimized(graph: Graph, level: str, hardware: Hardware) -> Graph:
    return graph if level == "none" else optimize(_basic(graph), level, hardware).graph


@lru_cache(maxsize=8)
def _basic(graph: Graph) -> Graph:
    """What all levels begin with; the machine plays no part."""
    return optimize(graph).graph


def check_budget(function: Function, draw: Random) -> None:
    """6.7: level, SRAM and residency for ResNet-50, judged by labkit's own schedule; the smallest SRAM there is."""
    case = resnet_budget(draw)
    sizes = " ".join(map(str, case.sizes_kib))
    call = f"meet_budget(resnet50(), {case.hardware.name}, ({sizes}), {case.budget_bytes})"
    choice = _choice(function(case.graph, case.hardware, case.sizes_kib, case.budget_bytes), case, call)
    level, sram_kib, resident = choice
    said = f"{call} gave {level!r}, {sram_kib} KiB, {resident}"
    nbytes = moved(case.graph, case.hardware, choice)
    if nbytes > case.budget_bytes:
        raise CheckFailed(f"{said}: {_over(choice, nbytes)}")
    if sram_kib > case.least_kib:
        used = "" if resident else " Small tensors that stay on chip need no DRAM at all: see labkit.reside."
        raise CheckFailed(f"{said}: that is within the budget, but a smaller SRAM will do.{used}")


def _over(choice: Choice, nbytes: float) -> str:
    if nbytes == float("inf"):
        return "a kernel does not fit: what has to be on chip for its smallest tile?"
    return f"{nbytes:,.0f} bytes, more than the budget. {_why_over(choice)}"


def _why_over(choice: Choice) -> str:
    level, _, resident = choice
    if level in ("none", "basic"):
        return "At this level each operator is a kernel of its own; which level makes fewer kernels?"
    if not resident:
        return "Small tensors go to DRAM and come back here; where could they stay?"
    if level != "extended":
        return "Transforms between two orders move bytes as well; are they worth it here?"
    return (
        "With so little SRAM tensors come again, or cannot stay; what does the next size move? "
        "(labkit.cost counts each tensor once, whatever the SRAM.)"
    )


def _choice(value: object, case: Budget, call: str) -> Choice:
    if value is None:
        raise CheckFailed(f"{call} gave nothing back: does the function end with return?")
    if type(value) not in (tuple, list) or len(value) != 3:  # type: ignore[arg-type]
        raise CheckFailed(
            f"{call} gave {value!s:.40}; expected level, SRAM in KiB, residency, as in ('basic', 8, False)."
        )
    assert isinstance(value, Sequence)
    level, sram_kib, resident = value
    if type(level) not in (str, np.str_) or level not in _LEVELS:
        why = ", which computes some rows twice" if str(level) == "all" else ""
        raise CheckFailed(f"{call} gave the level {level!s:.20}{why}; there are {', '.join(_LEVELS)}.")
    size = whole(sram_kib, call)
    if size not in case.sizes_kib:
        raise CheckFailed(f"{call} gave {size} KiB, which is none of the sizes; they are in KiB.")
    return str(level), size, truth(resident, call)
