"""What the first operator of a kernel does with the elements it combines: how a sum starts, grows and is finished.

A product adds up; so do averages and norms, each with something before or after; extremes keep the larger or smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from labkit.graph import Array, Node

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

    def empty(self, dtype: np.dtype[Any]) -> Any:
        """What a sum of this type starts from."""
        if np.isfinite(self.start) or dtype.kind == "f":
            return dtype.type(self.start)
        return np.iinfo(dtype).max if self.start > 0 else np.iinfo(dtype).min


def _exponent(node: Node) -> float:
    return float(node.attrs.get("p", 2))


_MEAN = Arithmetic("{y} += {x}", end="{y} /= number of elements")
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
