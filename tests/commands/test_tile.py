"""``labkit tile``: what it prints, and its exit status."""

import json

import pytest

from labkit.cli import main
from labkit.problems import ConvShape, conv, matmul
from labkit.search import best_tile
from labkit.tiling import bound_bytes

KEYS = {"tile", "order", "read_bytes", "write_bytes", "bound_bytes", "candidates", "seconds"}
CONV = "conv --c 8 --h 12 --w 12 --filters 6 --kernel 3 --pad 1 --sram 2KiB"


def ask(capsys: pytest.CaptureFixture[str], line: str) -> dict:
    assert main(["tile", *line.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_cube_of_the_course(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(capsys, "matmul --m 1024 --n 1024 --k 1024 --sram 512KiB")
    assert set(answer) >= KEYS
    assert (answer["tile"], answer["order"]) == ([342, 342, 1], "mnk")
    assert answer["read_bytes"] + answer["write_bytes"] == 29_360_128
    assert answer["bound_bytes"] == 22_677_990
    assert answer["candidates"] > 10_000
    assert answer["seconds"] >= 0


def test_the_answer_can_be_asked_of_traffic(capsys: pytest.CaptureFixture[str]) -> None:
    """tile and order, given to ``labkit traffic``, are counted to the same bytes."""
    best = ask(capsys, f"{CONV} --halo slide --buffers double")
    tile = ",".join(map(str, best["tile"]))
    line = f"{CONV} --halo slide --buffers double --tile {tile} --order {best['order']} --json"
    assert main(["traffic", *line.split()]) == 0
    counted = json.loads(capsys.readouterr().out)
    assert counted["source"] == "counted"
    for key in ("read_bytes", "write_bytes", "bound_bytes", "working_set_bytes", "intensity", "limit"):
        assert counted[key] == best[key]


def test_options_reach_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    problem = conv(ConvShape(1, 8, 12, 12, 6, (3, 3), pads=(1, 1, 1, 1)), dtype="int8")
    wanted = best_tile(problem, 2048, c_policy="load_store", buffers="double_all", halo="slide")
    answer = ask(capsys, f"{CONV} --dtype int8 --c-policy load_store --buffers double_all --halo slide")
    assert tuple(answer["tile"]) == wanted.nest.tile
    assert answer["read_bytes"] + answer["write_bytes"] == wanted.dram_bytes
    assert answer["bound_bytes"] == bound_bytes(problem, 2048)


def test_people_read_the_nest_as_pseudo_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tile", "matmul", "--m", "64", "--n", "64", "--k", "64", "--sram", "4KiB"]) == 0
    text = capsys.readouterr().out
    best = best_tile(matmul(64, 64, 64), 4096).nest
    assert str(best) in text
    assert "for k in range(0, 64, 1):" in text
    assert f"working set {best.working_set_bytes / 1024:.2f}".rstrip("0").rstrip(".") in text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("matmul --m 0 --n 8 --k 8", "m is 0"),
        ("matmul --m 8 --n -8 --k 8", "n is -8"),
        (f"matmul --m {2**62} --n {2**62} --k {2**62}", "too many tiles to weigh"),
        (f"matmul --m {2**63} --n 8 --k 8", "m is 9223372036854775808"),
        ("matmul --m 8 --n 8 --k 8 --sram 11B", "one element of each operand needs 12 B"),
        ("matmul --m 8 --n 8 --k 8 --c-policy keep", "C policy 'keep'"),
        (f"conv --c 1 --h {2**62} --w 1 --filters 1 --kernel 3,1", "too many tiles to weigh"),
        (f"{CONV} --halo wrap", "halo 'wrap'"),
        (f"{CONV} --groups 3", "3 groups must divide"),
        ("vgg --m 8", "PROBLEM"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    assert main(["tile", *line.split(), "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
