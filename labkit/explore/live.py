"""A live picture: one figure whose few artists move, its state in text beside it, and the controls above.

How it stays fast and small: the still part is drawn once and copied back before each step (blitting); no pyplot, so
that nothing but the view holds the figure; no Output widget. While nobody looks at a view (its cell was run again, its
tab closed) it keeps its text up to date, draws nothing and lets its figure go.
"""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import ipywidgets
import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from traitlets import HasTraits

from labkit.explore import screen
from labkit.explore.picture import Picture, Pixels
from labkit.explore.turns import in_turn
from labkit.explore.view import View, explain

DPI = 100


class Shown(Protocol):
    """What a view shows: a value that says itself in words, and tells what its still part depends on."""

    @property
    def sentence(self) -> str:
        """The state in text: for screen readers, saved notebooks and tests."""

    @property
    def still(self) -> Hashable:
        """States with an equal ``still`` share the part of the picture that does not move."""


State = TypeVar("State", bound=Shown)
Parts = TypeVar("Parts")


class Animation(Generic[State, Parts]):
    """One figure. ``draw(figure, state)`` makes the still part, and returns what ``move(parts, state)`` moves.

    The artists that move are those made with ``animated=True``. Only a state with another ``still`` draws all anew.
    """

    def __init__(
        self,
        draw: Callable[[Figure, State], Parts],
        move: Callable[[Parts, State], None],
        size_inches: tuple[float, float],
    ) -> None:
        self._draw, self._move = draw, move
        self._figure = Figure(figsize=size_inches, dpi=DPI * screen.scale())
        self._canvas = FigureCanvasAgg(self._figure)
        self._drawn: tuple[Hashable, Parts, list[Artist], Any] | None = None

    def frame(self, state: State) -> Pixels:
        """The picture of a state."""
        if self._drawn is None or self._drawn[0] != state.still:
            self._drawn = (state.still, *self._draw_still(state))
        _, parts, moving, background = self._drawn
        self._canvas.restore_region(background)  # type: ignore[no-untyped-call]
        self._move(parts, state)
        for artist in moving:
            self._figure.draw_artist(artist)
        return np.array(self._canvas.buffer_rgba())  # type: ignore[no-untyped-call]

    def _draw_still(self, state: State) -> tuple[Parts, list[Artist], Any]:
        self._figure.clear()
        parts = self._draw(self._figure, state)
        moving = [artist for artist in self._figure.findobj() if artist.get_animated()]
        self._canvas.draw()  # type: ignore[no-untyped-call]
        background = self._canvas.copy_from_bbox(self._figure.bbox)  # type: ignore[no-untyped-call]
        return parts, sorted(moving, key=lambda artist: artist.get_zorder()), background


class LiveFigure(View, Generic[State, Parts]):
    """Controls, a picture, and the state in text. ``read`` gives the state; what it ``follows`` shows it anew.

    ``more`` stands below. An exception in ``read``, ``draw`` or ``move`` becomes a sentence in the view; the picture
    then stays as it was.
    """

    def __init__(
        self,
        read: Callable[[], State],
        draw: Callable[[Figure, State], Parts],
        move: Callable[[Parts, State], None],
        size_inches: tuple[float, float] = (9.6, 5.0),
        controls: Mapping[str, Any] | None = None,
        follows: Iterable[tuple[HasTraits, str]] = (),
        more: Sequence[ipywidgets.Widget] = (),
    ) -> None:
        self._read, self._draw, self._move, self._size_inches = read, draw, move, size_inches
        self._animation: Animation[State, Parts] | None = None
        self._state: State | None = None  # the last one that could be read
        self._painted: State | None = None
        self._picture = Picture(self._width())
        self._status = ipywidgets.HTML()
        super().__init__(controls or {}, [self._picture, self._status, *more], follows, _view_count=0)
        self.observe(self._looked_at, "_view_count")
        screen.SCREEN.observe(self._resize, "large")
        self.refresh()

    @property
    def state(self) -> State | None:
        """The state that is shown; None where none could be read."""
        return self._state

    @property
    @in_turn
    def png(self) -> bytes:
        """The picture as a PNG file, drawn now if it was not yet."""
        self._paint()
        self._picture.settle()
        return bytes(self._picture.png)

    @in_turn
    def refresh(self, _change: object = None) -> None:
        """Show the present state; the picture only while somebody looks."""
        try:
            state = self._read()
            sentence = state.sentence
        except Exception as error:  # an exception in a callback is invisible in a notebook
            self._fail(error)
        else:
            self._state = state
            if not self._view_count or self._paint():  # the picture first: it is what the eye is on
                self._say(sentence)

    @in_turn
    def _resize(self, _change: object) -> None:
        self._animation = self._painted = None  # the picture of this state has another size now
        self._picture.width = self._width()
        self._looked_at(None)

    def _width(self) -> int:
        return round(self._size_inches[0] * DPI * screen.scale())

    def _paint(self) -> bool:
        """Show the picture of the present state; whether it could be drawn."""
        state = self._state
        if state is None or (state is self._painted and not self._is_cold()):
            return True
        try:
            if self._animation is None:
                self._animation = Animation(self._draw, self._move, self._size_inches)
            show = self._picture.show if self._view_count else self._picture.show_whole
            show(self._animation.frame(state))
            self._painted = state
            return True
        except Exception as error:
            self._fail(error)
            return False
        finally:
            self._let_go_unless_seen()

    def _is_cold(self) -> bool:
        """Seen, and without a figure: drawing now spares the first step of a slider the wait."""
        return bool(self._view_count) and self._animation is None

    @in_turn
    def _looked_at(self, _change: object) -> None:
        self._let_go_unless_seen()
        if self._view_count:
            self._paint()

    def _let_go_unless_seen(self) -> None:
        if not self._view_count:
            self._animation = None
            self._picture.let_go()

    def _fail(self, error: Exception) -> None:
        self._state = self._painted
        self._say(explain(error))

    def _say(self, text: str) -> None:
        self.text = text
        self._status.value = (
            f'<div role="status" style="white-space:pre-line;line-height:1.4">{html.escape(text)}</div>'
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The live view, with its picture and its text for saved notebooks, nbval and readers without a browser."""
        picture = b64encode(self.png).decode("ascii")
        bundle = super()._repr_mimebundle_(**kwargs)
        return {**bundle, **({"image/png": picture} if picture else {})}
