"""Loop nests over tiles: split and reorder, the traffic that follows, and the nest written out as pseudo-code.

The scratchpad model, exactly: each operand has one resident tile (two when double buffered: capacity changes, bytes do
not). A tile is loaded when the one needed is not the one resident; edge tiles have their real size. The output tile is
written whenever it leaves; if it comes back unfinished it is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Literal, get_args

import numpy as np

from labkit.access import Axis, Operand, tile_ranges
from labkit.errors import LabError
from labkit.memory.ledger import Traffic
from labkit.problems import Problem

CPolicy = Literal["store", "load_store", "spill", "complete"]
Buffers = Literal["single", "double", "double_all"]
Halo = Literal["reload", "slide"]


@dataclass(frozen=True)
class LoopNest:
    """A problem with each loop cut into tiles, and the loops over tiles put in an order, outermost first.

    ``c_policy``: ``store`` starts the output at zero, ``load_store`` adds to what is in DRAM, ``spill`` also does, and
    keeps no accumulator on chip; ``complete`` also starts at zero, and no tile may leave before it is finished, which
    a problem with a tail asks for. ``buffers``: ``double`` holds two tiles of each input, ``double_all`` of the output
    too. ``halo``: ``slide`` keeps the overlap when a window moves on by one tile, ``reload`` loads all of it again.

    >>> from labkit.problems import matmul
    >>> nest = LoopNest.of(matmul(1024, 1024, 1024)).split("m", 128).split("n", 128).split("k", 128)
    >>> nest.working_set_bytes, nest.traffic.read_bytes, nest.traffic.write_bytes
    (196608, 67108864, 4194304)
    """

    problem: Problem
    tile: tuple[int, ...]  # in the order of problem.loops
    order: tuple[str, ...]
    c_policy: CPolicy = "store"
    buffers: Buffers = "single"
    halo: Halo = "reload"

    def __post_init__(self) -> None:
        loops = self.problem.loops
        if len(self.tile) != len(loops):
            raise LabError(f"tile {self.tile}: {len(loops)} numbers are wanted, one for each of {', '.join(loops)}")
        for loop, size in zip(loops, self.tile, strict=True):
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise LabError(f"tile: {loop} is {size!r}, it must be a whole number of at least 1")
        if sorted(self.order) != sorted(loops):
            raise LabError(f"loop order {','.join(self.order)}: write each of {', '.join(loops)} once, outermost first")
        chosen = (("C policy", self.c_policy, CPolicy), ("buffers", self.buffers, Buffers), ("halo", self.halo, Halo))
        for what, value, kind in chosen:
            if value not in get_args(kind):
                raise LabError(f"{what} {value!r}: choose one of {', '.join(get_args(kind))}")
        if self.problem.tail and self.c_policy != "complete":
            raise LabError(f"C policy {self.c_policy}: what follows on the output needs whole sums; choose complete")

    @staticmethod
    def of(problem: Problem) -> LoopNest:
        """The obvious program: nothing cut, the loops in the problem's order."""
        return LoopNest(problem, tuple(problem.loops.values()), tuple(problem.loops))

    def split(self, loop: str, factor: int) -> LoopNest:
        """Cut a loop into an outer one over tiles and an inner one of ``factor`` steps (TensorIR)."""
        if loop not in self.problem.loops:
            raise LabError(f"split: no loop {loop!r}; there are: {', '.join(self.problem.loops)}")
        tile = (factor if name == loop else old for name, old in zip(self.problem.loops, self.tile, strict=True))
        return replace(self, tile=tuple(tile))

    def reorder(self, *loops: str) -> LoopNest:
        """Put these loops over tiles in this order, outermost first; the others keep their places (TensorIR)."""
        if len(set(loops)) < len(loops) or not set(loops) <= self.problem.loops.keys():
            raise LabError(f"reorder {', '.join(loops)}: each must be one of {', '.join(self.problem.loops)}, once")
        following = iter(loops)
        return replace(self, order=tuple(next(following) if loop in loops else loop for loop in self.order))

    def clipped(self) -> LoopNest:
        """With tiles cut down to the problem; the very same object when nothing had to be cut."""
        tile = tuple(min(size, extent) for size, extent in zip(self.tile, self.problem.loops.values(), strict=True))
        return self if tile == self.tile else replace(self, tile=tile)

    @cached_property
    def tiles(self) -> dict[str, int]:
        """Tile size of each loop, cut down to its extent."""
        sizes = zip(self.problem.loops.items(), self.tile, strict=True)
        return {loop: min(size, extent) for (loop, extent), size in sizes}

    @cached_property
    def trips(self) -> dict[str, int]:
        """Number of tiles along each loop."""
        return {loop: -(-extent // self.tiles[loop]) for loop, extent in self.problem.loops.items()}

    @property
    def working_set_bytes(self) -> int:
        """SRAM for the largest tile of every operand, with its copies."""
        return sum(self.slots(operand) * self.tile_bytes(operand) for operand in self.problem.operands)

    def slots(self, operand: Operand) -> int:
        """Tiles of an operand that are held at once."""
        is_output = operand is self.problem.output
        return 2 if self.buffers == "double_all" or (self.buffers == "double" and not is_output) else 1

    def tile_bytes(self, operand: Operand) -> int:
        """Bytes of the largest tile of an operand."""
        return prod(self._largest(axis) for axis in operand.axes) * self.problem.held_itemsize(operand)

    @property
    def traffic(self) -> Traffic:
        """Bytes and transfers of all operands."""
        return sum(self.by_operand.values(), Traffic())

    @cached_property
    def by_operand(self) -> dict[str, Traffic]:
        """The traffic of each operand, in closed form: nothing runs."""
        found = {operand.name: self.input_traffic(operand) for operand in self.problem.loaded}
        return {**found, self.problem.output.name: self._output_traffic()}

    def input_traffic(self, operand: Operand) -> Traffic:
        """The traffic of an input: of the problem, or any other operand over its loops."""
        moving = self.innermost_moving(operand)
        loaded = [self._loaded(axis, self.slides(axis, moving)) for axis in operand.axes]
        passes = self.passes(operand)
        positions, tiles = prod(count for count, _ in loaded), prod(count for _, count in loaded)
        return Traffic(passes * positions * operand.itemsize, 0, passes * tiles, 0)

    def _output_traffic(self) -> Traffic:
        output, tail = self.problem.output, self.problem.tail
        passes = self.passes(output)
        reads = passes - 1 if self.starts_at_zero else passes
        tiles = prod(self.trips[loop] for loop in output.loops)
        if self.c_policy == "complete" and passes > 1:
            raise LabError(f"order {','.join(self.order)}: an output tile leaves unfinished and comes {passes} times")
        if tail:
            read, written = (prod(output.shape) * sum(sizes) for sizes in (tail.reads, tail.writes))
            return Traffic(read, written, tiles * len(tail.reads), tiles * len(tail.writes))
        return Traffic(reads * output.nbytes, passes * output.nbytes, reads * tiles, passes * tiles)

    @property
    def starts_at_zero(self) -> bool:
        """Whether an output tile is not read when it comes for the first time."""
        return self.c_policy in ("store", "complete")

    def innermost_moving(self, operand: Operand) -> str | None:
        """The innermost loop over tiles that changes which tile of an operand is needed."""
        return next((loop for loop in reversed(self.order) if loop in operand.loops and self.trips[loop] > 1), None)

    def passes(self, operand: Operand) -> int:
        """How often the whole operand comes: a loop that does not index it repeats all that moves inside it."""
        if operand is self.problem.output and self.c_policy == "spill":
            return prod(self.trips[loop] for loop in self.problem.reductions)
        moving = self.innermost_moving(operand)
        outside = self.order[: self.order.index(moving)] if moving else ()
        return prod(self.trips[loop] for loop in outside if loop not in operand.loops)

    def slides(self, axis: Axis, moving: str | None) -> bool:
        """Whether an axis keeps its overlap: the moving loop is the only one that moves it."""
        others = (loop for loop in axis.loops if loop != moving)
        return self.halo == "slide" and moving in axis.loops and all(self.trips[loop] == 1 for loop in others)

    def _loaded(self, axis: Axis, sliding: bool) -> tuple[int, int]:
        """Positions of an axis that all its tiles load together, and the number of tiles that load any."""
        if axis.is_plain:
            return axis.extent, self.trips[axis.loops[0]]
        counts = axis.tile_counts(*self._cut(axis), sliding)
        return int(counts.sum()), int(np.count_nonzero(counts))

    def _largest(self, axis: Axis) -> int:
        """Positions of the largest tile along an axis."""
        return self.tiles[axis.loops[0]] if axis.is_plain else int(axis.tile_counts(*self._cut(axis)).max())

    def _cut(self, axis: Axis) -> tuple[tuple[int, ...], tuple[int, ...]]:
        extents = tuple(self.problem.loops[loop] for loop in axis.loops)
        return extents, tuple(self.tiles[loop] for loop in axis.loops)

    def steps(self) -> Iterator[Mapping[str, range]]:
        """The index ranges of each step, in the order in which the nest runs."""
        cut = [tile_ranges(self.problem.loops[loop], self.tiles[loop]) for loop in self.order]
        for ranges in product(*cut):
            yield dict(zip(self.order, ranges, strict=True))

    def __str__(self) -> str:
        """The nest as pseudo-code: a tile is loaded just inside the innermost loop that moves it."""
        output = self.problem.output
        spilt = "  # read from DRAM and written back" if self.c_policy == "spill" else ""
        sign = "=" if self.problem.is_copy else "+="
        step = f"{output.name} {sign} {' * '.join(x.name for x in self.problem.inputs)}{spilt}"
        return "\n".join(self.written(step, [f"store {self.describe(output)}"]))

    def written(self, step: str, tail: Sequence[str]) -> list[str]:
        """The lines of the nest, given the line for one step and those for a finished tile of the output."""
        lines: list[str] = []
        self._write(list(self.order), None, "", lines, step, tail)
        return lines

    def _write(
        self, order: list[str], inside: str | None, indent: str, lines: list[str], step: str, tail: Sequence[str]
    ) -> None:
        """The loops ``order`` and what they surround; ``inside`` is the loop they stand in."""
        output = self.problem.output
        moved = [x for x in self.problem.operands if self.innermost_moving(x) == inside]
        lines += [f"{indent}load {self.describe(x)}" for x in moved if x is not output]
        held = output in moved and self.c_policy != "spill"
        if held and self.problem.inputs:
            again = "zero or load" if self.passes(output) > 1 else "zero"  # zero the first time, load what came before
            lines.append(f"{indent}{again if self.starts_at_zero else 'load'} {self.describe(output)}")
        while order and self.trips[order[0]] == 1:
            order = order[1:]
        if order:
            loop = order[0]
            lines.append(f"{indent}for {loop} in range(0, {self.problem.loops[loop]}, {self.tiles[loop]}):")
            self._write(order[1:], loop, indent + "    ", lines, step, tail)
        elif self.problem.inputs:
            lines.append(f"{indent}{step}")
        if held:
            lines += [f"{indent}{line}" for line in tail]

    def describe(self, operand: Operand) -> str:
        """An operand and the extents of its largest tile."""
        sizes = [self._largest(axis) for axis in operand.axes] + [operand.width] * (operand.width > 1)
        return f"{operand.name} {'×'.join(map(str, sizes)) or 'scalar'}"
