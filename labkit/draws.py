"""Inputs to run a graph on: ordinary ones, and those on which rewrites go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from labkit.errors import LabError
from labkit.graph import Array, Graph, Value
from labkit.sizes import MOST_BYTES
from labkit.units import format_bytes

_MOST_AXES = 64  # of an array, says NumPy
_STRANGE = "NaN and infinities"
_KINDS = ("normal", "normal again", "negative", "zeros", "denormals", _STRANGE)


def draws(graph: Graph, seed: int) -> Iterator[tuple[str, dict[str, Array]]]:
    """Named input sets. A symbolic dim is 2, to differ from 1; an input with a default is fed every other time. Of the
    two normal ones each says yes where the other says no, so that both branches of an If see ordinary numbers."""
    rng = np.random.default_rng(seed)
    first: dict[str, Array] = {}
    for index, kind in enumerate(_KINDS):
        fed = [value for value in graph.inputs if index % 2 or value.name not in graph.constants]
        found = {value.name: _draw(rng, value, kind) for value in fed}
        if index == 1:
            found |= {name: np.asarray(~array) for name, array in first.items() if array.dtype == bool}
        first = first or found
        yield kind, found


def _draw(rng: np.random.Generator, value: Value, kind: str) -> Array:
    if value.type is None or value.type.shape is None:
        raise LabError(f"input {value.name!r} declares no shape; no input can be drawn for it")
    dtype = value.type.dtype
    shape = tuple(dim if isinstance(dim, int) else 2 for dim in value.type.shape)
    if len(shape) > _MOST_AXES or 8 * prod(shape) > MOST_BYTES:
        size = f"{len(shape)} axes, {format_bytes(value.type.nbytes)}"
        most = f"{_MOST_AXES} axes and {format_bytes(MOST_BYTES)} of doubles"
        raise LabError(f"input {value.name!r} is too large to be drawn: {size}; {most} would do")
    if dtype == "string":
        return rng.choice(np.array(["a", "b", ""], dtype=object), shape)
    if dtype == "bool":
        return np.asarray(rng.random(shape) > 0.5)
    if dtype.startswith(("int", "uint")):
        return np.asarray(rng.integers(0, 5, shape) if kind != "zeros" else np.zeros(shape)).astype(dtype)
    array = rng.standard_normal(shape)
    if kind == "negative":
        array = -np.abs(array)
    if kind == "zeros":
        array = np.copysign(0.0, array)
    if kind == "denormals":
        array = array * (1e-40 if dtype == "float32" else 1e-310 if dtype == "float64" else 1e-7)
    if kind == _STRANGE:
        array = np.where(rng.random(shape) < 0.01, rng.choice([np.nan, np.inf, -np.inf], shape), array)
    return np.asarray(array).astype(dtype)
