"""Lesson 04: the guard zoo. A trap, a rewrite that lacks its guard, and what comes out of it on inputs of your choice.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.errors import GraphError, LabError
from labkit.explore.hasty import HASTY
from labkit.graph import Array, Graph, TensorType
from labkit.interpreter import run
from labkit.passes.guards import TRAPS, Trap
from labkit.passes.pipeline import optimize
from labkit.text import diff

if TYPE_CHECKING:
    from labkit.explore.guards_view import GuardsView

KINDS = ("normal", "negative", "with NaN", "defaults fed")
NAMES = tuple(trap.guard for trap in TRAPS)
MOST_DRAWN = 32  # elements of an output
_ROUNDING = 1e-4  # of the largest output: what re-ordered sums of floats may differ by


@dataclass(frozen=True)
class Gap:
    """Two results of one output: in words, and whether they differ by more than rounding. ``start`` is where a picture
    of up to MOST_DRAWN elements should begin, to show the worst one."""

    output: str
    words: str
    is_wrong: bool
    before: Array
    after: Array | None
    start: int = 0


@dataclass(frozen=True)
class GuardState:
    """A trap, a rewrite of it with or without its guard, and the outputs on one kind of input."""

    trap: Trap
    guard: bool
    kind: str

    @property
    def original(self) -> Graph:
        return _original(self.trap)

    @property
    def rewritten(self) -> Graph | None:
        """What comes out; None where no graph does."""
        return _rewritten(self.trap, self.guard)[0]

    @property
    def broken(self) -> str:
        """Why no graph comes out; empty where one does."""
        return _rewritten(self.trap, self.guard)[1]

    @property
    def diff(self) -> str:
        """What the rewrite did, as lines of text."""
        if self.rewritten is None:
            return "(no graph)"
        overwritten = [
            f"~ constant {name}: other values"
            for name, array in self.rewritten.constants.items()
            if name in self.original.constants and not np.array_equal(array, self.original.constants[name])
        ]
        return "\n".join([diff(self.original, self.rewritten), *overwritten])

    @property
    def refusals(self) -> tuple[str, ...]:
        """What labkit's guards say of the trap."""
        return tuple(f"{r.guard}: {r.why}" for r in _optimised(self.trap)[1])

    def gap(self, kind: str) -> Gap:
        """The output that differs most on a kind of input."""
        return _gap(self.trap, self.guard, kind)

    @property
    def found_by(self) -> tuple[str, ...]:
        """The kinds of input on which the rewritten graph gives something else."""
        return tuple(kind for kind in KINDS if self.gap(kind).is_wrong)

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Lowest and highest number of both graphs' outputs, with and without the guard."""
        gaps = [_gap(self.trap, guard, self.kind) for guard in (True, False)]
        arrays = [array for gap in gaps for array in (gap.before, gap.after) if array is not None]
        numbers = np.concatenate([array[np.isfinite(array)].ravel() for array in arrays])
        return (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 1.0)

    @property
    def still(self) -> Hashable:
        """What the still part of the picture depends on: all but the rewritten graph's output."""
        gap = self.gap(self.kind)
        return self.trap.guard, self.kind, gap.output, gap.start

    @property
    def _unrefused(self) -> str:
        if _optimised(self.trap)[0] is self.original:
            return "nothing to refuse: no rule takes this for its pattern"
        return "nothing to refuse: it is rewritten, and rightly"

    @property
    def sentence(self) -> str:
        """The state in words, with the difference of the two graphs as text."""
        gap = self.gap(self.kind)
        by = ", ".join(self.found_by) or "none of these"
        said = "; ".join(f"refused, {refusal}" for refusal in self.refusals) or self._unrefused
        return (
            f"Trap {self.trap.guard!r}: {self.trap.why}.\n"
            f"Guard {'on' if self.guard else 'off'}, inputs {self.kind}: {gap.words}.\n"
            f"Inputs that show a fault: {by}.\n"
            f"labkit says: {said}.\n"
            f"What was rewritten:\n{self.diff}"
        )


@cache
def _original(trap: Trap) -> Graph:
    return trap.graph()


@cache
def _optimised(trap: Trap) -> tuple[Graph, tuple[Any, ...]]:
    """The graph at basic level, and what was refused."""
    report = optimize(_original(trap))
    return report.graph, report.refusals


@cache
def _rewritten(trap: Trap, guard: bool) -> tuple[Graph | None, str]:
    if guard:
        return _optimised(trap)[0], ""
    try:
        return HASTY[trap.guard](_original(trap)), ""
    except GraphError as error:
        return None, str(error)


@cache
def _gap(trap: Trap, guard: bool, kind: str) -> Gap:
    before, (after, broken) = _original(trap), _rewritten(trap, guard)
    expected = _run(before, kind)
    if after is None:
        name, array = next(iter(expected.items()))
        return Gap(name, f"there is no graph to run: {broken}", True, array, None)
    found = _run(after, kind)
    gaps = [_compare(name, array, found[name]) for name, array in expected.items()]
    return next((gap for gap in gaps if gap.is_wrong), gaps[0])


def _run(graph: Graph, kind: str) -> dict[str, Array]:
    """The outputs as doubles."""
    return {name: np.asarray(array, np.float64) for name, array in run(graph, feeds(graph, kind)).items()}


def feeds(graph: Graph, kind: str) -> dict[str, Array]:
    """Inputs of one kind, the same every time; an input with a default is fed only when defaults are."""
    rng = np.random.default_rng(4)
    found = {}
    for value in graph.inputs:
        if value.type is None or (value.name in graph.constants and kind != "defaults fed"):
            continue
        found[value.name] = _draw(rng, value.type, kind)
    return found


def _draw(rng: np.random.Generator, kind_of: TensorType, kind: str) -> Array:
    shape = tuple(dim for dim in kind_of.shape or () if isinstance(dim, int))
    if kind_of.dtype == "bool":
        return np.ones(shape, bool)
    array = rng.standard_normal(shape)
    if kind == "negative":
        array = -np.abs(array)
    if kind == "with NaN":
        array.flat[0] = np.nan
    return np.asarray(array).astype(kind_of.dtype)


def _compare(name: str, before: Array, after: Array) -> Gap:
    if before.shape != after.shape:
        return Gap(name, f"output {name} has shape {after.shape}, not {before.shape}: wrong", True, before, after)
    numbers = np.isfinite(before) & np.isfinite(after)
    if not np.array_equal(before[~numbers], after[~numbers], equal_nan=True):
        worst = int(np.flatnonzero(~numbers.ravel())[0])
        was, became = before.flat[worst], after.flat[worst]
        return Gap(name, f"output {name}: {was:.4g} became {became:.4g}: wrong", True, before, after, _start(worst))
    apart = np.where(numbers, np.abs(before - after), 0.0)
    largest, scale = float(apart.max()), float(np.abs(before[numbers]).max(initial=0.0))
    if largest == 0.0:
        same = np.array_equal(np.signbit(before[numbers]), np.signbit(after[numbers]))
        words = "is equal to the bit" if same else "is equal, but for the sign of a zero"
        return Gap(name, f"output {name} {words}", False, before, after)
    words = f"output {name} differs by up to {largest:.2g}, its numbers being up to {scale:.2g}"
    if largest <= _ROUNDING * scale:
        words = f"output {name} is equal but for rounding, less than 1 part in 10,000"
        return Gap(name, words, False, before, after)
    return Gap(name, f"{words}: wrong", True, before, after, _start(int(apart.argmax())))


def _start(worst: int) -> int:
    return max(0, worst - MOST_DRAWN // 2)


def data(trap: str = NAMES[0], guard: bool = False, kind: str = KINDS[0]) -> GuardState:
    """A trap by the name of its guard, rewritten with the guard or without, run on one kind of input.

    Raises LabError for a trap or a kind that is none.
    """
    for what, chosen, known in (("trap", trap, NAMES), ("kind of input", kind, KINDS)):
        if chosen not in known:
            raise LabError(f"no {what} {chosen!r}; there are: {', '.join(known)}")
    return GuardState(TRAPS[NAMES.index(trap)], bool(guard), kind)


def show(traps: Sequence[str] = NAMES, **settings: Any) -> GuardsView:
    """The live zoo: a menu of traps, a switch for the guard, a menu of inputs.

    Raises LabError for a trap that is none.
    """
    from labkit.explore.guards_view import GuardsView

    for trap in traps:
        data(trap)
    return GuardsView(traps).set(**settings)
