"""Operators that combine many elements into each of their output, as loops: products, convolutions, windows, sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from labkit.access import Axis, Operand
from labkit.errors import LabError
from labkit.frames import Extents, Frame, Unfit, dims, merged, numpy_type
from labkit.graph import Node, Value
from labkit.ops.windows import Window
from labkit.pools import pool
from labkit.problems import ConvShape, Problem, conv

# What sums of a type are kept in; every other type is its own accumulator.
_SUMS = {"float16": "float32", "bfloat16": "float32", "int8": "int32", "uint8": "int32"}


@dataclass(frozen=True)
class Anchored:
    """The loops of an anchor: its problem, the tensors that are the problem's inputs, and the frame of its output."""

    problem: Problem
    factors: tuple[Value, ...]
    frame: Frame


Used: TypeAlias = Iterable[frozenset[int]]  # axes of the output that other tensors of the kernel lie along
Anchor: TypeAlias = Callable[[Node, Used], Anchored]


def anchored(node: Node, used: Used) -> Anchored | None:
    """A node as an anchor; None when its operator is none, or when too little is known of its shapes.

    ``used`` are the axes of its output along which other tensors of its kernel lie: loops over axes that are all used
    alike are one loop.
    """
    make = None if node.domain not in ("", "ai.onnx") else _ANCHORS.get(node.op)
    if make is None or any(value.type is None or 0 in dims(value) for value in (*node.uses, *node.results)):
        return None
    try:
        return make(node, used)
    except (LabError, Unfit):  # dims that are no numbers count as 1 and may contradict each other
        return None


def _conv(node: Node, used: Used) -> Anchored:
    x, w = _inputs(node)[:2]
    window = Window.of(node.attrs, dims(w)[2:])
    shape = _shape(dims(x), window, dims(node.output), node.attrs.get("group", 1))
    problem = conv(shape)
    inputs = tuple(replace(a, dtype=numpy_type(_dtype(b))) for a, b in zip(problem.inputs, (x, w), strict=True))
    typed = replace(problem, inputs=inputs, output=replace(problem.output, dtype=_sum_type(node)))
    return Anchored(_squeezed(typed), (x, w), _window_frame(typed, dims(node.output), ("n",), ("g", "f")))


def _pool(node: Node, used: Used) -> Anchored:
    (x,) = _inputs(node)
    window, out = Window.of(node.attrs, node.attrs["kernel_shape"]), dims(node.output)
    shape = _shape(dims(x), window, (out[0], 1, *out[2:]), 1)
    problem = pool(shape, numpy_type(_dtype(x)), _sum_type(node))
    return Anchored(_squeezed(problem), (x,), _window_frame(problem, out, ("n",), ("c",)))


def _squeezed(problem: Problem) -> Problem:
    """The problem without loops of one step, which move nothing: a kernel of 1×1 leaves no window, only a product."""
    gone = {loop for loop, extent in problem.loops.items() if extent == 1}

    def along(axis: Axis) -> Axis:
        short = replace(axis, terms=(axis.terms[0], *(term for term in axis.terms[1:] if term[0] not in gone)))
        is_exact = not short.is_plain or problem.loops[short.loops[0]] == axis.extent  # a plain axis is its whole loop
        return short if is_exact else axis

    def squeeze(operand: Operand) -> Operand:
        axes = tuple(x for x in map(along, operand.axes) if x.extent > 1 or not gone.issuperset(x.loops))
        return replace(operand, axes=axes)

    inputs, output = tuple(map(squeeze, problem.inputs)), squeeze(problem.output)
    kept = {loop for operand in (*inputs, output) for axis in operand.axes for loop in axis.loops}
    loops = {loop: extent for loop, extent in problem.loops.items() if loop in kept}
    return replace(problem, loops=loops, inputs=inputs, output=output)


def _window_frame(problem: Problem, out: Extents, *first: tuple[str, ...]) -> Frame:
    """The output of windows: rows and columns follow batch and channels."""
    cut = [*first, *((loop,) for loop in "pq"[4 - len(out) :])]
    places = tuple(tuple(loop for loop in axis if problem.loops[loop] > 1) for axis in cut)
    return Frame(out, places, {loop: problem.loops[loop] for axis in places for loop in axis})


def _shape(x: Extents, window: Window, out: Extents, groups: int) -> ConvShape:
    """A window over one or two spatial axes as a convolution; padding is what the size of the output implies."""
    if len(window.kernel) not in (1, 2) or len(x) != len(window.kernel) + 2 or len(out) != len(x):
        raise Unfit(f"{len(window.kernel)} spatial axes")
    pairs = window.pads(x[2:])
    sizes = zip(x[2:], out[2:], window.strides, window.extents, pairs, strict=True)
    behind = [pair[1] if window.auto == "NOTSET" and not window.ceil else max((q - 1) * s + e - i - pair[0], 0)
              for i, q, s, e, pair in sizes]  # fmt: skip
    before = [pair[0] for pair in pairs]
    ones = (1,) * (2 - len(window.kernel))
    zeros = [0] * len(ones)
    h, w = (*ones, *x[2:])
    kernel, strides, dilations = ((*ones, *some) for some in (window.kernel, window.strides, window.dilations))
    pads = (*zeros, *before, *zeros, *behind)
    shape = ConvShape(x[0], x[1], h, w, out[1], kernel, strides, dilations, pads, groups)  # type: ignore[arg-type]
    if shape.output_size != (*ones, *out[2:]) or shape.n != out[0]:
        raise Unfit(f"windows make {shape.output_size}, the output has {out}")
    return shape


def _matmul(node: Node, used: Used) -> Anchored:
    """Stacks of matrices; a vector on the left has no rows, one on the right no columns."""
    a, b = _inputs(node)
    (left, rows), (right, columns) = ((dims(x)[:-2], len(dims(x)) > 1) for x in (a, b))
    rank = len(dims(node.output))
    stack = rank - rows - columns
    first, second = ([stack - len(own) + i for i, n in enumerate(own) if n > 1] for own in (left, right))
    names = (*"abcdefgh"[:stack], *"m" * rows, *"n" * columns)
    orders: list[list[int | str]] = [[*first, *[stack] * rows, "k"], [*second, "k", *[rank - 1] * columns]]
    return _plain(node, (a, b), orders, {"k": dims(a)[-1]}, names, used)


def _gemm(node: Node, used: Used) -> Anchored:
    a, b = _inputs(node)[:2]
    left: list[int | str] = ["k", 0] if node.attrs.get("transA") else [0, "k"]
    right: list[int | str] = [1, "k"] if node.attrs.get("transB") else ["k", 1]
    return _plain(node, (a, b), [left, right], {"k": dims(a)[left.index("k")]}, "mn", used)


def _reduce(node: Node, used: Used) -> Anchored:
    """Sums, means or extremes along some axes; neighbours among these are one loop."""
    x = _inputs(node)[0]
    kept = _kept(node, dims(x), dims(node.output))
    order: list[int | str] = []
    reduced: dict[str, int] = {}
    for axis, extent in enumerate(dims(x)):
        if axis in kept:
            order.append(kept[axis])
        elif order and order[-1] in reduced:
            reduced[str(order[-1])] *= extent
        else:
            order.append(f"r{axis}")
            reduced[f"r{axis}"] = extent
    names = [f"i{axis}" for axis in range(len(dims(node.output)))]
    return _plain(node, (x,), [order], reduced, names, used)


def _kept(node: Node, source: Extents, out: Extents) -> dict[int, int]:
    """For each axis of the input that stays, the axis of the output that it becomes."""
    if node.op.startswith("Global"):
        return {0: 0, 1: 1}
    if len(source) == len(out):
        return {axis: axis for axis, (n, left) in enumerate(zip(source, out, strict=True)) if n == left}
    reduced = {axis % len(source) for axis in node.attrs.get("axes", ())}
    if not reduced:  # an input says which; the leading axes that fit are taken to be those that stay
        left = list(out)
        stay = [axis for axis, n in enumerate(source) if left and n == left[0] and (left.pop(0) or True)]
        reduced = {*range(len(source))} - {*stay}
    return {axis: i for i, axis in enumerate(axis for axis in range(len(source)) if axis not in reduced)}


def _plain(
    node: Node,
    factors: tuple[Value, ...],
    orders: list[list[int | str]],
    reductions: dict[str, int],
    names: Sequence[str],
    used: Used,
) -> Anchored:
    """Factors whose axes are plain: each is an axis of the output or a reduction, in memory order."""
    out = dims(node.output)
    ends = [order[i:] for order in orders for i, axis in enumerate(order) if isinstance(axis, str) or i == 0]
    sides = [frozenset(axis for axis in order if isinstance(axis, int)) for order in ends]  # a reduction parts axes
    frame = merged(out, names, [*sides, *used], frozenset())
    loops = {**frame.loops, **reductions}
    axes = {loop: Axis(((loop, 1),), extent) for loop, extent in loops.items()}
    inputs = []
    for name, order, value in zip("AB", orders, factors, strict=False):
        along = [loop for axis in order for loop in (frame.places[axis] if isinstance(axis, int) else (axis,))]
        if prod(loops[loop] for loop in along) != prod(dims(value)):
            raise Unfit(f"{value} does not lie in {out}")
        inputs.append(Operand(name, tuple(axes[loop] for loop in along), numpy_type(_dtype(value))))
    y = Operand("C", tuple(axes[loop] for axis in frame.places for loop in axis), _sum_type(node))
    what = "×".join(f"{loop}={extent}" for loop, extent in loops.items())
    return Anchored(Problem(f"{node.op} {what}", loops, tuple(inputs), y), factors, frame)


def _inputs(node: Node) -> tuple[Value, ...]:
    return tuple(value for value in node.inputs if value is not None)


def _dtype(value: Value) -> str:
    return value.type.dtype if value.type else "float32"


def _sum_type(node: Node) -> str:
    """The type in which an output is added up; an extreme is of the type of its elements."""
    kind = _dtype(node.output)
    return numpy_type(kind if node.op in _EXTREMES else _SUMS.get(kind, kind))


_EXTREMES = {"MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin"}
_GLOBAL = ("GlobalAveragePool", "GlobalMaxPool")
_REDUCE = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
REDUCTIONS = (*_GLOBAL, *(f"Reduce{name}" for name in _REDUCE))
_ANCHORS: dict[str, Anchor] = {
    "Conv": _conv,
    "MatMul": _matmul,
    "Gemm": _gemm,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(REDUCTIONS, _reduce),
}
