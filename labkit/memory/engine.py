"""Which of the two simulators runs: ``compiled`` by numba, or ``interpreted`` in plain Python. Both count the same."""

from __future__ import annotations

import importlib
import sys
from typing import Literal, Protocol, cast

from labkit.errors import LabError
from labkit.memory.affine import Bools, Int32s, Int64s
from labkit.memory.digest import Digested
from labkit.memory.expansion import Batch
from labkit.memory.stream import Batches
from labkit.memory.sweep import Sweep

EngineName = Literal["auto", "compiled", "interpreted"]
# Up to so many entries plain Python is done before numba is imported (the first figure), or before its overhead pays.
_FIRST, _LATER = 500_000, 5_000
# More than this takes minutes in either of them.
_MOST = 2**36


class Reuse(Protocol):
    """All reuse distances of what it is fed; ``compiled.Reuse`` says what the arrays hold."""

    @property
    def distances(self) -> Int64s: ...
    @property
    def rewrites(self) -> Int64s: ...
    def feed(self, batch: Batch) -> None: ...
    def feed_digested(self, pieces: Digested) -> None: ...
    def stack(self) -> tuple[Int64s, Int64s]: ...


class Engine(Protocol):
    """What both modules offer; ``has_forms``: sweeps and digested pieces too."""

    def lru(self, tags: Int64s, ways: int, batch: Batch, misses: Int64s, dirtied: Int64s) -> None: ...
    def lru_list(self, tags: Int64s, ways: int, batches: Batches, misses: Int64s, dirtied: Int64s) -> None: ...
    @property
    def has_forms(self) -> bool: ...
    def sweep(self, tags: Int64s, ways: int, each: Sweep, misses: Int64s, dirtied: Int64s) -> None: ...
    def Reuse(self, lines: int, tensors: int) -> Reuse: ...  # noqa: N802
    def belady(self, sequence: Int32s, writes: Bools, lines: int, capacity: int) -> tuple[int, int]: ...


def choose(entries: float, name: EngineName = "auto") -> Engine:
    """The engine for so many entries: plain Python for few of them and where there is no numba.

    Raises LabError for an unknown name, for "compiled" without numba, and for more entries than can be simulated.
    """
    if name not in ("auto", "compiled", "interpreted"):
        raise LabError(f"engine {name!r}: choose auto, compiled or interpreted")
    if entries > _MOST:
        raise LabError(f"about {entries:.3g} accesses remain to be simulated: at most {_MOST:.3g} can be")
    loaded = "labkit.memory.compiled" in sys.modules
    if name == "interpreted" or (name == "auto" and entries <= (_LATER if loaded else _FIRST)):
        return cast(Engine, importlib.import_module("labkit.memory.interpreted"))
    try:
        return cast(Engine, importlib.import_module("labkit.memory.compiled"))
    except ImportError:
        if name == "compiled":
            raise LabError("the compiled engine needs numba: pip install numba, or engine interpreted") from None
        return cast(Engine, importlib.import_module("labkit.memory.interpreted"))
