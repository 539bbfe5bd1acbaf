"""Elementwise kernels on a Scratchpad: one op a pass, or a chain in one pass (which is what fusion is)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabError
from labkit.memory.scratchpad import Scratchpad

Array = NDArray[Any]


@dataclass(frozen=True)
class ElementwiseOp:
    """One op of a chain: ``apply(tile, *tiles of the other operands)`` gives the tile of ``output``.

    ``others`` are arrays by name, of the shape of the input, (rows, columns), or (rows, 1): one value a row, as the
    scale of a BatchNormalization whose rows are channels.
    """

    name: str
    output: str
    apply: Callable[..., Array]
    others: Mapping[str, Array] = field(default_factory=dict)


def run_fused(
    x: Array, ops: Sequence[ElementwiseOp], pad: Scratchpad, tile: tuple[int, int] = (1, 1024), name: str = "x"
) -> Array:
    """The chain in one kernel: each tile of ``x`` is read once, goes through all ops on chip and is written once.

    ``x`` is (rows, columns) and is called ``name`` in the ledger; the result has its shape and type. Operands of one
    value a row are read once for each band of rows. Raises LabError for shapes that do not agree, SramOverflow when
    the tiles do not fit.

    >>> x, pad = np.ones((2, 8), np.float32), Scratchpad("1KiB")
    >>> run_fused(x, [ElementwiseOp("add", "y", np.add, {"b": x})], pad).sum(), pad.ledger.traffic.nbytes
    (np.float32(32.0), 192)
    """
    _check(x, ops, tile)
    y = np.empty_like(x)
    with pad.kernel("+".join(op.name for op in ops)):
        for row in range(0, x.shape[0], tile[0]):
            rows = slice(row, row + tile[0])
            bands = {key: pad.load(key, array[rows]) for key, array in _others(ops) if _is_per_row(array, x)}
            for column in range(0, x.shape[1], tile[1]):
                block = (rows, slice(column, column + tile[1]))
                pad.load(name, x[block])
                for op in ops:
                    _apply(op, name, block, bands, pad)
                pad.store(name, y[block], tensor=ops[-1].output)
                pad.free(name)
            for key in bands:
                pad.free(key)
    return y


def run_unfused(
    x: Array, ops: Sequence[ElementwiseOp], pad: Scratchpad, tile: tuple[int, int] = (1, 1024), name: str = "x"
) -> Array:
    """The chain with one kernel an op: each result between two ops is written to DRAM and read back."""
    _check(x, ops, tile)
    for op in ops:
        x = run_fused(x, [op], pad, tile, name)
        name = op.output
    return x


def _apply(
    op: ElementwiseOp, name: str, block: tuple[slice, slice], bands: Mapping[str, Array], pad: Scratchpad
) -> None:
    """One op on the resident tile, in place; an operand of full size is on chip only meanwhile."""
    full = [key for key in op.others if key not in bands]
    for key in full:
        pad.load(key, op.others[key][block])
    pad[name][...] = op.apply(pad[name], *(pad[key] for key in op.others))
    for key in full:
        pad.free(key)


def _others(ops: Sequence[ElementwiseOp]) -> list[tuple[str, Array]]:
    return [pair for op in ops for pair in op.others.items()]


def _is_per_row(array: Array, x: Array) -> bool:
    return array.shape == (x.shape[0], 1) != x.shape


def _check(x: Array, ops: Sequence[ElementwiseOp], tile: tuple[int, int]) -> None:
    if x.ndim != 2 or not ops:
        raise LabError(
            f"elementwise chain of {len(ops)} ops on shape {x.shape}: wanted at least 1 op and (rows, columns)"
        )
    if len(tile) != 2 or min(tile) < 1:
        raise LabError(f"elementwise tile {tile}: wanted (rows, columns), each at least 1")
    for key, array in _others(ops):
        if array.shape not in (x.shape, (x.shape[0], 1)):
            raise LabError(f"operand {key} has shape {array.shape}: wanted {x.shape} or {(x.shape[0], 1)}")
