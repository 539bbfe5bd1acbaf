"""The live figure: the last value is what shows, errors are sentences, and nothing is left behind."""

import gc
import io
import threading
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
import traitlets
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from labkit.errors import LabError
from labkit.explore import live
from labkit.explore.live import Animation, LiveFigure


@dataclass(frozen=True)
class Dot:
    """A dot at ``x``, on axes that reach to ``limit``."""

    x: float
    limit: float = 10.0

    @property
    def sentence(self) -> str:
        return f"x is {self.x} < {self.limit}"

    @property
    def still(self) -> float:
        return self.limit


class Knob(traitlets.HasTraits):
    dot = traitlets.Instance(Dot, (1.0,))


def draw(figure: Figure, dot: Dot) -> Line2D:
    axes = figure.add_subplot(xlim=(0, dot.limit), ylim=(0, 2))
    return axes.plot([], [], "o", animated=True)[0]


def move(line: Line2D, dot: Dot) -> None:
    if dot.x == 5:
        raise ValueError("no <dot> at 5")
    line.set_data([dot.x], [1])


def view_of(knob: Knob) -> LiveFigure:
    return LiveFigure(lambda: knob.dot, draw, move, (3, 2), follows=[(knob, "dot")])


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)))


@pytest.mark.parametrize("looked_at", [False, True])
def test_a_change_shows_in_text_and_in_pixels(looked_at: bool) -> None:
    knob = Knob()
    view = view_of(knob)
    view._view_count = int(looked_at)
    before = view.png
    assert view.text == "x is 1.0 < 10.0"
    knob.dot = Dot(7.0)
    assert view.text == "x is 7.0 < 10.0"
    assert view.png != before
    assert pixels(view.png).shape == (200, 300, 3)
    knob.dot = Dot(1.0)
    assert view.png == before


def test_a_blitted_step_is_the_picture_that_a_fresh_figure_gives() -> None:
    walked, fresh = Animation(draw, move, (3, 2)), Animation(draw, move, (3, 2))
    for dot in (Dot(1), Dot(9), Dot(3, limit=4), Dot(3.5, limit=4), Dot(2)):
        last = walked.frame(dot)
    assert np.array_equal(last, fresh.frame(Dot(2)))


def test_the_still_part_is_drawn_once_until_it_changes() -> None:
    drawn = []
    animation = Animation(lambda figure, dot: drawn.append(dot.limit) or draw(figure, dot), move, (3, 2))
    for dot in (Dot(1), Dot(2), Dot(3), Dot(3, limit=4), Dot(2, limit=4)):
        animation.frame(dot)
    assert drawn == [10.0, 4]


def test_an_unseen_view_says_every_value_and_draws_only_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    knob, drawn = Knob(), []
    view = view_of(knob)
    frame = Animation.frame
    monkeypatch.setattr(Animation, "frame", lambda self, dot: drawn.append(dot.x) or frame(self, dot))
    for x in (2.0, 3.0, 4.0):
        knob.dot = Dot(x)
        assert view.text == f"x is {x} < 10.0"
    assert drawn == []
    assert view._animation is None
    view._view_count = 1  # a browser shows it
    assert view._animation is not None, "ready for the first step of a slider"
    assert drawn == [4.0]
    knob.dot = Dot(6.0)
    assert drawn == [4.0, 6.0]


def test_an_exception_becomes_a_sentence_and_the_next_value_recovers() -> None:
    knob = Knob()
    view = view_of(knob)
    view._view_count = 1
    good = view.png
    knob.dot = Dot(5)
    assert view.text == "Cannot show this: ValueError: no <dot> at 5"
    assert "no &lt;dot&gt; at 5" in view._status.value
    assert view.png == good
    knob.dot = Dot(1.0)
    assert view.text == "x is 1.0 < 10.0"
    assert view.png == good


def test_an_error_of_labkit_is_shown_without_its_class() -> None:
    def read() -> Dot:
        raise LabError("tile is 0")

    view = LiveFigure(read, draw, move)
    assert view.text == "Cannot show this: tile is 0"
    assert "image/png" not in view._repr_mimebundle_()


def test_the_saved_output_has_text_and_picture_and_no_address() -> None:
    bundle = view_of(Knob())._repr_mimebundle_()
    assert bundle["text/plain"] == "x is 1.0 < 10.0"
    assert bundle["image/png"].startswith("iVBORw0KGgo")
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_a_closed_view_follows_nothing_and_can_be_closed_twice() -> None:
    knob = Knob()
    view = view_of(knob)
    view.close()
    view.close()
    knob.dot = Dot(2.0)
    assert view.text == "x is 1.0 < 10.0"


def test_the_text_is_a_live_region_for_screen_readers() -> None:
    assert 'role="status"' in view_of(Knob())._status.value


def test_two_threads_never_draw_at_once_and_the_last_value_wins() -> None:
    """JupyterLab runs callbacks of widgets beside the cells: the first step waits, in vain, to see the second begin."""
    knob, steps = Knob(), []
    second = threading.Event()

    def slow_move(line: Line2D, dot: Dot) -> None:
        steps.append(f"begin {dot.x}")
        if dot.x == 2.0:
            threading.Thread(target=setattr, args=(knob, "dot", Dot(3.0))).start()
            second.wait(0.5)
        elif dot.x == 3.0:
            second.set()
        move(line, dot)
        steps.append(f"end {dot.x}")

    view = LiveFigure(lambda: knob.dot, draw, slow_move, (3, 2), follows=[(knob, "dot")])
    view._view_count = 1
    steps.clear()
    knob.dot = Dot(2.0)
    assert second.wait(60)
    last = view.png
    assert steps == ["begin 2.0", "end 2.0", "begin 3.0", "end 3.0"]
    assert view.text == "x is 3.0 < 10.0"
    assert np.array_equal(pixels(last), Animation(draw, move, (3, 2)).frame(Dot(3.0))[..., :3])


def test_fifty_views_leave_no_figure_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[weakref.ref[Figure]] = []

    def tracked(**options: object) -> Figure:
        figure = Figure(**options)
        figures.append(weakref.ref(figure))
        return figure

    def draw_little(figure: Figure, _dot: Dot) -> Line2D:
        return figure.add_artist(Line2D([], [], animated=True))

    monkeypatch.setattr(live, "Figure", tracked)
    knob = Knob()  # stays, and so do the views that follow it
    for _ in range(50):
        view = LiveFigure(lambda: knob.dot, draw_little, move, (3, 2), follows=[(knob, "dot")])
        view._repr_mimebundle_()
        view._view_count = 1
        view.refresh()
        view._view_count = 0  # its cell was run again
    gc.collect()
    assert len(figures) >= 50
    assert [figure for figure in figures if figure() is not None] == []
