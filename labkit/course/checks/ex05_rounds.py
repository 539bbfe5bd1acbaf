"""The parts of exercise 05 about rounds of passes: a fixed point that is reached, and the order within one round."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from random import Random
from typing import Any

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.plain import kind, whole, wholes
from labkit.course.checks.rewrites import Sketch
from labkit.graph import Graph
from labkit.passes.cse import share
from labkit.passes.dead import eliminate_dead
from labkit.passes.fold import FOLD
from labkit.passes.no_ops import NO_OPS
from labkit.passes.rewriting import Sweep

# ---- 5.6 a fixed point


def check_to_rest(to_rest: Function, draw: Random) -> None:
    """5.6: the passes are tables from graph to graph; each step and each size is known."""
    for steps, sizes, right, why in _histories(draw):
        graphs = [Graph(f"g{i}", (), (), ()) for i in range(len(sizes))]
        passes = [{graphs[i]: graphs[step.get(i, i)] for i in range(len(graphs))}.__getitem__ for step in steps]
        size = dict(zip(graphs, sizes, strict=True)).__getitem__
        told = f"to_rest of a graph of size {sizes[0]} with {len(passes)} pass{'es' * (len(passes) > 1)}"
        try:
            result = to_rest(graphs[0], passes, size)
        except (ValueError, KeyError, RecursionError) as error:
            if right is None and isinstance(error, ValueError):
                continue
            raise CheckFailed(f"{told} raised {type(error).__name__}: {why}") from None
        if right is None:
            raise CheckFailed(f"{told} came to an end, no ValueError: {why}")
        _judge_rest(result, graphs, right, told, why)


def _judge_rest(result: Any, graphs: list[Graph], right: tuple[int, int], told: str, why: str) -> None:
    if result is None:
        raise CheckFailed(f"{told} gave nothing back; does every way out end with return? Besides, {why}")
    if type(result) not in (tuple, list) or len(result) != 2:
        raise CheckFailed(f"{told} gave {kind(result)}; expected the graph and the number of rounds.")
    rounds = whole(result[1], f"the number of rounds of {told}")
    if result[0] is not graphs[right[0]]:
        raise CheckFailed(f"{told} stopped at another graph: {why}")
    if rounds != right[1]:
        once = "is the last round, in which nothing changed, counted, and each round once?"
        raise CheckFailed(f"{told} gave {rounds} rounds, {right[1]} were made: {once}")


def _histories(draw: Random) -> Iterable[tuple[list[dict[int, int]], list[Any], tuple[int, int] | None, str]]:
    """What each pass does to graph number i, the sizes of the graphs, where it ends after how many rounds, why."""
    n, far, idle = draw.randrange(4, 9), draw.randrange(120, 160), {99: 99}
    one_by_one = {i: i + 1 for i in range(n)}
    whole_round = "a round is at rest when none of its passes changed anything, whichever did last."
    yield [one_by_one], list(range(n, -1, -1)), (n, n + 1), "go on as long as a round changes anything."
    yield [one_by_one, idle], list(range(n, -1, -1)), (n, n + 1), whole_round
    yield [{1: 2}, {0: 1}], [9, 8, 7], (2, 3), "one pass makes work for one before it; begin another round."
    yield (
        [{i: i + 1 for i in range(far)}],
        [far - i for i in range(far + 1)],
        (far, far + 1),
        ("a long way is no endless one; is it the size that decides?"),
    )
    same = [(n, 100 - 7 * i) for i in range(n + 1)]
    yield [one_by_one], same, (n, n + 1), "as many nodes, and yet another graph; compare with `is`, and sizes with <."
    yield (
        [{0: 1, 2: 3}, {1: 2}],
        [n, n + 3, n - 1, n - 2],
        (3, 3),
        ("a pass may make the graph larger for the next one; what counts is the size after the round."),
    )
    endless = [{i: i + 1 for i in range(399)}], [n] * 400
    yield *endless, None, "the first round changed the graph and made nothing smaller: it might go on for ever."
    yield [{i: i + 1 for i in range(2)}], [n, n - 1, n + 1], None, "a round made the graph larger."
    yield [{}], [n], (0, 1), "with nothing to do, one round shows it."


# ---- 5.7 order matters


def check_best_order(best_order: Function, draw: Random) -> None:
    """5.7: four passes of labkit, one of which reveals work for another; the pass that saves most must come last."""
    graph = _layered(draw)
    passes = [Sweep("fold", FOLD), Sweep("no-ops", NO_OPS), share, eliminate_dead]
    draw.shuffle(passes)
    call = "best_order(graph, passes)"
    got = wholes(best_order(graph, list(passes)), call)
    if sorted(got) != [0, 1, 2, 3]:
        raise CheckFailed(f"{call} gave {got}; expected each of the positions 0, 1, 2, 3 once.")
    left = {order: _left(graph, passes, order) for order in permutations(range(4))}
    if left[got] > min(left.values()):
        counts = f"{call} gave {got}: it leaves {left[got]} nodes and constants, the best order {min(left.values())}:"
        alone = sorted(range(4), key=lambda i: _left(graph, passes, (i,)))
        why = {
            tuple(alone): "the pass that saves most on its own comes first here; what do the others leave for it?",
            tuple(reversed(alone)): "the pass that saves least on its own comes first here; is that a rule?",
            (0, 1, 2, 3): "that is the order in which they came.",
        }
        raise CheckFailed(f"{counts} {why.get(got, 'try every order.')}")


def _left(graph: Graph, passes: list[Any], order: tuple[int, ...]) -> int:
    for position in order:
        graph = passes[position](graph)
    return len(graph.nodes) + len(graph.constants)


def _layered(draw: Random) -> Graph:
    """Folding shows that a factor is 1, without the factor two nodes are the same, and then constants are orphans."""
    sketch, shape = Sketch(), (draw.randrange(2, 5), draw.randrange(2, 5))
    x = sketch.feed("x", *shape)
    halves = [sketch.keep(f"half{i}", [0.5 + i] * shape[1]) for i in range(2)]
    one = sketch.put("Sub", *reversed(halves))
    parts = [sketch.put("Relu", sketch.put("Mul", x, one)), sketch.put("Relu", x)]
    for _ in range(draw.randrange(2, 4)):
        parts.append(sketch.put("Add", parts[-1], parts[-2]))
    for i in range(draw.randrange(3, 5)):
        sketch.put("Sigmoid", sketch.put("Mul", x, sketch.keep(f"lost{i}", [2.0 + i] * shape[1])))
    return sketch.graph(parts[-1])
