"""The arithmetic of one step of a nest: tiles in, products added to the output tile."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.access import Axis, Operand
from labkit.problems import Problem

Array = NDArray[Any]
Ranges = Mapping[str, range]


class Multiply:
    """Adds the products of one step to the output tile (a copy puts its elements there), on what is on chip only. With
    one input it joins the elements themselves, by addition or another ``combine``.

    An axis such as p·stride + r has a base loop p and a tap loop r. The taps are walked one by one; for each, the
    base positions that fall on padding are left out, and what remains is one product of tensors over plain loops.
    """

    def __init__(self, problem: Problem, combine: np.ufunc = np.add) -> None:
        self._problem, self._combine = problem, combine
        self._taps = sorted({loop for x in problem.inputs for axis in x.axes for loop in axis.loops[1:]})
        letters = dict(zip(problem.loops, string.ascii_letters, strict=False))
        specs = [
            "".join(letters[axis.loops[0]] for axis in x.axes if axis.loops[0] not in self._taps)
            for x in (*problem.inputs, problem.output)
        ]
        self._spec = f"{','.join(specs[:-1])}->{specs[-1]}"
        m, n, k = (string.ascii_letters[i] for i in range(3))
        self._is_matmul = self._spec == f"{m}{k},{k}{n}->{m}{n}" and not self._taps

    def __call__(self, out: Array, tiles: list[Array], ranges: Ranges) -> None:
        if self._is_matmul:  # einsum finds the same product, at ten times the overhead of a small tile
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
            block = tuple(self._place(axis.loops[0], taps, bases, ranges) for axis in self._problem.output.axes)
            if self._problem.is_copy:  # not 0 + x: that would turn -0.0 into 0.0
                out[block] = np.einsum(self._spec, *parts)
            else:
                out[block] = self._combine(out[block], self._of_one_tap(parts))

    def _of_one_tap(self, parts: list[Array]) -> Array:
        """Products added up, or elements joined, over the loops that are no taps."""
        if self._combine is np.add:
            return np.asarray(np.einsum(self._spec, *parts, optimize=True))
        before, after = self._spec.split("->")
        gone = tuple(i for i, letter in enumerate(before) if letter not in after)
        return np.asarray(self._combine.reduce(parts[0], axis=gone))

    def _tap_positions(self, ranges: Ranges) -> Iterator[dict[str, int]]:
        for taps in product(*(ranges[loop] for loop in self._taps)):
            yield dict(zip(self._taps, taps, strict=True))

    @staticmethod
    def _place(loop: str, taps: Mapping[str, int], bases: Mapping[str, range], ranges: Ranges) -> int | slice:
        """Where in the output tile the results of one tap go, along the axis of one loop."""
        start = ranges[loop].start
        if loop in taps:
            return taps[loop] - start
        return slice(bases[loop].start - start, bases[loop].stop - start) if loop in bases else slice(None)

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
