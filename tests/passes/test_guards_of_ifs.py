"""Guards one by one, continued: an If that is decided opens with all that is decided inside it, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import labkit

TRUE = "Constant <value = bool {1}> ()"


def branch(kind: str, body: str, out: str) -> str:
    return f"{kind}_branch = {kind}_{out} () => (float[2] {out}) {{ {body} }}"


def decided(condition: str, then: str, out: str, result: str) -> str:
    """result = an If whose other branch is an Abs."""
    other = branch("else", f"other_{result} = Abs(x)", f"other_{result}")
    return f"{result} = If ({condition}) <{branch('then', then, out)}, {other}>"


INNER = decided("c", "r = Neg(x)", "r", "q")
# name: (what stands in the branch that runs, its output, operators left)
ROWS = {
    "decided by the same constant": (INNER, "q", "Neg"),
    "decided by a constant of the branch": (f"d = {TRUE} {decided('d', 'r = Neg(x)', 'r', 'q')}", "q", "Neg"),
    "decided three deep": (decided("c", INNER, "q", "p"), "p", "Neg"),
    "decided, and read further on": (f"{INNER} s = Mul(q, q)", "s", "Neg Mul"),
    "decided by what is fed": (f"h = Exp(x) {decided('b', 'r = Neg(h)', 'r', 'q')}", "q", "Exp If"),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_is_decided_opens_in_one_round(parse, name):
    body, out, left = ROWS[name]
    graph = parse(f"agraph (float[2] x, bool b) => (float[2] y) {{ {decided('c', body, out, 'y')} }}", c=np.array(True))
    report = labkit.optimize(graph, passes=["fold", "dead"], max_rounds=2)
    assert [node.op for node in report.graph.nodes] == left.split()
    labkit.verify(graph, report.graph)


def test_thirty_nested_ifs_that_are_decided_are_what_runs(parse):
    body, out = "r = Neg(x)", "r"
    for level in range(30):
        body, out = decided("c", body, out, f"q{level}"), f"q{level}"
    graph = parse(f"agraph (float[2] x) => (float[2] {out}) {{ {body} }}", c=np.array(True))
    report = labkit.optimize(graph)
    assert [node.op for node in report.graph.nodes] == ["Neg"]
    labkit.verify(graph, report.graph)
