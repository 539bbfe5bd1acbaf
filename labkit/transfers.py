"""What a loop nest asks of a DMA engine, in closed form: contiguous runs, phases, and the time they take."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

import numpy as np

from labkit.access import Axis, Operand, intervals, tile_ranges
from labkit.hardware import Hardware
from labkit.loops import LoopNest
from labkit.memory.dma import DmaCost, KernelTime
from labkit.memory.ledger import Phase, Traffic


def runs_by_operand(nest: LoopNest) -> dict[str, int]:
    """Contiguous pieces of memory that the transfers of each operand consist of, row by row (see Operand.runs).

    >>> from labkit.problems import matmul
    >>> runs_by_operand(LoopNest.of(matmul(8, 8, 8)).split("m", 4).split("n", 4).split("k", 8))
    {'A': 2, 'B': 32, 'C': 16}
    """
    found, tail = {}, nest.problem.tail
    for operand in nest.problem.operands:
        passes = nest.passes(operand)
        if operand is nest.problem.output:
            passes = len(tail.reads) + len(tail.writes) if tail else 2 * passes - nest.starts_at_zero
        found[operand.name] = passes * _runs_of_a_pass(nest, operand)
    return found


def by_phase(nest: LoopNest) -> dict[Phase, Traffic]:
    """The traffic of a nest by phase (see Access); phases without traffic are left out."""
    output = nest.problem.output
    once, again, partial = Traffic(), Traffic(), Traffic()
    for operand in nest.problem.loaded:
        total, passes = nest.by_operand[operand.name], nest.passes(operand)
        first = Traffic(total.read_bytes // passes, 0, total.reads // passes, 0)
        once, again = once + first, again + (total - first)
    if nest.problem.tail:
        once += nest.by_operand[output.name]
    else:
        tiles, passes = prod(nest.trips[loop] for loop in output.loops), nest.passes(output)
        first_reads, more = int(not nest.starts_at_zero), passes - 1
        once += Traffic(first_reads * output.nbytes, output.nbytes, first_reads * tiles, tiles)
        partial += Traffic(more * output.nbytes, more * output.nbytes, more * tiles, more * tiles)
    phases: dict[Phase, Traffic] = {"once": once, "again": again, "partial": partial}
    return {phase: traffic for phase, traffic in phases.items() if traffic.transfers}


def nest_time(nest: LoopNest, hardware: Hardware, dma: DmaCost | None = None) -> KernelTime:
    """The time of a nest as one kernel; its own buffers decide what overlaps. Without ``dma`` only bandwidth counts.

    >>> from labkit.problems import matmul
    >>> nest = LoopNest.of(matmul(1024, 1024, 1024)).split("m", 128).split("n", 128).split("k", 128)
    >>> round(nest_time(nest, Hardware.preset("edge-npu")).seconds, 6)
    0.021121
    """
    dma = dma or DmaCost.of(hardware)
    runs = runs_by_operand(nest)
    seconds = {name: dma.seconds(runs[name], traffic.nbytes) for name, traffic in nest.by_operand.items()}
    output_s = seconds.pop(nest.problem.output.name)
    compute_s = nest.problem.flops / hardware.peak_flops_per_s
    return KernelTime(sum(seconds.values()), output_s, compute_s, hardware.launch_s, nest.buffers)


def _runs_of_a_pass(nest: LoopNest, operand: Operand) -> int:
    """Runs of all tiles of an operand, each taken once.

    Tiles along one axis are combined with all tiles along the others, so sums are enough: from the innermost axis
    outwards, the number of combinations that are whole so far, and the runs of those that are not.
    """
    moving = nest.innermost_moving(operand)
    whole, runs = 1, 0
    for axis in reversed(operand.axes):
        rows = _tiles(nest, axis, nest.slides(axis, moving))
        broken = sum(pieces for count, pieces in rows if count < axis.extent)
        runs = whole * broken + runs * sum(count for count, _ in rows)
        whole *= sum(count == axis.extent for count, _ in rows)
    return whole + runs


def _tiles(nest: LoopNest, axis: Axis, sliding: bool) -> list[tuple[int, int]]:
    """For each tile along an axis: the positions that it loads, and the intervals these form."""
    cut = [tile_ranges(nest.problem.loops[loop], nest.tiles[loop]) for loop in axis.loops]
    if axis.is_plain:
        return [(len(tile), 1) for tile in cut[0]]
    held = [axis.positions(dict(zip(axis.loops, ranges, strict=True))) for ranges in product(*cut)]
    loaded = [held[0], *(np.setdiff1d(new, old) for old, new in pairwise(held))] if sliding else held
    return [(len(positions), intervals(positions)) for positions in loaded]
