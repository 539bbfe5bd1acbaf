"""Lesson 02's halo: loads of each pixel against brute force and against the traffic of the nest."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib.figure import Figure

from labkit import Hardware, LabError
from labkit.explore import halo, halo_view, panel
from tests.explore.controls import every_control_moves


@given(st.integers(5, 12), st.sampled_from([1, 3, 5]), st.sampled_from([1, 2, 3]), st.tuples(*[st.integers(1, 12)] * 2))
@settings(max_examples=60, deadline=None)
def test_loads_are_those_of_windows_put_down_one_by_one(size, kernel, stride, tile):
    state = halo.data(size, kernel, stride, tile, channels=2)
    loads, pad = np.zeros((size, size), int), kernel // 2
    for number in range(state.tiles):
        rows, columns = halo.data(size, kernel, stride, tile, number=number, channels=2).output
        window = np.zeros((size + 2 * pad, size + 2 * pad), bool)
        for p in rows:
            for q in columns:
                window[p * stride : p * stride + kernel, q * stride : q * stride + kernel] = True
        loads += window[pad : pad + size, pad : pad + size]
    assert np.array_equal(state.loads, loads)
    assert loads.sum() * 2 * 4 == state.nest.by_operand["X"].read_bytes


@given(st.integers(5, 12), st.sampled_from([1, 3, 5]), st.sampled_from([1, 2]), st.tuples(*[st.integers(1, 12)] * 2))
@settings(max_examples=60, deadline=None)
def test_sliding_loads_what_the_nest_counts_and_never_more_than_reloading(size, kernel, stride, tile):
    reload, slide = (halo.data(size, kernel, stride, tile, policy, channels=2) for policy in ("reload", "slide"))
    assert slide.loads.sum() * 2 * 4 == slide.nest.by_operand["X"].read_bytes
    assert (slide.loads <= reload.loads).all()


def test_the_worked_example():
    state = halo.data(number=5)
    assert [len(positions) for positions in state.window] == [16, 16]
    assert "3,844 pixels of an image of 3,136: 1.226 ×" in state.sentence
    assert state.shared == 16 * 16 - 12 * 12


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"number": 16}, "16 tiles"),
        ({"number": -1}, "16 tiles"),
        ({"tile": (0, 1)}, "at least 1"),
        ({"size": 0}, "h is 0"),
    ],
)
def test_a_state_that_cannot_exist_is_a_lab_error(arguments, says):
    with pytest.raises(LabError, match=says):
        halo.data(**arguments)


def test_every_control_changes_picture_and_text():
    view = halo.show()
    moves = {"halo": "slide", "size": 28, "kernel": 5, "stride": 2, "TP": 3, "TQ": 4, "number": 7}
    every_control_moves(view, moves)


def test_the_artists_stand_where_the_state_says():
    parts = halo_view._draw(Figure(), halo.data(size=14, tile=(4, 4)))
    state = halo.data(size=14, tile=(4, 3), number=7)
    halo_view._move(parts, state)
    assert np.array_equal(parts.loads.get_array(), state.loads)
    (rows, columns), (p, q) = state.window, state.output
    assert parts.window.get_bbox().extents.tolist() == [
        columns[0] - 0.5,
        rows[0] - 0.5,
        columns[-1] + 0.5,
        rows[-1] + 0.5,
    ]
    assert parts.tile.get_bbox().extents.tolist() == [q.start, p.start, q.stop, p.stop]
    assert parts.columns.get_ydata().tolist() == state.column_loads.tolist()
    assert parts.rows.get_xdata()[::2].tolist() == state.row_loads.tolist()
    assert [text.get_text() for text in parts.titles] == ["window of 6×5", "tile 8 of 20: 4×3"]


def test_the_view_shows_what_data_says_on_the_machine_of_the_panel():
    machine = panel.show()
    view = halo.show(machine.state, size=28, kernel=5, TP=5, TQ=9, halo="slide", number=3)
    machine.set(preset="dsp", dtype="float16")
    state = halo.data(28, 5, 1, (5, 9), "slide", 3, hardware=Hardware.preset("dsp"), dtype="float16")
    assert view.text == state.sentence


def test_the_tile_slider_never_points_past_the_last_tile():
    view = halo.show(number=15).set(TP=56)
    assert (view.controls["number"].value, view.controls["number"].max) == (3, 3)
    assert "Tile 4 of 4" in view.text


def test_a_window_that_does_not_fit_says_so():
    assert "does not fit" in halo.show().set(TP=56, TQ=56).text
