"""run(): a graph computed node by node. Fast NumPy rows for the op table, ONNX's reference for every other operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from labkit.errors import GraphError
from labkit.graph import Array, Graph, Node, Value
from labkit.ops import row
from labkit.ops.compute import Args
from labkit.ops.older import OLDER

Feeds: TypeAlias = Mapping[str, Any]
_ACCIDENTS = (ValueError, IndexError, TypeError, KeyError, OverflowError, ZeroDivisionError, MemoryError)


def run(graph: Graph, feeds: Feeds) -> dict[str, Array]:
    """Compute the outputs of ``graph`` for these inputs: a dict from output name to array.

    An input that has a default may be left out; a node that no output needs does not run. Raises GraphError for a
    missing, unknown or ill-typed input, for an operator that neither the op table nor ONNX knows, and for tensors too
    large to hold; the message names it.
    """
    from labkit.sizes import check_sizes

    values = {**graph.constants, **_checked(graph, feeds)}
    graph = _needed(graph)
    check_sizes(graph, values, evaluate)
    return _run(graph, values)


def _needed(graph: Graph) -> Graph:
    """The graph without nodes that no output needs; the very same one where there are none."""
    names, nodes = set(graph.output_names), []
    for node in reversed(graph.nodes):
        if any(value.name in names for value in node.results):
            nodes.append(node)
            names.update(value.name for value in node.uses)
    return graph if len(nodes) == len(graph.nodes) else replace(graph, nodes=tuple(reversed(nodes)))


def _run(graph: Graph, values: dict[str, Any]) -> dict[str, Array]:
    left = Counter(name for name, nodes in graph.users.items() for _ in nodes)
    for node in graph.nodes:
        for value, result in zip(node.outputs, evaluate(node, values, graph.opsets), strict=False):
            if value is not None:
                values[value.name] = result
        for value in node.uses:
            left[value.name] -= 1
            if not left[value.name] and value.name not in graph.output_names:
                values.pop(value.name, None)  # nothing reads it again: give its memory back
    return {value.name: values[value.name] for value in graph.outputs}


def evaluate(node: Node, values: Mapping[str, Any], opsets: Mapping[str, int]) -> tuple[Any, ...]:
    """The outputs of one node, its inputs taken from ``values``."""
    if node.body is not None:
        names = zip(node.body.inputs, node.inputs, strict=True)
        found = _run(node.body, {inner.name: values[outer.name] for inner, outer in names if outer})
        return tuple(found[value.name] for value in node.body.outputs)
    op = row(node)
    arrays = tuple(values[value.name] if value else None for value in node.inputs)
    operator = op.run if op else None if node.domain else OLDER.get(node.op)
    if operator is not None:
        wanted = max((index + 1 for index, value in enumerate(node.outputs) if value), default=0)
        try:
            with np.errstate(all="ignore"):  # NaN and infinities are values here, not accidents
                results = operator(Args(node.attrs, arrays, opsets.get("", 1), wanted))
        except _ACCIDENTS as error:
            raise GraphError(f"{node.label} cannot run: {' '.join(str(error).split())}") from error
        if results is not None:
            return results
    return _by_reference(node, values, opsets)


def _by_reference(node: Node, values: Mapping[str, Any], opsets: Mapping[str, int]) -> tuple[Any, ...]:
    """One node in a model of its own, run by onnx.reference; what its inner graphs capture is fed as well."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    from labkit.protos import node_proto, to_graph_proto

    if not onnx.defs.has(node.op, opsets.get(node.domain, 1), node.domain):
        domain = f"domain {node.domain!r}" if node.domain else f"opset {opsets.get('', 1)}"
        raise GraphError(f"{node.label} cannot run: no implementation of operator {node.op!r} of {domain} is known")
    used = list(dict.fromkeys(value.name for value in node.uses))
    names = [value.name for value in node.results]
    proto = node_proto(node, lambda body: to_graph_proto(body, inner=True))
    graph = onnx.GraphProto(name="one-node", node=[proto])
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in used)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    ids = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    model = onnx.helper.make_model(graph, opset_imports=ids, ir_version=10)
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(model).run(None, {name: values[name] for name in used})
    except NotImplementedError:  # whose message lists all that there is
        raise GraphError(f"{node.label} cannot run: ONNX's reference does not implement operator {node.op!r}") from None
    except Exception as error:  # the reference raises whatever its operator raised
        raise GraphError(f"{node.label} cannot run: {type(error).__name__}: {' '.join(str(error).split())}") from error
    found = {name: _as_object(result) for name, result in zip(names, results, strict=True)}
    return tuple(found[value.name] if value else None for value in node.outputs)


def _as_object(result: Any) -> Any:
    """Strings as Python objects, as ONNX's own tools hold them; some operators give NumPy's fixed-width kind."""
    return result.astype(object) if isinstance(result, np.ndarray) and result.dtype.kind == "U" else result


def _checked(graph: Graph, feeds: Feeds) -> dict[str, Any]:
    """The feeds as arrays of the declared types."""
    known = {value.name: value for value in graph.inputs}
    if unknown := [name for name in feeds if name not in known]:
        raise GraphError(f"no input {unknown[0]!r}; the inputs are {', '.join(map(repr, known)) or 'none'}")
    if missing := [name for name in known if name not in feeds and name not in graph.constants]:
        raise GraphError(f"input {missing[0]!r} is not fed; it wants {known[missing[0]].type or 'a value'}")
    symbols: dict[str, int] = {}
    return {name: _fit(known[name], value, symbols) for name, value in feeds.items()}


def _fit(value: Value, fed: Any, symbols: dict[str, int]) -> Any:
    if value.type is None:
        return fed
    array = np.asarray(fed)
    dtype = "string" if array.dtype.kind in "OUS" else array.dtype.name
    if dtype != value.type.dtype:
        raise GraphError(f"input {value.name!r} wants {value.type.dtype}, not {dtype}; convert it with .astype()")
    if value.type.shape is None:
        return array
    wanted = tuple(symbols.setdefault(dim, size) if isinstance(dim, str) and not dim.startswith("?") else dim
                   for dim, size in zip(value.type.shape, array.shape, strict=False))  # fmt: skip
    pairs = zip(wanted, array.shape, strict=False)
    if len(array.shape) != value.type.rank or any(isinstance(dim, int) and dim != size for dim, size in pairs):
        raise GraphError(f"input {value.name!r} wants {value.type}, not the shape {array.shape}")
    return array
