"""How each loop of a nest is best handed to a simulator: further inside, or as rows of lines, a sweep, or a digest."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from labkit.memory.affine import Bools, Int64s
from labkit.memory.digest import Digest, digest, fits
from labkit.memory.program import TEMPLATE_ENTRIES, Indices, Level, Program, line_of
from labkit.memory.sweep import Sets, cost

CHUNK = 2**16
Way = Literal["inside", "rows", "sweep", "digest"]
_SAMPLE = 4096
_LONGEST_SWEEP = 2**14  # accesses: what is looked up for each stays in the processor's cache
_DIGEST, _COUNT_INSIDE = 1.0, 5.0  # for each access of a kind of piece once: to find its digest, and its distances
_DIGESTED = 256  # accesses from which a digest may pay
_PYTHON_STEP = 2000  # entries that the engine handles while Python makes one step of a loop


class Plan(NamedTuple):
    """``entries``: estimate of what is to be simulated in the whole loop; ``instead``: where a digest is not exact."""

    entries: float
    way: Way
    instead: Way


class Planner:
    """The plans of the loops of a program; sweeps where it is for a ``cache``, digests where they may be used."""

    def __init__(
        self,
        program: Program,
        line_bytes: int,
        size: int,
        collapse: bool = True,
        cache: Sets | None = None,
        digests: bool = False,
    ) -> None:
        self._program, self.line_bytes, self.size, self._collapse = program, line_bytes, size, collapse
        self.cache, self._digests_used = cache, digests
        self._crossing: dict[Level, Bools] = {}
        self._templates: dict[Level, tuple[Int64s, Indices]] = {}
        self._digests: dict[tuple[Level, bytes], Digest | None] = {}
        self._plans: dict[Level, Plan] = {}

    def changes(self, level: Level, bases: Int64s, start: int, stop: int) -> Bools:
        """[row, iteration]: whether the next iteration makes another line sequence than this one."""
        strides = self._program.strides[level.span, level.depth]
        moving = np.flatnonzero(strides)
        if not self._collapse or (np.abs(strides) >= self.line_bytes).any():
            return np.ones((len(bases), stop - start), dtype=np.bool_)
        if not moving.size:
            return np.zeros((len(bases), stop - start), dtype=np.bool_)
        origins = bases[:, level.span][:, moving] % self.line_bytes
        kinds, kind_of = origins[:1], np.zeros(len(origins), dtype=np.intp)
        if not (origins == kinds).all():  # rows that begin alike change alike
            kinds, kind_of = np.unique(origins, axis=0, return_inverse=True)
        changes = np.zeros((len(kinds), stop - start), dtype=np.bool_)
        for column, reference in enumerate(moving):
            steps = np.arange(start, stop) * strides[reference]
            residues = (kinds[:, column, None] + steps) % self.line_bytes
            changes |= self._crossing_of(level)[reference][residues]
        return changes[kind_of.ravel()]

    def _crossing_of(self, level: Level) -> Bools:
        """[reference, address modulo line]: whether a step of the loop takes some access of it to another line."""
        if level in self._crossing:
            return self._crossing[level]
        offsets, references = self.template(level)
        strides = self._program.strides[level.span, level.depth]
        crossing = np.zeros((len(strides), self.line_bytes), dtype=np.bool_)
        for at, stride in enumerate(strides):
            inner = np.unique(offsets[references == level.span.start + at] % self.line_bytes)
            first = -inner - max(stride, 0)  # the residues from which this stride crosses a border
            crossing[at, (first[:, None] + np.arange(abs(stride))) % self.line_bytes] = True
        self._crossing[level] = crossing
        return crossing

    def of(self, level: Level) -> Plan:
        """How to make a loop."""
        if level not in self._plans:
            self._plans[level] = self._choose(level)
        return self._plans[level]

    def _choose(self, level: Level) -> Plan:
        inner = [self.of(item).entries if isinstance(item, Level) else 1.0 for item in level.body]
        inside = level.count * (sum(inner) + (0 if level.only_loop else _PYTHON_STEP))
        if not any(isinstance(item, Level) for item in level.body):
            inside = np.inf
        elif level.entries > (TEMPLATE_ENTRIES if self._collapse else self.size):
            return Plan(inside, "inside", "inside")
        sample = min(level.count, _SAMPLE)
        runs = max(1, int(self.changes(level, self._program.bases, 0, sample).sum()))
        rows = level.count / sample * level.entries * min(2 * runs, sample)
        ways: list[tuple[float, Way]] = [(rows, "rows"), (inside, "inside"), (self._sweep_cost(level), "sweep")]
        entries, instead = min(ways, key=lambda way: way[0])
        digested = self._digest_cost(level)
        return Plan(digested, "digest", instead) if digested < entries else Plan(entries, instead, instead)

    def _sweep_cost(self, level: Level) -> float:
        if self.cache is None or level.entries > _LONGEST_SWEEP:
            return np.inf
        offsets, references = self.template(level)
        starts = self._program.bases[0, references] + offsets
        return cost(starts, self._program.strides[references, level.depth], level.count, self.line_bytes, self.cache)

    def _digest_cost(self, level: Level) -> float:
        if not self._digests_used or level.entries < _DIGESTED:
            return np.inf
        made, kinds = self._repetition(level)
        once = level.entries * (_DIGEST if self.cache else _COUNT_INSIDE)
        if kinds * once >= made * level.entries:
            return np.inf
        base = self._program.bases[0]
        found = self.digest(level, base)
        if found is None:
            return np.inf
        lines = (base[found.references] + found.offsets)[: found.distinct] // self.line_bytes
        if self.cache and not fits(lines[None, :], self.cache)[0]:
            return np.inf
        alike = not (self._program.strides[level.span, level.depth] % self.line_bytes).any()
        return level.count * (found.offsets.size + (0 if alike else _PYTHON_STEP) + once * kinds / made)

    def _repetition(self, level: Level) -> tuple[int, int]:
        """How often an iteration of the loop is made in all, and at most how many kinds of it have digests."""
        made, kinds = 1, 1
        counts = self._program.placed[level.span.start].counts
        for depth in range(level.depth + 1):
            strides = np.abs(self._program.strides[level.span, depth])
            made *= counts[depth]
            kinds *= min(counts[depth], int(np.lcm.reduce(self.line_bytes // np.gcd(self.line_bytes, strides))))
        return made, kinds

    def digest(self, level: Level, base: Int64s) -> Digest | None:
        """The digest of one iteration of a loop that begins at ``base``; None where there is none.

        Which accesses meet in a line depends only on the addresses modulo the line: tensors share no line, and all
        references to a tensor move alike in the loops outside.
        """
        key = level, (base[level.span] % self.line_bytes).tobytes()
        if key not in self._digests:
            offsets, references = self.template(level)
            shift, count = self._numbering(level, base)
            numbers = line_of(base[references] + offsets, self.line_bytes) + shift[references]
            found = digest(numbers, count, offsets, references, self._program.write_of[references])
            self._digests[key] = found if self._move_alike(level) else None
        return self._digests[key]

    def _numbering(self, level: Level, base: Int64s) -> tuple[Int64s, int]:
        """(what is to be added to the lines of each reference, how many numbers): one tensor behind the other."""
        shift, end = np.zeros(len(base), dtype=np.int64), 0
        own = np.arange(level.span.start, level.span.stop)
        spans = [self._program.placed[at].span(level.depth + 1) for at in own]
        lows, highs = ((base[own] + ends) // self.line_bytes for ends in np.array(spans, dtype=np.int64).T)
        tensors = self._program.tensor_of[own]
        for tensor in np.unique(tensors):
            low, high = int(lows[tensors == tensor].min()), int(highs[tensors == tensor].max())
            shift[own[tensors == tensor]] = end - low
            end += high - low + 1
        return shift, end

    def _move_alike(self, level: Level) -> bool:
        outside = self._program.strides[level.span, : level.depth + 1]
        tensors = self._program.tensor_of[level.span]
        return all(np.unique(outside[tensors == tensor], axis=0).shape[0] == 1 for tensor in np.unique(tensors))

    def template(self, level: Level) -> tuple[Int64s, Indices]:
        """(offset, reference) of each access in one iteration."""
        if level not in self._templates:
            self._templates[level] = self._program.template(level)
        return self._templates[level]
