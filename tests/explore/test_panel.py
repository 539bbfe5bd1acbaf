"""The hardware panel: one machine, controls that follow it, and controls that change it."""

from dataclasses import replace

import pytest

from labkit.errors import LabError
from labkit.explore import panel
from labkit.explore.panel import HardwareState
from labkit.hardware import Hardware


@pytest.mark.parametrize("name", Hardware.presets())
def test_a_preset_moves_every_slider_and_gives_exactly_that_machine(name: str) -> None:
    shown = panel.show()
    stops = {key: control.options for key, control in shown.controls.items()}
    shown.set(preset=name)
    assert {key: control.options for key, control in shown.controls.items()} == stops
    machine = Hardware.preset(name)
    assert shown.state.hardware == machine
    assert shown.controls["sram_kib"].value == machine.sram_bytes
    assert shown.controls["bandwidth_gb_s"].value == machine.dram_bytes_per_s
    assert shown.controls["peak_gflop_s"].value == machine.peak_flops_per_s


@pytest.mark.parametrize(
    ("control", "value", "field", "expected"),
    [
        ("sram_kib", 64, "sram_bytes", 65_536),
        ("bandwidth_gb_s", 20, "dram_bytes_per_s", 20e9),
        ("peak_gflop_s", 500, "peak_flops_per_s", 500e9),
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
    assert shown.text == shown.state.hardware.summary() in shown._status.value


@pytest.mark.parametrize("control", ["sram_kib", "bandwidth_gb_s", "peak_gflop_s"])
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
    assert panel.show()._repr_mimebundle_()["text/plain"] == Hardware.preset("edge-npu").summary()


@pytest.mark.parametrize("values", [{"colour": 1}, {"preset": "cray"}, {"sram_kib": "many"}, {"sram_kib": -1}])
def test_a_control_or_value_that_is_none_is_named(values: dict[str, object]) -> None:
    with pytest.raises(LabError, match=r"colour|cray|sram"):
        panel.show().set(**values)
