"""The tiles of a depth-first pair: what each moves, holds and computes again, and which is the best."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

from labkit.access import tile_ranges

Tile = tuple[int, int]  # rows and columns of the output


@dataclass(frozen=True)
class Line:
    """A window along one spatial axis, from ``size`` input positions to ``out`` output positions."""

    reach: int
    stride: int
    before: int
    size: int
    out: int

    def needed(self, places: range) -> tuple[range, int, int]:
        """The input positions under these windows, and how many before and behind them fall on padding."""
        start = places.start * self.stride - self.before
        stop = (places.stop - 1) * self.stride + self.reach - self.before
        inside = range(min(max(start, 0), self.size), max(min(stop, self.size), 0))
        return inside, max(-start, 0), max(stop - self.size, 0)


Kind = tuple[int, int, int]  # positions of the input, of the middle and of the output that a tile has


class Cut(NamedTuple):
    """The tiles along one axis: their number, how many of them load anything, the positions of the input and of the
    middle that all have together, and the kinds of tiles there are."""

    tiles: int
    loads: int
    x: int
    mid: int
    kinds: frozenset[Kind]


@lru_cache(maxsize=65536)  # a search asks for each size many times
def _cut(first: Line, second: Line, size: int) -> Cut:
    found = []
    for places in tile_ranges(second.out, size):
        middle, _, _ = second.needed(places)
        source, _, _ = first.needed(middle) if middle else (range(0), 0, 0)
        found.append((len(source), len(middle), len(places)))
    loads = sum(kind[0] > 0 for kind in found)
    return Cut(len(found), loads, sum(kind[0] for kind in found), sum(kind[1] for kind in found), frozenset(found))


@dataclass(frozen=True)
class Pair:
    """What a plan needs to know: shapes and sizes, no names. ``first`` and ``second`` are the windows along rows and
    columns. Bytes are for one pixel, all channels: ``x`` of the input, ``mid`` of the tensor between, ``held`` the most
    while the operators of each half run, ``moved`` what is read beside and written at the end. ``still_bytes`` are the
    weights and vectors; FLOPs of the first half are for one pixel of its output."""

    images: int
    first: tuple[Line, Line]
    second: tuple[Line, Line]
    x_bytes: int
    mid_bytes: int
    held_bytes: tuple[int, int]
    moved_bytes: int
    still_bytes: int
    flops: int

    def cuts(self, tile: Tile) -> tuple[Cut, Cut]:
        """The tiles along rows and along columns."""
        rows, columns = (_cut(*lines) for lines in zip(self.first, self.second, tile, strict=True))
        return rows, columns

    def tiles(self, tile: Tile) -> int:
        """Tiles of all images."""
        rows, columns = self.cuts(tile)
        return self.images * rows.tiles * columns.tiles

    def loads(self, tile: Tile) -> int:
        """Tiles that load anything of the input: a window may lie on padding altogether."""
        rows, columns = self.cuts(tile)
        return self.images * rows.loads * columns.loads

    def loaded_bytes(self, tile: Tile) -> int:
        """Bytes of the input that all tiles load."""
        rows, columns = self.cuts(tile)
        return self.images * rows.x * columns.x * self.x_bytes

    def dram_bytes(self, tile: Tile) -> int:
        """Bytes that move with tiles of this size."""
        pixels = prod(line.out for line in self.second)
        return self.loaded_bytes(tile) + self.images * pixels * self.moved_bytes + self.still_bytes

    def working_set_bytes(self, tile: Tile, slots: int = 1) -> int:
        """SRAM: weights and vectors, and for the worst tile the middle with the input's or the output's beside it."""
        worst = 0
        rows, columns = self.cuts(tile)
        for one, other in product(rows.kinds, columns.kinds):
            x, mid, out = (a * b for a, b in zip(one, other, strict=True))
            first = slots * x * self.x_bytes + mid * self.held_bytes[0]
            second = mid * self.mid_bytes + out * self.held_bytes[1] + (slots - 1) * x * self.x_bytes
            worst = max(worst, first, second)
        return self.still_bytes + worst

    def extra_flops(self, tile: Tile) -> int:
        """Arithmetic on parts of the middle that are computed again; negative where some of it is never needed."""
        made = prod(line.out for line in self.first)
        rows, columns = self.cuts(tile)
        return self.images * (rows.mid * columns.mid - made) * self.flops


@lru_cache(maxsize=4096)
def best_pair_tile(pair: Pair, sram_bytes: int, slots: int = 1) -> Tile:
    """The tile that moves the fewest bytes; of equals, the one with the least arithmetic again, then the smaller
    working set. When none fits: one pixel."""
    if pair.still_bytes > sram_bytes:
        return 1, 1
    fits = [(tile, held) for tile, held in _tiles(pair, slots).items() if held <= sram_bytes]
    weighed = ((pair.dram_bytes(tile), pair.extra_flops(tile), held, tile) for tile, held in fits)
    return min(weighed, default=(0, 0, 0, (1, 1)))[-1]


@lru_cache(maxsize=4096)
def least_room(pair: Pair, tile: Tile, slots: int = 1) -> int:
    """The SRAM with which the pair moves as few bytes as with this tile."""
    moved = pair.dram_bytes(tile)
    return min(held for other, held in _tiles(pair, slots).items() if pair.dram_bytes(other) <= moved)


@lru_cache(maxsize=4096)
def _tiles(pair: Pair, slots: int) -> dict[Tile, int]:
    """The tiles worth weighing, with their working sets."""
    rows, columns = (_sizes(*lines) for lines in zip(pair.first, pair.second, strict=True))
    return {tile: pair.working_set_bytes(tile, slots) for tile in product(rows, columns)}


@lru_cache(maxsize=1024)
def _sizes(first: Line, second: Line) -> tuple[int, ...]:
    """Along one axis: the sizes that no other beats, loading and computing no more with tiles that are no larger."""
    kept: list[tuple[int, Cut]] = []
    for size in range(1, second.out + 1):
        cut = _cut(first, second, size)
        if not any(_beats(other, cut) for _, other in kept):
            kept.append((size, cut))
    return tuple(size for size, _ in kept)


def _beats(one: Cut, other: Cut) -> bool:
    if one.x > other.x or one.mid > other.mid:
        return False
    return all(
        any(all(a <= b for a, b in zip(small, large, strict=True)) for large in other.kinds) for small in one.kinds
    )
