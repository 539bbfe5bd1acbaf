"""Tensor problems as a tiling compiler sees them: named loops, and operands whose axes are affine in those loops.

From this one description follow the FLOPs, the compulsory bytes, the working set of a tile, the traffic of a loop nest
and the kernel itself; nothing about matmul or convolution is written twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from labkit.access import Axis, Operand
from labkit.axes import parse_order
from labkit.errors import LabError
from labkit.tail import Tail

LARGEST = 2**63 - 1  # an extent of an array is a signed 64-bit number, in NumPy and in ONNX

# What each operand type is added up in: half precision in single, 8-bit integers in 32 bits.
ACCUMULATORS = {"float64": "float64", "float32": "float32", "float16": "float32", "int8": "int32"}


@dataclass(frozen=True)
class Problem:
    """Loops with their extents, in the order of the obvious program; input operands; one output that products of
    input elements are added up into. A copy has one input, adds nothing up, and computes nothing. ``tail`` is what
    follows on each finished tile; when there are no inputs it is all there is."""

    name: str
    loops: Mapping[str, int] = field(hash=False)
    inputs: tuple[Operand, ...]
    output: Operand
    is_copy: bool = field(default=False, kw_only=True)
    tail: Tail | None = field(default=None, kw_only=True)

    @cached_property
    def loaded(self) -> tuple[Operand, ...]:
        """The operands of which a tile comes when another than the resident one is needed."""
        return (*self.inputs, *self.tail.vectors) if self.tail else self.inputs

    @cached_property
    def operands(self) -> tuple[Operand, ...]:
        return (*self.loaded, self.output)

    def held_itemsize(self, operand: Operand) -> int:
        """Bytes on chip for each element of a tile; the output's include what its tail holds beside it."""
        return self.tail.held if self.tail and operand is self.output else operand.itemsize

    @property
    def finished_bytes(self) -> int:
        """Bytes that move for the whole output once it is finished: it is written, and what its tail moves."""
        return prod(self.output.shape) * (self.tail.moved if self.tail else self.output.itemsize)

    @property
    def reductions(self) -> tuple[str, ...]:
        """The loops that add up into one output element."""
        return tuple(loop for loop in self.loops if loop not in self.output.loops)

    @property
    def flops(self) -> int:
        """An operation for each input at each point of the loops: a multiplication and an addition of two, an addition
        of one; those on padding are counted too, those of the tail are not."""
        return 0 if self.is_copy else len(self.inputs) * prod(self.loops.values())

    @cached_property
    def compulsory_bytes(self) -> int:
        """What any schedule moves even with unlimited SRAM: each used input element read once, the output written."""
        whole = {loop: range(extent) for loop, extent in self.loops.items()}
        return sum(operand.tile_bytes(whole) for operand in self.loaded) + self.finished_bytes


def matmul(m: int, n: int, k: int, dtype: str = "float32") -> Problem:
    """The product C[m,n] = A[m,k] · B[k,n]; C holds accumulators (float32 for float16, int32 for int8).

    Raises LabError for a size that is not a positive whole number, or a type without accumulator.

    >>> matmul(1024, 1024, 1024).flops, matmul(1024, 1024, 1024).compulsory_bytes
    (2147483648, 12582912)
    """
    sizes = {"m": m, "n": n, "k": k}
    _check("matmul", sizes)
    accumulator = accumulator_of(dtype)

    def operand(name: str, loops: str, kind: str) -> Operand:
        return Operand(name, tuple(Axis(((loop, 1),), sizes[loop]) for loop in loops), kind)

    return Problem(
        f"matmul {m}×{n}×{k}",
        sizes,
        (operand("A", "mk", dtype), operand("B", "kn", dtype)),
        operand("C", "mn", accumulator),
    )


@dataclass(frozen=True)
class ConvShape:
    """A 2-D convolution: batch n, channels c, image h×w, ``filters`` output channels, a kernel, and its placement.

    ``pads`` are (top, left, bottom, right). Raises LabError for sizes that are not positive whole numbers, channels
    that groups do not divide, and a kernel that does not fit.

    >>> ConvShape(1, 64, 56, 56, 64, (3, 3), pads=(1, 1, 1, 1)).output_size
    (56, 56)
    """

    n: int
    c: int
    h: int
    w: int
    filters: int
    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1

    def __post_init__(self) -> None:
        pairs = {
            f"{name}[{i}]": v for name in ("kernel", "strides", "dilations") for i, v in enumerate(getattr(self, name))
        }
        names = ("n", "c", "h", "w", "filters", "groups")
        _check("conv", {**{name: getattr(self, name) for name in names}, **pairs})
        if min(self.pads) < 0:
            raise LabError(f"conv: pads are {self.pads}, they cannot be negative")
        if self.c % self.groups or self.filters % self.groups:
            raise LabError(f"conv: {self.groups} groups must divide {self.c} channels and {self.filters} filters")
        if min(self.output_size) < 1:
            raise LabError(
                f"conv: a kernel of {self.kernel} does not fit an image of {self.h}×{self.w}, pads {self.pads}"
            )

    @property
    def output_size(self) -> tuple[int, int]:
        """Rows and columns of the output."""
        top, left, bottom, right = self.pads
        reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        room = (self.h + top + bottom - reach[0], self.w + left + right - reach[1])
        return room[0] // self.strides[0] + 1, room[1] // self.strides[1] + 1


def conv(shape: ConvShape, layout: str = "NCHW", dtype: str = "float32") -> Problem:
    """A 2-D convolution X * W → Y over loops n, g (group), f (filter of it), c (channel of it), p, q (output row and
    column), r, s (kernel row and column). ``layout`` is the memory order of X and Y, such as NCHW, NHWC or NCHW8c; W is
    filters first. A block as in NCHW8c cuts f and c into blocks, and adds loops fi and ci inside one.

    Input position of row p, tap r: p·stride + r·dilation − pad. An element whose every tap falls on padding, or that a
    stride skips, is never moved: the halo is exact. Raises LabError for channels that the block does not divide.
    """
    accumulator = accumulator_of(dtype)
    (p, q), (r, s), g = shape.output_size, shape.kernel, shape.groups
    filters = _in_blocks("f", shape.filters // g, layout, "filters")
    channels = _in_blocks("c", shape.c // g, layout, "channels")
    loops = {"n": shape.n, "g": g, **filters, **channels, "p": p, "q": q, "r": r, "s": s}
    plain = plain_axes(loops)
    w = Operand("W", tuple(plain[loop] for loop in ("g", *filters, *channels, "r", "s")), dtype)
    y = Operand(
        "Y", tuple({**plain, "h": plain["p"], "w": plain["q"]}[x] for x in memory_loops(layout, "f")), accumulator
    )
    x = _image(shape, layout, plain, dtype)
    return Problem(f"conv {shape.filters}×{shape.c}×{r}×{s} on {shape.h}×{shape.w}", loops, (x, w), y)


def im2col(shape: ConvShape, layout: str = "NCHW", dtype: str = "float32") -> Problem:
    """The copy of an image X into a matrix that turns its convolution into a product: rows g, c, r, s, columns n, p, q.

    An element appears once for each tap that uses it, so the matrix is about R·S / strides times the image.
    Source: Chellapilla, Puri, Simard, "High performance convolutional neural networks for document processing", 2006.
    """
    (p, q), (r, s), g = shape.output_size, shape.kernel, shape.groups
    channels = _in_blocks("c", shape.c // g, layout, "channels")
    loops = {"n": shape.n, "g": g, **channels, "p": p, "q": q, "r": r, "s": s}
    plain = plain_axes(loops)
    columns = Operand("columns", tuple(plain[loop] for loop in ("g", *channels, *"rsnpq")), dtype)
    name = f"im2col of {shape.c}×{shape.h}×{shape.w}"
    return Problem(name, loops, (_image(shape, layout, plain, dtype),), columns, is_copy=True)


def transform(shape: tuple[int, int, int, int], source: str, target: str, dtype: str = "float32") -> Problem:
    """The copy of a tensor X, whose logical shape is (n, c, h, w), from one memory order into another, Y.

    Raises LabError for channels that a block does not divide, and for two blocks of different sizes.
    """
    n, c, h, w = shape
    _check("transform", {"n": n, "c": c, "h": h, "w": w})
    blocks = {block for order in (source, target) if (block := block_of(order)) > 1}
    if len(blocks) > 1:
        raise LabError(f"transform {source} to {target}: blocks {sorted(blocks)} differ; go through NCHW or NHWC")
    blocked = source if block_of(source) > 1 else target
    loops = {"n": n, **_in_blocks("c", c, blocked, "channels"), "h": h, "w": w}
    plain = plain_axes(loops)

    def operand(name: str, order: str) -> Operand:
        axes = [loop for loop in memory_loops(order, "c") if loop != "g"]
        if "ci" in loops and "ci" not in axes:  # in an order without blocks they lie next to each other
            axes.insert(axes.index("c") + 1, "ci")
        return Operand(name, tuple(plain[loop] for loop in axes), dtype)

    name = f"{source} to {target} of {n}×{c}×{h}×{w}"
    return Problem(name, loops, (operand("X", source),), operand("Y", target), is_copy=True)


def memory_loops(layout: str, channel: str) -> tuple[str, ...]:
    """The loops that the axes of a tensor in this memory order stand for: h and w for rows and columns, g and
    ``channel`` for C, with an i behind it for a block of C.

    >>> memory_loops("NHWC", "c"), memory_loops("NCHW8c", "f")
    (('n', 'h', 'w', 'g', 'c'), ('n', 'g', 'f', 'h', 'w', 'fi'))
    """
    axes, blocks = parse_order(layout)
    if sorted(set(axes) - {"c"}) != sorted("NCHW") or not blocks.keys() <= {"c"}:
        raise LabError(f"layout {layout!r}: write the axes N, C, H and W from slow to fast, such as NHWC or NCHW8c")
    names = {"N": ["n"], "C": ["g", channel], "H": ["h"], "W": ["w"], "c": [f"{channel}i"]}
    return tuple(name for axis in axes for name in names[axis])


def block_of(layout: str) -> int:
    """Channels in one block: 8 for NCHW8c, 1 for NCHW."""
    return parse_order(layout)[1].get("c", 1)


def _in_blocks(loop: str, extent: int, layout: str, what: str) -> dict[str, int]:
    """The loop over channels, cut in two when the layout is blocked."""
    if "c" not in parse_order(layout)[1]:
        return {loop: extent}
    block = block_of(layout)
    if extent % block:
        padded = -(-extent // block) * block
        raise LabError(f"layout {layout}: {extent} {what} (of a group) do not fill blocks of {block}; pad to {padded}")
    return {loop: extent // block, f"{loop}i": block}


def _image(shape: ConvShape, layout: str, plain: Mapping[str, Axis], dtype: str) -> Operand:
    """The input of a convolution: its rows and columns are windows."""
    rows, columns = window_axes(shape)
    return Operand("X", tuple({**plain, "h": rows, "w": columns}[loop] for loop in memory_loops(layout, "c")), dtype)


def window_axes(shape: ConvShape) -> tuple[Axis, Axis]:
    """Rows and columns of an image, by output position and place in the window."""
    rows = Axis((("p", shape.strides[0]), ("r", shape.dilations[0])), shape.h, -shape.pads[0])
    columns = Axis((("q", shape.strides[1]), ("s", shape.dilations[1])), shape.w, -shape.pads[1])
    return rows, columns


def plain_axes(loops: Mapping[str, int]) -> dict[str, Axis]:
    return {loop: Axis(((loop, 1),), extent) for loop, extent in loops.items()}


def accumulator_of(dtype: str) -> str:
    """The type in which products of a type are added up."""
    if dtype not in ACCUMULATORS:
        raise LabError(f"no accumulator for {dtype!r}; there are: {', '.join(ACCUMULATORS)}")
    return ACCUMULATORS[dtype]


def _check(what: str, sizes: Mapping[str, Any]) -> None:
    for name, value in sizes.items():
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
            raise LabError(f"{what}: {name} is {value!r:.40}: it must be a whole number from 1 to {LARGEST:,}")
