"""Which tensor a cache line belongs to."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from labkit.memory.affine import Int64s, Trace
from labkit.memory.program import Indices


class TensorLines:
    """Which tensor a line belongs to. Nothing is looked up before it is asked for: a list is long to read."""

    def __init__(self, trace: Trace, line_bytes: int) -> None:
        self._trace, self._line_bytes = trace, line_bytes

    @cached_property
    def lows(self) -> Int64s:
        """The lowest line of each tensor."""
        return self._bounds[:, 0]

    @cached_property
    def highs(self) -> Int64s:
        """The highest line of each tensor."""
        return self._bounds[:, 1]

    @cached_property
    def disjoint(self) -> bool:
        """Whether no line belongs to two tensors."""
        if len(self._trace.tensors) == 1:
            return True
        return bool((self.lows[self._order][1:] > self.highs[self._order][:-1]).all())

    def of(self, lines: Int64s) -> Indices:
        """The number of the tensor for each line; the caller knows that they belong to one."""
        if len(self._trace.tensors) == 1:
            return np.zeros(np.shape(lines), dtype=np.intp)
        found: Indices = self._order[np.searchsorted(self.lows[self._order], lines, side="right") - 1]
        return found

    @cached_property
    def _bounds(self) -> Int64s:
        bounds = np.array([self._trace.bounds(tensor) for tensor in self._trace.tensors], dtype=np.int64)
        return bounds // self._line_bytes

    @cached_property
    def _order(self) -> Indices:
        return np.argsort(self.lows, kind="stable")
