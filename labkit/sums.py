"""What the first operator of a kernel does with the elements it combines: how a sum starts, grows and is finished.

A product adds up; so do averages and norms, each with something before or after; extremes keep the larger or smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from labkit.frames import dims
from labkit.graph import Array, Node
from labkit.ops.windows import Window
from labkit.problems import Problem

Function: TypeAlias = Callable[[Array, Node], Array]


@dataclass(frozen=True)
class Arithmetic:
    """``combine`` joins two partial results, of elements that went through ``prepare``; ``finish`` ends it. A result
    without elements is ``start``; ``step`` and ``end`` write all that down, y being the result, x an element and w its
    weight."""

    step: str
    combine: np.ufunc = np.add
    start: float = 0.0
    prepare: Function = lambda x, node: x
    finish: Function = lambda y, node: y
    end: str = ""
    is_mean: bool = False

    def empty(self, dtype: np.dtype[Any]) -> Any:
        """What a sum of this type starts from."""
        if np.isfinite(self.start) or dtype.kind == "f":
            return dtype.type(self.start)
        return np.iinfo(dtype).max if self.start > 0 else np.iinfo(dtype).min


def _exponent(node: Node) -> float:
    return float(node.attrs.get("p", 2))


_MEAN = Arithmetic("{y} += {x}", end="{y} /= number of elements", is_mean=True)
_MAX = Arithmetic("{y} = max({y}, {x})", np.maximum, -np.inf)
TABLE: dict[str, Arithmetic] = {
    **dict.fromkeys(("Conv", "MatMul", "Gemm"), Arithmetic("{y} += {x} * {w}")),
    **dict.fromkeys(("AveragePool", "GlobalAveragePool", "ReduceMean"), _MEAN),
    **dict.fromkeys(("MaxPool", "GlobalMaxPool", "ReduceMax"), _MAX),
    "ReduceMin": Arithmetic("{y} = min({y}, {x})", np.minimum, np.inf),
    "ReduceProd": Arithmetic("{y} *= {x}", np.multiply, 1.0),
    "ReduceSum": Arithmetic("{y} += {x}"),
    "ReduceL1": Arithmetic("{y} += |{x}|", prepare=lambda x, node: np.abs(x)),
    "ReduceL2": Arithmetic(
        "{y} += {x} * {x}", prepare=lambda x, node: x * x, finish=lambda y, node: np.sqrt(y), end="{y} = sqrt({y})"
    ),
    "ReduceSumSquare": Arithmetic("{y} += {x} * {x}", prepare=lambda x, node: x * x),
    "ReduceLogSum": Arithmetic("{y} += {x}", finish=lambda y, node: np.log(y), end="{y} = log({y})"),
    "ReduceLogSumExp": Arithmetic(
        "{y} += exp({x})", prepare=lambda x, node: np.exp(x), finish=lambda y, node: np.log(y), end="{y} = log({y})"
    ),
    "LpPool": Arithmetic(
        "{y} += |{x}| ** p",
        prepare=lambda x, node: np.abs(x) ** _exponent(node),
        finish=lambda y, node: y ** (1 / _exponent(node)),
        end="{y} = {y} ** (1 / p)",
    ),
}


def elements(node: Node, problem: Problem, ranges: Mapping[str, range]) -> Array:
    """How many elements a mean is of, for each place of a tile; padding counts in a window only when asked to."""
    if not node.op.endswith("AveragePool") or node.op.startswith("Global"):
        return np.array(prod(problem.loops[loop] for loop in problem.reductions))
    window, sizes = Window.of(node.attrs, node.attrs["kernel_shape"]), dims(node.uses[0])[2:]
    counts = np.ones((1, 1))
    for axis, (before, after) in enumerate(window.pads(sizes)):
        low, high = (-before, sizes[axis] + after) if node.attrs.get("count_include_pad", 0) else (0, sizes[axis])
        places = ranges.get("pq"[axis - len(sizes)], range(1))
        starts = np.arange(places.start, places.stop) * window.strides[axis] - before
        at = np.add.outer(starts, np.arange(window.kernel[axis]) * window.dilations[axis])
        counts = counts[..., None] * ((at >= low) & (at < high)).sum(axis=1)
    return counts
