"""An explicitly managed on-chip memory: a kernel computes on what it has loaded, and every transfer is counted.

DRAM is plain NumPy arrays: a kernel is handed the arrays, and a *tile* is a slice of one. Computing on such a slice
directly would be reading DRAM for free; a kernel computes on the buffers that ``load`` and ``alloc`` return. They are
copies, so a kernel that forgets to load, or that goes on using a freed buffer, computes garbage.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from labkit.errors import LabError, SramOverflow
from labkit.memory.ledger import Ledger, Phase
from labkit.units import parse_bytes

Array = NDArray[Any]


@dataclass(frozen=True)
class _Buffer:
    data: Array
    nbytes: int  # room taken: more than data.nbytes when there are several slots
    tensor: str
    slots: int


class Scratchpad:
    """An SRAM of ``sram_bytes`` (a number, or a size such as ``"512KiB"``) in front of a DRAM of NumPy arrays.

    ``ledger`` takes one line for each transfer; pass one to share it between scratchpads. ``used_bytes`` is
    what is resident now, ``high_water_bytes`` the most that ever was, ``launches`` the number of kernels that ran.

    >>> dram = np.arange(6.0, dtype=np.float32)
    >>> pad = Scratchpad("16B")
    >>> x = pad.load("x", dram[:4])
    >>> x *= 2
    >>> pad.store("x", dram[:4]); pad.free("x")
    >>> dram.tolist(), pad.ledger.traffic.nbytes, pad.high_water_bytes
    ([0.0, 2.0, 4.0, 6.0, 4.0, 5.0], 32, 16)
    """

    def __init__(self, sram_bytes: int | str, ledger: Ledger | None = None) -> None:
        self.sram_bytes = parse_bytes(sram_bytes)
        self.ledger = Ledger() if ledger is None else ledger
        self.high_water_bytes = 0
        self.launches = 0
        self.used_bytes = 0
        self._buffers: dict[str, _Buffer] = {}
        self._node = "(no kernel)"

    @property
    def resident(self) -> dict[str, int]:
        """Bytes taken by each buffer, in order of arrival."""
        return {name: buffer.nbytes for name, buffer in self._buffers.items()}

    def __getitem__(self, name: str) -> Array:
        return self._buffer(name, "use").data

    @contextmanager
    def kernel(self, node: str) -> Iterator[None]:
        """One kernel launch: the transfers inside are entered under ``node``; if it fails its buffers are freed."""
        before, outer = set(self._buffers), self._node
        self.launches += 1
        self._node = node
        try:
            yield
        except BaseException:
            for name in set(self._buffers) - before:
                self.free(name)
            raise
        finally:
            self._node = outer

    def load(
        self,
        name: str,
        tile: Array,
        *,
        tensor: str | None = None,
        slots: int = 1,
        runs: int | None = None,
        phase: Phase = "once",
    ) -> Array:
        """Copy a DRAM tile into a new buffer, count its bytes as read, and return the buffer.

        ``tensor`` is the name in the ledger when it is not the buffer's. ``slots=2`` takes room for two such tiles,
        so that the next one can arrive while this one is in use (double buffering): more room, the same bytes.
        ``runs`` are its contiguous pieces when ``tile`` is a copy, whose strides no longer tell; ``phase``: see Access.
        """
        data = self._take(name, tile.shape, tile.dtype, tensor or name, slots)
        data[...] = tile
        runs = contiguous_runs(tile) if runs is None else runs
        self.ledger.record(self._node, tensor or name, "read", tile.nbytes, runs=runs, phase=phase)
        return data

    def slide(
        self, name: str, tile: Array, axis: int, held: tuple[Array, Array], *, runs: int, phase: Phase = "once"
    ) -> Array:
        """Move a loaded window on along one axis: what it holds already stays on chip, only the rest is read.

        ``held`` are indices along ``axis`` of what is kept: where it lies in the old buffer, and where in ``tile``;
        ``runs`` are the contiguous pieces of the rest.
        """
        old = self._buffer(name, "slide")
        kept = np.take(old.data, held[0], axis)
        self.free(name)
        data = self._take(name, tile.shape, tile.dtype, old.tensor, old.slots)
        data[...] = tile
        np.moveaxis(data, axis, 0)[held[1]] = np.moveaxis(kept, axis, 0)
        self.ledger.record(self._node, old.tensor, "read", tile.nbytes - kept.nbytes, runs=runs, phase=phase)
        return data

    def alloc(self, name: str, shape: tuple[int, ...], dtype: DTypeLike, *, slots: int = 1) -> Array:
        """A new buffer of zeros, for an accumulator: it takes room and moves no bytes."""
        data = self._take(name, shape, np.dtype(dtype), name, slots)
        data[...] = 0
        return data

    def store(self, name: str, tile: Array, *, tensor: str | None = None, phase: Phase = "once") -> None:
        """Copy a buffer to a DRAM tile of its shape and type, and count its bytes as written; it stays resident.

        ``tensor`` is the name in the ledger when it is not the one that was loaded (a result made in place).
        """
        buffer = self._buffer(name, "store")
        if (tile.shape, tile.dtype) != (buffer.data.shape, buffer.data.dtype):
            raise LabError(
                f"store {name}: buffer {_describe(buffer.data)}, DRAM tile {_describe(tile)}: they must agree"
            )
        tile[...] = buffer.data
        runs = contiguous_runs(tile)
        self.ledger.record(self._node, tensor or buffer.tensor, "write", tile.nbytes, runs=runs, phase=phase)

    def free(self, name: str) -> None:
        """Give a buffer's room back. What it held is lost: the old array is overwritten, with NaN where it can be."""
        buffer = self._buffer(name, "free")
        del self._buffers[name]
        self.used_bytes -= buffer.nbytes
        buffer.data[...] = np.nan if buffer.data.dtype.kind in "fc" else ~np.zeros((), buffer.data.dtype)

    def stream(self, name: str, elements: Array) -> Array:
        """Fetch elements one after another through a single register; return them, read-only.

        An element that appears twice, as in a broadcast array, is fetched twice. The ledger takes one line for the
        whole stream, with a run for each element; the room needed is one element.
        """
        self._take(name, (1,), elements.dtype, name, 1)
        self.free(name)
        self.ledger.record(self._node, name, "read", elements.nbytes, runs=elements.size)
        values = elements.view()
        values.flags.writeable = False
        return values

    def stream_out(self, name: str, values: Array, into: Array) -> None:
        """Write values to DRAM one after another through a single register: the other direction of ``stream``."""
        self._take(name, (1,), into.dtype, name, 1)
        self.free(name)
        self.ledger.record(self._node, name, "write", into.nbytes, runs=into.size)
        into[...] = values

    def _buffer(self, name: str, verb: str) -> _Buffer:
        if name not in self._buffers:
            raise LabError(f"cannot {verb} {name}: it is not on chip; resident: {self._inventory()}")
        return self._buffers[name]

    def _take(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], tensor: str, slots: int) -> Array:
        if name in self._buffers:
            raise LabError(f"{name} is on chip already ({self.resident[name]:,} bytes): free it first")
        if slots < 1:
            raise LabError(f"{name}: slots is {slots}, a buffer has at least 1")
        nbytes = slots * dtype.itemsize
        for extent in shape:
            nbytes *= int(extent)  # Python integers: a huge shape must not wrap round before it is refused
        free_bytes = self.sram_bytes - self.used_bytes
        if nbytes > free_bytes:
            raise SramOverflow(
                f"{name} needs {nbytes:,} bytes, {free_bytes:,} of {self.sram_bytes:,} are free; "
                f"resident: {self._inventory()}"
            )
        data: Array = np.empty(shape, dtype)
        self._buffers[name] = _Buffer(data, nbytes, tensor, slots)
        self.used_bytes += nbytes
        self.high_water_bytes = max(self.high_water_bytes, self.used_bytes)
        return data

    def _inventory(self) -> str:
        return ", ".join(f"{name} {nbytes:,} bytes" for name, nbytes in self.resident.items()) or "nothing"


def contiguous_runs(tile: Array) -> int:
    """Contiguous pieces of memory that a DRAM tile consists of, walked in the order of its axes.

    >>> dram = np.zeros((8, 10), np.float32)
    >>> contiguous_runs(dram), contiguous_runs(dram[2:5]), contiguous_runs(dram[2:5, 1:4])
    (1, 1, 3)
    """
    piece = tile.itemsize
    for length, stride in zip(reversed(tile.shape), reversed(tile.strides), strict=True):
        if length > 1 and stride != piece:
            break
        piece *= length
    return tile.nbytes // piece if tile.size else 0


def _describe(array: Array) -> str:
    return f"{array.dtype} {'×'.join(map(str, array.shape)) or 'scalar'}"
