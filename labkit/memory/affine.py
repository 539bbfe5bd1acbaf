"""Address traces as values: a loop nest whose addresses are affine in the loop indices, or an array of addresses.

A trace is what a program asks of the memory, one access after the other: a byte address and whether it reads or writes.
Addresses are 64-bit. An access touches the cache line of its first byte: elements that straddle two lines do not occur
as long as the item size divides the line and the tensors are aligned to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabError
from labkit.memory.ledger import Kind

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
Bools = NDArray[np.bool_]
_END = 2**63


@dataclass(frozen=True)
class Reference:
    """One access in the body of a loop nest: at the address ``base`` + the sum of stride · index over its loops.

    ``strides`` has one entry for each loop around it, outermost first, in bytes a step; 0 where the loop does not move
    it. All references to a ``tensor`` lie between its lowest and its highest address, and tensors do not overlap.
    """

    tensor: str
    base: int
    strides: tuple[int, ...]
    kind: Kind = "read"


@dataclass(frozen=True)
class Loop:
    """``for name in range(count)``: the body is carried out in order; it holds references and further loops."""

    name: str
    count: int
    body: tuple[Loop | Reference, ...]


class Placed(NamedTuple):
    """A reference with the lengths of the loops around it: its addresses run from ``low`` to ``high``."""

    reference: Reference
    counts: tuple[int, ...]

    @property
    def accesses(self) -> int:
        """How often it is made."""
        product = 1
        for count in self.counts:
            product *= count
        return product

    def span(self, outer: int = 0) -> tuple[int, int]:
        """Lowest and highest address relative to the base while only the loops inside the first ``outer`` run."""
        moves = [s * (n - 1) for s, n in zip(self.reference.strides[outer:], self.counts[outer:], strict=True)]
        return sum(move for move in moves if move < 0), sum(move for move in moves if move > 0)

    @property
    def low(self) -> int:
        """Its lowest address."""
        return self.reference.base + self.span()[0]

    @property
    def high(self) -> int:
        """Its highest address."""
        return self.reference.base + self.span()[1]


@dataclass(frozen=True)
class AffineTrace:
    """The accesses of a loop nest, or of several one after the other, in program order. Nothing is stored per access.

    Raises LabError for a loop of no iterations, a reference with a stride missing, addresses outside 64 bit.

    >>> x, y = Reference("x", 0, (16, 4)), Reference("y", 64, (4,), "write")
    >>> trace = AffineTrace((Loop("i", 2, (Loop("j", 3, (x,)), y)),))
    >>> trace.accesses, trace.tensors
    (8, ('x', 'y'))
    """

    body: tuple[Loop | Reference, ...]

    def __post_init__(self) -> None:
        if not self.body:
            raise LabError("a trace without accesses: a nest needs at least one reference")
        for placed in self.placed:
            reference = placed.reference
            if len(reference.strides) != len(placed.counts):
                raise LabError(
                    f"reference to {reference.tensor}: {len(reference.strides)} strides inside "
                    f"{len(placed.counts)} loops; give one stride for each loop, 0 where it does not move"
                )
            low, high = placed.low, placed.high
            if low < 0 or high >= _END or placed.accesses >= _END:
                raise LabError(
                    f"reference to {reference.tensor}: addresses {low} to {high}, {placed.accesses} accesses: "
                    f"addresses start at 0, and both must fit 63 bit"
                )

    @cached_property
    def placed(self) -> tuple[Placed, ...]:
        """Every reference with its loops, in program order."""
        return tuple(_place(self.body, ()))

    @property
    def accesses(self) -> int:
        """Number of accesses."""
        return sum(placed.accesses for placed in self.placed)

    @property
    def accesses_by_tensor(self) -> dict[str, int]:
        """Number of accesses to each tensor, in order of first appearance."""
        counts: dict[str, int] = {}
        for placed in self.placed:
            counts[placed.reference.tensor] = counts.get(placed.reference.tensor, 0) + placed.accesses
        return counts

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of the tensors in order of first appearance."""
        return tuple(self.accesses_by_tensor)

    def bounds(self, tensor: str) -> tuple[int, int]:
        """Lowest and highest address at which a tensor is accessed."""
        own = [placed for placed in self.placed if placed.reference.tensor == tensor]
        if not own:
            raise LabError(f"no tensor {tensor!r}: the trace has {', '.join(self.tensors)}")
        return min(placed.low for placed in own), max(placed.high for placed in own)


@dataclass(frozen=True, eq=False)
class AddressTrace:
    """Accesses listed one by one: ``addresses`` in bytes, int64, and for each whether it ``writes``.

    >>> AddressTrace.of([0, 64, 0]).accesses
    3
    """

    addresses: Int64s
    writes: Bools

    def __post_init__(self) -> None:
        if self.addresses.ndim != 1 or self.addresses.dtype != np.int64 or self.addresses.size == 0:
            raise LabError("an address trace is a flat int64 array with at least one address")
        if self.writes.shape != self.addresses.shape or self.writes.dtype != np.bool_:
            raise LabError(
                f"{self.addresses.size} addresses, write flags of shape {self.writes.shape}, type {self.writes.dtype}: "
                f"one bool for each address"
            )
        if self._bounds[0] < 0:
            raise LabError(f"address {self._bounds[0]}: addresses start at 0")

    @classmethod
    def of(cls, addresses: object, writes: object = False) -> AddressTrace:
        """From anything NumPy makes an integer array of; one flag for all, or one for each address."""
        try:
            flat = np.asarray(addresses, dtype=np.int64).ravel()
        except (OverflowError, ValueError, TypeError):
            raise LabError("addresses are whole numbers of bytes below 2**63") from None
        flags = np.asarray(writes, dtype=np.bool_)
        if flags.ndim and flags.size != flat.size:
            raise LabError(f"{flat.size} addresses and {flags.size} write flags: one for each, or one for all")
        return cls(flat, np.array(np.broadcast_to(flags.ravel() if flags.ndim else flags, flat.shape)))

    @property
    def accesses(self) -> int:
        """Number of accesses."""
        return int(self.addresses.size)

    @property
    def accesses_by_tensor(self) -> dict[str, int]:
        """All of them under one name."""
        return {"trace": self.accesses}

    @property
    def tensors(self) -> tuple[str, ...]:
        """One name for all: a list of addresses does not say whose they are."""
        return ("trace",)

    def bounds(self, tensor: str = "trace") -> tuple[int, int]:
        """Lowest and highest address."""
        return self._bounds

    @cached_property
    def _bounds(self) -> tuple[int, int]:
        return int(self.addresses.min()), int(self.addresses.max())


Trace = AffineTrace | AddressTrace


def _place(body: tuple[Loop | Reference, ...], counts: tuple[int, ...]) -> Iterator[Placed]:
    for item in body:
        if isinstance(item, Reference):
            yield Placed(item, counts)
        elif item.count < 1 or not item.body:
            raise LabError(f"loop {item.name}: {item.count} iterations, body of {len(item.body)}: both at least 1")
        else:
            yield from _place(item.body, (*counts, item.count))
