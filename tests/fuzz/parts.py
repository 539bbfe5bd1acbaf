"""Parts of a tensor: cut by Slices and put together again, or taken by a Gather."""

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
