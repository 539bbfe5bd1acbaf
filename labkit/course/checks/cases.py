"""Yes-or-no questions asked from a table: in a drawn order, and the first line of the table that is wrong is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from labkit.course.checking import CheckFailed

Case = TypeVar("Case")


def judge_cases(table: Sequence[tuple[Case, bool, str]], ask: Callable[[Case], tuple[bool, str]], draw: Random) -> None:
    """``table`` has cases, right answers and what to look at, plain cases first; ``ask`` gives an answer, and the call
    in words. The drawn order leaves nothing to answers learnt by heart; the first wrong line says most.

    Raises CheckFailed.
    """
    wrong: dict[int, str] = {}
    for line in draw.sample(range(len(table)), len(table)):
        case, right, hint = table[line]
        got, call = ask(case)
        if got is not right:
            wrong[line] = f"{call} gave {got}: {hint}"
    if wrong:
        raise CheckFailed(wrong[min(wrong)])
