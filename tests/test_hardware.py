"""Hardware: the presets, files of one's own, and the numbers that make no machine."""

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from labkit.errors import LabError
from labkit.hardware import Hardware

TABLE = """
[mine]
peak_flops_per_s = 2e9
dram_bytes_per_s = 1e9
sram_bytes = "64KiB"
line_bytes = 32
vector_bytes = 16
launch_s = 0.0
layout = "NCHW"
"""


def test_there_are_four_presets_and_the_edge_npu_has_512_kib() -> None:
    assert len(Hardware.presets()) == 4
    assert Hardware.preset("edge-npu").sram_bytes == 512 * 1024
    assert [Hardware.preset(name).name for name in Hardware.presets()] == list(Hardware.presets())


@pytest.mark.parametrize("name", Hardware.presets())
def test_the_ridge_is_peak_over_bandwidth_and_the_summary_shows_it(name: str) -> None:
    machine = Hardware.preset(name)
    assert machine.ridge == machine.peak_flops_per_s / machine.dram_bytes_per_s
    assert f"ridge {machine.ridge:.1f} FLOP/byte" in machine.summary()


def test_an_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(LabError, match=r"no hardware preset 'cray'.*edge-npu"):
        Hardware.preset("cray")


def test_a_machine_cannot_be_changed_only_replaced() -> None:
    machine = Hardware.preset("dsp")
    with pytest.raises(FrozenInstanceError):
        machine.sram_bytes = 1  # type: ignore[misc]
    assert replace(machine, sram_bytes=1).sram_bytes == 1


@pytest.mark.parametrize(
    "field", ["peak_flops_per_s", "dram_bytes_per_s", "sram_bytes", "line_bytes", "vector_bytes", "launch_s"]
)
@pytest.mark.parametrize("value", [-1, float("nan")])
def test_a_size_or_rate_that_makes_no_machine_is_named(field: str, value: float) -> None:
    with pytest.raises(LabError, match=f"{field} is {value}"):
        replace(Hardware.preset("dsp"), **{field: value})


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(TABLE + TABLE.replace("[mine]", "[other]"))
    assert Hardware.load(file) == Hardware("mine", 2e9, 1e9, 65536, 32, 16, 0.0, "NCHW")
    assert Hardware.load(file, "other").name == "other"
    with pytest.raises(LabError, match=r"no table \[third\]; there are: mine, other"):
        Hardware.load(file, "third")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no hardware in it"),
        ("[mine", "not a readable TOML file"),
        ("mine = 3", "missing or unknown keys"),
        (TABLE.replace("layout", "colour"), "missing or unknown keys: colour, layout"),
        (TABLE.replace("64KiB", "64XB"), "'64XB' is no size"),
        (TABLE.replace("2e9", "0"), "peak_flops_per_s is 0"),
        (TABLE.replace("2e9", '"fast"'), "peak_flops_per_s is 'fast', it must be a number"),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(LabError, match=message):
        Hardware.load(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no such hardware file"):
        Hardware.load(tmp_path / "absent.toml")


@pytest.mark.parametrize("name", [*Hardware.presets(), 'a "strange" näme\t\\ 🙂'])
def test_a_machine_written_to_a_file_is_read_back_exactly(name: str, tmp_path: Path) -> None:
    preset = Hardware.preset("dsp" if "strange" in name else name)
    machine = replace(preset, name=name, launch_s=1 / 3e5, dram_bytes_per_s=0.1 + 0.2)
    file = tmp_path / "machine.toml"
    file.write_text(machine.to_toml(), encoding="utf-8")
    assert Hardware.load(file) == machine


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "machine.toml"
    for sram_bytes in (1024, 2048):
        file.write_text(replace(Hardware.preset("dsp"), sram_bytes=sram_bytes).to_toml(), encoding="utf-8")
        assert Hardware.load(file).sram_bytes == sram_bytes
