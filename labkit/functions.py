"""How large a model becomes when its local functions are opened: counted before anything is opened.

Forty functions, each calling the next one twice, are a file of 5 KB and 2⁴⁰ nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from onnx import FunctionProto, ModelProto, NodeProto

from labkit.errors import GraphError
from labkit.protos import label
from labkit.units import GIB, format_bytes

Key: TypeAlias = tuple[str, str]  # domain and name

MOST_NODES = 200_000
MOST_BYTES = GIB


def check_unfolding(model: ModelProto) -> None:
    """Raise GraphError when the functions of a model call one another in a circle, or when a node unfolds to more than
    MOST_NODES nodes or MOST_BYTES bytes."""
    functions = {(function.domain, function.name): function for function in model.functions}
    calls = {key: Counter(map(_key, _all_nodes(function.node))) for key, function in functions.items()}
    try:
        order = tuple(TopologicalSorter({key: calls[key].keys() & calls.keys() for key in calls}).static_order())
    except CycleError as error:
        names = " -> ".join(name for _, name in reversed(error.args[1][:5]))
        raise GraphError(f"local functions call one another in a circle: {names}; they must not be recursive") from None
    nodes, sizes = _unfolded(order, calls, functions)
    left = MOST_NODES, MOST_BYTES
    for node in _all_nodes(model.graph.node):
        key = _key(node)
        left = left[0] - nodes.get(key, 1), left[1] - sizes.get(key, 0)
        if min(left) < 0:
            found = f"{nodes.get(key, 1)} nodes, {format_bytes(sizes.get(key, 0))}"
            most = f"{MOST_NODES} nodes and {format_bytes(MOST_BYTES)} in all"
            raise GraphError(f"{label(node)} calls functions that unfold to {found}; labkit opens {most}")


def _unfolded(
    order: Iterable[Key], calls: Mapping[Key, Counter[Key]], functions: Mapping[Key, FunctionProto]
) -> tuple[dict[Key, int], dict[Key, int]]:
    """Nodes and bytes of each function with all that it calls opened, those called coming first in ``order``."""
    nodes: dict[Key, int] = {}
    sizes: dict[Key, int] = {}
    for key in order:
        nodes[key] = sum(count * nodes.get(called, 1) for called, count in calls[key].items())
        inside = sum(count * sizes.get(called, 0) for called, count in calls[key].items())
        sizes[key] = functions[key].ByteSize() + inside
    return nodes, sizes


def _key(node: NodeProto) -> Key:
    return node.domain, node.op_type


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Nodes, and those of the graphs among their attributes."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            waiting.extend(attribute.g.node)
            for graph in attribute.graphs:
                waiting.extend(graph.node)
