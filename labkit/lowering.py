"""From the operators of one kernel to loops: what is cut into tiles, what is held, what is moved (spec §3, §4.2).

A kernel is a tuple of nodes in running order. Its *head* may be an anchor (a product, a convolution, a window, a sum:
see anchors.py); the others then work on each finished tile of its output. Without an anchor they work on tiles of the
elements, or of whole rows where one of them needs a row (Softmax, a normalisation). Whatever fits neither form is a
stream: each tensor that it reads comes once, each that it makes leaves once, and one element of each is held. For
operators that move elements that is so; for others it is an assumption, and their kernel says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from labkit.access import Axis, Operand
from labkit.anchors import REDUCTIONS, Anchored, anchored
from labkit.errors import LabError
from labkit.frames import Extents, Frame, Place, Unfit, dims, element_bytes, merged, place
from labkit.graph import Node, Value
from labkit.lifetimes import SUM, Step, beside_factors, is_elementwise, most_held, steps
from labkit.ops import row
from labkit.pairs import Halves, halves_of
from labkit.problems import Problem
from labkit.tail import Tail

# Operators that only move elements: each goes from where it lies to where it belongs.
_MOVING = """
    Concat DepthToSpace Dropout Expand Flatten Gather GatherElements GatherND Pad Reshape Slice SpaceToDepth Split
    Squeeze Tile Transpose Unsqueeze"""
MOVING = frozenset(_MOVING.split())


@dataclass(frozen=True, eq=False)
class Kernel:
    """The operators of one launch, and what each tensor outside is to it.

    ``factors`` are combined by the first operator: they are the inputs of ``problem``. On each finished tile the
    operators then read ``vectors`` (broadcast, those of the problem's tail) and ``beside`` (of full size, the tail's
    ``reads``). ``sizes`` are the bytes of each full-size tensor for one element of the output. ``arranged`` are
    Transposes at the border, none of which runs: the kernel works on tensors that lie otherwise.

    ``problem`` is None for a depth-first pair, which has ``halves`` instead, and for a stream: each tensor comes or
    leaves once, element by element; ``is_assumed`` says that it is one only because nothing better is known of its
    operators.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    problem: Problem | None = None
    frame: Frame | None = None
    factors: tuple[Value, ...] = ()
    vectors: tuple[Value, ...] = ()
    beside: tuple[Value, ...] = ()
    places: Mapping[str, Place] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    arranged: tuple[Node, ...] = ()
    halves: Halves | None = None
    is_assumed: bool = False

    @cached_property
    def flops(self) -> int:
        """Floating-point operations, as the op table counts them."""
        return sum(op.flops(node) for node in self.nodes if (op := row(node)))

    @cached_property
    def repeats(self) -> bool:
        """Whether a tensor is read in two roles, as in x + conv(x): as tiles of both, unless all of it is on chip."""
        names = [value.name for value in (*self.factors, *self.vectors, *self.beside)]
        return len({*names}) < len(names)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What its operators do on each finished tile; nothing where sums are stored as they are."""
        outside = {value.name for value in self.inputs}
        return tuple(steps(self.nodes, outside, self.sizes, len(self.factors))) if self.sizes else ()


def lower(nodes: tuple[Node, ...], inputs: tuple[Value, ...], outputs: tuple[Value, ...], opset: int = 17) -> Kernel:
    """The operators of a kernel as loops; ``inputs`` are what it reads from outside, ``outputs`` what leaves it.

    Raises LabError for several operators that are no kernel: two anchors that are no pair (see pairs.py), or shapes
    that do not go together.
    """
    kernel = _as_it_lies(Kernel(nodes, inputs, outputs))
    forms = (_with_anchor, _pointwise)
    for form in forms:
        try:
            if (found := form(kernel, opset)) is not None:
                return found
        except Unfit:
            continue
    if halves := halves_of(kernel.nodes, kernel.inputs, kernel.outputs):
        return replace(kernel, halves=halves)
    head, *rest = kernel.nodes
    is_moving = [node.op in MOVING and not node.domain for node in kernel.nodes]
    known = [moves or is_elementwise(node) for moves, node in zip(is_moving, kernel.nodes, strict=True)]
    if rest and not (all(known) or (all(known[1:]) and lower((head,), head.uses, head.results, opset).problem is None)):
        raise LabError(f"no kernel: {', '.join(node.label for node in nodes)} do not share one space of elements")
    return replace(kernel, is_assumed=not all(is_moving))


def _as_it_lies(kernel: Kernel) -> Kernel:
    """The kernel without Transposes of what it alone reads and of what it makes: its tensors lie in that order."""
    outside, leave = ({value.name for value in values} for values in (kernel.inputs, kernel.outputs))
    readers = Counter(value.name for node in kernel.nodes for value in node.uses)
    moves = [node for node in kernel.nodes if node.op == "Transpose" and not node.domain]
    before = [
        x for x in moves if x.uses[0].name in outside and readers[x.uses[0].name] == 1 and x.output.name not in leave
    ]
    after = [x for x in moves if x not in before and x.output.name in leave and readers[x.output.name] == 0
             and x.uses[0].name not in outside | leave]  # fmt: skip
    kept = tuple(node for node in kernel.nodes if node not in before and node not in after)
    if not kept or len(kept) == len(kernel.nodes):
        return kernel
    reads = {node.uses[0].name: node.output for node in before}
    makes = {node.output.name: node.uses[0] for node in after}
    inputs = tuple(reads.get(value.name, value) for value in kernel.inputs)
    outputs = tuple(makes.get(value.name, value) for value in kernel.outputs)
    return Kernel(kept, inputs, outputs, arranged=(*before, *after))


def _with_anchor(kernel: Kernel, opset: int) -> Kernel | None:
    head, *rest = kernel.nodes
    if head.outputs[0] is None or not all(map(is_elementwise, rest)):
        return None
    extents, factors = dims(head.outputs[0]), 1 if head.op in REDUCTIONS or head.op.endswith("Pool") else 2
    places = _places(kernel, extents, factors)
    found = anchored(head, [_axes(places[name], extents) for name in _outside(kernel, places)])
    if found is None:
        return None
    is_sum = len(kernel.nodes) == 1 and len(head.uses) == factors == 2 and head.attrs.get("alpha", 1.0) == 1.0
    if is_sum and found.problem.output.itemsize == element_bytes(head.output):
        return replace(kernel, problem=found.problem, frame=found.frame, factors=found.factors)
    return _with_tail(kernel, found, places)


def _pointwise(kernel: Kernel, opset: int) -> Kernel | None:
    """Elements, or rows of them, each of which goes through all operators by itself."""
    values = [*kernel.inputs, *(value for node in kernel.nodes for value in node.results)]
    extents = max((dims(value) for value in values), key=lambda own: (prod(own), len(own)))
    rows: set[int] = set()
    for node in kernel.nodes:
        if is_elementwise(node):
            continue
        if node.domain or node.op not in ROWS:
            return None
        rows |= {axis + len(extents) - len(dims(node.uses[0])) for axis in ROWS[node.op](node, opset)}
    if 0 in extents:
        return None
    places = _places(kernel, extents, 0)
    used = [_axes(places[name], extents) for name in _outside(kernel, places)]
    names = "nchw" if len(extents) == 4 else [f"i{axis}" for axis in range(len(extents))]
    frame = merged(extents, names, used, frozenset(rows))
    what = "×".join(map(str, extents))
    loops = frame.loops or {"i": 1}  # one element, or one row
    output = Operand("Y", tuple(Axis(((loop, 1),), n) for loop, n in loops.items()), "V1")  # its sizes are in the tail
    problem = Problem(f"rows of {what}" if rows else what, loops, (), output)
    return _with_tail(kernel, Anchored(problem, (), frame), places)


def _places(kernel: Kernel, extents: Extents, factors: int) -> dict[str, Place]:
    """Where each tensor lies that works on finished tiles, the factors of the head left out."""
    found: dict[str, Place] = {}
    for i, node in enumerate(kernel.nodes):
        for value in (*beside_factors(node, 0 if i else factors), *node.results):
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
    frame, full = anchor.frame, {name for name, where in places.items() if anchor.frame.is_full(where)}
    if not all(value.name in full for value in kernel.outputs):
        raise Unfit("an output that is smaller than its kernel's elements")
    outside = [value for value in kernel.inputs if value.name in places]
    vectors, beside = (tuple(v for v in outside if (v.name in full) == whole) for whole in (False, True))
    made = [value for node in kernel.nodes for value in node.results]
    sizes = {v.name: frame.width(places[v.name]) * element_bytes(v) for v in (*beside, *made)}
    if anchor.factors:
        sizes[SUM] = anchor.problem.output.itemsize
    found = replace(
        kernel, frame=frame, factors=anchor.factors, vectors=vectors, beside=beside, places=places, sizes=sizes
    )
    operands = (frame.operand(f"v{i}", places[v.name], v.dtype or "V0") for i, v in enumerate(vectors))
    reads, writes = (tuple(sizes[value.name] for value in values) for values in (beside, kernel.outputs))
    tail = Tail(reads, writes, most_held(found.steps, sizes), tuple(operands))
    return replace(found, problem=replace(anchor.problem, tail=tail))


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
