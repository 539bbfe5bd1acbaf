"""From the operators of one kernel to loops: what is cut into tiles, what is held, what is moved (spec §3, §4.2).

A kernel is a tuple of nodes in running order. Its *head* may be an anchor (a product, a convolution, a window, a sum:
see anchors.py); the others then work on each finished tile of its output. Without an anchor they work on tiles of the
elements, or of whole rows where one of them needs a row (Softmax, a normalisation). Whatever fits neither form is a
stream: each tensor that it reads comes once, each that it makes leaves once, and one element of each is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from labkit.access import Axis, Operand
from labkit.anchors import REDUCTIONS, Anchored, anchored
from labkit.errors import LabError
from labkit.frames import Extents, Frame, Place, Unfit, dims, element_bytes, merged, place
from labkit.graph import Node, Value
from labkit.ops import row
from labkit.problems import Problem
from labkit.tail import Tail

# Operators of which an output element takes the elements at its own place (or broadcast ones).
_ELEMENTWISE = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BatchNormalization BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast
    Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf
    IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu
    Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor"""
# Operators that only move elements: each goes from where it lies to where it belongs.
_MOVING = """
    Concat DepthToSpace Dropout Expand Flatten Gather GatherElements GatherND Pad Reshape Slice SpaceToDepth Split
    Squeeze Tile Transpose Unsqueeze"""
ELEMENTWISE, MOVING = (frozenset(names.split()) for names in (_ELEMENTWISE, _MOVING))


@dataclass(frozen=True, eq=False)
class Kernel:
    """The operators of one launch. ``problem`` is None for a stream; ``is_assumed`` says that it is one only because
    nothing better is known of its operators."""

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    combined: int = 0  # how many of the inputs of the head are factors
    problem: Problem | None = None
    frame: Frame | None = None
    factors: tuple[Value, ...] = ()
    vectors: tuple[Value, ...] = ()
    places: Mapping[str, Place] = field(default_factory=dict)
    is_assumed: bool = False

    def reads(self, node: Node) -> tuple[Value, ...]:
        """The tensors that an operator reads when a tile is finished: all of its inputs but the factors."""
        first = self.combined if node is self.nodes[0] else 0
        return tuple(value for value in node.inputs[first:] if value is not None)

    @cached_property
    def flops(self) -> int:
        """Floating-point operations, as the op table counts them."""
        return sum(op.flops(node) for node in self.nodes if (op := row(node)))

    @cached_property
    def repeats(self) -> bool:
        """Whether a tensor is read in two roles, as in x + conv(x): as tiles of both, unless all of it is on chip."""
        tail = {value.name for node in self.nodes for value in self.reads(node)}
        return len({value.name for value in self.factors} - tail) < len(self.factors)


def lower(nodes: tuple[Node, ...], inputs: tuple[Value, ...], outputs: tuple[Value, ...], opset: int = 17) -> Kernel:
    """The operators of a kernel as loops; ``inputs`` are what it reads from outside, ``outputs`` what leaves it.

    Raises LabError for several operators that are no kernel: two anchors, or shapes that do not go together.
    """
    kernel = Kernel(nodes, inputs, outputs)
    forms = (_with_anchor, _pointwise)
    for form in forms:
        try:
            if (found := form(kernel, opset)) is not None:
                return found
        except Unfit:
            continue
    known = [_is_elementwise(node) or (node.op in MOVING and not node.domain) for node in nodes]
    if not all(known[1:]):
        raise LabError(f"no kernel: {', '.join(node.label for node in nodes)} do not share one space of elements")
    return replace(kernel, is_assumed=not known[0])


def _is_elementwise(node: Node) -> bool:
    plain = not node.domain and not node.attrs.get("training_mode")
    return plain and node.op in ELEMENTWISE and len(node.results) == 1


def _with_anchor(kernel: Kernel, opset: int) -> Kernel | None:
    head, *rest = kernel.nodes
    if not all(map(_is_elementwise, rest)):
        return None
    extents = dims(head.outputs[0])
    kernel = replace(kernel, combined=1 if head.op in REDUCTIONS or head.op.endswith("Pool") else 2)
    places = _places(kernel, extents)
    found = anchored(head, [_axes(places[name], extents) for name in _outside(kernel, places)])
    if found is None:
        return None
    plain = len(kernel.nodes) == 1 and len(head.uses) == kernel.combined == 2
    if plain and found.problem.output.itemsize == element_bytes(head.output):
        return replace(kernel, problem=found.problem, frame=found.frame, factors=found.factors)
    return _with_tail(kernel, found, places)


def _pointwise(kernel: Kernel, opset: int) -> Kernel | None:
    """Elements, or rows of them, each of which goes through all operators by itself."""
    values = [*kernel.inputs, *(value for node in kernel.nodes for value in node.results)]
    extents = max((dims(value) for value in values), key=lambda own: (prod(own), len(own)))
    rows: set[int] = set()
    for node in kernel.nodes:
        if _is_elementwise(node):
            continue
        if node.domain or node.op not in ROWS:
            return None
        rows |= {axis + len(extents) - len(dims(node.uses[0])) for axis in ROWS[node.op](node, opset)}
    if 0 in extents:
        return None
    places = _places(kernel, extents)
    used = [_axes(places[name], extents) for name in _outside(kernel, places)]
    names = "nchw" if len(extents) == 4 else [f"i{axis}" for axis in range(len(extents))]
    frame = merged(extents, names, used, frozenset(rows))
    what = "×".join(map(str, extents))
    loops = frame.loops or {"i": 1}  # one element, or one row
    output = Operand("Y", tuple(Axis(((loop, 1),), n) for loop, n in loops.items()), "V1")  # its sizes are in the tail
    problem = Problem(f"rows of {what}" if rows else what, loops, (), output)
    return _with_tail(kernel, Anchored(problem, (), frame), places)


def _places(kernel: Kernel, extents: Extents) -> dict[str, Place]:
    """Where each tensor lies that works on finished tiles, the factors of the head left out."""
    found: dict[str, Place] = {}
    for node in kernel.nodes:
        for value in (*kernel.reads(node), *node.results):
            here = place(node, value, extents)
            if found.setdefault(value.name, here) != here:
                raise Unfit(f"{value} is used along two kinds of axes")
    return found


def _outside(kernel: Kernel, places: Mapping[str, Place]) -> list[str]:
    return [value.name for value in kernel.inputs if value.name in places]


def _axes(where: Place, extents: Extents) -> frozenset[int]:
    return frozenset(axis for axis, n in zip(where.axes, where.extents, strict=True) if axis >= 0 and n > 1)


def _with_tail(kernel: Kernel, anchor: Anchored, places: dict[str, Place]) -> Kernel:
    """The kernel with what its operators do on finished tiles."""
    frame = anchor.frame
    outside = [value for value in kernel.inputs if value.name in places]
    vectors = tuple(value for value in outside if not frame.is_full(places[value.name]))
    operands = tuple(
        frame.operand(f"v{i}", places[value.name], value.dtype or "float32") for i, value in enumerate(vectors)
    )
    if any(not frame.is_full(places[value.name]) for value in kernel.outputs):
        raise Unfit("an output that is smaller than its kernel's elements")
    names = {value.name for value in vectors}
    sizes = {
        value.name: frame.width(places[value.name]) * element_bytes(value)
        for node in kernel.nodes for value in (*kernel.reads(node), *node.results)
        if value.name not in names
    }  # fmt: skip
    started = anchor.problem.output.itemsize if anchor.factors else 0
    tail = Tail(
        tuple(sizes[value.name] for value in outside if value.name in sizes),
        tuple(sizes[value.name] for value in kernel.outputs),
        most_held(kernel, sizes, started),
        operands,
    )
    problem = replace(anchor.problem, tail=tail)
    return replace(kernel, problem=problem, frame=frame, factors=anchor.factors, vectors=vectors, places=places)


def most_held(kernel: Kernel, sizes: Mapping[str, int], started: int) -> int:
    """The most bytes that are on chip at once for each element while the operators run, ``started`` when they start.

    A tensor comes right before the first operator that reads it and goes after the last. An elementwise operator writes
    over the largest of those that go; any other needs its input and its output side by side.
    """
    most = now = started
    for step in steps(kernel, sizes):
        now += sum(sizes[name] for name in step.arriving)
        freed = sum(sizes[name] for name in step.leaving) + (started if step.is_first else 0)
        largest = max([*(sizes[name] for name in step.leaving), started if step.is_first else 0])
        made = sum(sizes[name] for name in step.made)
        most = max(most, now + (max(made - largest, 0) if step.in_place else made))
        now += made - freed - sum(sizes[name] for name in step.done)
    return most


@dataclass(frozen=True)
class Step:
    """One operator of a tail: the tiles that come in for it, that it makes, and that go: those it was the last to read
    (``leaving``), and those it made that nothing reads again once they are stored (``done``)."""

    node: Node
    arriving: tuple[str, ...]
    made: tuple[str, ...]
    leaving: tuple[str, ...]
    done: tuple[str, ...]
    in_place: bool
    is_first: bool


def steps(kernel: Kernel, sizes: Mapping[str, int]) -> Iterator[Step]:
    """The operators in order, with the life of each tile of full size (those in ``sizes``)."""
    last = {value.name: node for node in kernel.nodes for value in kernel.reads(node)}
    outside = {value.name for value in kernel.inputs}
    seen: set[str] = set()
    for node in kernel.nodes:
        used = [name for name in dict.fromkeys(value.name for value in kernel.reads(node)) if name in sizes]
        made = tuple(value.name for value in node.results)
        yield Step(
            node,
            tuple(name for name in used if name in outside and name not in seen),
            made,
            tuple(name for name in used if last[name] is node),
            tuple(name for name in made if name not in last),
            node.op in ELEMENTWISE or (node is kernel.nodes[0] and bool(kernel.factors)),
            node is kernel.nodes[0],
        )
        seen.update(used)


Rows = Callable[[Node, int], Sequence[int]]


def _reduced(node: Node, opset: int) -> Sequence[int]:
    """The axes that a reduction, whose axes stay as ones, makes one element of."""
    source, out = dims(node.uses[0]), dims(node.output)
    if len(source) != len(out):
        raise Unfit(f"{node.label} drops axes")
    return [axis for axis, (n, left) in enumerate(zip(source, out, strict=True)) if n > 1 and left == 1]


def _softmax(node: Node, opset: int) -> Sequence[int]:
    rank = len(dims(node.uses[0]))
    first = node.attrs.get("axis", -1 if opset >= 13 else 1) % max(rank, 1)
    return [first] if opset >= 13 else range(first, rank)


def _trailing(node: Node, opset: int) -> Sequence[int]:
    rank = len(dims(node.uses[0]))
    return range(node.attrs.get("axis", -1) % max(rank, 1), rank)


def _spatial(node: Node, opset: int) -> Sequence[int]:
    return range(2, len(dims(node.uses[0])))


# Operators that need a whole row of their input for each element, and the axes along which the row lies.
ROWS: dict[str, Rows] = {
    **dict.fromkeys(REDUCTIONS, _reduced),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax),
    "LayerNormalization": _trailing,
    "InstanceNormalization": _spatial,
}
