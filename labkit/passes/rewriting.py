"""The one driver behind most passes: a table of small rules, swept once over the nodes of a graph.

A rule looks at one node and answers with a Rewrite (what takes the node's place), a Refusal (the pattern is there, but
a guard forbids the rewrite, and says why) or None (not its pattern).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

from labkit.graph import Array, Graph, Node, Value
from labkit.passes.editor import Editor

Pass: TypeAlias = Callable[[Graph], Graph]


class Rewrite(NamedTuple):
    """What takes a node's place: new nodes, new constants, and for an output that nothing assigns any more, the value
    to read instead of it."""

    nodes: tuple[Node, ...] = ()
    constants: Mapping[str, Array] = MappingProxyType({})
    instead: Mapping[str, Value] = MappingProxyType({})


@dataclass(frozen=True)
class Refusal:
    """Why a rule left a node alone: the guard that spoke, and the reason in words."""

    guard: str
    why: str
    rule: str = ""
    node: str = ""

    def __str__(self) -> str:
        return f"{self.node}: {self.rule} refused, {self.guard}: {self.why}"


class View(Protocol):
    """What a rule may ask of the graph around its node."""

    @property
    def opsets(self) -> Mapping[str, int]:
        """Version of each operator domain."""

    @property
    def opset(self) -> int:
        """Version of the default operator domain."""

    def constant(self, value: Value | None) -> Array | None:
        """The array that a value always is; None for anything a caller can feed."""

    def is_default(self, value: Value | None) -> bool:
        """Whether a value is an input with a default: constant until a caller feeds another."""

    def producer(self, value: Value | None) -> Node | None:
        """The node that assigns a value; None for inputs and constants."""

    def readers(self, value: Value) -> int:
        """How often a value is read, being a graph output included."""

    def can_stand_in(self, output: Value, value: Value) -> bool:
        """Whether ``output`` can vanish, everything reading ``value`` instead; an output of the graph keeps its name,
        so then ``value`` has to be free to take that name over."""

    def fresh(self, hint: str) -> str:
        """A name not in use, close to ``hint``."""


Rule: TypeAlias = Callable[[View, Node], Rewrite | Refusal | None]
Table: TypeAlias = Mapping[str, tuple[Rule, ...]]


def forward(view: View, node: Node, value: Value | None) -> Rewrite | None:
    """Read ``value`` wherever the node's first output was read; an Identity that only names an output has to stay."""
    if value is None or (node.op == "Identity" and not view.can_stand_in(node.output, value)):
        return None
    return Rewrite(instead={node.output.name: value})


def before(view: View, node: Node, ops: Collection[str]) -> Node | None:
    """The node that makes the first input, when it is one of ONNX's own operators ``ops``."""
    found = view.producer(node.inputs[0]) if node.inputs else None
    return found if found is not None and found.op in ops and not found.domain else None


@dataclass(frozen=True)
class Sweep:
    """The pass that offers each node to the rules of its operator ("*" holds rules for every operator).

    One sweep is linear in the nodes. It returns the very same graph when no rule had anything to do.
    """

    name: str
    table: Table

    def __call__(self, graph: Graph) -> Graph:
        if "*" not in self.table and self.table.keys().isdisjoint(graph.ops):
            return graph
        editor = Editor(graph)
        for node in graph.nodes:
            current = editor.current(node)
            rewrite = self._rewrite(editor, current)
            if rewrite is None:
                editor.keep(current)
            else:
                editor.replace(current, rewrite.nodes, rewrite.constants, rewrite.instead)
        return editor.finish()

    def _rewrite(self, view: View, node: Node) -> Rewrite | None:
        """What the first rule that has anything to do puts in the node's place."""
        for rule in self._rules(node):
            found = rule(view, node)
            if isinstance(found, Rewrite):
                return found
        return None

    def refusals(self, graph: Graph) -> Iterator[Refusal]:
        """What the rules refuse in this graph, and why; nothing is rewritten."""
        editor = Editor(graph)
        for node in graph.nodes:
            for rule in self._rules(node):
                found = rule(editor, node)
                if isinstance(found, Refusal):
                    yield replace(found, rule=getattr(rule, "__name__", type(rule).__name__), node=node.label)
            editor.keep(node)

    def _rules(self, node: Node) -> tuple[Rule, ...]:
        """The rules for an operator of ONNX's own domain: another domain's operators may mean anything."""
        return () if node.domain else self._all_rules.get(node.op, self._all_rules["*"])

    @cached_property
    def _all_rules(self) -> Table:
        """The rules for each operator, those for all of them included."""
        for_all = self.table.get("*", ())
        return {op: rules if op == "*" else rules + for_all for op, rules in {"*": (), **self.table}.items()}


def combined(*tables: Table) -> Table:
    """One table of several: the rules of an operator in the order of the tables."""
    ops = dict.fromkeys(op for table in tables for op in table)
    return {op: tuple(rule for table in tables for rule in table.get(op, ())) for op in ops}


def explain(graph: Graph, passes: Iterable[Pass]) -> tuple[Refusal, ...]:
    """Every refusal of ``passes`` over one graph: why it is not smaller than it is. Some passes refuse nothing."""
    asked = (getattr(one, "refusals", None) for one in passes)
    return tuple(refusal for refusals in asked if refusals for refusal in refusals(graph))
