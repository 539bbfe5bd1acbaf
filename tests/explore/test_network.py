"""Lesson 06's whole networks: bars, tables and words against optimize and schedule, and the view that follows."""

import datetime
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import labkit
from labkit import networks
from labkit.errors import LabError, SramOverflow
from labkit.explore import network, panel
from labkit.explore.network_view import _draw, _move
from labkit.hardware import Hardware
from labkit.onnx_io import to_model
from labkit.units import KIB, MIB

NPU = Hardware.preset("edge-npu")
SMALL = "residual, small"


@pytest.mark.parametrize("level", ["none", "basic", "extended", "layout", "all"])
@pytest.mark.parametrize("sram_kib", [32, 512])
def test_the_state_is_what_optimize_and_schedule_report(level, sram_kib):
    machine = replace(NPU, sram_bytes=sram_kib * KIB)
    state = network.data("U-Net with dead heads", level, machine)
    report = labkit.optimize(network.example("U-Net with dead heads"), level, machine)
    before, after = state.ends
    assert before.dram_bytes == labkit.schedule(report.original, machine).dram_bytes
    assert (after.dram_bytes, after.time_s) == (report.schedule.dram_bytes, report.schedule.time_s)
    assert len(state.rows) == 2 + len(report.steps)


def test_the_bars_add_up_to_the_ledger_with_weights_by_themselves():
    state = network.data(SMALL, "extended")
    for bars, found, graph in zip(state.bars, state.ends, (state.graphs[0], state.graphs[-1]), strict=True):
        lines = list(found.ledger)
        assert sum(bar.nbytes for bar in bars) == sum(line.nbytes for line in lines)
        assert sum(bar.weights for bar in bars) == sum(a.nbytes for a in lines if a.value in graph.constants)
        assert sum(bar.written for bar in bars) == sum(a.nbytes for a in lines if a.kind == "write")


def test_less_sram_never_moves_fewer_bytes():
    moved = [network.data(SMALL, "all", NPU, share).ends[1].dram_bytes for share in network.SHARES]
    assert moved == sorted(moved)
    assert moved[-1] > moved[0]


def test_a_share_of_the_sram_is_a_smaller_machine():
    half = replace(NPU, sram_bytes=NPU.sram_bytes // 8)
    assert network.data(SMALL, "all", NPU, 8).bars == network.data(SMALL, "all", half).bars


def test_kernels_fused_for_another_sram_are_only_tiled_anew_and_the_text_says_so():
    small = replace(NPU, sram_bytes=12 * KIB)
    once = network.data(SMALL, "extended", small, fused_for=NPU.sram_bytes)
    assert once.graphs[-1] is network.data(SMALL, "extended", NPU).graphs[-1]
    assert "those for 512 KiB of SRAM; only their tiles are new" in once.sentence
    assert "only their tiles" not in network.data(SMALL, "extended", small).sentence


def test_a_large_network_is_fused_once_and_the_text_says_so(monkeypatch):
    monkeypatch.setattr(network, "LIVE_NODES", 20)
    state = network.data(SMALL, "extended", replace(NPU, sram_bytes=16 * KIB))
    assert "only their tiles are new" in state.sentence


def test_the_worked_numbers_of_the_lesson():
    before, after = network.data("MobileNetV2", "basic").ends
    assert (len(before.nodes), len(after.nodes)) == (153, 100)
    dead = network.data("U-Net with dead heads", "basic").report.steps[-1]
    assert dead.name == "dead"
    assert not any(node.op == "Sigmoid" for node in dead.graph.nodes[:-1])


def test_layout_may_move_more_than_the_level_before():
    moved = {level: network.data(SMALL, level).ends[1].dram_bytes for level in ("extended", "layout")}
    assert moved["layout"] > moved["extended"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"network": "VGG"}, "no network 'VGG'"),
        ({"level": "extreme"}, "no level 'extreme'"),
        ({"buffers": "triple"}, "no buffers 'triple'"),
        ({"share": 0}, "1/0"),
    ],
)
def test_a_state_that_cannot_exist_is_a_lab_error(settings, says):
    with pytest.raises(LabError, match=says):
        network.data(**{"network": SMALL, **settings})


def test_an_sram_too_small_for_any_tile_is_refused_by_name():
    with pytest.raises(SramOverflow, match="smallest tiles take"):
        network.data(SMALL, "none", replace(NPU, sram_bytes=8))


# ---- the networks


@pytest.mark.parametrize("make", [networks.residual, networks.unet_with_dead_heads, networks.mobilenet_v2])
def test_a_network_computes_the_same_as_onnxruntime_says_and_after_all_passes(make, judge):
    graph = make(size=32)
    x = np.random.default_rng(1).standard_normal((1, 3, 32, 32), dtype=np.float32)
    wanted = judge(graph, {"x": x})[0]
    optimised = labkit.optimize(graph, "all").graph
    for one in (graph, optimised):
        found = next(iter(labkit.run(one, {"x": x}).values()))
        assert np.allclose(found, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())
    assert float(np.std(wanted)) > 0


def test_mobilenet_v2_has_the_size_of_the_paper():
    graph = networks.mobilenet_v2()
    # Sandler et al. 2018, table 4: 3.4 million parameters, 300 million multiply-adds.
    assert sum(array.size for array in graph.constants.values()) == pytest.approx(3.4e6, rel=0.05)
    assert labkit.cost(graph, NPU).flops == pytest.approx(2 * 300e6, rel=0.07)


def test_a_seed_draws_the_same_network_again_and_another_seed_another():
    one, again, other = networks.residual(seed=1), networks.residual(seed=1), networks.residual(seed=2)
    assert all(np.array_equal(one.constants[name], again.constants[name]) for name in one.constants)
    assert any(not np.array_equal(one.constants[name], other.constants[name]) for name in one.constants)


# ---- the view


@pytest.fixture
def view():
    return network.show(network=SMALL, level="extended")


def test_the_bars_stand_where_the_state_says():
    state, other = network.data(SMALL, "none"), network.data(SMALL, "none", NPU, share=32)
    parts = _draw(Figure(), state)
    for shown in (state, other):
        _move(parts, shown)
        for side, bars in zip(parts, shown.bars, strict=True):
            tops = [path.vertices[:, 1].max() for path in side.bars[-1].get_paths()]
            assert np.allclose(tops, [bar.nbytes / MIB for bar in bars])
            lows = [path.vertices[:, 1].min() for path in side.bars[1].get_paths()]
            assert np.allclose(lows, [bar.weights / MIB for bar in bars])


def test_no_bar_is_higher_than_the_axes():
    for share in network.SHARES:
        state = network.data(SMALL, "none", NPU, share)
        assert max(bar.nbytes for bar in state.bars[0]) / MIB <= state.top_mib


def test_every_control_changes_picture_and_text(view, tmp_path):
    path = tmp_path / "own.onnx"
    labkit.save(networks.residual(blocks=2), path)
    moves = {
        "level": "basic",
        "share": 32,
        "buffers": "double",
        "network": "MobileNetV2",
        "kernels": "fused once, tiled anew",
        "path": str(path),
        "upload": [_file("mine.onnx", to_model(networks.residual(blocks=1)).SerializeToString())],
    }
    assert set(moves) == set(view.controls)
    view.set(level="extended")
    for name, value in moves.items():
        if name == "kernels":
            view.set(level="extended")
        picture, text = view.png, view.text
        view.controls[name].value = value
        assert view.text != text, name
        assert view.png != picture, name


def test_the_view_shows_what_data_says_and_table_and_roofline_follow(view):
    state = network.data(SMALL, "basic", NPU, 16, "double")
    view.set(level="basic", share=16, buffers="double")
    assert view.text == state.sentence
    assert view.plot.points == state.points
    assert all(cell in view._table.value for row in state.rows for cell in row if cell != "")


def test_the_panel_schedules_the_network_anew(view):
    machine = panel.show()
    mine = network.show(machine.state, network=SMALL)
    before = mine.png
    machine.set(sram_kib=16)
    assert mine.text == network.data(SMALL, "all", machine.state.hardware).sentence
    assert mine.png != before
    text = mine.text
    machine.set(bandwidth_gb_s=100)
    assert mine.text != text


def test_an_uploaded_network_is_the_one_of_the_file(view):
    graph = networks.residual(blocks=2)
    view.controls["upload"].value = [_file("mine.onnx", to_model(graph).SerializeToString())]
    assert view.controls["network"].value == "your own"
    assert view.state.graphs[0].nodes[0].op == "Conv"
    assert len(view.state.ends[0].nodes) == len(graph.nodes)


@pytest.mark.parametrize("content", [b"", b"\x00garbage", b"<b>no model</b>", b"\x08\x08" * 999])
def test_garbage_is_a_sentence_and_the_next_good_file_repairs(view, content):
    picture = view.png
    view.controls["upload"].value = [_file("notes.onnx", content)]
    assert view.text.startswith("Cannot show this: notes.onnx: ")
    assert "/tmp" not in view.text
    assert view.png == picture
    view.controls["upload"].value = [_file("ok.onnx", to_model(networks.residual(1)).SerializeToString())]
    assert "residual, level extended" in view.text


@pytest.mark.parametrize("path", ["nowhere.onnx", "/", "<b>", "10**9", "\x00"])
def test_a_path_that_leads_to_no_network_is_a_sentence(view, path):
    view.set(path=path)
    assert view.text.startswith("Cannot show this: ")
    view.set(network=SMALL)
    assert view.text.startswith(SMALL)


def test_your_own_without_a_file_says_what_to_do(view):
    assert "choose a file with the button" in view.set(network="your own").text


def test_a_saved_notebook_has_text_and_picture(view):
    bundle = view._repr_mimebundle_()
    assert bundle["text/plain"] == view.text
    assert bundle["image/png"]


def test_the_state_needs_no_widgets():
    code = (
        "import sys; from labkit.explore import network, beside; network.data('residual, small').sentence;"
        "sys.exit('ipywidgets' in sys.modules or 'matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _file(name, content):
    now = datetime.datetime.now(datetime.UTC)
    return {"name": name, "type": "", "size": len(content), "content": memoryview(content), "last_modified": now}
