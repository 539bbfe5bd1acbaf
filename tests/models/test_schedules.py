"""Schedules of real networks over SRAM sizes from 16 KiB to 4 MiB, fused and not."""

from dataclasses import replace
from itertools import pairwise

import pytest

import labkit
from labkit.hardware import Hardware
from labkit.passes.fuse import Fuse
from labkit.scheduling import Schedule, schedule
from tests.models.test_shared_models import NAMES
from tests.test_planning import never_used

KIB = 1024
SIZES = [KIB << shift for shift in range(4, 13)]
MACHINE = Hardware.preset("edge-npu")


def sweep(graph: labkit.Graph) -> list[Schedule]:
    return [schedule(graph, replace(MACHINE, sram_bytes=size)) for size in SIZES]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_bytes_never_rise_with_sram_and_no_kernel_is_over_capacity(shared, name: str) -> None:
    plain = labkit.optimize(labkit.load(shared / "models" / f"{name}.onnx")).graph
    for graph in (plain, Fuse(MACHINE)(plain)):
        found = sweep(graph)
        for size, one in zip(SIZES, found, strict=True):
            assert all(node.plan.working_set_bytes <= size for node in one)
            assert one.high_water_bytes <= size
        assert all(more.dram_bytes <= less.dram_bytes for less, more in pairwise(found))
        kept = [labkit.reside(one, graph).schedule for one in found]
        assert all(one.high_water_bytes <= size for size, one in zip(SIZES, kept, strict=True))
        assert all(more.dram_bytes <= less.dram_bytes for less, more in pairwise(kept))
        assert all(some.dram_bytes <= none.dram_bytes for some, none in zip(kept, found, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_with_enough_sram_the_total_is_that_of_cost(shared, name: str) -> None:
    """But for the elements of an image that a stride passes over: a tile leaves them where they are."""
    plain = labkit.optimize(labkit.load(shared / "models" / f"{name}.onnx")).graph
    for graph in (plain, Fuse(MACHINE)(plain)):
        skipped = sum(never_used(node.steps[0]) for node in graph.nodes)
        found = schedule(graph, replace(MACHINE, sram_bytes=2**40))
        assert found.dram_bytes == labkit.cost(graph, MACHINE).dram_bytes - skipped


@pytest.mark.slow
def test_fusing_for_a_machine_never_costs_bytes_on_it(shared) -> None:
    for name in ("light_resnet50_slim", "torch_mbv2__ts_keepbn"):
        plain = labkit.optimize(labkit.load(shared / "models" / f"{name}.onnx")).graph
        for size in (16 * KIB, 64 * KIB, 512 * KIB):
            machine = replace(MACHINE, sram_bytes=size)
            assert schedule(Fuse(machine)(plain), machine).dram_bytes <= schedule(plain, machine).dram_bytes


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_level_all_never_moves_more_bytes_in_more_sram(shared, name: str) -> None:
    """Fused, paired and laid out anew for each size."""
    plain = labkit.optimize(labkit.load(shared / "models" / f"{name}.onnx")).graph
    reports = [labkit.optimize(plain, "all", replace(MACHINE, sram_bytes=size)) for size in SIZES]
    assert all(one.schedule.high_water_bytes <= size for size, one in zip(SIZES, reports, strict=True))
    assert all(more.schedule.dram_bytes <= less.schedule.dram_bytes for less, more in pairwise(reports))
    assert all(any(sign in refusal.why for sign in "0123456789") for one in reports for refusal in one.refusals)
