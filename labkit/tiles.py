"""A tensor as the tiles of a frame select it: loops first, then the rows that are never cut; and back again."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from labkit.frames import Extents, Frame, Place
from labkit.graph import Array

Ranges = Mapping[str, range]


class Tiles:
    """Rearranges one tensor, or a tile of it, between its own axes and (loops..., row).

    Where one loop runs over several axes, a tile has all its elements along the first of them: operators that count
    axes find the others in their place, one element long.
    """

    def __init__(self, frame: Frame, place: Place) -> None:
        self._extents = place.extents
        self._parts: list[list[str | int]] = []
        for axis, extent in zip(place.axes, place.extents, strict=True):
            is_row = axis < 0 or axis in frame.rows
            self._parts.append([] if extent == 1 else [extent] if is_row else [*frame.places[axis]])
        flat = [part for parts in self._parts for part in parts]
        self._order = sorted(range(len(flat)), key=lambda i: isinstance(flat[i], int))
        self.loops = tuple(part for part in flat if isinstance(part, str))
        self._rows = tuple(part for part in flat if isinstance(part, int))
        self._whole = {loop: range(frame.loops[loop]) for loop in self.loops}

    def cut(self, tensor: Array) -> Array:
        """The whole tensor with axes (loops..., row), contiguous."""
        sizes = [part if isinstance(part, int) else len(self._whole[part]) for parts in self._parts for part in parts]
        arranged = tensor.reshape(sizes).transpose(self._order)
        return np.ascontiguousarray(arranged).reshape(self.shape(self._whole))

    def shape(self, ranges: Ranges) -> Extents:
        """Extents of a tile with axes (loops..., row)."""
        return (*(len(ranges[loop]) for loop in self.loops), prod(self._rows))

    def block(self, ranges: Ranges) -> tuple[slice, ...]:
        """Where a tile lies."""
        return tuple(slice(ranges[loop].start, ranges[loop].stop) for loop in self.loops)

    def tensor(self, tile: Array, ranges: Ranges) -> Array:
        """A tile with the axes of the tensor."""
        arranged = tile.reshape([*(len(ranges[loop]) for loop in self.loops), *self._rows])
        own = arranged.transpose(np.argsort(self._order))
        return own.reshape([prod(self._size(part, ranges) for part in parts) for parts in self._parts])

    def tile(self, tensor: Array, ranges: Ranges) -> Array:
        """What an operator made of tiles, with axes (loops..., row)."""
        sizes = [self._size(part, ranges) for parts in self._parts for part in parts]
        return tensor.reshape(sizes).transpose(self._order).reshape(self.shape(ranges))

    def restore(self, cut: Array) -> Array:
        """The whole tensor with its own axes."""
        return self.tensor(cut, self._whole).reshape(self._extents)

    @staticmethod
    def _size(part: str | int, ranges: Ranges) -> Any:
        return part if isinstance(part, int) else len(ranges[part])
