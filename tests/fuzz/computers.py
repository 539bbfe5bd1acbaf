"""Operators that compute: elementwise, products, reductions; windows are in windows.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.graph import TensorType, Value
from tests.fuzz.draft import Draft, Unsuitable
from tests.fuzz.movers import axes_of, negative, static
from tests.fuzz.windows import conv, pool

SMOOTH = ("Relu", "Relu", "Relu", "Neg", "Neg", "Abs", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Identity", "Softplus",
          "HardSigmoid", "Erf")  # fmt: skip
# These jump or blow differences up: only where no rounding comes before.
STEEP = ("Exp", "Floor", "Ceil", "Sqrt", "Reciprocal", "Log", "Sin", "Cos", "Sign")
COMPARISONS = ("Greater", "Less", "Equal")


def unary(d: Draft) -> None:
    x = d.tensor(0, dtypes=("float32", "float32", "float16", "float64") if d.chance(0.2) else ("float32",))
    op = d.choose(SMOOTH if not d.exact(x) or d.chance(0.6) else STEEP + (("Round",) if d.opset >= 11 else ()))
    if op == "Reciprocal" and not d.divisor(x):
        raise Unsuitable
    attrs = {"alpha": d.choose([0.1, 0.01])} if op == "LeakyRelu" and d.chance(0.7) else {}
    if op == "HardSigmoid" and d.chance(0.5):
        attrs = {"alpha": 0.25}
    d.add(op, [x], attrs)


def clip(d: Draft) -> None:
    x = d.tensor(0, dtypes=("float32",))
    low, high = d.choose([(-1.0, 1.0), (0.0, 6.0), (0.5, 2.0), (2.0, -1.0), (-2.0, -0.5), (0.0, np.inf)])
    sides = d.choose(["both", "both", "low", "high"])
    if d.opset < 11:
        low, high = min(low, high), max(low, high)  # onnxruntime refuses attributes that cross
        ends = {"min": low} if sides != "high" else {}
        d.add("Clip", [x], {**ends, **({"max": min(high, 3e38)} if sides != "low" else {})})
        return
    bounds: list[Value | None] = [d.constant(np.float32(end)) for end in (low, high)]
    if d.chance(0.1):
        bounds[d.number(0, 1)] = d.overridable_constant(np.asarray(np.float32(0.5)))
    d.add("Clip", [x, None if sides == "high" else bounds[0], None if sides == "low" else bounds[1]])


def other_shape(d: Draft, shape: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with another one: mostly into it, often one value a channel, now and then beyond."""
    rank = len(shape)
    kept = {1} if d.chance(0.5) else {axis for axis in range(rank) if d.chance(0.4)}
    dims = [dim if axis in kept and isinstance(dim, int) else 1 for axis, dim in enumerate(shape)]
    while dims and dims[0] == 1 and d.chance(0.5):
        dims = dims[1:]
    if d.chance(0.12):
        dims = [d.choose([1, 2]), *[1] * (rank - len(dims)), *dims]
    elif d.chance(0.1):
        dims = [d.number(2, 3) if dim == 1 and len(dims) - i <= rank and shape[i - len(dims)] == 1 else dim
                for i, dim in enumerate(dims)]  # fmt: skip
    return tuple(dims)


def operand(d: Draft, x: Value, op: str) -> Value:
    """What stands beside x: a constant, a unit among them, a value alike, or x itself."""
    dtype = x.dtype or "float32"
    if d.chance(0.3):
        alike = [
            v for v in d.values if v.dtype == dtype and v.shape is not None and (d.exact(v) or op in ("Add", "Mul"))
        ]
        return d.choose([v for v in alike if v.shape == x.shape] or alike) if d.chance(0.85) else x
    shape = other_shape(d, x.shape or ())
    if dtype == "bool":
        return d.constant(d.rng.random(shape) > d.choose([-1.0, 0.5, 2.0]))
    if dtype.startswith("int"):
        return d.constant(d.rng.integers(1, 4, shape), dtype) if d.chance(0.6) else d.constant(np.ones(shape), dtype)
    if d.chance(0.3):
        return d.constant(np.full(shape, d.choose([0.0, 1.0, 1.0, -0.0])), dtype)
    if d.chance(0.08):
        return d.overridable_constant(d.rng.uniform(0.5, 1.5, shape).astype(dtype))
    return d.floats(shape, dtype)


def _spreads(narrow: Value, wide: Value) -> bool:
    """Whether one shape broadcasts to another without enlarging it."""
    one, two = narrow.shape or (), wide.shape or ()
    return len(one) <= len(two) and all(a in (1, b) for a, b in zip(reversed(one), reversed(two), strict=False))


def binary(d: Draft) -> None:
    x = d.tensor(0, 5, dtypes=("float32",) if d.chance(0.75) else ("float32", "float64", "float16", "int64", "int32"))
    ops = ["Mul", "Add", "Sub", "Div", "Mul", "Add"]
    if x.dtype == "float32":
        ops += ["Pow", "PRelu", "Min", "Max", "Min", "Max", "Sum", "Mean"]
    op = d.choose(ops)
    other = operand(d, x, op)
    swapped = d.chance(0.35)
    if op == "PRelu" and (swapped or not _spreads(other, x)):
        raise Unsuitable
    if op in ("Div", "Pow") and not d.divisor(x if swapped else other):
        raise Unsuitable
    if op == "Pow" and not d.exact(other):
        raise Unsuitable
    if op == "Pow" and (not d.exact(x) or not d.chance(0.6)):
        op, other = "Pow", d.constant(np.ones(other_shape(d, x.shape or ())), "float32")
        swapped = False
    divisor = d.known(other)
    if op == "Div" and (x.dtype or "").startswith("int") and (swapped or divisor is None or not divisor.all()):
        raise Unsuitable
    if op in ("Sub", "Add") and not d.exact(x) and not d.exact(other) and x == other:
        raise Unsuitable
    inputs = [other, x] if swapped else [x, other]
    if op in ("Min", "Max", "Sum", "Mean"):
        inputs = [x] if d.chance(0.15) else [*inputs, *([x] if d.chance(0.15) else [])]
    d.add(op, inputs)
    if op in ("Min", "Max") and d.chance(0.5):
        last = d.values[-1]
        d.add("Max" if op == "Min" else "Min", [last, d.constant(np.float32(d.number(-1, 2)))])


def logical(d: Draft) -> None:
    bools = [v for v in d.values if v.dtype == "bool"]
    if not bools or d.chance(0.5):
        x = d.tensor(0, 5, exact=True, dtypes=("float32", "int64", "int32"))
        op = d.choose(COMPARISONS)
        if x.dtype == "float32" and op == "Equal" and d.opset < 11:
            raise Unsuitable
        bools = [d.add(op, [x, operand(d, x, op)])[0]]
    c = d.choose(bools)
    kind = d.number(0, 2)
    if kind == 0:
        d.add("Not", [d.add("Not", [c])[0] if d.chance(0.5) else c])
    elif kind == 1:
        other = operand(d, c, "And")
        d.add(d.choose(["And", "Or", "Xor"]), [c, other] if d.chance(0.5) else [other, c])
    else:
        a = d.tensor(0, 4, dtypes=("float32",))
        c = d.add("Not", [c])[0] if d.chance(0.3) else c
        d.add("Where", [c, a, operand(d, a, "Where")])


def normalise(d: Draft) -> None:
    x = d.tensor(2, 5, dtypes=("float32",))
    channels = (x.shape or ())[1]
    if not isinstance(channels, int) or not channels:
        raise Unsuitable
    kind = d.number(0, 9)
    if kind == 0:
        d.add("Softmax", [x], {"axis": d.number(0, len(x.shape or ()) - 1)} if d.chance(0.5) else {})
        return
    if kind <= 2 and len(x.shape or ()) == 4:
        d.add("LRN", [x], {"size": 3})
        return
    scale, bias, mean = (d.floats((channels,)) for _ in range(3))
    variance = d.constant(d.rng.uniform(0.5, 1.5, channels), "float32")
    if d.chance(0.06):
        variance = d.overridable_constant(d.rng.uniform(0.5, 1.5, channels).astype(np.float32))
    d.add("BatchNormalization", [x, scale, bias, mean, variance], {"epsilon": 1e-3} if d.chance(0.5) else {})


def product(d: Draft) -> None:
    x = d.tensor(2, 4, dtypes=("float32",))
    wide = (x.shape or ())[-1]
    if not isinstance(wide, int) or not wide:
        raise Unsuitable
    out = d.choose([wide, wide, 3, 1])
    if len(x.shape or ()) != 2 or d.chance(0.5):
        d.add("MatMul", [x, d.floats((wide, out))])
        return
    flipped = d.chance(0.4)
    weight = d.floats((out, wide) if flipped else (wide, out))
    attrs: dict[str, Any] = {"transB": 1} if flipped else {}
    if d.chance(0.3):
        attrs |= {"alpha": 0.5, "beta": d.choose([1.0, 2.0])}
    bias = d.floats(d.choose([(out,), (1, out), (1,), (1, 1)])) if d.chance(0.5) or d.opset < 11 else None
    d.add("Gemm", [x, weight, bias], attrs)


def reduce(d: Draft) -> None:
    x = d.tensor(1, 5, dtypes=("float32",))
    rank = len(x.shape or ())
    if 0 in static(x):
        raise Unsuitable
    if d.exact(x) and d.chance(0.3):
        axis = d.number(0, rank - 1)
        if d.chance(0.5):
            x = d.add(d.choose(["Softmax", "LogSoftmax"]), [x], {"axis": d.choose([axis, rank - 1, 0])})[0]
        out = d.add("ArgMax", [x], {"axis": axis, "keepdims": d.number(0, 1)})[0]
        if d.chance(0.3) and d.nodes[-1].attrs["keepdims"] == 0:
            axes_of(d, "Unsqueeze", out, (axis,), 13, {})
        return
    axes = tuple(sorted(int(a) for a in d.rng.choice(rank, d.number(1, rank), replace=False)))
    op = d.choose(["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1"])
    attrs: dict[str, Any] = {} if d.chance(0.3) else {"keepdims": d.number(0, 1)}
    since = 13 if op == "ReduceSum" else 18
    if d.chance(0.1):
        d.add(op, [x], attrs)
    else:
        axes_of(d, op, x, negative(d, axes, rank), since, attrs)
    if attrs.get("keepdims") == 0 and d.chance(0.5):
        axes_of(d, "Unsqueeze", d.values[-1], axes, 13, {})


def dropout(d: Draft) -> None:
    x = d.tensor(0, dtypes=("float32",))
    many = 2 if d.chance(0.3) else 1
    if d.opset < 12:
        d.add("Dropout", [x], {"ratio": 0.3} if d.chance(0.5) else {}, many, unnamed=(1,) if many == 2 else ())
        return
    mode = d.constant(np.array(False)) if d.chance(0.3) else None
    ratio = d.constant(np.float32(0.3)) if mode is not None or d.chance(0.4) else None
    results = d.add("Dropout", [x, ratio, mode], {}, many)
    if mode is not None and mode.name in d.overridable:
        d.random |= {value.name for value in results}


def noise(d: Draft) -> None:
    """Random numbers, for what reads only their shape or for nobody; two of one input are two."""
    x = d.tensor(0, dtypes=("float32",))
    if d.opset >= 22:
        raise Unsuitable  # onnxruntime 1.32 has no such kernel there
    r = d.add("RandomNormalLike", [x], {})[0]
    if d.chance(0.5):
        d.add("Shape", [r])


def unknown_size(d: Draft) -> None:
    """Where x is not 0: as many columns as there are such elements, which nothing knows beforehand."""
    x = d.tensor(1, 3, exact=True, dtypes=("float32",))
    found = d.add("NonZero", [x])[0]
    d.values[-1] = found = Value(found.name, found.type or TensorType(None, "int64"))
    d.add("Cast", [found], {"to": 1})


COMPUTERS = {
    "unary": (unary, 9), "clip": (clip, 3), "binary": (binary, 12), "logical": (logical, 5), "conv": (conv, 7),
    "pool": (pool, 5), "normalise": (normalise, 4), "product": (product, 5), "reduce": (reduce, 6),
    "dropout": (dropout, 2), "noise": (noise, 0.6), "unknown_size": (unknown_size, 0.8),
}  # fmt: skip
