"""Parts of a tensor: cut by Slices and put together again, or taken by a Gather; its rows; its steps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tests.fuzz.draft import Draft, Unsuitable
from tests.fuzz.movers import axes_of, negative, static


def sliced(d: Draft) -> None:
    """Slices along one axis, mostly of all its elements in order, and a Concat of them."""
    x = d.tensor(1, 4, dtypes=("float32", "int64"))
    rank = len(x.shape or ())
    axis = d.number(0, rank - 1)
    size = static(x)[axis]
    if d.opset < 10 or size < 2:
        raise Unsuitable
    cuts = [0, *sorted({d.number(1, size - 1) for _ in range(d.number(1, 2))}), size]
    if d.chance(0.2):
        cuts[d.number(0, len(cuts) - 1)] = d.number(0, size)
    # Were the axis fed, what comes of the Slices might not fit together, and onnxruntime's Concat does not look.
    fixed = d.unshared(np.array(negative(d, (axis,), rank)))
    named = [fixed, *([d.ints(d.choose([1, 1, 2]))] if d.chance(0.2) else [])]
    parts = [d.add("Slice", [x, d.ints(one), d.ints(two), *named])[0] for one, two in pairwise(cuts)]
    if d.chance(0.1):
        parts.reverse()
    d.add("Concat", parts, {"axis": negative(d, (axis,), rank)[0]})


def gather(d: Draft) -> None:
    """Some elements along an axis; of a single one, the axis may go."""
    x = d.tensor(1, 4, dtypes=("float32", "int64"))
    rank = len(x.shape or ())
    axis = d.number(0, rank - 1)
    size = static(x)[axis]
    if size < 1:
        raise Unsuitable
    places = [d.number(-size, size - 1) for _ in range(d.choose([1, 1, 1, 2]))]
    out = d.add("Gather", [x, d.ints(*places)], {"axis": axis} if axis or d.chance(0.5) else {})[0]
    if len(places) == 1 and d.chance(0.7):
        axes_of(d, "Squeeze", out, (axis,), 13, {})


def rows(d: Draft) -> None:
    """The rows of a tensor times a matrix, as exporters write it: a Reshape on either side."""
    x = d.tensor(1, 4, dtypes=("float32",))
    dims = list(x.shape or ())
    if 0 in dims or isinstance(dims[-1], str) or sum(isinstance(dim, str) for dim in dims) > 1:
        raise Unsuitable
    columns = d.number(1, 3)
    flat = d.add("Reshape", [x, d.ints(-1, dims[-1])])[0]
    w, bias = d.floats((dims[-1], columns)), d.floats(d.choose([(columns,), (1, columns), (1, 1)]))
    if d.chance(0.5):
        out = d.add("MatMul", [flat, w])[0]
        out = d.add("Add", [out, bias])[0] if d.chance(0.4) else out
    else:
        out = d.add("Gemm", [flat, w, bias], {"alpha": 2.0} if d.chance(0.2) else {})[0]
    target = [-1 if isinstance(dim, str) else dim for dim in (*dims[:-1], columns)]
    if d.chance(0.2):
        d.rng.shuffle(target)
    elif -1 not in target and d.chance(0.3):
        target[0] = -1
    d.add("Reshape", [out, d.ints(*target)])


def quantised(d: Draft) -> None:
    """Floats cut, quantised, given back and quantised once more."""
    x = d.tensor(0, 4, exact=True, dtypes=("float32",))
    if d.opset < 10:
        raise Unsuitable
    kind = d.choose(["uint8", "int8"])
    zero = d.unshared(np.array(d.choose([np.iinfo(kind).min, 0, 3]), kind))
    step, other = (d.unshared(np.array(d.choose([0.5, 0.5, 0.02, 1.0]), np.float32)) for _ in range(2))
    if d.chance(0.5):
        x = d.add("Relu", [x])[0]
    q = d.add("QuantizeLinear", [x, step, zero])[0]
    if d.chance(0.6):
        back = d.add("DequantizeLinear", [q, step, zero])[0]
        if d.chance(0.7):
            d.add("QuantizeLinear", [back, step if d.chance(0.7) else other, zero])
