"""The fields of a self-check and its verdict. No arithmetic here."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import ipywidgets

from labkit.errors import LabError
from labkit.explore import quiz
from labkit.explore.quiz import Question
from labkit.explore.turns import in_turn


class Quiz(ipywidgets.VBox):  # type: ignore[misc]
    """A field for each question and a button. ``set(q1=209)`` types from code; ``text`` is what the view says."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = tuple(questions)
        self.controls = {f"q{number}": _field(question) for number, question in enumerate(self.questions, 1)}
        self._button = ipywidgets.Button(description="check", tooltip="lock my answers and compare them")
        self._status = ipywidgets.HTML()
        self.text = "\n".join(f"{n}. {q.text} ({q.wanted})" for n, q in enumerate(self.questions, 1))
        rows = [_row(n, q, self.controls[f"q{n}"]) for n, q in enumerate(self.questions, 1)]
        super().__init__([*rows, self._button, self._status])
        self.add_class("labkit-quiz")
        self._button.on_click(self._check)

    @in_turn
    def set(self, **answers: object) -> Quiz:
        """Type answers by name, q1, q2 and so on; LabError for a name that is none."""
        for name, answer in answers.items():
            if name not in self.controls:
                raise LabError(f"no question {name!r}; there are: {', '.join(self.controls)}")
            self.controls[name].value = str(answer)
        return self

    def reveal(self) -> None:
        """Lock the answers and print a verdict for each question."""
        self._check()
        print(self.text)

    @in_turn
    def _check(self, _button: object = None) -> None:
        try:
            outcomes = quiz.judge(self.questions, [control.value for control in self.controls.values()])
            lines = [quiz.verdict(*pair) for pair in zip(self.questions, outcomes, strict=True)]
            self.text = "\n".join(lines)
            for control in (*self.controls.values(), self._button):
                control.disabled = True
        except Exception as error:  # an exception in a callback is invisible in a notebook
            self.text = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
        self._status.value = f'<div role="status" style="white-space:pre-line">{html.escape(self.text)}</div>'

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        return {**bundle, "text/plain": self.text}


def _field(question: Question) -> Any:
    layout = ipywidgets.Layout(width="230px")
    if question.choices:
        return ipywidgets.Dropdown(options=["", *question.choices], value="", layout=layout)
    return ipywidgets.Text(placeholder=question.wanted, layout=layout)


def _row(number: int, question: Question, field: Any) -> Any:
    text = ipywidgets.HTML(
        f'<div style="line-height:1.4;white-space:normal">{number}. {html.escape(question.text)}</div>',
        layout=ipywidgets.Layout(flex="1 1 420px", min_width="0"),
    )
    return ipywidgets.HBox([text, field], layout=ipywidgets.Layout(flex_flow="row wrap", align_items="center"))
