"""Sizes and rates, printed and parsed. KiB and MiB are powers of two, GB/s and GFLOP/s powers of ten."""

from __future__ import annotations

import re

from labkit.errors import LabError

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

_BYTE_UNITS = {
    "b": 1, "kib": KIB, "mib": MIB, "gib": GIB, "kb": 1000, "mb": 1000**2, "gb": 1000**3,
}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")
_PREFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


def parse_bytes(text: str | int) -> int:
    """Read a size such as ``"512KiB"``, ``"1.5 MiB"``, ``"64kB"`` or plain bytes.

    Raises LabError for a unit it does not know, a size that is not a whole number of bytes, or one below 1.

    >>> parse_bytes("512KiB"), parse_bytes("1.5 MiB"), parse_bytes(4096)
    (524288, 1572864, 4096)
    """
    match = _SIZE.fullmatch(str(text))
    unit = match[2].lower() or "b" if match else ""
    if match is None or unit not in _BYTE_UNITS:
        raise LabError(f"{text!r} is no size: write a number and B, KiB, MiB or GiB, for example 512KiB")
    size = float(match[1]) * _BYTE_UNITS[unit]
    if size < 1 or size != int(size):
        raise LabError(f"{text!r} is {size:g} bytes: a size is a whole number of bytes, at least 1")
    return int(size)


def format_bytes(count: int) -> str:
    """Print bytes in the largest binary unit that keeps the number at 1 or more.

    >>> format_bytes(3_211_264), format_bytes(196_608), format_bytes(12), format_bytes(-2048)
    ('3.06 MiB', '192 KiB', '12 B', '-2 KiB')
    """
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(count) >= size:
            return f"{_short(count / size)} {unit}"
    return f"{count} B"


def format_rate(per_second: float, unit: str) -> str:
    """Print a rate with a decimal prefix.

    >>> format_rate(1.024e12, "FLOP/s"), format_rate(3.75e9, "B/s")
    ('1.02 TFLOP/s', '3.75 GB/s')
    """
    return f"{format_count(per_second)}{unit}"


def format_count(count: float) -> str:
    """Print a number with a decimal prefix and a space before it, ready for a unit.

    >>> format_count(4_194_304) + "FLOP", format_count(12) + "FLOP"
    ('4.19 MFLOP', '12 FLOP')
    """
    for prefix, size in _PREFIXES:
        if abs(count) >= size:
            return f"{_short(count / size)} {prefix}"
    return f"{_short(count)} "


def format_seconds(seconds: float) -> str:
    """Print a time in s, ms, µs or ns.

    >>> format_seconds(0.0123), format_seconds(2.5e-6)
    ('12.3 ms', '2.5 µs')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= size:
            return f"{_short(seconds / size)} {unit}"
    return f"{_short(seconds / 1e-9)} ns"


def _short(number: float) -> str:
    digits = 0 if abs(number) >= 100 or number == int(number) else 1 if abs(number) >= 10 else 2
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
