"""Predictions of a lesson: written down first, locked by the comparison, so that nobody predicts the past."""

from __future__ import annotations

from dataclasses import dataclass

_LOCKED: dict[str, Prediction] = {}  # of this kernel; a restart opens them again


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
        _LOCKED.setdefault(self.topic, self)
        expected = dict(self.values)
        for name, value in counted.items():
            said = expected.get(name)
            if said is None:
                print(f"{name}: no prediction, counted {value}")
            elif said == value:
                print(f"{name}: you said {said}, counted {value} - right")
            else:
                print(f"{name}: you said {said}, counted {value} - explain the difference")


def predict(topic: str, **values: object) -> Prediction:
    """Write a prediction down. Once it was compared the first one stays, whatever the cell says when it runs again.

    >>> predict("doctest of predict", lines=3).compare(lines=3)
    lines: you said 3, counted 3 - right
    >>> dict(predict("doctest of predict", lines=4).values)["lines"]
    3
    """
    return _LOCKED.get(topic, Prediction(topic, tuple(values.items())))
