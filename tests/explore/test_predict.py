"""Predictions of a lesson, and the score at its end."""

import pytest

from labkit.explore import predict as predictions
from labkit.explore.predict import Outcome, predict, score


@pytest.fixture(autouse=True)
def new_kernel(monkeypatch):
    monkeypatch.setattr(predictions, "_LOCKED", {})
    monkeypatch.setattr(predictions, "_OUTCOMES", {})


def test_a_compared_prediction_cannot_be_changed_afterwards(capsys):
    predict("locked", lines=3).compare(lines=1)
    predict("locked", lines=1).compare(lines=1)
    assert capsys.readouterr().out.count("you said 3, counted 1") == 2


def test_of_two_written_before_a_comparison_the_first_that_is_compared_stays(capsys):
    first, second = predict("twice", lines=3), predict("twice", lines=1)
    first.compare(lines=1)
    second.compare(lines=1)
    assert capsys.readouterr().out.count("you said 3, counted 1") == 2


def test_an_uncompared_prediction_may_be_changed(capsys):
    predict("open", lines=3)
    predict("open", lines=1).compare(lines=1)
    assert capsys.readouterr().out == "lines: you said 1, counted 1 - right\n"


def test_nothing_predicted_is_said_without_a_verdict(capsys):
    predict("silent", lines=None).compare(lines=1, other=2)
    assert capsys.readouterr().out.splitlines() == [
        "lines: no prediction, counted 1",
        "other: no prediction, counted 2",
    ]


@pytest.mark.parametrize(
    ("said", "counted", "is_right"),
    [
        *((30.1, 30.117647, True), (30, 30.117647, True), (29, 30.117647, False), (32, 32, True), (31.99, 32, False)),
        *(("view", "view", True), ("copy", "view", False), (True, True, True), ("x", 0.25, False), (0.26, 0.25, False)),
    ],
)
def test_a_whole_number_is_hit_exactly_and_one_with_decimals_nearly(said, counted, is_right):
    assert Outcome("t", "n", said, counted).is_right is is_right


def test_decimals_are_printed_to_four_digits(capsys):
    predict("digits", intensity=30.2).compare(intensity=2**31 / 71_303_168)
    assert capsys.readouterr().out == "intensity: you said 30.2, counted 30.12 - right\n"


def test_the_score_counts_each_result_once_as_it_was_first_compared(capsys):
    for _ in range(2):  # cells are run again
        predict("a", exact=4, close=70, far=1, word="copy", silent=None).compare(
            exact=4, close=100, far=16, word="view", silent=3
        )
    predict("b", high=64.0).compare(high=2.0)
    capsys.readouterr()
    assert str(score()).splitlines() == [
        "5 of 6 results predicted: 1 right, 1 within a factor of 2, 3 further off or another word.",
        "Furthest off: b, high: you said 64, counted 2, 32 times too high. Can you explain it now?",
    ]


def test_the_score_keeps_what_was_counted_first():
    for counted in (4, 8):  # somebody moved the hardware panel in between
        predict("moved", x=4).compare(x=counted)
    assert str(score()).startswith("1 of 1 results predicted: 1 right")


def test_a_number_too_low_is_as_far_off_as_one_too_high():
    predict("low", x=1).compare(x=40)
    predict("high", y=39).compare(y=1)
    assert "low, x: you said 1, counted 40, 40 times too low" in str(score())


@pytest.mark.parametrize(("said", "counted"), [(0, 5), (5, 0), (-1, 5), (True, 5), ("none", 5)])
def test_where_there_is_no_factor_the_score_has_none(said, counted):
    predict("odd", x=said).compare(x=counted)
    assert str(score()) == "1 of 1 results predicted: 0 right, 0 within a factor of 2, 1 further off or another word."


def test_a_score_without_predictions_says_so():
    predict("none", x=None).compare(x=1)
    assert str(score()).startswith("0 of 1 results predicted.")
