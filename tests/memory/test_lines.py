"""Lines of a walk against a brute-force count over single bytes."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from labkit import LabError, Layout
from labkit.memory.lines import WALKS, addresses, line_use, straddling


def brute_force(runs, itemsize, line_bytes):
    """(lines, bytes used, straddles), byte by byte with sets."""
    lines = used = straddles = 0
    for run in runs:
        touched = {address + i for address in run.tolist() for i in range(itemsize)}
        lines += len({byte // line_bytes for byte in touched})
        used += len(touched)
        straddles += any(byte + 1 in touched and (byte + 1) % line_bytes == 0 for byte in touched)
    return lines, used, straddles


def test_pixels_5_and_10_of_the_first_16_straddle():
    image = addresses(Layout.dense((1, 3, 4, 4), "NHWC"))
    assert straddling(image, itemsize=4, line_bytes=64) == [5, 10]
    assert (image[5].min(), image[5].max() + 3) == (60, 71)
    assert (image[10].min(), image[10].max() + 3) == (120, 131)


def test_a_pixel_touches_a_line_a_channel_in_nchw_and_one_line_in_nhwc():
    nchw, nhwc = (line_use(addresses(Layout.dense((2, 3, 4, 4), o))[0], 4, 64) for o in ("NCHW", "NHWC"))
    assert (nchw.lines_touched, nchw.bytes_used, nchw.bytes_fetched) == (3, 12, 192)
    assert (nhwc.lines_touched, nhwc.bytes_used, nhwc.bytes_fetched) == (1, 12, 64)
    assert nhwc.useful_share == 12 / 64


def test_no_pixel_straddles_when_its_bytes_divide_an_aligned_line():
    four_channels = Layout.dense((1, 4, 8, 8), "NHWC")
    assert straddling(addresses(four_channels), 4, 64) == []
    assert straddling(addresses(four_channels, base=8), 4, 64) == [3 + 4 * i for i in range(16)]


def test_a_vector_longer_than_a_line_always_straddles():
    assert line_use(addresses(Layout.dense((1, 32, 2, 2), "NHWC")), 4, 64).straddles == 4


ORDERS = st.sampled_from(["NCHW", "NHWC", "CHWN", "NCHW2c", "NCHW4c"])


@given(
    st.tuples(st.integers(0, 2), st.sampled_from([4, 8]), st.integers(1, 4), st.integers(1, 4)),
    ORDERS, st.sampled_from(sorted(WALKS)), st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 6, 16, 32]),
    st.integers(0, 70),
)  # fmt: skip
def test_every_figure_equals_the_count_byte_by_byte(shape, order, walk, itemsize, line_bytes, base):
    runs = addresses(Layout.dense(shape, order), walk, itemsize, base)
    use = line_use(runs, itemsize, line_bytes)
    assert (use.lines_touched, use.bytes_used, use.straddles) == brute_force(runs, itemsize, line_bytes)
    assert use.bytes_fetched == use.lines_touched * line_bytes
    assert len(straddling(runs, itemsize, line_bytes)) == use.straddles


@given(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.sampled_from([1, 4]), st.sampled_from([4, 10, 16]))
def test_scattered_and_repeated_addresses_count_once(addresses, itemsize, line_bytes):
    run = np.array([addresses])
    use = line_use(run, itemsize, line_bytes)
    assert (use.lines_touched, use.bytes_used, use.straddles) == brute_force(run, itemsize, line_bytes)


@pytest.mark.parametrize(("walk", "inner"), [("channel", "C"), ("row", "W"), ("plane", "HW"), ("image", "CHW")])
def test_a_run_varies_its_own_axes_only(walk, inner):
    shape = (2, 3, 4, 5)
    layout = Layout.dense(shape, "NHWC")
    outer = [a for a in "NCHW" if a not in inner]
    order = [*outer, *inner]
    table = layout.offsets().transpose(["NCHW".index(a) for a in order])
    runs = addresses(layout, walk, itemsize=1)
    assert np.array_equal(runs, table.reshape(runs.shape))
    assert runs.shape[1] == np.prod([layout.length(a) for a in inner])


def test_whole_is_one_run_over_every_element():
    assert addresses(Layout.dense((2, 3, 4, 4), "NHWC"), "whole").shape == (1, 96)


def test_an_unaligned_element_may_need_two_lines():
    assert line_use(np.array([62]), itemsize=4, line_bytes=64).lines_touched == 2
    assert line_use(np.array([0]), itemsize=16, line_bytes=4).lines_touched == 4


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: addresses(Layout.dense((1, 1, 1, 1)), "diagonal"), "there are: channel, row"),
        (lambda: addresses(Layout.dense((2, 3), "NC"), "row"), "no axis W"),
        (lambda: addresses(Layout.dense((1, 1, 1, 1)), "row", 4, -4), "start at 0"),
        (lambda: addresses(Layout("NCHW", (2, 1, 1, 1), (-1, 0, 0, 0), 0)), "start at 0"),
        (lambda: addresses(Layout.dense((1, 1, 1, 2)), "row", 4, 2**63 - 8), "fit 64 bit"),
        (lambda: addresses(Layout.dense((1, 1, 1, 1)), "row", 0), "item size 0"),
        (lambda: addresses(Layout.dense((2**10, 2**10, 2**10, 1))), "counted for up to"),
        (lambda: line_use(np.array([0]), 4, 0), "a line of 0 bytes"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, says):
    with pytest.raises(LabError, match=says):
        call()
