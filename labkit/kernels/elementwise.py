"""Elementwise kernels on a Scratchpad: one op a pass, or a chain in one pass (which is what fusion is)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabError
from labkit.memory.ledger import Phase
from labkit.memory.scratchpad import Scratchpad

Array = NDArray[Any]
Block = tuple[slice, ...]


@dataclass(frozen=True)
class ElementwiseOp:
    """One op of a chain: ``apply(tile, *tiles of the other operands)`` gives the tile of ``output``.

    ``others`` are arrays by name, with as many axes as the input, each of its length or 1: (rows, 1) is one value a
    row, as the scale of a BatchNormalization whose rows are channels.
    """

    name: str
    output: str
    apply: Callable[..., Array]
    others: Mapping[str, Array] = field(default_factory=dict)


class Epilogue:
    """Applies ops to tiles that are on chip already, and loads the tiles of their other operands.

    An operand of full size is on chip only while its op runs; one that is broadcast stays until another part of it is
    needed. Raises LabError for operands that do not fit ``shape``, and for two of one name.
    """

    def __init__(self, ops: Sequence[ElementwiseOp], shape: tuple[int, ...], pad: Scratchpad) -> None:
        self._ops, self._shape, self._pad = ops, shape, pad
        self._held: dict[str, Block] = {}
        self._seen: set[tuple[str, tuple[int, ...]]] = set()
        check_operands(ops, shape)

    def apply(self, name: str, block: Block) -> None:
        """The whole chain on the buffer ``name``, in place; ``block`` is where its tile lies in the tensor."""
        for op in self._ops:
            for key, array in op.others.items():
                self._fetch(key, array, block)
            self._pad[name][...] = op.apply(self._pad[name], *(self._pad[key] for key in op.others))
            for key, array in op.others.items():
                if not is_broadcast(array, self._shape):
                    self._pad.free(key)

    def _fetch(self, key: str, array: Array, block: Block) -> None:
        part = tuple(slice(0, 1) if n == 1 else side for n, side in zip(array.shape, block, strict=True))
        if self._held.get(key) == part:
            return
        if key in self._held:
            self._pad.free(key)
        corner = (key, tuple(side.start for side in part))
        phase: Phase = "again" if corner in self._seen else "once"
        self._pad.load(key, array[part], phase=phase)
        self._seen.add(corner)
        if is_broadcast(array, self._shape):
            self._held[key] = part

    def leave(self) -> None:
        """Give back the room of what stayed."""
        for key in self._held:
            self._pad.free(key)
        self._held = {}


def run_fused(
    x: Array,
    ops: Sequence[ElementwiseOp],
    pad: Scratchpad,
    tile: tuple[int, ...] = (1, 1024),
    name: str = "x",
    order: Sequence[int] | None = None,
) -> Array:
    """The chain in one kernel: each tile of ``x`` is read once, goes through all ops on chip and is written once.

    ``x`` is called ``name`` in the ledger; the result has its shape and type. ``tile`` has a size for each axis;
    ``order`` lists the axes, outermost first (0, 1, ... unless given). Raises LabError for shapes that do not agree,
    SramOverflow when the tiles do not fit.

    >>> x, pad = np.ones((2, 8), np.float32), Scratchpad("1KiB")
    >>> run_fused(x, [ElementwiseOp("add", "y", np.add, {"b": x})], pad).sum(), pad.ledger.traffic.nbytes
    (np.float32(32.0), 192)
    """
    if not ops or x.ndim == 0:
        raise LabError(f"elementwise chain of {len(ops)} ops on shape {x.shape}: wanted at least 1 op and 1 axis")
    if len(tile) != x.ndim or min(tile) < 1:
        raise LabError(f"elementwise tile {tile}: wanted a size of at least 1 for each axis of shape {x.shape}")
    y = np.empty_like(x, order="C")
    epilogue = Epilogue(ops, x.shape, pad)
    with pad.kernel("+".join(op.name for op in ops)):
        for block in _blocks(x.shape, tile, range(x.ndim) if order is None else order):
            pad.load(name, x[block])
            epilogue.apply(name, block)
            pad.store(name, y[block], tensor=ops[-1].output)
            pad.free(name)
        epilogue.leave()
    return y


def run_unfused(
    x: Array,
    ops: Sequence[ElementwiseOp],
    pad: Scratchpad,
    tile: tuple[int, ...] = (1, 1024),
    name: str = "x",
    order: Sequence[int] | None = None,
) -> Array:
    """The chain with one kernel an op: each result between two ops is written to DRAM and read back."""
    check_operands(ops, x.shape)
    for op in ops:
        x = run_fused(x, [op], pad, tile, name, order)
        name = op.output
    return x


def is_broadcast(array: Array, shape: tuple[int, ...]) -> bool:
    """Whether several elements of a tensor of that shape use one of these."""
    return array.shape != shape


def check_operands(ops: Sequence[ElementwiseOp], shape: tuple[int, ...]) -> None:
    """LabError for an operand that does not fit the shape, and for two different ones of the same name."""
    known: dict[str, Array] = {}
    for key, array in (pair for op in ops for pair in op.others.items()):
        if array.ndim != len(shape) or any(n not in (1, full) for n, full in zip(array.shape, shape, strict=True)):
            raise LabError(f"operand {key} has shape {array.shape}: wanted {shape}, or 1 in place of a length")
        if known.setdefault(key, array) is not array:
            raise LabError(f"two operands are called {key}: each tensor needs a name of its own")


def _blocks(shape: tuple[int, ...], tile: tuple[int, ...], order: Sequence[int]) -> Iterator[Block]:
    """The tiles of a tensor, walked with the first axis of ``order`` outermost."""
    if sorted(order) != list(range(len(shape))):
        raise LabError(f"order of axes {tuple(order)}: write each of 0 to {len(shape) - 1} once, outermost first")
    starts = [range(0, shape[axis], tile[axis]) for axis in order]
    for corner in product(*starts):
        at = dict(zip(order, corner, strict=True))
        yield tuple(slice(at[axis], min(at[axis] + tile[axis], shape[axis])) for axis in range(len(shape)))
