"""Lesson 01's explorer: the state as a value, and the view that follows its controls."""

import json
import re
import subprocess
import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from labkit import LabError, Layout
from labkit.explore import layouts
from tests.explore.controls import every_control_moves

ORDERS = st.sampled_from(["NCHW", "NHWC"])


@given(st.tuples(*[st.integers(1, 4)] * 4), ORDERS, st.sampled_from(["channel", "row", "plane", "whole"]), st.data())
def test_the_strip_marks_exactly_what_the_run_reads(shape, order, walk, data):
    run = data.draw(st.integers(0, layouts.run_count(shape, walk) - 1))
    state = layouts.data(shape, order, walk, run, line_bytes=128, base=data.draw(st.sampled_from([0, 4, 60])))
    read = {"channel": "C", "row": "W", "plane": "HW", "whole": "NCHW"}[walk]
    count = 1
    for axis, length in zip("NCHW", shape, strict=True):
        count *= length if axis in read else 1
    assert len(set(state.touched)) == count
    assert state.strip().count("#") == count
    assert sum(state.strip().count(mark) for mark in "#.") == state.layout.size


def test_the_state_of_the_worked_example():
    state = layouts.data((1, 3, 4, 4), "NHWC", run=5)
    assert state.touched == (15, 16, 17)
    assert (state.use.lines_touched, state.use.bytes_used, state.use.bytes_fetched) == (2, 12, 128)
    assert state.straddling == (5, 10)
    assert state.position == "n=0 h=1 w=1, every c"
    assert dict(state.facts)["Crosses a line border"] == "yes"
    assert state.strip().splitlines()[:2] == ["line 0 |...............#|", "line 1 |##..............|"]


def test_position_names_the_indices_of_the_run():
    layout = Layout.dense((2, 3, 4, 5))
    for run in range(2 * 3 * 4):
        state = layouts.data((2, 3, 4, 5), "NCHW", "row", run)
        n, c, h = map(int, re.findall(r"=(\d)", state.position))
        assert state.touched[0] == layout.offset_of(n, c, h, 0)


def test_touched_lines_are_drawn_even_when_they_are_far_apart():
    state = layouts.data((2, 16, 8, 8), "NCHW")
    assert state.lines == 128
    assert [row for row in state.rows if row % 4 == 0] == list(state.rows)
    assert "(3 lines left out)" in state.strip()
    assert layouts.data((2, 8, 8, 8), "NCHW", run=1, base=60).strip().count("#") == 8


def test_axes_of_length_1_satisfy_two_orders_and_the_text_says_so():
    assert dict(layouts.data((1, 1, 4, 4), "NHWC").facts)["Memory order"] == "NHWC, and NCHW too"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"order": "NCHW8c"}, "pad it to 8"),
        ({"run": 32}, "32 runs"),
        ({"run": -1}, "32 runs"),
        ({"base": 2}, "whole elements"),
        ({"line_bytes": 30}, "whole elements"),
        ({"walk": "zigzag"}, "no walk"),
    ],
)
def test_a_state_that_cannot_exist_is_a_lab_error(arguments, says):
    with pytest.raises(LabError, match=says):
        layouts.data(**arguments)


@given(st.tuples(*[st.integers(1, 4)] * 4), st.sampled_from(layouts.WEIGHT_ORDERS), st.data())
def test_a_strip_of_weights_marks_what_the_run_reads(shape, order, data):
    walk = data.draw(st.sampled_from(["outputs", "inputs", "row", "filter", "whole"]))
    run = data.draw(st.integers(0, layouts.run_count(shape, walk, order) - 1))
    state = layouts.data(shape, order, walk, run)
    offsets = np.arange(np.prod(shape))
    place = {"OIHW": (0, 1, 2, 3), "HWIO": (2, 3, 1, 0)}[order]  # NumPy is the judge: the memory as an array
    memory = offsets.reshape([shape[axis] for axis in place]).transpose(np.argsort(place))
    read = {"outputs": "O", "inputs": "I", "row": "W", "filter": "IHW", "whole": "OIHW"}[walk]
    fixed = [axis for axis in "OIHW" if axis not in read]
    index = np.unravel_index(run, [n for axis, n in zip("OIHW", shape, strict=True) if axis in fixed] or [1])
    at = dict(zip(fixed, index, strict=False))
    assert sorted(state.touched) == sorted(memory[tuple(at.get(axis, slice(None)) for axis in "OIHW")].ravel().tolist())


def test_a_walk_of_activations_is_none_of_weights():
    with pytest.raises(LabError, match="no axis C here"):
        layouts.data((2, 2, 3, 3), "OIHW", "channel")


# ---- the view


def test_every_control_of_a_strip_of_weights_changes_picture_and_text():
    view = layouts.show((8, 4, 3, 3), "OIHW")
    moves = {"order": "HWIO", "walk": "inputs", "line_bytes": 32, "O": 4, "I": 3, "H": 5, "W": 2, "run": 3, "base": 4}
    every_control_moves(view, moves, lambda view: view._strip.spec)


def test_every_control_changes_picture_and_text():
    view = layouts.show((2, 3, 4, 4), "NHWC")
    moves = {"order": "NCHW", "walk": "row", "line_bytes": 32, "N": 1, "C": 4, "H": 5, "W": 6, "run": 3, "base": 4}
    every_control_moves(view, moves, lambda view: view._strip.spec)


def test_the_view_shows_what_data_says():
    view = layouts.show().set(order="NCHW", N=1, C=5, H=3, W=2, walk="plane", run=4, line_bytes=32, base=8)
    state = layouts.data((1, 5, 3, 2), "NCHW", "plane", 4, 32, 4, 8)
    assert view.text == f"{state.headline}:\n{state.cost}\n{state.strip()}"
    assert view._strip.spec["touched"] == list(state.touched)
    assert view._strip.spec["facts"] == [list(fact) for fact in state.facts]


def test_the_run_slider_never_points_past_the_last_run():
    view = layouts.show((2, 3, 4, 4)).set(run=31)
    view.set(walk="plane")
    assert (view.controls["run"].value, view.controls["run"].max) == (5, 5)
    assert "run 5 of 6" in view.text


def test_a_refused_state_is_a_sentence_and_the_next_move_repairs_it():
    view = layouts.show((1, 3, 4, 4)).set(order="NCHW4c")
    assert "pad it to 4" in view.text
    assert "pad it to 4" in view._strip.spec["error"]
    assert "error" not in view.set(C=8)._strip.spec


def test_any_other_error_in_a_callback_is_shown_too(monkeypatch):
    view = layouts.show()
    monkeypatch.setattr(layouts, "data", lambda *_, **__: 1 / 0)
    view.set(C=4)
    assert "ZeroDivisionError" in view._strip.spec["error"]


def test_set_refuses_a_name_that_is_no_control():
    with pytest.raises(LabError, match="no control 'channels'"):
        layouts.show().set(channels=3)


def test_a_saved_notebook_keeps_the_state_in_text_without_addresses():
    view = layouts.show()
    bundle = view._repr_mimebundle_()
    assert bundle["text/plain"] == view.text
    assert "1 line of 64 bytes touched" in bundle["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "0x" not in bundle["text/plain"]


def test_the_picture_travels_as_a_small_message():
    view = layouts.show()
    assert len(json.dumps(view._strip.spec)) < 1000


def test_the_state_needs_no_widgets():
    code = "import sys; from labkit.explore import layouts; layouts.data(); sys.exit('ipywidgets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
