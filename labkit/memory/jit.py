"""numba, as the compiled simulators use it. Importing this module imports numba (half a second)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

from numba import njit, uint64

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F, inline: Literal["never", "always"] = "never") -> F:
    """njit with the disk cache; without it where numba finds no folder that it may write."""
    try:
        return cast(F, njit(cache=True, error_model="numpy", inline=inline)(function))
    except RuntimeError:
        return cast(F, njit(error_model="numpy", inline=inline)(function))


def pasted(function: F) -> F:
    """A part of other functions: a call would hand over each array as seven numbers."""
    return compiled(function, inline="always")


@pasted
def ones(word):
    """Number of bits that are set; LLVM makes one instruction of it."""
    word = word - ((word >> uint64(1)) & uint64(0x5555555555555555))
    word = (word & uint64(0x3333333333333333)) + ((word >> uint64(2)) & uint64(0x3333333333333333))
    word = (word + (word >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return (word * uint64(0x0101010101010101)) >> uint64(56)


def shift_of(line_bytes: int) -> int:
    """By how many bits ``line_at`` has to shift; -1 where it must divide."""
    return line_bytes.bit_length() - 1 if line_bytes & (line_bytes - 1) == 0 else -1


@pasted
def line_at(address, line_bytes, shift):
    """The line of an address."""
    return uint64(address >> shift) if shift >= 0 else uint64(address // line_bytes)
