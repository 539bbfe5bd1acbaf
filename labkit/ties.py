"""Elements that rounding makes equal: of such a tie an ArgMax may name either, and no rewrite is wrong for it.

In real numbers a Softmax keeps every order, so the largest element stays the largest. In floats two elements come out
equal when they differ by less than the result can show. For the largest that is next to nothing: it is exp(0) = 1
over the sum, or 0 less the logarithm of the sum, which is at most ln n for n elements; so an element that ties with it
is less than epsilon · max(1, ln n) below it, where epsilon is the distance of 1 from the next float.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from labkit.errors import LabError
from labkit.graph import Array, Graph, Node, Value
from labkit.interpreter import run

HARDLY_ROUNDED = frozenset({"LogSoftmax", "Softmax"})


def left_open(graph: Graph, feeds: Mapping[str, Array]) -> frozenset[str]:
    """The outputs of a graph that these inputs leave open: those that hang on an ArgMax of a Softmax whose rounding
    makes two elements equal, or that NaN and infinities run into. None, where labkit cannot run the Softmax. Nobody
    sees the elements within an inner graph: what hangs on such an ArgMax there is open."""
    places = dict(_places(graph))
    logits = {value.name: value for found in places.values() for value, _ in found}
    hidden = set(_hidden(graph))
    if not logits and not hidden:
        return frozenset()
    try:
        arrays = run(replace(graph, outputs=tuple(logits.values())), feeds)
    except LabError:
        arrays, places = {}, {}
    ties = {name for name, found in places.items() if any(_ties(arrays[value.name], axis) for value, axis in found)}
    open_values = _hanging(graph, ties | hidden)
    return frozenset(value.name for value in graph.outputs if value.name in open_values)


def _hanging(graph: Graph, names: set[str]) -> set[str]:
    """These values and all that hang on them."""
    found = set(names)
    for node in graph.nodes:
        if any(value.name in found for value in node.uses):
            found |= {value.name for value in node.results}
    return found


def _places(graph: Graph) -> Iterator[tuple[str, tuple[tuple[Value, int], ...]]]:
    """Each ArgMax that has a Softmax in front, by the name of its output, with what every such Softmax reads."""
    for node in graph.nodes:
        if node.op == "ArgMax" and (found := tuple(_softmaxes(graph, node))):
            yield node.output.name, found


def _hidden(graph: Graph) -> Iterator[str]:
    """The results of nodes that hang on an ArgMax of a Softmax in an inner graph, or further inside: of an If those
    alone, of a Loop or a Scan, whose values come round again, all."""
    for node in graph.holders:
        for body in node.bodies:
            inside = _hanging(body, {*dict(_places(body)), *_hidden(body)})
            ends = [value.name in inside for value in body.outputs]
            for index, value in enumerate(node.outputs):
                if value is not None and (ends[index] if node.op == "If" else any(ends)):
                    yield value.name


def _softmaxes(graph: Graph, node: Node) -> Iterator[tuple[Value, int]]:
    """What every Softmax in the chain of nodes in front of one reads, and along which axis."""
    reader: Node | None = node
    while reader is not None:
        varying = [value for value in reader.uses if graph.constant(value) is None]
        reader = graph.producers.get(varying[0].name) if len(varying) == 1 else None
        if reader is not None and reader.op in HARDLY_ROUNDED and reader.inputs[0] is not None:
            yield reader.inputs[0], reader.attrs.get("axis", -1 if graph.opset >= 13 else 1)


def _ties(logits: Array, axis: int) -> bool:
    """Whether an element lies so little below the largest along an axis that rounding may make them equal."""
    if logits.dtype.name not in ("float32", "float64") or not logits.size:
        return False
    if not np.isfinite(logits).all():
        return True
    below = logits.max(axis=axis, keepdims=True) - logits
    nearest = np.finfo(logits.dtype).eps * max(1.0, np.log(logits.shape[axis]))
    return bool(((below > 0) & (below < nearest)).any())
