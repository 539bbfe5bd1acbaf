"""optimize(): the passes of a level, repeated until none changes anything, every step kept for the Report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from labkit.collector import held_back
from labkit.errors import LabError, NotConverged
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.passes import measures
from labkit.passes.affine import AFFINE
from labkit.passes.control import CONTROL
from labkit.passes.cse import share
from labkit.passes.dead import eliminate_dead
from labkit.passes.deep import Deep
from labkit.passes.depth_first import FuseDepthFirst
from labkit.passes.extremes import EXTREMES
from labkit.passes.fold import FOLD
from labkit.passes.fuse import Fuse
from labkit.passes.gates import GATES
from labkit.passes.layout import ConvertLayout
from labkit.passes.measures import Measure
from labkit.passes.merges import MERGES
from labkit.passes.no_ops import NO_OPS
from labkit.passes.pad_order import PAD_ORDER
from labkit.passes.pads import PADS
from labkit.passes.parts import PARTS
from labkit.passes.permuted import PERMUTED
from labkit.passes.products import PRODUCTS
from labkit.passes.quantised import QUANTISED
from labkit.passes.repeated import REPEATED
from labkit.passes.report import Report, Step
from labkit.passes.rewriting import Pass, Sweep, combined
from labkit.passes.sequences import SEQUENCES
from labkit.passes.shapes import SHAPES
from labkit.passes.signs import SIGNS
from labkit.passes.spread import SPREAD
from labkit.passes.transposes import TRANSPOSES
from labkit.passes.unit_axes import UNITS, UNITS_SINK

# Each pass makes work for the next: a no-op between Conv and BatchNormalization hides the pair, a folded parameter
# makes it foldable, and both leave nodes and constants that nothing reads. So "dead" runs last in every round. Equal
# nodes are shared before a Transpose moves away from the others.
PASSES: dict[str, Pass] = {
    "no-ops": Sweep("no-ops", NO_OPS),
    "merges": Sweep(
        "merges",
        combined(SIGNS, MERGES, REPEATED, PARTS, UNITS, EXTREMES, GATES, PRODUCTS, SPREAD, SEQUENCES, QUANTISED),
    ),
    "fold": Sweep("fold", combined(CONTROL, SHAPES, FOLD)),
    "affine": Sweep("affine", AFFINE),
    "share": share,
    "transposes": Sweep("transposes", combined(TRANSPOSES, PERMUTED, UNITS_SINK)),
    "pads": Sweep("pads", combined(PADS, PAD_ORDER)),
    "dead": eliminate_dead,
}
# Passes that ask how large the machine's SRAM is, or which order of axes its kernels want.
MACHINE_PASSES: dict[str, Callable[[Hardware], Pass]] = {
    "fuse": Fuse,
    "depth-first": FuseDepthFirst,
    "layout": ConvertLayout,
}
# Every rewrite of a pass makes this smaller: so it comes to an end, alone. (See measures.py.)
MEASURES: dict[str, Measure] = {
    "no-ops": (measures.nodes, measures.nodes_that_compute),
    "merges": (
        measures.nodes,
        measures.nodes_that_compute,
        measures.waits,
        measures.waits_for_transposes,
        measures.edges,
    ),
    "fold": (measures.nodes, measures.computed_edges, measures.edges),
    "affine": (measures.nodes,),
    "share": (measures.nodes, measures.repeated_constants),
    "transposes": (measures.waits_for_movers,),
    "pads": (measures.nodes, measures.waits_for_pads),
    "dead": (measures.nodes, measures.constants),
    "fuse": (measures.nodes,),
    "depth-first": (measures.nodes,),
    "layout": (measures.images_in_the_file_s_order,),
}

# A level is a list of phases, each repeated until nothing changes: what is fused is hidden from the basic passes, so
# these come to rest first; a layout puts transposes between kernels, of weights too, so these follow once more, and
# work that they move past a transpose may be fused where it now stands.
Phase: TypeAlias = tuple[str, ...]
_BASIC: Phase = tuple(PASSES)
LEVELS: dict[str, tuple[Phase, ...]] = {
    "none": (),
    "basic": (_BASIC,),
    "extended": (_BASIC, ("fuse",)),
    "layout": (_BASIC, ("fuse",), ("layout", *_BASIC, "fuse")),
    "all": (_BASIC, ("fuse",), ("depth-first",), ("layout", *_BASIC, "fuse", "depth-first")),
}

# Real networks need three or four rounds. Two passes that undo each other would go on for ever, and that is what this
# limit finds.
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
    known: dict[str, Pass] = {name: Deep(pass_) for name, pass_ in PASSES.items()}
    known |= {name: make(machine) for name, make in MACHINE_PASSES.items()}
    steps: list[Step] = []
    phases = _phases(level, passes, known)
    with held_back():
        for names in phases:
            steps += _settled(steps[-1].graph if steps else graph, {name: known[name] for name in names}, max_rounds)
    used = {name: known[name] for names in phases for name in names}
    return Report(graph, tuple(steps), machine, level if passes is None else "custom", used)


def _settled(graph: Graph, passes: Mapping[str, Pass], max_rounds: int) -> list[Step]:
    """The steps of one phase, until each of its passes has seen the very same graph and left it alone."""
    steps: list[Step] = []
    current, idle = graph, 0
    for number, (name, pass_) in product(range(1, max_rounds + 1), passes.items()):
        after = pass_(current)
        if after is current:
            idle += 1
        else:
            idle = 0
            steps.append(Step(name, number, after))
        current = after
        if idle == len(passes):
            break
    if idle < len(passes):
        raise NotConverged(_restless(graph, steps, max_rounds))
    return steps


def _restless(graph: Graph, steps: Sequence[Step], rounds: int) -> str:
    """Which passes still changed the graph in the last round; and which of all are to blame, their measure not having
    fallen. Where all fell, passes undo one another."""
    changing = dict.fromkeys(step.name for step in steps if step.round == rounds)
    said = f"no fixed point after {rounds} rounds; still changing the graph: {', '.join(changing)}"
    for before, step in zip((graph, *(step.graph for step in steps)), steps, strict=False):
        measure = MEASURES.get(step.name, (measures.nodes,))
        if not measures.measured(measure, step.graph) < measures.measured(measure, before):
            found = measures.described(measure, before, step.graph)
            return f"{said}; restless: {step.name}, whose measure did not fall in round {step.round}: {found}"
    return f"{said}; the measure of each falls, so they undo one another"


def _phases(level: str, passes: Sequence[str] | None, known: Mapping[str, Pass]) -> tuple[Phase, ...]:
    if passes is None:
        if level not in LEVELS:
            raise LabError(f"no level {level!r}; there are: {', '.join(LEVELS)}")
        return LEVELS[level]
    if unknown := [name for name in passes if name not in known]:
        raise LabError(f"no pass {unknown[0]!r}; there are: {', '.join(known)}")
    return (tuple(passes),)
