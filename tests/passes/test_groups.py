"""Which nodes may form one kernel: TVM's rule as the judge, and what goes beyond it."""

from __future__ import annotations

from itertools import combinations

import pytest

from labkit.graph import Graph, Node
from labkit.passes.groups import LARGEST, groups
from labkit.passes.op_classes import OpClass, op_class
from tests.fuzz.generate import generate


def kernels(graph: Graph) -> list[str]:
    return ["_".join(node.op for node in nodes) for nodes in groups(graph)]


def test_an_epilogue_joins_its_convolution(parse):
    text = "c = Conv(x, w) b = Add(c, s) r = Relu(b) y = Clip(r)"
    graph = parse(f"agraph (float[1,3,8,8] x, float[4,3,3,3] w, float[1,4,1,1] s) => (float[1,4,6,6] y) {{ {text} }}")
    assert kernels(graph) == ["Conv_Add_Relu_Clip"]


def test_a_swish_written_out_joins_through_both_of_its_paths(parse):
    graph = parse("g (float[1,3,8,8] x, float[4,3,3,3] w) => (y) { c = Conv(x, w) s = Sigmoid(c) y = Mul(c, s) }")
    assert kernels(graph) == ["Conv_Sigmoid_Mul"]


def test_a_residual_joins_the_convolution_that_ends_last(parse):
    text = "a = Conv(x, w) r = Relu(a) b = Conv(r, w) s = Add(b, r) y = Relu(s)"
    graph = parse(f"g (float[1,4,8,8] x, float[4,4,1,1] w) => (y) {{ {text} }}")
    assert kernels(graph) == ["Conv_Relu", "Conv_Add_Relu"]


def test_a_kernel_has_one_anchor(parse):
    graph = parse("g (float[1,4,8,8] x, float[4,4,1,1] w) => (y) { a = Conv(x, w) b = Conv(x, w) y = Add(a, b) }")
    assert sorted(kernels(graph)) == ["Conv", "Conv_Add"]


def test_an_operator_in_front_of_a_convolution_stays_in_front(parse):
    graph = parse("g (float[1,4,8,8] x, float[4,4,1,1] w) => (y) { r = Relu(x) c = Conv(r, w) y = Add(c, r) }")
    assert kernels(graph) == ["Relu", "Conv_Add"]


def test_what_is_small_and_spread_out_is_not_computed_again_for_each_element(parse):
    graph = parse("g (float[1,4,8,8] x, float[1,4,1,1] s) => (y) { t = Sigmoid(s) y = Mul(x, t) }")
    assert kernels(graph) == ["Sigmoid", "Mul"]


def test_a_path_that_leaves_and_comes_back_keeps_its_ends_apart(parse):
    text = "c = Conv(x, w) p = GlobalAveragePool(c) s = Conv(p, v) y = Mul(c, s)"
    graph = parse(f"g (float[1,4,8,8] x, float[4,4,3,3] w, float[4,4,1,1] v) => (y) {{ {text} }}")
    assert kernels(graph) == ["Conv", "GlobalAveragePool", "Conv", "Mul"]


def test_two_groups_never_wait_for_each_other(parse):
    """b and c are one group through r; were a and d one as well, each group would read from the other."""
    text = "a = Relu(x) r = Neg(z) b = Add(r, a) c = Sub(z, r) m = Transpose(c) d = Add(a, m)"
    graph = parse(f"g (float[4,4] x, float[4,4] z) => (b, d) {{ {text} }}")
    order = [set(nodes) for nodes in groups(graph)]
    made: set[str] = {value.name for value in graph.inputs}
    for nodes in order:
        inside = {value.name for node in nodes for value in node.results}
        assert {value.name for node in nodes for value in node.uses} <= made | inside
        made |= inside


def test_a_detour_is_seen_after_the_group_has_come_to_stand_behind_it(parse):
    """b puts the group of a behind a long chain; k, which reads a, then stands behind that chain as well."""
    text = "a = Relu(x) k = Transpose(a) t = Transpose(x) u = Transpose(t) v = Transpose(u) b = Add(a, v) e = Add(b, k)"
    graph = parse(f"g (float[4,4] x) => (e) {{ {text} }}")
    assert kernels(graph)[-3:] == ["Relu_Add", "Transpose", "Add"]


def test_layer_normalisation_written_out_is_one_kernel(parse):
    text = (
        "m = ReduceMean<axes=[-1]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes=[-1]>(q) "
        "e = Add(v, eps) s = Sqrt(e) n = Div(d, s) g = Mul(n, scale) y = Add(g, shift)"
    )
    graph = parse(f"g (float[2,5,16] x, float[1] eps, float[16] scale, float[16] shift) => (y) {{ {text} }}")
    assert len(kernels(graph)) == 1


def test_softmax_written_out_is_one_kernel_and_over_another_axis_two(parse):
    text = "m = ReduceMax<axes=[{0}]>(x) d = Sub(x, m) e = Exp(d) s = ReduceSum<axes=[{1}]>(e) y = Div(e, s)"
    head = "g (float[3,4,5] x) => (y)"
    assert len(kernels(parse(f"{head} {{ {text.format(2, 2)} }}", opset=11))) == 1
    assert len(kernels(parse(f"{head} {{ {text.format(2, 1)} }}", opset=11))) == 2


def test_a_batch_norm_in_training_mode_stays_alone(parse):
    text = "b = BatchNormalization<training_mode={}>(x, s, s, s, s) y = Relu(b)"
    head = "g (float[1,4,8,8] x, float[4] s) => (y)"
    assert len(kernels(parse(f"{head} {{ {text.format(0)} }}"))) == 1
    assert len(kernels(parse(f"{head} {{ {text.format(1)} }}"))) == 2


def test_a_long_chain_is_cut_into_kernels_of_readable_length(parse):
    body = " ".join(f"v{i + 1} = Neg(v{i})" for i in range(3 * LARGEST))
    graph = parse(f"g (float[4] v0) => (v{3 * LARGEST}) {{ {body} }}")
    assert [len(nodes) for nodes in groups(graph)] == [LARGEST] * 3


def _post_dominator(graph: Graph, node: Node) -> tuple[Node, set[Node]] | None:
    """The first node through which every path to an output leads, and the nodes before it on those paths."""
    reached: set[Node] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if any(value.name in graph.output_names for value in current.results):
            reached.add(current)
        users = {user for value in current.results for user in graph.users.get(value.name, ())}
        waiting += users - reached
        reached |= users
    for end in sorted(reached - {node}, key=graph.nodes.index):
        between = {n for n in reached if graph.nodes.index(n) < graph.nodes.index(end)} | {node}
        leaves = any(value.name in graph.output_names for n in between for value in n.results)
        users = {user for n in between for value in n.results for user in graph.users.get(value.name, ())}
        if not leaves and users <= between | {end}:
            return end, between - {node}
    return None


def _comes_back(graph: Graph, nodes: set[Node]) -> bool:
    """Whether a path leaves these nodes and leads to one of them again."""
    outside: set[Node] = set()
    for node in graph.nodes:
        sources = {graph.producers[value.name] for value in node.uses if value.name in graph.producers}
        if node in nodes and sources & outside:
            return True
        if node not in nodes and sources & (nodes | outside):
            outside.add(node)
    return False


@pytest.mark.parametrize("part", range(4))
def test_what_tvm_fuses_with_its_post_dominator_is_one_kernel(part):
    asked = 0
    for seed in range(part * 100, part * 100 + 100):
        graph = generate(seed)
        where = {node: i for i, nodes in enumerate(groups(graph)) for node in nodes}
        for node in graph.nodes:
            found = _post_dominator(graph, node)
            if found is None or op_class(node) not in (OpClass.ANCHOR, OpClass.ELEMENTWISE):
                continue
            end, between = found
            region = {node, end, *between}
            alike = all(n.results[0].shape == node.results[0].shape for n in region)
            if alike and all(op_class(n) is OpClass.ELEMENTWISE for n in region - {node}):
                asked += 1
                together = where[node] == where[end]
                others = [n for n, i in where.items() if i in (where[node], where[end])]
                held = [n for n in others if op_class(n) is not OpClass.ELEMENTWISE]
                apart = len(held) > 1 or _comes_back(graph, set(others))  # with others in them they no longer fit
                assert together or apart, f"seed {seed}: {node.label} and {end.label}"
    assert asked > 10


@pytest.mark.parametrize("part", range(4))
def test_groups_are_convex_and_run_in_the_order_given(part):
    for seed in range(part * 100, part * 100 + 100):
        graph = generate(seed)
        known = {value.name for value in graph.inputs} | set(graph.constants)
        found = list(groups(graph))
        for nodes in found:
            for node in nodes:
                assert {value.name for value in node.uses} <= known, f"seed {seed}"
                known |= {value.name for value in node.results}
        assert sorted(map(id, graph.nodes)) == sorted(id(node) for nodes in found for node in nodes)
        assert not any(set(a) & set(b) for a, b in combinations(found, 2))
