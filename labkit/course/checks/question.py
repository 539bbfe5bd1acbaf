"""A question with one right value: cases are drawn, and each known slip is told by the value it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isclose
from random import Random
from typing import Any, TypeVar

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.plain import whole

Found = TypeVar("Found")
_MOST_DRAWS = 500


def until_one_suits(draw: Callable[[], Found | None], what: str) -> Found:
    """The first case that suits; ``draw`` gives None for one that does not.

    AssertionError after many draws: then the rule of the check is at fault, and no student.
    """
    for _ in range(_MOST_DRAWS):
        if (found := draw()) is not None:
            return found
    raise AssertionError(
        f"the check found no {what} in {_MOST_DRAWS} draws: a fault of the check, not of your function"
    )


@dataclass(frozen=True)
class Slip:
    """A misconception: the value it leads to (None where it cannot be told), and what to look at."""

    value: Callable[..., Any]
    why: str


@dataclass(frozen=True)
class Question:
    """The check of a function that gives a number or a row of numbers.

    ``draw`` makes the arguments of one case; only *telling* cases are asked: every slip gives a value of its own there,
    so no wrong rule passes by luck and the sentence is the right one. ``read`` turns what comes into a plain value,
    ``show`` is how an argument is written in a message.
    """

    function: str
    draw: Callable[[Random], tuple[Any, ...]]
    right: Callable[..., Any]
    slips: tuple[Slip, ...]
    otherwise: str
    read: Callable[[object, str], Any] = whole
    cases: int = 5
    show: Callable[[Any], str] = repr

    def __call__(self, function: Function, draw: Random) -> None:
        for _ in range(self.cases):
            arguments = self.telling(draw)
            call = f"{self.function}({', '.join(map(self.show, arguments))})"
            got = self.read(function(*arguments), call)
            if not same(got, self.right(*arguments)):
                raise CheckFailed(f"{call} gave {got}: {self._why(got, arguments)}")

    def telling(self, draw: Random) -> tuple[Any, ...]:
        """Arguments for which the right value and those of all slips differ."""
        return until_one_suits(lambda: self._if_telling(self.draw(draw)), f"telling case of {self.function}")

    def _if_telling(self, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
        values = [self.right(*arguments), *(slip.value(*arguments) for slip in self.slips)]
        known = [value for value in values if value is not None]
        tells = all(not same(one, other) for i, one in enumerate(known) for other in known[:i])
        return arguments if tells else None

    def _why(self, got: object, arguments: tuple[Any, ...]) -> str:
        found = (slip.why for slip in self.slips if same(got, slip.value(*arguments)))
        return next(found, self.otherwise)


def same(one: object, other: object) -> bool:
    """Equal, floats to within a relative 1e-6: another order of summation is no mistake."""
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and isclose(one, other, rel_tol=1e-6)  # type: ignore[arg-type]
    return one == other
