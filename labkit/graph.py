"""The graph IR: values, nodes, graphs. All frozen: a graph that exists is valid, and a pass makes a new one."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

from labkit.errors import GraphError
from labkit.values import Array, Dim, Shape, TensorType, Value, itemsize, read_only

__all__ = ["Array", "Dim", "Graph", "Node", "Shape", "TensorType", "Value", "itemsize", "read_only"]


@dataclass(frozen=True, eq=False)
class Node:
    """One operator call. An optional input or output that is left out is None. Attribute values are plain Python,
    arrays, or Graphs (the branches of an If, the body of a Loop); those may read values of the graph around them.

    A fused node has a ``body``: a closed graph without constants, whose inputs and outputs are in the places of the
    node's own. It is one kernel, one launch; what stays inside it never reaches DRAM.
    """

    op: str
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value | None, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    name: str = ""
    body: Graph | None = None
    bodies: tuple[Graph, ...] = field(init=False, repr=False)  # the graphs among the attributes
    uses: tuple[Value, ...] = field(init=False, repr=False)  # what it reads: its inputs, what inner graphs capture
    results: tuple[Value, ...] = field(init=False, repr=False)  # the outputs that are there

    def __post_init__(self) -> None:
        bodies = tuple(_graphs(self.attrs)) if self.attrs else ()
        captured = chain.from_iterable(body.captures for body in bodies) if bodies else ()
        object.__setattr__(self, "bodies", bodies)
        object.__setattr__(self, "uses", (*filter(None, self.inputs), *captured))
        object.__setattr__(self, "results", tuple(filter(None, self.outputs)))
        if self.body is None:
            return
        shapes = ((self.inputs, self.body.inputs), (self.outputs, self.body.outputs))
        if any(len(own) != len(inner) for own, inner in shapes) or self.body.captures or self.body.constants:
            raise GraphError(f"{self.label}: its body must be closed, with an input and an output for each of its own")

    @property
    def steps(self) -> tuple[Node, ...]:
        """The operators that run when this node does: those of its body, or it alone."""
        return (self,) if self.body is None else self.body.nodes

    @property
    def output(self) -> Value:
        """The first output."""
        if not self.outputs or self.outputs[0] is None:
            raise GraphError(f"{self.label}: it has no first output")
        return self.outputs[0]

    @property
    def label(self) -> str:
        """How messages call this node: its op, and its name or else its first output."""
        named = self.name or next((out.name for out in self.outputs if out), "")
        return f"{self.op} {named!r}"

    def rename(self, new: Mapping[str, Value]) -> Node:
        """This node reading ``new[name]`` wherever it read ``name``, inside its inner graphs too."""
        attrs = self.with_bodies(lambda body: body.rename_captures(new)).attrs if self.bodies else self.attrs
        inputs = tuple([value and new.get(value.name, value) for value in self.inputs])
        if attrs is self.attrs and all(map(operator.is_, inputs, self.inputs)):
            return self
        return Node(self.op, inputs, self.outputs, attrs, self.domain, self.name, self.body)

    def with_bodies(self, change: Callable[[Graph], Graph]) -> Node:
        """This node with ``change(body)`` for each of its bodies; the very same node when no body changes."""
        if not self.bodies:
            return self
        new = replace(self, attrs={name: _changed(attr, change) for name, attr in self.attrs.items()})
        return self if all(one is two for one, two in zip(new.bodies, self.bodies, strict=True)) else new


def _graphs(attrs: Mapping[str, Any]) -> Iterator[Graph]:
    for attr in attrs.values():
        if isinstance(attr, Graph):
            yield attr
        elif isinstance(attr, tuple) and attr and isinstance(attr[0], Graph):
            yield from attr


def _changed(attr: Any, change: Callable[[Graph], Graph]) -> Any:
    if isinstance(attr, Graph):
        return change(attr)
    if isinstance(attr, tuple) and attr and isinstance(attr[0], Graph):
        return tuple(map(change, attr))
    return attr


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in an order in which they can run, with a name for each tensor that is assigned exactly once.

    ``constants`` are read-only arrays. A constant that is also an input is only that input's default: the caller may
    feed another value, so nothing may be folded through it. ``captures`` are values of a graph around this one.
    ``opsets`` says which version of each operator domain the nodes are written in.

    Raises GraphError when a name is assigned twice or read before it is assigned.
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, Array] = field(default_factory=dict)
    opsets: Mapping[str, int] = field(default_factory=lambda: {"": 17})
    captures: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        known = {value.name for value in (*self.inputs, *self.captures)}
        if len(known) < len(self.inputs) + len(self.captures):
            raise GraphError(f"graph {self.name!r}: two inputs bear the same name")
        known |= self.constants.keys()
        for node in self.nodes:
            for value in node.uses:
                if value.name not in known:
                    raise GraphError(f"{node.label} reads {value.name!r}, which nothing before it assigns")
            for value in node.results:
                if value.name in known:
                    raise GraphError(f"{node.label} assigns {value.name!r}, which is assigned already")
                known.add(value.name)
        for value in self.outputs:
            if value.name not in known:
                raise GraphError(f"graph {self.name!r}: nothing assigns its output {value.name!r}")

    @property
    def opset(self) -> int:
        """Version of the default operator domain."""
        return self.opsets.get("", 0)

    @cached_property
    def input_names(self) -> frozenset[str]:
        return frozenset(value.name for value in self.inputs)

    @cached_property
    def output_names(self) -> frozenset[str]:
        return frozenset(value.name for value in self.outputs)

    @cached_property
    def ops(self) -> frozenset[str]:
        """The operators of the nodes."""
        return frozenset(node.op for node in self.nodes)

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """The node that assigns each name."""
        return {value.name: node for node in self.nodes for value in node.results}

    @cached_property
    def users(self) -> Mapping[str, tuple[Node, ...]]:
        """The nodes that read each name, once for each time they read it; captured values count."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for value in node.uses:
                found.setdefault(value.name, []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    @cached_property
    def holders(self) -> frozenset[Node]:
        """The nodes that hold inner graphs."""
        return frozenset(node for node in self.nodes if node.bodies)

    @cached_property
    def readers(self) -> Mapping[str, int]:
        """How often each name is read; captured values count, and being an output of the graph counts as once."""
        read = (value.name for node in self.nodes for value in node.uses)
        return Counter(chain(read, (value.name for value in self.outputs)))

    def constant(self, value: Value | None) -> Array | None:
        """The array that ``value`` always is, or None: an input's default does not count."""
        if value is None or value.name in self.input_names:
            return None
        return self.constants.get(value.name)

    def rename_captures(self, new: Mapping[str, Value]) -> Graph:
        """This inner graph reading ``new[name]`` from outside wherever it captured ``name``."""
        if not any(value.name in new for value in self.captures):
            return self
        own = {value.name: new[value.name] for value in self.captures if value.name in new}
        return replace(
            self,
            nodes=tuple(node.rename(own) for node in self.nodes),
            outputs=tuple(own.get(value.name, value) for value in self.outputs),
            captures=tuple(dict.fromkeys(own.get(value.name, value) for value in self.captures)),
        )
