"""Two nodes in a row that one node, or none, can do."""

from __future__ import annotations

from dataclasses import replace

from labkit.graph import Node
from labkit.passes.rewriting import Rewrite, Sweep, View, forward


def transpose_of_transpose(view: View, node: Node) -> Rewrite | None:
    """Transpose∘Transpose is one Transpose with the composed permutation, and none when that is the identity.

    The first Transpose stays for whoever else reads it, so no reader has to be counted.
    """
    inner = view.producer(node.inputs[0])
    if inner is None or inner.op != "Transpose" or inner.domain or inner.inputs[0] is None:
        return None
    x = inner.inputs[0]
    rank = x.type.rank if x.type else None
    first, second = inner.attrs.get("perm"), node.attrs.get("perm")
    if first is None and second is None:
        return forward(view, node, x)  # two reversals, whatever the rank
    if rank is None:
        return None
    backwards = tuple(reversed(range(rank)))
    first, second = first or backwards, second or backwards
    composed = tuple(first[axis] for axis in second)
    if composed == tuple(range(rank)):
        return forward(view, node, x)
    return Rewrite(nodes=(replace(node, inputs=(x,), attrs={**node.attrs, "perm": composed}),))


MERGES = Sweep("merges", {"Transpose": (transpose_of_transpose,)})
