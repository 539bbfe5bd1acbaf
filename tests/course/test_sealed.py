"""Sealed DRAM: nothing can be computed with it but through load, and only real transfers count."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.course.sealed import SealedPad


@pytest.fixture
def pad() -> SealedPad:
    return SealedPad("4KiB")


VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_whatever_is_computed_in_dram_is_nan(pad: SealedPad) -> None:
    x = pad.seal("x", VALUES)
    assert np.isnan(x).all()
    for result in (x @ x.T, x + 1, x.sum(axis=0), np.maximum(x, 0), x * 0):
        assert np.isnan(result).all()


@pytest.mark.parametrize(
    "way",
    [
        lambda x: x, lambda x: x.copy(), lambda x: x[::-1], lambda x: x.T, lambda x: x[:, [2, 0]], lambda x: x.ravel(),
        lambda x: x.astype(np.float64), lambda x: np.ascontiguousarray(x[:, 1:3]), lambda x: np.array(x.tolist()),
    ],
)  # fmt: skip
def test_loading_gives_the_true_values_however_the_tile_was_cut(pad: SealedPad, way: object) -> None:
    x = pad.seal("x", VALUES)
    assert np.array_equal(pad.load("tile", way(x)), way(VALUES))  # type: ignore[operator]


def test_stream_and_slide_open_the_seal_as_well(pad: SealedPad) -> None:
    x = pad.seal("x", VALUES)
    assert np.array_equal(pad.stream("s", x[1]), VALUES[1])
    pad.load("window", x[:2])
    moved = pad.slide("window", x[1:], 0, (np.array([1]), np.array([0])), runs=1)
    assert np.array_equal(moved, VALUES[1:])


def test_two_tensors_are_told_apart_and_each_element_is_counted(pad: SealedPad) -> None:
    x, y = pad.seal("x", VALUES), pad.seal("y", VALUES + 100)
    pad.load("a", x[:2])
    pad.load("b", x[1:])
    assert np.array_equal(pad.load("c", y[0]), VALUES[0] + 100)
    assert pad.times_read("x").tolist() == [[1] * 4, [2] * 4, [1] * 4]
    assert pad.times_read("y").sum() == 4
    assert (pad.loads, pad.early) == ({"x": 2, "y": 1}, {"x": 1, "y": 0})


def test_an_entry_by_hand_is_not_counted(pad: SealedPad) -> None:
    x = pad.seal("x", VALUES)
    pad.ledger.record("mine", "x", "read", 1_000_000)
    buffer = pad.load("x", x)
    pad.ledger.record("mine", "x", "write", 1_000_000)
    pad.store("x", np.zeros_like(buffer))
    assert (pad.counted.traffic.read_bytes, pad.counted.traffic.write_bytes) == (48, 48)


def test_a_nan_of_the_students_own_stays_a_nan(pad: SealedPad) -> None:
    pad.seal("x", VALUES)
    assert np.isnan(pad.load("mine", np.full(4, np.nan, np.float32))).all()
    assert np.array_equal(pad.load("result", VALUES), VALUES)
