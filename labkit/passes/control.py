"""Control flow that is decided already: an If whose condition is constant is its branch."""

from __future__ import annotations

from dataclasses import replace

from labkit.graph import Graph, Node, TensorType, Value
from labkit.passes.rewriting import Rewrite, Table, View


def inline_if(view: View, node: Node) -> Rewrite | None:
    """An If with a constant condition: the nodes of the branch that runs, under names not in use."""
    condition = view.constant(node.inputs[0])
    if condition is None or condition.size != 1:
        return None
    branch = node.attrs["then_branch" if bool(condition.ravel()[0]) else "else_branch"]
    if not isinstance(branch, Graph) or branch.inputs:
        return None
    new = {name: view.fresh(name) for name in branch.constants}
    values = {name: Value(new[name], TensorType.of(array)) for name, array in branch.constants.items()}
    nodes = []
    for inner in branch.nodes:
        current = inner.rename(values)
        outputs = tuple(value and Value(view.fresh(value.name), value.type) for value in inner.outputs)
        values |= {old.name: out for old, out in zip(inner.outputs, outputs, strict=True) if old and out}
        nodes.append(replace(current, outputs=outputs))
    results = [values.get(value.name, value) for value in branch.outputs]
    instead = {old.name: result for old, result in zip(node.outputs, results, strict=True) if old}
    return Rewrite(tuple(nodes), {new[name]: array for name, array in branch.constants.items()}, instead)


CONTROL: Table = {"If": (inline_if,)}
