"""Names of axes and of memory orders: "NCHW", "NHWC", "OIHW", and blocked ones such as "NCHW8c"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from labkit.errors import LabError

NAMED_ORDERS = ("NCHW", "NHWC", "OIHW", "HWIO", "OHWI")
_LOGICAL = ("NCHW", "OIHW", "NCW", "NCDHW", "NC")  # any memory order of these axes has this logical order
_TOKEN = re.compile(r"(\d+)([a-z])|([A-Z])")


def parse_order(order: str) -> tuple[tuple[str, ...], dict[str, int]]:
    """Axis names of a memory order from slow to fast, and the block of each split one.

    LabError for text that is no order, an axis named twice, a block of 0, a block without its outer axis.

    >>> parse_order("NCHW8c")
    (('N', 'C', 'H', 'W', 'c'), {'c': 8})
    """
    tokens = list(_TOKEN.finditer(order))
    if "".join(token[0] for token in tokens) != order:
        raise LabError(f"{order!r} is no memory order: write axis letters from slow to fast, like NHWC or NCHW8c")
    blocks = {token[2]: int(token[1]) for token in tokens if token[2]}
    for inner, block in blocks.items():
        if block < 1:
            raise LabError(f"order {order!r}: the block of {inner} is {block}, it must be 1 or more")
    return checked_axes(token[2] or token[3] for token in tokens), blocks


def checked_axes(axes: Iterable[str]) -> tuple[str, ...]:
    """The names as a tuple. LabError unless each is one ASCII letter, named once, an inner axis with its outer one."""
    names = tuple(axes)
    for name in names:
        if not (isinstance(name, str) and len(name) == 1 and name.isascii() and name.isalpha()):
            raise LabError(f"axis name {name!r}: write one letter, like N, C, H or W")
        if names.count(name) > 1:
            raise LabError(f"axis {name} is named {names.count(name)} times in {''.join(map(str, names))!r}")
        if name.upper() not in names:
            raise LabError(f"axis {name} is the inner part of axis {name.upper()}, which is missing from {names}")
    return names


def logical_axes(memory: Iterable[str]) -> tuple[str, ...]:
    """The logical axes of a memory order: the usual ones for its letters, else the order as it stands.

    >>> logical_axes("NHWC"), logical_axes("KM")
    (('N', 'C', 'H', 'W'), ('K', 'M'))
    """
    outer = [axis for axis in memory if axis.isupper()]
    usual = next((known for known in _LOGICAL if sorted(known) == sorted(outer)), outer)
    return tuple(usual)
