"""Exercise 06, the pipeline: a roofline, a report, the order of passes, a pass of one's own, transforms, a budget."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from labkit.course.checking import Part
from labkit.course.checks.ex06_budget import Budget, budget, check_budget
from labkit.course.checks.ex06_layouts import check_place, telling_graph, transform_bytes
from labkit.course.checks.ex06_passes import check_own_pass, check_saved, check_shortest
from labkit.course.checks.plain import number
from labkit.course.checks.question import Question, Slip
from labkit.graph import Graph

Kernels = tuple[tuple[int, int], ...]  # FLOP and bytes of each
_LAYOUT = ("labkit.passes", "labkit.mincut", "labkit.costing")


@dataclass(frozen=True)
class Given:
    """One student's graph to lay out, and a network with a budget."""

    graph: Graph
    budget: Budget


def given(draw: Random) -> Given:
    """A graph for which the minimum cut beats the simple strategies, and a budget for a network of one block."""
    return Given(telling_graph(draw), budget(draw))


# ---- 6.1 faster, by the roofline


def _seconds(kernels: Kernels, peak: float, bandwidth: float, launch_s: float) -> float:
    return sum(max(flops / peak, nbytes / bandwidth) + launch_s for flops, nbytes in kernels)


def _ratio(of: Any) -> Any:
    """Time before over time after, when time is counted in another way."""
    return lambda before, after, *machine: of(before, *machine) / of(after, *machine)


def _totals(kernels: Kernels) -> tuple[int, int]:
    return sum(flops for flops, _ in kernels), sum(nbytes for _, nbytes in kernels)


def _roof_of_totals(kernels: Kernels, peak: float, bandwidth: float, launch_s: float) -> float:
    flops, nbytes = _totals(kernels)
    return max(flops / peak, nbytes / bandwidth) + launch_s * len(kernels)


def _draw_speedup(draw: Random) -> tuple[Any, ...]:
    """Convolutions on both sides of the ridge, with elementwise kernels behind them that are fused afterwards."""
    peak, bandwidth = draw.choice([1, 2, 4, 8]) * 1e12, draw.choice([4, 8, 16]) * 1e9
    before, after = [], []
    for bound in draw.sample([8.0, 4.0, 0.5, 0.25], 3):
        nbytes = draw.randrange(10**6, 9 * 10**6)
        flops = int(bound * nbytes * peak / bandwidth)
        behind = draw.randrange(2 * 10**5, nbytes // 3)
        before += [(flops, nbytes), (behind // 8, behind)]
        after.append((flops + behind // 8, nbytes + behind // draw.choice([5, 6, 7])))
    return tuple(before), tuple(after), peak, bandwidth, draw.choice([1e-4, 2e-4, 5e-4])


speedup = Question(
    "speedup",
    _draw_speedup,
    _ratio(_seconds),
    (
        Slip(
            _ratio(lambda k, p, b, t: _seconds(k, p, b, 0)),
            "the launches are forgotten: each kernel has one, and it overlaps with nothing.",
        ),
        Slip(
            _ratio(lambda k, p, b, t: _seconds(k, p, b, 0) + t),
            "one launch for the whole network; how many kernels are started?",
        ),
        Slip(
            _ratio(lambda k, p, b, t: sum(f / p + n / b + t for f, n in k)),
            "arithmetic and transfers one after the other; they overlap, so the longer of the two counts.",
        ),
        Slip(
            _ratio(_roof_of_totals),
            "that is one roof for the whole network; kernels run one after another, each below its own roof.",
        ),
        Slip(_ratio(lambda k, p, b, t: sum(max(f / p, n / b, t) for f, n in k)), "a launch overlaps with nothing."),
        Slip(
            _ratio(lambda k, p, b, t: sum(min(f / p, n / b) + t for f, n in k)),
            "the shorter of arithmetic and transfers; which of the two does the kernel wait for?",
        ),
        Slip(
            _ratio(lambda k, p, b, t: sum(n / b + t for _, n in k)),
            "the arithmetic is forgotten: above the ridge it takes longer than the transfers.",
        ),
        Slip(
            _ratio(lambda k, p, b, t: sum(f / p + t for f, _ in k)),
            "the transfers are forgotten: below the ridge they take longer than the arithmetic.",
        ),
        Slip(lambda *a: 1 / _ratio(_seconds)(*a), "after over before; it is the other way round."),
        Slip(
            lambda before, after, *m: _seconds(before, *m) - _seconds(after, *m),
            "seconds saved; how many times faster?",
        ),
        Slip(
            lambda before, after, *m: _totals(before)[1] / _totals(after)[1],
            "that is the ratio of bytes, not of times.",
        ),
        Slip(lambda before, after, *m: _seconds(after, *m), "that is the time afterwards."),
    ),
    "for each kernel: seconds of arithmetic, seconds of transfers, the longer one, and a launch; then add up.",
    number,
    cases=3,
)


PARTS = {
    "6.1": Part("how much faster, by the roofline", 2, "speedup", speedup, ("labkit.roofline", "labkit.costing")),
    "6.2": Part("which pass saved what", 2, "saved_by_pass", check_saved),
    "6.3": Part("the fewest runs to the fixed point", 3, "fewest_runs", check_shortest),
    "6.4": Part("a pass of your own", 4, "relu_behind_pool", check_own_pass, ("labkit.passes",)),
    "6.5": Part("what transforms move", 2, "transform_bytes", transform_bytes, _LAYOUT),
    "6.6": Part("where transforms stand", 3, "place_transforms", check_place, _LAYOUT),
    "6.7": Part("within the budget, with the smallest SRAM", 4, "meet_budget", check_budget, rounds=2),
}
