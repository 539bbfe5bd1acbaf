"""The parts of exercise 04 that are passes: constant folding, and Conv with BatchNormalization. Each case is a trap."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.rewrites import Case, Sketch, graph_of, in_words, judge_pass
from labkit.graph import Graph, Value

# ---- 4.2 constant folding


def check_fold(fold: Function, draw: Random) -> None:
    """4.2: every constant node goes, in one sweep, and nothing that a caller or chance decides."""
    for case in _constant_cases(draw):
        judge_pass(fold, case, "fold")
    sketch = Sketch()
    x, c = sketch.feed("x", draw.randrange(2, 5)), sketch.keep("c", [1.0, 2.0])
    random = sketch.put(draw.choice(("RandomNormalLike", "RandomUniformLike")), c, kind=c.type)
    drawn = sketch.graph(sketch.put("Concat", x, sketch.put("Add", random, c), axis=0))
    if len(graph_of(fold(drawn), "fold").nodes) < len(drawn.nodes):
        raise CheckFailed(
            f"fold(graph) folded a random node, or what reads it: now each run gives the same numbers. "
            f"The graph: {in_words(drawn)}"
        )


def _constant_cases(draw: Random) -> Iterable[Case]:
    size = draw.randrange(2, 6)
    numbers = [[draw.randrange(1, 9) for _ in range(size)] for _ in range(3)]
    left = "what reads the result of a constant node is constant, too; is its result known by then?"

    def start() -> tuple[Sketch, Value, list[Value]]:
        new = Sketch()
        return new, new.feed("x", draw.randrange(2, 5), size), [new.keep(f"c{i}", row) for i, row in enumerate(numbers)]

    new, x, (a, b, c) = start()
    chain = new.put("Sub", new.put("Mul", new.put("Add", a, b), c), new.put("Relu", b))
    values = "a constant keeps the name of the value that it replaces, its shape and its type."
    yield Case(new.graph(new.put("Mul", x, chain)), 1, values, left)

    new, x, (a, b, c) = start()
    around = new.put("Add", a, b)
    ends = new.branch(new.feed("q", dtype="bool"), around), new.put("Add", x, around), new.put("Mul", b, c, out="z")
    yield Case(new.graph(*ends), 2, "branches and the caller read a value by its name.", left)

    new, x, (a, _, _) = start()
    u = new.feed("u", size, default=numbers[1])
    override = "the caller may feed another value than the default; see graph.constant."
    yield Case(new.graph(new.put("Add", x, new.put("Mul", u, a))), 2, override, left)

    new, x, (a, b, _) = start()
    yield Case(new.graph(new.put("Sub", new.put("Mul", x, a), b)), 2, "one constant input is not enough.", left)

    new, x, (a, b, _) = start()
    same = new.put("Reshape", new.put("Mul", a, b), new.keep("shape", [1, size], np.int64), out="same")
    yield Case(new.graph(new.put("Add", x, same), same), 1, values, left)


# ---- 4.5 Conv and BatchNormalization


def check_fold_batch_norms(function: Function, draw: Random) -> None:
    """4.5: pairs that may be folded are, the others stay."""
    for case in _norm_cases(draw):
        judge_pass(function, case, "fold_batch_norms")


class _Net(Sketch):
    """A sketch with drawn parameters."""

    def __init__(self, draw: Random) -> None:
        super().__init__()
        self._rng = np.random.default_rng(draw.randrange(2**32))
        self.channels, size = draw.randrange(2, 5) * 2, draw.randrange(4, 7)
        self.x = self.feed("x", 1, self.channels, size, size)

    def weight(self, name: str, groups: int = 1, **options: Any) -> Value:
        shape = self.channels, self.channels // groups, 3, 3
        return self.parameter(name, shape, **options)

    def parameter(self, name: str, shape: tuple[int, ...], *, default: bool = False, small: bool = False) -> Value:
        array = self._rng.uniform(0.5, 1.5, shape) * (1e-4 if small else 1)
        return self.feed(name, *shape, default=array.astype(np.float32)) if default else self.keep(name, array)

    def norm(self, y: Value, out: str = "", default: str = "", small: bool = False, **attrs: Any) -> Value:
        prefix = out or f"n{len(self._nodes)}"
        stored = [
            self.parameter(f"{prefix}_{name}", (self.channels,), default=name == default, small=small and name == "var")
            for name in ("gamma", "beta", "mean", "var")
        ]
        found: Value = self.put("BatchNormalization", y, *stored, out=out, **attrs)
        return found


# Long because it is a table: a row a case, with what the student is told.
def _norm_cases(draw: Random) -> Iterable[Case]:
    fold = "a pair stayed that may be folded: nobody else reads what the Conv gives, and all parameters are constant."
    stay = "this pair may not be folded."
    epsilon: dict[str, Any] = {"epsilon": round(draw.uniform(0.1, 0.5), 2)}

    net = _Net(draw)
    bias = net.parameter("bias", (net.channels,))
    y = net.put("Conv", net.x, net.weight("w"), bias, pads=(1, 1, 1, 1))
    y = net.norm(net.put("Relu", net.norm(y, **epsilon)), **epsilon)
    formula = "go through 4.3 and 4.4: ε, γ, β, the old bias, the axis of the filters."
    yield Case(net.graph(net.put("Relu", y)), 4, formula, fold)

    net = _Net(draw)
    y = net.norm(net.put("Conv", net.x, net.weight("w"), pads=(1, 1, 1, 1)), **epsilon)
    yield Case(net.graph(net.norm(net.put("Conv", y, net.weight("k")), out="y", **epsilon)), 2, formula, fold)

    net = _Net(draw)
    y = net.put("Conv", net.x, net.weight("w", groups=2), group=2)
    yield Case(
        net.graph(net.norm(y, small=True)),
        1,
        "which ε does it have that names none? It matters where σ² is small.",
        fold,
    )

    net = _Net(draw)
    w = net.weight("w")
    ends = [net.norm(net.put("Conv", net.x, w), **epsilon), net.put("Conv", net.x, w)]
    yield Case(net.graph(*ends), 2, "another Conv reads the same weights; new weights need a name of their own.", fold)

    reader = "who else reads what the Conv gives? It would be another value."
    for kind in ("node", "caller", "branch"):
        net = _Net(draw)
        y = net.put("Conv", net.x, net.weight("w"))
        n = net.norm(y, **epsilon)
        yield Case(_read_twice(net, y, n, kind), 2 + (kind != "caller"), reader, stay)

    override = "the caller may feed another value than the default; see graph.constant."
    for name in ("w", "bias", draw.choice(("gamma", "var"))):
        net = _Net(draw)
        w, bias = net.weight("w", default=name == "w"), net.parameter("bias", (net.channels,), default=name == "bias")
        y = net.norm(net.put("Conv", net.x, w, bias), default=name, **epsilon)
        yield Case(net.graph(y), 2, override, stay)

    net = _Net(draw)
    y = net.norm(net.put("Conv", net.x, net.weight("w")), training_mode=1, **epsilon)
    yield Case(net.graph(y), 2, "in training mode it uses the statistics of the batch, not the stored ones.", stay)


def _read_twice(net: _Net, y: Value, n: Value, kind: str) -> Graph:
    if kind == "node":
        return net.graph(net.put("Add", y, n))
    if kind == "caller":
        return net.graph(n, y)
    return net.graph(n, net.branch(net.feed("q", dtype="bool"), y))
