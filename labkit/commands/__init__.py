"""One file a command of ``labkit``: its arguments, and a function from them to an Answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What a command found: ``data`` for --json, ``text`` for people, ``ok`` false when the answer is no (exit 1)."""

    data: dict[str, Any]
    text: str
    ok: bool = True
