"""The fields of a self-check and its verdict. No arithmetic here."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import ipywidgets

from labkit.explore import quiz
from labkit.explore.quiz import Question
from labkit.explore.turns import in_turn
from labkit.explore.view import View, explain, wrapping


class Quiz(View):
    """A field for each question and a button. ``set(q1=209)`` types from code; ``text`` is what the view says."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = tuple(questions)
        fields = {f"q{number}": _field(question) for number, question in enumerate(self.questions, 1)}
        self._button = ipywidgets.Button(description="check", tooltip="lock my answers and compare them")
        self._status = ipywidgets.HTML()
        rows = [_row(n, q, fields[f"q{n}"]) for n, q in enumerate(self.questions, 1)]
        super().__init__({}, [*rows, self._button, self._status])
        self.controls = fields
        self.text = "\n".join(f"{n}. {q.text} ({q.wanted})" for n, q in enumerate(self.questions, 1))
        self._button.on_click(self.refresh)

    def set(self, **answers: Any) -> Quiz:
        """Type answers by name, q1, q2 and so on; LabError for a name that is none."""
        return super().set(**{name: str(answer) for name, answer in answers.items()})

    def reveal(self) -> None:
        """Lock the answers and print a verdict for each question."""
        self.refresh()
        print(self.text)

    @in_turn
    def refresh(self, _button: object = None) -> None:
        """Lock the answers and say which are right."""
        try:
            outcomes = quiz.judge(self.questions, [control.value for control in self.controls.values()])
            lines = [quiz.verdict(*pair) for pair in zip(self.questions, outcomes, strict=True)]
            self.text = "\n".join(lines)
            for control in (*self.controls.values(), self._button):
                control.disabled = True
        except Exception as error:  # an exception in a callback is invisible in a notebook
            self.text = explain(error)
        self._status.value = f'<div role="status" style="white-space:pre-line">{html.escape(self.text)}</div>'


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
    return ipywidgets.HBox([text, field], layout=wrapping())
