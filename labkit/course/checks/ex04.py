"""Exercise 04, folding: what is constant, what a BatchNormalization is, and where a fold is wrong or too dear."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import numpy as np

from labkit.course.checking import CheckFailed, Function, Part
from labkit.course.checks.cases import judge_cases
from labkit.course.checks.ex04_faulty import check_traps
from labkit.course.checks.ex04_numbers import check_fold_weights, check_scale_and_shift
from labkit.course.checks.ex04_passes import check_fold, check_fold_batch_norms
from labkit.course.checks.plain import truth, wholes
from labkit.course.checks.rewrites import Sketch, in_words
from labkit.graph import Graph, Node, TensorType
from labkit.passes.fold import RANDOM

_OWN_PASSES = ("labkit.passes", "labkit.peers")


# ---- 4.1 what is constant


def check_constant_nodes(constant_nodes: Function, draw: Random) -> None:
    """4.1: forwards from the constants; defaults, random nodes and nodes that read nothing are none."""
    for _ in range(2):
        graph = _half_constant(draw)
        got, right = wholes(constant_nodes(graph), "constant_nodes(graph)"), _constant(graph)
        if got != right:
            words = f"The graph: {in_words(graph)}"
            raise CheckFailed(f"constant_nodes(graph) gave {list(got)}: {_why_constant(got, graph)} {words}")


def _half_constant(draw: Random) -> Graph:
    """Constant, fed and random nodes, shuffled as far as reads allow: each slip tells another set."""
    sketch, length = Sketch(), draw.randrange(2, 6)
    x, u = sketch.feed("x", length), sketch.feed("u", length, default=[1.0] * length)
    c, sure = sketch.keep("c", [2.0] * length), sketch.keep("sure", True, np.bool_)
    number = TensorType((length,), "float32")
    known, drawn = sketch.put("Relu", c), sketch.put("RandomNormalLike", c, kind=number)
    makers: list[Callable[[], Any]] = [
        lambda: sketch.put("Mul", known, c),
        lambda: sketch.put("Sigmoid", sketch.put("Add", known, known)),
        lambda: sketch.put("Mul", u, c),
        lambda: sketch.put("Add", drawn, c),
        lambda: sketch.put("Mul", x, known),
        lambda: sketch.put("RandomUniform", kind=number, shape=(length,)),
        lambda: sketch.branch(sure, x),
        lambda: sketch.put("Relu", sketch.put("Mul", x, c)),
    ]
    made = [make() for make in draw.sample(makers, len(makers))]
    return sketch.graph(sketch.put("Sum", *made))


def _constant(
    graph: Graph,
    known: Iterable[str] | None = None,
    reads: Callable[[Node], Iterable[Any]] = lambda node: node.uses,
    rule: Callable[[Iterable[bool]], bool] = all,
    random: Iterable[str] = RANDOM | {"RandomUniform"},
    grows: bool = True,
    empty: bool = False,
) -> tuple[int, ...]:
    names = set(graph.constants) - graph.input_names if known is None else set(known)
    found = []
    for position, node in enumerate(graph.nodes):
        read = [value.name for value in reads(node) if value]
        if (read or empty) and node.op not in random and rule(name in names for name in read):
            found.append(position)
            names |= {value.name for value in node.results} if grows else set()
    return tuple(found)


def _why_constant(got: tuple[int, ...], graph: Graph) -> str:
    right = _constant(graph)
    known = {
        tuple(i for i in range(len(graph.nodes)) if i not in right): "these are the ones that are not constant.",
        _constant(graph, grows=False): "what reads the result of a constant node is constant, too.",
        _constant(graph, known=graph.constants): "the default of an input is no constant: the caller may feed another.",
        _constant(graph, random=()): "a random node gives something else in each run, whatever it reads.",
        _constant(graph, random=(), empty=True): "a random node gives something else in each run, whatever it reads.",
        _constant(graph, random=RANDOM, empty=True): "what about a node that reads nothing? See RANDOM.",
        _constant(graph, reads=lambda node: node.inputs): "what do the branches of an If read? See node.uses.",
        _constant(graph, rule=any): "one constant input is not enough.",
        tuple(i + 1 for i in right): "positions count from 0.",
    }
    if got != right and tuple(sorted(set(got))) == right:
        return "the right nodes; list each once, in ascending order."
    return known.get(got, "which names are known before the first node, and which after each?")


# ---- 4.6 not at any price


def check_may_fold(may_fold: Function, draw: Random) -> None:
    """4.6: all results in bytes, against the limit or what is read, whichever is more; each constant once."""
    limit = draw.randrange(2, 6)
    judge_cases(_priced(draw, limit), lambda graph: _price(may_fold, graph, limit), draw)


def _price(may_fold: Function, graph: Graph, limit: int) -> tuple[bool, str]:
    """The answer for the last node, and the question in words."""
    node = graph.nodes[-1]
    made = ", ".join(str(value.type or "of unknown type") for value in node.results)
    read = {value.name: graph.constants[value.name].nbytes for value in node.uses}
    words = ", ".join(f"{name} of {nbytes} bytes" for name, nbytes in read.items())
    call = f"may_fold(graph, {node.op}({', '.join(value.name for value in node.uses)}), {limit})"
    return truth(may_fold(graph, node, limit), call), f"{call}, which reads {words} and makes {made},"


def _priced(draw: Random, limit: int) -> list[tuple[Graph, bool, str]]:
    """Graphs of one node, whether it may be folded, what to look at."""
    room = 256 * limit  # float32 elements in the limit

    def of(
        op: str, *sizes: int | tuple[int, ...], dtype: Any = np.float32, out: str = "", kind: Any = None, **attrs: Any
    ) -> Graph:
        new = Sketch()
        made = new.put(
            op, *(new.keep(f"c{i}", np.ones(size), dtype) for i, size in enumerate(sizes)), out=out, kind=kind, **attrs
        )
        return new.graph(made[0] if isinstance(made, tuple) else made)

    def filled(size: int) -> Graph:
        new = Sketch()
        return new.graph(new.put("ConstantOfShape", new.keep("shape", [size], np.int64)))

    def twice(size: int) -> Graph:
        new = Sketch()
        c = new.keep("c", np.ones(size))
        return new.graph(new.put("Concat", c, c, axis=0))

    more = draw.randrange(8, 200)
    unknown = "a size that is not known may be any; a symbol counts as 1 in nbytes, so ask before you count."
    inputs, outer = "the result may be as large as the constants that it replaces.", (room // 16, 17)
    return [
        (filled(draw.randrange(2, room // 2)), True, "that is less than the limit."),
        (filled(draw.randrange(10**6, 10**9)), False, "a few bytes would become a huge constant; compare before."),
        (filled(draw.randrange(room + 10, 4 * room)), False, "how many bytes has an element?"),
        (of("Add", (outer[0], 1), (1, outer[1])), False, "the limit, or what is read, if that is more; not both."),
        (filled(room), True, "exactly as much as the limit is allowed; how many bytes has a KiB?"),
        (filled(room + 1), False, "one element too many; how many bytes has a KiB?"),
        (of("Transpose", (room + more, 2)), True, inputs),
        (of("Concat", room, more, axis=0), True, f"{inputs} All of them together."),
        (twice(room - more), False, "a constant that is read twice is stored once."),
        (of("Dropout", room - 2, out="d mask"), False, "all results are stored, not only the first."),
        (of("Add", (room // 2 + 20, 1), (1, 1), dtype=np.float64), True, inputs),
        (of("Mul", (room // 32, 1), (1, 20), dtype=np.float64), False, "look at the type of the elements."),
        (of("NonZero", more, kind=TensorType((1, "?hits"), "int64")), False, unknown),
        (of("NonZero", more, kind=TensorType(None, "int64")), False, unknown),
        (_untyped(more), False, unknown),
    ]  # fmt: skip


def _untyped(size: int) -> Graph:
    new = Sketch()
    graph = new.graph(new.put("Unique", new.keep("c", np.ones(size)), kind=TensorType((size,), "float32")))
    node = graph.nodes[0]
    bare = Node(node.op, node.inputs, tuple(type(value)(value.name) for value in node.results))
    return Graph("g", (), bare.results, (bare,), graph.constants)


PARTS = {
    "4.1": Part("what is constant", 2, "constant_nodes", check_constant_nodes, _OWN_PASSES),
    "4.2": Part("fold them", 3, "fold", check_fold, _OWN_PASSES),
    "4.3": Part("BatchNormalization is a line", 2, "scale_and_shift", check_scale_and_shift, _OWN_PASSES),
    "4.4": Part("into the weights", 2, "fold_weights", check_fold_weights, _OWN_PASSES),
    "4.5": Part("Conv and BatchNormalization", 4, "fold_batch_norms", check_fold_batch_norms, _OWN_PASSES),
    "4.6": Part("not at any price", 2, "may_fold", check_may_fold, _OWN_PASSES),
    "4.7": Part("hunt the missing guard", 5, "traps", check_traps, _OWN_PASSES),
}
