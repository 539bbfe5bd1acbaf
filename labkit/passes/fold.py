"""Constant folding: a node whose inputs are all constants is run once, here, not at every inference (spec §5.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labkit.errors import GraphError
from labkit.graph import Array, Node, TensorType
from labkit.interpreter import evaluate
from labkit.passes.rewriting import Refusal, Rewrite, Table, View
from labkit.units import KIB, format_bytes

# Operators whose result differs from run to run. (RandomNormal and RandomUniform read nothing, so they never qualify.)
RANDOM = {"RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}


@dataclass(frozen=True)
class FoldConstant:
    """The rule for every operator. ``limit_bytes``: a result may be this large, or as large as the inputs it replaces;
    beyond that folding would bloat the file (a ConstantOfShape of 100 bytes can stand for gigabytes)."""

    limit_bytes: int = 64 * KIB

    def __call__(self, view: View, node: Node) -> Rewrite | Refusal | None:
        arrays: dict[str, Array] = {}
        defaults = []
        for value in node.uses:
            array = view.constant(value)
            if array is not None:
                arrays[value.name] = array
            elif view.is_default(value):
                defaults.append(value.name)
            else:
                return None
        if defaults:
            return Refusal(
                "overridable", f"{defaults[0]!r} is an input with a default: a caller may feed another value"
            )
        if not arrays:
            return None
        if node.op in RANDOM:
            return Refusal("random", "its result differs from run to run")
        if node.bodies:
            return Refusal("inner graph", "what runs inside it is not folded")
        return self._too_large(node, arrays) or _fold(view, node, arrays)

    def _too_large(self, node: Node, arrays: dict[str, Array]) -> Refusal | None:
        """Sizes are compared before anything is computed."""
        types = [value.type for value in node.results]
        if any(kind is None or not kind.is_static for kind in types):
            return Refusal("size unknown", "how large the result would be cannot be known without running it")
        result = sum(kind.nbytes for kind in types if kind)
        room = max(self.limit_bytes, sum(array.nbytes for array in arrays.values()))
        if result <= room:
            return None
        sizes = f"{format_bytes(result)} of result, {format_bytes(room)} allowed"
        return Refusal("size limit", f"folding would bloat the model: {sizes}")


def _fold(view: View, node: Node, arrays: dict[str, Array]) -> Rewrite | Refusal:
    try:
        results = evaluate(node, arrays, view.opsets)
    except GraphError as error:
        return Refusal("cannot run", str(error))
    constants = {}
    for value, result in zip(node.outputs, results, strict=False):
        if value is None:
            continue
        if not isinstance(result, np.ndarray | np.generic):
            return Refusal("no tensor", f"{value.name!r} is no tensor")
        # A copy: a folded view would keep the array it came from alive, or change with it.
        array = np.array(result)
        computed = TensorType.of(array)
        if computed != value.type:
            return Refusal("type", f"{value.name!r} is {value.type}, its computed value {computed}")
        constants[value.name] = array
    return Rewrite(constants=constants)


FOLD: Table = {"*": (FoldConstant(),)}
