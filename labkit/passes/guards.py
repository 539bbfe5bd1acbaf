"""A zoo of small graphs, each a trap for a pass that lacks one guard."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import onnx

from labkit.graph import Array, Graph
from labkit.onnx_io import from_model

_CONV_BN = "c = Conv(x, w) n = BatchNormalization(c, s, b, m, v)"
_IMAGE = "float[1, 4, 6, 6] x"
_BRANCHES = "then_branch = t () => (float[3] p) { p = Neg(a) }, else_branch = e () => (float[3] q) { q = Abs(a) }"
_STATISTICS = ("s", "b", "m", "v")


@dataclass(frozen=True)
class Trap:
    """A graph, the guard it wants, and what goes wrong without it."""

    guard: str
    why: str
    text: str
    constants: tuple[str, ...] = ()

    def graph(self) -> Graph:
        """The graph, with constants that are the same every time."""
        model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> agraph {self.text}')
        known = _constants()
        model.graph.initializer.extend(onnx.numpy_helper.from_array(known[name], name) for name in self.constants)
        return from_model(model)


@cache
def _constants() -> dict[str, Array]:
    rng = np.random.default_rng(42)
    shapes = {"w": (4, 4, 3, 3), "k": (4, 1, 1), "row": (4,), "s": (4,), "b": (4,), "m": (4,), "v": (4,)}
    drawn = {name: rng.uniform(0.5, 1.5, shape).astype(np.float32) for name, shape in shapes.items()}
    fixed = {
        "zero": np.zeros(1, np.float32),
        "wide": np.zeros((5, 1), np.float32),
        "one": np.ones(3, np.float32),
        "border": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "flat": np.array([3, 2]),
    }
    return {**drawn, **fixed}


TRAPS = (
    Trap("second reader", "the Conv's result is also read without the BatchNormalization",
         f'({_IMAGE}) => (float[1, 4, "h", "k"] y) {{ {_CONV_BN} y = Add(n, c) }}', ("w", *_STATISTICS)),
    Trap("graph output", "the Conv's result is an output of the graph as well",
         f'({_IMAGE}) => (float[1, 4, "h", "k"] n, float[1, 4, "h", "k"] c) {{ {_CONV_BN} }}', ("w", *_STATISTICS)),
    Trap("shared weight", "another Conv uses the same weights, unscaled",
         f'({_IMAGE}) => (float[1, 4, "h", "k"] y) {{ {_CONV_BN} d = Conv(n, w) y = Relu(d) }}', ("w", *_STATISTICS)),
    Trap("training mode", "the BatchNormalization uses the statistics of the batch, not the stored ones",
         f'({_IMAGE}) => (float[1, 4, "h", "k"] n) {{ c = Conv(x, w) '
         "n = BatchNormalization <training_mode: int = 1> (c, s, b, m, v) }", ("w", *_STATISTICS)),
    Trap("overridable constant", "a constant that is also an input is a default: the caller may feed another",
         f'({_IMAGE}, float[4] s) => (float[1, 4, "h", "k"] n) {{ {_CONV_BN} }}', ("w", *_STATISTICS)),
    Trap("padding", "zeros are padded after the shift; moved behind the Conv, it would reach them too",
         f'({_IMAGE}) => (float[1, 4, 6, 6] y) {{ a = Add(x, k) y = Conv <pads: ints = [1, 1, 1, 1]> (a, w) }}',
         ("w", "k")),
    Trap("per channel", "the constant has as many values as there are channels, but varies along the width",
         f'({_IMAGE}) => (float[1, 4, 4, 4] y) {{ c = Conv(x, w) y = Mul(c, row) }}', ("w", "row")),
    Trap("broadcast", "adding zeros of a larger shape makes the tensor larger",
         "(float[3] x) => (float[5, 3] y) { y = Add(x, wide) }", ("wide",)),
    Trap("order of operands", "0 − x is not x", "(float[3] x) => (float[3] y) { y = Sub(zero, x) }", ("zero",)),
    Trap("mask is read", "the second output of the Dropout is used",
         "(float[3] x) => (float[3] y) { d, mask = Dropout(x) f = Cast <to: int = 1> (mask) y = Add(d, f) }"),
    Trap("captured value", "the branches of an If read a value of the graph around them",
         f"(float[3] x, bool q) => (float[3] y) {{ a = Mul(x, one) y = If (q) <{_BRANCHES}> }}", ("one",)),
    Trap("lossy cast", "a Cast through an integer drops the fraction",
         "(float[3] x) => (float[3] y) { i = Cast <to: int = 6> (x) y = Cast <to: int = 1> (i) }"),
    Trap("padding value", "a MaxPool pads with −∞, a Pad with 0: they differ where all else is negative",
         f'({_IMAGE}) => (float[1, 4, 6, 6] y) {{ p = Pad(x, border) y = MaxPool <kernel_shape: ints = [3, 3]> (p) }}',
         ("border",)),
    Trap("same shape", "a Reshape that keeps the number of elements need not keep the shape",
         "(float[2, 3] x) => (float[3, 2] y) { y = Reshape(x, flat) }", ("flat",)),
    Trap("inverse permutation", "two Transposes cancel only when one undoes the other",
         "(float[2, 3, 4] x) => (float[4, 2, 3] y) { a = Transpose <perm: ints = [1, 2, 0]> (x) "
         "y = Transpose <perm: ints = [1, 2, 0]> (a) }"),
    Trap("not a number", "x · 0 is NaN where x is infinite or NaN",
         "(float[3] x) => (float[3] y) { y = Mul(x, zero) }", ("zero",)),
)  # fmt: skip
