"""``labkit traffic matmul``: what it prints, and its exit status."""

import json

import pytest

from labkit.cli import main
from labkit.tiling import Matmul, MatmulSchedule, modelled_traffic

CUBE = "--m 1024 --n 1024 --k 1024 --sram 512KiB"
KEYS = {
    *("fits", "working_set_bytes", "read_bytes", "write_bytes", "flops", "intensity", "bound_bytes"),
    *("compulsory_bytes", "source", "sram_bytes", "tile", "order", "c_policy", "buffers"),
}


def ask(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, dict]:
    status = main(["traffic", "matmul", *line.split(), "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_the_whole_product_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    status, answer = ask(capsys, f"{CUBE} --tile 128,128,128")
    assert status == 0
    assert set(answer) >= KEYS
    assert answer["fits"] is True
    assert answer["source"] == "counted"
    assert (answer["read_bytes"], answer["write_bytes"]) == (67_108_864, 4_194_304)
    assert round(answer["intensity"], 2) == 30.12


def test_a_tile_that_does_not_fit_is_a_no(capsys: pytest.CaptureFixture[str]) -> None:
    status, answer = ask(capsys, f"{CUBE} --tile 256,256,256")
    assert status == 1
    assert set(answer) >= KEYS
    assert answer["fits"] is False
    assert answer["working_set_bytes"] == 786_432
    assert answer["read_bytes"] is answer["intensity"] is answer["source"] is None
    assert main(["traffic", "matmul", *f"{CUBE} --tile 256,256,256".split()]) == 1
    assert "768 KiB (786,432 bytes); does not fit in 512 KiB" in capsys.readouterr().out


def test_what_is_called_counted_does_not_come_from_the_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("labkit.commands.traffic.modelled_traffic")
    assert ask(capsys, "--m 30 --n 20 --k 10 --tile 7,6,3")[1]["source"] == "counted"


@pytest.mark.parametrize("size", [2**14, 2**62])
def test_a_product_too_large_to_run_here_is_modelled(capsys: pytest.CaptureFixture[str], size: int) -> None:
    status, answer = ask(capsys, f"--m {size} --n {size} --k {size} --tile 128,128,128")
    assert status == 0
    assert answer["source"] == "modelled"
    model = modelled_traffic(Matmul(size, size, size), MatmulSchedule((128, 128, 128)))
    assert (answer["read_bytes"], answer["write_bytes"]) == (model.read_bytes, model.write_bytes)


def test_the_options_reach_the_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--order kmn --c-policy load_store --buffers double --dtype float64"
    status, answer = ask(capsys, f"--m 30 --n 20 --k 10 --tile 7,6,3 --sram 1KiB {options}")
    model = modelled_traffic(Matmul(30, 20, 10, 8), MatmulSchedule((7, 6, 3), "kmn", "load_store"))
    assert status == 0
    assert (answer["read_bytes"], answer["write_bytes"]) == (model.read_bytes, model.write_bytes)
    assert answer["working_set_bytes"] == 8 * (2 * 21 + 2 * 18 + 42)


def test_a_larger_tile_is_clipped_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    line = "--m 8 --n 8 --k 8 --tile 64,4,64"
    status, answer = ask(capsys, line)
    assert (status, answer["tile"], answer["tile_asked"], answer["clipped"]) == (0, [8, 4, 8], [64, 4, 64], True)
    main(["traffic", "matmul", *line.split()])
    assert "tile 8,4,8 (clipped to the problem)" in capsys.readouterr().out


@pytest.mark.parametrize(("hardware", "limit"), [("edge-npu", "memory-bound"), ("datacentre-gpu", "compute-bound")])
def test_people_read_the_ridge_and_what_limits_the_kernel(
    capsys: pytest.CaptureFixture[str], hardware: str, limit: str
) -> None:
    assert main(["traffic", "matmul", *f"{CUBE} --tile 128,128,128 --hardware {hardware}".split()]) == 0
    text = capsys.readouterr().out
    assert f"intensity: 30.12 FLOP/byte, {limit} on {hardware} (ridge" in text
    assert "64 MiB (67,108,864 bytes) read, 4 MiB (4,194,304 bytes) written (counted)" in text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--m 8 --n 8 --k 8 --tile 0,1,1", "TM is 0"),
        ("--m 8 --n 8 --k 8 --tile 8,8", "write three whole numbers TM,TN,TK"),
        ("--m 8 --n 8 --k 8 --tile a,b,c", "write three whole numbers TM,TN,TK"),
        ("--m 8 --n 8 --k 8 --tile=-1,2,3", "TM is -1"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --sram 512XB", "'512XB' is no size"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --sram 8B", "must fit"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --order mmk", "loop order 'mmk'"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --c-policy keep", "C policy 'keep'"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --buffers triple", "buffers 'triple'"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --hardware cray", "no hardware preset 'cray'"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --dtype int8", "--dtype"),
        ("--m -8 --n 8 --k 8 --tile 1,1,1", "m is -8"),
        ("--m 8.5 --n 8 --k 8 --tile 1,1,1", "--m"),
        (f"--m {10**30} --n 8 --k 8 --tile 1,1,1", "m is 1000000000"),
        ("--n 8 --k 8 --tile 1,1,1", "--m"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    assert main(["traffic", "matmul", *line.split(), "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
