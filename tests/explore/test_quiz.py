"""The self-check: fields, lock, verdict, and the way into the score."""

import pytest

from labkit.errors import LabError
from labkit.explore import predict as predictions
from labkit.explore import quiz
from labkit.explore.predict import score
from labkit.explore.quiz import Question

QUESTIONS = (
    Question("The largest T?", 209, why="3·T²·4 bytes."),
    Question("Intensity?", 2**31 / 71_303_168, unit="FLOP/byte"),
    Question("Which one halves?", "lru", choices=("scratchpad", "lru")),
)


@pytest.fixture(autouse=True)
def new_kernel(monkeypatch):
    monkeypatch.setattr(predictions, "_LOCKED", {})
    monkeypatch.setattr(predictions, "_OUTCOMES", {})


def test_the_saved_text_is_the_questions_and_not_the_answers():
    bundle = quiz.show(*QUESTIONS)._repr_mimebundle_()
    assert bundle["text/plain"].splitlines() == [
        "1. The largest T? (a number)",
        "2. Intensity? (a number, FLOP/byte)",
        "3. Which one halves? (scratchpad / lru)",
    ]


def test_the_button_locks_the_answers_and_says_which_are_right():
    view = quiz.show(*QUESTIONS).set(q1=209, q2=32, q3="lru")
    view._button.click()
    assert view.text.splitlines() == [
        "1. 209 - right. 3·T²·4 bytes.",
        "2. 30.12 FLOP/byte, you said 32.",
        "3. lru - right.",
    ]
    assert all(control.disabled for control in view.controls.values())
    assert 'role="status"' in view._status.value
    assert "3 of 3 results predicted: 2 right, 1 within a factor of 2" in str(score())


def test_reveal_prints_the_answers_of_an_empty_sheet(capsys):
    quiz.show(*QUESTIONS).reveal()
    assert capsys.readouterr().out.splitlines()[1:] == ["2. 30.12 FLOP/byte.", "3. lru."]
    assert str(score()).startswith("0 of 3")


def test_answers_typed_after_the_verdict_change_nothing(capsys):
    quiz.show(*QUESTIONS).set(q1=1).reveal()
    quiz.show(*QUESTIONS).set(q1=209).reveal()  # the cell is run again
    assert capsys.readouterr().out.count("you said 1") == 2


@pytest.mark.parametrize("typed", ["many", "1e", "209 bytes", "None", "<b>"])
def test_what_is_no_number_is_a_sentence_and_nothing_is_locked(typed):
    view = quiz.show(*QUESTIONS).set(q1=typed)
    view._button.click()
    assert view.text.startswith("Cannot show this: question 1: '")
    assert "is no number" in view.text
    assert "<b>" not in view._status.value
    view.set(q1="209")
    view._button.click()
    assert view.text.startswith("1. 209 - right")


@pytest.mark.parametrize("typed", ["inf", "nan", "1e999", "-5", "10" * 30])
def test_odd_numbers_are_only_wrong(typed):
    view = quiz.show(*QUESTIONS).set(q1=typed)
    view._button.click()
    assert view.text.startswith("1. 209, you said ")


def test_an_answer_that_cannot_be_chosen_is_a_mistake_of_the_lesson():
    with pytest.raises(LabError, match="none of a, b"):
        Question("Which?", "c", choices=("a", "b"))


def test_a_name_that_is_no_question_is_named():
    with pytest.raises(LabError, match="no control 'q9'"):
        quiz.show(*QUESTIONS).set(q9=1)
