"""The address traces of matrix products and of walks through a tensor, as loop nests (``conv_trace`` has the third).

The arrays stand one behind the other from ``base`` on, each at the next multiple of ``align`` bytes; choose a base
that is a multiple of the item size and of the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from labkit.errors import LabError
from labkit.layout import Layout
from labkit.memory.affine import AddressTrace, AffineTrace, Loop, Reference, Trace
from labkit.memory.ledger import Kind
from labkit.memory.stream import Chunk, chunks, lines

__all__ = [
    "AddressTrace", "AffineTrace", "Chunk", "Loop", "Reference", "Trace",
    "chunks", "lines", "matmul_trace", "walk_trace",
]  # fmt: skip

Accumulator = Literal["register", "memory"]
Body = tuple[Loop | Reference, ...]


def matmul_trace(
    m: int,
    n: int,
    k: int,
    itemsize: int = 4,
    order: str = "mnk",
    tile: tuple[int, int, int] | None = None,
    inner: str = "mnk",
    accumulator: Accumulator = "register",
    base: int = 0,
    align: int = 64,
) -> AffineTrace:
    """C[m,n] = A[m,k] · B[k,n], all row-major, element by element.

    Without a ``tile`` three loops run in ``order``, outermost first. With ``tile`` (TM, TN, TK) three loops over tiles
    run in ``order``, and inside three over the elements of a tile in the order ``inner``; edge tiles have their real
    size, a tile larger than the matrix is cut to it.

    The accesses of each step of the innermost loop, in this order: a read of A[i,k], a read of B[k,j]; with the
    accumulator in "memory" then a read and a write of C[i,j]. With it in a "register", which needs k innermost (in
    another order a register is of no use, and this is the same as "memory"), C[i,j] is written once after each run of
    the k loop, and read once before it unless that run is all of k.

    Raises LabError for a size below 1, an order that is no permutation of mnk, addresses beyond 63 bit.

    >>> matmul_trace(2, 3, 4).accesses, matmul_trace(2, 3, 4, tile=(2, 2, 2)).accesses
    (54, 72)
    """
    sizes = {"m": m, "n": n, "k": k}
    check_sizes({**sizes, "itemsize": itemsize, "align": align})
    _check_loops(order, inner, accumulator, tile)
    matrices = _matrices(sizes, itemsize, base, align)
    if tile is None:
        return AffineTrace(_Nest(matrices, {}, (), order, accumulator, reads_c=False).elements(sizes))
    tiles = {dim: min(length, sizes[dim]) for dim, length in zip("mnk", tile, strict=True)}
    nest = _Nest(matrices, tiles, tuple(order), inner, accumulator, reads_c=tiles["k"] < k)
    return AffineTrace(nest.tiles(sizes, {}))


def _check_loops(order: str, inner: str, accumulator: str, tile: tuple[int, ...] | None) -> None:
    for word in (order, inner):
        if sorted(word) != ["k", "m", "n"]:
            raise LabError(f"loop order {word!r}: the letters m, n and k, each once, outermost first")
    if accumulator not in ("register", "memory"):
        raise LabError(f"accumulator {accumulator!r}: choose register or memory")
    if tile is not None and len(tile) != 3:
        raise LabError(f"tile {tile}: three lengths TM, TN, TK")
    check_sizes({f"tile {dim}": length for dim, length in zip("mnk", tile or (1, 1, 1), strict=True)})


@dataclass(frozen=True)
class _Matrix:
    name: str
    base: int
    strides: Mapping[str, int]  # bytes a step of m, n or k; a dimension that does not index it is missing


def _matrices(sizes: Mapping[str, int], itemsize: int, base: int, align: int) -> tuple[_Matrix, _Matrix, _Matrix]:
    m, n, k = sizes.values()
    a, b, c = place({"A": m * k, "B": k * n, "C": m * n}, itemsize, base, align)
    return (
        _Matrix("A", a, {"m": k * itemsize, "k": itemsize}),
        _Matrix("B", b, {"k": n * itemsize, "n": itemsize}),
        _Matrix("C", c, {"m": n * itemsize, "n": itemsize}),
    )


@dataclass(frozen=True)
class _Nest:
    """Builds the nest from outside in; a loop over tiles becomes one over the full tiles and one over the edge."""

    matrices: tuple[_Matrix, _Matrix, _Matrix]
    tile: Mapping[str, int]
    order: tuple[str, ...]
    inner: str
    accumulator: Accumulator
    reads_c: bool

    def tiles(self, sizes: Mapping[str, int], origins: Mapping[str, int]) -> Body:
        """``sizes``: what is left to be covered of each dimension; ``origins``: where the dims already split begin."""
        if len(origins) == len(self.order):
            return self.elements(sizes, origins)
        dim = self.order[len(origins)]
        full, edge = divmod(sizes[dim], self.tile[dim])
        pieces = [(0, full, self.tile[dim])] + ([(full * self.tile[dim], 1, edge)] if edge else [])
        return tuple(
            Loop(f"{dim}_tile", count, self.tiles({**sizes, dim: length}, {**origins, dim: origin}))
            for origin, count, length in pieces
        )

    def elements(self, sizes: Mapping[str, int], origins: Mapping[str, int] | None = None) -> Body:
        """The three loops over elements."""
        a, b, c = self.matrices
        steps = (self._reference(a, origins, self.inner), self._reference(b, origins, self.inner))
        outer, last = self.inner[:2], self.inner[2]
        if self.accumulator == "register" and last == "k":
            read, write = (self._reference(c, origins, outer, kind) for kind in ("read", "write"))
            body: Body = (*((read,) if self.reads_c else ()), Loop(last, sizes[last], steps), write)
        else:
            both = (self._reference(c, origins, self.inner, kind) for kind in ("read", "write"))
            body = (Loop(last, sizes[last], (*steps, *both)),)
        for dim in reversed(outer):
            body = (Loop(dim, sizes[dim], body),)
        return body

    def _reference(
        self, matrix: _Matrix, origins: Mapping[str, int] | None, inner: str, kind: Kind = "read"
    ) -> Reference:
        base = matrix.base + sum(matrix.strides.get(dim, 0) * start for dim, start in (origins or {}).items())
        over_tiles = [matrix.strides.get(dim, 0) * self.tile[dim] for dim in self.order]
        return Reference(matrix.name, base, (*over_tiles, *(matrix.strides.get(dim, 0) for dim in inner)), kind)


def walk_trace(
    layout: Layout, loops: str = "NCHW", itemsize: int = 4, tensor: str = "x", kind: Kind = "read", base: int = 0
) -> AffineTrace:
    """One access to each element of a tensor that lies as ``layout`` says; ``loops`` names its axes, outermost first.

    Raises LabError when ``loops`` is no permutation of the axes, or for an empty tensor.

    >>> walk = walk_trace(Layout.dense((1, 2, 1, 3), "NHWC"), "NCHW")
    >>> next(chunks(walk)).addresses.tolist()
    [0, 8, 16, 4, 12, 20]
    """
    if sorted(loops) != sorted(layout.axes):
        raise LabError(f"loops {loops!r}: each of the axes {', '.join(layout.axes)} once, outermost first")
    strides = tuple(layout.stride(axis) * itemsize if layout.length(axis) > 1 else 0 for axis in loops)
    body: Body = (Reference(tensor, base + layout.offset * itemsize, strides, kind),)
    for axis in reversed(loops):
        body = (Loop(axis, layout.length(axis), body),)
    return AffineTrace(body)


def place(elements: Mapping[str, int], itemsize: int, base: int, align: int) -> list[int]:
    """Where arrays of so many elements begin when they stand one behind the other, each at a multiple of ``align``."""
    starts = []
    for count in elements.values():
        base = -(-base // align) * align
        starts.append(base)
        base += count * itemsize
    return starts


def check_sizes(sizes: Mapping[str, int]) -> None:
    """Raise LabError for the first size below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise LabError(f"{name} is {size}: a size is at least 1")
