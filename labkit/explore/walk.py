"""Lesson 02: one step of a walk over tiles. Which tiles are on chip, which of them just came, what has moved so far.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.access import Operand
from labkit.errors import LabError
from labkit.explore.tiling import Shape, nest_of, tile_text
from labkit.hardware import Hardware
from labkit.loops import Buffers, CPolicy, LoopNest
from labkit.units import format_bytes

if TYPE_CHECKING:
    from labkit.explore.panel import HardwareState
    from labkit.explore.walk_view import WalkView

_MOST_STEPS = 1_000_000
_MOST_DRAWN = 12  # tiles along one side of a matrix drawn with characters


@dataclass(frozen=True)
class Visit:
    """One operand at one step: the tile it needs, and what moves for it. ``sequence`` counts its tiles, from 1."""

    operand: Operand
    rows: range
    columns: range
    sequence: int
    sequences: int
    is_new: bool
    read_bytes: int
    write_bytes: int
    read_so_far: int
    written_so_far: int

    @property
    def words(self) -> str:
        """What happens to it, in words."""
        if self.read_bytes and self.write_bytes:
            return "comes back, and is stored"
        moves = "comes" if self.read_bytes else "starts at zero" if self.is_new else "stays"
        return f"{moves}, and is stored" if self.write_bytes else moves


@dataclass(frozen=True)
class WalkState:
    """Step ``step`` of a nest (from 0): its tiles in A, B and C, and the bytes up to and with it."""

    nest: LoopNest
    step: int
    hardware: Hardware

    @property
    def steps(self) -> int:
        return prod(self.nest.trips.values())

    @cached_property
    def at(self) -> dict[str, range]:
        """Index range of each loop at this step."""
        found, left = {}, self.step
        for loop in reversed(self.nest.order):
            left, index = divmod(left, self.nest.trips[loop])
            start = index * self.nest.tiles[loop]
            found[loop] = range(start, min(start + self.nest.tiles[loop], self.nest.problem.loops[loop]))
        return {loop: found[loop] for loop in self.nest.problem.loops}

    @cached_property
    def visits(self) -> tuple[Visit, ...]:
        """A, B and C."""
        return tuple(self._visit(operand) for operand in self.nest.problem.operands)

    @property
    def fits(self) -> bool:
        return self.nest.working_set_bytes <= self.hardware.sram_bytes

    @property
    def moved_bytes(self) -> int:
        """Bytes of all operands up to and with this step."""
        return sum(visit.read_so_far + visit.written_so_far for visit in self.visits)

    @property
    def place(self) -> str:
        """Where the loops stand: m 0-127, n 128-255, k 0-127."""
        return ", ".join(f"{loop} {r.start}-{r.stop - 1}" for loop, r in self.at.items())

    @property
    def room(self) -> str:
        """The working set beside the SRAM."""
        needed, sram = format_bytes(self.nest.working_set_bytes), format_bytes(self.hardware.sram_bytes)
        return f"{needed} of {sram}" + ("" if self.fits else ": does not fit")

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The state in words and numbers, a label and a value each."""
        tiles = tuple((f"{v.operand.name}, tile {v.sequence:,} of {v.sequences:,}", v.words) for v in self.visits)
        total = self.nest.traffic.nbytes
        return (
            (f"Step {self.step:,} of {self.steps:,}", self.place),
            *tiles,
            ("On chip", self.room),
            ("Moved so far", f"{format_bytes(self.moved_bytes)} of {format_bytes(total)}"),
        )

    @property
    def sentence(self) -> str:
        """The state in one line."""
        words = "; ".join(f"{v.operand.name} {v.words}" for v in self.visits)
        return (
            f"{self.nest.problem.name}, tile {tile_text(self.nest)}, order {''.join(self.nest.order)}, "
            f"step {self.step:,} of {self.steps:,} ({self.place}): {words}. On chip: {self.room}. "
            f"Moved so far: {format_bytes(self.moved_bytes)} of {format_bytes(self.nest.traffic.nbytes)}."
        )

    @property
    def text(self) -> str:
        """The state, the picture in characters, and the program."""
        return "\n\n".join(filter(None, (self.sentence, self.drawing(), str(self.nest))))

    def drawing(self) -> str:
        """The matrices with characters, B above C and A left of it: # just came, + stays, . not on chip.

        Empty where there are too many tiles.

        >>> print(data((4, 6, 4), (2, 2, 2), step=1).drawing())
                  B ...
                    #..
            A .#  C +..
              ..    ...
        """
        trips = self.nest.trips
        if max(trips.values()) > _MOST_DRAWN:
            return ""
        a, b, c = (self._cells(visit) for visit in self.visits)
        left = " " * (trips["k"] + 6)
        above = [f"{left}  {'B' if i == 0 else ' '} {row}" for i, row in enumerate(b)]
        beside = [
            f"    {'A' if i == 0 else ' '} {row}  {'C' if i == 0 else ' '} {other}"
            for i, (row, other) in enumerate(zip(a, c, strict=True))
        ]
        return "\n".join([*above, *beside])

    def _cells(self, visit: Visit) -> list[str]:
        rows, columns = (axis.loops[0] for axis in visit.operand.axes)
        tiles, mark = self.nest.tiles, "#" if visit.is_new else "+"
        at = visit.rows.start // tiles[rows], visit.columns.start // tiles[columns]
        trips = self.nest.trips
        return ["".join(mark if (i, j) == at else "." for j in range(trips[columns])) for i in range(trips[rows])]

    def _visit(self, operand: Operand) -> Visit:
        """A tile comes when the innermost loop that moves it has moved; the output goes when the next one comes."""
        nest, is_output = self.nest, operand is self.nest.problem.output
        spills = is_output and nest.c_policy == "spill"
        moving = nest.order[-1] if spills else nest.innermost_moving(operand)
        inside = nest.order[nest.order.index(moving) + 1 :] if moving else nest.order
        each = prod(nest.trips[loop] for loop in inside)  # steps that a tile stays
        number = self.step // each
        sizes, again = self._arrivals(operand, nest.order[: len(nest.order) - len(inside)])
        reads = sizes * (again | (not nest.starts_at_zero)) if is_output else sizes
        leaves = is_output and (self.step + 1) % each == 0
        is_new = self.step % each == 0
        rows, columns = (self.at[axis.loops[0]] for axis in operand.axes)
        return Visit(
            operand=operand,
            rows=rows,
            columns=columns,
            sequence=number + 1,
            sequences=len(sizes),
            is_new=is_new,
            read_bytes=int(reads[number]) if is_new else 0,
            write_bytes=int(sizes[number]) if leaves else 0,
            read_so_far=int(reads[: number + 1].sum()),
            written_so_far=int(sizes[: number + leaves].sum()) if is_output else 0,
        )

    def _arrivals(self, operand: Operand, loops: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Bytes of each tile of an operand that comes, in order, and whether sums in it have been begun before."""
        counts = [self.nest.trips[loop] for loop in loops]
        places = np.unravel_index(np.arange(prod(counts)), counts) if loops else ()
        index = dict(zip(loops, places, strict=True))
        nbytes, again = np.full(prod(counts), operand.itemsize), np.zeros(prod(counts), np.bool_)
        for axis in operand.axes:
            loop = axis.loops[0]
            tile, extent = self.nest.tiles[loop], self.nest.problem.loops[loop]
            nbytes *= np.minimum(tile, extent - index[loop] * tile) if loop in index else tile
        for loop in self.nest.problem.reductions:
            if loop in index:
                again |= index[loop] > 0
        return nbytes, again


def data(
    shape: Shape = (1024, 1024, 1024),
    tile: Shape = (128, 128, 128),
    order: str = "mnk",
    c_policy: CPolicy = "store",
    buffers: Buffers = "single",
    step: int = 0,
    hardware: Hardware | None = None,
    dtype: str = "float32",
) -> WalkState:
    """One step of the product of ``shape`` (m, n, k) by ``tile`` (TM, TN, TK).

    Raises LabError for what makes no nest, a step that does not exist, and a walk of too many steps.
    """
    machine = hardware or Hardware.preset(Hardware.presets()[0])
    state = WalkState(nest_of(shape, tile, order, c_policy, buffers, dtype), step, machine)
    if state.steps > _MOST_STEPS:
        raise LabError(f"{state.steps:,} steps: a walk has up to {_MOST_STEPS:,}; make the tiles larger")
    if not 0 <= step < state.steps:
        raise LabError(f"step {step}: the walk has {state.steps:,} steps, numbered from 0")
    return state


def show(state: HardwareState | None = None, **settings: Any) -> WalkView:
    """The live walk on the machine of a panel; ``settings`` are where its controls start."""
    from labkit.explore.panel import HardwareState
    from labkit.explore.walk_view import WalkView

    return WalkView(HardwareState() if state is None else state).set(**settings)
