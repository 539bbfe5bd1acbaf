"""What every explorer owes its controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def every_control_moves(
    view: Any, moves: Mapping[str, Any], picture: Callable[[Any], Any] = lambda view: view.png
) -> None:
    """Each control, none forgotten, changes picture and text when it is set to its value in ``moves``."""
    assert set(moves) == set(view.controls)
    for name, value in moves.items():
        before, text = picture(view), view.text
        view.controls[name].value = value
        assert picture(view) != before, name
        assert view.text != text, name
