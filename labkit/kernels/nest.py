"""Any loop nest of any problem, really run on a Scratchpad: NumPy's result, and every transfer in the ledger.

Results equal the obvious program's up to the rounding of another order of summation: for each output element at most
k · eps · Σ|products|, k being the number of products and eps the machine epsilon of the accumulator (Higham, *Accuracy
and Stability of Numerical Algorithms*, §3.5). Integers are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.access import Axis, Operand
from labkit.errors import LabError
from labkit.loops import LoopNest
from labkit.memory.scratchpad import Scratchpad
from labkit.problems import Problem

Array = NDArray[Any]
Ranges = Mapping[str, range]


def run_nest(
    nest: LoopNest, arrays: Mapping[str, Array], pad: Scratchpad, output: Array | None = None, name: str = "kernel"
) -> Array:
    """Run a nest as one kernel. ``arrays`` are the inputs in DRAM by operand name; the output is new, or added to.

    Raises SramOverflow when the tiles do not fit, LabError for arrays of another shape or type than the problem's.
    """
    problem = nest.problem
    for operand in problem.inputs:
        _check(operand, arrays[operand.name])
    if output is not None:
        _check(problem.output, output)
        if nest.c_policy == "store":
            raise LabError("C policy store starts the output at zero: leave it out, or choose load_store or spill")
    result = np.zeros(problem.output.shape, problem.output.dtype) if output is None else output
    multiply = _Multiply(problem)
    with pad.kernel(name):
        inputs = [_Input(nest, operand, arrays[operand.name], pad) for operand in problem.inputs]
        accumulator = _Accumulator(nest, result, pad)
        for ranges in nest.steps():
            tiles = [tile.get(ranges) for tile in inputs]
            multiply(accumulator.get(ranges), tiles, ranges)
            if nest.c_policy == "spill":
                accumulator.leave()
        for tile in inputs:
            tile.leave()
        accumulator.leave()
    return result


def _check(operand: Operand, array: Array) -> None:
    if (array.shape, array.dtype) != (operand.shape, np.dtype(operand.dtype)):
        raise LabError(f"{operand.name} is {array.dtype} {array.shape}: wanted {operand.dtype} {operand.shape}")


class _Input:
    """The one resident tile of an input: it stays until another is needed."""

    def __init__(self, nest: LoopNest, operand: Operand, array: Array, pad: Scratchpad) -> None:
        self._operand, self._array, self._pad = operand, array, pad
        self._slots = nest.slots(operand)
        self._loops = [loop for loop in nest.order if loop in operand.loops]
        moving = next((loop for loop in reversed(self._loops) if nest.trips[loop] > 1), None)
        self._moving = moving
        self._slide_axis = next((i for i, axis in enumerate(operand.axes) if nest.slides(axis, moving)), None)
        self._key: tuple[range, ...] = ()
        self._positions: list[Array] = []

    def get(self, ranges: Ranges) -> Array:
        key = tuple(ranges[loop] for loop in self._loops)
        if key != self._key:
            positions = [axis.positions(ranges) for axis in self._operand.axes]
            tile = self._array[_index(positions)]
            if self._moves_on(key) and self._slide_axis is not None:
                axis = self._slide_axis
                _, *held = np.intersect1d(self._positions[axis], positions[axis], return_indices=True)
                self._pad.slide(self._operand.name, tile, axis, (held[0], held[1]))
            else:
                self.leave()
                self._pad.load(self._operand.name, tile, slots=self._slots)
            self._key, self._positions = key, positions
        return self._pad[self._operand.name]

    def _moves_on(self, key: tuple[range, ...]) -> bool:
        """Whether the new tile is the next one along the moving loop, all else being equal."""
        if not self._key or self._moving is None:
            return False
        differing = [(loop, old, new) for loop, old, new in zip(self._loops, self._key, key, strict=True) if old != new]
        return [loop for loop, *_ in differing] == [self._moving] and differing[0][1].stop == differing[0][2].start

    def leave(self) -> None:
        if self._key:
            self._pad.free(self._operand.name)
            self._key = ()


class _Accumulator:
    """The one resident tile of the output: written when it leaves, read again when it comes back."""

    def __init__(self, nest: LoopNest, array: Array, pad: Scratchpad) -> None:
        self._operand, self._array, self._pad = nest.problem.output, array, pad
        self._slots, self._starts_at_zero = nest.slots(self._operand), nest.c_policy == "store"
        self._key: tuple[range, ...] = ()
        self._seen: set[tuple[int, ...]] = set()
        self._block: tuple[slice, ...] = ()

    def get(self, ranges: Ranges) -> Array:
        key = tuple(ranges[axis.loops[0]] for axis in self._operand.axes)
        if key != self._key:
            self.leave()
            self._block = tuple(slice(r.start, r.stop) for r in key)
            tile, corner = self._array[self._block], tuple(r.start for r in key)
            if self._starts_at_zero and corner not in self._seen:
                self._pad.alloc(self._operand.name, tile.shape, tile.dtype, slots=self._slots)
            else:
                self._pad.load(self._operand.name, tile, slots=self._slots)
            self._seen.add(corner)
            self._key = key
        return self._pad[self._operand.name]

    def leave(self) -> None:
        if self._key:
            self._pad.store(self._operand.name, self._array[self._block])
            self._pad.free(self._operand.name)
            self._key = ()


class _Multiply:
    """Adds the products of one step to the output tile, on what is on chip and nothing else.

    An axis such as p·stride + r has a base loop p and a tap loop r. The taps are walked one by one; for each, the
    base positions that fall on padding are left out, and what remains is one product of tensors over plain loops.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._taps = sorted({loop for x in problem.inputs for axis in x.axes for loop in axis.loops[1:]})
        specs = ["".join(axis.loops[0] for axis in x.axes if axis.loops[0] not in self._taps) for x in problem.operands]
        self._spec = f"{','.join(specs[:-1])}->{specs[-1]}"

    def __call__(self, out: Array, tiles: list[Array], ranges: Ranges) -> None:
        if self._spec == "mk,kn->mn":  # einsum finds the same product, at ten times the overhead of a small tile
            out += np.matmul(tiles[0].astype(out.dtype, copy=False), tiles[1].astype(out.dtype, copy=False))
            return
        for taps in self._tap_positions(ranges):
            bases = self._valid_bases(taps, ranges)
            if any(len(base) == 0 for base in bases.values()):
                continue
            parts = [
                self._select(x, tile, taps, bases, ranges).astype(out.dtype, copy=False)
                for x, tile in zip(self._problem.inputs, tiles, strict=True)
            ]
            block = tuple(
                slice(b[0] - ranges[loop].start, b[-1] + 1 - ranges[loop].start)
                if (b := bases.get(loop := axis.loops[0])) is not None
                else slice(None)
                for axis in self._problem.output.axes
            )
            out[block] += np.einsum(self._spec, *parts, optimize=True)

    def _tap_positions(self, ranges: Ranges) -> Iterator[dict[str, int]]:
        for taps in product(*(ranges[loop] for loop in self._taps)):
            yield dict(zip(self._taps, taps, strict=True))

    def _valid_bases(self, taps: Mapping[str, int], ranges: Ranges) -> dict[str, range]:
        """For each base loop, its indices for which this tap does not fall on padding: an interval."""
        found = {}
        for x in self._problem.inputs:
            for axis in x.axes:
                if not axis.is_plain:
                    (base, step), *rest = axis.terms
                    shift = axis.offset + sum(c * taps[loop] for loop, c in rest)
                    low, high = -(shift // step), (axis.extent - 1 - shift) // step
                    whole = ranges[base]
                    found[base] = range(max(whole.start, low), max(min(whole.stop, high + 1), max(whole.start, low)))
        return found

    def _select(
        self, x: Operand, tile: Array, taps: Mapping[str, int], bases: Mapping[str, range], ranges: Ranges
    ) -> Array:
        """The elements of a tile that one tap uses, over plain loops."""
        at = 0  # axis of what is left of the tile
        for axis in x.axes:
            if axis.is_plain and axis.loops[0] in taps:
                tile = np.take(tile, taps[axis.loops[0]] - ranges[axis.loops[0]].start, at)
                continue
            if not axis.is_plain:
                tile = np.take(tile, self._where(axis, taps, bases, ranges), at)
            at += 1
        return tile

    @staticmethod
    def _where(axis: Axis, taps: Mapping[str, int], bases: Mapping[str, range], ranges: Ranges) -> Array:
        (base, step), *rest = axis.terms
        shift = axis.offset + sum(c * taps[loop] for loop, c in rest)
        wanted = np.arange(bases[base].start, bases[base].stop) * step + shift
        return np.searchsorted(axis.positions(ranges), wanted)


def _index(positions: list[Array]) -> tuple[Any, ...]:
    """Slices where every axis is an interval (a view, no copy), index arrays where one has gaps."""
    if all(len(p) == 0 or p[-1] - p[0] == len(p) - 1 for p in positions):
        return tuple(slice(int(p[0]), int(p[-1]) + 1) if len(p) else slice(0, 0) for p in positions)
    return np.ix_(*positions)
