"""StridedTensor: values, view or copy, and the price of a copy. NumPy is the judge."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from labkit import LabError, Layout, StridedTensor
from labkit.memory.ledger import Ledger


def counting(*shape, dtype=np.float32):
    return np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)


SHAPES = st.tuples(*[st.integers(0, 4)] * 4)
ORDERS = st.sampled_from(["NCHW", "NHWC", "CHWN", "WHCN"])


@given(SHAPES, ORDERS)
def test_from_array_keeps_the_logical_values_in_any_order(shape, order):
    values = counting(*shape)
    tensor = StridedTensor.from_array(values, order)
    assert np.array_equal(tensor.array, values)
    stored = values.transpose(["NCHW".index(axis) for axis in order])
    assert np.array_equal(tensor.storage, stored.ravel())


@given(SHAPES, ORDERS, st.integers(0, 3), st.sampled_from([None, -3, -1, 2]), st.permutations("NCHW"))
def test_views_share_the_storage_and_read_like_numpy(shape, order, start, step, axes):
    values = counting(*shape)
    tensor = StridedTensor.from_array(values, order)
    view = tensor.permute(axes).slice(axes[0], start, None, step)
    expected = values.transpose(["NCHW".index(axis) for axis in axes])[start::step]
    assert np.array_equal(view.array, expected)
    assert view.shares_storage_with(tensor)
    assert not view.array.size or np.shares_memory(view.array, tensor.storage)


@given(SHAPES, ORDERS, ORDERS)
def test_to_moves_the_bytes_once_or_not_at_all(shape, source, target):
    values, ledger = counting(*shape, dtype=np.float16), Ledger()
    tensor = StridedTensor.from_array(values, source)
    moved = tensor.to(target, ledger)
    assert np.array_equal(moved.array, values)
    assert moved.layout == Layout.dense(shape, target)
    free = tensor.layout.satisfies(target)
    assert moved.shares_storage_with(tensor) == free
    assert ledger.traffic.read_bytes == ledger.traffic.write_bytes == (0 if free else values.nbytes)


@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 2, 4]), ORDERS)
def test_blocked_orders_and_back(n, blocks, h, block, order):
    values = counting(n, blocks * block, h, 3)
    blocked = StridedTensor.from_array(values, order).to(f"NCHW{block}c")
    stored = values.reshape(n, blocks, block, h, 3).transpose(0, 1, 3, 4, 2)
    assert np.array_equal(blocked.storage[blocked.layout.offset :][: values.size], stored.ravel())
    assert np.array_equal(blocked.logical, values)
    back = blocked.to(order)
    assert np.array_equal(back.array, values)
    assert np.array_equal(StridedTensor.from_array(values, f"NCHW{block}c").logical, values)


def test_a_write_through_a_view_is_seen_by_all_views_and_by_no_copy():
    tensor = StridedTensor.from_array(counting(1, 2, 2, 2))
    copy, view = tensor.to("NHWC"), tensor.permute("NHWC")
    view.array[0, 0, 0, 1] = -1
    assert tensor.array[0, 1, 0, 0] == -1
    assert copy.array[0, 1, 0, 0] == 4
    assert not copy.shares_storage_with(tensor)


def test_a_broadcast_is_read_only_and_counts_its_bytes_once():
    bias = StridedTensor.from_array(counting(1, 3, 1, 1)).broadcast((2, 3, 4, 4))
    assert bias.nbytes == 12
    with pytest.raises(ValueError, match="read-only"):
        bias.array[0, 0, 0, 0] = 1
    ledger = Ledger()
    bias.contiguous(ledger, name="bias")
    assert ledger.by("kind")["read"].read_bytes == 12
    assert ledger.by("kind")["write"].write_bytes == 2 * 3 * 4 * 4 * 4
    assert set(ledger.by("value")) == {"bias"}


def test_a_reshape_is_a_view_or_an_error_never_a_copy():
    tensor = StridedTensor.from_array(counting(1, 2, 2, 3))
    flat = tensor.reshape((12,), "A")
    assert np.shares_memory(flat.array, tensor.storage)
    with pytest.raises(LabError, match="copy first"):
        tensor.permute("NHWC").reshape((12,), "A")


def test_zero_dimensions_hold_one_element():
    scalar = StridedTensor.from_array(np.float32(7), "")
    assert scalar.array.shape == ()
    assert scalar.array == 7


@pytest.mark.parametrize("storage", [np.zeros((2, 2)), np.zeros(8)[::2], [0, 1, 2, 3], np.float64(0)])
def test_the_storage_is_flat_and_gapless(storage):
    with pytest.raises(LabError, match="flat NumPy array"):
        StridedTensor(Layout.dense((1, 1, 2, 2)), storage)


# ---- rows of the public bug reports (bugs.md, section C)


def test_c01_a_wild_stride_of_a_length_1_axis_reads_well():
    tensor = StridedTensor(Layout("ABC", (3, 1, 3), (3, 2**63 - 1, 1)), np.ones(9))
    assert np.array_equal(tensor.array, np.ones((3, 1, 3)))


def test_c04_contiguous_gives_canonical_strides_to_flipped_views():
    flipped = StridedTensor.from_array(np.zeros((1, 10, 20)), "ABC").slice("A", None, None, -1)
    assert flipped.contiguous().layout.strides == (200, 20, 1)
    assert flipped.contiguous().shares_storage_with(flipped)
    numbers = StridedTensor.from_array(np.array([1, 34]), "A").slice("A", None, None, -1)
    assert numbers.contiguous().storage.tolist() == [34, 1]
    assert StridedTensor.from_array(np.flip([1, 34]), "A").array.tolist() == [34, 1]


def test_c10_to_gives_canonical_strides_where_both_orders_fit():
    tensor = StridedTensor(Layout("NCHW", (2, 4, 1, 1), (4, 1, 4, 4)), np.arange(8))
    assert tensor.to("NCHW").layout.strides == (4, 1, 1, 1)
    assert tensor.to("NCHW").to("NHWC").layout.strides == (4, 1, 4, 4)


def test_c12_no_layout_reaches_outside_its_storage():
    with pytest.raises(LabError, match="touches offsets 0 to 999: the storage has 0 to 0"):
        StridedTensor(Layout("A", (1000,), (1,)), np.zeros(1))
    shown = StridedTensor(Layout("A", (1000,), (0,)), np.zeros(1))
    assert shown.array.sum() == 0


def test_c14_a_negative_stride_is_kept_or_refused():
    storage = np.arange(16)
    assert StridedTensor(Layout("A", (4,), (-2,), 8), storage).array.tolist() == [8, 6, 4, 2]
    with pytest.raises(LabError, match="touches offsets -118 to 8"):
        StridedTensor(Layout("A", (4,), (-42,), 8), storage)


@pytest.mark.parametrize("shape", [(2, 0, 3), (0, 2**31 - 1)])
def test_c03_c23_empty_tensors_have_empty_arrays(shape):
    axes = "ABC"[: len(shape)]
    tensor = StridedTensor(Layout.dense(shape, axes), np.zeros(0))
    assert tensor.array.shape == shape
    assert tensor.contiguous().array.shape == shape


def test_c23_what_numpy_cannot_hold_is_a_clean_error():
    with pytest.raises(LabError, match="does not fit 64 bit"):
        _ = StridedTensor(Layout.dense((0, 2**62, 8), "ABC"), np.zeros(0)).array
