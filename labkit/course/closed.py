"""What a student's function may not call: the course's own checks, and the part of labkit that it is to write."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

_CHECKS = "labkit.course.checks"


def watched(
    function: Callable[..., Any], closed: tuple[str, ...], refusal: Callable[[str], Exception]
) -> Callable[..., Any]:
    """The function, but a call that reaches a ``closed`` module raises ``refusal``, also where it catches that.

    This tells a student honestly what does not count; it is no wall against one who takes the watch off.
    """

    names = (_CHECKS, *closed)
    inside = tuple(f"{name}." for name in names)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        refused: list[Exception] = []

        def watch(frame: FrameType, event: str, _: object) -> None:
            if event != "call":  # most are returns, and calls of C functions
                return
            module = frame.f_globals.get("__name__", "")
            if isinstance(module, str) and (module in names or module.startswith(inside)):
                refused.append(refusal(_sentence(function, module, frame.f_code.co_name)))
                raise refused[0]

        before = sys.getprofile()
        sys.setprofile(watch)
        try:
            result = function(*arguments, **options)
        finally:
            sys.setprofile(before)
        if refused:
            raise refused[0]
        return result

    return call


def _sentence(function: Callable[..., Any], module: str, name: str) -> str:
    own = getattr(function, "__name__", "the function")
    if module.startswith(_CHECKS):
        return f"{own} calls the course's own check ({name}); the answer has to be yours."
    return f"{own} calls {name} of {module}; that is what you are to write here."
