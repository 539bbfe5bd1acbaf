"""Affine access: every count is held to a list of positions made by the slowest possible program."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.access import Axis, Operand, intervals, tile_ranges
from labkit.errors import LabError


@st.composite
def cut_axes(draw: st.DrawFn) -> tuple[Axis, tuple[int, ...], tuple[int, ...]]:
    """A window axis over two or three loops, their extents and a tile size of each."""
    loops = "prs"[: draw(st.integers(2, 3))]
    terms = tuple((loop, draw(st.integers(1, 4))) for loop in loops)
    axis = Axis(terms, draw(st.integers(1, 20)), -draw(st.integers(0, 4)))
    extents = tuple(draw(st.integers(1, 6)) for _ in loops)
    return axis, extents, tuple(draw(st.integers(1, extent)) for extent in extents)


def listed(axis: Axis, ranges: dict[str, range]) -> list[int]:
    """The positions, by trying every combination of indices."""
    coefficients = [c for _, c in axis.terms]
    points = product(*(ranges[loop] for loop in axis.loops))
    found = {axis.offset + sum(c * i for c, i in zip(coefficients, point, strict=True)) for point in points}
    return sorted(p for p in found if 0 <= p < axis.extent)


def tiles_of(axis: Axis, extents: tuple[int, ...], tiles: tuple[int, ...]) -> list[dict[str, range]]:
    cut = [tile_ranges(extent, tile) for extent, tile in zip(extents, tiles, strict=True)]
    return [dict(zip(axis.loops, ranges, strict=True)) for ranges in product(*cut)]


@settings(max_examples=500, deadline=None)
@given(cut_axes())
def test_counts_equal_a_list_of_positions(case) -> None:
    axis, extents, tiles = case
    wanted = [listed(axis, ranges) for ranges in tiles_of(axis, extents, tiles)]
    assert axis.tile_counts(extents, tiles).tolist() == [len(w) for w in wanted]
    if sum(extent > tile for extent, tile in zip(extents, tiles, strict=True)) > 1:
        tiles = (tiles[0], *extents[1:])  # a window slides along one loop
        wanted = [listed(axis, ranges) for ranges in tiles_of(axis, extents, tiles)]
    new = [wanted[0], *([p for p in now if p not in before] for before, now in pairwise(wanted))]
    assert axis.tile_counts(extents, tiles, True).tolist() == [len(n) for n in new]
    for ranges, positions in zip(tiles_of(axis, extents, tiles), wanted, strict=True):
        assert axis.positions(ranges).tolist() == positions
        assert axis.count(ranges) == len(positions)


def test_a_plain_axis_is_its_loop() -> None:
    axis = Axis((("m", 1),), 10)
    assert axis.is_plain
    assert axis.positions({"m": range(4, 8)}).tolist() == [4, 5, 6, 7]
    assert axis.count({"m": range(8, 10)}) == 2


def test_a_stride_beyond_the_kernel_leaves_gaps() -> None:
    axis = Axis((("p", 3), ("r", 1)), 20, -1)
    assert axis.positions({"p": range(3), "r": range(2)}).tolist() == [0, 2, 3, 5, 6]
    assert axis.count({"p": range(3), "r": range(2)}) == 5


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_runs_are_the_breaks_in_a_list_of_addresses(data) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    at = []
    for extent in shape:
        start = data.draw(st.integers(0, extent - 1))
        at.append(np.arange(start, data.draw(st.integers(start + 1, extent))))
    operand = Operand("x", tuple(Axis(((f"l{i}", 1),), extent) for i, extent in enumerate(shape)), "float32")
    addresses = np.arange(np.prod(shape)).reshape(shape)[np.ix_(*at)].ravel()
    assert operand.runs(at) == 1 + np.count_nonzero(np.diff(addresses) != 1)


def test_gaps_break_a_row_and_nothing_has_no_runs() -> None:
    operand = Operand("x", (Axis((("n", 1),), 4), Axis((("p", 2), ("r", 1)), 9)), "float32")
    assert operand.runs([np.arange(3), np.array([0, 2, 3, 7])]) == 3 * 3
    assert operand.runs([np.arange(3), np.arange(9)]) == 1
    assert operand.runs([np.arange(3), np.arange(0)]) == 0
    assert intervals(np.array([4])) == 1


def test_bytes_are_elements_times_their_size() -> None:
    operand = Operand("x", (Axis((("m", 1),), 10), Axis((("p", 1), ("r", 1)), 9, -1)), "float16")
    assert operand.nbytes == 180
    assert operand.tile_bytes({"m": range(8, 10), "p": range(4), "r": range(3)}) == 2 * 5 * 2


def test_too_many_tiles_are_refused_before_they_are_made() -> None:
    with pytest.raises(LabError, match="tiles along one axis; labkit counts up to 10,000,000"):
        Axis((("p", 1), ("r", 1)), 2**40).tile_counts((2**40, 3), (1, 3))
