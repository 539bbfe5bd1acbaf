"""Fused nodes: several operators in one kernel. Made here from the nodes of a group, and opened again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count

from labkit.graph import Graph, Node, Value

DOMAIN = "labkit"  # of fused nodes, and of the local functions they become in an ONNX file


def fused_node(nodes: Sequence[Node], outputs: Iterable[Value], op: str, opsets: Mapping[str, int]) -> Node:
    """One node that runs ``nodes``, in this order, and makes ``outputs``; all they read from elsewhere is its input.

    A value keeps one name inside the body and outside.
    """
    made = {value.name for node in nodes for value in node.results}
    reads = dict.fromkeys(value for node in nodes for value in node.uses if value.name not in made)
    inputs, results = tuple({value.name: value for value in reads}.values()), tuple(outputs)
    domains = {"", *(node.domain for node in nodes)}
    own = {domain: version for domain, version in opsets.items() if domain in domains}
    name = next((node.name for node in nodes if node.name), "")
    return Node(
        op, inputs, results, domain=DOMAIN, name=name, body=Graph(op, inputs, results, tuple(nodes), opsets=own)
    )


def kernel_name(nodes: Sequence[Node]) -> str:
    """A name that says which operators a kernel runs.

    >>> kernel_name([Node("Conv", (), ()), Node("Relu", (), ())])
    'Conv_Relu'
    """
    ops = [step.op for node in nodes for step in node.steps]
    kept = _LONGEST_NAME if len(ops) <= _LONGEST_NAME else _LONGEST_NAME - 1
    return "_".join([*ops[:kept], *([f"{len(ops) - kept}more"] if len(ops) > kept else [])])


_LONGEST_NAME = 10


def own_name(kind: str, place: int, taken: set[str]) -> str:
    """The name of one kernel: what it runs, and its place in the graph or the next number that is free. No two kernels
    may bear the same name, which will be that of a function in the file; it is ``taken`` from now on."""
    name = next(name for number in count(place) if (name := f"{kind}_{number}") not in taken)
    taken.add(name)
    return name


def inline(graph: Graph) -> Graph:
    """The graph with every fused node opened: the same arrays, bit for bit. The very same graph when none is fused."""
    if all(node.body is None for node in graph.nodes):
        return graph
    taken = set(all_names(graph, bodies=False))
    nodes = chain.from_iterable(opened(node, taken) for node in graph.nodes)
    return replace(graph, nodes=tuple(nodes))


def opened(node: Node, taken: set[str]) -> Iterator[Node]:
    """The operators of a node, reading and making what it does; names inside give way to those ``taken``."""
    if node.body is None:
        yield node
        return
    pairs = (*zip(node.body.inputs, node.inputs, strict=True), *zip(node.body.outputs, node.outputs, strict=True))
    outside = {inner.name: outer for inner, outer in pairs if outer is not None}
    for step in node.body.nodes:
        for value in step.results:
            if value.name not in outside:
                outside[value.name] = replace(value, name=_free(value.name, taken))
        results = tuple(value and outside[value.name] for value in step.outputs)
        yield from opened(replace(step.rename(outside), outputs=results), taken)


def _free(name: str, taken: set[str]) -> str:
    found = next(n for n in chain([name], (f"{name}_{i}" for i in count(1))) if n not in taken)
    taken.add(found)
    return found


def all_names(graph: Graph, *, bodies: bool = True) -> Iterator[str]:
    """Every name in a graph and in the graphs within it, which may not shadow one another."""
    yield from graph.constants
    yield from (value.name for value in (*graph.inputs, *graph.captures))
    for node in graph.nodes:
        yield from (value.name for value in node.results)
        for inner in (*node.bodies, *((node.body,) if bodies and node.body else ())):
            yield from all_names(inner, bodies=bodies)
