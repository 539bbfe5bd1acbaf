"""The closed form of LoopNest over a whole grid of candidate tiles at once: working sets, and bytes moved."""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from labkit.access import Operand
from labkit.candidates import Grid, Table
from labkit.loops import LoopNest


def working_set_bytes(nest: LoopNest, table: Table) -> Grid:
    """SRAM that each candidate needs, with the buffers of ``nest``."""
    return reduce(np.add, [nest.slots(x) * table.largest[x.name] for x in nest.problem.operands])


def dram_bytes(nest: LoopNest, table: Table) -> Grid:
    """Bytes that each candidate moves, read and written, in the order and with the options of ``nest``.

    In the orders that are searched for the policy ``complete``, an output tile comes once (see cuts.py)."""
    output = nest.problem.output
    passes = _passes(output, table, nest.order)
    if nest.c_policy == "spill":
        passes = reduce(np.multiply, [table.trips[loop] for loop in nest.problem.reductions], np.array(1.0))
    total: Grid = output.nbytes * (2 * passes - nest.starts_at_zero)
    if nest.c_policy == "complete":
        total = np.array(float(nest.problem.finished_bytes))
    for operand in nest.problem.loaded:
        loaded = table.loaded[operand.name]
        one_pass = loaded[None]
        if nest.halo == "slide":
            for loop in (loop for loop in loaded if loop is not None):
                one_pass = np.where(_is_moving(loop, operand, table, nest.order), loaded[loop], one_pass)
        total = total + _passes(operand, table, nest.order) * one_pass
    return total


def _passes(operand: Operand, table: Table, order: tuple[str, ...]) -> Grid:
    """How often the whole operand comes: loops that do not index it, outside one that moves it."""
    moved: NDArray[np.bool_] | None = None
    passes: Grid = np.array(1.0)
    for loop in reversed(order):
        if loop in operand.loops:
            moves = table.trips[loop] > 1
            moved = moves if moved is None else moved | moves
        elif moved is not None:
            passes = passes * np.where(moved, table.trips[loop], 1)
    return passes


def _is_moving(loop: str, operand: Operand, table: Table, order: tuple[str, ...]) -> NDArray[np.bool_]:
    """Where a loop is the innermost one that moves an operand's tile."""
    inside = order[order.index(loop) + 1 :]
    moving: NDArray[np.bool_] = table.trips[loop] > 1
    for other in inside:
        if other in operand.loops:
            moving = moving & (table.trips[other] == 1)
    return moving
