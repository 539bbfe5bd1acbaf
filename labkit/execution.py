"""run_scheduled(): a scheduled kernel really run on a Scratchpad, tile by tile; every byte that moves is counted.

What a plan says of its traffic is a closed form. Here the same kernel computes on nothing but the tiles that are on
chip, so that results can be held against ``run`` and counted bytes against the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labkit.access import Operand
from labkit.errors import LabError
from labkit.frames import dims
from labkit.graph import Array, Node, Value, itemsize
from labkit.interpreter import evaluate
from labkit.kernels.multiply import Multiply
from labkit.kernels.nest import run_nest
from labkit.kernels.resident import InputTile
from labkit.lifetimes import SUM, Step, beside_factors
from labkit.loops import LoopNest
from labkit.memory.scratchpad import Scratchpad
from labkit.pair_execution import run_pair
from labkit.problems import Problem
from labkit.pseudocode import renamed
from labkit.scheduling import ScheduledNode
from labkit.sums import TABLE, elements
from labkit.tiles import Ranges, Tiles

Opsets = Mapping[str, int]


def run_scheduled(
    scheduled: ScheduledNode, arrays: Mapping[str, Array], pad: Scratchpad, opsets: Opsets
) -> dict[str, Array]:
    """Run one kernel by its plan on the arrays that it reads: the arrays that it makes, by name.

    Raises SramOverflow when ``pad`` is smaller than the plan's working set, LabError for an element type that NumPy
    does not know.
    """
    kernel, nest = scheduled.kernel, scheduled.plan.nest
    values: dict[str, Any] = {inner: arrays[outer] for inner, outer in scheduled.names.items() if outer in arrays}
    for move in (move for move in kernel.arranged if move.uses[0].name in values):
        values[move.output.name] = evaluate(move, values, opsets)[0]
    for value in (*kernel.inputs, *kernel.outputs):
        if value.type is None or np.dtype(value.type.dtype).itemsize != itemsize(value.type.dtype):
            raise LabError(f"{scheduled.node.label}: {value} cannot be computed in tiles")
    if kernel.halves:
        made = run_pair(scheduled, values, pad, opsets)
    elif nest is None:
        made = _run_once(scheduled, values, pad, opsets)
    elif kernel.steps:
        made = _TiledRun(scheduled, nest, pad, opsets).run(values)
    else:
        made = {kernel.outputs[0].name: _run_products(scheduled, nest, values, pad)}
    for move in (move for move in kernel.arranged if move.uses[0].name in made):
        made[move.output.name] = evaluate(move, made, opsets)[0]
    return {outer: made[inner] for inner, outer in scheduled.names.items() if inner in made}


def _run_once(scheduled: ScheduledNode, values: dict[str, Any], pad: Scratchpad, opsets: Opsets) -> dict[str, Array]:
    """Each tensor once: streamed, or all of them on chip together."""
    kernel, names = scheduled.kernel, scheduled.names
    with pad.kernel(scheduled.name):
        for value in kernel.inputs:
            if kernel.problem is None:
                values[value.name] = pad.stream(names[value.name], values[value.name])
            else:
                values[value.name] = pad.load(names[value.name], values[value.name])
        for node in kernel.nodes:
            results = zip(node.outputs, evaluate(node, values, opsets), strict=False)
            values |= {value.name: result for value, result in results if value is not None}
        made = {value.name: np.empty_like(values[value.name], order="C") for value in kernel.outputs}
        for name, array in made.items():
            if kernel.problem is None:
                pad.stream_out(names[name], values[name], array)
            else:
                pad.alloc(names[name], array.shape, array.dtype)[...] = values[name]
                pad.store(names[name], array)
                pad.free(names[name])
        for value in kernel.inputs if kernel.problem else ():
            pad.free(names[value.name])
    return made


def _run_products(scheduled: ScheduledNode, nest: LoopNest, values: dict[str, Any], pad: Scratchpad) -> Array:
    """A product or convolution whose sums are stored as they are."""
    kernel = scheduled.kernel
    called = nest if kernel.repeats else renamed(nest, kernel, scheduled.names)
    pairs = zip(called.problem.inputs, kernel.factors, strict=True)
    arrays = {operand.name: _shaped(values[value.name], operand) for operand, value in pairs}
    return run_nest(called, arrays, pad, name=scheduled.name).reshape(dims(kernel.outputs[0]))


def _shaped(array: Array, operand: Operand) -> Array:
    return np.ascontiguousarray(array).reshape(operand.shape)


class _TiledRun:
    """One run of a kernel whose operators work on finished tiles."""

    def __init__(self, scheduled: ScheduledNode, nest: LoopNest, pad: Scratchpad, opsets: Opsets) -> None:
        assert scheduled.kernel.frame is not None
        self._names, self._kernel, self._name = scheduled.names, scheduled.kernel, scheduled.name
        self._nest, self._pad, self._opsets = nest, pad, opsets
        frame = scheduled.kernel.frame
        self._tiles = {name: Tiles(frame, place) for name, place in self._kernel.places.items()}
        self._dram: dict[str, Array] = {}

    def run(self, values: Mapping[str, Any]) -> dict[str, Array]:
        kernel, problem = self._kernel, self._nest.problem
        for value in (*kernel.beside, *kernel.vectors):
            self._dram[value.name] = self._tiles[value.name].cut(values[value.name])
        for value in kernel.outputs:
            tiles = self._tiles[value.name]
            self._dram[value.name] = np.empty(tiles.shape(_whole(problem)), value.dtype)
        head = TABLE.get(kernel.nodes[0].op)
        combine = Multiply(problem, head.combine) if head and kernel.factors else None
        with self._pad.kernel(self._name):
            factors = [self._input(x, v, _shaped(values[v.name], x)) for x, v in self._pairs(problem.inputs)]
            vectors = [self._input(x, v, self._dram[v.name]) for x, v in self._pairs(problem.loaded)[len(factors) :]]
            block: tuple[range, ...] | None = None
            for ranges in self._nest.steps():
                parts = [tile.get(ranges) for tile in factors]
                found = [tile.get(ranges) for tile in vectors]
                if combine and head:
                    if block != (block := tuple(ranges[axis.loops[0]] for axis in problem.output.axes)):
                        self._pad.alloc(SUM, tuple(map(len, block)), problem.output.dtype)[...] = head.empty(
                            np.dtype(problem.output.dtype)
                        )
                    combine(self._pad[SUM], [head.prepare(part, kernel.nodes[0]) for part in parts], ranges)
                if all(ranges[loop].stop == problem.loops[loop] for loop in problem.reductions):
                    self._finish(ranges, dict(zip([v.name for v in kernel.vectors], found, strict=True)))
            for tile in (*factors, *vectors):
                tile.leave()
        return {v.name: self._tiles[v.name].restore(self._dram[v.name]).reshape(dims(v)) for v in kernel.outputs}

    def _pairs(self, operands: tuple[Operand, ...]) -> list[tuple[Operand, Value]]:
        return list(zip(operands, (*self._kernel.factors, *self._kernel.vectors), strict=False))

    def _input(self, operand: Operand, value: Value, array: Array) -> InputTile:
        return InputTile(self._nest, operand, array, self._pad, self._names[value.name])

    def _finish(self, ranges: Ranges, vectors: Mapping[str, Array]) -> None:
        """All operators on one tile, on chip but for what they read and what leaves."""
        shown = {name: self._tiles[name].tensor(tile, ranges) for name, tile in vectors.items()}
        leave = {value.name for value in self._kernel.outputs}
        for step in self._kernel.steps:
            for name in step.arriving:
                block = self._tiles[name].block(ranges)
                self._pad.load(f"{name} tile", self._dram[name][block], tensor=self._names[name])
            self._replace(step, self._computed(step, ranges, shown), ranges)
            for name in (name for name in step.made if name in leave):
                block = self._tiles[name].block(ranges)
                self._pad.store(f"{name} tile", self._dram[name][block], tensor=self._names[name])
            for name in step.done:
                self._pad.free(f"{name} tile")

    def _computed(self, step: Step, ranges: Ranges, vectors: Mapping[str, Array]) -> dict[str, Array]:
        """The tiles that an operator makes."""
        after_sum = SUM in step.leaving
        read = [v.name for v in beside_factors(step.node, len(self._kernel.factors) if after_sum else 0)]
        tiles = dict(vectors)
        for name in (name for name in read if name not in vectors):
            tiles[name] = self._tiles[name].tensor(self._pad[f"{name} tile"], ranges)
        if after_sum:
            return {step.made[0]: self._end_sum(step.node, ranges, [tiles[name] for name in read])}
        results = zip(step.node.outputs, evaluate(step.node, tiles, self._opsets), strict=False)
        return {value.name: result for value, result in results if value is not None}

    def _end_sum(self, head: Node, ranges: Ranges, others: list[Array]) -> Array:
        """The finished tile of sums as the first operator's output."""
        arithmetic, tiles = TABLE[head.op], self._tiles[head.output.name]
        y = arithmetic.finish(tiles.tensor(self._pad[SUM], ranges), head)
        if arithmetic.is_mean:
            y = y / elements(head, self._nest.problem, ranges)
        if head.op == "Gemm":
            y = y * head.attrs.get("alpha", 1.0)
            others = [other * head.attrs.get("beta", 1.0) for other in others]
        if head.op == "Conv":
            others = [other.reshape(-1, *(1 for _ in y.shape[2:])) for other in others]
        if head.op in ("Conv", "Gemm"):
            y = sum(others, y)
        return y.astype(head.output.dtype, copy=False)

    def _replace(self, step: Step, made: Mapping[str, Array], ranges: Ranges) -> None:
        """Room for what an operator made; one that works in place takes that of the largest tile that leaves."""
        leaving = sorted(step.leaving, key=lambda name: self._kernel.sizes[name], reverse=True)
        kept = [array.copy() for array in made.values()]  # freeing a tile overwrites it
        for name in leaving[: int(step.in_place)]:
            self._free(name)
        for name, array in zip(made, kept, strict=True):
            tiles = self._tiles[name]
            self._pad.alloc(f"{name} tile", tiles.shape(ranges), array.dtype)[...] = tiles.tile(array, ranges)
        for name in leaving[int(step.in_place) :]:
            self._free(name)

    def _free(self, name: str) -> None:
        self._pad.free(name if name == SUM else f"{name} tile")


def _whole(problem: Problem) -> Ranges:
    return {loop: range(extent) for loop, extent in problem.loops.items()}
