"""Lesson 03's ledger: bytes by tensor against a run on a Scratchpad, FLOP against the op table, and the live view."""

import subprocess
import sys
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib.figure import Figure

import labkit
from labkit import Hardware, LabError, Scratchpad
from labkit.explore import ledger, ledger_view, panel
from tests.explore.controls import every_control_moves

NPU = Hardware.preset("edge-npu")


@given(
    st.sampled_from(ledger.BLOCKS),
    st.sampled_from([*ledger.VERSIONS]),
    st.integers(1, 6),
    st.integers(3, 11),
    st.integers(4, 20),
)
@settings(max_examples=60, deadline=None)
def test_each_tensor_moves_what_a_run_counts(block, version, channels, size, sram_kib):
    state = ledger.data(block, version, channels, size, replace(NPU, sram_bytes=sram_kib * 1024))
    pad = Scratchpad(state.hardware.sram_bytes)
    ones = {x.name: np.ones(x.shape, np.float32) for x in state.nest.problem.inputs}
    state.chain.run(ones, pad, fused=state.is_fused)
    counted = pad.ledger.by("value")
    for name, traffic in state.moved.items():
        mine = [counted[own] for own in ledger.TENSORS[name] if own in counted]
        assert traffic.read_bytes == sum(one.read_bytes for one in mine), name
        assert traffic.write_bytes == sum(one.write_bytes for one in mine), name
    assert state.ledger.traffic.nbytes == pad.ledger.traffic.nbytes
    assert state.launches == pad.launches
    assert state.working_set_bytes == pad.high_water_bytes


@pytest.mark.parametrize("block", ledger.BLOCKS)
def test_the_arithmetic_is_that_of_the_op_table(parse, block):
    text = "c = Conv<pads=[1,1,1,1]>(x, w) n = BatchNormalization(c, s, s, s, s) "
    text += "a = Add(n, r) y = Relu(a)" if "Add" in block else "y = Relu(n)"
    head = "g (float[1,4,6,6] x, float[4,4,3,3] w, float[4] s, float[1,4,6,6] r) => (float[1,4,6,6] y)"
    graph = parse(f"{head} {{ {text} }}")
    state = ledger.data(block, channels=4, size=6)
    assert [kernel.flops for kernel in state.kernels] == [one.estimate.flops for one in labkit.cost(graph, NPU)]
    assert [estimate.dram_bytes for estimate in state.estimates] == [
        one.estimate.dram_bytes + 3 * 16 * (one.node.op == "BatchNormalization") for one in labkit.cost(graph, NPU)
    ], "one vector stands for four in this graph"


def test_the_numbers_of_the_course():
    moved = {name: state.ledger.traffic.nbytes for name, state in ledger.data().versions.items()}
    assert moved["apart"] - moved["fused"] == 3_211_264
    assert moved["apart"] - moved["folded"] == 1_605_632 + 768
    assert moved["folded"] - moved["folded, fused"] == 1_605_632
    _, bn, relu = ledger.data().estimates
    assert (round(bn.intensity, 2), relu.intensity) == (0.25, 0.125)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"block": "Conv"}, "no block 'Conv'"),
        ({"version": "molten"}, "no version 'molten'"),
        ({"channels": 0}, "c is 0"),
        ({"hardware": replace(NPU, sram_bytes=64 * 1024)}, "there are 64 KiB"),
    ],
)
def test_a_state_that_cannot_exist_is_a_lab_error(arguments, says):
    with pytest.raises(LabError, match=says):
        ledger.data(**arguments)


# ---- the view


def test_every_control_changes_picture_and_text():
    view = ledger.show()
    moves = {"version": "folded", "block": ledger.BLOCKS[1], "channels": 16, "size": 28}
    every_control_moves(view, moves)


def test_the_bars_stand_where_the_state_says():
    parts = ledger_view._draw(Figure(), ledger.data())
    for version, state in ledger.data().versions.items():
        ledger_view._move(parts, state)
        for name, traffic in state.moved.items():
            read, written, words = parts.tensors[name]
            assert read.get_width() * 1024 == traffic.read_bytes
            assert (written.get_x() * 1024, written.get_width() * 1024) == (traffic.read_bytes, traffic.write_bytes)
            assert ("never in DRAM" in words.get_text()) == (traffic.nbytes == 0)
        work, launch, *_ = parts.versions[version]
        assert launch.get_width() / work.get_width() == pytest.approx(state.launch_s / state.work_s)
        bold = [name for name, (*_, title) in parts.versions.items() if title.get_text().startswith("▶")]
        assert bold == [version]


def test_the_view_shows_what_data_says_on_the_machine_of_the_panel():
    machine = panel.show()
    view = ledger.show(machine.state, version="folded, fused", channels=32, size=14)
    machine.set(preset="dsp", launch_us=51.0)
    picture = view.png
    assert (
        view.text
        == ledger.data(version="folded, fused", channels=32, size=14, hardware=machine.state.hardware).sentence
    )
    machine.set(launch_us=2.0)
    assert view.png != picture


def test_too_small_an_sram_is_a_sentence_and_the_next_size_repairs_it():
    machine = panel.show()
    view = ledger.show(machine.state)
    good = view.text, view.png
    machine.set(sram_kib=64)
    assert view.text.startswith("Cannot show this: Conv BN ReLU, 64 channels: one row at a time needs")
    assert view.png == good[1]
    machine.set(sram_kib=512)
    assert (view.text, view.png) == good


def test_set_refuses_what_is_no_control_or_value():
    with pytest.raises(LabError, match="no control 'colour'"):
        ledger.show().set(colour=1)
    with pytest.raises(LabError, match="control size cannot be 1000000000"):
        ledger.show().set(size=10**9)


def test_a_saved_notebook_keeps_picture_and_text():
    bundle = ledger.show()._repr_mimebundle_()
    assert "4,965,376 bytes" in bundle["text/plain"]
    assert "0x" not in bundle["text/plain"]
    assert bundle["image/png"]


def test_the_states_of_lesson_03_need_no_widgets():
    code = "import sys; from labkit.explore import ledger, depth, grouping; ledger.data().sentence; "
    code += "depth.data(size=14, tile=7).sentence; grouping.data().text; "
    code += "sys.exit('ipywidgets' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
