"""Any loop nest of any problem, really run on a Scratchpad: NumPy's result, and every transfer in the ledger.

Results equal the obvious program's up to the rounding of another order of summation: for each output element at most
k · eps · Σ|products|, k being the number of products and eps the machine epsilon of the accumulator (Higham, *Accuracy
and Stability of Numerical Algorithms*, §3.5). Integers are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.access import Operand
from labkit.errors import LabError
from labkit.kernels.elementwise import ElementwiseOp, Epilogue
from labkit.kernels.multiply import Multiply
from labkit.kernels.resident import InputTile, OutputTile
from labkit.loops import LoopNest
from labkit.memory.scratchpad import Scratchpad

Array = NDArray[Any]


def run_nest(
    nest: LoopNest,
    arrays: Mapping[str, Array],
    pad: Scratchpad,
    output: Array | None = None,
    name: str = "kernel",
    epilogue: Sequence[ElementwiseOp] = (),
) -> Array:
    """Run a nest as one kernel. ``arrays`` are the inputs in DRAM by operand name; the output is new, or added to.

    ``epilogue`` ops are applied to each finished output tile right before it is stored, which is what fusion is.

    Raises SramOverflow when the tiles do not fit; LabError for arrays of another shape or type than the problem's, and
    for an epilogue on an output that leaves unfinished.
    """
    problem = nest.problem
    for operand in problem.inputs:
        _check(operand, arrays[operand.name])
    _check_output(nest, output)
    check_fusible(nest, epilogue)
    result = np.zeros(problem.output.shape, problem.output.dtype) if output is None else output
    multiply = Multiply(problem)
    with pad.kernel("+".join([name, *(op.name for op in epilogue)])):
        inputs = [InputTile(nest, operand, arrays[operand.name], pad) for operand in problem.inputs]
        tail = Epilogue(epilogue, result.shape, pad)
        accumulator = OutputTile(nest, result, pad, epilogue[-1].output if epilogue else problem.output.name)
        for ranges in nest.steps():
            tiles = [tile.get(ranges) for tile in inputs]
            multiply(accumulator.get(ranges), tiles, ranges)
            if accumulator.is_finished:
                tail.apply(problem.output.name, accumulator.block)
            if nest.c_policy == "spill":
                accumulator.leave()
        for tile in inputs:
            tile.leave()
        accumulator.leave()
        tail.leave()
    return result


def check_fusible(nest: LoopNest, ops: Sequence[ElementwiseOp]) -> None:
    """LabError unless each output tile stays on chip until it is finished: ops that follow need whole sums.

    ReLU of a partial sum is not a part of the ReLU of the sum; and what has been through an op cannot be added to.
    """
    if not ops:
        return
    what = f"cannot fuse {', '.join(op.name for op in ops)} into {nest.problem.name}"
    if not nest.starts_at_zero:
        raise LabError(f"{what}: C policy {nest.c_policy} keeps sums in DRAM; fusion needs store or complete")
    if (passes := nest.passes(nest.problem.output)) > 1:
        outer = [loop for loop in nest.order if loop in nest.problem.reductions and nest.trips[loop] > 1]
        raise LabError(
            f"{what}: in order {','.join(nest.order)} an output tile leaves unfinished and comes {passes} times; "
            f"move {', '.join(outer)} inside the loops over output tiles"
        )


def _check(operand: Operand, array: Array) -> None:
    if (array.shape, array.dtype) != (operand.shape, np.dtype(operand.dtype)):
        raise LabError(f"{operand.name} is {array.dtype} {array.shape}: wanted {operand.dtype} {operand.shape}")


def _check_output(nest: LoopNest, output: Array | None) -> None:
    if nest.problem.is_copy and not nest.starts_at_zero:
        raise LabError(f"{nest.problem.name} adds nothing up: its C policy is store, not {nest.c_policy}")
    if output is not None:
        _check(nest.problem.output, output)
        if nest.starts_at_zero:
            raise LabError(
                f"C policy {nest.c_policy} starts the output at zero: leave it out, or choose load_store or spill"
            )
