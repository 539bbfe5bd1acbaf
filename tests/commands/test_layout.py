"""``labkit layout`` through the real entry point."""

import json

import pytest

from labkit.cli import main


def ask(capsys, *words):
    assert main(["layout", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_worked_example(capsys):
    nchw = ask(capsys, "--shape", "2,3,4,4", "--order", "NCHW")
    nhwc = ask(capsys, "--shape", "2,3,4,4", "--order", "NHWC")
    assert nchw["strides"] == [48, 16, 4, 1]
    assert list(nhwc["strides_in_memory_order"].items()) == [("N", 48), ("H", 12), ("W", 3), ("C", 1)]
    assert (nchw["size"], nchw["nbytes"]) == (96, 384)
    assert (nchw["lines_touched"], nchw["bytes_used"], nchw["bytes_fetched"], nchw["straddles"]) == (3, 12, 192, 0)
    assert (nhwc["lines_touched"], nhwc["bytes_used"], nhwc["bytes_fetched"], nhwc["straddles"]) == (1, 12, 64, 4)
    assert nhwc["straddling_runs"] == [5, 10, 21, 26]


def test_a_run_of_choice_and_the_sums_of_all(capsys):
    pixel = ask(capsys, "--shape", "1,3,4,4", "--order", "NHWC", "--walk", "channel", "--at", "5", "--line-bytes", "64")
    assert (pixel["lines_touched"], pixel["bytes_fetched"]) == (2, 128)
    assert pixel["all_runs"] == {
        "runs": 16, "lines_touched": 18, "bytes_used": 192, "bytes_fetched": 1152, "straddles": 2,
    }  # fmt: skip


def test_type_base_and_line_change_the_count(capsys):
    half = ask(capsys, "--shape", "1,3,4,4", "--order", "NHWC", "--dtype", "float16", "--line-bytes", "32")
    assert half["straddling_runs"] == [5, 10]
    moved = ask(capsys, "--shape", "1,4,4,4", "--order", "NHWC", "--base", "8")
    assert moved["straddles"] == 4
    assert ask(capsys, "--shape", "0,3,4,4")["lines_touched"] == 0


def test_text_for_people_says_the_same(capsys):
    assert main(["layout", "--shape", "1,3,4,4", "--order", "NHWC"]) == 0
    text = capsys.readouterr().out
    assert "N 48  H 12  W 3  C 1" in text
    assert "straddle a line border 2: 5, 10" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--shape", "1,3,4"], "needs 4"),
        (["--shape", "1,x,4,4"], "write lengths with commas"),
        (["--shape", "1,3,4,4", "--order", "NCHW8c"], "pad it to 8"),
        (["--shape", "1,3,4,4", "--order", "nhwc"], "no memory order"),
        (["--shape", "1,3,4,4", "--walk", "zigzag"], "no walk"),
        (["--shape", "1,3,4,4", "--line-bytes", "512XB"], "is no size"),
        (["--shape", "1,3,4,4", "--dtype", "float31"], "no element type"),
        (["--shape", "1,3,4,4", "--dtype", "object"], "no number"),
        (["--shape", "1,3,4,4", "--at", "16"], "16 runs"),
        (["--shape", "2,2,2305843009213693952,1"], "does not fit 64 bit"),
        ([], "--shape"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, words, says):
    assert main(["layout", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1
