"""Notebooks, exercises and grades. In an exercise: ``from labkit.course import check``."""

from __future__ import annotations

from typing import Any

__all__ = ["check"]


def __getattr__(name: str) -> Any:
    if name != "check":
        raise AttributeError(f"labkit.course has no {name!r}")
    from labkit.course.checking import check

    return check
