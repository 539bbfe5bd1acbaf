"""Graphs in words: one line a node, what differs between two graphs, and a picture of a neighbourhood in Mermaid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from labkit.errors import GraphError
from labkit.graph import Graph, Node, Value

_LARGEST_PICTURE = 60  # nodes; more is no picture but a carpet


def to_text(graph: Graph) -> str:
    """The graph as text: inputs, one line a node in running order, outputs. Constants show by name and type.

    >>> from labkit.build import make_node
    >>> from labkit.graph import TensorType
    >>> x = Value("x", TensorType((1, 8), "float32"))
    >>> relu = make_node("Relu", [x], ["y"], opset=17)
    >>> print(to_text(Graph("g", (x,), (relu.output,), (relu,))))
    g(x: float32 1×8)
      y: float32 1×8 = Relu(x)
      -> y
    """
    head = f"{graph.name}({', '.join(map(str, graph.inputs))})"
    return "\n".join([head, *_lines(graph), f"  -> {_names(graph.outputs)}"])


def _lines(graph: Graph, indent: str = "  ") -> Iterator[str]:
    """One line a node; what a fused node runs stands below it, behind a bar."""
    for node in graph.nodes:
        yield indent + node_text(node)
        if node.body is not None:
            yield from _lines(node.body, indent + "| ")


def node_text(node: Node) -> str:
    """One node: what it makes = operator(what it reads; its attributes)."""
    made = ", ".join(map(str, node.results)) or "nothing"
    read = ", ".join(value.name if value else "-" for value in node.inputs)
    attrs = ", ".join(f"{name}={_short(value)}" for name, value in sorted(node.attrs.items()))
    domain = f"{node.domain}." if node.domain else ""
    return f"{made} = {domain}{node.op}({read}{'; ' if attrs else ''}{attrs})"


def diff(before: Graph, after: Graph) -> str:
    """What a pass did, as lines: ``-`` for a node that is gone, ``+`` for one that is new, both for one that changed.

    Constants that came or went follow, with their types.
    """
    old = {_key(node): node for node in before.nodes}
    new = {_key(node): node for node in after.nodes}
    lines = []
    for key, node in old.items():
        if key not in new:
            lines.append(f"- {node_text(node)}")
        elif node_text(new[key]) != node_text(node):
            lines += [f"- {node_text(node)}", f"+ {node_text(new[key])}"]
    lines += [f"+ {node_text(node)}" for key, node in new.items() if key not in old]
    lines += _constants("-", before, after) + _constants("+", after, before)
    return "\n".join(lines) or "(no difference)"


def _constants(sign: str, one: Graph, other: Graph) -> list[str]:
    gone = (name for name in one.constants if name not in other.constants)
    return [f"{sign} constant {name}: {one.constants[name].dtype} {one.constants[name].shape}" for name in gone]


def _key(node: Node) -> str:
    return next((value.name for value in node.results), node.label)


def neighbourhood(graph: Graph, name: str, steps: int = 2) -> tuple[Node, ...]:
    """The nodes within so many steps, up or down, of the node that bears ``name`` or makes it.

    Raises GraphError when there is none.
    """
    centre = next((node for node in graph.nodes if node.name == name), graph.producers.get(name))
    if centre is None:
        raise GraphError(f"no node {name!r}; a node is called by its name or by one of its outputs")
    near = {centre}
    for _ in range(steps):
        above = {graph.producers[v.name] for node in near for v in node.uses if v.name in graph.producers}
        below = {user for node in near for v in node.results for user in graph.users.get(v.name, ())}
        near |= above | below
    return tuple(node for node in graph.nodes if node in near)


def to_mermaid(graph: Graph, around: str | None = None, steps: int = 2) -> str:
    """A flow chart in Mermaid, which JupyterLab and GitHub draw: the whole graph, or the neighbourhood of one node.

    Raises GraphError for more nodes than a picture can hold.
    """
    nodes = graph.nodes if around is None else neighbourhood(graph, around, steps)
    if len(nodes) > _LARGEST_PICTURE:
        raise GraphError(
            f"{len(nodes)} nodes are no picture: draw around one node, or fewer than {steps} steps from it"
        )
    ids = {node: f"n{index}" for index, node in enumerate(nodes)}
    lines = ["flowchart TD", *(f'  {ids[node]}["{_label(node)}"]' for node in nodes)]
    for node in nodes:
        for value in dict.fromkeys(node.uses):
            source = graph.producers.get(value.name)
            if source in ids:
                lines.append(f"  {ids[source]} --> {ids[node]}")
            elif value.name not in graph.constants:
                lines.append(f'  {_id(value)}(["{_escaped(value.name)}"]) --> {ids[node]}')
    for value in graph.outputs:
        source = graph.producers.get(value.name)
        if source in ids:
            lines.append(f'  {ids[source]} --> {_id(value)}_out(["{_escaped(value.name)}"])')
    return "\n".join(lines)


def _label(node: Node) -> str:
    shape = node.results[0].shape if node.results else None
    return _escaped(node.op) + ("" if shape is None else "<br>" + "×".join(map(str, shape)))


def _id(value: Value) -> str:
    return "v" + "".join(letter if letter.isalnum() else "_" for letter in value.name)


def _escaped(text: str) -> str:
    return text.replace('"', "#quot;")


def _names(values: Iterable[Value]) -> str:
    return ", ".join(value.name for value in values)


def _short(value: Any) -> str:
    if isinstance(value, Graph):
        return f"<{len(value.nodes)} nodes>"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}" if value.size > 4 else str(value.tolist())
    if isinstance(value, float):
        return f"{value:g}"
    return str(list(value)) if isinstance(value, tuple) else str(value)
