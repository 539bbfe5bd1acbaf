"""The hardware panel: one machine, controls that follow it, and controls that change it."""

from dataclasses import replace
from pathlib import Path

import pytest

from labkit.errors import LabError
from labkit.explore import panel
from labkit.explore.panel import HardwareState
from labkit.hardware import Hardware

SLIDERS = ("sram_kib", "bandwidth_gb_s", "peak_gflop_s", "line_bytes", "vector_bytes", "launch_us")


@pytest.mark.parametrize("name", Hardware.presets())
def test_a_preset_moves_every_slider_and_gives_exactly_that_machine(name: str) -> None:
    shown = panel.show()
    stops = {key: shown.controls[key].options for key in SLIDERS}
    shown.set(preset=name)
    assert {key: shown.controls[key].options for key in SLIDERS} == stops
    machine = Hardware.preset(name)
    assert shown.state.hardware == machine
    assert shown.controls["sram_kib"].value == machine.sram_bytes
    assert shown.controls["bandwidth_gb_s"].value == machine.dram_bytes_per_s
    assert shown.controls["peak_gflop_s"].value == machine.peak_flops_per_s
    assert shown.controls["line_bytes"].value == machine.line_bytes
    assert shown.controls["vector_bytes"].value == machine.vector_bytes
    assert shown.controls["launch_us"].value == machine.launch_s


@pytest.mark.parametrize(
    ("control", "value", "field", "expected"),
    [
        ("sram_kib", 64, "sram_bytes", 65_536),
        ("bandwidth_gb_s", 20, "dram_bytes_per_s", 20e9),
        ("peak_gflop_s", 500, "peak_flops_per_s", 500e9),
        ("line_bytes", 32, "line_bytes", 32),
        ("vector_bytes", 128, "vector_bytes", 128),
        ("launch_us", 2, "launch_s", 2e-6),
        ("launch_us", 0, "launch_s", 0.0),
    ],
)
def test_a_slider_replaces_one_field_and_keeps_the_others(
    control: str, value: float, field: str, expected: float
) -> None:
    shown = panel.show()
    before = shown.state.hardware
    shown.set(**{control: value})
    assert shown.state.hardware == replace(before, name="custom", **{field: expected})
    assert shown.controls["preset"].value == "custom"
    assert shown.state.hardware.summary() in shown.text
    assert shown.text in shown._status.value


@pytest.mark.parametrize("control", SLIDERS)
def test_every_stop_of_a_slider_gives_that_value_and_says_it(control: str) -> None:
    """A browser sends the index of a stop: each must give its own machine, and stops must ascend."""
    shown = panel.show()
    slider = shown.controls[control]
    stops = [value for _, value in slider.options]
    assert stops == sorted(set(stops))
    for index, (label, value) in enumerate(slider.options):
        slider.index = index
        assert slider.value == value
        assert label in shown.text
        assert len(slider.options) == len(stops)


def test_the_same_preset_can_be_chosen_again_after_a_slider() -> None:
    shown = panel.show().set(sram_kib=64).set(preset="edge-npu")
    assert shown.state.hardware == Hardware.preset("edge-npu")


def test_each_move_changes_the_machine_once() -> None:
    shown, seen = panel.show(), []
    shown.state.observe(lambda change: seen.append(change.new), "hardware")
    shown.set(preset="dsp")
    shown.set(sram_kib=64)
    assert len(seen) == 2


def test_a_machine_set_from_code_moves_the_controls_even_between_their_stops() -> None:
    state = HardwareState()
    shown = panel.show(state)
    mine = replace(Hardware.preset("dsp"), name="mine", sram_bytes=2**50 + 1, peak_flops_per_s=123.4)
    state.hardware = mine
    assert state.hardware is mine, "a control that follows may not pull the machine elsewhere"
    assert shown.controls["preset"].value == "custom"
    assert shown.controls["sram_kib"].value == 2**50 + 1
    assert shown.controls["peak_gflop_s"].value == 123.4


def test_two_panels_on_one_state_agree() -> None:
    one = panel.show()
    two = panel.show(one.state)
    one.set(bandwidth_gb_s=99)
    assert two.controls["bandwidth_gb_s"].value == one.controls["bandwidth_gb_s"].value == 99e9


def test_the_saved_output_is_the_machine_in_one_line() -> None:
    machine = Hardware.preset("edge-npu")
    says = panel.show()._repr_mimebundle_()["text/plain"]
    assert says == f"{machine.summary()}, vector 16 B, launch 10 µs, float32"


@pytest.mark.parametrize(
    "values",
    [{"colour": 1}, {"preset": "cray"}, {"sram_kib": "many"}, {"sram_kib": -1}, {"dtype": "float8"}, {"line_bytes": 0}],
)
def test_a_control_or_value_that_is_none_is_named(values: dict[str, object]) -> None:
    with pytest.raises(LabError, match=r"colour|cray|sram|float8|line_bytes"):
        panel.show().set(**values)


def test_the_type_of_the_elements_is_observed_and_leaves_the_machine_alone() -> None:
    shown, seen = panel.show(), []
    machine = shown.state.hardware
    shown.state.observe(lambda change: seen.append(change.new), "dtype")
    shown.set(dtype="int8")
    assert seen == ["int8"]
    assert shown.state.hardware is machine
    assert shown.text.endswith("int8")
    shown.state.dtype = "float16"
    assert shown.controls["dtype"].value == "float16"


def test_a_machine_saved_by_one_panel_is_loaded_by_another(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    shown = panel.show().set(preset="dsp").set(sram_kib=96, launch_us=3)
    shown.save(file)
    assert panel.show().load(file).state.hardware == shown.state.hardware
    assert Hardware.load(file) == shown.state.hardware


def test_the_buttons_save_and_load_the_file_of_the_field(tmp_path: Path) -> None:
    shown = panel.show().set(sram_kib=96)
    shown._file.value = str(tmp_path / "mine.toml")
    save, load = shown.children[2].children[1:]
    save.click()
    assert "mine.toml: written. custom" in shown.text
    shown.set(preset="dsp")
    load.click()
    assert shown.state.hardware.sram_bytes == 96 * 1024
    assert "mine.toml: read. custom" in shown.text


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none.toml", None, "no such hardware file"),
        ("bad.toml", "[x", "not a readable TOML"),
        ("", None, "not a readable"),
        ("other.toml", "[m]\npeak = 1", "missing or unknown keys"),
        ("empty.toml", "", "no hardware in it"),
    ],
)
def test_a_file_that_holds_no_machine_is_a_sentence(name: str, content: str | None, says: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    shown = panel.show()
    shown._file.value = str(tmp_path / name)
    shown.children[2].children[2].click()
    assert shown.text.startswith("Cannot show this: ")
    assert says in shown.text
    assert shown.state.hardware == Hardware.preset("edge-npu")


@pytest.mark.parametrize("name", ["", "02_tiling.ipynb", "no/such/folder/x.toml"])
def test_a_machine_is_not_written_over_another_kind_of_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"ends in \.toml|cannot be written"):
        panel.show().save(tmp_path / name)
