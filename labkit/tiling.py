"""Tiles on paper: the working set of a matmul tile, the largest square one, and the fewest bytes any schedule can move.

What a given schedule moves is ``LoopNest.traffic``; the bounds here hold for every schedule, tiled or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, isqrt, prod
from typing import get_args

from labkit.access import Axis
from labkit.errors import LabError
from labkit.loops import Buffers
from labkit.problems import LARGEST, Problem
from labkit.units import format_bytes

Tile = tuple[int, int, int]


def working_set_bytes(tile: Tile, itemsize: int = 4, buffers: Buffers = "single") -> int:
    """SRAM that a matmul tile needs: A + B + C; 2·A + 2·B + C with ``double`` buffers, twice all with ``double_all``.

    >>> [working_set_bytes((128, 128, 128), buffers=buffers) for buffers in ("single", "double", "double_all")]
    [196608, 327680, 393216]
    """
    if len(tile) != 3:
        raise LabError(f"tile {tile}: a matmul tile is three numbers, TM,TN,TK")
    for name, extent in zip(("TM", "TN", "TK"), tile, strict=True):
        _check_positive(f"tile: {name}", extent)
    _check_choice("buffers", buffers, get_args(Buffers))
    tm, tn, tk = tile
    inputs, outputs = (1 if buffers == "single" else 2), (2 if buffers == "double_all" else 1)
    return (inputs * (tm * tk + tk * tn) + outputs * tm * tn) * itemsize


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


@dataclass(frozen=True)
class Bounds:
    """Bytes, read and written together, that every schedule of a problem moves with an SRAM of one size.

    ``compulsory_bytes``: each used input element read once, the output written, however large the SRAM.

    The other two cut a schedule into segments in which a given number of bytes moves. In a segment, I, W and O
    elements of the three operands are on chip; they allow at most √(ρ·I·W·O) products, ρ being ``sharing``. For
    matmul (ρ = 1) that is the discrete Loomis-Whitney inequality. For a convolution it holds for each tap, and the
    Cauchy-Schwarz inequality adds the taps up; the same idea, up to constants, is in Demmel and Dinh,
    "Communication-optimal convolutional neural nets", arXiv:1802.06905, and in Chen, Han and Wang, "Communication
    lower bound in convolution accelerators", HPCA 2020, arXiv:1911.05662. With P products, item sizes i, w and o and
    S bytes of SRAM:

    ``irony_toledo_tiskin_bytes``: P·√(i·w·o / (8·ρ·S)) − S. For matmul, in words, m·n·k / (2·√2·√S) − S: Irony,
    Toledo and Tiskin, "Communication lower bounds for distributed-memory matrix multiplication", J. Parallel Distrib.
    Comput. 64(9), 2004, for one processor; a segment moves S. It sharpens the order of growth of Hong and Kung,
    "I/O complexity: the red-blue pebble game", STOC 1981.

    ``smith_bytes``: 2·P·√(i·w·o / (ρ·S)) − 2·S. For matmul, in words, 2·m·n·k / √S − 2·S: Smith, Lowery, Langou and
    van de Geijn, "A tight I/O lower bound for matrix multiplication", arXiv:1702.02017. A segment reads 2·S. It bounds
    the reads when the output is read before it is added to; one that starts at zero saves those first reads, but
    costs as many writes.
    """

    compulsory_bytes: int
    irony_toledo_tiskin_bytes: int
    smith_bytes: int

    @property
    def dram_bytes(self) -> int:
        """The largest of the three."""
        return max(self.compulsory_bytes, self.irony_toledo_tiskin_bytes, self.smith_bytes)


def bounds(problem: Problem, sram_bytes: int) -> Bounds:
    """The three bounds; LabError when one element of each operand does not fit.

    The inequality wants two inputs, and every loop but the taps in at least two of the three operands. A problem of
    another form, such as a copy, has the compulsory floor only.

    >>> from labkit.problems import matmul
    >>> bounds(matmul(1024, 1024, 1024), 512 * 1024)
    Bounds(compulsory_bytes=12582912, irony_toledo_tiskin_bytes=3670016, smith_bytes=22677990)
    """
    operands = (*problem.inputs, problem.output)
    sizes = [operand.itemsize for operand in operands]
    if problem.tail:  # sums may be narrower in DRAM than on chip
        sizes[-1] = min(sizes[-1], problem.tail.writes[-1])
    if sram_bytes < sum(sizes):
        raise LabError(
            f"SRAM of {format_bytes(sram_bytes)}: one element of each of "
            f"{', '.join(operand.name for operand in operands)} must fit, {sum(sizes)} bytes"
        )
    if not _has_products(problem):
        return Bounds(problem.compulsory_bytes, 0, 0)
    usable_bytes = sram_bytes - sram_bytes % gcd(*sizes)
    square, room = products(problem) ** 2 * prod(sizes), sharing(problem) * usable_bytes
    return Bounds(  # whole numbers all the way: no size is too large for them, and rounding down keeps a bound a bound
        problem.compulsory_bytes,
        max(isqrt(square // (8 * room)) - usable_bytes, 0),
        max(isqrt(4 * square // room) - 2 * usable_bytes, 0),
    )


def bound_bytes(problem: Problem, sram_bytes: int) -> int:
    """The best of the bounds.

    >>> from labkit.problems import matmul
    >>> bound_bytes(matmul(1024, 1024, 1024), 512 * 1024)
    22677990
    """
    return bounds(problem, sram_bytes).dram_bytes


def products(problem: Problem) -> int:
    """Multiplications of a weight with an element that exists: one with padding needs no data, so it is left out.

    >>> from labkit.problems import ConvShape, conv
    >>> products(conv(ConvShape(1, 1, 2, 2, 1, (3, 3), pads=(1, 1, 1, 1))))  # 4 outputs, each sees all 4 inputs
    16
    """
    windows = _windows(problem)
    covered = {loop for axis in windows for loop in axis.loops}
    plain = prod(extent for loop, extent in problem.loops.items() if loop not in covered)
    return plain * prod(_inside(axis, problem) for axis in windows)


def sharing(problem: Problem) -> int:
    """ρ, the most taps of a window that can use one input element: 1 for matmul, R·S for a convolution of stride 1.

    Taps r and r' reach the same element only if (r − r')·dilation is a multiple of the stride.
    """
    return prod(_taps_per_element(axis, problem) for axis in _windows(problem))


def _windows(problem: Problem) -> list[Axis]:
    return [axis for operand in problem.inputs for axis in operand.axes if not axis.is_plain]


def _taps_per_element(axis: Axis, problem: Problem) -> int:
    (base, stride), *taps = axis.terms
    if not taps:
        return 1
    (tap, dilation), *others = taps
    common = gcd(stride, dilation)
    by_tap = -(-problem.loops[tap] * common // stride)
    by_base = -(-problem.loops[base] * common // dilation)
    return min(by_tap, by_base) * prod(problem.loops[loop] for loop, _ in others)


def _inside(axis: Axis, problem: Problem) -> int:
    """How many index combinations of a window axis select a position inside the tensor."""
    shorter, longest = axis.terms[:-1], axis.terms[-1]
    if problem.loops[axis.loops[0]] > problem.loops[axis.loops[-1]]:
        shorter, longest = axis.terms[1:], axis.terms[0]
    combinations = prod(problem.loops[loop] for loop, _ in shorter)
    if combinations > _MOST_TAPS:
        raise LabError(f"{combinations:,} taps of a window along one axis; labkit counts up to {_MOST_TAPS:,}")
    shifts = [axis.offset]
    for loop, coefficient in shorter:
        shifts = [shift + coefficient * i for shift in shifts for i in range(problem.loops[loop])]
    loop, step = longest
    last = problem.loops[loop] - 1
    intervals = ((max(-(shift // step), 0), min((axis.extent - 1 - shift) // step, last)) for shift in shifts)
    return sum(max(high - low + 1, 0) for low, high in intervals)


_MOST_TAPS = 1_000_000


def _has_products(problem: Problem) -> bool:
    taps = {loop for axis in _windows(problem) for loop in axis.loops[1:]}
    plain = [loop for loop, extent in problem.loops.items() if extent > 1 and loop not in taps]
    operands = (*problem.inputs, problem.output)
    return len(problem.inputs) == 2 and all(sum(loop in x.loops for x in operands) > 1 for loop in plain)


def _check_positive(what: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
        raise LabError(f"{what} is {value!r:.40}: it must be a whole number from 1 to {LARGEST:,}")


def _check_choice(what: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise LabError(f"{what} {value!r}: choose one of {', '.join(map(str, choices))}")
