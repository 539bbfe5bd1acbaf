"""A self-check: questions whose answers are computed, a field for each, and a verdict after the answers are locked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labkit.errors import LabError
from labkit.explore.predict import Outcome, predict, write

if TYPE_CHECKING:
    from labkit.explore.quiz_view import Quiz

TOPIC = "self-check"


@dataclass(frozen=True)
class Question:
    """One question. ``answer`` is computed by the lesson; ``unit`` says what number is wanted, ``choices`` what word.

    ``why`` is said with the answer.
    """

    text: str
    answer: object
    unit: str = ""
    choices: tuple[str, ...] = ()
    why: str = ""

    def __post_init__(self) -> None:
        if self.choices and self.answer not in self.choices:
            raise LabError(f"question {self.text!r}: the answer {self.answer!r} is none of {', '.join(self.choices)}")

    @property
    def wanted(self) -> str:
        """What kind of answer is wanted, in words."""
        return " / ".join(self.choices) if self.choices else f"a number, {self.unit}" if self.unit else "a number"

    def read(self, typed: str) -> object:
        """What a field holds as a value: a word that can be chosen, a number, or None for an empty field.

        Raises LabError for anything else.

        >>> Question("How many?", 30.1).read(" 1,024 "), Question("How many?", 30.1).read("30.1")
        (1024, 30.1)
        """
        text = typed.strip()
        if not text or text in self.choices:
            return text or None
        if self.choices:
            raise LabError(f"{text!r:.40}: choose one of {', '.join(self.choices)}")
        try:
            number = float(text.replace(",", ""))
        except ValueError:
            raise LabError(f"{text!r:.40} is no number; wanted: {self.wanted}") from None
        return int(number) if number.is_integer() and "." not in text else number


def judge(questions: Sequence[Question], typed: Sequence[str]) -> tuple[Outcome, ...]:
    """Lock what was typed and set it beside the answers; LabError, and nothing locked, where a field cannot be read."""
    said: dict[str, object] = {}
    for number, (question, text) in enumerate(zip(questions, typed, strict=True), 1):
        try:
            said[str(number)] = question.read(text)
        except LabError as error:
            raise LabError(f"question {number}: {error}") from None
    counted = {str(number): question.answer for number, question in enumerate(questions, 1)}
    return predict(TOPIC, **said).judge(**counted)


def verdict(question: Question, outcome: Outcome) -> str:
    """A line on one question: the answer, what was said, and why."""
    answer = f"{outcome.name}. {write(question.answer)}" + (f" {question.unit}" if question.unit else "")
    if outcome.said is not None:
        answer += " - right" if outcome.is_right else f", you said {write(outcome.said)}"
    return f"{answer}. {question.why}" if question.why else f"{answer}."


def show(*questions: Question) -> Quiz:
    """The fields; ``reveal()`` in the next cell prints the answers."""
    from labkit.explore.quiz_view import Quiz

    return Quiz(questions)
