"""The budget of exercise 06: ResNet-50 at full width, and the smallest SRAM there is, by trying every choice."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from labkit.course.checks.ex06_budget import Budget, budget, resnet_budget
from labkit.hardware import Hardware
from labkit.passes.pipeline import optimize
from labkit.residency import reside
from labkit.scheduling import schedule


def moved(case: Budget, level: str, sram_kib: int, resident: bool) -> int:
    """As the text of the exercise counts it."""
    machine = replace(case.hardware, sram_bytes=sram_kib * 1024)
    network = optimize(case.graph, level, machine).graph
    found = schedule(network, machine)
    return reside(found, network).schedule.dram_bytes if resident else found.dram_bytes


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_no_choice_with_less_sram_keeps_to_the_budget_of_resnet50(seed: int) -> None:
    case = resnet_budget(Random(seed))
    assert sum(array.size for array in case.graph.constants.values()) > 25_500_000
    assert case.hardware == Hardware.preset(case.hardware.name)
    tried = [size for size in case.sizes_kib if size <= case.least_kib]
    levels, stays = ("none", "basic", "extended", "layout"), (False, True)
    enough = [
        (level, size, resident)
        for size, level, resident in product(tried, levels, stays)
        if moved(case, level, size, resident) <= case.budget_bytes
    ]
    assert ("extended", case.least_kib, True) in enough
    assert {size for _, size, _ in enough} == {case.least_kib}
    assert all(resident and level in ("extended", "layout") for level, _, resident in enough)


@pytest.mark.parametrize("seed", range(5))
def test_the_warm_up_is_small_and_has_a_right_choice(seed: int) -> None:
    case = budget(Random(seed))
    assert len(case.graph.nodes) < 20
    assert moved(case, "extended", case.least_kib, True) <= case.budget_bytes
    assert min(case.sizes_kib) < case.least_kib < max(case.sizes_kib)
