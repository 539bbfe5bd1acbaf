"""The open part of exercise 06: the smallest SRAM with which a network stays within a budget of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random

import numpy as np

from labkit.costing import cost
from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.ex06_networks import residual
from labkit.course.checks.plain import truth, whole
from labkit.course.checks.question import until_one_suits
from labkit.errors import SramOverflow
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.passes.pipeline import LEVELS, optimize
from labkit.residency import reside
from labkit.scheduling import schedule
from labkit.units import KIB

Choice = tuple[str, int, bool]  # level, SRAM in KiB, whether small tensors may stay on chip


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
    """A budget that is met with some SRAM by fusing and by keeping small tensors on chip, and not by one of these."""
    return until_one_suits(lambda: _drawn(draw), "budget that takes fusing and tensors that stay")


def _drawn(draw: Random) -> Budget | None:
    graph = residual(draw, 1, draw.randrange(6, 11), draw.randrange(12, 17))
    machine = Hardware.preset(draw.choice(["edge-npu", "dsp", "phone-npu"]))
    sizes = tuple(sorted(draw.sample(range(6, 26), 5)))
    curve = [moved(graph, machine, ("extended", size, True)) for size in sizes]
    for place in draw.sample(range(1, len(sizes) - 1), len(sizes) - 2):
        others = [
            moved(graph, machine, choice)
            for choice in (("basic", sizes[place], True), ("extended", sizes[place], False))
        ]
        spare = min(curve[place - 1], *others) - curve[place]
        if spare > 0:
            return Budget(graph, machine, sizes, int(curve[place] + spare // 2), sizes[place])
    return None


def moved(graph: Graph, hardware: Hardware, choice: Choice) -> float:
    """Bytes that the network moves, kernel by kernel at the best tiles; endless when a kernel does not fit."""
    level, sram_kib, resident = choice
    machine = replace(hardware, sram_bytes=sram_kib * KIB)
    try:
        found = schedule(_optimized(graph, level, machine), machine)
    except SramOverflow:
        return float("inf")
    return (reside(found, _optimized(graph, level, machine)).schedule if resident else found).dram_bytes


@lru_cache(maxsize=64)
def _optimized(graph: Graph, level: str, hardware: Hardware) -> Graph:
    return graph if level == "none" else optimize(_basic(graph), level, hardware).graph


@lru_cache(maxsize=8)
def _basic(graph: Graph) -> Graph:
    """What all levels begin with; the machine plays no part."""
    return optimize(graph).graph


def check_budget(function: Function, draw: Random) -> None:
    """6.7: level, SRAM and residency, judged by labkit's own schedule; the smallest SRAM there is."""
    case = budget(draw)
    sizes = " ".join(map(str, case.sizes_kib))
    call = f"meet_budget(graph, {case.hardware.name}, ({sizes}), {case.budget_bytes})"
    choice = _choice(function(case.graph, case.hardware, case.sizes_kib, case.budget_bytes), case, call)
    level, sram_kib, resident = choice
    said = f"{call} gave {level!r}, {sram_kib} KiB, {resident}"
    nbytes = moved(case.graph, case.hardware, choice)
    if nbytes > case.budget_bytes:
        raise CheckFailed(f"{said}: {_over(case, choice, nbytes)}")
    if sram_kib > case.least_kib:
        used = "" if resident else " Small tensors that stay on chip need no DRAM at all: see labkit.reside."
        raise CheckFailed(f"{said}: that is within the budget, but a smaller SRAM will do.{used}")


def _over(case: Budget, choice: Choice, nbytes: float) -> str:
    if nbytes == float("inf"):
        return "a kernel does not fit: what has to be on chip for its smallest tile?"
    return f"{nbytes:,.0f} bytes, more than the budget. {_why_over(case, choice)}"


def _why_over(case: Budget, choice: Choice) -> str:
    level, sram_kib, resident = choice
    if level in ("none", "basic"):
        return "At this level each operator is a kernel of its own; which level makes fewer kernels?"
    if not resident:
        return "Small tensors go to DRAM and come back here; where could they stay?"
    if level != "extended":
        return "Transforms between two orders move bytes as well; are they worth it here?"
    machine = replace(case.hardware, sram_bytes=sram_kib * KIB)
    if cost(_optimized(case.graph, level, machine), machine).dram_bytes <= case.budget_bytes:
        return "labkit.cost counts each tensor once; with this SRAM some come again."
    return "With so little SRAM tensors come again, or cannot stay; what does the next size move?"


def _choice(value: object, case: Budget, call: str) -> Choice:
    if value is None:
        raise CheckFailed(f"{call} gave nothing back: does the function end with return?")
    if type(value) not in (tuple, list) or len(value) != 3:  # type: ignore[arg-type]
        raise CheckFailed(
            f"{call} gave {value!s:.40}; expected level, SRAM in KiB, residency, as in ('basic', 8, False)."
        )
    assert isinstance(value, Sequence)
    level, sram_kib, resident = value
    if type(level) not in (str, np.str_) or level not in LEVELS:
        raise CheckFailed(f"{call} gave the level {level!s:.20}; there are {', '.join(LEVELS)}.")
    size = whole(sram_kib, call)
    if size not in case.sizes_kib:
        raise CheckFailed(f"{call} gave {size} KiB, which is none of the sizes; they are in KiB.")
    return str(level), size, truth(resident, call)
