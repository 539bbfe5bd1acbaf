"""optimize(): the passes of a level, repeated until none changes anything, every step kept for the Report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from labkit.errors import LabError, NotConverged
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.passes.affine import AFFINE
from labkit.passes.control import CONTROL
from labkit.passes.cse import share
from labkit.passes.dead import eliminate_dead
from labkit.passes.extremes import EXTREMES
from labkit.passes.fold import FOLD
from labkit.passes.fuse import Fuse
from labkit.passes.gates import GATES
from labkit.passes.layout import ConvertLayout
from labkit.passes.merges import MERGES
from labkit.passes.no_ops import NO_OPS
from labkit.passes.pad_order import PAD_ORDER
from labkit.passes.pads import PADS
from labkit.passes.permuted import PERMUTED
from labkit.passes.products import PRODUCTS
from labkit.passes.report import Report, Step
from labkit.passes.rewriting import Pass, Sweep, combined
from labkit.passes.shapes import SHAPES
from labkit.passes.spread import SPREAD
from labkit.passes.transposes import TRANSPOSES
from labkit.passes.unit_axes import UNITS, UNITS_SINK

# Each pass makes work for the next: a no-op between Conv and BatchNormalization hides the pair, a folded parameter
# makes it foldable, and both leave nodes and constants that nothing reads. So "dead" runs last in every round. Equal
# nodes are shared before a Transpose moves away from the others.
PASSES: dict[str, Pass] = {
    "no-ops": Sweep("no-ops", NO_OPS),
    "merges": Sweep("merges", combined(MERGES, UNITS, EXTREMES, GATES, PRODUCTS, SPREAD)),
    "fold": Sweep("fold", combined(CONTROL, SHAPES, FOLD)),
    "affine": Sweep("affine", AFFINE),
    "share": share,
    "transposes": Sweep("transposes", combined(TRANSPOSES, PERMUTED, UNITS_SINK)),
    "pads": Sweep("pads", combined(PADS, PAD_ORDER)),
    "dead": eliminate_dead,
}
# Passes that ask how large the machine's SRAM is, or which order of axes its kernels want.
MACHINE_PASSES: dict[str, Callable[[Hardware], Pass]] = {"fuse": Fuse, "layout": ConvertLayout}

# A level is a list of phases, each repeated until nothing changes: what is fused is hidden from the basic passes, so
# these come to rest first; a layout puts transposes between kernels, of weights too, so these follow once more.
Phase: TypeAlias = tuple[str, ...]
_BASIC: Phase = tuple(PASSES)
LEVELS: dict[str, tuple[Phase, ...]] = {
    "none": (),
    "basic": (_BASIC,),
    "extended": (_BASIC, ("fuse",)),
    "layout": (_BASIC, ("fuse",), ("layout", *_BASIC)),
}

# A round that changes anything removes a node, an edge or a constant, or shortens a chain; real networks need three or
# four rounds. Two passes that undo each other would go on for ever, and that is what this limit finds.
MAX_ROUNDS = 25


def optimize(
    graph: Graph,
    level: str = "basic",
    hardware: Hardware | None = None,
    *,
    passes: Sequence[str] | None = None,
    max_rounds: int = MAX_ROUNDS,
) -> Report:
    """Rewrite a graph into one that computes the same with less.

    ``level`` is one of LEVELS; ``passes`` names passes instead, in the order to run them. ``hardware`` is the machine
    that costs are counted for, and for which kernels are fused and laid out: the edge NPU unless given. Raises LabError
    for an unknown level or pass, and NotConverged, naming the restless passes, when a phase has no fixed point after
    ``max_rounds`` rounds.
    """
    machine = hardware or Hardware.preset("edge-npu")
    known = {**PASSES, **{name: make(machine) for name, make in MACHINE_PASSES.items()}}
    steps: list[Step] = []
    phases = _phases(level, passes, known)
    for names in phases:
        steps += _settled(steps[-1].graph if steps else graph, {name: known[name] for name in names}, max_rounds)
    used = {name: known[name] for names in phases for name in names}
    return Report(graph, tuple(steps), machine, level if passes is None else "custom", used)


def _settled(graph: Graph, passes: Mapping[str, Pass], max_rounds: int) -> Iterator[Step]:
    """The steps of one phase, until a whole round changes nothing."""
    current = graph
    for number in range(1, max_rounds + 1):
        changed = []
        for name, pass_ in passes.items():
            after = pass_(current)
            if after is not current:
                yield Step(name, number, after)
                changed.append(name)
            current = after
        if not changed:
            return
    raise NotConverged(f"no fixed point after {max_rounds} rounds; still changing the graph: {', '.join(changed)}")


def _phases(level: str, passes: Sequence[str] | None, known: Mapping[str, Pass]) -> tuple[Phase, ...]:
    if passes is None:
        if level not in LEVELS:
            raise LabError(f"no level {level!r}; there are: {', '.join(LEVELS)}")
        return LEVELS[level]
    if unknown := [name for name in passes if name not in known]:
        raise LabError(f"no pass {unknown[0]!r}; there are: {', '.join(known)}")
    return (tuple(passes),)
