"""Control flow that is decided already: an If whose condition is constant is its branch."""

from __future__ import annotations

from dataclasses import replace

from labkit.graph import Array, Graph, Node, TensorType, Value
from labkit.passes.rewriting import Rewrite, Table, View


def inline_if(view: View, node: Node) -> Rewrite | None:
    """An If with a constant condition: the nodes of the branch that runs, under names not in use."""
    constants: dict[str, Array] = {}
    branch = _taken(view, node, constants)
    if branch is None:
        return None
    nodes, results = _opened(view, branch, constants)
    instead = {old.name: result for old, result in zip(node.outputs, results, strict=True) if old}
    return Rewrite(tuple(nodes), constants, instead)


def _taken(view: View, node: Node, constants: dict[str, Array]) -> Graph | None:
    """The branch that runs, when the condition is known and there is a branch to open."""
    value = node.inputs[0]
    condition = constants.get(value.name, view.constant(value)) if value else None
    if condition is None or condition.size != 1:
        return None
    branch = node.attrs["then_branch" if bool(condition.ravel()[0]) else "else_branch"]
    return branch if isinstance(branch, Graph) and not branch.inputs else None


def _opened(view: View, branch: Graph, constants: dict[str, Array]) -> tuple[list[Node], list[Value]]:
    """Nodes and results of a branch, its constants added to ``constants``. An If inside it that is decided as well is
    opened too: a round of the pipeline for each of thirty nested ones would be many."""
    new = {name: view.fresh(name) for name in branch.constants}
    constants |= {new[name]: array for name, array in branch.constants.items()}
    values = {name: Value(new[name], TensorType.of(array)) for name, array in branch.constants.items()}
    nodes: list[Node] = []
    for inner in branch.nodes:
        current = inner.rename(values)
        taken = _taken(view, current, constants) if current.op == "If" and not current.domain else None
        if taken is not None:
            more, results = _opened(view, taken, constants)
            nodes += more
            values |= {old.name: found for old, found in zip(inner.outputs, results, strict=True) if old}
            continue
        outputs = tuple(value and Value(view.fresh(value.name), value.type) for value in inner.outputs)
        values |= {old.name: out for old, out in zip(inner.outputs, outputs, strict=True) if old and out}
        nodes.append(replace(current, outputs=outputs))
    return nodes, [values.get(value.name, value) for value in branch.outputs]


CONTROL: Table = {"If": (inline_if,)}
