"""Predictions of a lesson: written down first, locked by the comparison, so that nobody predicts the past."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

_NEAR = 0.01  # a number with decimals is right when it is this close, relative to what was counted
_LOCKED: dict[str, Prediction] = {}  # of this kernel; a restart opens them again
_OUTCOMES: dict[tuple[str, str], Outcome] = {}


class Outcome(NamedTuple):
    """What was said of one thing, and what was counted; ``said`` is None where nothing was."""

    topic: str
    name: str
    said: object
    counted: object

    @property
    def is_right(self) -> bool:
        """Equal; a number with decimals only nearly so, since nobody predicts its last digit."""
        if isinstance(self.counted, float) and _is_number(self.said):
            return abs(float(self.said) - self.counted) <= _NEAR * abs(self.counted)  # type: ignore[arg-type]
        return self.said == self.counted

    @property
    def factor(self) -> float | None:
        """How many times too large (above 1) or too small (below 1) it was; None unless both are above 0."""
        if not (_is_number(self.said) and _is_number(self.counted)):
            return None
        said, counted = float(self.said), float(self.counted)  # type: ignore[arg-type]
        return said / counted if said > 0 and counted > 0 else None

    @property
    def is_close(self) -> bool:
        """Not right, and less than a factor of 2 away."""
        return not self.is_right and self.factor is not None and 0.5 <= self.factor <= 2

    def __str__(self) -> str:
        counted = write(self.counted)
        if self.said is None:
            return f"{self.name}: no prediction, counted {counted}"
        verdict = "right" if self.is_right else "explain the difference"
        return f"{self.name}: you said {write(self.said)}, counted {counted} - {verdict}"


@dataclass(frozen=True)
class Prediction:
    """What was expected, by name; None where nothing was. ``compare`` sets it beside what was counted."""

    topic: str
    values: tuple[tuple[str, object], ...]

    def compare(self, **counted: object) -> None:
        """Lock the prediction and print a line for each name: predicted, counted, and whether they agree.

        >>> predict("doctest", lines=3, bytes=None).compare(lines=1, bytes=12)
        lines: you said 3, counted 1 - explain the difference
        bytes: no prediction, counted 12
        """
        for outcome in self.judge(**counted):
            print(outcome)

    def judge(self, **counted: object) -> tuple[Outcome, ...]:
        """Lock the prediction and set it beside what was counted; the score keeps the first comparison."""
        expected = dict(_LOCKED.setdefault(self.topic, self).values)
        outcomes = tuple(Outcome(self.topic, name, expected.get(name), value) for name, value in counted.items())
        for outcome in outcomes:
            _OUTCOMES.setdefault((self.topic, outcome.name), outcome)
        return outcomes


def predict(topic: str, **values: object) -> Prediction:
    """Write a prediction down. Once it was compared the first one stays, whatever the cell says when it runs again.

    >>> predict("doctest of predict", lines=3).compare(lines=3)
    lines: you said 3, counted 3 - right
    >>> dict(predict("doctest of predict", lines=4).values)["lines"]
    3
    """
    return _LOCKED.get(topic, Prediction(topic, tuple(values.items())))


@dataclass(frozen=True)
class Score:
    """All comparisons of a lesson so far; its text is what a student sees at the end."""

    outcomes: tuple[Outcome, ...]

    @property
    def predicted(self) -> tuple[Outcome, ...]:
        """Those for which something was said."""
        return tuple(outcome for outcome in self.outcomes if outcome.said is not None)

    @property
    def furthest(self) -> Outcome | None:
        """The number that was missed by the largest factor; None when no number was wrong."""
        missed = [o for o in self.predicted if not o.is_right and o.factor is not None]
        return max(missed, key=_distance, default=None)

    def __str__(self) -> str:
        said = self.predicted
        if not said:
            return f"0 of {len(self.outcomes)} results predicted. Guess first next time: a wrong guess teaches more."
        right, close = sum(o.is_right for o in said), sum(o.is_close for o in said)
        off = len(said) - right - close
        lines = [
            f"{len(said)} of {len(self.outcomes)} results predicted: "
            f"{right} right, {close} within a factor of 2, {off} further off or another word."
        ]
        if worst := self.furthest:
            direction = "too high" if _factor(worst) > 1 else "too low"
            lines.append(
                f"Furthest off: {worst.topic}, {worst.name}: you said {write(worst.said)}, counted "
                f"{write(worst.counted)}, {_distance(worst):.3g} times {direction}. Can you explain it now?"
            )
        return "\n".join(lines)

    __repr__ = __str__


def score() -> Score:
    """The predictions that were compared in this kernel, each as it was at its first comparison."""
    return Score(tuple(_OUTCOMES.values()))


def write(value: object) -> str:
    """A value as a lesson prints it: a number with decimals to four digits, everything else as it is.

    >>> write(30.1176), write(12.0), write(28), write("NHWC")
    ('30.12', '12', '28', 'NHWC')
    """
    return f"{value:.4g}" if isinstance(value, float) and abs(value) < 1e5 else str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _factor(outcome: Outcome) -> float:
    return outcome.factor or 1.0


def _distance(outcome: Outcome) -> float:
    return max(_factor(outcome), 1 / _factor(outcome))
