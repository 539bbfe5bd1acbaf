"""The parts of exercise 05 that are passes: dead code, no-ops, common subexpressions. Each case is a trap."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.rewrites import Case, Sketch, graph_of, in_words, judge_pass
from labkit.graph import Graph, Value

# ---- 5.2 dead nodes and orphans


def check_eliminate_dead(function: Function, draw: Random) -> None:
    """5.2: what nothing wants goes, constants too; the interface stays."""
    for case in _dead_cases(draw):
        got = judge_pass(function, case, "eliminate_dead")
        read = {value.name for node in got.nodes for value in node.uses} | got.output_names | got.input_names
        orphans = [name for name in got.constants if name not in read]
        if orphans:
            raise CheckFailed(
                f"eliminate_dead(graph) kept the constant {orphans[0]!r}, which no live node reads, no branch and no "
                f"caller: an orphan. The graph: {in_words(case.graph)}"
            )
        if got.constants.keys() != case.graph.constants.keys() and got is case.graph:
            raise CheckFailed("eliminate_dead(graph) gave back a graph that it changed; make a new one.")


def _dead_cases(draw: Random) -> Iterable[Case]:
    shape = draw.randrange(2, 5), draw.randrange(2, 6)
    left = "a dead node may be read by another dead one; begin at the outputs, and go backwards."

    def sketch(dead: int, wrong: str, *, feeds: bool = False, captures: bool = False, outputs: int = 1) -> Case:
        new = Sketch()
        x = new.feed("x", *shape)
        if feeds:
            new.feed("unused", 2)
            new.feed("size", 3, default=[1, 2, 3])
        weights = [new.keep(f"w{i}", draw.choices(range(1, 9), k=shape[1])) for i in range(4)]
        lost = x
        for _ in range(dead):
            lost = new.put(draw.choice(("Relu", "Sigmoid")), new.put("Mul", lost, weights[0]))
        end = new.put("Mul", x, weights[1])
        if captures:
            around = new.put("Mul", x, weights[2])
            end = new.put("Add", end, new.branch(new.feed("q", dtype="bool"), around))
        ends = [new.put("Relu", end)]
        if outputs > 1:
            ends += [new.put("Add", x, weights[2]), weights[3]]
        graph = new.graph(*ends)
        return Case(graph, len(graph.nodes) - 2 * dead, wrong, left)

    yield sketch(draw.randrange(1, 4), "keep what the output depends on, in the order it had.")
    yield sketch(1, "whoever calls the graph names its inputs, read or not, and may rely on a default.", feeds=True)
    yield sketch(1, "what do the branches of an If read? See node.uses.", captures=True)
    yield sketch(2, "every output counts, and one may be a constant.", outputs=2)
    yield sketch(0, "no node is dead here.", captures=True)


# ---- 5.4 no-ops


def check_remove_no_ops(function: Function, draw: Random) -> None:
    """5.4: what is proved to do nothing goes, what only looks like it stays."""
    for case in _no_op_cases(draw):
        judge_pass(function, case, "remove_no_ops")


# Long because it is a table: a row a case, with what the student is told.
def _no_op_cases(draw: Random) -> Iterable[Case]:
    a, b, c = draw.sample(range(2, 7), 3)
    ones, zeros = np.ones, np.zeros

    def plain() -> Graph:
        """Every kind once, in a row."""
        new = Sketch()
        x = new.put("Relu", new.feed("x", "n", b))
        one, zero, same = new.keep("one", ones(b)), new.keep("zero", zeros((1, 1))), new.keep("same", [-1, b], np.int64)
        kinds: list[tuple[str, list[Value]]] = [("Identity", []), ("Mul", [one]), ("Div", [one]), ("Sub", [zero])]
        for op, units in draw.sample(kinds, 4):
            x = new.put(op, x, *units)
        x = new.put("Add", zero, new.put("Mul", one, x))
        return new.graph(new.put("Sigmoid", new.put("Add", x, zero), out="y"), new.put("Reshape", x, same, out="z"))

    def kept(build: str, *shape: int, unit: Any = 1.0, first: bool = False, feed: bool = False) -> Graph:
        """One node that looks like a no-op, between two others."""
        new = Sketch()
        x = new.put("Relu", new.feed("x", *shape))
        dtype = np.int64 if build == "Reshape" else np.float32
        other = new.feed("u", *np.shape(unit), default=unit) if feed else new.keep("u", unit, dtype)
        looks = new.put(build, other, x) if first else new.put(build, x, other)
        return new.graph(new.put("Sigmoid", looks))

    def named() -> Graph:
        new = Sketch()
        x = new.feed("x", a, b)
        return new.graph(
            new.put("Identity", x, out="y"), new.put("Mul", new.put("Relu", x), new.keep("one", 1), out="z")
        )

    def captured() -> Graph:
        new = Sketch()
        x, q = new.feed("x", a, b), new.feed("q", dtype="bool")
        return new.graph(new.branch(q, new.put("Mul", new.put("Identity", x), new.keep("one", [1]))))

    proof = "is the result of the shape that x has?"
    broadcast = f"a unit of a larger shape makes x larger; {proof}"
    looks, row = "look at the constant, and at what comes of it.", (a, b)
    yield Case(named(), 3, "an output of the graph keeps its name.", looks)
    yield Case(plain(), 3, "what do the readers of a no-op read instead?", "a no-op stayed that is proved to be one.")
    yield Case(captured(), 1, "what do the branches of an If read? See node.rename.", "a no-op stayed.")
    yield Case(kept("Mul", c, unit=ones((a, 1))), 3, broadcast, looks)
    yield Case(kept("Add", b, unit=zeros((a, 1)), first=True), 3, broadcast, looks)
    yield Case(kept("Reshape", *row, unit=[b, a]), 3, f"the same number of elements is no proof; {proof}", looks)
    yield Case(kept("Sub", *row, unit=zeros(b), first=True), 3, "0 − x is not x.", looks)
    yield Case(kept("Div", *row, unit=ones(b), first=True), 3, "1 / x is not x.", looks)
    yield Case(kept("Mul", *row, unit=zeros(b)), 3, "x · 0 is not x; each operator has its own unit.", looks)
    yield Case(kept("Add", *row, unit=ones(b)), 3, "x + 1 is not x; each operator has its own unit.", looks)
    yield Case(kept("Mul", *row, unit=[1.0] * (b - 1) + [2.0]), 3, "all elements of the unit count.", looks)
    override = "the caller may feed another value than the default; see graph.constant."
    yield Case(kept("Div", *row, unit=ones(b), feed=True), 3, override, looks)


# ---- 5.5 common subexpressions


def check_share(function: Function, draw: Random) -> None:
    """5.5: what is the same is computed once, what only looks the same twice; random nodes are never the same."""
    for case in _share_cases(draw):
        judge_pass(function, case, "share")
    graph = _random_twice(draw)
    got = graph_of(function(graph), "share")
    if sum(node.op.startswith("Random") for node in got.nodes) < 2:
        raise CheckFailed(
            "share(graph) merged two random nodes: they draw different numbers, however alike they look. "
            f"The graph: {in_words(graph)}"
        )


def _random_twice(draw: Random) -> Graph:
    new = Sketch()
    x = new.feed("x", draw.randrange(2, 5), 3)
    op = draw.choice(("RandomNormalLike", "RandomUniformLike"))
    return new.graph(new.put("Sub", *(new.put(op, x, kind=x.type) for _ in range(2))))


# Long because it is a table: a row a case, with what the student is told.
def _share_cases(draw: Random) -> Iterable[Case]:
    a, b = draw.sample(range(2, 6), 2)

    def pair(one: tuple[object, ...], two: tuple[object, ...], **constants: object) -> Graph:
        """Two nodes over x and y, each (op, names …, attributes), and their difference."""
        new = Sketch()
        known: dict[str, Value | None] = {"-": None, "x": new.feed("x", a, b, b), "y": new.feed("y", a, b, b)}
        known |= {name: new.keep(name, array) for name, array in constants.items()}
        made = []
        for op, *names, attrs in (one, two):
            made.append(new.put(str(op), *(known[str(name)] for name in names), **dict(attrs)))  # type: ignore[call-overload]
        joined = [new.put("Sigmoid", new.put("Relu", value)) for value in made]
        return new.graph(new.put("Concat", *joined, axis=0))

    def chain() -> Graph:
        """Repeats that show only when the first ones are gone, one of them read inside a branch."""
        new = Sketch()
        x, q = new.feed("x", a, b), new.feed("q", dtype="bool")
        ends = [new.put("Sigmoid", new.put("Relu", x)) for _ in range(2)]
        return new.graph(new.put("Add", ends[0], new.branch(q, ends[1])))

    def output() -> Graph:
        new = Sketch()
        x = new.feed("x", a, b)
        one, two = new.put("Relu", x, out="p"), new.put("Relu", x, out="q")
        return new.graph(one, two, new.put("Sigmoid", two))

    once, twice = 4, 7  # nodes of a pair: both ways shared, or none
    same, looks = "two nodes compute the same and both stayed.", "nothing is the same here."
    number, other = draw.choice((0.25, 0.5, 2.0)), draw.choice((3.0, 4.0))
    order = f"{same} Add and Mul do not mind the order of their two inputs."
    default = f"{same} An attribute that is left out has its default."
    swapped = "x − y is not y − x; which operators do not mind the order?"
    later = f"{same} A repeat may show only when an earlier one is gone: rename the inputs before you look."
    yield Case(chain(), 4, "what do the branches of an If read? See node.rename.", later)
    yield Case(pair(("Add", "x", "y", ()), ("Add", "y", "x", ())), once, swapped, order)
    yield Case(pair(("Mul", "x", "y", ()), ("Mul", "y", "x", ())), once, swapped, order)
    yield Case(pair(("Sub", "x", "y", ()), ("Sub", "y", "x", ())), twice, swapped, looks)
    yield Case(pair(("Flatten", "x", ()), ("Flatten", "x", {"axis": 1})), once, same, default)
    yield Case(pair(("Softmax", "x", ()), ("Softmax", "x", {"axis": -1})), once, same, default)
    axes = pair(("Softmax", "x", {"axis": 1}), ("Softmax", "x", {"axis": 2}))
    yield Case(axes, twice, "the same operator with other attributes is another expression.", looks)
    equal = pair(("Mul", "x", "c", ()), ("Mul", "x", "d", ()), c=[number], d=[number])
    yield Case(equal, once, same, f"{same} Two constants may be equal under two names.")
    unequal = pair(("Mul", "x", "c", ()), ("Mul", "x", "d", ()), c=[number], d=[other])
    yield Case(unequal, twice, "two constants are the same when all their bytes are.", looks)
    row = [number * (i + 1) for i in range(b)]
    turned = pair(("Add", "x", "c", ()), ("Add", "x", "d", ()), c=[row], d=[[one] for one in row])
    yield Case(turned, twice, "a row and a column are not the same constant, with the same bytes too.", looks)
    signed = pair(("Div", "x", "c", ()), ("Div", "x", "d", ()), c=[0.0], d=[-0.0])
    yield Case(signed, twice, "+0 and −0 are equal for ==, and yet x / +0 is not x / −0; compare bytes.", looks)
    bounds = pair(("Clip", "x", "c", "-", ()), ("Clip", "x", "-", "c", ()), c=0.1)
    yield Case(bounds, twice, "a place that is left empty counts: the first input after x is not the second.", looks)
    yield Case(output(), 3, "an output of the graph keeps its name, and its node.", same)
