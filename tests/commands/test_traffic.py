"""``labkit traffic``: what it prints, and its exit status."""

import json

import pytest

from labkit.cli import main
from labkit.loops import LoopNest
from labkit.problems import ConvShape, conv, matmul

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
    monkeypatch.setattr(LoopNest, "traffic", property(lambda nest: pytest.fail("asked the model")))
    assert ask(capsys, "--m 30 --n 20 --k 10 --tile 7,6,3")[1]["source"] == "counted"


@pytest.mark.parametrize("size", [2**14, 2**62])
def test_a_product_too_large_to_run_here_is_modelled(capsys: pytest.CaptureFixture[str], size: int) -> None:
    status, answer = ask(capsys, f"--m {size} --n {size} --k {size} --tile 128,128,128")
    assert status == 0
    assert answer["source"] == "modelled"
    model = LoopNest(matmul(size, size, size), (128, 128, 128), tuple("mnk")).traffic
    assert (answer["read_bytes"], answer["write_bytes"]) == (model.read_bytes, model.write_bytes)


def test_the_options_reach_the_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--order kmn --c-policy load_store --buffers double --dtype float64"
    status, answer = ask(capsys, f"--m 30 --n 20 --k 10 --tile 7,6,3 --sram 1KiB {options}")
    model = LoopNest(matmul(30, 20, 10, "float64"), (7, 6, 3), tuple("kmn"), "load_store").traffic
    assert status == 0
    assert (answer["read_bytes"], answer["write_bytes"]) == (model.read_bytes, model.write_bytes)
    assert answer["working_set_bytes"] == 8 * (2 * 21 + 2 * 18 + 42)


def test_a_larger_tile_is_clipped_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    line = "--m 8 --n 8 --k 8 --tile 64,4,64"
    status, answer = ask(capsys, line)
    assert (status, answer["tile"], answer["tile_asked"], answer["clipped"]) == (0, [8, 4, 8], [64, 4, 64], True)
    main(["traffic", "matmul", *line.split()])
    assert "tile m=8,n=4,k=8 (clipped to the problem)" in capsys.readouterr().out


@pytest.mark.parametrize(("hardware", "limit"), [("edge-npu", "memory-bound"), ("datacentre-gpu", "compute-bound")])
def test_people_read_the_ridge_and_what_limits_the_kernel(
    capsys: pytest.CaptureFixture[str], hardware: str, limit: str
) -> None:
    assert main(["traffic", "matmul", *f"{CUBE} --tile 128,128,128 --hardware {hardware}".split()]) == 0
    text = capsys.readouterr().out
    assert f"intensity: 30.12 FLOP/byte, {limit} on {hardware} (ridge" in text
    assert "64 MiB (67,108,864 bytes) read, 4 MiB (4,194,304 bytes) written (counted)" in text


def misses_of_lru(lines: list[int], room: int) -> int:
    """Judge: a list of the lines held, least recently used first."""
    held, misses = [], 0
    for line in lines:
        if line in held:
            held.remove(line)
        else:
            misses += 1
            del held[: max(0, len(held) - room + 1)]
        held.append(line)
    return misses


def test_a_cache_sees_the_tiled_loops_element_by_element(capsys: pytest.CaptureFixture[str]) -> None:
    """6 × 5 × 4 in tiles of 3, 2, 4, k innermost, C in a register; each matrix starts at a border of 64-byte lines."""
    a, b, c = 0, 128, 256  # 96, 80 and 120 bytes, each from the next line on
    lines = []
    for i0, j0 in ((i, j) for i in (0, 3) for j in (0, 2, 4)):
        for i in range(i0, i0 + 3):
            for j in range(j0, min(j0 + 2, 5)):
                for k in range(4):
                    lines += [(a + 4 * (4 * i + k)) // 64, (b + 4 * (5 * k + j)) // 64]
                lines.append((c + 4 * (5 * i + j)) // 64)
    for sram, room in (("128B", 2), ("256B", 4), ("1KiB", 16)):
        status, answer = ask(capsys, f"--m 6 --n 5 --k 4 --tile 3,2,4 --sram {sram} --model lru")
        assert status == 0
        assert (answer["source"], answer["accesses"]) == ("simulated", len(lines))
        assert answer["misses"] == misses_of_lru(lines, room)
        assert answer["read_bytes"] == 64 * answer["misses"]
        best = ask(capsys, f"--m 6 --n 5 --k 4 --tile 3,2,4 --sram {sram} --model opt")[1]
        assert best["misses"] <= answer["misses"]


def test_a_tile_too_large_for_the_scratchpad_still_runs_in_a_cache(capsys: pytest.CaptureFixture[str]) -> None:
    """Errata 3.4: T=256 does not fit a scratchpad; in an LRU cache C spills and intensity halves from 64 to 32."""
    status, answer = ask(capsys, f"{CUBE} --tile 256,256,256 --model lru")
    assert (status, answer["fits"], answer["intensity"]) == (0, False, 32.0)
    assert main(["traffic", "matmul", *f"{CUBE} --tile 256,256,256 --model lru".split()]) == 0
    assert "lru cache, fully associative, lines of 64 bytes: 786,432 misses" in capsys.readouterr().out


def test_fusing_the_chain_saves_3136_kib(capsys: pytest.CaptureFixture[str]) -> None:
    """The depthwise 1×1 convolution of tests/test_seed_numbers.py: two intermediates of 784 KiB, written and read."""
    line = "--c 64 --h 56 --w 56 --filters 64 --kernel 1 --groups 64 --tile p=8"
    assert main(["traffic", "chain", *line.split(), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) >= KEYS
    assert answer["saved_bytes"] == 3_136 * 1024
    assert (answer["launches"], answer["unfused_launches"]) == (1, 3)
    fused, unfused = (answer[f"{key}read_bytes"] + answer[f"{key}write_bytes"] for key in ("", "unfused_"))
    assert unfused - fused == answer["saved_bytes"]
    assert main(["traffic", "chain", *line.split()]) == 0
    assert "fusion saves 3.06 MiB (3,211,264 bytes)" in capsys.readouterr().out
    assert main(["traffic", "chain", *line.replace("p=8", "g=64").split()]) == 1


CONV = "--c 6 --h 9 --w 8 --filters 4 --kernel 3,2"


def ask_conv(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, dict]:
    status = main(["traffic", "conv", *line.split(), "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_a_convolution_is_counted_with_all_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--n 2 --stride 2,1 --dilation 1,2 --pad 1,0,2,3 --groups 2 --layout NHWC --dtype float16 --halo slide"
    status, answer = ask_conv(capsys, f"{CONV} {options} --tile f=1,p=2 --order gnfcqprs --buffers double")
    problem = conv(ConvShape(2, 6, 9, 8, 4, (3, 2), (2, 1), (1, 2), (1, 0, 2, 3), 2), "NHWC", "float16")
    tile = tuple(({**problem.loops} | {"f": 1, "p": 2}).values())
    nest = LoopNest(problem, tile, tuple("gnfcqprs"), buffers="double", halo="slide")
    assert status == 0
    assert set(answer) >= KEYS
    assert answer["source"] == "counted"
    assert (answer["read_bytes"], answer["write_bytes"]) == (nest.traffic.read_bytes, nest.traffic.write_bytes)
    assert (answer["working_set_bytes"], answer["order"]) == (nest.working_set_bytes, "gnfcqprs")


def test_a_tile_is_a_list_in_the_order_of_the_loops_or_pairs_with_the_rest_uncut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    by_list = ask_conv(capsys, f"{CONV} --tile 1,1,2,6,3,7,3,2")
    assert by_list == ask_conv(capsys, f"{CONV} --tile p=3,f=2")
    assert by_list[1]["tile"] == [1, 1, 2, 6, 3, 7, 3, 2]


def test_one_number_serves_both_directions(capsys: pytest.CaptureFixture[str]) -> None:
    short = "--c 2 --h 9 --w 9 --filters 4 --kernel 3 --stride 2 --pad 1 --tile f=1"
    long = "--c 2 --h 9 --w 9 --filters 4 --kernel 3x3 --stride 2,2 --pad 1,1,1,1 --tile f=1"
    assert ask_conv(capsys, short) == ask_conv(capsys, long)


def test_an_order_of_blocked_channels_is_written_with_commas(capsys: pytest.CaptureFixture[str]) -> None:
    line = "--c 16 --h 5 --w 5 --filters 16 --kernel 3 --layout NCHW8c --tile f=1,fi=8 --order n,g,f,fi,c,ci,p,q,r,s"
    assert ask_conv(capsys, line)[1]["order"] == "n,g,f,fi,c,ci,p,q,r,s"


def test_a_convolution_of_2_to_the_62_rows_is_modelled_or_refused_without_allocating(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = f"--c 1 --h {2**62} --w 1 --filters 1 --kernel 3,1 --sram 1GiB"
    assert main(["traffic", "conv", *line.split(), "--tile", "p=8"]) == 2
    assert "tiles along one axis; labkit counts up to" in capsys.readouterr().err
    status, answer = ask_conv(capsys, f"{line} --tile p={2**62}")
    assert (status, answer["fits"], answer["working_set_bytes"]) == (1, False, 4 * (2**62 + 3 + 2**62 - 2))


def test_a_cache_sees_a_tiled_convolution_element_by_element(capsys: pytest.CaptureFixture[str]) -> None:
    """One channel of 4 × 4, kernel 2, pad 1 above, 2 rows and 3 columns of filters in tiles; int8 adds up in int32."""
    x, w, y = 0, 64, 128  # 16, 8 and 2 · 4 · 3 · 4 bytes, each from the next line on
    lines = []
    for p0, f in ((p0, f) for p0 in (0, 2) for f in (0, 1)):
        for p in (p0, p0 + 1):
            for q in range(3):
                for r, s in ((r, s) for r in (0, 1) for s in (0, 1)):
                    if p - 1 + r >= 0:
                        lines += [(x + 4 * (p - 1 + r) + q + s) // 64, (w + 4 * f + 2 * r + s) // 64]
                lines.append((y + 4 * (12 * f + 3 * p + q)) // 64)
    line = "--c 1 --h 4 --w 4 --filters 2 --kernel 2 --pad 1,0,0,0 --dtype int8 --tile p=2,f=1 --order n,g,p,f,c,q,r,s"
    for sram, room in (("64B", 1), ("128B", 2), ("1KiB", 16)):
        status, answer = ask_conv(capsys, f"{line} --sram {sram} --model lru")
        assert (status, answer["source"], answer["accesses"]) == (0, "simulated", len(lines))
        assert answer["misses"] == misses_of_lru(lines, room)
        assert answer["read_bytes"] == 64 * answer["misses"]
        best = ask_conv(capsys, f"{line} --sram {sram} --model opt")[1]
        assert best["misses"] <= answer["misses"]
        assert best.keys() == answer.keys()
    assert answer.keys() == ask(capsys, "--m 8 --n 8 --k 8 --tile 4,4,4 --model lru")[1].keys()
    assert main(["traffic", "conv", *f"{line} --model lru --ways 8".split()]) == 0
    assert "lru cache, 8 ways, lines of 64 bytes: 4 misses in" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{CONV} --tile x=1", "has no loop 'x'; write 8 whole numbers for n,g,f,c,p,q,r,s, or loop=size pairs"),
        (f"{CONV} --tile p=1,p=2", "a loop is named twice"),
        (f"{CONV} --tile p=1,2", "tile 'p=1,2'"),
        (f"{CONV} --tile p=", "tile 'p='"),
        (f"{CONV} --tile p=0", "tile: p is 0"),
        (f"{CONV} --tile 1,1", "write 8 whole numbers"),
        (f"{CONV} --tile p=1 --order pq", "loop order p,q: write each of n, g, f, c, p, q, r, s once"),
        (f"{CONV} --tile p=1 --model lru --halo slide", "--halo slide: that is for a scratchpad"),
        (f"{CONV} --tile p=1 --ways 2", "--ways 2: only --model lru has sets, scratchpad has none"),
        (f"{CONV} --tile p=1 --model lru --ways 7", "is no multiple of 7 ways"),
        (f"--c 1 --h {2**40} --w 1 --filters 1 --kernel 1 --tile p={2**40} --model lru", "simulates up to"),
        (f"{CONV} --tile p=1 --groups 4", "4 groups must divide 6 channels and 4 filters"),
        (f"{CONV} --tile p=1 --kernel 30", "does not fit an image of 9×8"),
        (f"{CONV} --tile p=1 --pad 1,2,3", "--pad '1,2,3': write one whole number, rows,columns or top,left"),
        (f"{CONV} --tile p=1 --pad=-1", "cannot be negative"),
        (f"{CONV} --tile p=1 --stride 0", "strides[0] is 0"),
        (f"{CONV} --tile p=1 --halo wrap", "halo 'wrap': choose one of reload, slide"),
        (f"{CONV} --tile p=1 --layout HHWC", "HHWC"),
        (f"{CONV} --tile p=1 --sram 11B", "one element of each of X, W, Y must fit, 12 bytes"),
        ("--c 6 --h 9 --w 8 --filters 4 --tile p=1", "--kernel"),
    ],
)
def test_a_bad_convolution_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], line: str, message: str
) -> None:
    assert main(["traffic", "conv", *line.split(), "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--m 8 --n 8 --k 8 --tile 0,1,1", "tile: m is 0"),
        ("--m 8 --n 8 --k 8 --tile 8,8", "write 3 whole numbers for m,n,k"),
        ("--m 8 --n 8 --k 8 --tile a,b,c", "write 3 whole numbers for m,n,k"),
        ("--m 8 --n 8 --k 8 --tile=-1,2,3", "tile: m is -1"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --sram 512XB", "'512XB' is no size"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --sram 8B", "must fit"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --model fifo", "--model"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --ways 2", "--ways 2: only --model lru has sets, scratchpad has none"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --model lru --c-policy spill", "--c-policy spill: that is for a scratchpad"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --model lru --buffers double", "--buffers double: that is for a scratchpad"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --model lru --sram 100B", "100 bytes is no multiple"),
        ("--m 8192 --n 8192 --k 8192 --tile 8,8,8 --model lru", "accesses: labkit traffic simulates up to"),
        ("--m 1024 --n 1024 --k 1024 --tile 8,8,8 --model opt", "optimal replacement is simulated for up to"),
        (f"--m {2**62} --n 8 --k 8 --tile 8,8,8 --model lru", "63 bit"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --order mmk", "loop order m,m,k"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --c-policy keep", "C policy 'keep'"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --buffers triple", "buffers 'triple'"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --hardware cray", "no hardware preset 'cray'"),
        ("--m 8 --n 8 --k 8 --tile 1,1,1 --dtype int64", "--dtype"),
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
