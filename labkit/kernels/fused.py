"""Fusion: a kernel and the elementwise ops behind it, run as separate kernels or as one (spec §4.1 to 4.3).

Fused, the ops run on the resident output tile right before it is stored: their intermediate tensors never exist in
DRAM. That needs whole sums, so an order in which the output leaves unfinished is refused. Bytes and launches are two
separate counters: fusion lowers both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import erf, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.access import Operand
from labkit.kernels.elementwise import ElementwiseOp, check_operands, is_broadcast, run_unfused
from labkit.kernels.nest import check_fusible, run_nest
from labkit.loops import LoopNest
from labkit.memory.ledger import Traffic
from labkit.memory.scratchpad import Scratchpad

Array = NDArray[Any]


@dataclass(frozen=True)
class Chain:
    """A nest, and ops on its output; ``own`` ops, such as adding a bias, are part of the nest's kernel in either case.

    Other operands of an op lie in memory as the output does. Raises LabError for operands that do not fit it.

    >>> from labkit.problems import matmul
    >>> chain = Chain(LoopNest.of(matmul(8, 8, 8)), (relu(),))
    >>> chain.unfused_traffic.nbytes - chain.fused_traffic.nbytes, chain.launches(fused=False)
    (512, 2)
    """

    nest: LoopNest
    ops: tuple[ElementwiseOp, ...]
    own: tuple[ElementwiseOp, ...] = ()

    def __post_init__(self) -> None:
        check_operands((*self.own, *self.ops), self.nest.problem.output.shape)

    def run(self, arrays: Mapping[str, Array], pad: Scratchpad, *, fused: bool, name: str = "kernel") -> Array:
        """Run it, in one kernel or in one kernel and one for each op; both walk the output tiles alike.

        Raises SramOverflow when the tiles do not fit, LabError for a nest that ops cannot be fused into.
        """
        if fused:
            return run_nest(self.nest, arrays, pad, name=name, epilogue=(*self.own, *self.ops))
        output = self.nest.problem.output
        y = run_nest(self.nest, arrays, pad, name=name, epilogue=self.own)
        tile = tuple(self.nest.tiles[axis.loops[0]] for axis in output.axes)
        places = {axis.loops[0]: i for i, axis in enumerate(output.axes)}
        order = [places[loop] for loop in self.nest.order if loop in places]
        return run_unfused(y, self.ops, pad, tile, self.own[-1].output if self.own else output.name, order)

    def launches(self, *, fused: bool) -> int:
        """Kernels that run."""
        return 1 if fused else 1 + len(self.ops)

    @property
    def fused_traffic(self) -> Traffic:
        """Bytes and transfers as one kernel, in closed form; LabError when it cannot be one."""
        check_fusible(self.nest, (*self.own, *self.ops))
        return self.nest.traffic + self._others_traffic

    @property
    def unfused_traffic(self) -> Traffic:
        """Bytes and transfers as separate kernels: each op also reads what the one before it wrote."""
        output = self.nest.problem.output
        tiles = prod(self.nest.trips[loop] for loop in output.loops)
        one_op = Traffic(output.nbytes, output.nbytes, tiles, tiles)
        return sum([one_op] * len(self.ops), self.nest.traffic + self._others_traffic)

    @property
    def _others_traffic(self) -> Traffic:
        """The traffic of the ops' other operands, which come when an output tile is finished."""
        reductions = self.nest.problem.reductions
        walk = (*(loop for loop in self.nest.order if loop not in reductions), *reductions)
        finished = replace(self.nest, order=walk)
        operands = (self._operand(name, array) for name, array in self._others())
        return sum(map(finished.input_traffic, operands), Traffic())

    @property
    def saved_bytes(self) -> int:
        """What fusion saves: the whole output, written and read, for each op. LabError when it cannot be fused."""
        return self.unfused_traffic.nbytes - self.fused_traffic.nbytes

    @property
    def working_set_bytes(self) -> int:
        """SRAM of the fused kernel: the nest's, broadcast operands throughout, full ones while their op runs."""
        shape = self.nest.problem.output.shape
        held = {name: array for name, array in self._others() if is_broadcast(array, shape)}
        full = [
            sum(self.nest.tile_bytes(self._operand(*item)) for item in op.others.items() if item[0] not in held)
            for op in (*self.own, *self.ops)
        ]
        stays = sum(self.nest.tile_bytes(self._operand(*item)) for item in held.items())
        return self.nest.working_set_bytes + stays + max(full, default=0)

    def _others(self) -> list[tuple[str, Array]]:
        return [item for op in (*self.own, *self.ops) for item in op.others.items()]

    def _operand(self, name: str, array: Array) -> Operand:
        """An operand of an op as an input of the nest: broadcast axes are not its own."""
        axes = self.nest.problem.output.axes
        own = tuple(axis for axis, length in zip(axes, array.shape, strict=True) if length == axis.extent)
        return Operand(name, own, array.dtype.name)


def batch_norm(
    scale: Array, shift: Array, mean: Array, variance: Array, epsilon: float = 1e-5, name: str = "bn"
) -> ElementwiseOp:
    """Inference-mode BatchNormalization (ONNX), with the four stored vectors as operands."""

    def apply(x: Array, scale: Array, shift: Array, mean: Array, variance: Array) -> Array:
        return np.asarray((x - mean) / np.sqrt(variance + np.asarray(epsilon, variance.dtype)) * scale + shift)

    parts = {"scale": scale, "shift": shift, "mean": mean, "variance": variance}
    return ElementwiseOp(name, f"{name}_out", apply, {f"{name}_{key}": array for key, array in parts.items()})


def add(other: Array, name: str = "add", operand: str = "residual") -> ElementwiseOp:
    """Add a tensor: a residual, or a bias that is broadcast."""
    return ElementwiseOp(name, f"{name}_out", np.add, {operand: other})


def relu(name: str = "relu") -> ElementwiseOp:
    """max(x, 0)."""
    return ElementwiseOp(name, f"{name}_out", lambda x: np.maximum(x, x.dtype.type(0)))


def gelu(name: str = "gelu") -> ElementwiseOp:
    """x · Φ(x), Φ being the normal distribution (Hendrycks, Gimpel, arXiv:1606.08415; ONNX Gelu, approximate=none)."""
    error_function = np.vectorize(erf, otypes=[np.float64])
    return ElementwiseOp(name, f"{name}_out", lambda x: x * (1 + error_function(x / sqrt(2))) / 2)
