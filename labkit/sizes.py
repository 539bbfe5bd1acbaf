"""How much memory a run takes, worked out before anything is computed: 150 bytes of ONNX can ask for terabytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from labkit.errors import GraphError
from labkit.graph import Array, Graph, Node, TensorType, Value
from labkit.inference import infer_types
from labkit.units import GIB, format_bytes

MOST_BYTES = 4 * GIB  # of all tensors that are alive at one time
_SMALL = 1024  # elements: shapes, axes and sizes are worked out, data is not
_ALL_SIZES = {"ConstantOfShape", "Range"}  # every input of theirs says how large the result is
_FLOAT_SIZES = {"Resize", "Upsample"}
_INTEGERS = ("int64", "int32")

Evaluate: TypeAlias = Callable[[Node, Mapping[str, Any], Mapping[str, int]], tuple[Any, ...]]


def check_sizes(graph: Graph, values: Mapping[str, Any], evaluate: Evaluate) -> None:
    """Raise GraphError naming the first node with which a run on these inputs would hold more than MOST_BYTES.

    ``values`` are the inputs and constants. Sizes that depend on small tensors are found by computing those, with
    ``evaluate``; what depends on the data itself is counted as nothing.
    """
    types = {name: TensorType.of(value) for name, value in values.items() if isinstance(value, np.ndarray)}
    known = {name: value for name, value in values.items() if name in types and value.size <= _SMALL}
    wanted, left = _wanted(graph), Counter(value.name for value in _reads(graph))
    alive = {name: kind.nbytes for name, kind in types.items()}
    total = sum(alive.values())
    for node in graph.nodes:
        for value, kind in _typed(node, types, known, graph.opsets):
            types[value.name], alive[value.name] = kind, kind.nbytes
            total += kind.nbytes
        if total > MOST_BYTES:
            made = f"{node.label} cannot run: with its result {_shown(node, types)} the run would hold"
            raise GraphError(f"{made} {format_bytes(total)}; labkit computes what fits in {format_bytes(MOST_BYTES)}")
        if wanted.intersection(value.name for value in node.results):
            known |= _computed(node, types, known, graph.opsets, evaluate)
        for value in node.uses:
            left[value.name] -= 1
            if not left[value.name]:
                total -= alive.pop(value.name, 0)


def _reads(graph: Graph) -> Iterator[Value]:
    yield from graph.outputs
    for node in graph.nodes:
        yield from node.uses


def _wanted(graph: Graph) -> set[str]:
    """The values that say how large others are, and what these are computed from."""
    found: set[str] = set()
    for node in reversed(graph.nodes):
        if node.op != "Shape" and found.intersection(value.name for value in node.results):
            found.update(value.name for value in node.uses)
        for at, value in enumerate(node.inputs):
            if value and (node.op in _ALL_SIZES or (at and (value.dtype in _INTEGERS or node.op in _FLOAT_SIZES))):
                found.add(value.name)
    return found


def _typed(
    node: Node, types: Mapping[str, TensorType], known: Mapping[str, Array], opsets: Mapping[str, int]
) -> list[tuple[Value, TensorType]]:
    """The results whose type is known, now that the inputs are."""
    fed = tuple(value and Value(value.name, types.get(value.name, value.type)) for value in node.inputs)
    try:
        found = infer_types(replace(node, inputs=fed), lambda value: known.get(value.name) if value else None, opsets)
    except GraphError:
        found = (None,) * len(node.outputs)  # what does not fit, the run will say
    pairs = [(value, kind or value.type) for value, kind in zip(node.outputs, found, strict=True) if value]
    return [(value, kind) for value, kind in pairs if kind is not None]


def _computed(
    node: Node, types: Mapping[str, TensorType], known: Mapping[str, Array], opsets: Mapping[str, int],
    evaluate: Evaluate,
) -> dict[str, Array]:  # fmt: skip
    """The results of a node whose inputs are known, or of a Shape, if they are small."""
    kinds = [types.get(value.name) for value in node.results]
    small = all(kind is not None and kind.is_static and kind.size <= _SMALL for kind in kinds)
    if not small or node.bodies or node.body is not None:
        return {}
    if node.op == "Shape" and node.inputs[0] and (kind := types.get(node.inputs[0].name)) and kind.is_static:
        dims = (kind.shape or ())[node.attrs.get("start", 0) : node.attrs.get("end")]
        return {node.output.name: np.array(dims, dtype=np.int64)}
    if not all(value.name in known for value in node.uses):
        return {}
    try:
        results = evaluate(node, known, opsets)
    except GraphError:
        return {}  # the run will say so
    pairs = zip(node.outputs, results, strict=False)
    return {value.name: np.asarray(result) for value, result in pairs if value}


def _shown(node: Node, types: Mapping[str, TensorType]) -> str:
    return ", ".join(str(types[value.name]) for value in node.results if value.name in types)
