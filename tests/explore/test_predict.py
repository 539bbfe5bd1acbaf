"""Predictions of a lesson."""

from labkit.explore.predict import predict


def test_a_compared_prediction_cannot_be_changed_afterwards(capsys):
    predict("locked", lines=3).compare(lines=1)
    predict("locked", lines=1).compare(lines=1)
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
