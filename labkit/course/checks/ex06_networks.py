"""The small networks of exercise 06: residual blocks, and what a careless exporter leaves in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from labkit.build import make_node
from labkit.course.checks.graphs import OPSET, Draft, nbytes
from labkit.graph import Graph, Value


def residual(draw: Random, blocks: int, channels: int, edge: int) -> Graph:
    """A tidy network: a stem, and so many residual blocks."""
    draft = Draft(draw, x=(1, 3, edge, edge))
    value = draft.add("Relu", normalised(draft, draft.conv(draft.inputs[0], channels)))
    for _ in range(blocks):
        inner = draft.add("Relu", normalised(draft, draft.conv(value)))
        value = draft.add("Relu", draft.add("Add", normalised(draft, draft.conv(inner)), value))
    return draft.graph(value)


def cluttered(draw: Random) -> Graph:
    """A few convolutions with BatchNormalization, and between them what hides one thing from the pass for another: a
    no-op between the two, a branch that nobody reads, a pair of Transposes."""
    draft = Draft(draw, x=(1, draw.randrange(2, 5), *(draw.randrange(5, 10) for _ in range(2))))
    value = draft.inputs[0]
    hiding = [_no_op, _dead_branch, _pair, _pair_around_no_op]
    for hide in draw.sample(hiding, draw.choice([2, 3, 3, 4])):
        conv = draft.conv(value, draw.randrange(2, 5), taps=1)
        value = draft.add("Relu", normalised(draft, hide(draft, conv)))
    return draft.graph(value)


def _no_op(draft: Draft, value: Value) -> Value:
    return draft.add("Identity", value)


def _dead_branch(draft: Draft, value: Value) -> Value:
    draft.add("Sigmoid", value)
    return value


def _pair_around_no_op(draft: Draft, value: Value) -> Value:
    return _pair(draft, value, _no_op)


def _same(_: Draft, value: Value) -> Value:
    return value


def _pair(draft: Draft, value: Value, between: Callable[[Draft, Value], Value] = _same) -> Value:
    perm = (0, *draft.draw.sample((1, 2, 3), 3))
    if perm == (0, 1, 2, 3):
        perm = (0, 2, 3, 1)
    there = between(draft, draft.add("Transpose", value, perm=perm))
    return draft.add("Transpose", there, perm=tuple(int(axis) for axis in np.argsort(perm)))


def normalised(draft: Draft, value: Value) -> Value:
    """Behind a BatchNormalization with parameters of its own; no variance is near 0."""
    channels = int((value.shape or ())[1])
    parameters = [draft.constant(channels) for _ in range(4)]
    variance = parameters[3].name
    draft.constants[variance] = np.abs(draft.constants[variance]) + np.float32(0.5)
    return draft.add("BatchNormalization", value, *parameters)


# ---- for a pass that moves a Relu behind a MaxPool


@dataclass(frozen=True)
class Pooled:
    """A graph, and the bytes that can be saved in it."""

    graph: Graph
    saved_bytes: int


@dataclass(frozen=True)
class PoolTrap:
    """A graph in which a Relu has to stay, and why."""

    graph: Graph
    why: str


def pooled(draw: Random) -> Pooled:
    """Convolutions, each with a Relu and one to three pools behind it; one Relu with none."""
    draft = Draft(draw, x=(1, draw.randrange(2, 4), 8 * draw.randrange(3, 5), 8 * draw.randrange(3, 5)))
    value, saved = draft.inputs[0], 0
    pools = [2, 1]
    draw.shuffle(pools)
    for number in (*pools, 0):
        big = value = draft.add("Relu", draft.conv(value, draw.randrange(2, 5), taps=1))
        for _ in range(number):
            value = _pool(draft, value)
        saved += 2 * (nbytes(big) - nbytes(value))
    return Pooled(draft.graph(value), saved)


def _pool(draft: Draft, value: Value, op: str = "MaxPool") -> Value:
    edge = draft.draw.choice([2, 3])
    return draft.add(op, value, kernel_shape=(edge, edge), strides=(2, 2), pads=(0, 0, 1, 1))


def traps(draw: Random) -> Iterator[PoolTrap]:
    """Graphs that each want a guard."""
    shape = (1, draw.randrange(2, 4), draw.randrange(5, 9), draw.randrange(5, 9))

    def start() -> tuple[Draft, Value]:
        draft = Draft(draw, x=shape)
        return draft, draft.add("Relu", draft.conv(draft.inputs[0], taps=1))

    draft, relu = start()
    ends = _pool(draft, relu), draft.add("Sigmoid", relu)
    yield PoolTrap(draft.graph(*ends), "who else reads the result of the Relu?")
    draft, relu = start()
    yield PoolTrap(draft.graph(_pool(draft, relu), relu), "the result of the Relu is an output of the graph, too.")
    draft, relu = start()
    yield PoolTrap(draft.graph(_pool(draft, relu, "AveragePool")), "is the mean of what was cut the cut of the mean?")
    draft, relu = start()
    pool = make_node("MaxPool", [relu], ["n3", "places"], {"kernel_shape": (2, 2), "strides": (2, 2)}, opset=OPSET)
    draft.nodes.append(pool)
    yield PoolTrap(draft.graph(*pool.results), "the pool has a second output, the place of each largest element.")
    draft, relu = start()
    factor = draft.constant(1)
    draft.constants[factor.name] = -np.abs(draft.constants[factor.name])
    turned = _pool(draft, draft.add("Mul", relu, factor))
    yield PoolTrap(draft.graph(turned), "what stands between the Relu and the pool?")
