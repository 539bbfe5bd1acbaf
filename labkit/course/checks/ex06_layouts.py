"""Exercise 06: what transforms between two orders of axes move, and where they move the fewest bytes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from random import Random
from typing import Any

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.graphs import Draft, names_of, nbytes, shown
from labkit.course.checks.question import Question, Slip, until_one_suits
from labkit.graph import Graph, Node, Value
from labkit.hardware import Hardware
from labkit.passes.layout import LayoutPlan, strategies

MACHINE_ONLY = ("Conv",)
EITHER = ("Add", "Mul", "Relu", "Sigmoid")
Names = tuple[str, ...]


# ---- drawn graphs


def imaged(draw: Random) -> Graph:
    """Convolutions that widen and narrow, elementwise work, and one or two products along rows that need the file's
    order."""
    edge = draw.randrange(4, 9)
    draft = Draft(draw, x=(1, draw.randrange(2, 9), edge, edge))
    values = [draft.conv(draft.inputs[0], draw.randrange(2, 9))]
    kinds = draw.choices(["Conv", "Relu", "Sigmoid", "Add", "Mul"], [3, 3, 1, 4, 1], k=7)
    for kind in draw.sample([*kinds, "Conv", "MatMul", "MatMul"], 10):
        values.append(_grown(draft, kind, values, edge))
    read = {value.name for node in draft.nodes for value in node.uses}
    return draft.graph(*(value for value in values if value.name not in read))


def _grown(draft: Draft, kind: str, values: list[Value], edge: int) -> Value:
    draw = draft.draw
    one = values[-draw.choice([1, 1, 1, 2]) % len(values)]
    if kind == "Conv":
        return draft.conv(one, draw.randrange(2, 9), taps=1)
    if kind == "MatMul":
        return draft.add("MatMul", one, draft.constant(edge, edge))
    alike = [value for value in values if value.shape == one.shape and value is not one]
    if kind in ("Add", "Mul"):
        return draft.add(kind, one, draw.choice(alike)) if alike else draft.add("Relu", one)
    return draft.add(kind, one)


# ---- what moves


def data(node: Node) -> tuple[Value, ...]:
    """The images that a node reads, not its weights."""
    return node.uses if node.op in EITHER else node.uses[:1]


def crossings(graph: Graph, inside: Collection[str]) -> Iterator[tuple[Value, list[str]]]:
    """Each value that somebody wants in the other order, and who: nodes by name, "" the caller."""
    makers = [(value, False) for value in graph.inputs]
    makers += [(node.output, node.output.name in inside) for node in graph.nodes]
    for value, is_inside in makers:
        readers = [node.output.name for node in graph.nodes if value in data(node)]
        wants = [name for name in readers if (name in inside) != is_inside]
        if value.name in graph.output_names and is_inside:
            wants.append("")
        if wants:
            yield value, wants


def moved_bytes(graph: Graph, inside: Collection[str]) -> int:
    """A transform reads the value and writes it, once for all who want it."""
    return sum(2 * nbytes(value) for value, _ in crossings(graph, inside))


def _everywhere(graph: Graph, inside: Names) -> int:
    """A transform in front of and behind each node that is inside."""
    nodes = [graph.producers[name] for name in inside]
    return sum(2 * nbytes(value) for node in nodes for value in (*data(node), node.output))


def _draw_inside(draw: Random) -> tuple[Any, ...]:
    graph = imaged(draw)
    free = [node.output.name for node in graph.nodes if node.op in EITHER]
    chosen = {*draw.sample(free, draw.randrange(len(free) + 1)), *_convolutions(graph)}
    return graph, tuple(name for name in graph.producers if name in chosen)


def _convolutions(graph: Graph) -> list[str]:
    return [node.output.name for node in graph.nodes if node.op in MACHINE_ONLY]


def _of_inputs(graph: Graph, inside: Names) -> int:
    return sum(2 * nbytes(value) for value, _ in crossings(graph, inside) if value in graph.inputs)


def _for_callers(graph: Graph, inside: Names) -> int:
    return sum(2 * nbytes(value) for value, wants in crossings(graph, inside) if wants == [""])


def _of_weights(graph: Graph, inside: Names) -> int:
    weights = (value for name in inside for value in graph.producers[name].uses if value.name in graph.constants)
    return sum(2 * nbytes(value) for value in weights)


transform_bytes = Question(
    "transform_bytes",
    _draw_inside,
    moved_bytes,
    (
        Slip(lambda g, s: moved_bytes(g, s) // 2, "a transform moves each tensor once here; it reads it, and then?"),
        Slip(
            lambda g, s: sum(2 * nbytes(value) * len(wants) for value, wants in crossings(g, s)),
            "a transform for each reader; can two that want the same value in the same order share one?",
        ),
        Slip(_everywhere, "transforms around each node; which values are between two nodes of the same order?"),
        Slip(lambda g, s: moved_bytes(g, s) - _of_inputs(g, s), "in which order does the input of the graph arrive?"),
        Slip(lambda g, s: moved_bytes(g, s) - _for_callers(g, s), "in which order does the caller want the outputs?"),
        Slip(
            lambda g, s: moved_bytes(g, s) + _of_weights(g, s),
            "weights are constant: their order is chosen beforehand.",
        ),
        Slip(lambda g, s: moved_bytes(g, s) // 4, "elements; bytes are asked."),
        Slip(
            lambda g, s: moved_bytes(g, s) // 8,
            "elements, and each of them once; bytes are asked, and a transform reads a tensor, and then?",
        ),
        Slip(lambda g, s: len(list(crossings(g, s))), "that is how many transforms there are; bytes are asked."),
    ),
    "for each value: in which order is it made, and does anybody want it in the other one?",
    cases=2,
    show=shown,
)


# ---- where they stand


def _plans(graph: Graph) -> tuple[LayoutPlan, ...]:
    """Per operator, one layout everywhere, and the minimum cut."""
    return strategies(graph, Hardware.preset("edge-npu"))


def telling_graph(draw: Random) -> Graph:
    """A graph in which the minimum cut beats both simple strategies."""
    return until_one_suits(lambda: _if_telling(imaged(draw)), "graph that no simple strategy solves")


def _if_telling(graph: Graph) -> Graph | None:
    each, everywhere, least = (plan.dram_bytes for plan in _plans(graph))
    return graph if least < min(each, everywhere) else None


def check_place(function: Function, draw: Random) -> None:
    """6.6: the nodes that run in the machine's order, against labkit's minimum cut."""
    for _ in range(2):
        graph = telling_graph(draw)
        call = f"place_transforms({shown(graph)})"
        inside = set(names_of(function(graph), graph, call))
        said = f"{call} gave {' '.join(sorted(inside)) or 'no names'}"
        if outside := [name for name in _convolutions(graph) if name not in inside]:
            raise CheckFailed(f"{said}: {outside[0]} is a convolution; it exists in the machine's order only.")
        if stuck := [name for name in inside if graph.producers[name].op not in MACHINE_ONLY + EITHER]:
            raise CheckFailed(f"{said}: {stuck[0]} is a {graph.producers[stuck[0]].op}; it keeps the file's order.")
        each, everywhere, best = (plan.dram_bytes for plan in _plans(graph))
        moved = moved_bytes(graph, inside)
        if moved > best:
            raise CheckFailed(
                f"{said}: {moved:,} bytes, {best:,} can do: {_hint(graph, inside, moved, (each, everywhere))}"
            )


def _hint(graph: Graph, inside: set[str], moved: int, simple: tuple[int, int]) -> str:
    free = {node.output.name for node in graph.nodes if node.op in EITHER}
    if not inside & free and moved == simple[0]:
        return "around each convolution; which nodes between two of them could follow?"
    if free <= inside and moved == simple[1]:
        return (
            "all that can be is in the machine's order; where is a tensor small, or wanted in the file's order anyway?"
        )
    return "move one free node, or two neighbours, to the other side and count again: a transform may be shared."
