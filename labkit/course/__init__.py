"""Notebooks, exercises and grades. In an exercise: ``from labkit.course import sheet``."""

from __future__ import annotations

from typing import Any

__all__ = ["sheet"]


def __getattr__(name: str) -> Any:
    if name != "sheet":
        raise AttributeError(f"labkit.course has no {name!r}")
    from labkit.course.checking import sheet

    return sheet
