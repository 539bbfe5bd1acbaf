"""Lesson 00's machines side by side: bytes against runs, rooflines against their formula, and the live view."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from labkit import Hardware, LabError, Scratchpad
from labkit.explore import machines, machines_view, panel
from labkit.kernels.elementwise import ElementwiseOp, run_fused
from labkit.kernels.matmul import naive_matmul, tiled_matmul
from labkit.problems import matmul
from labkit.search import best_tile
from tests.explore.controls import every_control_moves

NPU = Hardware.preset("edge-npu")


@pytest.mark.parametrize("n", [3, 8, 17])
@pytest.mark.parametrize("sram_bytes", [256, 2048, 2**20])
def test_each_kernel_moves_and_computes_what_a_run_counts(n, sram_bytes):
    a, b, vector = np.ones((n, n), np.float32), np.ones((n, n), np.float32), np.ones((n, 1), np.float32)
    small = replace(NPU, name="small", sram_bytes=sram_bytes)
    pads = {name: Scratchpad(sram_bytes) for name in machines.KERNELS}
    add, by_vector, naive, tiled = pads.values()
    run_fused(a, [ElementwiseOp("add", "c", np.add, {"b": b})], add, tile=(1, 4))
    naive_matmul(a, b, naive, "register")
    for right, pad in ((vector, by_vector), (b, tiled)):
        nest = best_tile(matmul(n, right.shape[1], n), sram_bytes).nest
        tiled_matmul(a, right, nest.tile, pad, order="".join(nest.order))
    flops = (n * n, 2 * n * n, 2 * n**3, 2 * n**3)
    for (kernel, pad), wanted in zip(pads.items(), flops, strict=True):
        *_, estimate = machines.data(kernel, n, small).estimates
        assert estimate.hardware is small
        assert (estimate.flops, estimate.dram_bytes) == (wanted, pad.ledger.traffic.nbytes), kernel


def test_a_share_is_the_intensity_over_the_ridge_and_never_more_than_all():
    for kernel in machines.KERNELS:
        state = machines.data(kernel, 512)
        for share, estimate in zip(state.shares, state.estimates, strict=True):
            assert share == pytest.approx(min(1, estimate.flops / estimate.dram_bytes / estimate.hardware.ridge))


def test_the_addition_of_the_lesson_has_a_twelfth_of_a_flop_for_each_byte():
    assert {estimate.flops * 12 / estimate.dram_bytes for estimate in machines.data().estimates} == {1.0}


def test_a_machine_that_is_a_preset_does_not_stand_there_twice():
    assert len(machines.data(hardware=NPU).machines) == len(Hardware.presets())
    assert machines.data(hardware=replace(NPU, name="custom", launch_s=1.0)).machines[-1].name == "custom"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"kernel": "sort"}, "no kernel 'sort'"),
        ({"n": 0}, "n is 0"),
        ({"kernel": "product n×n×n, best tile", "hardware": replace(NPU, name="tiny", sram_bytes=8)}, "8 B"),
    ],
)
def test_a_state_that_cannot_exist_is_a_lab_error(arguments, says):
    with pytest.raises(LabError, match=says):
        machines.data(**arguments)


# ---- the view


def test_every_control_changes_picture_and_text():
    view = machines.show(kernel="matrix n×n × vector")
    moves = {"n": 16, "kernel": "product n×n×n, best tile"}
    every_control_moves(view, moves)


def test_marks_and_bars_stand_where_the_state_says():
    parts = machines_view._draw(Figure(), machines.data())
    state = machines.data("product n×n×n, best tile", 512)
    machines_view._move(parts, state)
    rows = zip(parts.marks, parts.bars, state.estimates, state.shares, strict=True)
    for mark, bar, estimate, share in rows:
        assert mark.get_xdata() == [estimate.intensity]
        assert mark.get_ydata() == [100 * share]
        assert bar.get_width() == share


def test_a_machine_of_the_panel_joins_and_leaves():
    machine = panel.show()
    view = machines.show(machine.state)
    good = view.text, view.png
    machine.set(peak_gflop_s=500)
    assert view.text == machines.data(hardware=machine.state.hardware).sentence
    assert view.text.splitlines()[-1].startswith("custom: ridge 133")
    assert view.png != good[1]
    machine.set(preset="dsp")
    assert (view.text, view.png) == good


def test_set_refuses_what_a_control_cannot_be():
    with pytest.raises(LabError, match="control n cannot be -1"):
        machines.show().set(n=-1)


def test_a_saved_notebook_keeps_picture_and_text():
    bundle = machines.show()._repr_mimebundle_()
    assert "0.0305 % of peak" in bundle["text/plain"]
    assert "0x" not in bundle["text/plain"]
    assert bundle["image/png"]


def test_the_states_of_lesson_00_need_no_widgets():
    code = "import sys; from labkit.explore import machines, batch; machines.data().sentence; batch.data().sentence; "
    code += "sys.exit('ipywidgets' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
