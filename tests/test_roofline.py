"""The roofline model against its definition."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.loops import LoopNest
from labkit.problems import matmul
from labkit.roofline import RooflineEstimate, arithmetic_intensity, attainable_flops_per_s

NPU = Hardware.preset("edge-npu")
counts = st.integers(0, 2**60)


def test_two_roofs_meet_at_the_ridge() -> None:
    assert attainable_flops_per_s(NPU.ridge, NPU) == pytest.approx(NPU.peak_flops_per_s, rel=1e-12)
    assert attainable_flops_per_s(NPU.ridge / 4, NPU) == pytest.approx(NPU.peak_flops_per_s / 4, rel=1e-12)
    assert attainable_flops_per_s(NPU.ridge * 4, NPU) == NPU.peak_flops_per_s


@given(counts, counts, st.integers(0, 1000))
def test_predicted_time_is_the_work_divided_by_the_attainable_rate(flops: int, dram_bytes: int, launches: int) -> None:
    estimate = RooflineEstimate(flops, dram_bytes, launches, NPU)
    assert estimate.seconds >= max(estimate.compute_s, estimate.memory_s) >= 0
    if flops:
        busy_s = estimate.seconds - launches * NPU.launch_s
        assert busy_s == pytest.approx(flops / estimate.attainable_flops_per_s, rel=1e-6, abs=1e-12)
    assert (estimate.limit == "memory") == (estimate.intensity < NPU.ridge)


def test_launches_are_paid_one_by_one() -> None:
    hardware = replace(NPU, launch_s=0.5)
    assert RooflineEstimate(0, 0, 3, hardware).seconds == 1.5


def test_a_nest_is_a_kernel_of_its_flops_and_bytes() -> None:
    """1024³ in tiles of 128: 2³¹ FLOP and 68 MiB, by the errata; below the ridge of this machine, so DRAM decides."""
    nest = LoopNest(matmul(1024, 1024, 1024), (128, 128, 128), tuple("mnk"))
    estimate = RooflineEstimate.of(nest, NPU)
    assert (estimate.flops, estimate.dram_bytes, estimate.launches) == (2**31, 68 * 2**20, 1)
    assert estimate.limit == "memory"
    assert estimate.seconds == 68 * 2**20 / NPU.dram_bytes_per_s + NPU.launch_s


def test_intensity_at_its_ends() -> None:
    assert arithmetic_intensity(0, 100) == 0
    assert arithmetic_intensity(0, 0) == 0
    assert arithmetic_intensity(5, 0) == inf
    assert attainable_flops_per_s(inf, NPU) == NPU.peak_flops_per_s


@pytest.mark.parametrize("field", ["flops", "dram_bytes", "launches"])
def test_a_negative_count_is_refused(field: str) -> None:
    with pytest.raises(LabError, match=f"{field} is -1"):
        RooflineEstimate(**{"flops": 1, "dram_bytes": 1, "launches": 1, "hardware": NPU, field: -1})
