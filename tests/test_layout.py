"""Layout against NumPy, which is the judge of every view, and against public bug reports (rows C.. of bugs.md)."""

from itertools import permutations, product
from math import prod

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.lib.stride_tricks import as_strided

from labkit import LabError, Layout

LENGTHS = st.integers(0, 5)


def same_moves(layout, array):
    """Shapes agree, and strides do wherever an axis is longer than 1."""
    assert layout.shape == array.shape
    if layout.size:
        for length, mine, numpys in zip(layout.shape, layout.strides, array.strides, strict=True):
            assert length == 1 or mine * 8 == numpys


# ---- the seed numbers


def test_strides_of_the_worked_example():
    nchw, nhwc = Layout.dense((2, 3, 4, 4), "NCHW"), Layout.dense((2, 3, 4, 4), "NHWC")
    assert [nchw.stride(axis) for axis in "NCHW"] == [48, 16, 4, 1]
    assert [nhwc.stride(axis) for axis in "NHWC"] == [48, 12, 3, 1]
    assert nchw.size == nhwc.size == 96


# ---- property tests


@given(st.data(), st.lists(LENGTHS, min_size=0, max_size=5))
def test_dense_in_any_order_is_a_transposed_numpy_array(data, shape):
    axes = "ABCDE"[: len(shape)]
    memory = "".join(data.draw(st.permutations(axes)))
    layout = Layout.dense(shape, memory, axes=axes)
    array = np.arange(prod(shape)).reshape([shape[axes.index(a)] for a in memory])
    array = array.transpose([memory.index(a) for a in axes])
    same_moves(layout, array)
    assert np.array_equal(layout.offsets(), array)  # the values are the offsets
    assert layout.satisfies(memory)
    assert layout.is_dense


@given(st.data(), st.lists(LENGTHS, min_size=0, max_size=4))
def test_any_chain_of_views_moves_like_numpy(data, shape):
    base = np.arange(prod(shape))
    layout, array = Layout.dense(shape, "ABCD"[: len(shape)]), base.reshape(shape)
    for _ in range(data.draw(st.integers(0, 5))):
        layout, array = data.draw(st.sampled_from([a_slice, a_permutation, a_broadcast, a_split, a_reshape]))(
            data, layout, array
        )
        same_moves(layout, array)
        assert np.array_equal(layout.offsets(), array)
        judge_flags(layout, array)


def a_slice(data, layout, array):
    if not layout.axes:
        return layout, array
    at = data.draw(st.integers(0, array.ndim - 1))
    ends = st.none() | st.integers(-8, 8)
    cut = slice(data.draw(ends), data.draw(ends), data.draw(ends.filter(lambda step: step != 0)))
    index = tuple(cut if p == at else slice(None) for p in range(array.ndim))
    return layout.slice(layout.axes[at], cut.start, cut.stop, cut.step), array[index]


def a_permutation(data, layout, array):
    order = data.draw(st.permutations(range(array.ndim)))
    return layout.permute(layout.axes[p] for p in order), array.transpose(order)


def a_broadcast(data, layout, array):
    wider = [data.draw(st.integers(0, 3)) if n == 1 else n for n in array.shape]
    return layout.broadcast(wider), np.broadcast_to(array, wider)


def a_split(data, layout, array):
    can = [a for a in layout.axes if a.isupper() and a.lower() not in layout.axes and layout.length(a) > 0]
    if not can:
        return layout, array
    axis = data.draw(st.sampled_from(can))
    at, n = layout.axes.index(axis), layout.length(axis)
    block = data.draw(st.sampled_from([b for b in range(1, n + 1) if n % b == 0]))
    # as_strided, because NumPy's reshape copies in cases where a split is a view
    shape = (*array.shape[:at], n // block, block, *array.shape[at + 1 :])
    step = array.strides[at]
    strides = (*array.strides[:at], step * block, step, *array.strides[at + 1 :])
    return layout.split(axis, block), as_strided(array, shape, strides)


def a_reshape(data, layout, array):
    """To one axis less, or the same size elsewhere: a view exactly where NumPy finds one."""
    flat = data.draw(st.booleans())
    wanted = (array.size,) if flat or array.ndim == 0 else (*array.shape[:-2], prod(array.shape[-2:]))
    names = "VWXYZQRS"[: len(wanted)]
    try:
        expected = np.reshape(array, wanted, copy=False)
    except ValueError:
        with pytest.raises(LabError, match="copy first"):
            layout.reshape(wanted, names)
        return layout, array
    return layout.reshape(wanted, names), expected


def judge_flags(layout, array):
    offsets = layout.offsets().ravel()
    assert layout.is_contiguous == (array.flags.c_contiguous or array.size == 0)
    assert layout.distinct == np.unique(offsets).size
    assert layout.bounds == ((offsets.min(), offsets.max()) if offsets.size else None)
    covered = sorted(offsets.tolist())
    assert layout.is_dense == (covered == list(range(covered[0], covered[0] + len(covered))) if covered else True)
    for index in list(np.ndindex(*layout.shape))[:20]:
        assert layout.offset_of(*index) == array[index]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-6, 6)), max_size=3))
def test_dense_and_distinct_agree_with_brute_force_on_wild_strides(pairs):
    layout = Layout("ABC"[: len(pairs)], [n for n, _ in pairs], [s for _, s in pairs], 100)
    offsets = sorted(layout.offsets().ravel().tolist())
    assert layout.distinct == len(set(offsets))
    assert layout.is_dense == (offsets == list(range(offsets[0], offsets[0] + len(offsets))))


@given(st.lists(st.integers(1, 3), min_size=4, max_size=4), st.permutations("NCHW"))
def test_order_is_one_the_layout_satisfies(shape, memory):
    layout = Layout.dense(shape, "".join(memory))
    assert layout.satisfies(layout.order)
    if 1 not in shape:
        assert layout.order == "".join(memory)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 2, 4, 8]))
def test_a_blocked_order_is_numpys_reshape_and_transpose(n, blocks, h, w, block):
    layout = Layout.dense((n, blocks * block, h, w), f"NCHW{block}c")
    stored = np.arange(layout.size).reshape(n, blocks, h, w, block)
    logical = stored.transpose(0, 1, 4, 2, 3)  # N, C, c, H, W
    assert layout.axes == ("N", "C", "c", "H", "W")
    assert np.array_equal(layout.offsets(), logical)
    assert layout.logical_shape == (n, blocks * block, h, w)
    assert layout.satisfies(f"NCHW{block}c")
    assert layout.is_dense


def test_an_order_names_the_blocks_it_was_made_with():
    assert Layout.dense((2, 16, 3, 3), "NCHW8c").order == "NCHW8c"
    assert Layout.dense((32, 16, 3, 3), "OIHW8i16o").order == "OIHW8i16o"
    assert not Layout.dense((2, 16, 3, 3), "NCHW8c").satisfies("NCHW4c")


def test_weights_keep_the_logical_shape_oihw():
    hwio = Layout.dense((8, 4, 3, 5), "HWIO")
    assert hwio.axes == ("O", "I", "H", "W")
    assert hwio.strides == (1, 8, 160, 32)


def test_a_broadcast_of_a_few_elements_is_counted_without_listing_all():
    assert Layout.dense((1, 3, 1, 1)).broadcast((2**20, 3, 2**20, 1)).distinct == 3


# ---- errors that teach


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Layout("NC", (1, 0), ()), "one of each for every axis"),
        (lambda: Layout("NN", (1, 2), (2, 1)), "named 2 times"),
        (lambda: Layout("NC", (1, -2), (2, 1)), "axis C has length -2"),
        (lambda: Layout("NC", (1.5, 2), (2, 1)), "whole numbers"),
        (lambda: Layout.dense((2, 3, 4), "NCHW"), "needs 4"),
        (lambda: Layout.dense((2, 3), "NM", axes="NK"), "do not name the same axes"),
        (lambda: Layout.dense((1, 3, 4, 4), "NCHW8c"), "no multiple of the block 8: pad it to 8"),
        (lambda: Layout.dense((1, 20, 4, 4), "NCHW8c"), "pad it to 24"),
        (lambda: Layout.dense((1, 3, 4, 4)).offset_of(0, 3, 0, 0), "outside axis C of length 3"),
        (lambda: Layout.dense((1, 3, 4, 4)).offset_of(0, 0, -1, 0), "outside axis H"),
        (lambda: Layout.dense((1, 3, 4, 4)).offset_of(0, 0), "2 indices"),
        (lambda: Layout.dense((1, 3, 4, 4)).slice("H", None, None, 0), "step 0"),
        (lambda: Layout.dense((1, 3, 4, 4)).slice("H", 0.5), "whole numbers"),
        (lambda: Layout.dense((1, 3, 4, 4)).slice("X"), "no axis 'X'"),
        (lambda: Layout.dense((1, 3, 4, 4)).permute("NCH"), "each named once"),
        (lambda: Layout.dense((1, 3, 4, 4)).broadcast((1, 6, 4, 4)), "axis C has length 3"),
        (lambda: Layout.dense((1, 3, 4, 4)).split("C", 0), "1 element or more"),
        (lambda: Layout.dense((1, 8, 4, 4)).split("C", 4).split("C", 2), "already has its inner part"),
        (lambda: Layout.dense((2, 3), "NC").reshape((4,), "A"), "6 elements cannot become 4"),
    ],
)
def test_bad_input_says_which_axis_and_which_numbers(make, says):
    with pytest.raises(LabError, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_numpy_integers_become_plain_ones():
    layout = Layout("NC", (np.int64(2), np.int32(3)), np.array([3, 1]), np.uint8(1))
    assert (layout.shape, layout.strides, layout.offset) == ((2, 3), (3, 1), 1)
    assert all(type(n) is int for n in (*layout.shape, *layout.strides, layout.offset))


# ---- rows of the public bug reports (bugs.md, section C)


def test_c01_the_stride_of_a_length_1_axis_is_never_read():
    layout = Layout("ABC", (3, 1, 3), (3, 2**63 - 1, 1))
    assert layout.is_contiguous
    assert layout.is_dense
    assert layout.bounds == (0, 8)
    assert layout.order == "ABC"
    assert np.array_equal(layout.offsets(), np.arange(9).reshape(3, 1, 3))
    assert layout.slice("B", None, None, -1).offsets().max() == 8


def test_c02_a_new_leading_axis_leaves_both_contiguities():
    layout = Layout("AB", (1, 5), (0, 1))
    assert layout.is_contiguous
    assert layout.permute("BA").is_contiguous


def test_c03_an_empty_layout_is_contiguous_and_touches_nothing():
    layout = Layout.dense((2, 0, 3), "ABC").reshape((3, 0, 2), "ABC")
    assert layout.is_contiguous
    assert layout.permute("CBA").is_contiguous
    assert layout.bounds is None
    assert layout.offsets().shape == (3, 0, 2)


def test_c09_the_order_is_told_by_names_not_by_positions():
    stored = Layout.dense((4, 10, 12, 12), "NHWC")
    unpermuted = Layout("NHWC", (4, 12, 12, 10), (1440, 120, 10, 1))
    assert stored.order == unpermuted.order == "NHWC"
    assert unpermuted.permute("NCHW") == stored


def test_c10_axes_of_length_1_satisfy_both_orders():
    layout = Layout("NCHW", (2, 4, 1, 1), (4, 1, 4, 4))
    assert layout.orders() == ("NCHW", "NHWC")
    assert Layout.dense((2, 1, 3, 3), "NHWC").orders() == ("NCHW", "NHWC")
    assert Layout.dense((2, 4, 3, 1), "NHWC").orders() == ("NHWC",)


def test_c16_a_reshape_never_reads_outside():
    padded = np.zeros((4, 5, 5), dtype=int)
    padded[2:] = np.arange(1, 51).reshape(2, 5, 5)
    view = Layout.dense((4, 5, 5), "ABC").reshape((2, 2, 5, 5), "ABCD").reshape((4, 5, 5), "ABC")
    assert np.array_equal(padded.ravel()[view.offsets()], padded)


def test_c17_a_length_1_axis_does_not_stop_merging():
    assert Layout("ABC", (10, 1, 10), (10, 3, 1)).runs() == ((100, 1),)


def test_c20_an_empty_layout_keeps_canonical_strides():
    permuted = Layout.dense((1, 0, 2, 100, 100), "ABCDE").permute("ABDEC")
    assert Layout.dense(permuted.shape, "ABDEC").strides[-1] == 1
    assert Layout.dense((2, 0, 3), "ABC").strides == (3, 3, 1)


@pytest.mark.parametrize("shape", [(0, 2**31 - 1), (0, 2**62, 8)])
def test_c23_an_empty_axis_next_to_a_huge_one_is_an_empty_layout(shape):
    layout = Layout.dense(shape, "ABC"[: len(shape)])
    assert layout.size == 0
    assert layout.bounds is None
    assert layout.is_contiguous


@pytest.mark.parametrize(
    "make",
    [
        lambda: Layout.dense((2, 2, 2**61), "ABC"),
        lambda: Layout("A", (3,), (2**62,)),
        lambda: Layout("A", (3,), (-(2**62),), -5),
        lambda: Layout("A", (2,), (1,), 2**63 - 1),
        lambda: Layout("A", (2,), (-5,), -(2**63) + 2),
        lambda: Layout("A", (1,), (1,), 2**64),
        lambda: Layout.dense((1, 1), "AB").broadcast((2**32, 2**32)),
    ],
)
def test_c24_what_does_not_fit_64_bit_is_refused(make):
    with pytest.raises(LabError, match="does not fit 64 bit"):
        make()


def test_every_order_of_four_axes_gives_24_different_layouts():
    orders = ["".join(order) for order in permutations("NCHW")]
    layouts = {Layout.dense((2, 3, 4, 5), order) for order in orders}
    assert len(layouts) == len(orders)
    for order, index in product(orders[:5], [(0, 0, 0, 0), (1, 2, 3, 4)]):
        layout = Layout.dense((2, 3, 4, 5), order)
        assert layout.offset_of(*index) == layout.offsets()[index]
