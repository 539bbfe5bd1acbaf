"""Lesson 04: folding that bloats a file. Subgraphs of constants, folded without a limit, with one, and not at all.

``data`` is the picture as a value; ``show`` is the live view of it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.costing import cost
from labkit.errors import LabError
from labkit.graph import Array, Graph
from labkit.hardware import Hardware
from labkit.passes.dead import eliminate_dead
from labkit.passes.fold import FoldConstant
from labkit.passes.pipeline import optimize
from labkit.passes.rewriting import Sweep
from labkit.units import KIB, format_bytes, format_seconds

if TYPE_CHECKING:
    from labkit.explore.bloat_view import BloatView
    from labkit.explore.panel import HardwareState

# What stands in front of y = x + c, for x of n×n.
FORMS = {
    "one number, spread": "c = ConstantOfShape <value: tensor = float[1] {0.5}> (shape)",
    "column × row": "c = Mul(column, row)",
    "sums of rows": "c = ReduceSum(table, axis)",
}
VERSIONS = ("as it is", "folded, no limit", "folded, limit", "labkit, basic")
LIMITS_KIB = (0, 16, 64, 256, 1024, 4096)
LARGEST = 1024
_NO_LIMIT = 2**62


@dataclass(frozen=True)
class Version:
    """One way to treat the graph: what it is called, the graph, the bytes of its file, and why nothing was folded."""

    name: str
    graph: Graph
    file_bytes: int
    refusal: str = ""


@dataclass(frozen=True)
class BloatState:
    """A subgraph of constants for tensors of side×side, its versions, on a machine."""

    form: str
    side: int
    limit_kib: int
    hardware: Hardware

    @property
    def versions(self) -> tuple[Version, ...]:
        """In the order of VERSIONS."""
        original, limited = _graph(self.form, self.side), FoldConstant(self.limit_kib * KIB)
        basic = _basic(self.form, self.side)
        kept = _file_bytes(original)
        return (
            Version(VERSIONS[0], original, kept),
            self._folded(VERSIONS[1], FoldConstant(_NO_LIMIT)),
            self._folded(VERSIONS[2], limited),
            Version(VERSIONS[3], basic, _file_bytes(basic)),
        )

    def _folded(self, name: str, rule: FoldConstant) -> Version:
        sweep, graph = Sweep("fold", {"*": (rule,)}), _graph(self.form, self.side)
        folded = eliminate_dead(sweep(graph))
        refusals = "; ".join(f"{r.guard}: {r.why}" for r in sweep.refusals(graph))
        return Version(name, folded, _file_bytes(folded), refusals)

    @cached_property
    def measured(self) -> tuple[tuple[str, int, int, float, str], ...]:
        """For each version: name, bytes of the file, bytes of DRAM traffic and seconds of one inference, refusal."""
        costs = [(version, cost(version.graph, self.hardware)) for version in self.versions]
        return tuple((v.name, v.file_bytes, c.dram_bytes, c.time_s, v.refusal) for v, c in costs)

    @property
    def still(self) -> Hashable:
        """Only bars and words move."""
        return "bloat"

    @property
    def sentence(self) -> str:
        """The state in words."""
        lines = [f"{self.form}, {self.side}×{self.side} float32, limit {self.limit_kib} KiB, {self.hardware.name}."]
        for name, file_bytes, dram_bytes, time_s, refusal in self.measured:
            said = f" Refused, {refusal}." if refusal else ""
            sizes = f"file {format_bytes(file_bytes)}, DRAM {format_bytes(dram_bytes)}"
            lines.append(f"{name}: {sizes}, {format_seconds(time_s)}.{said}")
        return "\n".join(lines)


def _file_bytes(graph: Graph) -> int:
    """Bytes of the graph as ``labkit.save`` writes it."""
    from labkit import wire
    from labkit.onnx_io import to_model

    weights = {name: array for name, array in graph.constants.items() if wire.is_large(array)}
    file = BytesIO()
    wire.write(to_model(graph, without=weights), weights, file)
    return file.tell()


@lru_cache(maxsize=8)
def _graph(form: str, side: int) -> Graph:
    import onnx

    from labkit.onnx_io import from_model

    text = f"graph (float[{side}, {side}] x) => (float[{side}, {side}] y) {{ {FORMS[form]} y = Add(x, c) }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    for name, array in _constants(form, side).items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return from_model(model)


def _constants(form: str, side: int) -> dict[str, Array]:
    line = np.linspace(0.5, 1.5, side, dtype=np.float32)
    if form == "one number, spread":
        return {"shape": np.array([side, side])}
    if form == "column × row":
        return {"column": line[:, None], "row": line[None, :]}
    return {"table": np.outer(line, line).astype(np.float32), "axis": np.array([1])}


@lru_cache(maxsize=8)
def _basic(form: str, side: int) -> Graph:
    return optimize(_graph(form, side)).graph


def data(
    form: str = "one number, spread",
    side: int = LARGEST,
    limit_kib: int = 64,
    hardware: Hardware | None = None,
) -> BloatState:
    """The versions of one form for tensors of side×side; ``limit_kib`` is how large a folded result may be.

    Raises LabError for a form that is none and for sizes out of range.
    """
    if form not in FORMS:
        raise LabError(f"no form {form!r}; there are: {', '.join(FORMS)}")
    if not 1 <= side <= LARGEST:
        raise LabError(f"side is {side}; from 1 to {LARGEST} would do")
    if limit_kib < 0:
        raise LabError(f"the limit is {limit_kib} KiB; at least 0 would do")
    return BloatState(form, side, limit_kib, hardware or Hardware.preset(Hardware.presets()[0]))


def show(state: HardwareState | None = None, **settings: Any) -> BloatView:
    """The live bars on the machine of a panel; ``settings`` are where the controls start."""
    from labkit.explore.bloat_view import BloatView
    from labkit.explore.panel import HardwareState

    return BloatView(HardwareState() if state is None else state).set(**settings)
