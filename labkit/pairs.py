"""Depth-first pairs: two kernels of windows in one, each tile of the output with all that it needs of the middle.

The tensor between them never reaches DRAM. Neighbouring tiles need overlapping parts of it (a halo), and each part is
computed anew: bytes are saved and arithmetic is added. Sources: Alwani, Chen, Ferdman, Milder, "Fused-layer CNN
accelerators", MICRO 2016; Mei, Goetschalckx, Symons, Verhelst, "DeFiNES", HPCA 2023 (fully-recompute).

All channels of a tile are on chip together, and so are the weights of both, from the first tile to the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from labkit.frames import dims, element_bytes
from labkit.graph import Node, Value
from labkit.lifetimes import SUM, is_elementwise, most_held, steps
from labkit.memory.ledger import Traffic
from labkit.ops import row
from labkit.ops.windows import Window
from labkit.pair_tiles import Line, Pair, Tile

_FACTORS = {"Conv": 2, "MaxPool": 1, "AveragePool": 1}
WINDOWS = frozenset(_FACTORS)


@dataclass(frozen=True, eq=False)
class Halves:
    """The operators of a pair, and what each tensor outside is to them: the image, tensors held from the first tile to
    the last, and tensors of the output's size that come tile by tile."""

    first: tuple[Node, ...]
    second: tuple[Node, ...]
    image: Value
    still: tuple[Value, ...]
    beside: tuple[Value, ...]
    outputs: tuple[Value, ...]
    pair: Pair

    @property
    def middle(self) -> Value:
        return self.first[-1].output


def halves_of(nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value]) -> Halves | None:
    """The operators of one kernel as a pair; None when they are none.

    Each half is a Conv or a pool and elementwise operators behind it; the second's window slides over what the first
    makes, which nothing else reads. The first reads nothing else of that size.
    """
    at = next((i for i, node in enumerate(nodes) if i and node.op in _FACTORS), 0)
    first, second = tuple(nodes[:at]), tuple(nodes[at:])
    if not at or nodes[0].op not in _FACTORS or not all(map(is_elementwise, (*first[1:], *second[1:]))):
        return None
    middle, image = first[-1].output, first[0].uses[0]
    lines = [_lines(half[0]) for half in (first, second)]
    reads = [value for node in (*first, *second) for value in node.uses if value.name == middle.name]
    alone = second[0].uses[0] == middle and len(reads) == 1 and middle not in outputs
    if not alone or None in lines or any(value.type is None for value in (*inputs, *outputs)):
        return None
    others = [value for value in inputs if value != image]
    beside = tuple(v for v in others if dims(v) == dims(second[-1].output) and _is_read_in(second[1:], v))
    still = tuple(value for value in others if value not in beside)
    tails = [(node, value) for node in (*first[1:], *second[1:]) for value in node.uses]
    if any(value in still and node.op != "BatchNormalization" and prod(dims(value)[-2:]) != 1 for node, value in tails):
        return None  # a mask, say: it has pixels of its own
    if any(image.name == value.name for node in (*first[1:], *second) for value in node.uses):
        return None
    pair = _pair(first, second, image, still, beside, outputs, lines)
    return Halves(first, second, image, still, beside, tuple(outputs), pair)


def _is_read_in(nodes: Sequence[Node], value: Value) -> bool:
    return any(value.name == read.name for node in nodes for read in node.uses)


def _lines(node: Node) -> tuple[Line, Line] | None:
    """The windows of a node along rows and columns; None for other ranks, and where a size is not known."""
    x, y = node.uses[0], node.output
    types = [value.type for value in (x, y, *(node.uses[1:2] if node.op == "Conv" else ()))]
    if node.domain or len(node.results) != 1 or not all(kind and kind.is_static for kind in types):
        return None
    if len(dims(x)) != 4 or 0 in (*dims(x), *dims(y)) or node.attrs.get("ceil_mode"):
        return None
    kernel = dims(node.uses[1])[2:] if node.op == "Conv" else node.attrs["kernel_shape"]
    window = Window.of(node.attrs, kernel)
    pads = window.pads(dims(x)[2:])
    rows, columns = (
        Line(window.extents[a], window.strides[a], pads[a][0], dims(x)[2 + a], dims(y)[2 + a]) for a in (0, 1)
    )
    return rows, columns


def _pair(
    first: tuple[Node, ...], second: tuple[Node, ...], image: Value, still: tuple[Value, ...],
    beside: tuple[Value, ...], outputs: Sequence[Value], lines: Sequence[tuple[Line, Line] | None],
) -> Pair:  # fmt: skip
    middle, (one, two) = first[-1].output, lines
    assert one is not None
    assert two is not None
    flops = sum(op.flops(node) for node in first if (op := row(node)))
    return Pair(
        images=dims(image)[0],
        first=one,
        second=two,
        x_bytes=_pixel_bytes(image),
        mid_bytes=_pixel_bytes(middle),
        held_bytes=(_held(first, ()), _held(second, beside)),
        moved_bytes=sum(map(_pixel_bytes, (*beside, *outputs))),
        still_bytes=sum(value.type.nbytes for value in still if value.type),
        flops=flops // (dims(middle)[0] * prod(line.out for line in one)),
    )


def _pixel_bytes(value: Value) -> int:
    return dims(value)[1] * element_bytes(value)


def _held(half: tuple[Node, ...], beside: tuple[Value, ...]) -> int:
    """The most bytes on chip for one pixel of the output while the operators of a half run."""
    head = half[0]
    sizes = {value.name: _pixel_bytes(value) for node in half for value in node.results}
    sizes |= {value.name: _pixel_bytes(value) for value in beside}
    sizes[SUM] = dims(head.output)[1] * max(element_bytes(head.output), 4)
    names = {value.name for value in beside}
    return most_held(tuple(steps(half, names, sizes, _FACTORS[head.op])), sizes)


def reads_of(halves: Halves, tile: Tile) -> Iterator[tuple[Value, Traffic]]:
    """What each tensor that comes in moves with tiles of this size."""
    pair, tiles = halves.pair, halves.pair.tiles(tile)
    yield halves.image, Traffic(pair.loaded_bytes(tile), 0, pair.loads(tile), 0)
    for value in halves.still:
        yield value, Traffic(value.type.nbytes if value.type else 0, 0, 1, 0)
    for value in halves.beside:
        yield value, Traffic(value.type.nbytes if value.type else 0, 0, tiles, 0)
