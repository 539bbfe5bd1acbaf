"""The scratchpad: capacity, residency, and one ledger line for each transfer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LabError, SramOverflow
from labkit.memory.ledger import Access, Ledger, Traffic
from labkit.memory.scratchpad import Scratchpad

F32 = np.float32


def test_load_copies_the_tile_and_counts_a_read() -> None:
    dram = np.arange(12, dtype=F32).reshape(3, 4)
    pad = Scratchpad(1024)
    tile = pad.load("x", dram[1:, ::2])
    assert tile.tolist() == [[4, 6], [8, 10]]
    tile[...] = 0
    assert dram[1, 0] == 4, "the buffer must be a copy: writing to it may not reach DRAM"
    assert list(pad.ledger) == [Access("(no kernel)", "x", "read", 16, runs=4)]


def test_store_puts_the_buffer_into_dram_and_counts_a_write() -> None:
    dram = np.zeros((4, 4), F32)
    pad = Scratchpad(1024)
    pad.alloc("y", (2, 2), F32)[...] = 7
    pad.store("y", dram[2:, 2:])
    assert dram.sum() == 28
    assert dram[2:, 2:].sum() == 28
    assert pad.ledger.traffic == Traffic(write_bytes=16, writes=1)
    assert pad.resident == {"y": 16}, "a stored buffer stays until it is freed"


def test_alloc_is_zeroed_and_moves_no_bytes() -> None:
    pad = Scratchpad(1024)
    pad.load("x", np.full((8, 8), 3, F32))
    pad.free("x")
    assert not pad.alloc("acc", (8, 8), F32).any()
    assert pad.ledger.traffic == Traffic(read_bytes=256, reads=1)


def test_a_freed_buffer_holds_garbage() -> None:
    pad = Scratchpad(1024)
    floats, integers = pad.load("f", np.ones(4, F32)), pad.load("i", np.ones(4, np.int8))
    pad.free("f")
    pad.free("i")
    assert np.isnan(floats).all()
    assert (integers == -1).all()


def test_overflow_names_capacity_demand_and_what_is_resident() -> None:
    pad = Scratchpad("1KiB")
    pad.load("A", np.zeros((10, 10), F32))
    pad.load("B", np.zeros((10, 10), F32))
    with pytest.raises(SramOverflow, match=r"C needs 400 bytes, 224 of 1,024 are free; .*A 400 bytes, B 400 bytes"):
        pad.alloc("C", (10, 10), F32)
    assert pad.resident == {"A": 400, "B": 400}
    assert pad.ledger.traffic.nbytes == 800, "a refused load moves nothing"


def test_exactly_full_is_allowed_and_one_byte_more_is_not() -> None:
    pad = Scratchpad(16)
    pad.alloc("x", (16,), np.int8)
    with pytest.raises(SramOverflow):
        pad.alloc("y", (1,), np.int8)


def test_a_huge_shape_is_refused_before_anything_is_allocated() -> None:
    with pytest.raises(SramOverflow):
        Scratchpad("512KiB").alloc("x", (2**62, 2**62), F32)


def test_two_slots_take_twice_the_room_and_move_the_bytes_once() -> None:
    pad = Scratchpad(1024)
    pad.load("A", np.zeros(50, F32), slots=2)
    assert pad.used_bytes == 400
    assert pad.ledger.traffic.read_bytes == 200


@pytest.mark.parametrize("misuse", ["load", "alloc"])
def test_a_resident_name_cannot_be_taken_again(misuse: str) -> None:
    pad = Scratchpad(1024)
    x = np.zeros(4, F32)
    pad.load("x", x)
    with pytest.raises(LabError, match="x is on chip already"):
        pad.load("x", x) if misuse == "load" else pad.alloc("x", (4,), F32)


@pytest.mark.parametrize("misuse", ["store", "free", "use"])
def test_an_absent_name_is_refused_and_the_residents_are_listed(misuse: str) -> None:
    pad = Scratchpad(1024)
    pad.load("x", np.zeros(4, F32))
    with pytest.raises(LabError, match=f"cannot {misuse} y: it is not on chip; resident: x 16 bytes"):
        {"store": lambda: pad.store("y", np.zeros(4, F32)), "free": lambda: pad.free("y"), "use": lambda: pad["y"]}[
            misuse
        ]()


@pytest.mark.parametrize("tile", [np.zeros((2, 2), F32), np.zeros(4, np.float64), np.zeros(5, F32)])
def test_store_refuses_a_tile_of_another_shape_or_type(tile: np.ndarray) -> None:
    pad = Scratchpad(1024)
    pad.alloc("x", (4,), F32)
    with pytest.raises(LabError, match="they must agree"):
        pad.store("x", tile)
    assert len(pad.ledger) == 0


def test_kernels_name_the_lines_and_count_launches() -> None:
    ledger = Ledger()
    pad = Scratchpad(1024, ledger)
    x = np.zeros(4, F32)
    with pad.kernel("conv"):
        pad.load("x tile", x, tensor="x")
        pad.store("x tile", x, tensor="y")
        pad.free("x tile")
    with pad.kernel("relu"):
        pad.load("y", x)
    assert [(line.node, line.value) for line in ledger] == [("conv", "x"), ("conv", "y"), ("relu", "y")]
    assert pad.launches == 2


def test_a_kernel_that_fails_leaves_nothing_of_its_own_behind() -> None:
    pad = Scratchpad(1024)
    pad.alloc("kept", (4,), F32)

    def kernel() -> None:
        with pad.kernel("k"):
            pad.alloc("a", (4,), F32)
            pad.alloc("b", (4000,), F32)

    with pytest.raises(SramOverflow):
        kernel()
    assert pad.resident == {"kept": 16}


def test_a_stream_counts_every_fetch_and_needs_room_for_one_element() -> None:
    pad = Scratchpad(4)
    row = np.arange(3, dtype=F32)
    values = pad.stream("x", np.broadcast_to(row, (5, 3)))
    assert values.tolist() == [[0, 1, 2]] * 5
    assert not values.flags.writeable
    assert pad.ledger.traffic == Traffic(read_bytes=60, reads=1)
    pad.stream_out("y", values[0], row)
    assert pad.ledger.traffic.write_bytes == 12
    assert pad.high_water_bytes == 4
    with pytest.raises(SramOverflow):
        Scratchpad(3).stream("x", row)


@pytest.mark.parametrize("size", [0, -4, "512XB"])
def test_a_size_that_is_none_is_refused(size: int | str) -> None:
    with pytest.raises(LabError):
        Scratchpad(size)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40)), max_size=30))
def test_use_never_exceeds_capacity_and_high_water_is_its_maximum(requests: list[tuple[str, int]]) -> None:
    """Judge: a plain dictionary kept beside the scratchpad."""
    pad = Scratchpad(64)
    sizes: dict[str, int] = {}
    highest = 0
    for name, nbytes in requests:
        if name in sizes:
            pad.free(name)
            del sizes[name]
        elif sum(sizes.values()) + nbytes > 64:
            with pytest.raises(SramOverflow):
                pad.alloc(name, (nbytes,), np.int8)
        else:
            pad.alloc(name, (nbytes,), np.int8)
            sizes[name] = nbytes
            highest = max(highest, sum(sizes.values()))
        assert pad.resident == sizes
        assert pad.high_water_bytes == highest
