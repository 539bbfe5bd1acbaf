"""The comparison with production optimisers: it asks first, and then shows what compare counted."""

import pytest

from labkit.errors import LabError
from labkit.explore import beside
from labkit.peers import Outcome

OUTCOMES = (Outcome("as it is", 59, 4096), Outcome("onnxsim", 39, 2048, 1e-6, 0.25), Outcome("other", note="<crashed>"))


def test_before_it_is_asked_it_shows_nothing_of_this_computer():
    assert beside.show("residual, small").text.startswith("Press the button")


def test_the_button_shows_what_compare_counted(monkeypatch):
    monkeypatch.setattr(beside, "compare", lambda path: OUTCOMES)
    view = beside.show("residual, small")
    view._button.click()
    assert [line.split("  ")[0] for line in view.text.splitlines()] == ["optimiser", "as it is", "onnxsim", "other"]
    assert "2 KiB" in view._table.value
    assert "&lt;crashed&gt;" in view._table.value
    assert view.set(network="MobileNetV2").text.startswith("Press the button")


def test_without_onnxruntime_it_is_a_sentence(monkeypatch):
    def missing(path):
        raise LabError("onnxruntime is not installed")

    monkeypatch.setattr(beside, "compare", missing)
    view = beside.show("residual, small").run()
    assert view.text == "Cannot show this: onnxruntime is not installed"
    assert view.text in view._table.value


def test_a_network_that_is_none_is_refused():
    with pytest.raises(LabError, match="no network 'VGG'"):
        beside.show("VGG")


@pytest.mark.slow
def test_it_really_compares_and_onnxruntime_keeps_the_dead_heads():
    outcomes = {outcome.name: outcome for outcome in beside.data("U-Net with dead heads")}
    assert outcomes["labkit basic"].nodes == 39
    assert outcomes["onnxruntime basic"].nodes == 39 + 6
