"""optimize(): the passes of a level, repeated until none changes anything, every step kept for the Report."""

from __future__ import annotations

from collections.abc import Sequence

from labkit.errors import LabError, NotConverged
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.passes.affine import AFFINE
from labkit.passes.control import CONTROL
from labkit.passes.cse import share
from labkit.passes.dead import eliminate_dead
from labkit.passes.extremes import EXTREMES
from labkit.passes.fold import FOLD
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
    "merges": Sweep("merges", combined(MERGES, UNITS, EXTREMES, PRODUCTS, SPREAD)),
    "fold": Sweep("fold", combined(CONTROL, SHAPES, FOLD)),
    "affine": Sweep("affine", AFFINE),
    "share": share,
    "transposes": Sweep("transposes", combined(TRANSPOSES, PERMUTED, UNITS_SINK)),
    "pads": Sweep("pads", combined(PADS, PAD_ORDER)),
    "dead": eliminate_dead,
}
LEVELS: dict[str, tuple[str, ...]] = {"none": (), "basic": tuple(PASSES)}

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

    ``level`` is "none" or "basic"; ``passes`` names passes instead, in the order to run them. ``hardware`` is the
    machine that costs are counted for, the edge NPU unless given. Raises LabError for an unknown level or pass, and
    NotConverged, naming the restless passes, when there is no fixed point after ``max_rounds`` rounds.
    """
    names = _names(level, passes)
    steps, current = [], graph
    for number in range(1, max_rounds + 1):
        changed = []
        for name in names:
            after = PASSES[name](current)
            if after is not current:
                steps.append(Step(name, number, after))
                changed.append(name)
            current = after
        if not changed:
            break
    else:
        raise NotConverged(f"no fixed point after {max_rounds} rounds; still changing the graph: {', '.join(changed)}")
    machine = hardware or Hardware.preset("edge-npu")
    level = level if passes is None else "custom"
    return Report(graph, tuple(steps), machine, level, tuple(PASSES[name] for name in names))


def _names(level: str, passes: Sequence[str] | None) -> tuple[str, ...]:
    if passes is None:
        if level not in LEVELS:
            raise LabError(f"no level {level!r}; there are: {', '.join(LEVELS)}")
        return LEVELS[level]
    if unknown := [name for name in passes if name not in PASSES]:
        raise LabError(f"no pass {unknown[0]!r}; there are: {', '.join(PASSES)}")
    return tuple(passes)
