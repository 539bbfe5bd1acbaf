"""The least cut of a network, held to every cut there is and to the flow that fills it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from labkit.errors import LabError
from labkit.mincut import minimum_cut


def _random_network(seed: int) -> tuple[int, list[tuple[int, int, int]]]:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 11))
    edges = [
        (int(a), int(b), int(rng.integers(0, 9)))
        for a, b in product(range(count), repeat=2)
        if a != b and rng.random() < rng.choice([0.2, 0.5, 0.9])
    ]
    return count, edges


def _all_cuts(count: int, edges: list[tuple[int, int, int]]) -> dict[frozenset[int], int]:
    """Source 0, sink 1: each side that holds the one and not the other, and what leaves it."""
    sides = (
        frozenset({0} | {v for v, chosen in enumerate(rest, 2) if chosen})
        for rest in product((0, 1), repeat=count - 2)
    )  # fmt: skip
    return {side: sum(c for a, b, c in edges if a in side and b not in side) for side in sides}


@pytest.mark.parametrize("seed", range(200))
def test_no_cut_of_a_random_network_is_smaller_and_of_the_least_it_has_the_smallest_source_side(seed: int) -> None:
    count, edges = _random_network(seed)
    cuts = _all_cuts(count, edges)
    least = min(cuts.values())
    found = minimum_cut(edges, 0, 1)
    assert found.capacity == least
    assert cuts[found.source_side] == least
    assert found.source_side == frozenset.intersection(*(side for side, size in cuts.items() if size == least))


def test_the_order_of_the_edges_does_not_matter() -> None:
    _, edges = _random_network(7)
    assert len({minimum_cut(np.random.default_rng(s).permutation(edges).tolist(), 0, 1) for s in range(20)}) == 1


def test_capacities_have_no_largest_number() -> None:
    assert minimum_cut([("s", "a", 10**30), ("a", "t", 10**29)], "s", "t").capacity == 10**29


def test_a_sink_that_nothing_reaches_costs_nothing() -> None:
    assert minimum_cut([("s", "a", 3), ("t", "a", 2)], "s", "t").capacity == 0
    assert minimum_cut([], "s", "t").source_side == {"s"}


def test_a_long_chain_needs_no_deep_recursion() -> None:
    chain = [(i, i + 1, 7 + i % 3) for i in range(20_000)]
    assert minimum_cut(chain, 0, 20_000).capacity == 7


@pytest.mark.parametrize(
    ("edges", "ends", "message"),
    [
        ([("s", "t", -1)], ("s", "t"), "capacity -1; it must be 0 or more"),
        ([], ("s", "s"), "both 's'"),
    ],
)
def test_what_is_no_network_is_refused(edges, ends, message) -> None:
    with pytest.raises(LabError, match=message):
        minimum_cut(edges, *ends)
