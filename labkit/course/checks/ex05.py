"""Exercise 05, elimination: what is alive, what does nothing, what is computed twice, and when a pipeline rests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from labkit.course.checking import CheckFailed, Function, Part
from labkit.course.checks.cases import judge_cases
from labkit.course.checks.ex05_clutter import check_tidy, given
from labkit.course.checks.ex05_passes import check_eliminate_dead, check_remove_no_ops, check_share
from labkit.course.checks.ex05_rounds import check_best_order, check_to_rest
from labkit.course.checks.plain import truth, wholes
from labkit.course.checks.rewrites import Sketch, in_words
from labkit.graph import Graph, Node

__all__ = ["PARTS", "given"]
_OWN_PASSES = ("labkit.passes", "labkit.peers")
_UNBOUNDED = (2**31 - 1, 2**63 - 1)


# ---- 5.1 what is alive


def check_live_nodes(live_nodes: Function, draw: Random) -> None:
    """5.1: backwards from all outputs, through every reader, captures and second results included."""
    for _ in range(2):
        graph = _half_dead(draw)
        call = "live_nodes(graph)"
        got, right = wholes(live_nodes(graph), call), _alive(graph)
        if got != right:
            raise CheckFailed(f"{call} gave {list(got)}: {_why_alive(got, graph)} The graph: {in_words(graph)}")


def _half_dead(draw: Random) -> Graph:
    """Live and dead chains, shuffled: each slip of ``_why_alive`` tells another set."""
    sketch = Sketch()
    x, q = sketch.feed("x", draw.randrange(2, 5), draw.randrange(2, 5)), sketch.feed("q", dtype="bool")
    tips, dead = [x], [x]
    for _ in range(draw.randrange(6, 9)):
        if draw.random() < 0.5:
            dead.append(sketch.put(draw.choice(("Relu", "Sigmoid")), draw.choice((dead[-1], tips[-1]))))
        else:
            tips.append(sketch.put(draw.choice(("Relu", "Sigmoid")), tips[-1]))
    seen = sketch.put("Sigmoid", x)
    tips.append(sketch.branch(q, seen))
    _, mask = sketch.put("Dropout", tips[-1], out="d mask")
    end, side = sketch.put("Add", tips[-1], tips[-2], out="y"), sketch.put("Identity", mask, out="z")
    sketch.put("Relu", sketch.put("Add", dead[-1], end))
    return sketch.graph(end, side)


def _alive(
    graph: Graph,
    reads: Callable[[Node], Iterable[Any]] = lambda node: node.uses,
    makes: Callable[[Node], Iterable[Any]] = lambda node: node.results,
    outputs: int = 99,
) -> tuple[int, ...]:
    wanted = {value.name for value in graph.outputs[:outputs]}
    found = []
    for position, node in reversed(list(enumerate(graph.nodes))):
        if any(value.name in wanted for value in makes(node)):
            wanted |= {value.name for value in reads(node) if value}
            found.append(position)
    return tuple(reversed(found))


def _why_alive(got: tuple[int, ...], graph: Graph) -> str:
    right, everything = _alive(graph), tuple(range(len(graph.nodes)))
    read = {value.name for node in graph.nodes for value in node.uses} | graph.output_names
    makers = tuple(i for i, n in enumerate(graph.nodes) if {v.name for v in n.results} & graph.output_names)
    is_read = tuple(i for i, node in enumerate(graph.nodes) if any(value.name in read for value in node.results))
    by_name = tuple(sorted(set(got)))
    known = {
        tuple(i for i in everything if i not in right): "these are the dead ones; the live ones are asked.",
        everything: "all can be reached from the inputs; which can be reached from the outputs, backwards?",
        _alive(graph, reads=lambda node: node.inputs): "what do the branches of an If read? See node.uses.",
        _alive(graph, outputs=1): "the graph has more than one output.",
        _alive(graph, makes=lambda node: node.outputs[:1]): "a node may have several results; is any of them wanted?",
        makers: "these make the outputs themselves; on which nodes do they depend in turn?",
        is_read: "being read is not enough; the reader may be dead itself.",
        tuple(i + 1 for i in right): "positions count from 0.",
    }  # fmt: skip
    if got != by_name and by_name == right:
        return "the right nodes; list each once, in ascending order."
    return known.get(got, "follow the reads backwards, from every output of the graph.")


# ---- 5.3 a Slice that takes everything


def check_takes_all(takes_all: Function, draw: Random) -> None:
    """5.3: every spelling of "all of it", and what only looks like one."""
    a, b = draw.sample(range(4, 40), 2)
    judge_cases(_slices(draw, a, b), lambda arguments: _asked(takes_all, arguments), draw)


def _asked(takes_all: Function, arguments: tuple[Any, ...]) -> tuple[bool, str]:
    call = f"takes_all{arguments}"
    return truth(takes_all(*arguments), call), call


def _slices(draw: Random, a: int, b: int) -> tuple[tuple[tuple[Any, ...], bool, str], ...]:
    """Arguments, the right answer, what to look at."""
    far, counted = draw.choice(_UNBOUNDED), "a negative number counts from the end of its axis."
    late, cut = draw.randrange(a + 1, 5 * a), "what lies past the end is cut off."
    pairs = "each entry belongs to the axis at the same place of axes."
    symbol = "a symbol stands for a number that you do not know; what is certain all the same?"
    return (
        (((0,), (a,), (0,), (1,), (a, b)), True, "this is all of it, written out."),
        (((0, 0), (a, b), None, None, (a, b, a)), True, "without axes, the entries belong to the first axes."),
        (((0,), (far,), (1,), None, (a, b)), True, f"{cut} Exporters write it so."),
        (((0,), (late,), (0,), None, (a, b)), True, cut),
        (((0, 0), (b, a), (1, 0), None, (a, b)), True, pairs),
        (((-a,), (a,), (0,), None, (a, b)), True, counted),
        (((-late,), (far,), (0,), None, (a, b)), True, "what lies before the beginning is cut off, too."),
        (((0,), (b,), (-1,), None, (a, a, b)), True, "a negative axis counts from the last one."),
        (((0,), (a,), (-1,), None, (a, b)), a >= b, "a negative axis counts from the last one."),
        (((0,), (1,), (1,), (draw.randrange(2, 9),), (a, 1)), True, "along one element, any step is right."),
        (((0,), (-1,), (0,), None, (a, b)), False, f"an end of -1 leaves the last one out: {counted}"),
        (((1,), (far,), (0,), None, (a, b)), False, "the first element is missing."),
        (((0,), (a - 1,), (0,), (1,), (a, b)), False, "the end itself is not taken."),
        (((0,), (far,), (0,), (draw.randrange(2, 4),), (a, b)), False, "look at the step."),
        (((-1,), (-far,), (0,), (-1,), (a, b)), False, "all elements, but in which order?"),
        (((0, 0), (min(a, b),) * 2, (0, 1), None, (a, b)), False, "all axes must be whole, not one of them."),
        (((0, 1), (a, b), None, None, (a, b)), False, "all axes must be whole, not one of them."),
        (((0,), (far,), (0,), None, ("batch", b)), True, f"{symbol} The end here is beyond every length."),
        (((0,), (10**6,), (0,), None, ("batch", b)), False, symbol),
        (((1,), (far,), (0,), None, ("batch", b)), False, symbol),
        (((0,), (b,), (1,), None, ("batch", b)), True, "the axis with the symbol is not touched here."),
    )


PARTS = {
    "5.1": Part("what is alive", 2, "live_nodes", check_live_nodes, _OWN_PASSES),
    "5.2": Part("dead nodes and orphans", 3, "eliminate_dead", check_eliminate_dead, _OWN_PASSES),
    "5.3": Part("a Slice that takes everything", 2, "takes_all", check_takes_all, _OWN_PASSES),
    "5.4": Part("no-ops, with a proof", 3, "remove_no_ops", check_remove_no_ops, _OWN_PASSES),
    "5.5": Part("common subexpressions", 4, "share", check_share, _OWN_PASSES),
    "5.6": Part("a fixed point that is reached", 2, "to_rest", check_to_rest, _OWN_PASSES),
    "5.7": Part("order matters", 2, "best_order", check_best_order),
    "5.8": Part("beat the clutter", 3, "tidy", check_tidy, _OWN_PASSES),
}
