"""2-D convolutions that really run on a Scratchpad, in any layout: direct, and through a column matrix (im2col)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabError
from labkit.kernels.arrange import arrange, restore
from labkit.kernels.elementwise import ElementwiseOp
from labkit.kernels.fused import Chain
from labkit.kernels.nest import run_nest
from labkit.loops import Buffers, CPolicy, Halo, LoopNest
from labkit.memory.scratchpad import Scratchpad
from labkit.problems import ConvShape, conv, im2col, matmul

Array = NDArray[Any]
Tile = tuple[int, int, int]


def conv_shape(
    x: Array,
    w: Array,
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilations: tuple[int, int] = (1, 1),
    groups: int = 1,
) -> ConvShape:
    """The shape that an image (n, c, h, w) and filters (filters, c/groups, r, s) pose; LabError when they disagree.

    ``pads`` are (top, left, bottom, right), as ONNX's Conv has them.
    """
    if x.ndim != 4 or w.ndim != 4 or x.shape[1] != w.shape[1] * groups:
        raise LabError(f"conv of image {x.shape} and filters {w.shape}, {groups} groups: channels must agree")
    if x.dtype != w.dtype:
        raise LabError(f"conv of {x.dtype} and {w.dtype}: wanted one type for both")
    n, c, h, width = x.shape
    return ConvShape(n, c, h, width, w.shape[0], (w.shape[2], w.shape[3]), strides, dilations, pads, groups)


def conv_nest(
    shape: ConvShape,
    layout: str = "NCHW",
    dtype: str = "float32",
    *,
    tile: Mapping[str, int] | None = None,
    order: Sequence[str] = (),
    c_policy: CPolicy = "store",
    buffers: Buffers = "single",
    halo: Halo = "reload",
) -> LoopNest:
    """The nest of a convolution: ``tile`` has sizes of some of its loops, ``order`` puts some in another order."""
    nest = replace(LoopNest.of(conv(shape, layout, dtype)), c_policy=c_policy, buffers=buffers, halo=halo)
    return _cut(nest, tile).reorder(*order)


def conv2d(
    x: Array,
    w: Array,
    pad: Scratchpad,
    bias: Array | None = None,
    *,
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilations: tuple[int, int] = (1, 1),
    groups: int = 1,
    layout: str = "NCHW",
    ops: Sequence[ElementwiseOp] = (),
    fused: bool = True,
    **schedule: Any,
) -> Array:
    """A convolution in one kernel, and elementwise ``ops`` on its result: in the same kernel, or with one kernel each.

    Arrays and result are logical, (n, c, h, w) and (filters, c/groups, r, s); so are the other operands of ``ops``,
    where a length of 1 is broadcast. They are put into the memory order ``layout`` before the kernel starts: preparing
    DRAM costs nothing here. A bias, one number a filter, is added by the kernel itself. ``schedule`` are the options
    of ``conv_nest``: tile, order, c_policy, buffers, halo. The result has the type of the accumulator.

    Raises SramOverflow when the tiles do not fit; LabError for shapes and options that do not, and for an order in
    which sums leave unfinished although something is to be done with them.

    >>> x, w, pad = np.ones((1, 1, 4, 4), np.float32), np.ones((1, 1, 3, 3), np.float32), Scratchpad("1KiB")
    >>> conv2d(x, w, pad).tolist(), pad.ledger.traffic.nbytes
    ([[[[9.0, 9.0], [9.0, 9.0]]]], 116)
    """
    shape = conv_shape(x, w, strides, pads, dilations, groups)
    nest = conv_nest(shape, layout, x.dtype.name, **schedule)
    weights = np.ascontiguousarray(w).reshape(nest.problem.inputs[1].shape)
    own = () if bias is None else (_add_bias(bias, shape, layout),)
    chain = Chain(nest, tuple(_placed(op, layout, groups) for op in ops), own)
    return restore(chain.run({"X": arrange(x, layout, groups), "W": weights}, pad, fused=fused, name="conv"), layout)


def _placed(op: ElementwiseOp, layout: str, groups: int) -> ElementwiseOp:
    return replace(op, others={name: arrange(array, layout, groups) for name, array in op.others.items()})


def _add_bias(bias: Array, shape: ConvShape, layout: str) -> ElementwiseOp:
    if bias.shape != (shape.filters,):
        raise LabError(f"conv: bias has shape {bias.shape}, wanted ({shape.filters},): one number a filter")
    return ElementwiseOp("bias", "Y", np.add, {"bias": arrange(bias.reshape(1, -1, 1, 1), layout, shape.groups)})


def im2col_conv2d(
    x: Array,
    w: Array,
    pad: Scratchpad,
    *,
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilations: tuple[int, int] = (1, 1),
    groups: int = 1,
    layout: str = "NCHW",
    expand_tile: Mapping[str, int] | None = None,
    tile: Tile | None = None,
    order: str = "mnk",
) -> Array:
    """The same convolution through a column matrix in DRAM: kernel ``im2col`` writes it, and a tiled product for each
    group reads it. The result is logical (n, c, h, w).

    In the ledger the matrix is ``columns``: it is written once, and read as often as the tile (TM, TN, TK) and the
    ``order`` of the product say; ``blow_up`` is its size over the image's. ``expand_tile`` cuts the first
    kernel's loops. The product writes Y with its channels outermost, which for one image is NCHW;
    nothing is counted for another order.

    Raises SramOverflow when the tiles do not fit, LabError for shapes and options that do not.

    >>> x, w, pad = np.ones((1, 1, 4, 4), np.float32), np.ones((1, 1, 3, 3), np.float32), Scratchpad("1KiB")
    >>> im2col_conv2d(x, w, pad).tolist(), pad.ledger.by("value")["columns"].write_bytes / x.nbytes
    ([[[[9.0, 9.0], [9.0, 9.0]]]], 2.25)
    """
    shape = conv_shape(x, w, strides, pads, dilations, groups)
    expand = _cut(LoopNest.of(im2col(shape, layout, x.dtype.name)), expand_tile)
    (p, q), filters, depth = shape.output_size, shape.filters // groups, w[0].size
    product = _product(filters, shape.n * p * q, depth, x.dtype.name, tile, order)
    matrix = run_nest(expand, {"X": arrange(x, layout, groups)}, pad, name="im2col").reshape(groups, depth, -1)
    rows = np.ascontiguousarray(w).reshape(groups, filters, depth)
    parts = [run_nest(product, {"W": rows[g], "columns": matrix[g]}, pad, name="product") for g in range(groups)]
    return np.stack(parts).reshape(shape.filters, shape.n, p, q).swapaxes(0, 1)


def blow_up(shape: ConvShape) -> float:
    """Elements of the column matrix for each element of the image: about R·S / strides.

    >>> blow_up(ConvShape(1, 64, 56, 56, 64, (3, 3), pads=(1, 1, 1, 1)))
    9.0
    """
    problem = im2col(shape)
    return problem.output.nbytes / problem.inputs[0].nbytes


def _product(m: int, n: int, k: int, dtype: str, tile: Tile | None, order: str) -> LoopNest:
    """The matrix product behind im2col, its operands called W, columns and Y."""
    problem = matmul(m, n, k, dtype)
    a, b = problem.inputs
    inputs = (replace(a, name="W"), replace(b, name="columns"))
    renamed = replace(problem, inputs=inputs, output=replace(problem.output, name="Y"))
    return LoopNest(renamed, (m, n, k) if tile is None else tile, tuple(order))


def _cut(nest: LoopNest, tile: Mapping[str, int] | None) -> LoopNest:
    for loop, size in (tile or {}).items():
        nest = nest.split(loop, size)
    return nest
