"""Judging a kernel on a Scratchpad: first what it computes, then what it moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.plain import array_of
from labkit.course.sealed import SealedPad
from labkit.errors import SramOverflow

Array = NDArray[Any]
Known = Sequence[tuple[str, Callable[[], Array]]]  # what to look at, and the wrong result that shows it


def run_sealed(
    function: Function,
    tensors: Mapping[str, Array],
    options: tuple[object, ...],
    pad: SealedPad,
    shape: tuple[int, ...],
    call: str,
) -> Array:
    """What ``function(*tensors, *options, pad)`` gives, as an array of ``shape``; CheckFailed when it does not fit the
    SRAM, loads nothing, or computes with what still lies in DRAM."""
    try:
        result = function(*(pad.seal(name, values) for name, values in tensors.items()), *options, pad)
    except SramOverflow as overflow:
        raise CheckFailed(
            f"{call}: {overflow}. Which of these is not needed any more, or larger than a tile?"
        ) from None
    got = array_of(result, shape, call)
    if not len(pad.counted):
        counted = "the ledger has entries, but no load or store made them: it counts, it is no place for a formula"
        raise CheckFailed(f"{call}: {counted if len(pad.ledger) else 'nothing went through the pad: see pad.load'}.")
    if np.isnan(got).any():
        raise CheckFailed(
            f"{call} gave NaN: it computes with elements that still lie in DRAM, or on a tile that was freed; "
            "compute with the buffer that pad.load gives back."
        )
    return got


def judge_values(got: Array, right: Array, known: Known, otherwise: str, call: str) -> None:
    """CheckFailed when the result is wrong: with the sentence of the ``known`` wrong result that it equals."""
    if np.array_equal(got, right):
        return
    why = next((why for why, wrong in known if np.array_equal(got, wrong())), otherwise)
    raise CheckFailed(f"{call}: {int((got != right).sum())} of {right.size} results are wrong: {why}")


def judge_bytes(moved: Mapping[str, tuple[int, int, str]], call: str) -> None:
    """CheckFailed for the first line that moves more than it needs: what -> (bytes moved, needed, where to look)."""
    for what, (nbytes, needed, why) in moved.items():
        if nbytes > needed:
            raise CheckFailed(f"{call}: right values, but {what} {nbytes:,} bytes, {needed:,} are enough: {why}")


def judge_written(pad: SealedPad, nbytes: int, why: str, call: str) -> None:
    """CheckFailed unless the result of ``nbytes`` bytes was stored, whole and once."""
    written = pad.counted.traffic.write_bytes
    if written < nbytes:
        raise CheckFailed(
            f"{call}: the result has {nbytes:,} bytes, {written:,} were stored: what is not stored through the pad "
            "is not in DRAM."
        )
    judge_bytes({"the stores move": (written, nbytes, why)}, call)


def read_bytes(pad: SealedPad, tensor: str) -> int:
    """Bytes of float32 that were read of a tensor."""
    return 4 * int(pad.times_read(tensor).sum())
