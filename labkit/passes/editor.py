"""A graph being rewritten: the nodes so far, who reads what, and which names stand for which. Lives for one sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from labkit.bodies import all_names
from labkit.graph import Array, Graph, Node, TensorType, Value, read_only
from labkit.inference import infer_types


class Editor:
    """Collects the nodes of a new graph in order, and keeps the names of the old one's interface.

    Rules read it through the View protocol; only the driver writes to it.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.opsets = graph.opsets
        self._nodes: list[Node] = []
        self._constants = dict(graph.constants)
        self._producers = dict(graph.producers)
        self._defaults = graph.input_names & graph.constants.keys()
        self._readers = dict(graph.readers)
        self._instead: dict[str, Value] = {}  # what to read in place of an old name
        self._renamed: dict[str, Value] = {}  # values that take over the name of a graph output
        self._names: set[str] | None = None
        self._gone: set[Node] = set()  # nodes that lost their last reader
        self._changed = False

    @property
    def opset(self) -> int:
        return self.graph.opset

    def constant(self, value: Value | None) -> Array | None:
        if value is None or value.name in self._defaults:
            return None
        return self._constants.get(value.name)

    def is_default(self, value: Value | None) -> bool:
        return value is not None and value.name in self._defaults

    def producer(self, value: Value | None) -> Node | None:
        return None if value is None else self._producers.get(value.name)

    def readers(self, value: Value) -> int:
        return self._readers.get(value.name, 0)

    def can_stand_in(self, output: Value, value: Value) -> bool:
        if output.name not in self.graph.output_names or self.constant(value) is not None:
            return True
        taken = value.name in self.graph.output_names or value.name in self._renamed
        return value.name in self._producers and not taken

    def fresh(self, hint: str) -> str:
        if self._names is None:
            self._names = set(all_names(self.graph))
        names = self._names
        name = hint if hint not in names else next(n for n in (f"{hint}_{i}" for i in count(1)) if n not in names)
        self._names.add(name)
        return name

    def current(self, node: Node) -> Node:
        """The node as it reads now, its output types inferred again when one of its inputs is better known."""
        renamed = node.rename(self._instead) if self._instead else node
        if renamed is node:
            return node
        if self._says_more(node, renamed) and not _is_settled(node):
            renamed = self._typed_again(renamed)
        self._register(renamed)
        return renamed

    def _typed_again(self, node: Node) -> Node:
        types = infer_types(node, self.constant, self.opsets)
        outputs = tuple(value and better(value, kind) for value, kind in zip(node.outputs, types, strict=True))
        for old, new in zip(node.outputs, outputs, strict=True):
            if old is not new and new is not None:
                self._instead[new.name] = new
        return replace(node, outputs=outputs)

    def _says_more(self, node: Node, renamed: Node) -> bool:
        """Whether a renamed node reads a type or a constant that it did not know before."""
        for old, new in zip(filter(None, node.inputs), filter(None, renamed.inputs), strict=True):
            another = new.type is not old.type and new.type != old.type  # the very same needs no comparison
            if new is not old and (another or self.constant(new) is not None):
                return True
        return False

    def keep(self, node: Node) -> None:
        """Take a node over as it is now."""
        self._nodes.append(node)

    def _add(self, node: Node) -> None:
        """Take a new node."""
        self._nodes.append(node)
        self._register(node)

    def _register(self, node: Node) -> None:
        """Know a node that is none of the old graph as the producer of its results."""
        for value in node.results:
            self._producers[value.name] = node

    def replace(
        self, node: Node, nodes: tuple[Node, ...], constants: Mapping[str, Array], instead: Mapping[str, Value]
    ) -> None:
        """Put new nodes, constants and stand-ins in a node's place."""
        self._changed = True
        for value in node.results:
            del self._producers[value.name]
        for new in nodes:
            for value in new.uses:
                self._readers[value.name] = self._readers.get(value.name, 0) + 1
            self._add(new)
            # An output that keeps its name may be better known now.
            self._instead.update((value.name, value) for value in new.results if value not in node.outputs)
        for name, array in constants.items():
            self._constants[name] = read_only(array)
            if any(value.name == name for value in node.results):  # what reads it may know its type better now
                self._instead[name] = Value(name, TensorType.of(array))
        for name, value in instead.items():
            self._stand_in(name, value, node)
        self._release(node)

    def _stand_in(self, name: str, value: Value, node: Node) -> None:
        """Let everything read ``value`` instead of ``name``, which nothing assigns any more."""
        self._readers[value.name] = self._readers.get(value.name, 0) + self._readers.get(name, 0)
        if name not in self.graph.output_names:
            self._instead[name] = value
        elif not self.can_stand_in(Value(name), value):
            self._add(Node("Identity", (value,), (Value(name, value.type),), name=node.name))
        elif (array := self.constant(value)) is not None:
            self._constants[name] = array
            self._instead[name] = Value(name, value.type)
        else:
            self._renamed[value.name] = Value(name, value.type)
            self._instead[name] = value

    def _release(self, node: Node) -> None:
        """Forget a node's reads; a node that only this one read goes with it, so a replaced pair leaves no stump."""
        waiting = [node]
        while waiting:
            for value in waiting.pop().uses:
                self._readers[value.name] -= 1
                producer = self._producers.get(value.name)
                if producer and not self._readers[value.name] and not any(map(self.readers, producer.results)):
                    self._gone.add(producer)
                    waiting.append(producer)

    def finish(self) -> Graph:
        """The new graph, or the very same one when nothing was replaced."""
        if not self._changed:
            return self.graph
        nodes = [node for node in self._nodes if node not in self._gone]
        if self._renamed:
            nodes = [_take_over(node, self._renamed) for node in nodes]
        return replace(self.graph, nodes=tuple(nodes), constants=self._constants)


def _is_settled(node: Node) -> bool:
    """Whether all is known of a node's outputs already."""
    return all(value.type is not None and value.type.is_static for value in node.results)


def better(value: Value, found: TensorType | None) -> Value:
    """The value with a type that inference now knows better; dims once known are never forgotten."""
    if found is None or found.shape is None or value.opaque or found == value.type:
        return value
    if value.type is None:
        return Value(value.name, found)
    old = value.type.shape
    if old is None or len(old) != len(found.shape):
        return Value(value.name, found)
    dims = tuple(
        new if isinstance(new, int) or not isinstance(was, int) else was
        for was, new in zip(old, found.shape, strict=True)
    )
    return Value(value.name, TensorType(dims, found.dtype)) if dims != old else value


def _take_over(node: Node, renamed: Mapping[str, Value]) -> Node:
    node = node.rename(renamed)
    if not any(value.name in renamed for value in node.results):
        return node
    return replace(node, outputs=tuple(value and renamed.get(value.name, value) for value in node.outputs))
