"""A student's pass, judged on graphs that are drawn node by node and told in one line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.plain import kind
from labkit.draws import draws
from labkit.errors import GraphError, LabError
from labkit.graph import Array, Graph, Node, TensorType, Value, read_only
from labkit.inference import infer_types
from labkit.interpreter import run

_LONGEST_WORDS = 230


class Sketch:
    """A graph in the making: ``feed`` an input, ``keep`` a constant, ``put`` a node; each gives a Value to read."""

    def __init__(self, opset: int = 17) -> None:
        self._opsets = {"": opset}
        self._inputs: list[Value] = []
        self._nodes: list[Node] = []
        self._constants: dict[str, Array] = {}

    def feed(self, name: str, *shape: int | str, dtype: str = "float32", default: Any = None) -> Value:
        """An input; with a ``default`` a caller may leave it out."""
        value = Value(name, TensorType(shape, dtype))
        self._inputs.append(value)
        if default is not None:
            self.keep(name, default)
        return value

    def keep(self, name: str, array: Any, dtype: Any = np.float32) -> Value:
        """A constant."""
        self._constants[name] = read_only(np.array(array, dtype))
        return Value(name, TensorType.of(self._constants[name]))

    def put(self, op: str, *reads: Value | None, out: str = "", kind: TensorType | None = None, **attrs: Any) -> Any:
        """A node. ``out`` names its outputs, several split at spaces; gives the Value, or a tuple of several."""
        names = out.split() or [f"v{len(self._nodes)}"]
        draft = Node(op, reads, tuple(map(Value, names)), attrs)
        outputs = tuple(map(Value, names, (kind,) if kind else infer_types(draft, self._known, self._opsets)))
        self._nodes.append(Node(op, reads, outputs, attrs))
        return outputs if len(outputs) > 1 else outputs[0]

    def branch(self, condition: Value, read: Value, out: str = "") -> Value:
        """An If on ``condition`` whose branches read ``read`` from around them: Relu of it, or it as it is."""
        attrs = {}
        for name, op in (("then_branch", "Relu"), ("else_branch", "Identity")):
            inner = Value(f"{op.lower()}_of_{read.name}", read.type)
            attrs[name] = Graph(name, (), (inner,), (Node(op, (read,), (inner,)),), {}, self._opsets, (read,))
        found: Value = self.put("If", condition, out=out, kind=read.type, **attrs)
        return found

    def graph(self, *outputs: Value) -> Graph:
        """The finished graph."""
        return Graph("g", tuple(self._inputs), outputs, tuple(self._nodes), dict(self._constants), self._opsets)

    def _known(self, value: Value | None) -> Array | None:
        return self._constants.get(value.name) if value else None


@dataclass(frozen=True)
class Case:
    """A graph for a pass; ``nodes`` are the most that a right one leaves. ``wrong`` is what to look at where the result
    is another function, ``left`` where it is right and too long."""

    graph: Graph
    nodes: int
    wrong: str
    left: str


def judge_pass(function: Function, case: Case, name: str) -> Graph:
    """What a student's pass makes of a case; CheckFailed unless it is the same function, short, and at rest."""
    told = f"The graph: {in_words(case.graph)}"
    constants = dict(case.graph.constants)
    try:
        got = graph_of(function(case.graph), name)
    except GraphError as error:
        raise CheckFailed(f"{name}(graph) made a graph that is none ({error}): {case.wrong} {told}") from None
    if list(constants) != list(case.graph.constants):
        raise CheckFailed(f"{name}(graph) changed the graph that it was given; a graph never changes, make a new one.")
    finding = _interface(case.graph, got) or Trial(case.graph).difference(got)
    if finding:
        raise CheckFailed(f"{name}(graph) {finding}: {case.wrong} {told}")
    if len(got.nodes) > case.nodes:
        raise CheckFailed(f"{name}(graph) left {len(got.nodes)} nodes, {case.nodes} are enough: {case.left} {told}")
    again = graph_of(function(got), name)
    if again is not got:
        raise CheckFailed(f"{name}(graph) is not at rest: {_restless(got, again)} {told}")
    return got


def graph_of(value: object, name: str) -> Graph:
    """The value, if it is a Graph and no kin of it."""
    if value is None:
        raise CheckFailed(f"{name}(graph) gave nothing back: does the function end with return?")
    if type(value) is not Graph:
        raise CheckFailed(f"{name}(graph) gave {kind(value)}; expected a Graph, see dataclasses.replace.")
    return value


def _restless(got: Graph, again: Graph) -> str:
    if len(again.nodes) == len(got.nodes) and again.constants.keys() == got.constants.keys():
        return "on its own result, with nothing to do, it gave a new object; return the graph that came in."
    return "on its own result it found more to do; can one sweep, in the order of the nodes, do it all?"


def _interface(before: Graph, after: Graph) -> str:
    """What became of the interface; empty when nothing did."""
    for what in ("inputs", "outputs"):
        old, new = ([value.name for value in getattr(graph, what)] for graph in (before, after))
        if old != new:
            return f"changed the interface, {what} {', '.join(old)} became {', '.join(new) or 'none'}"
    lost = [name for name in before.input_names & before.constants.keys() if name not in after.constants]
    return f"took the default of the input {lost[0]!r} away" if lost else ""


@dataclass(frozen=True)
class Trial:
    """A graph and what it computes, on two draws: a default is used in one of them, and fed in the other."""

    graph: Graph

    @cached_property
    def _expected(self) -> list[tuple[dict[str, Array], dict[str, Array]]]:
        return [(feeds, run(self.graph, feeds)) for _, feeds in islice(draws(self.graph, 1), 2)]

    def difference(self, after: Graph) -> str:
        """How the values of another graph differ; empty when they do not."""
        if after is self.graph:
            return ""
        return next(filter(None, (self._difference(after, *pair) for pair in self._expected)), "")

    @staticmethod
    def _difference(after: Graph, feeds: dict[str, Array], expected: dict[str, Array]) -> str:
        try:
            found = run(after, feeds)
        except (LabError, KeyError, ValueError, AttributeError) as error:
            return f"made a graph that cannot run ({' '.join(str(error).split())})"
        for name, one in expected.items():
            two = found[name]
            if one.shape != two.shape or one.dtype != two.dtype:
                return f"made {name!r} {two.dtype} of shape {two.shape}, it was {one.dtype} of shape {one.shape}"
            if not _close(one, two):
                return f"changed the values of {name!r}"
        return ""


def _close(one: Array, two: Array) -> bool:
    """Floats up to a thousandth of themselves, for folding rounds otherwise; all else to the bit."""
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, two))
    finite = np.abs(one[np.isfinite(one)])
    scale = float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(one, two, rtol=1e-3, atol=1e-4 * scale, equal_nan=True))


def in_words(graph: Graph) -> str:
    """The graph in one line: ``a = Relu(x); y = Add(a, c) → y``, cut where it grows too long."""
    words = f"{'; '.join(_node_words(graph.nodes))} → {', '.join(value.name for value in graph.outputs)}"
    return words if len(words) <= _LONGEST_WORDS else f"{words[:_LONGEST_WORDS]} …"


def _node_words(nodes: Iterable[Node]) -> Iterable[str]:
    for node in nodes:
        read = ", ".join(value.name if value else "-" for value in node.inputs)
        around = "; inside: " + ", ".join(dict.fromkeys(v.name for b in node.bodies for v in b.captures))
        yield f"{', '.join(v.name for v in node.results)} = {node.op}({read}{around if node.bodies else ''})"
