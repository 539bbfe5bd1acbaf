"""A kernel written out as loops over tiles: what is loaded, computed and stored, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from labkit.access import Operand
from labkit.graph import Node, Value
from labkit.loops import LoopNest
from labkit.lowering import Kernel
from labkit.pair_tiles import Tile
from labkit.pairs import Halves
from labkit.problems import Problem
from labkit.sums import TABLE


def written(kernel: Kernel, nest: LoopNest | None, names: Mapping[str, str]) -> list[str]:
    """The lines of a kernel; ``names`` says what a tensor is to be called when it is not its own name."""
    if nest is None or kernel.problem is None:
        return _whole(kernel, names)
    called = renamed(nest, kernel, names)
    head, y = kernel.nodes[0], called.problem.output.name
    factors = [x.name for x in called.problem.inputs]
    step = _fill(TABLE[head.op].step, y, factors) if factors else ""
    tail = list(_tail(kernel, called, names)) if kernel.steps else [f"store {called.describe(called.problem.output)}"]
    return called.written(step, tail)


def _whole(kernel: Kernel, names: Mapping[str, str]) -> list[str]:
    """Everything once: a stream, or a kernel that has all of its tensors on chip."""
    verb = ("stream", "stream out") if kernel.problem is None else ("load", "store")
    reads, makes = ([names.get(v.name, v.name) for v in values] for values in (kernel.inputs, kernel.outputs))
    return [
        *([f"{verb[0]} {', '.join(reads)}"] if reads else []),
        *(_line(node, names) for node in kernel.nodes),
        f"{verb[1]} {', '.join(makes)}",
    ]


def written_pair(halves: Halves, tile: Tile, names: Mapping[str, str]) -> list[str]:
    """The lines of a depth-first pair: for each tile of the output, all that it needs of the tensor between."""
    pair = halves.pair

    def called(value: Value) -> str:
        return names.get(value.name, value.name)

    (x, mid, out), (x_w, mid_w, out_w) = (map(max, zip(*cut.kinds, strict=True)) for cut in pair.cuts(tile))
    (rows, columns), leave = (line.out for line in pair.second), [*map(called, halves.outputs)]
    inside = [
        f"load {called(halves.image)} {x}×{x_w}",
        *(_line(node, names) + (f"  # {mid}×{mid_w}" if not i else "") for i, node in enumerate(halves.first)),
        *(f"load {called(value)} {out}×{out_w}" for value in halves.beside),
        *(_line(node, names) for node in halves.second),
        *(f"store {name} {out}×{out_w}" for name in leave),
    ]
    loops = [("n", pair.images, 1), ("p", rows, tile[0]), ("q", columns, tile[1])]
    lines, indent = [f"load {called(value)}" for value in halves.still], ""
    for loop, extent, size in loops:
        if extent > size:
            lines.append(f"{indent}for {loop} in range(0, {extent}, {size}):")
            indent += "    "
    return [*lines, *(indent + line for line in inside)]


def renamed(nest: LoopNest, kernel: Kernel, names: Mapping[str, str]) -> LoopNest:
    """The nest with the tensors' own names in place of X, W and Y."""

    def call(operand: Operand, name: str) -> Operand:
        return replace(operand, name=names.get(name, name))

    problem: Problem = nest.problem
    inputs = tuple(call(x, value.name) for x, value in zip(problem.inputs, kernel.factors, strict=True))
    tail = problem.tail
    if tail:
        vectors = (call(x, value.name) for x, value in zip(tail.vectors, kernel.vectors, strict=True))
        tail = replace(tail, vectors=tuple(vectors))
    output = call(problem.output, kernel.nodes[0].output.name)
    return replace(nest, problem=replace(problem, inputs=inputs, output=output, tail=tail))


def _tail(kernel: Kernel, nest: LoopNest, names: Mapping[str, str]) -> Iterator[str]:
    """What happens to a finished tile."""
    tile = nest.describe(nest.problem.output).split(" ", 1)[1]
    leave = {value.name for value in kernel.outputs}
    for step in kernel.steps:
        yield from (f"load {names.get(name, name)} {_with_row(tile, name, kernel)}" for name in step.arriving)
        if step.node is kernel.nodes[0] and kernel.factors:
            yield from _finish(step.node, nest.problem.output.name, names)
        else:
            yield _line(step.node, names)
        for name in (name for name in step.made if name in leave):
            yield f"store {names.get(name, name)} {_with_row(tile, name, kernel)}"


def _with_row(tile: str, name: str, kernel: Kernel) -> str:
    """The extents of a tensor's tile: those of the output's, and its row where rows are not cut."""
    row = kernel.frame.width(kernel.places[name]) if kernel.frame else 1
    return f"{tile}×{row}" if row > 1 else tile


def _finish(head: Node, y: str, names: Mapping[str, str]) -> Iterator[str]:
    end, others = TABLE[head.op].end, [names.get(v.name, v.name) for v in head.inputs[2:] if v is not None]
    if end:
        yield _fill(end, y, [])
    if head.op == "Gemm" and head.attrs.get("alpha", 1.0) != 1.0:
        yield f"{y} *= {head.attrs['alpha']:g}"
    beta = head.attrs.get("beta", 1.0)
    yield from (f"{y} += {'' if beta == 1.0 else f'{beta:g} * '}{other}" for other in others)


def _line(node: Node, names: Mapping[str, str]) -> str:
    makes, reads = ([names.get(v.name, v.name) for v in values] for values in (node.results, node.uses))
    return f"{', '.join(makes)} = {node.op}({', '.join(reads)})"


def _fill(pattern: str, y: str, factors: list[str]) -> str:
    """A line of the table of sums with the tensors' names in it."""
    return pattern.format(y=y, **dict(zip("xw", factors, strict=False)))
