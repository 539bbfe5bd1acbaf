"""Lesson 00's batch: bytes against runs, where the arithmetic takes over, and the live view."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from labkit import Hardware, LabError, Scratchpad
from labkit.explore import batch, batch_view, panel
from labkit.kernels.matmul import tiled_matmul
from tests.explore.controls import every_control_moves

NPU, DSP = Hardware.preset("edge-npu"), Hardware.preset("dsp")


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("sram_bytes", [256, 4096])
def test_a_layer_moves_what_a_run_counts(size, dtype, sram_bytes):
    state = batch.data(size, 24, replace(NPU, sram_bytes=sram_bytes), dtype)
    pad = Scratchpad(sram_bytes)
    nest = state.nest
    tiled_matmul(np.ones((size, 24), dtype), np.ones((24, 24), dtype), nest.tile, pad, order="".join(nest.order))
    assert state.estimate.dram_bytes == pad.ledger.traffic.nbytes
    assert state.weights_bytes == pad.ledger.by("value")["B"].nbytes
    assert state.estimate.flops == 2 * size * 24 * 24


@pytest.mark.parametrize("hardware", [NPU, DSP], ids=lambda machine: machine.name)
def test_compute_bound_from_where_the_arithmetic_is_longer(hardware):
    state = batch.data(hardware=hardware)
    longer = [
        size
        for size in batch.BATCHES
        for one in [batch.data(size, hardware=hardware).estimate]
        if one.flops / hardware.peak_flops_per_s >= one.dram_bytes / hardware.dram_bytes_per_s
    ]
    assert state.first_compute_bound == (longer[0] if longer else None)


def test_the_numbers_of_the_lesson():
    assert [round(batch.data(size).estimate.intensity, 2) for size in (1, 16)] == [0.5, 7.94]
    assert batch.data(hardware=DSP).first_compute_bound == 32
    assert "Memory-bound up to 1,024 images" in batch.data().sentence


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"batch": 0}, "batch is 0"),
        ({"width": -3}, "width is -3"),
        ({"dtype": "float8"}, "float8"),
        ({"hardware": replace(NPU, sram_bytes=8)}, "8 B"),
    ],
)
def test_a_state_that_cannot_exist_is_a_lab_error(arguments, says):
    with pytest.raises(LabError, match=says):
        batch.data(**arguments)


# ---- the view


def test_every_control_changes_picture_and_text():
    view = batch.show()
    moves = {"batch": 64, "width": 256}
    every_control_moves(view, moves)


def test_the_marks_stand_where_the_state_says():
    parts = batch_view._draw(Figure(), batch.data())
    state = batch.data(64)
    batch_view._move(parts, state)
    estimate = state.estimate
    wanted = (estimate.memory_s / 64, estimate.compute_s / 64, estimate.intensity)
    assert [mark.get_ydata()[0] for mark in parts.marks] == list(wanted)
    assert [mark.get_xdata() for mark in parts.marks] == [[64]] * 3


def test_the_view_shows_what_data_says_on_the_machine_of_the_panel():
    machine = panel.show()
    view = batch.show(machine.state, batch=128, width=1024)
    picture = view.png
    machine.set(preset="dsp", dtype="float16")
    assert view.text == batch.data(128, 1024, DSP, "float16").sentence
    assert view.png != picture


def test_set_refuses_what_a_control_cannot_be():
    with pytest.raises(LabError, match="control batch cannot be 1000000000"):
        batch.show().set(batch=10**9)


def test_a_saved_notebook_keeps_picture_and_text():
    bundle = batch.show()._repr_mimebundle_()
    assert "64 MiB of them weights" in bundle["text/plain"]
    assert "0x" not in bundle["text/plain"]
    assert bundle["image/png"]
