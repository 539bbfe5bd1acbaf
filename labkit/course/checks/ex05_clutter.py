"""Part 5.8: graphs with clutter whose every needless node is known by construction, and the judge of ``tidy``."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.rewrites import Case, Sketch, judge_pass
from labkit.graph import Graph, Value
from labkit.passes.judge import check_pass

_REST = 2  # so many needless nodes may stay


@dataclass(frozen=True)
class Given:
    """One student's cluttered graph."""

    cluttered: Graph


def given(draw: Random) -> Given:
    """A graph of the kind that ``tidy`` is judged on."""
    return Given(cluttered(draw)[0])


@dataclass
class _Clutter:
    """A graph in the making, and how many nodes of it are needed."""

    draw: Random
    sketch: Sketch = field(default_factory=Sketch)
    needed: int = 0
    constants: int = 0

    def constant(self, array: Any, dtype: Any = np.float32) -> Value:
        self.constants += 1
        return self.sketch.keep(f"k{self.constants}", array, dtype)

    def put(self, op: str, *reads: Value, **attrs: Any) -> Value:
        found: Value = self.sketch.put(op, *reads, **attrs)
        return found

    def nothing(self, x: Value, kind: int) -> Value:
        """Nodes that hand x on: told by shape, by a constant, by a constant that is computed, or only together."""
        if kind == 0:
            return self.put("Identity", x)
        if kind == 1:
            return self.put("Reshape", x, self.constant([0, -1, *(x.shape or ())[2:]], np.int64))
        if kind == 2:
            return self.put(self.draw.choice(("Mul", "Div")), x, self.constant([1]))
        if kind == 3:
            return self.put("Add", self.constant([0]), x)
        if kind == 4:
            return self.put("Mul", x, self.put("Sub", self.constant([3]), self.constant([2])))
        if kind == 5:
            there, back = self.draw.choice((((0, 2, 3, 1), (0, 3, 1, 2)), ((0, 3, 1, 2), (0, 2, 3, 1))))
            return self.put("Transpose", self.put("Transpose", x, perm=there), perm=back)
        for _ in range(3):  # three turns of three axes
            x = self.put("Transpose", x, perm=(0, 2, 3, 1))
        return x

    def something(self, x: Value, kind: int) -> Value:
        """Nodes of which one, or two, are needed; the last three kinds look like clutter and are none."""
        self.needed += 2 if kind in (0, 5) else 1
        if kind == 0:  # the same twice, in either order
            scale = self.constant([0.5 + self.draw.randrange(1, 4)])
            return self.put("Add", self.put("Mul", x, scale), self.put("Mul", scale, self.put("Identity", x)))
        if kind == 1:
            return self.put("Relu", self.put("Relu", self.put("Identity", self.put("Relu", x))))
        if kind == 2:  # two Transposes that are one
            return self.put("Transpose", self.put("Transpose", x, perm=(0, 2, 3, 1)), perm=(0, 1, 3, 2))
        if kind == 3:
            total = self.put("Mul", self.constant([self.draw.randrange(2, 5)]), self.constant([0.5]))
            return self.put("Add", x, total)
        if kind == 4:
            return self.put("Sub", self.constant([0]), x)
        if kind == 5:  # a default of an input, which no caller has to take
            default = self.sketch.feed("u", 1, default=[1])
            return self.put("Add", x, self.put("Mul", default, self.constant([2])))
        return self.put("Add", x, self.constant(np.zeros((3, 1, 1, 1))))  # of a batch of one it makes three


def cluttered(draw: Random) -> tuple[Graph, int]:
    """A graph, and the number of its nodes that are needed."""
    new = _Clutter(draw)
    value = new.sketch.feed("x", 1, *draw.sample(range(2, 6), 3))
    pieces = [0, 0, 0, 1, 2, 3, 4, 5, 6]
    idle = [0, 1, 2, 3, 4, 5, 6, *draw.sample(range(6), 2)]
    for piece, empty in zip(draw.sample(pieces, len(pieces)), draw.sample(idle, len(idle)), strict=True):
        value = new.nothing(new.something(value, piece), empty)
        if draw.random() < 0.5:
            new.put("Sigmoid", new.nothing(value, draw.randrange(6)))  # nothing reads it
        new.needed += 1
        value = new.put("Sigmoid", value)  # keeps one piece from melting into the next
    return new.sketch.graph(value), new.needed


def check_tidy(tidy: Function, draw: Random) -> None:
    """5.8: all needless nodes but two go, and no trap catches the pass."""
    graph, needed = cluttered(draw)
    most = needed + _REST
    kinds = "no-ops, repeats, dead branches, constant arithmetic, Transposes in a row, Relu of Relu: what is left?"
    case = Case(graph, most, "which of your rules lacks a proof?", f"{needed} would do. {kinds}")
    judge_pass(tidy, case, "tidy")
    verdict = check_pass(tidy, graph)
    if not verdict.ok:
        raise CheckFailed(f"tidy is caught: {verdict.findings[0]} (check_pass tells the rest).")
