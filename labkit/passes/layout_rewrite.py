"""A graph with some kernels in the machine's order: the kernels themselves, and transforms where values cross.

In the machine's order the graph holds permuted tensors. A kernel that names axes gets other names, one that works
element by element stays as it is, and any other becomes a fused node that transposes back what it reads and transposes
what it makes: one kernel still, and nothing of that reaches DRAM.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from labkit.bodies import all_names, fused_node, inline, kernel_name, own_name
from labkit.graph import Array, Graph, Node, Shape, TensorType, Value, read_only
from labkit.passes.layout_cut import Problem, Vertex
from labkit.passes.layout_kernels import data
from labkit.passes.layout_native import Permuted, native


def rewritten(problem: Problem, hardware: frozenset[int]) -> Graph:
    """The graph with these nodes in the machine's order, beside those that have to be."""
    return _Rewriter(problem, frozenset({"hardware", *hardware})).rewrite()


@dataclass
class _Rewriter:
    """Walks over the nodes once. A value exists under its own name in the file's order, and in ``permuted`` in the
    machine's; a transform is made when the first reader asks for it."""

    problem: Problem
    inside: frozenset[Vertex]

    def __post_init__(self) -> None:
        graph = self.problem.graph
        self.order = self.problem.order
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = dict(graph.constants)
        self.plain = {*graph.constants, *graph.input_names}
        self.permuted: dict[str, Value] = {}
        self.targets: dict[Shape, Value] = {}
        self.known = {move.value.name: move.value for move in self.problem.moves}  # an output may say less of itself
        self.taken = {*all_names(graph), *(node.op for node in graph.nodes)}

    def rewrite(self) -> Graph:
        graph = self.problem.graph
        for node, (reads, writes) in zip(graph.nodes, self.problem.ends, strict=True):
            there, back = reads in self.inside, writes in self.inside
            if not there and not back:
                self._add_plain(node)
            elif node.op == "Transpose":
                self._add_transpose(node, there, back)
            else:
                self._add_kernel(node)
        for value in graph.outputs:
            self._need_plain(value)
        constants = {name: read_only(array) for name, array in self.constants.items()}
        return replace(graph, nodes=tuple(self.nodes), constants=constants)

    # ---- nodes

    def _add_plain(self, node: Node) -> None:
        for value in node.uses:
            self._need_plain(value)
        self.nodes.append(node)
        self.plain |= {value.name for value in node.results}

    def _add_transpose(self, node: Node, there: bool, back: bool) -> None:
        """A Transpose of the file that reads from the machine's order, writes to it, or both."""
        assert node.inputs[0] is not None
        x = self._permuted(node.inputs[0]) if there else self._need_plain(node.inputs[0])
        y = self._new(node.output) if back else node.output
        perm = self.order.back if there else tuple(range(4))
        perm = tuple(perm[axis] for axis in node.attrs.get("perm") or (3, 2, 1, 0))
        perm = tuple(perm[axis] for axis in self.order.perm) if back else perm
        op, attrs = ("Identity", {}) if perm == tuple(range(4)) else ("Transpose", {"perm": perm})
        self.nodes.append(Node(op, (x,), (y,), attrs, name=node.name))
        if not back:
            self.plain.add(y.name)

    def _add_kernel(self, node: Node) -> None:
        as_data = {value.name for value in data(node)}
        permuted = {v.name: self._permuted(v) for v in node.uses if v.name in as_data and v.name in self.known}
        for value in node.uses:
            if value.name not in permuted:
                self._need_plain(value)
        results = {v.name: self._new(v) if v.name in self.known else v for v in node.results}
        view = Permuted(self.problem.graph, node, self.order, permuted, self._fresh)
        alone = node.body is None and len(node.outputs) == 1
        found = native(view, results[node.output.name]) if alone else None
        if found is None:
            self.nodes.append(self._wrapped(node, permuted, results))
        else:
            self.nodes += found.nodes
            self.constants.update(found.constants)

    def _wrapped(self, node: Node, permuted: dict[str, Value], results: dict[str, Value]) -> Node:
        """One kernel that computes in the file's order, between transposes that stay inside it."""
        uses = {value.name: value for value in node.uses}
        if not self.order.split:  # weights are permuted here and now; blocks would have to divide them
            fixed = {name: self.problem.graph.constant(value) for name, value in uses.items()}
            weights = [name for name, array in fixed.items() if array is not None and array.ndim == 4]
            permuted = {**permuted, **{name: self._permuted(uses[name]) for name in weights}}
        opsets = self.problem.graph.opsets
        opened = inline(Graph(node.op, tuple(uses.values()), node.results, (node,), opsets=opsets))
        steps: list[Node] = []
        for name, value in uses.items():
            if name in permuted:
                steps += self._home(permuted[name], value)
        steps += opened.nodes
        for value in node.results:
            if results[value.name] is not value:
                steps += self._there(value, results[value.name])
        op = own_name(f"{kernel_name([node])}_{self.order.name}", len(self.nodes), self.taken)
        return replace(fused_node(steps, results.values(), op, opsets), name=node.name)

    # ---- values

    def _permuted(self, value: Value) -> Value:
        """A value in the machine's order, transformed when it is there in the file's only."""
        if value.name in self.permuted:
            return self.permuted[value.name]
        permuted = self._new(value)
        array = self.problem.graph.constant(value)
        if array is None:
            self._add_transform("To", permuted, self._there(value, permuted))
        else:
            self.constants[permuted.name] = np.ascontiguousarray(array.transpose(self.order.perm))
        return permuted

    def _need_plain(self, value: Value) -> Value:
        """A value in the file's order, transformed when it is there in the machine's only."""
        value, permuted = self.known.get(value.name, value), self.permuted.get(value.name)
        if value.name not in self.plain and permuted is not None:
            self._add_transform("From", value, self._home(permuted, value))
            self.plain.add(value.name)
        return value

    def _new(self, value: Value) -> Value:
        """What a value will be called in the machine's order."""
        assert value.type is not None
        name = self._fresh(f"{value.name}_{self.order.name}")
        self.permuted[value.name] = Value(name, self.order.kind(value.type))
        return self.permuted[value.name]

    def _add_transform(self, way: str, result: Value, steps: tuple[Node, ...]) -> None:
        """One kernel that transforms a value."""
        if len(steps) > 1:
            op = own_name(f"{way}{self.order.name}", len(self.nodes), self.taken)
            steps = (fused_node(steps, (result,), op, self.problem.graph.opsets),)
        self.nodes += steps

    def _there(self, x: Value, y: Value) -> tuple[Node, ...]:
        return self.order.there(x, y, self._fresh(f"{x.name}_split"), self._target)

    def _home(self, y: Value, x: Value) -> tuple[Node, ...]:
        return self.order.home(y, x, self._fresh(f"{x.name}_split"), self._target)

    def _target(self, shape: Shape) -> Value:
        """The constant that a Reshape to a shape reads."""
        if shape not in self.targets:
            dims = np.array([-1 if isinstance(dim, str) else dim for dim in shape], dtype=np.int64)
            name = self._fresh("shape_" + "x".join(map(str, dims.tolist())))
            self.targets[shape], self.constants[name] = Value(name, TensorType.of(dims)), dims
        return self.targets[shape]

    # ---- names

    def _fresh(self, hint: str) -> str:
        if hint in self.taken:
            return own_name(hint, len(self.nodes), self.taken)
        self.taken.add(hint)
        return hint
