"""A Scratchpad for grading: what lies in its DRAM can only be read by loading it, and no entry by hand counts.

An element in sealed DRAM is a NaN that carries its own number; ``load`` puts the true value in its place. A product
of sealed arrays is therefore NaN, however it is computed, and copying, cutting or transposing them changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.memory.ledger import Ledger
from labkit.memory.scratchpad import Scratchpad

Array = NDArray[Any]
_QUIET_NAN = 0x7FC00000
_PAYLOAD = 0x003FFFFF  # 22 bits survive every copy, also one into float64


class SealedPad(Scratchpad):
    """A Scratchpad whose DRAM is sealed. ``counted`` are the transfers that really took place, by tensor.

    >>> pad = SealedPad("16B")
    >>> x = pad.seal("x", np.arange(4, dtype=np.float32))
    >>> float(x.sum()), float(pad.load("tile", x[1:3]).sum()), pad.times_read("x").tolist()
    (nan, 3.0, [0, 1, 1, 0])
    """

    def __init__(self, sram_bytes: int | str) -> None:
        super().__init__(sram_bytes)
        self.counted = Ledger()
        self.loads: Counter[str] = Counter()  # by tensor
        self.early: Counter[str] = Counter()  # those that came while another tile of the tensor was in its place
        self._values = np.zeros(0, np.float32)
        self._times = np.zeros(0, np.int64)
        self._shapes: dict[str, tuple[slice, tuple[int, ...]]] = {}
        self._origin: dict[str, str] = {}  # resident buffer -> tensor

    def seal(self, tensor: str, values: Array) -> Array:
        """A float32 tensor as it lies in DRAM; its values are kept here."""
        first = len(self._values)
        self._values = np.concatenate([self._values, values.ravel().astype(np.float32)])
        self._times = np.zeros(len(self._values), np.int64)
        self._shapes[tensor] = slice(first, len(self._values)), values.shape
        codes = np.arange(first + 1, len(self._values) + 1, dtype=np.uint32) | np.uint32(_QUIET_NAN)
        return codes.view(np.float32).reshape(values.shape)

    def times_read(self, tensor: str) -> NDArray[np.int64]:
        """How often each element was read."""
        place, shape = self._shapes[tensor]
        return self._times[place].reshape(shape)

    def load(self, name: str, tile: Array, **options: Any) -> Array:
        with self._counting():
            data = super().load(name, tile, **options)
        tensor = self._open(data) or options.get("tensor") or name
        self.loads[tensor] += 1
        self.early[tensor] += tensor in (self._origin.get(buffer) for buffer in self.resident if buffer != name)
        self._origin[name] = tensor
        return data

    def slide(self, name: str, *arguments: Any, **options: Any) -> Array:
        with self._counting():
            data = super().slide(name, *arguments, **options)
        self._open(data)
        return data

    def store(self, name: str, tile: Array, **options: Any) -> None:
        with self._counting():
            super().store(name, tile, **options)

    def stream(self, name: str, elements: Array) -> Array:
        with self._counting():
            values = super().stream(name, elements).copy()
        self._open(values)
        return values

    def stream_out(self, name: str, values: Array, into: Array) -> None:
        with self._counting():
            super().stream_out(name, values, into)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Lines that the transfer inside writes are counted; others, written by hand, stay where they are."""
        before = len(self.ledger)
        yield
        self.counted.extend(islice(self.ledger, before, None))

    def _open(self, buffer: Array) -> str:
        """Put true values where sealed elements are; the tensor that the first of them comes from, else ""."""
        if buffer.dtype.kind != "f":
            return ""
        codes = np.ascontiguousarray(buffer, np.float32).view(np.uint32)
        numbers = (codes & np.uint32(_PAYLOAD)).astype(np.int64) - 1
        sealed = np.isnan(buffer) & (numbers >= 0) & (numbers < len(self._values))
        places = numbers[sealed]
        buffer[sealed] = self._values[places]
        np.add.at(self._times, places, 1)
        if not len(places):
            return ""
        return next(name for name, (place, _) in self._shapes.items() if place.start <= places[0] < place.stop)
