"""The tiling model on paper. Its agreement with the counting kernel is tested in tests/kernels/test_matmul.py."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LabError
from labkit.tiling import (
    Matmul,
    MatmulSchedule,
    largest_square_tile,
    modelled_traffic,
    operand_traffic,
    working_set_bytes,
)

extent = st.integers(1, 2**62)
huge = st.tuples(extent, extent, extent)


@given(st.integers(4, 2**40), st.sampled_from([1, 2, 4, 8]), st.sampled_from([3, 5, 6]))
def test_the_largest_square_tile_fits_and_the_next_does_not(sram_bytes: int, itemsize: int, tiles: int) -> None:
    if sram_bytes < tiles * itemsize:
        with pytest.raises(LabError, match="do not fit"):
            largest_square_tile(sram_bytes, itemsize, tiles)
        return
    side = largest_square_tile(sram_bytes, itemsize, tiles)
    assert tiles * itemsize * side**2 <= sram_bytes < tiles * itemsize * (side + 1) ** 2


@given(huge, huge, st.sampled_from(["".join(p) for p in itertools.permutations("mnk")]))
def test_sizes_up_to_64_bits_neither_overflow_nor_allocate(shape, tile, order: str) -> None:
    problem, schedule = Matmul(*shape), MatmulSchedule(tile, order)
    traffic = modelled_traffic(problem, schedule)
    assert traffic.nbytes >= problem.compulsory_bytes > 0
    m, n, k = shape
    assert traffic.nbytes <= 4 * m * n * k * 4
    needed = working_set_bytes(schedule.clipped_to(problem).tile)
    assert traffic.nbytes >= problem.bound_bytes(needed)


def test_modelled_traffic_against_a_case_worked_by_hand() -> None:
    """4 × 4 × 4 in tiles of 2: 2 trips a loop. Order mnk: A comes once for each n, B for each m, C leaves once."""
    by_operand = operand_traffic(Matmul(4, 4, 4, itemsize=1), MatmulSchedule((2, 2, 2), "mnk"))
    assert {name: (t.read_bytes, t.write_bytes) for name, t in by_operand.items()} == {
        "A": (32, 0),
        "B": (32, 0),
        "C": (0, 16),
    }
    k_outside = operand_traffic(Matmul(4, 4, 4, itemsize=1), MatmulSchedule((2, 2, 2), "kmn"))
    assert {name: (t.read_bytes, t.write_bytes) for name, t in k_outside.items()} == {
        "A": (16, 0),  # n is innermost: A stays
        "B": (32, 0),
        "C": (16, 32),  # leaves after each k-step: read again once, written twice
    }


def test_a_larger_tile_is_clipped_and_the_caller_can_see_it() -> None:
    asked = MatmulSchedule((64, 8, 64))
    clipped = asked.clipped_to(Matmul(10, 10, 10))
    assert clipped.tile == (10, 8, 10)
    assert clipped.clipped_to(Matmul(10, 10, 10)) is clipped


def test_the_bound_is_the_compulsory_traffic_when_everything_fits() -> None:
    problem = Matmul(64, 64, 64)
    assert problem.bound_bytes(2**20) == problem.compulsory_bytes == 3 * 64 * 64 * 4


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), st.integers(3, 40))
def test_no_modelled_schedule_beats_the_bound(m: int, n: int, k: int, words: int) -> None:
    problem = Matmul(m, n, k, itemsize=1)
    bound = problem.bound_bytes(words)
    for tile in itertools.product(range(1, m + 1), range(1, n + 1), range(1, k + 1)):
        if working_set_bytes(tile, 1) <= words:
            for order in ("mnk", "nkm", "kmn"):
                assert modelled_traffic(problem, MatmulSchedule(tile, order)).nbytes >= bound


def test_double_buffering_takes_two_tiles_of_each_input_and_moves_the_same_bytes() -> None:
    assert working_set_bytes((2, 3, 5), 4, "double") == 4 * (2 * 10 + 2 * 15 + 6)
    problem = Matmul(9, 9, 9)
    single, double = MatmulSchedule((2, 3, 5)), MatmulSchedule((2, 3, 5), buffers="double")
    assert modelled_traffic(problem, single) == modelled_traffic(problem, double)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Matmul(0, 1, 1), "matmul: m is 0"),
        (lambda: Matmul(1, -3, 1), "matmul: n is -3"),
        (lambda: Matmul(1, 1, 2**63), "matmul: k is 9223372036854775808"),
        (lambda: Matmul(1, 1, 1.5), "matmul: k is 1.5"),
        (lambda: Matmul(1, 1, 1, itemsize=0), "itemsize is 0"),
        (lambda: MatmulSchedule((1, 0, 1)), "TN is 0"),
        (lambda: MatmulSchedule((1, 1)), "three numbers"),
        (lambda: MatmulSchedule((1, 1, 1), "mnn"), "loop order 'mnn'"),
        (lambda: MatmulSchedule((1, 1, 1), c_policy="keep"), "choose one of store, load_store, spill"),
        (lambda: MatmulSchedule((1, 1, 1), buffers="triple"), "choose one of single, double"),
        (lambda: working_set_bytes((1, 1, -1)), "TK is -1"),
        (lambda: largest_square_tile(512, tiles=4), "choose one of 3, 5, 6"),
        (lambda: Matmul(1, 1, 1).bound_bytes(8), "must fit"),
    ],
)
def test_bad_input_is_named(make, message: str) -> None:
    with pytest.raises(LabError, match=message):
        make()
