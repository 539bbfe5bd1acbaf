"""Operators that change nothing of what stands in front of them, by its sign or its wholeness; and signs that meet."""

from __future__ import annotations

from dataclasses import replace

from labkit.graph import Node, Value
from labkit.passes.ranges import lowest
from labkit.passes.rewriting import Rewrite, Table, View, before, forward

_ROUNDING = ("Ceil", "Floor", "Round")


def rounding_of_whole(view: View, node: Node) -> Rewrite | None:
    """Ceil, Floor or Round of what is whole already: rounded, or cast from an integer."""
    inner = before(view, node, {*_ROUNDING, "Cast"})
    if inner is None or (inner.op == "Cast" and not _is_integer(inner.inputs[0])):
        return None
    return forward(view, node, inner.output)


def _is_integer(value: Value | None) -> bool:
    return value is not None and (value.dtype or "").startswith(("int", "uint", "bool"))


def cut_of_positive(view: View, node: Node) -> Rewrite | None:
    """Abs, Relu, LeakyRelu and PRelu leave alone what is not negative."""
    x = node.inputs[0]
    return None if lowest(view, x) < 0 else forward(view, node, x)


def sum_with_negative(view: View, node: Node) -> Rewrite | None:
    """x + (−z) is x − z, and x − (−z) is x + z, bit for bit."""
    for x, value in (node.inputs, *([node.inputs[::-1]] if node.op == "Add" else [])):
        negative = view.producer(value)
        if negative is None or negative.op != "Neg" or negative.domain or view.readers(negative.output) > 1:
            continue
        return Rewrite((replace(node, op={"Add": "Sub", "Sub": "Add"}[node.op], inputs=(x, negative.inputs[0])),))
    return None


SIGNS: Table = {
    **dict.fromkeys(_ROUNDING, (rounding_of_whole,)),
    **dict.fromkeys(("Abs", "LeakyRelu", "PRelu", "Relu"), (cut_of_positive,)),
    **dict.fromkeys(("Add", "Sub"), (sum_with_negative,)),
}
