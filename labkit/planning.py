"""The plan of a kernel: the tile and loop order that move the fewest bytes in the SRAM there is (spec §3, §4.5).

Plans are remembered by problem, which is shapes and no names: layers that are alike, and the same layer for the same
machine, are planned once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import inf, prod

from labkit.candidates import window_loops
from labkit.frames import element_bytes
from labkit.graph import Node, Value
from labkit.loops import Buffers, CPolicy, Halo, LoopNest
from labkit.lowering import Kernel, lower
from labkit.memory.ledger import Traffic
from labkit.problems import Problem
from labkit.search import best_tile


@dataclass(frozen=True)
class Plan:
    """How a kernel runs. ``nest`` is None for a stream and for a kernel that has all of its tensors on chip at once.

    ``inputs`` is the traffic of what may arrive while the kernel computes, ``output`` that of the output's tiles and of
    what comes beside them. ``working_set_bytes`` is the SRAM that it takes, ``needed_bytes`` the least with which it moves this little. When
    not ``fits``, the SRAM is too small for any tile; nest and figures are those of the smallest.
    """

    nest: LoopNest | None
    inputs: Traffic
    output: Traffic
    working_set_bytes: int
    needed_bytes: int
    fits: bool = True

    @property
    def traffic(self) -> Traffic:
        """Bytes and transfers in all."""
        return self.inputs + self.output

    @property
    def dram_bytes(self) -> int:
        """Bytes read and written, all re-loads included."""
        return self.traffic.nbytes

    @property
    def transactions(self) -> int:
        """Transfers between DRAM and chip: one for each tile that moves."""
        return self.traffic.transfers

    def moved(self, kernel: Kernel) -> Iterator[tuple[str, Traffic]]:
        """The traffic of each tensor of the kernel that it is the plan of; one in two roles comes twice."""
        if self.nest is None:
            yield from ((value.name, Traffic(size, 0, 1, 0)) for value in kernel.inputs if (size := _nbytes(value)))
            yield from ((value.name, Traffic(0, size, 0, 1)) for value in kernel.outputs if (size := _nbytes(value)))
            return
        problem, found = self.nest.problem, self.nest.by_operand
        for operand, value in zip(problem.loaded, (*kernel.factors, *kernel.vectors), strict=True):
            yield value.name, found[operand.name]
        if problem.tail is None:
            yield kernel.outputs[0].name, found[problem.output.name]
            return
        points = prod(problem.output.shape)
        tiles = found[problem.output.name].writes // len(kernel.outputs)
        for value in kernel.beside:
            yield value.name, Traffic(points * kernel.sizes[value.name], 0, tiles, 0)
        for value in kernel.outputs:
            yield value.name, Traffic(0, points * kernel.sizes[value.name], 0, tiles)


def plan_kernel(
    nodes: tuple[Node, ...],
    inputs: tuple[Value, ...],
    outputs: tuple[Value, ...],
    sram_bytes: int,
    buffers: Buffers = "single",
    opset: int = 17,
) -> Plan:
    """The plan of these operators as one kernel; look at ``fits`` before you use it.

    ``inputs`` are the distinct values that they read from outside, weights too, ``outputs`` those that leave. Raises
    LabError for operators that are no kernel (see ``lower``).
    """
    return plan(lower(nodes, inputs, outputs, opset), sram_bytes, buffers)


def plan(kernel: Kernel, sram_bytes: int, buffers: Buffers = "single") -> Plan:
    """The plan that moves the fewest bytes; of two that move as many, the one with the smaller working set."""
    if kernel.problem is None:
        return _stream(kernel, sram_bytes, buffers)
    best = _plan(kernel.problem, sram_bytes, buffers)
    if kernel.repeats:
        whole = _whole(kernel, kernel.problem)
        if whole.working_set_bytes <= sram_bytes and (not best.fits or whole.dram_bytes < best.dram_bytes):
            return whole
    return best


@lru_cache(maxsize=16384)
def _plan(problem: Problem, sram_bytes: int, buffers: Buffers) -> Plan:
    unit = _smallest(problem, buffers)
    if unit.working_set_bytes > sram_bytes:
        return Plan(unit, *_in_and_out(unit), unit.working_set_bytes, unit.working_set_bytes, fits=False)
    best = unit if unit.traffic.nbytes == problem.compulsory_bytes else _best(problem, sram_bytes, buffers)
    grown = _grow(best, sram_bytes)
    return Plan(grown, *_in_and_out(grown), grown.working_set_bytes, best.working_set_bytes)


def _in_and_out(nest: LoopNest) -> tuple[Traffic, Traffic]:
    output = nest.by_operand[nest.problem.output.name]
    return nest.traffic - output, output


def _smallest(problem: Problem, buffers: Buffers) -> LoopNest:
    order = (*(x for x in problem.loops if x not in problem.reductions), *problem.reductions)
    return LoopNest(problem, (1,) * len(order), order, _policy(problem), buffers, _HALO)


def _policy(problem: Problem) -> CPolicy:
    return "complete" if problem.tail else "store"


_HALO: Halo = "slide"  # windows that move on keep their overlap, as the line buffers of a machine do


def _best(problem: Problem, sram_bytes: int, buffers: Buffers) -> LoopNest:
    """The best nest. What is best in some SRAM is best in every smaller one that it fits into, and what moves no more
    than it must is best in every larger one: such sizes are not searched again."""
    known = _known(problem, buffers)
    for most, nest in known:
        if nest.working_set_bytes <= sram_bytes <= most:
            return nest
    nest = best_tile(problem, sram_bytes, c_policy=_policy(problem), buffers=buffers, halo=_HALO).nest
    known.append((inf if nest.traffic.nbytes == problem.compulsory_bytes else sram_bytes, nest))
    return nest


@lru_cache(maxsize=4096)
def _known(problem: Problem, buffers: Buffers) -> list[tuple[float, LoopNest]]:
    """The nests that were searched for a problem, each with the largest SRAM for which it is known to be the best."""
    return []


def _grow(nest: LoopNest, sram_bytes: int) -> LoopNest:
    """The same bytes in fewer transfers: loops cut less finely, the innermost first, while there is room.

    A larger tile of a plain loop never moves more bytes (see search.py); that of a window may, and then it is left.
    """
    windows = window_loops(nest.problem)
    for loop in reversed(nest.order):
        if nest.trips[loop] > 1:
            larger = nest.split(loop, _largest(nest, loop, sram_bytes))
            if loop not in windows or larger.traffic.nbytes == nest.traffic.nbytes:
                nest = larger
    return nest


def _largest(nest: LoopNest, loop: str, sram_bytes: int) -> int:
    """The largest tile of a loop that fits beside the tiles of the others."""
    sizes = range(nest.tiles[loop] + 1, nest.problem.loops[loop] + 1)
    too_large = bisect_left(sizes, True, key=lambda size: nest.split(loop, size).working_set_bytes > sram_bytes)
    return nest.tiles[loop] + too_large


def _stream(kernel: Kernel, sram_bytes: int, buffers: Buffers) -> Plan:
    """Each tensor once, element by element."""
    read, made = (sum(map(_element, values)) for values in (kernel.inputs, kernel.outputs))
    held = read * (buffers != "single") + read + made + made * (buffers == "double_all")
    return Plan(None, *_once(kernel), held, held, held <= sram_bytes)


def _whole(kernel: Kernel, problem: Problem) -> Plan:
    """Every tensor that is read on chip at once, each once, and the output beside them."""
    held = sum(map(_nbytes, kernel.inputs)) + prod(problem.output.shape) * problem.held_itemsize(problem.output)
    return Plan(None, *_once(kernel), held, held)


def _once(kernel: Kernel) -> tuple[Traffic, Traffic]:
    read, written = (
        [size for value in values if (size := _nbytes(value))] for values in (kernel.inputs, kernel.outputs)
    )
    return Traffic(sum(read), 0, len(read), 0), Traffic(0, sum(written), 0, len(written))


def _nbytes(value: Value) -> int:
    return value.type.nbytes if value.type else 0


def _element(value: Value) -> int:
    return _nbytes(value) and element_bytes(value)
