"""Lesson 02's walk over tiles: each step is what the kernel does at that step."""

import json

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from labkit import Hardware, LabError, Scratchpad
from labkit.explore import panel, walk
from labkit.explore.tiling import ORDERS
from labkit.kernels.nest import run_nest
from labkit.loops import LoopNest

NPU = Hardware.preset("edge-npu")
THREE = st.tuples(*[st.integers(1, 7)] * 3)


class Watched(LoopNest):
    """A nest that notes, at the start of each step, how many lines its ledger has."""

    def steps(self):
        for ranges in super().steps():
            self.seen.append(dict(ranges))
            self.lines.append(len(self.pad.ledger))
            yield ranges


def run(nest):
    """(index ranges of each step, lines in the ledger at the start of each, the ledger)."""
    watched = Watched(nest.problem, nest.tile, nest.order, nest.c_policy, nest.buffers)
    pad, seen, lines = Scratchpad(2**20), [], []
    for name, value in (("pad", pad), ("seen", seen), ("lines", lines)):
        object.__setattr__(watched, name, value)
    run_nest(watched, {x.name: np.ones(x.shape, x.dtype) for x in nest.problem.inputs}, pad)
    return seen, lines, list(pad.ledger)


@given(THREE, THREE, st.sampled_from(ORDERS), st.sampled_from(["store", "load_store", "spill"]), st.data())
@settings(max_examples=60, deadline=None)
def test_each_step_is_what_the_kernel_does(shape, tile, order, c_policy, data):
    nest = walk.data(shape, tile, order, c_policy).nest
    seen, lines, ledger = run(nest)
    step = data.draw(st.integers(0, len(seen) - 1))
    state = walk.data(shape, tile, order, c_policy, step=step)
    assert state.steps == len(seen)
    assert state.at == seen[step]
    start = lines[step]
    end = lines[step + 1] if step + 1 < len(lines) else len(ledger)
    for visit in state.visits:
        mine = [access for access in ledger if access.value == visit.operand.name]
        now = [access for access in ledger[start:end] if access.value == visit.operand.name]
        assert visit.read_bytes == sum(a.nbytes for a in now if a.kind == "read"), "reads of this step"
        before = [a for a in ledger[:end] if a.value == visit.operand.name and a.kind == "read"]
        assert visit.read_so_far == sum(a.nbytes for a in before)
        if step == len(seen) - 1:
            assert visit.read_so_far + visit.written_so_far == sum(a.nbytes for a in mine)


@given(THREE, THREE, st.sampled_from(ORDERS), st.sampled_from(["store", "load_store", "spill"]))
@settings(max_examples=60, deadline=None)
def test_the_last_step_has_moved_what_the_nest_moves_and_the_steps_add_up(shape, tile, order, c_policy):
    last = walk.data(shape, tile, order, c_policy)
    states = [walk.data(shape, tile, order, c_policy, step=step) for step in range(last.steps)]
    assert states[-1].moved_bytes == last.nest.traffic.nbytes
    assert sum(v.read_bytes + v.write_bytes for s in states for v in s.visits) == last.nest.traffic.nbytes
    assert all(v.is_new == (i == 0) or i > 0 for i, s in enumerate(states) for v in s.visits)


def test_the_drawing_marks_the_tiles_on_chip():
    state = walk.data((4, 6, 4), (2, 2, 2), step=1)
    assert state.drawing().count("#") == 2
    assert state.drawing().count("+") == 1
    assert state.sentence.endswith("On chip: 48 B of 512 KiB. Moved so far: 80 B of 480 B.")
    assert "for k in range(0, 4, 2)" in state.text


def test_too_many_tiles_are_not_drawn_with_characters():
    assert walk.data(tile=(32, 32, 32)).drawing() == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"step": 512}, "512 steps"), ({"step": -1}, "512 steps"), ({"tile": (1, 1, 1)}, "up to 1,000,000")],
)
def test_a_step_that_does_not_exist_is_a_lab_error(arguments, says):
    with pytest.raises(LabError, match=says):
        walk.data(**arguments)


# ---- the view


def test_every_control_changes_picture_and_text():
    view = walk.show(step=5)
    moves = {"step": 6, "order": "nkm", "c_policy": "spill", "buffers": "double", "square": False, "TM": 64, "TN": 32}
    moves |= {"TK": 16, "shape": "512,1024,1024"}
    assert set(moves) == set(view.controls)
    for name, value in moves.items():
        picture, text = view.picture.spec, view.text
        view.controls[name].value = value
        if name != "square":
            assert view.picture.spec != picture, name
            assert view.text != text, name


def test_the_view_shows_what_data_says_on_the_machine_of_the_panel():
    machine = panel.show()
    view = walk.show(machine.state, shape="100,64,32", square=False, TM=20, TN=9, TK=7, order="kmn", step=33)
    machine.set(sram_kib=8, dtype="float16")
    hardware = machine.state.hardware
    state = walk.data((100, 64, 32), (20, 9, 7), "kmn", step=33, hardware=hardware, dtype="float16")
    assert view.text == state.text
    assert view.picture.spec["facts"] == [list(fact) for fact in state.facts]
    assert view.picture.spec["code"] == str(state.nest)


def test_the_step_slider_never_points_past_the_last_step():
    view = walk.show(step=511).set(TM=512)
    assert (view.controls["step"].value, view.controls["step"].max) == (7, 7)
    assert "step 7 of 8" in view.text


def test_too_many_steps_are_a_sentence_and_the_next_tile_repairs_it():
    view = walk.show(TM=1)
    assert "1,073,741,824 steps" in view.picture.spec["error"]
    assert "error" not in view.set(TM=64).picture.spec


def test_the_picture_travels_as_a_small_message():
    assert len(json.dumps(walk.show(step=77).picture.spec)) < 1500


def test_a_saved_notebook_keeps_the_picture_in_characters():
    bundle = walk.show(step=9)._repr_mimebundle_()
    assert ".#......" in bundle["text/plain"]
    assert "0x" not in bundle["text/plain"]
