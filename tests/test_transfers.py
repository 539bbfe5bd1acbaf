"""What a nest asks of a DMA engine: by hand, and against the ledger of a run (tests/kernels/test_nest.py has many)."""

from dataclasses import replace

import numpy as np
import pytest

from labkit.hardware import Hardware
from labkit.kernels.nest import run_nest
from labkit.loops import LoopNest
from labkit.memory.dma import DmaCost, kernel_times
from labkit.memory.ledger import Traffic
from labkit.memory.scratchpad import Scratchpad
from labkit.problems import ConvShape, conv, matmul
from labkit.transfers import by_phase, nest_time, runs_by_operand

NPU = Hardware.preset("edge-npu")


def cubes(order: str = "mnk", **options) -> LoopNest:
    return LoopNest(matmul(1024, 1024, 1024), (128, 128, 128), tuple(order), **options)


def test_a_tile_of_128_rows_is_128_runs() -> None:
    assert runs_by_operand(cubes()) == {"A": 512 * 128, "B": 512 * 128, "C": 64 * 128}
    wide = LoopNest(matmul(1024, 1024, 1024), (128, 1024, 128), ("m", "n", "k"))
    assert runs_by_operand(wide) == {"A": 64 * 128, "B": 64, "C": 8}, "whole rows lie one behind another"


@pytest.mark.parametrize(("layout", "runs"), [("NCHW", 4 * 64), ("NHWC", 4), ("NCHW8c", 4 * 8)])
def test_the_layout_decides_how_many_runs_a_band_of_rows_has(layout: str, runs: int) -> None:
    nest = LoopNest.of(conv(ConvShape(1, 64, 56, 56, 64, (1, 1)), layout)).split("p", 14)
    assert runs_by_operand(nest)["X"] == runs
    narrow = nest.split("q", 28)
    assert runs_by_operand(narrow)["X"] == 2 * 14 * runs, "half rows break at each row"


def test_phases_tell_first_loads_from_reloads_and_spills() -> None:
    mib = 2**20
    assert by_phase(cubes()) == {
        "once": Traffic(8 * mib, 4 * mib, 128, 64),
        "again": Traffic(7 * 8 * mib, 0, 7 * 128, 0),
    }
    spilt = by_phase(cubes("kmn"))
    assert spilt["partial"] == Traffic(7 * 4 * mib, 7 * 4 * mib, 7 * 64, 7 * 64)
    assert spilt["once"] == Traffic(8 * mib, 4 * mib, 128, 64)
    added = by_phase(cubes(c_policy="load_store"))
    assert added["once"] == Traffic(12 * mib, 4 * mib, 192, 64), "what is added to is read once"
    assert "partial" not in added
    assert sum(spilt.values(), Traffic()) == cubes("kmn").traffic


def test_once_is_what_is_compulsory_and_the_halo() -> None:
    problem = conv(ConvShape(1, 1, 18, 1, 1, (3, 1)))
    assert by_phase(LoopNest.of(problem).split("p", 1))["once"].read_bytes == 4 * (48 + 3)
    slides = replace(LoopNest.of(problem).split("p", 1), halo="slide")
    assert by_phase(slides)["once"].nbytes == problem.compulsory_bytes


@pytest.mark.parametrize("buffers", ["single", "double", "double_all"])
@pytest.mark.parametrize("order", ["mnk", "kmn"])
def test_the_time_of_a_nest_is_that_of_its_ledger(order: str, buffers) -> None:
    nest = LoopNest(matmul(30, 20, 25), (8, 7, 6), tuple(order), buffers=buffers)
    pad, dma = Scratchpad("64KiB"), DmaCost(1e-7, 1e9)
    arrays = {"A": np.ones((30, 25), np.float32), "B": np.ones((25, 20), np.float32)}
    run_nest(nest, arrays, pad)
    counted = kernel_times(pad.ledger, {"kernel": nest.problem.flops}, NPU, dma, buffers)["kernel"]
    assert nest_time(nest, NPU, dma).seconds == pytest.approx(counted.seconds, rel=1e-12)


def test_double_buffering_hides_the_shorter_of_the_two() -> None:
    traffic, fast = cubes().traffic, replace(NPU, dram_bytes_per_s=1e12)
    compute_s, memory_s = cubes().problem.flops / NPU.peak_flops_per_s, traffic.nbytes / NPU.dram_bytes_per_s
    single, double, everything = (nest_time(cubes(buffers=b), NPU).seconds for b in ("single", "double", "double_all"))
    assert single == pytest.approx(compute_s + memory_s + NPU.launch_s)
    assert double == pytest.approx(memory_s + NPU.launch_s), "memory-bound: the arithmetic is hidden"
    assert everything == pytest.approx(double)
    double, everything = (nest_time(cubes(buffers=b), fast).seconds for b in ("double", "double_all"))
    assert double == pytest.approx(compute_s + traffic.write_bytes / 1e12 + NPU.launch_s), "C has one buffer: it waits"
    assert everything == pytest.approx(compute_s + NPU.launch_s)


def test_set_up_times_make_short_runs_dear() -> None:
    long, short = (LoopNest(matmul(512, 512, 512), tile, ("m", "n", "k")) for tile in ((64, 512, 64), (64, 64, 512)))
    free, dear = DmaCost.of(NPU), DmaCost.of(NPU, 1e-6)
    assert runs_by_operand(long)["B"] < runs_by_operand(short)["B"]
    added = [nest_time(n, NPU, dear).seconds - nest_time(n, NPU, free).seconds for n in (long, short)]
    assert added == pytest.approx([sum(runs_by_operand(n).values()) * 1e-6 for n in (long, short)])
