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
from typing import NamedTuple

from labkit.access import Operand
from labkit.candidates import window_loops
from labkit.frames import element_bytes
from labkit.graph import Node, Value
from labkit.loops import Buffers, CPolicy, Halo, LoopNest
from labkit.lowering import Kernel, lower
from labkit.memory.ledger import Traffic
from labkit.pair_tiles import Tile, best_pair_tile, least_room
from labkit.pairs import Halves, reads_of
from labkit.problems import Problem
from labkit.search import best_tile


class Move(NamedTuple):
    """What one tensor moves; ``is_input``: its tiles may arrive while the kernel computes, given room for two."""

    value: Value
    traffic: Traffic
    is_input: bool


@dataclass(frozen=True)
class Plan:
    """How a kernel runs. ``nest`` is None for a stream, for a kernel that has all of its tensors on chip at once,
    and for a depth-first pair, which has the ``pair_tile`` instead: rows and columns of its output.

    ``working_set_bytes`` is the SRAM that it takes, ``needed_bytes`` the least with which it moves this little. When
    not ``fits``, the SRAM is too small for any tile; the figures are those of the smallest.
    """

    nest: LoopNest | None
    traffic: Traffic
    working_set_bytes: int
    needed_bytes: int
    fits: bool = True
    pair_tile: Tile | None = None
    extra_flops: int = 0  # what a pair computes more than once

    @property
    def dram_bytes(self) -> int:
        """Bytes read and written, all re-loads included."""
        return self.traffic.nbytes

    @property
    def transactions(self) -> int:
        """Transfers between DRAM and chip: one for each tile that moves."""
        return self.traffic.transfers

    def moves(self, kernel: Kernel) -> Iterator[Move]:
        """What each tensor of the kernel that it is the plan of moves; one in two roles comes twice."""
        if kernel.halves and self.pair_tile:
            yield from (Move(value, read, True) for value, read in reads_of(kernel.halves, self.pair_tile))
            tiles = kernel.halves.pair.tiles(self.pair_tile)
            yield from (Move(value, Traffic(0, _nbytes(value), 0, tiles), False) for value in kernel.outputs)
            return
        if self.nest is None:
            yield from (Move(value, _read(value), True) for value in kernel.inputs)
            yield from (Move(value, _written(value), False) for value in kernel.outputs)
            return
        problem, found = self.nest.problem, self.nest.by_operand
        for operand, value in zip(problem.loaded, (*kernel.factors, *kernel.vectors), strict=True):
            yield Move(value, found[operand.name], True)
        output = found[problem.output.name]
        if problem.tail is None:
            yield Move(kernel.outputs[0], output, False)
            return
        points, tiles = prod(problem.output.shape), prod(self.nest.trips[loop] for loop in problem.output.loops)
        for value in kernel.beside:
            yield Move(value, Traffic(points * kernel.sizes[value.name], 0, tiles, 0), False)
        for value in kernel.outputs:
            yield Move(value, Traffic(0, points * kernel.sizes[value.name], 0, tiles), False)


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
    if kernel.halves:
        return _depth_first(kernel, kernel.halves, sram_bytes, buffers)
    if kernel.problem is None:
        return _stream(kernel, sram_bytes, buffers)
    best = _plan(kernel.problem, sram_bytes, buffers)
    if not kernel.repeats:
        return best
    whole = _whole(kernel, kernel.problem, sram_bytes)
    return min(best, whole, key=lambda one: (not one.fits, one.dram_bytes if one.fits else one.working_set_bytes))


@lru_cache(maxsize=16384)
def _plan(problem: Problem, sram_bytes: int, buffers: Buffers) -> Plan:
    unit = _smallest(problem, buffers)
    if unit.working_set_bytes > sram_bytes:
        return Plan(unit, unit.traffic, unit.working_set_bytes, unit.working_set_bytes, fits=False)
    best = unit if unit.traffic.nbytes == problem.compulsory_bytes else _best(problem, sram_bytes, buffers)
    grown = _grow(best, sram_bytes)
    return Plan(grown, grown.traffic, grown.working_set_bytes, best.working_set_bytes)


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
    for loop in (loop for loop in reversed(nest.order) if nest.trips[loop] > 1):
        moving = [x for x in nest.problem.operands if loop in x.loops]
        still = sum(nest.slots(x) * nest.tile_bytes(x) for x in nest.problem.operands if x not in moving)
        if loop not in windows:
            a_step = sum(nest.slots(x) * nest.tile_bytes(x) for x in moving) // nest.tiles[loop]
            nest = nest.split(loop, min((sram_bytes - still) // a_step, nest.problem.loops[loop]))
            continue
        larger = nest.split(loop, _largest(nest, loop, moving, sram_bytes - still))
        if larger.traffic.nbytes == nest.traffic.nbytes:
            nest = larger
    return nest


def _largest(nest: LoopNest, loop: str, moving: list[Operand], room_bytes: int) -> int:
    """The largest tile of a window's loop for which those operands fit that it moves."""

    def is_too_large(size: int) -> bool:
        larger = nest.split(loop, size)
        return sum(nest.slots(x) * larger.tile_bytes(x) for x in moving) > room_bytes

    sizes = range(nest.tiles[loop] + 1, nest.problem.loops[loop] + 1)
    return nest.tiles[loop] + bisect_left(sizes, True, key=is_too_large)


def _depth_first(kernel: Kernel, halves: Halves, sram_bytes: int, buffers: Buffers) -> Plan:
    """Tiles of the output, each with all that it needs of the middle."""
    slots = 1 if buffers == "single" else 2
    tile = best_pair_tile(halves.pair, sram_bytes, slots)
    held, written = halves.pair.working_set_bytes(tile, slots), halves.pair.tiles(tile) * len(kernel.outputs)
    made = Traffic(0, sum(map(_nbytes, kernel.outputs)), 0, written)
    traffic = sum((read for _, read in reads_of(halves, tile)), made)
    needed = least_room(halves.pair, tile, slots) if held <= sram_bytes else held
    return Plan(None, traffic, held, needed, held <= sram_bytes, tile, halves.pair.extra_flops(tile))


def _stream(kernel: Kernel, sram_bytes: int, buffers: Buffers) -> Plan:
    """Each tensor once, element by element."""
    read, made = (sum(map(_element, values)) for values in (kernel.inputs, kernel.outputs))
    held = read * (buffers != "single") + read + made + made * (buffers == "double_all")
    return Plan(None, _once(kernel), held, held, held <= sram_bytes)


def _whole(kernel: Kernel, problem: Problem, sram_bytes: int) -> Plan:
    """Every tensor that is read on chip at once, each once, and the output beside them."""
    held = sum(map(_nbytes, kernel.inputs)) + prod(problem.output.shape) * problem.held_itemsize(problem.output)
    return Plan(None, _once(kernel), held, held, held <= sram_bytes)


def _once(kernel: Kernel) -> Traffic:
    return sum((*map(_read, kernel.inputs), *map(_written, kernel.outputs)), Traffic())


def _read(value: Value) -> Traffic:
    return Traffic(read_bytes=_nbytes(value), reads=int(_nbytes(value) > 0))


def _written(value: Value) -> Traffic:
    return Traffic(write_bytes=_nbytes(value), writes=int(_nbytes(value) > 0))


def _nbytes(value: Value) -> int:
    return value.type.nbytes if value.type else 0


def _element(value: Value) -> int:
    return _nbytes(value) and element_bytes(value)
