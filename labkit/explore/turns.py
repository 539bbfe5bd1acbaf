"""Callbacks of views take turns.

JupyterLab sends messages of widgets to a second thread of the kernel where the kernel has one (a "subshell", Jupyter
enhancement proposal 91; JupyterLab 4.4, ipykernel 7). Two callbacks, or a callback and a cell, may then run at the
same time, which neither matplotlib nor the state of a view survives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Args = ParamSpec("Args")
Result = TypeVar("Result")

_TURN = threading.RLock()  # one for all views: with a lock each, two views that move each other could wait for ever


def in_turn(callback: Callable[Args, Result]) -> Callable[Args, Result]:
    """A callback that waits until no other one runs. It should read the state it shows itself, so the last one wins."""

    @wraps(callback)
    def waiting(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        with _TURN:
            return callback(*args, **kwargs)

    return waiting
