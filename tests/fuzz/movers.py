"""Operators that move elements: shapes, axes, slices, padding, types."""

from __future__ import annotations

from math import prod

import numpy as np

from labkit.graph import Value
from labkit.tensor_protos import elem_type
from tests.fuzz.draft import FLOATS, Draft, Unsuitable

ALL = (*FLOATS, "int64", "int32", "bool")
BIG = 2**63 - 1


def static(value: Value) -> tuple[int, ...]:
    """Its shape, which has to be numbers."""
    if value.type is None or not value.type.is_static:
        raise Unsuitable
    return tuple(int(dim) for dim in value.shape or ())


def transpose(d: Draft) -> None:
    x = d.tensor(0, dtypes=ALL)
    rank = len(x.shape or ())
    before = next((node for node in d.nodes if x in node.results and node.op == "Transpose"), None)
    if before is not None and "perm" in before.attrs and d.chance(0.5):
        perm = tuple(int(axis) for axis in np.argsort(before.attrs["perm"]))
    elif rank == 4 and d.chance(0.6):
        perm = d.choose([(0, 2, 3, 1), (0, 3, 1, 2)])
    else:
        perm = tuple(int(axis) for axis in d.rng.permutation(rank))
    d.add("Transpose", [x], {} if d.chance(0.15) or not perm else {"perm": perm})


def reshape(d: Draft) -> None:
    x = d.tensor(1, dtypes=ALL)
    shape = x.shape or ()
    target: list[int] = [dim if isinstance(dim, int) else -1 for dim in shape]
    kind = d.number(0, 4)
    attrs = {}
    if kind == 1 and 0 not in target:
        target = [0 if d.chance(0.5) else dim for dim in target]
    elif kind == 2 and all(isinstance(dim, int) for dim in shape):
        size = prod(target)
        factor = d.choose([f for f in (1, 2, 3, 4, 6) if f <= max(size, 1) and size % f == 0])
        target = d.choose([[factor, size // factor], [size], [1, size // factor, factor], [-1, factor]])
        if size == 0 and -1 in target:
            raise Unsuitable
    elif kind == 3 and -1 not in target and 0 not in target and target:
        target[d.number(0, len(target) - 1)] = -1
    elif kind == 4 and len(target) > 1 and -1 not in target:
        target = [target[0] * target[1], *target[2:]]
    if d.opset >= 14 and 0 in target and all(isinstance(dim, int) for dim in shape) and 0 in shape:
        attrs["allowzero"] = 1
        target = [int(dim) for dim in shape]
        d.rng.shuffle(target)
    if target.count(-1) > 1:
        target = [0 if dim == -1 else dim for dim in target]
    d.add("Reshape", [x, d.ints(*target)], attrs)


def flatten(d: Draft) -> None:
    x = d.tensor(1)
    d.add("Flatten", [x], d.choose([{}, {"axis": 0}, {"axis": len(x.shape or ())}, {"axis": 1}]))


def axes_of(d: Draft, op: str, x: Value, axes: tuple[int, ...], since: int, attrs: dict[str, object]) -> None:
    """A node whose axes are an attribute before an opset and an input from then on."""
    if d.opset < since:
        d.add(op, [x], {"axes": axes, **attrs})
    else:
        d.add(op, [x, d.ints(*axes)], attrs)


def squeeze(d: Draft) -> None:
    x = d.tensor(1, dtypes=ALL)
    ones = [axis for axis, dim in enumerate(x.shape or ()) if dim == 1]
    if not ones or d.chance(0.1):
        if not static(x):
            raise Unsuitable
        d.add("Squeeze", [x])
        return
    axes = tuple(axis for axis in ones if d.chance(0.7)) or (ones[0],)
    axes_of(d, "Squeeze", x, negative(d, axes, len(x.shape or ())), 13, {})


def negative(d: Draft, axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The axes, counted from behind now and then (allowed everywhere since opset 11)."""
    return tuple(axis - rank if d.opset >= 11 and d.chance(0.3) else axis for axis in axes)


def unsqueeze(d: Draft) -> None:
    x = d.tensor(0, 4, dtypes=ALL)
    many = d.number(1, 2)
    rank = len(x.shape or ()) + many
    axes = tuple(sorted(int(axis) for axis in d.rng.choice(rank, many, replace=False)))
    axes_of(d, "Unsqueeze", x, negative(d, axes, rank), 13, {})


def slice_(d: Draft) -> None:
    x = d.tensor(1, dtypes=ALL)
    rank = len(x.shape or ())
    axes = sorted(int(axis) for axis in d.rng.choice(rank, d.number(1, min(rank, 2)), replace=False))
    starts, ends, steps = [], [], []
    for axis in axes:
        dim = (x.shape or ())[axis]
        size = dim if isinstance(dim, int) else 2
        whole = isinstance(dim, str) or d.chance(0.35)
        backwards = d.opset >= 10 and not whole and d.chance(0.25)
        starts.append(d.choose([0, 0, -size] if isinstance(dim, int) else [0]) if whole else d.number(-size, size))
        ends.append(d.choose([BIG, 2**31 - 1, size + 7] if isinstance(dim, int) else [BIG]) if whole else
                    d.number(-size - 1, size))  # fmt: skip
        steps.append(-d.number(1, 2) if backwards else d.choose([1, 1, 2]) if not whole else 1)
    if d.opset < 10:
        named = {} if axes == list(range(len(axes))) and d.chance(0.5) else {"axes": tuple(axes)}
        d.add("Slice", [x], {"starts": tuple(starts), "ends": tuple(ends), **named})
        return
    spelled = None if axes == list(range(len(axes))) and d.chance(0.5) else d.ints(*negative(d, tuple(axes), rank))
    stepped = None if (set(steps) == {1} and d.chance(0.5)) or d.opset < 10 else d.ints(*steps)
    d.add("Slice", [x, d.ints(*starts), d.ints(*ends), spelled, stepped])


def split(d: Draft) -> None:
    x = d.tensor(1, dtypes=("float32", "int64"))
    axis = d.number(0, len(x.shape or ()) - 1)
    size = (x.shape or ())[axis]
    if not isinstance(size, int) or size < 1:
        raise Unsuitable
    parts = d.choose([n for n in (1, 2, 2, 3) if n <= size])
    sizes = [size // parts] * (parts - 1)
    sizes.append(size - sum(sizes))
    attrs = {"axis": axis} if axis or d.chance(0.5) else {}
    if size % parts == 0 and d.chance(0.5) and (d.opset < 18 or d.chance(0.7)):
        if d.opset >= 18:
            attrs["num_outputs"] = parts
        results = d.add("Split", [x], attrs, parts)
    elif d.opset < 13:
        results = d.add("Split", [x], {**attrs, "split": tuple(sizes)}, parts)
    else:
        results = d.add("Split", [x, d.ints(*sizes)], attrs, parts)
    if d.chance(0.4):
        d.add("Concat", results, {"axis": negative(d, (axis,), len(x.shape or ()))[0]})


def concat(d: Draft) -> None:
    x = d.tensor(1, dtypes=ALL)
    alike = [value for value in d.values if value.dtype == x.dtype and value.shape == x.shape]
    inputs = [x, *(d.choose(alike or [x]) for _ in range(d.number(0, 2)))]
    axis = d.number(0, len(x.shape or ()) - 1)
    d.add("Concat", inputs, {"axis": negative(d, (axis,), len(x.shape or ()))[0]})


def expand(d: Draft) -> None:
    x = d.tensor(0, 4)
    target = [dim if isinstance(dim, int) and dim != 1 and d.chance(0.5) else 1 for dim in x.shape or ()]
    if d.chance(0.5):
        target = [d.choose([1, 2, 3]) if (x.shape or ())[i] == 1 else dim for i, dim in enumerate(target)]
    if d.chance(0.25):
        target = [d.choose([1, 2]), *target]
    d.add("Expand", [x, d.ints(*target[d.number(0, 1) if d.chance(0.3) else 0 :])])


def tile(d: Draft) -> None:
    x = d.tensor(1, 4)
    d.add("Tile", [x, d.ints(*(d.choose([1, 1, 1, 2]) for _ in x.shape or ()))])


def pad(d: Draft) -> None:
    """Half of the time over spatial axes only, as in front of a window."""
    x = d.tensor(1, 5, dtypes=("float32",))
    shape = static(x)
    if d.chance(0.55) and len(shape) in (3, 4):
        free = len(shape) - 2
        pads = [0, 0, *(d.number(0, 1) for _ in range(free)), 0, 0, *(d.number(0, 2) for _ in range(free))]
    else:
        pads = [d.choose([0, 0, 0, 1, 2, -1]) for _ in range(2 * len(shape))]
    if d.chance(0.15):
        pads = [0] * len(pads)
    mode = d.choose(["constant"] * 8 + ["reflect", "edge"])
    if mode != "constant" and (0 in shape or max(pads) >= min(shape) or min(pads) < 0):
        mode = "constant"
    if any(dim + pads[i] + pads[i + len(shape)] < 0 for i, dim in enumerate(shape)):
        raise Unsuitable
    spelled = {} if mode == "constant" and d.chance(0.7) else {"mode": mode}
    fill = d.choose([0.0, 0.0, 0.0, 1.5])
    if d.opset < 11:
        d.add("Pad", [x], {"pads": tuple(pads), **spelled, **({} if fill == 0 else {"value": fill})})
        return
    value = None if fill == 0 and d.chance(0.5) else d.constant(np.float32(fill))
    if d.opset >= 18 and d.chance(0.3):
        kept = [axis for axis in range(len(shape)) if pads[axis] or pads[axis + len(shape)]] or [0]
        chosen = [pads[axis] for axis in kept] + [pads[axis + len(shape)] for axis in kept]
        d.add("Pad", [x, d.ints(*chosen), value, d.ints(*negative(d, tuple(kept), len(shape)))], spelled)
    else:
        d.add("Pad", [x, d.ints(*pads), value], spelled)


def resize(d: Draft) -> None:
    x = d.tensor(4, 4, dtypes=("float32",))
    shape = static(x)
    if 0 in shape:
        raise Unsuitable
    factors = d.choose([(1, 1, 1, 1), (1, 1, 2, 2), (1, 1, 1, 2)])
    mode = {"mode": d.choose(["nearest", "linear"])}
    if d.opset < 11:
        d.add("Upsample" if d.opset < 10 else "Resize", [x, d.constant(np.array(factors, np.float32))], mode)
    elif d.chance(0.5):
        d.add("Resize", [x, None, d.constant(np.array(factors, np.float32))], mode)
    else:
        d.add("Resize", [x, None, None, d.ints(*(a * b for a, b in zip(shape, factors, strict=True)))], mode)


def cast(d: Draft) -> None:
    x = d.tensor(0, dtypes=ALL)
    kinds = list(FLOATS) if not d.exact(x) else [*FLOATS, "float32", "int64", "int32", "bool"]
    back = next((n.inputs[0] for n in d.nodes if x in n.results and n.op == "Cast" and n.inputs[0]), None)
    kind = back.dtype if back is not None and d.chance(0.6) and d.exact(x) else d.choose(kinds)
    if kind == "float16" and not d.exact(x):
        raise Unsuitable
    if d.opset >= 15 and d.chance(0.3):
        like = d.choose([value for value in d.values if value.dtype == kind] or [None])
        d.add("CastLike", [x, like or d.constant(np.ones(2), kind or "")])
    else:
        d.add("Cast", [x], {"to": elem_type(kind or "float32")})


def lowest_pad(d: Draft) -> None:
    """A Pad of −∞ in front of a MaxPool, and of nothing else: of −∞ onnxruntime's pools make the lowest number."""
    x = d.tensor(3, 4, dtypes=("float32",))
    shape = static(x)
    if min(shape) < 2 or d.opset < 11:
        raise Unsuitable
    free = len(shape) - 2
    pads = [0, 0, *(d.number(0, 1) for _ in range(free)), 0, 0, *(d.number(0, 1) for _ in range(free))]
    padded = d.add("Pad", [x, d.ints(*pads), d.constant(np.float32(-np.inf))])[0]
    d.values.remove(padded)
    d.add("MaxPool", [padded], {"kernel_shape": (2,) * free})


MOVERS = {
    "transpose": (transpose, 6), "reshape": (reshape, 5), "flatten": (flatten, 1), "squeeze": (squeeze, 3),
    "unsqueeze": (unsqueeze, 3), "slice": (slice_, 4), "split": (split, 2.5), "concat": (concat, 3),
    "expand": (expand, 2), "tile": (tile, 1.5), "pad": (pad, 3), "lowest_pad": (lowest_pad, 1),
    "resize": (resize, 6), "cast": (cast, 3.5),
}  # fmt: skip
