"""A tiled matrix product on paper: its working set, the bytes it moves, and the fewest that any schedule can move.

The closed forms here know nothing of the kernels; the tests hold the two equal, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt, prod
from typing import Literal, get_args

from labkit.errors import LabError
from labkit.memory.ledger import Traffic

CPolicy = Literal["store", "load_store", "spill"]
Buffers = Literal["single", "double"]
Tile = tuple[int, int, int]

# The dimensions that index each operand: a loop over the third one does not move its tile.
OPERANDS = {"A": "mk", "B": "kn", "C": "mn"}
_LARGEST = 2**63 - 1  # an extent of an array is a signed 64-bit number, in NumPy and in ONNX


@dataclass(frozen=True)
class Matmul:
    """The product C[m,n] = A[m,k] · B[k,n], with elements of ``itemsize`` bytes in all three.

    Raises LabError for a size that is not a positive whole number.

    >>> Matmul(1024, 1024, 1024).flops, Matmul(1024, 1024, 1024).compulsory_bytes
    (2147483648, 12582912)
    """

    m: int
    n: int
    k: int
    itemsize: int = 4

    def __post_init__(self) -> None:
        for name in ("m", "n", "k", "itemsize"):
            _check_positive(f"matmul: {name}", getattr(self, name))

    @property
    def flops(self) -> int:
        """One multiplication and one addition for each (m, n, k)."""
        return 2 * self.m * self.n * self.k

    def operand_bytes(self, operand: str) -> int:
        """Size in bytes of the whole matrix ``"A"``, ``"B"`` or ``"C"``."""
        extents: list[int] = [getattr(self, dim) for dim in OPERANDS[operand]]
        return prod(extents) * self.itemsize

    @property
    def compulsory_bytes(self) -> int:
        """What any schedule moves even with unlimited SRAM: A and B read once, C written once."""
        return sum(map(self.operand_bytes, OPERANDS))

    def bound_bytes(self, sram_bytes: int) -> int:
        """Bytes that every schedule moves, read and written together, with an SRAM of this size.

        The larger of the compulsory bytes and 2·m·n·k/√S − 2·S words, S being the SRAM in words (Smith, Lowery,
        Langou, van de Geijn, "A tight I/O lower bound for matrix multiplication", arXiv:1702.02017). They bound the
        reads when C is read before it is added to; a C that starts at zero saves m·n reads but still costs m·n writes.

        >>> Matmul(1024, 1024, 1024).bound_bytes(512 * 1024)
        22677990
        """
        words = sram_bytes // self.itemsize
        if words < 3:
            raise LabError(
                f"SRAM of {sram_bytes} bytes: one {self.itemsize}-byte element of each of A, B and C must fit"
            )
        square_bytes = (self.flops * self.itemsize) ** 2 // words  # whole numbers: no size is too large for them
        return max(self.compulsory_bytes, isqrt(square_bytes) - 2 * words * self.itemsize)


@dataclass(frozen=True)
class MatmulSchedule:
    """How a product is cut and walked: the tile (TM, TN, TK), and the order of the loops over tiles, outermost first.

    ``c_policy``: ``store`` starts C at zero, ``load_store`` adds to the C in DRAM, ``spill`` also does, and keeps no
    accumulator on chip: C is read and written at each step. ``buffers="double"`` holds two tiles of A and of B, so
    that the next arrive while these are in use; it takes more room and moves the same bytes.

    Raises LabError for a tile that is not three positive numbers, and for an unknown order, policy or buffering.
    """

    tile: Tile
    order: str = "mnk"
    c_policy: CPolicy = "store"
    buffers: Buffers = "single"

    def __post_init__(self) -> None:
        if len(self.tile) != 3:
            raise LabError(f"tile {self.tile}: a matmul tile is three numbers, TM,TN,TK")
        for name, extent in zip(("TM", "TN", "TK"), self.tile, strict=True):
            _check_positive(f"tile: {name}", extent)
        if sorted(self.order) != ["k", "m", "n"]:
            raise LabError(f"loop order {self.order!r}: write m, n and k once each, outermost first, for example mnk")
        _check_choice("C policy", self.c_policy, get_args(CPolicy))
        _check_choice("buffers", self.buffers, get_args(Buffers))

    def clipped_to(self, problem: Matmul) -> MatmulSchedule:
        """This schedule with its tile cut down to the problem; the very same object when nothing had to be cut."""
        tm, tn, tk = self.tile
        tile = (min(tm, problem.m), min(tn, problem.n), min(tk, problem.k))
        return self if tile == self.tile else replace(self, tile=tile)

    def trips(self, problem: Matmul) -> dict[str, int]:
        """Number of tiles along each dimension, the last of which may be smaller."""
        tiles = dict(zip("mnk", self.tile, strict=True))
        return {dim: -(-getattr(problem, dim) // tiles[dim]) for dim in "mnk"}


def working_set_bytes(tile: Tile, itemsize: int = 4, buffers: Buffers = "single") -> int:
    """SRAM that a tile needs: A + B + C, or 2·A + 2·B + C when the operands are double buffered.

    >>> working_set_bytes((128, 128, 128)), working_set_bytes((128, 128, 128), buffers="double")
    (196608, 327680)
    """
    tm, tn, tk = MatmulSchedule(tile, buffers=buffers).tile
    copies = 2 if buffers == "double" else 1
    return (copies * (tm * tk + tk * tn) + tm * tn) * itemsize


def largest_square_tile(sram_bytes: int, itemsize: int = 4, tiles: int = 3) -> int:
    """The largest T such that ``tiles`` tiles of T×T fit: 3, or 5 with A and B double buffered, or 6 with C too.

    >>> [largest_square_tile(512 * 1024, tiles=tiles) for tiles in (3, 5, 6)]
    [209, 161, 147]
    """
    _check_choice("number of resident tiles", tiles, (3, 5, 6))
    _check_positive("itemsize", itemsize)
    side = isqrt(max(sram_bytes, 0) // (tiles * itemsize))
    if side < 1:
        raise LabError(f"SRAM of {sram_bytes} bytes: {tiles} tiles of one {itemsize}-byte element do not fit")
    return side


def operand_traffic(problem: Matmul, schedule: MatmulSchedule) -> dict[str, Traffic]:
    """Bytes and transfers of A, B and C under the scratchpad model: each operand has one resident tile.

    A tile leaves when another of the same operand is needed. A loop that does not index an operand leaves its tile in
    place only when no loop inside it moves the tile; else the whole operand comes again at each of its trips.
    """
    schedule = schedule.clipped_to(problem)
    trips = schedule.trips(problem)
    traffic = {}
    for name, dims in OPERANDS.items():
        (absent,) = set("mnk") - set(dims)
        inside = schedule.order[schedule.order.index(absent) + 1 :]
        passes = trips[absent] if any(trips[dim] > 1 for dim in inside) else 1
        if name == "C" and schedule.c_policy == "spill":
            passes = trips[absent]
        reads = passes if name != "C" or schedule.c_policy != "store" else passes - 1
        writes = passes if name == "C" else 0
        tiles, nbytes = trips[dims[0]] * trips[dims[1]], problem.operand_bytes(name)
        traffic[name] = Traffic(reads * nbytes, writes * nbytes, reads * tiles, writes * tiles)
    return traffic


def modelled_traffic(problem: Matmul, schedule: MatmulSchedule) -> Traffic:
    """The sum of ``operand_traffic`` over A, B and C.

    >>> modelled_traffic(Matmul(1024, 1024, 1024), MatmulSchedule((128, 128, 128)))
    Traffic(read_bytes=67108864, write_bytes=4194304, reads=1024, writes=64)
    """
    return sum(operand_traffic(problem, schedule).values(), Traffic())


def _check_positive(what: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGEST:
        raise LabError(f"{what} is {value!r:.40}: it must be a whole number from 1 to {_LARGEST:,}")


def _check_choice(what: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise LabError(f"{what} {value!r}: choose one of {', '.join(map(str, choices))}")
