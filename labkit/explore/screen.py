"""The switch for a projector, which every view of a notebook follows, and the frame that every view has.

A picture grows by ``SCALE`` and its text with it; labels, numbers and the state in words grow too (frame.css).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import traitlets

from labkit.explore.turns import in_turn

SCALE = 1.5
_CLASS = "labkit-large"
_HERE = Path(__file__).parent


class Screen(traitlets.HasTraits):
    """What the pictures are shown on."""

    large = traitlets.Bool(False)


SCREEN = Screen()  # of this kernel: the room has one projector


class Frame(anywidget.AnyWidget):
    """Unseen: the style of large words, and what makes a saved notebook keep the views it shows (frame.js)."""

    _esm = _HERE / "frame.js"
    _css = _HERE / "frame.css"


def scale() -> float:
    """How much larger than on a desk everything is drawn."""
    return SCALE if SCREEN.large else 1.0


def switch() -> Any:
    """A checkbox for SCREEN.large; all of them agree."""
    box = ipywidgets.Checkbox(
        value=SCREEN.large, description="large (projector)", indent=False, layout=ipywidgets.Layout(width="auto")
    )
    traitlets.link((SCREEN, "large"), (box, "value"))
    return box


def follow(view: Any) -> None:
    """Let the words of a view grow with the screen."""

    @in_turn
    def resize(_change: object = None) -> None:
        (view.add_class if SCREEN.large else view.remove_class)(_CLASS)

    SCREEN.observe(resize, "large")
    resize()
