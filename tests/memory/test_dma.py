"""DMA runs and times: a list of addresses judges the runs, sums and maxima worked out here the times."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.memory.dma import DmaCost, KernelTime, kernel_times
from labkit.memory.ledger import Ledger
from labkit.memory.scratchpad import Scratchpad, contiguous_runs

NPU = Hardware.preset("edge-npu")
ROUND = replace(NPU, peak_flops_per_s=100.0, dram_bytes_per_s=10.0, launch_s=0.5)


@given(st.data())
def test_runs_are_the_breaks_in_a_list_of_addresses(data) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    dram = np.zeros(shape, np.float32)
    sides = []
    for extent in shape:
        start = data.draw(st.integers(0, extent - 1))
        sides.append(slice(start, data.draw(st.integers(start + 1, extent))))
    addresses = np.arange(dram.size).reshape(shape)[tuple(sides)].ravel()
    assert contiguous_runs(dram[tuple(sides)]) == 1 + np.count_nonzero(np.diff(addresses) != 1)


def test_a_column_is_as_many_runs_as_it_has_rows() -> None:
    dram = np.zeros((8, 10), np.int8)
    assert contiguous_runs(dram[:, 3:4]) == 8
    assert contiguous_runs(dram[2:5]) == 1
    assert contiguous_runs(dram.T) == 80
    assert contiguous_runs(dram[:1].T) == 1, "an axis of length 1 moves nothing, whatever its stride"
    assert contiguous_runs(dram[:, ::2]) == 40
    assert contiguous_runs(dram[:0]) == 0


def test_every_transfer_enters_its_runs() -> None:
    pad, dram = Scratchpad("1KiB"), np.zeros((8, 10), np.float32)
    pad.load("x", dram[2:6, 2:6])
    pad.store("x", dram[2:6, 6:])
    pad.stream("s", dram[0])
    assert [line.runs for line in pad.ledger] == [4, 4, 10]
    assert pad.ledger.runs == 18


def test_the_cost_is_a_plus_b_times_bytes_for_each_run() -> None:
    dma = DmaCost(setup_s=2.0, bytes_per_s=10.0)
    assert dma.seconds(runs=3, nbytes=50) == 3 * 2.0 + 5.0
    assert DmaCost.of(NPU).seconds(runs=10**6, nbytes=int(NPU.dram_bytes_per_s)) == 1.0


@pytest.mark.parametrize(("setup_s", "rate"), [(-1.0, 1.0), (0.0, 0.0), (float("nan"), 1.0), (0.0, float("nan"))])
def test_an_engine_that_cannot_be_is_refused(setup_s: float, rate: float) -> None:
    with pytest.raises(LabError, match="DMA: "):
        DmaCost(setup_s, rate)


@pytest.mark.parametrize(
    ("buffers", "seconds"),
    [("single", 6 + 2 + 4 + 0.5), ("double", 6 + 2 + 0.5), ("double_all", 8 + 0.5)],
)
def test_what_has_two_buffers_overlaps(buffers, seconds: float) -> None:
    assert KernelTime(6.0, 2.0, 4.0, 0.5, buffers).seconds == seconds
    compute_bound = KernelTime(1.0, 2.0, 40.0, 0.5, buffers).seconds
    assert compute_bound == 40.5 + {"single": 3.0, "double": 2.0, "double_all": 0.0}[buffers]


@given(st.floats(0, 9), st.floats(0, 9), st.floats(0, 9))
def test_what_is_hidden_behind_the_arithmetic_costs_no_time(input_s: float, output_s: float, spare_s: float) -> None:
    """B14: where all has two buffers, and transfers are the shorter part, no time is lost in waiting for them."""
    compute_s = input_s + output_s + spare_s
    assert KernelTime(input_s, output_s, compute_s, 0.5, "double_all").seconds == compute_s + 0.5


def test_kernels_run_one_after_another_each_with_its_own_parts() -> None:
    ledger = Ledger()
    ledger.record("conv", "x", "read", 100, runs=4)
    ledger.record("conv", "y", "read", 20, phase="partial")
    ledger.record("conv", "y", "write", 40, runs=2)
    ledger.record("relu", "y", "read", 40)
    ledger.record("relu", "z", "write", 40)
    times = kernel_times(ledger, {"conv": 700}, ROUND, DmaCost.of(ROUND, setup_s=1.0), "double")
    assert times["conv"] == KernelTime(4 + 10.0, 3 + 6.0, 7.0, 0.5, "double")
    assert times["relu"] == KernelTime(1 + 4.0, 1 + 4.0, 0.0, 0.5, "double")
    assert [time.seconds for time in times.values()] == [14 + 9 + 0.5, 5 + 5 + 0.5]


def test_reads_and_writes_are_never_merged() -> None:
    """B11: ten reads at 1 and ten writes at 3 cost 40, not what the larger of the two would."""
    ledger = Ledger()
    for _ in range(10):
        ledger.record("k", "x", "read", 1)
        ledger.record("k", "x", "write", 1)
    assert ledger.traffic.reads * 1 + ledger.traffic.writes * 3 == 40
    assert ledger.by("kind")["write"].writes == 10
