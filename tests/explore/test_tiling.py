"""Lesson 02's plot: the state as a value, and the view that follows its controls and the panel."""

import subprocess
import sys
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib.figure import Figure

from labkit import Hardware, LabError, Scratchpad
from labkit.explore import caches, panel, tiling, tiling_view
from labkit.kernels.matmul import tiled_matmul
from labkit.memory.cache import Cache, simulate
from labkit.memory.nest_trace import nest_trace

NPU = Hardware.preset("edge-npu")
SMALL = replace(NPU, sram_bytes=32 * 1024)
THREE = st.tuples(*[st.integers(1, 12)] * 3)


@given(THREE, THREE, st.sampled_from(tiling.ORDERS), st.sampled_from(["store", "load_store", "spill"]))
@settings(max_examples=40, deadline=None)
def test_the_state_of_a_scratchpad_is_what_a_run_counts(shape, tile, order, c_policy):
    m, n, k = shape
    state = tiling.data(shape, tile, order, c_policy, hardware=NPU)
    pad = Scratchpad(NPU.sram_bytes)
    tiled_matmul(np.ones((m, k), np.float32), np.ones((k, n), np.float32), tile, pad, order, c_policy)
    assert state.traffic.nbytes == pad.ledger.traffic.nbytes
    assert state.nest.working_set_bytes == pad.high_water_bytes
    assert state.traffic.nbytes <= state.worst_bytes
    assert state.bound_bytes <= state.traffic.nbytes


@pytest.mark.parametrize(
    ("arguments", "intensity"),
    [
        *(({}, 30.12), ({"c_policy": "load_store"}, 28.44), ({"c_policy": "spill"}, 16.0)),
        *(({"tile": (342, 342, 1)}, 73.14), ({"tile": (16, 16, 16)}, 3.97), ({"buffers": "double"}, 30.12)),
    ],
)
def test_the_intensities_of_the_lesson(arguments, intensity):
    assert round(tiling.data(**arguments).estimate.intensity, 2) == intensity


def test_a_tile_of_256_does_not_fit_a_scratchpad_and_halves_on_lru():
    assert tiling.data(tile=(256,) * 3).traffic is None
    shape, tile, sram = caches.twin((1024,) * 3, (256,) * 3, 512 * 1024, 4)
    machine = replace(NPU, sram_bytes=sram)
    roomy = tiling.data(shape, tile, hardware=replace(NPU, sram_bytes=2**20))
    lru, opt = (tiling.data(shape, tile, memory=memory, hardware=machine) for memory in ("lru", "opt"))
    assert 4 * roomy.estimate.intensity == pytest.approx(56.89, abs=0.01)
    assert 4 * lru.estimate.intensity == pytest.approx(32.0, abs=0.01)
    assert lru.bound_bytes < opt.traffic.nbytes < lru.traffic.nbytes


@pytest.mark.parametrize("sram_bytes", [64, 1024, 4096, 32768, 200_000, 2**22])
def test_the_curve_of_an_lru_cache_is_what_the_simulator_says_at_each_size(sram_bytes):
    machine = replace(NPU, sram_bytes=sram_bytes)
    state = tiling.data((64, 48, 80), (16, 16, 16), memory="lru", hardware=machine)
    counts = simulate(nest_trace(state.nest), Cache(sram_bytes, None, 64), kinds=False)
    sizes, moved = state.own
    at = np.searchsorted(sizes, sram_bytes, side="right") - 1
    assert moved[at] == state.traffic.nbytes == counts.misses * 64 + counts.write_bytes
    assert list(moved) == sorted(moved, reverse=True)


@given(THREE, THREE, st.integers(12, 4096))
@settings(max_examples=40, deadline=None)
def test_nobody_is_below_the_bound_and_no_tile_below_the_best(shape, tile, sram_bytes):
    state = tiling.data(shape, tile, hardware=replace(NPU, sram_bytes=sram_bytes))
    assert state.bound_bytes <= state.slope.bytes_at(sram_bytes)
    if state.traffic:
        assert state.slope.bytes_at(sram_bytes) <= state.traffic.nbytes


def test_another_element_type_changes_bytes_and_bound():
    full, half = tiling.data(), tiling.data(dtype="float16")
    assert half.traffic.read_bytes * 2 == full.traffic.read_bytes
    assert half.bound_bytes < full.bound_bytes
    assert "float16" in half.sentence


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"shape": (0, 4, 4)}, "m is 0"),
        ({"shape": (10**9,) * 3, "memory": "lru"}, "too large to simulate"),
        ({"tile": (0, 1, 1)}, "at least 1"),
        ({"order": "mnm"}, "loop order"),
        ({"memory": "fifo"}, "choose one of scratchpad"),
        ({"dtype": "float8"}, "float8"),
    ],
)
def test_a_state_that_cannot_exist_is_a_lab_error(arguments, says):
    with pytest.raises(LabError, match=says):
        tiling.data(**arguments)


def test_a_twin_that_is_no_whole_number_is_refused():
    with pytest.raises(LabError, match="must divide"):
        caches.twin((1000,) * 3, (250,) * 3, 2**19, 4)


# ---- the view


def test_every_control_changes_picture_and_text():
    view = tiling.show(panel.HardwareState(hardware=SMALL), shape="128", square=False, TM=32, TN=32, TK=16)
    moves = {"order": "nkm", "c_policy": "spill", "buffers": "double", "TM": 8, "TN": 4, "TK": 2, "memory": "lru"}
    moves |= {"shape": "96,128,64", "square": True}
    assert set(moves) == set(view.controls)
    for name, value in moves.items():
        picture, text = view.png, view.text
        view.controls[name].value = value
        assert view.text != text, name
        assert view.png != picture or name in ("order", "buffers"), name  # a mark may stay where it was


@pytest.mark.parametrize("memory", ["scratchpad", "lru", "opt"])
def test_the_artists_stand_where_the_state_says(memory):
    figure = Figure()
    parts = tiling_view._draw(figure, tiling.data((64,) * 3, (8,) * 3, memory=memory, hardware=NPU))
    for tile, marker in (((32,) * 3, "*"), ((64, 64, 1), "X" if memory == "scratchpad" else "*")):
        state = tiling.data((64,) * 3, tile, memory=memory, hardware=replace(NPU, sram_bytes=12 * 1024))
        tiling_view._move(parts, state)
        assert tuple(map(list, parts.mark.get_data())) == ([state.point[0]], [state.point[1]])
        assert parts.mark.get_marker() == marker
        assert [tuple(values) for values in parts.own.get_data()] == [tuple(values) for values in state.own]
        assert list(parts.room.get_xdata()) == [12 * 1024] * 2
        assert parts.room_label.get_text() == "SRAM 12 KiB"


def test_the_view_shows_what_data_says():
    view = tiling.show(panel.HardwareState(hardware=SMALL)).set(shape="100,64,32", square=False, TM=20, TN=9, TK=7)
    view.set(order="kmn", c_policy="load_store", buffers="double_all")
    state = tiling.data((100, 64, 32), (20, 9, 7), "kmn", "load_store", "double_all", hardware=SMALL)
    assert view.text == state.sentence


def test_the_panel_moves_the_plot():
    machine = panel.show()
    view = tiling.show(machine.state)
    picture = view.png
    machine.set(sram_kib=64)
    assert "Scratchpad of 64 KiB: the tiles need 192 KiB, which does not fit" in view.text
    assert view.png != picture
    machine.set(dtype="float16")
    assert view.text == tiling.data(hardware=machine.state.hardware, dtype="float16").sentence


def test_a_cache_has_no_policy_to_choose():
    view = tiling.show(shape="128", TM=32, c_policy="spill", memory="lru")
    assert view.controls["c_policy"].disabled
    assert view.controls["buffers"].disabled
    assert view.text == tiling.data((128,) * 3, (32,) * 3, memory="lru").sentence
    assert not view.set(memory="scratchpad").controls["c_policy"].disabled


def test_of_a_square_tile_only_one_slider_counts_and_the_others_say_so():
    view = tiling.show(TM=64, TN=7)
    assert "tile 64×64×64" in view.text
    assert view.controls["TN"].disabled
    assert "tile 64×7×128" in view.set(square=False).text
    assert not view.controls["TN"].disabled


@pytest.mark.parametrize("typed", ["", "-1", "0", "a,b,c", "1,2", "1000000000000000000000", "10.5", "<b>"])
def test_bad_input_is_a_sentence_and_the_next_input_repairs_it(typed):
    view = tiling.show(TM=96)
    good = view.text, view.png
    view.controls["shape"].value = typed
    assert view.text.startswith("Cannot show this: ")
    assert "Error" not in view.text, "labkit's own words, not those of a control"
    assert "<b>" not in view._status.value
    assert view.png == good[1]
    view.controls["shape"].value = "1024"
    assert (view.text, view.png) == good


def test_a_billion_is_drawn_or_refused_but_never_hangs():
    assert "GiB" in tiling.show().set(shape="1000000").text
    assert "Cannot show" in tiling.show().set(shape="1000000000").text


def test_set_refuses_what_a_control_cannot_be():
    with pytest.raises(LabError, match="control TM cannot be 'many'"):
        tiling.show().set(TM="many")


def test_the_state_needs_no_widgets():
    code = "import sys; from labkit.explore import tiling, walk, halo; tiling.data(); walk.data(); halo.data(); "
    code += "sys.exit('ipywidgets' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
