"""Cases that a check draws until one suits: the first that does, and an end where none ever would."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from labkit.course.checks import ex01_lines, ex02, ex03_graphs, ex03_split, ex06_budget, ex06_layouts, ex06_passes
from labkit.course.checks.question import until_one_suits


def test_the_first_case_that_suits_is_taken_and_no_more_are_drawn() -> None:
    cases = iter([None, None, 3, 4])
    assert until_one_suits(lambda: next(cases), "number") == 3
    assert next(cases) == 4


@pytest.mark.parametrize(
    ("module", "rule", "draw"),
    [
        (ex01_lines, "_walks_if_telling", ex01_lines._telling_walks),
        (ex02, "_given_if_square_is_worse", ex02.given),
        (ex03_split, "_case_of", ex03_split.trunk),
        (ex03_graphs, "_groups_to_ask", ex03_graphs._cases),
        (ex06_layouts, "_if_telling", ex06_layouts.telling_graph),
        (ex06_passes, "_if_telling", ex06_passes._telling_report),
        (ex06_budget, "_of_one_block", ex06_budget.budget),
        (ex06_budget, "_of_resnet", ex06_budget.resnet_budget),
    ],
    ids=["walks", "matmul", "trunk", "groups", "layouts", "report", "budget", "budget of ResNet-50"],
)
def test_a_rule_that_no_case_meets_ends_with_a_sentence(
    module: object, rule: str, draw: Callable[[Random], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labkit.course.checks.question._MOST_DRAWS", 3)
    monkeypatch.setattr(module, rule, lambda *_: None)
    with pytest.raises(AssertionError, match=r"the check found no .+ in 3 draws: a fault of the check"):
        draw(Random(0))
