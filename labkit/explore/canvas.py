"""A picture that the browser draws from a few hundred bytes, for views that must answer a slider at once.

``spec`` is what a script draws: its ``draw(canvas, spec, room)`` paints, ``canvas.js`` does what all scripts share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import anywidget
import traitlets
from traitlets import HasTraits

from labkit.explore import screen
from labkit.explore.turns import in_turn
from labkit.explore.view import View, explain

_HERE = Path(__file__).parent
_SHARED = "canvas.js"


class CanvasPicture(anywidget.AnyWidget):
    """A canvas, and beside it a list of facts in words, both from ``spec``.

    ``spec`` holds what the script draws, and for everyone: ``facts``, pairs of a label and a text; ``sentence``, the
    picture in words; or only ``error``, a sentence that is shown instead.
    """

    _css = _HERE / "canvas.css"
    spec = traitlets.Dict().tag(sync=True)
    scale = traitlets.Float(1.0).tag(sync=True)

    def __init__(self, script: str, spec: Mapping[str, Any] | None = None) -> None:
        self._esm = "\n".join((_HERE / name).read_text(encoding="utf-8") for name in (script, _SHARED))
        super().__init__(spec=dict(spec or {}), scale=screen.scale())
        screen.SCREEN.observe(self._resize, "large")

    @in_turn
    def _resize(self, _change: object) -> None:
        self.scale = screen.scale()


class Drawn(Protocol):
    """What a view draws: a value that says itself in words."""

    @property
    def text(self) -> str:
        """All of it, for saved notebooks, tests and readers without a browser: with a picture in characters."""


State = TypeVar("State", bound=Drawn)


class CanvasView(View, Generic[State]):
    """Controls over a canvas. ``read`` gives the state, ``spec`` what ``script`` needs to draw it."""

    def __init__(
        self,
        script: str,
        read: Callable[[], State],
        spec: Callable[[State], dict[str, Any]],
        controls: Mapping[str, Any],
        follows: Iterable[tuple[HasTraits, str]] = (),
    ) -> None:
        self._read, self._spec = read, spec
        self.picture = CanvasPicture(script)
        super().__init__(controls, [self.picture], follows)
        self.refresh()

    @in_turn
    def refresh(self, _change: object = None) -> None:
        """Draw the state the controls describe."""
        try:
            state = self._read()
            shown, self.text = self._spec(state), state.text
        except Exception as error:  # an exception in a callback is invisible in a notebook
            self.text = explain(error)
            shown = {"error": self.text}
        self.picture.spec = shown
