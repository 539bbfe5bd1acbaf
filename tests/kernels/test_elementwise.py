"""Elementwise chains: NumPy judges the values, tensor sizes judge the bytes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.errors import LabError, SramOverflow
from labkit.kernels.elementwise import ElementwiseOp, run_fused, run_unfused
from labkit.memory.scratchpad import Scratchpad


def chain(rows: int, columns: int) -> list[ElementwiseOp]:
    """Scale and shift of each row, add a full tensor, clamp below at zero."""
    rng = np.random.default_rng(0)
    scale, shift = rng.standard_normal((2, rows, 1)).astype(np.float32)
    residual = rng.standard_normal((rows, columns)).astype(np.float32)
    return [
        ElementwiseOp("bn", "bn_out", lambda x, s, b: x * s + b, {"scale": scale, "shift": shift}),
        ElementwiseOp("add", "sum", np.add, {"residual": residual}),
        ElementwiseOp("relu", "y", lambda x: np.maximum(x, 0)),
    ]


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(2, 30), st.tuples(st.integers(1, 10), st.integers(1, 40)))
def test_fusing_changes_the_bytes_and_not_one_bit_of_the_result(rows: int, columns: int, tile) -> None:
    ops = chain(rows, columns)
    x = np.random.default_rng(1).standard_normal((rows, columns)).astype(np.float32)
    apart, together = Scratchpad("64KiB"), Scratchpad("64KiB")
    unfused, fused = run_unfused(x, ops, apart, tile), run_fused(x, ops, together, tile)
    scale, shift = ops[0].others.values()
    wanted = np.maximum(x * scale + shift + ops[1].others["residual"], 0)
    assert np.array_equal(unfused, wanted)
    assert np.array_equal(fused, wanted)
    full, column = 4 * rows * columns, 4 * rows
    assert together.ledger.traffic.read_bytes == 2 * full + 2 * column
    assert together.ledger.traffic.write_bytes == full
    assert apart.ledger.traffic.nbytes - together.ledger.traffic.nbytes == 4 * full  # two results, written and read
    by_value = apart.ledger.by("value")
    assert {(by_value[name].read_bytes, by_value[name].write_bytes) for name in ("bn_out", "sum")} == {(full, full)}
    assert not {"bn_out", "sum"} & set(together.ledger.by("value"))
    assert (apart.launches, together.launches) == (3, 1)
    assert apart.resident == together.resident == {}


def test_tiles_that_do_not_fit_overflow() -> None:
    x = np.zeros((4, 64), np.float32)
    with pytest.raises(SramOverflow):
        run_fused(x, chain(4, 64), Scratchpad("300B"), (1, 64))


@pytest.mark.parametrize(
    ("x", "ops", "tile", "message"),
    [
        (np.zeros(4), chain(1, 4), (1, 1), "wanted a size of at least 1 for each axis of shape"),
        (np.zeros((2, 4)), [], (1, 1), "chain of 0 ops"),
        (np.zeros((2, 4)), chain(2, 4), (0, 1), r"tile \(0, 1\)"),
        (np.zeros((3, 4)), chain(2, 4), (1, 1), "operand scale has shape"),
    ],
)
def test_bad_input_is_named(x: np.ndarray, ops: list[ElementwiseOp], tile: tuple[int, int], message: str) -> None:
    with pytest.raises(LabError, match=message):
        run_fused(x, ops, Scratchpad("1KiB"), tile)


@settings(deadline=None)
@given(
    st.tuples(*(st.integers(1, 4) for _ in range(4))),
    st.tuples(*(st.integers(1, 3) for _ in range(4))),
    st.permutations(range(4)),
)
def test_any_number_of_axes_any_order_of_tiles(shape: tuple[int, ...], tile: tuple[int, ...], order: list[int]) -> None:
    rng = np.random.default_rng(0)
    x, residual = rng.standard_normal((2, *shape)).astype(np.float32)
    scale = rng.standard_normal((1, shape[1], 1, 1)).astype(np.float32)
    ops = [
        ElementwiseOp("scale", "scaled", np.multiply, {"scale": scale}),
        ElementwiseOp("add", "y", np.add, {"residual": residual}),
    ]
    apart, together = Scratchpad("64KiB"), Scratchpad("64KiB")
    wanted = x * scale + residual
    assert np.array_equal(run_fused(x, ops, together, tile, order=order), wanted)
    assert np.array_equal(run_unfused(x, ops, apart, tile, order=order), wanted)
    read = together.ledger.by("value")
    assert read["x"].read_bytes == read["residual"].read_bytes == read["y"].write_bytes == x.nbytes
    trips = [-(-n // t) for n, t in zip(shape, tile, strict=True)]
    outside = [trips[axis] for axis in order[: order.index(1)]] if trips[1] > 1 else []
    if scale.shape != shape:
        assert read["scale"].read_bytes == np.prod(outside) * scale.nbytes, "again for each trip around its own axis"
    assert apart.ledger.by("value")["scaled"].nbytes == 2 * x.nbytes


def test_an_order_that_misses_an_axis_is_refused() -> None:
    with pytest.raises(LabError, match=r"order of axes \(0, 0\): write each of 0 to 1 once"):
        run_fused(np.zeros((2, 4)), chain(2, 4), Scratchpad("1KiB"), (1, 1), order=(0, 0))


def test_one_name_for_two_operands_is_refused() -> None:
    """B13: nobody would notice that one of them was never used."""
    one, other = np.zeros((2, 4)), np.ones((2, 4))
    ops = [ElementwiseOp("a", "y", np.add, {"b": one}), ElementwiseOp("c", "z", np.add, {"b": other})]
    for run in (run_fused, run_unfused):
        with pytest.raises(LabError, match="two operands are called b"):
            run(np.zeros((2, 4)), ops, Scratchpad("1KiB"), (1, 4))
