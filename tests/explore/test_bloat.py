"""Lesson 04's bloat: bytes of files as they are written, bytes of traffic as they are costed."""

import os

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import labkit
from labkit import Hardware, LabError
from labkit.explore import bloat, panel
from labkit.units import KIB, format_bytes
from tests.explore.controls import every_control_moves

NPU = Hardware.preset("edge-npu")


@given(st.sampled_from(list(bloat.FORMS)), st.integers(1, 200), st.sampled_from(bloat.LIMITS_KIB))
@settings(max_examples=25, deadline=None)
def test_every_version_computes_the_same_and_is_as_large_as_its_file(tmp_path_factory, form, side, limit_kib):
    state = bloat.data(form, side, limit_kib)
    path = tmp_path_factory.mktemp("file") / "model.onnx"
    for version, (name, file_bytes, dram_bytes, *_) in zip(state.versions, state.measured, strict=True):
        labkit.save(version.graph, path)
        assert file_bytes == os.path.getsize(path), name
        assert dram_bytes == labkit.cost(version.graph, NPU).dram_bytes
        labkit.verify(state.versions[0].graph, version.graph)


@given(st.sampled_from(list(bloat.FORMS)), st.integers(1, 200), st.sampled_from(bloat.LIMITS_KIB))
@settings(max_examples=25, deadline=None)
def test_a_limit_holds_or_the_file_did_not_grow(form, side, limit_kib):
    original, _, limited, _ = bloat.data(form, side, limit_kib).versions
    grown = limited.file_bytes - original.file_bytes
    assert grown <= limit_kib * KIB + 100
    assert bool(limited.refusal) == (len(limited.graph.nodes) == 2)
    if limited.refusal:
        assert f"{format_bytes(side * side * 4 if form != 'sums of rows' else side * 4)} of result" in limited.refusal


def test_the_numbers_of_the_lesson():
    rows = {name: (file_bytes, dram) for name, file_bytes, dram, *_ in bloat.data().measured}
    assert rows["folded, no limit"][0] > 4 * 2**20 > 1000 * rows["as it is"][0]
    assert rows["folded, no limit"][1] == 3 * 4 * 2**20
    assert rows["labkit, basic"][1] == 2 * 4 * 2**20 + 4
    assert rows["labkit, basic"][0] < rows["as it is"][0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"form": "odd"}, "no form 'odd'"),
        ({"side": 0}, "side is 0; from 1 to 1024"),
        ({"side": 10**9}, "side is 1000000000"),
        ({"limit_kib": -1}, "at least 0"),
    ],
)
def test_a_state_that_cannot_exist_is_a_lab_error(arguments, says):
    with pytest.raises(LabError, match=says):
        bloat.data(**arguments)


# ---- the view


def test_every_control_changes_picture_and_text():
    view = bloat.show(side=300)
    moves = {"side": 200, "limit_kib": 1024, "form": "column × row"}
    every_control_moves(view, moves)


def test_the_view_shows_what_data_says_on_the_machine_of_the_panel():
    machine = panel.show()
    view = bloat.show(machine.state, form="sums of rows", side=77, limit_kib=16)
    machine.set(preset="dsp")
    assert view.text == bloat.data("sums of rows", 77, 16, machine.state.hardware).sentence


def test_set_refuses_what_a_control_cannot_be():
    with pytest.raises(LabError, match="control limit_kib cannot be 3"):
        bloat.show(side=8).set(limit_kib=3)
    assert "1×1 float32" in bloat.show().set(side=-5).text


def test_a_saved_notebook_keeps_picture_and_text():
    bundle = bloat.show(side=64)._repr_mimebundle_()
    assert "image/png" in bundle
    assert "folded, no limit: file 16.1 KiB" in bundle["text/plain"]
