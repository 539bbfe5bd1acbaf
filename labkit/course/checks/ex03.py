"""Exercise 03, fusion: round trips counted, two fused kernels, what fits, which nodes may be one kernel, and which
kernels move the fewest bytes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from labkit.course.checking import Part
from labkit.course.checks.ex03_depth import depth_first
from labkit.course.checks.ex03_graphs import check_may_be_one, kernel_bytes
from labkit.course.checks.ex03_kernels import check_fused_block, check_fused_matmul
from labkit.course.checks.ex03_split import check_kernels, trunk
from labkit.course.checks.plain import wholes
from labkit.course.checks.question import Question, Slip
from labkit.graph import Graph

_KERNELS = ("labkit.kernels",)
_ON_PAPER = (*_KERNELS, "labkit.passes", "labkit.costing", "labkit.planning", "labkit.lowering", "labkit.problems")
_GRAPHS = (*_ON_PAPER, "labkit.bodies", "labkit.scheduling")


@dataclass(frozen=True)
class Given:
    """One student's feature map, and a graph to split into kernels."""

    shape: tuple[int, int, int]
    graph: Graph
    sram_bytes: int


def given(draw: Random) -> Given:
    """A feature map, and a graph with an SRAM in which taking as much as fits is not the best."""
    edge, case = draw.randrange(28, 113, 4), trunk(draw)
    return Given((draw.randrange(16, 129, 8), edge, edge), case.graph, case.sram_bytes)


# ---- 3.1 the unfused chain


def _volume(shape: tuple[int, ...], itemsize: int) -> int:
    channels, height, width = shape
    return channels * height * width * itemsize


unfused = Question(
    "unfused",
    lambda draw: (
        (draw.randrange(3, 100), draw.randrange(5, 60), draw.randrange(5, 60)),
        draw.choice([2, 4, 8]),
        draw.randrange(3, 8),
    ),
    lambda shape, i, k: (k, 2 * (k - 1) * _volume(shape, i)),
    (
        Slip(
            lambda s, i, k: (k, (k - 1) * _volume(s, i)),
            "each of them moves once here; one kernel writes it, and who moves it again?",
        ),
        Slip(
            lambda s, i, k: (k, (2 * k - 1) * _volume(s, i)),
            "the result of the last kernel is among them; no kernel of the chain reads that.",
        ),
        Slip(
            lambda s, i, k: (k, 2 * k * _volume(s, i)),
            "as many tensors as kernels; how many lie between them?",
        ),
        Slip(
            lambda s, i, k: (k - 1, 2 * (k - 1) * _volume(s, i)),
            "those are the gaps between kernels; how many kernels are started?",
        ),
        Slip(
            lambda s, i, k: (2 * (k - 1) * _volume(s, i),) * 2,
            "bytes for launches: a launch costs the same whatever the size of the tensor, so count kernels.",
        ),
        Slip(
            lambda s, i, k: (2 * (k - 1), 2 * (k - 1) * _volume(s, i)),
            "those are the transfers of tensors; launches are a counter of their own: one a kernel.",
        ),
        Slip(
            lambda s, i, k: (1, 2 * (k - 1) * _volume(s, i)),
            "one launch is what the fused kernel has; this is unfused.",
        ),
        Slip(lambda s, i, k: (k, 2 * (k - 1) * _volume(s, 1)), "these are elements; bytes are asked."),
        Slip(lambda s, i, k: (k, 2 * (k - 1) * _volume(s, i) // 1024), "in bytes, please, not in KiB."),
        Slip(lambda s, i, k: (2 * (k - 1) * _volume(s, i), k), "launches first, then bytes."),
        Slip(lambda s, i, k: (k, 0), "that is the fused chain; unfused, each kernel finds its input in DRAM."),
    ),
    "count the kernels; then the tensors that lie between two of them, and how often each moves.",
    wholes,
)


# ---- 3.4 the working set of a fused kernel


def _parts(c: int, f: int, rows: int, width: int, taps: int, residuals: int) -> dict[str, int]:
    """Elements on chip, by what they are of."""
    block = f * rows * width
    return {
        "x": c * (rows + taps - 1) * (width + taps - 1),
        "w": f * c * taps * taps,
        "y": block,
        "residuals": residuals * block,
        "vectors": 2 * f,
    }


def _held(*arguments: int) -> int:
    return sum(_parts(*arguments[:-1]).values()) * arguments[-1]


def _without(name: str) -> Any:
    return lambda *arguments: _held(*arguments) - _parts(*arguments[:-1])[name] * arguments[-1]


def _with(name: str, times: int = 1) -> Any:
    return lambda *arguments: _held(*arguments) + times * _parts(*arguments[:-1])[name] * arguments[-1]


def _image(rows: int, columns: int) -> Any:
    """The working set with an image that has so many rows and columns of halo in place of taps − 1."""

    def held(*arguments: int) -> int:
        c, _, block_rows, width, taps, _, itemsize = arguments
        image = c * (block_rows + rows * (taps - 1)) * (width + columns * (taps - 1))
        return _held(*arguments) + (image - _parts(*arguments[:-1])["x"]) * itemsize

    return held


working_set = Question(
    "fused_working_set",
    lambda draw: (
        draw.randrange(3, 40),
        draw.randrange(3, 40),
        draw.randrange(2, 9),
        draw.randrange(10, 60),
        draw.choice([3, 5]),
        draw.randrange(1, 4),
        draw.choice([2, 4]),
    ),
    _held,
    (
        Slip(_without("residuals"), "the residuals are forgotten: a block of each is added to a block of y."),
        Slip(_without("vectors"), "scale and shift are forgotten: they are small, and still on chip."),
        Slip(_without("w"), "the weights are forgotten: every block needs all of them."),
        Slip(_without("y"), "the block of y is forgotten: where are the products added up?"),
        Slip(_without("x"), "the block of x is forgotten."),
        Slip(_image(0, 1), "x has as many rows here as y; which rows of it do the taps see?"),
        Slip(_image(0, 0), "x is as large here as y; which rows and columns of it do the taps see?"),
        Slip(_image(1, 0), "x is as wide here as y; how many columns do the taps see?"),
        Slip(_image(2, 1), "too much halo: for one output row, how many rows of x do the taps see?"),
        Slip(_with("y", 2), "y three times; scale, shift and ReLU may overwrite the sums where they are."),
        Slip(_with("y"), "y twice; what is done to the sums may overwrite them where they are."),
        Slip(lambda *a: _held(*a) + (2 * a[1] * a[2] * a[3] - 2 * a[1]) * a[-1],
             "scale and shift are as large as blocks here; they have one number for each filter."),
        Slip(lambda *a: _held(*a) - a[1] * a[-1], "one vector only; there are a scale and a shift."),
        Slip(lambda *a: _held(*a) // a[-1], "these are elements; an SRAM is measured in bytes."),
    ),
    "write down the shape of each of x, w, y, the residuals and the two vectors as they are on chip for one block.",
)  # fmt: skip


PARTS = {
    "3.1": Part("launches and bytes of an unfused chain", 2, "unfused", unfused, _ON_PAPER),
    "3.2": Part("product, bias and ReLU as one kernel", 4, "fused_matmul", check_fused_matmul, _KERNELS),
    "3.3": Part("a residual block as one kernel", 4, "fused_block", check_fused_block, _KERNELS),
    "3.4": Part("working set of a fused kernel", 2, "fused_working_set", working_set, _ON_PAPER),
    "3.5": Part("what a kernel moves", 2, "kernel_bytes", kernel_bytes, _GRAPHS),
    "3.6": Part("which nodes may be one kernel", 3, "may_be_one_kernel", check_may_be_one, _GRAPHS),
    "3.7": Part("depth first: computed twice, moved never", 2, "depth_first", depth_first, _ON_PAPER),
    "3.8": Part("the kernels that move the fewest bytes", 3, "kernels", check_kernels, _GRAPHS),
}
