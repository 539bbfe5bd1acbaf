"""The ledger: each transfer between DRAM and the chip is one line in it, and every figure is a sum of lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["read", "write"]
Phase = Literal["once", "again", "partial"]


class Access(NamedTuple):
    """One transfer: ``node`` (the kernel) reads or writes ``nbytes`` bytes of ``value`` (the tensor) in DRAM.

    ``runs`` are the pieces of contiguous memory it consists of: a DMA engine starts once for each. ``phase`` says why:
    ``once`` for the first read of a tile or the write of a finished one, ``again`` for a tile read before (a reload),
    ``partial`` for unfinished sums, written out (a spill) or read back (a refill).
    """

    node: str
    value: str
    kind: Kind
    nbytes: int
    runs: int = 1
    phase: Phase = "once"


@dataclass(frozen=True)
class Traffic:
    """Sums over accesses: bytes and number of transfers in each direction. Traffics add and subtract.

    >>> Traffic(read_bytes=8, reads=1) + Traffic(write_bytes=4, writes=1)
    Traffic(read_bytes=8, write_bytes=4, reads=1, writes=1)
    """

    read_bytes: int = 0
    write_bytes: int = 0
    reads: int = 0
    writes: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes moved in both directions."""
        return self.read_bytes + self.write_bytes

    @property
    def transfers(self) -> int:
        """Number of transfers in both directions."""
        return self.reads + self.writes

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.read_bytes + other.read_bytes,
            self.write_bytes + other.write_bytes,
            self.reads + other.reads,
            self.writes + other.writes,
        )

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.read_bytes - other.read_bytes,
            self.write_bytes - other.write_bytes,
            self.reads - other.reads,
            self.writes - other.writes,
        )


class Ledger:
    """A list of accesses that grows while a kernel runs, and the sums that can be asked of it.

    >>> ledger = Ledger()
    >>> ledger.record("relu", "x", "read", 64); ledger.record("relu", "y", "write", 64)
    >>> ledger.traffic.nbytes, ledger.by("value")["x"].read_bytes
    (128, 64)
    """

    def __init__(self, accesses: Iterable[Access] = ()) -> None:
        self._accesses = list(accesses)

    def record(self, node: str, value: str, kind: Kind, nbytes: int, *, runs: int = 1, phase: Phase = "once") -> None:
        """Write one transfer into the ledger (see Access); a transfer of no bytes leaves no line."""
        if nbytes:
            self._accesses.append(Access(node, value, kind, nbytes, runs, phase))

    def extend(self, accesses: Iterable[Access]) -> None:
        """Write the lines of another ledger behind these."""
        self._accesses.extend(accesses)

    def __iter__(self) -> Iterator[Access]:
        return iter(self._accesses)

    def __len__(self) -> int:
        return len(self._accesses)

    @property
    def traffic(self) -> Traffic:
        """The sum of all lines."""
        return _total(self._accesses)

    @property
    def runs(self) -> int:
        """Contiguous pieces of memory of all lines: what a DMA engine has to start."""
        return sum(access.runs for access in self._accesses)

    def by(self, field: Literal["node", "value", "kind", "phase"]) -> dict[str, Traffic]:
        """The sums for each node, value, direction or phase, in order of first appearance."""
        groups: dict[str, list[Access]] = {}
        for access in self._accesses:
            groups.setdefault(getattr(access, field), []).append(access)
        return {key: _total(group) for key, group in groups.items()}

    def where(self, keep: Callable[[Access], bool]) -> Ledger:
        """A ledger of the lines that ``keep`` accepts."""
        return Ledger(access for access in self._accesses if keep(access))


def _total(accesses: Iterable[Access]) -> Traffic:
    read_bytes = write_bytes = reads = writes = 0
    for access in accesses:
        if access.kind == "read":
            read_bytes += access.nbytes
            reads += 1
        else:
            write_bytes += access.nbytes
            writes += 1
    return Traffic(read_bytes, write_bytes, reads, writes)
