"""The one resident tile of an operand, on a Scratchpad: when it comes, slides on, leaves, and comes again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.access import Operand
from labkit.loops import LoopNest
from labkit.memory.ledger import Phase
from labkit.memory.scratchpad import Scratchpad

Array = NDArray[Any]
Ranges = Mapping[str, range]


class InputTile:
    """The resident tile of an input: it stays until another is needed. ``tensor`` is its name in the ledger when it is
    not the operand's."""

    def __init__(self, nest: LoopNest, operand: Operand, array: Array, pad: Scratchpad, tensor: str = "") -> None:
        self._operand, self._array, self._pad, self._tensor = operand, array, pad, tensor or operand.name
        self._slots = nest.slots(operand)
        self._loops = [loop for loop in nest.order if loop in operand.loops]
        self._moving = nest.innermost_moving(operand)
        self._slide_axis = next((i for i, axis in enumerate(operand.axes) if nest.slides(axis, self._moving)), None)
        self._key: tuple[range, ...] | None = None  # an operand without axes has one tile, whose key is empty
        self._positions: list[Array] = []
        self._tiles: dict[tuple[range, ...], tuple[list[Array], tuple[Any, ...], int]] = {}

    def get(self, ranges: Ranges) -> Array:
        key = tuple(ranges[loop] for loop in self._loops)
        if key != self._key:
            phase: Phase = "again" if key in self._tiles else "once"
            if key not in self._tiles:  # a tile comes again and again: where it lies is worked out once
                positions = [axis.positions(ranges) for axis in self._operand.axes]
                self._tiles[key] = positions, tile_index(positions), self._operand.runs(positions)
            positions, index, runs = self._tiles[key]
            tile = self._array[index]
            if self._slide_axis is not None and self._moves_on(key):
                self._slide(tile, positions, self._slide_axis, phase)
            else:
                self.leave()
                name = self._operand.name
                self._pad.load(name, tile, tensor=self._tensor, slots=self._slots, runs=runs, phase=phase)
            self._key, self._positions = key, positions
        return self._pad[self._operand.name]

    def _slide(self, tile: Array, positions: list[Array], axis: int, phase: Phase) -> None:
        _, *held = np.intersect1d(self._positions[axis], positions[axis], return_indices=True)
        new = [*positions]
        new[axis] = np.setdiff1d(positions[axis], self._positions[axis])
        self._pad.slide(self._operand.name, tile, axis, (held[0], held[1]), runs=self._operand.runs(new), phase=phase)

    def _moves_on(self, key: tuple[range, ...]) -> bool:
        """Whether the new tile is the next one along the moving loop, all else being equal."""
        if self._key is None or self._moving is None:
            return False
        differing = [(loop, old, new) for loop, old, new in zip(self._loops, self._key, key, strict=True) if old != new]
        return [loop for loop, *_ in differing] == [self._moving] and differing[0][1].stop == differing[0][2].start

    def leave(self) -> None:
        if self._key is not None:
            self._pad.free(self._operand.name)
            self._key = None


class OutputTile:
    """The resident tile of the output: written when it leaves, read again when it comes back unfinished.

    It is finished when every reduction loop has come to its end. ``stored_as`` is the tensor that it is written to.
    """

    def __init__(self, nest: LoopNest, array: Array, pad: Scratchpad, stored_as: str) -> None:
        self._operand, self._array, self._pad, self._stored_as = nest.problem.output, array, pad, stored_as
        self._slots, self._starts_at_zero = nest.slots(self._operand), nest.starts_at_zero
        self._ends = {loop: nest.problem.loops[loop] for loop in nest.problem.reductions}
        self._seen: set[tuple[int, ...]] = set()
        self._finished = self._is_here = False
        self.block: tuple[slice, ...] = ()

    def get(self, ranges: Ranges) -> Array:
        block = tuple(slice(r.start, r.stop) for r in (ranges[axis.loops[0]] for axis in self._operand.axes))
        if block != self.block or not self._is_here:
            self.leave()
            self._arrive(block)
        self._finished = all(ranges[loop].stop == end for loop, end in self._ends.items())
        return self._pad[self._operand.name]

    def _arrive(self, block: tuple[slice, ...]) -> None:
        tile, corner = self._array[block], tuple(side.start for side in block)
        if corner in self._seen:
            self._pad.load(self._operand.name, tile, slots=self._slots, phase="partial")
        elif self._starts_at_zero:
            self._pad.alloc(self._operand.name, tile.shape, tile.dtype, slots=self._slots)
        else:
            self._pad.load(self._operand.name, tile, slots=self._slots)
        self._seen.add(corner)
        self.block, self._is_here = block, True

    @property
    def is_finished(self) -> bool:
        """Whether all products of the resident tile have been added up."""
        return self._is_here and self._finished

    def leave(self) -> None:
        if self._is_here:
            phase: Phase = "once" if self._finished else "partial"
            place: Any = (*self.block, ...)  # a view even of an output without axes
            tile = self._array[place]
            self._pad.store(self._operand.name, tile, tensor=self._stored_as, phase=phase)
            self._pad.free(self._operand.name)
            self._is_here = False


def tile_index(positions: list[Array]) -> tuple[Any, ...]:
    """Slices where every axis is an interval (a view, no copy), index arrays where one has gaps."""
    if all(len(p) == 0 or p[-1] - p[0] == len(p) - 1 for p in positions):
        return tuple(slice(int(p[0]), int(p[-1]) + 1) if len(p) else slice(0, 0) for p in positions)
    return np.ix_(*positions)
