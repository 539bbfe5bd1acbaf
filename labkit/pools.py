"""Pooling as loops: windows that slide over an image channel by channel, without weights."""

from __future__ import annotations

from labkit.access import Operand
from labkit.problems import ConvShape, Problem, accumulator_of, plain_axes, window_axes


def pool(shape: ConvShape, dtype: str = "float32", accumulator: str = "") -> Problem:
    """Windows X → Y, channel by channel, over loops n, c, p, q (output row and column), r, s (row and column of the
    window). Of the shape, the filters and groups do not matter; the accumulator is that of ``dtype`` unless given."""
    (p, q), (r, s) = shape.output_size, shape.kernel
    loops = {"n": shape.n, "c": shape.c, "p": p, "q": q, "r": r, "s": s}
    plain = plain_axes(loops)
    x = Operand("X", (plain["n"], plain["c"], *window_axes(shape)), dtype)
    y = Operand("Y", tuple(plain[loop] for loop in "ncpq"), accumulator or accumulator_of(dtype))
    return Problem(f"pool {r}×{s} on {shape.c}×{shape.h}×{shape.w}", loops, (x,), y)
