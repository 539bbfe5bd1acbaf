"""Lesson 03's depth-first pair: gains against the kernel that runs, windows against a walk back, and the live view."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib.figure import Figure

from labkit import Hardware, LabError, Scratchpad
from labkit.explore import depth, depth_view, panel
from labkit.kernels.conv import conv2d
from tests.explore.controls import every_control_moves

NPU = Hardware.preset("edge-npu")
SMALL = st.integers(3, 13), st.integers(1, 3), st.sampled_from(depth.KERNELS), st.sampled_from(depth.FORMS)


@given(*SMALL, st.data())
@settings(max_examples=80, deadline=None)
def test_the_curve_is_what_the_kernel_says_at_each_tile(size, channels, kernel, form, draw):
    tile = draw.draw(st.integers(1, size))
    state = depth.data(size, channels, kernel, form, tile)
    assert state.gain == (state.pair.saved_bytes, state.pair.extra_flops)
    assert state.curve[tile - 1] == state.gain
    assert state.together.dram_bytes == state.pair.traffic.nbytes
    assert state.together.flops == state.pair.flops


@pytest.mark.parametrize(("form", "tile"), [("square", 5), ("square", 14), ("strip", 3)])
def test_what_is_saved_is_what_two_runs_count(form, tile):
    state = depth.data(14, 4, 3, form, tile)
    x, w = np.ones((1, 4, 14, 14), np.float32), np.ones((4, 4, 3, 3), np.float32)
    together, apart = Scratchpad("1MiB"), Scratchpad("1MiB")
    y = state.pair.run(x, w, w, together)
    columns = tile if form == "square" else 14
    plan = {"tile": {"p": tile, "q": columns}, "pads": (1, 1, 1, 1)}
    assert np.allclose(y, conv2d(conv2d(x, w, apart, **plan), w, apart, **plan))
    assert apart.ledger.traffic.nbytes - together.ledger.traffic.nbytes == state.gain.saved_bytes
    assert together.high_water_bytes == state.pair.working_set_bytes


@given(*SMALL, st.data())
@settings(max_examples=60, deadline=None)
def test_a_window_is_all_that_the_taps_reach(size, channels, kernel, form, draw):
    state = depth.data(size, channels, kernel, form, draw.draw(st.integers(1, size)))
    image, between, result = state.windows
    wanted = np.zeros((size, size), bool)
    wanted[result.top : result.top + result.rows, result.left : result.left + result.columns] = True
    for window in (between, image):
        reach, pad = np.zeros((size + kernel, size + kernel), bool), kernel // 2
        for p, q in np.argwhere(wanted):
            reach[p : p + kernel, q : q + kernel] = True
        wanted = reach[pad : pad + size, pad : pad + size]
        rows, columns = np.flatnonzero(wanted.any(1)), np.flatnonzero(wanted.any(0))
        assert window == (rows[0], columns[0], len(rows), len(columns))


@pytest.mark.parametrize("form", depth.FORMS)
@pytest.mark.parametrize("sram_kib", [1, 3, 5, 9, 64])
def test_the_largest_tile_fits_and_no_larger_one_does(form, sram_kib):
    machine = replace(NPU, sram_bytes=sram_kib * 1024)
    largest = depth.data(14, 4, 3, form, hardware=machine).largest
    fits = [depth.data(14, 4, 3, form, tile, machine).fits for tile in range(1, 15)]
    assert largest == max((tile for tile, fit in enumerate(fits, 1) if fit), default=0)


def test_the_worked_example():
    state = depth.data()
    assert state.gain == (1_587_200, 52_199_424)
    assert [window[2:] for window in state.windows] == [(18, 18), (16, 16), (14, 14)]
    assert "1.70 × as fast" in state.sentence
    assert "0.90 × as fast" in depth.data(hardware=Hardware.preset("dsp")).sentence


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"tile": 0}, "tile of 0 rows: the result has 56"),
        ({"tile": 57}, "tile of 57 rows"),
        ({"form": "disc"}, "no form of tile 'disc'"),
        ({"size": 0}, "h is 0"),
        ({"channels": -1}, "c is -1"),
    ],
)
def test_a_state_that_cannot_exist_is_a_lab_error(arguments, says):
    with pytest.raises(LabError, match=says):
        depth.data(**arguments)


# ---- the view


def test_every_control_changes_picture_and_text():
    view = depth.show(size=28, tile=7)
    moves = {"tile": 6, "form": "strip", "size": 14, "channels": 16, "kernel": 5}
    every_control_moves(view, moves)


def test_the_artists_stand_where_the_state_says():
    parts = depth_view._draw(Figure(), depth.data(14, 16))
    for tile in (1, 4, 14):
        state = depth.data(14, 16, tile=tile, hardware=replace(NPU, sram_bytes=40 * 1024))
        depth_view._move(parts, state)
        for rectangle, window in zip(parts.windows, state.windows, strict=True):
            assert rectangle.get_bbox().bounds == (window.left, window.top, window.columns, window.rows)
        wanted = (state.gain.saved_bytes / 1024, 100 * state.extra_share)
        for mark, axes, value in zip(parts.marks, parts.axes, wanted, strict=True):
            assert mark.get_xdata() == [tile]
            assert mark.get_ydata()[0] == pytest.approx(np.clip(value, *axes.get_ylim()))
        assert parts.room.get_xdata() == [state.largest] * 2
        assert ("more" in parts.words[0].get_text()) == (state.gain.saved_bytes < 0)


def test_the_view_shows_what_data_says_on_the_machine_of_the_panel():
    machine = panel.show()
    view = depth.show(machine.state, size=28, channels=32, kernel=5, form="strip", tile=9)
    machine.set(preset="dsp")
    assert view.text == depth.data(28, 32, 5, "strip", 9, Hardware.preset("dsp")).sentence
    picture = view.png
    machine.set(sram_kib=192)
    assert view.png != picture, "the line of the largest tile moves"


def test_the_tile_slider_never_points_past_the_image():
    view = depth.show(tile=40).set(size=14)
    assert (view.controls["tile"].value, view.controls["tile"].max) == (14, 14)
    assert "square tiles of 14 rows" in view.text


def test_a_tile_that_does_not_fit_says_so_and_has_no_time():
    text = depth.show(tile=28).text
    assert "does not fit. Largest that fits: " in text
    assert text.endswith("No time: edge-npu cannot run a tile that does not fit.")
    machine = panel.show().set(sram_kib=64)
    assert "Largest that fits: none" in depth.show(machine.state).text


def test_a_saved_notebook_keeps_picture_and_text():
    bundle = depth.show(size=14, tile=7)._repr_mimebundle_()
    assert "9×9 of the image" in bundle["text/plain"]
    assert "0x" not in bundle["text/plain"]
    assert bundle["image/png"]
