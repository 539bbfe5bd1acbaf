"""The switch for a projector: every view of a notebook follows it.

A picture grows by ``SCALE`` and its text with it; labels, numbers and the state in words grow too.
"""

from __future__ import annotations

from typing import Any

import ipywidgets
import traitlets

from labkit.explore.turns import in_turn

SCALE = 1.5
_CLASS = "labkit-large"
_FONT_PX = 13  # ipywidgets' own
_PARTS = (".widget-label", ".widget-readout", ".widget-html-content", "select", "input", "button", "pre", "td", "th")
_STYLE = (
    "<style>"
    + ", ".join(f".{_CLASS} {part}" for part in _PARTS)
    + f" {{ font-size: {_FONT_PX * SCALE}px !important; height: auto !important; line-height: 1.4 !important; }}"
    + "</style>"
)


class Screen(traitlets.HasTraits):
    """What the pictures are shown on."""

    large = traitlets.Bool(False)


SCREEN = Screen()  # of this kernel: the room has one projector


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


def style() -> Any:
    """What a view must have among its children, to grow with the screen."""
    return ipywidgets.HTML(_STYLE, layout=ipywidgets.Layout(display="none"))


def follow(view: Any) -> None:
    """Let the words of a view grow with the screen."""

    @in_turn
    def resize(_change: object = None) -> None:
        (view.add_class if SCREEN.large else view.remove_class)(_CLASS)

    SCREEN.observe(resize, "large")
    resize()
