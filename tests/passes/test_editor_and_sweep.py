import numpy as np
import pytest

import labkit
from labkit.passes.dead import eliminate_dead
from labkit.passes.pipeline import PASSES

NO_OPS = PASSES["no-ops"]
X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


def ops(graph):
    return [node.op for node in graph.nodes]


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_with_nothing_to_do_returns_the_very_same_graph(parse, name):
    graph = parse("agraph (float[2, 3] x) => (float[2, 3] y) { a = Relu(x) y = Sigmoid(a) }")
    assert PASSES[name](graph) is graph


def test_a_sweep_removes_a_whole_chain_at_once_and_then_rests(parse):
    chain = " ".join(f"a{i + 1} = Identity(a{i})" for i in range(50))
    graph = parse(f"agraph (float[2, 3] x) => (float[2, 3] y) {{ a0 = Relu(x) {chain} y = Neg(a50) }}")
    after = NO_OPS(graph)
    assert ops(after) == ["Relu", "Neg"]
    assert NO_OPS(after) is after


def test_an_output_that_loses_its_node_gives_its_name_to_the_producer(parse):
    graph = parse("agraph (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) { a = Relu(x) z = Neg(a) y = Identity(a) }")
    after = NO_OPS(graph)
    assert ops(after) == ["Relu", "Neg"]
    assert after.nodes[0].output.name == "y"
    assert after.nodes[1].inputs[0].name == "y"
    np.testing.assert_array_equal(labkit.run(after, {"x": X})["z"], -np.maximum(X, 0))


def test_an_identity_that_names_an_input_as_output_stays(parse):
    graph = parse("agraph (float[2, 3] x) => (float[2, 3] y) { y = Identity(x) }")
    assert NO_OPS(graph) is graph


def test_another_no_op_between_an_input_and_an_output_becomes_an_identity(parse):
    graph = parse("agraph (float[2, 3] x) => (float[2, 3] y) { y = Dropout(x) }")
    after = NO_OPS(graph)
    assert ops(after) == ["Identity"]
    assert NO_OPS(after) is after


def test_two_outputs_of_one_value_both_keep_their_names(parse):
    text = "agraph (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) { a = Relu(x) y = Identity(a) z = Identity(a) }"
    after = labkit.optimize(parse(text)).graph
    assert [value.name for value in after.outputs] == ["y", "z"]
    assert sorted(ops(after)) == ["Identity", "Relu"]


def test_an_output_that_is_constant_is_a_constant_under_its_own_name(parse):
    text = "agraph (float[2] x) => (float[2] y) { c = Constant <value = float[2] {1.0, 2.0}> () y = Identity(c) }"
    after = labkit.optimize(parse(text)).graph
    assert (ops(after), list(after.constants)) == ([], ["y"])


def test_a_no_op_before_a_branch_is_removed_and_the_branch_reads_what_was_behind_it(parse, judge):
    graph = parse("""agraph (float[2] x, bool c) => (float[2] y) {
        r = Relu(x)
        a = Identity(r)
        y = If (c) <
            then_branch = t () => (float[2] p) { p = Neg(a) },
            else_branch = e () => (float[2] q) { q = Abs(a) }
        >
    }""")
    after = labkit.optimize(graph).graph
    assert ops(after) == ["Relu", "If"]
    feeds = {"x": np.array([3, -4], np.float32), "c": np.array(True)}
    np.testing.assert_array_equal(judge(after, feeds)[0], judge(graph, feeds)[0])


def test_dead_nodes_go_unused_inputs_and_captured_values_stay(parse):
    graph = parse("""agraph (float[2] x, float[2] unused, bool c) => (float[2] y) {
        kept = Relu(x)
        dead = Neg(x)
        deader = Abs(dead)
        k = Constant <value = float[2] {1.0, 2.0}> ()
        y = If (c) <
            then_branch = t () => (float[2] p) { p = Neg(kept) },
            else_branch = e () => (float[2] q) { q = Abs(kept) }
        >
    }""")
    after = eliminate_dead(graph)
    assert ops(after) == ["Relu", "If"]
    assert [value.name for value in after.inputs] == ["x", "unused", "c"]
    assert not after.constants
    assert eliminate_dead(after) is after


def test_a_fresh_name_avoids_every_name_in_use(parse):
    graph = parse("""agraph (float[1, 1, 4] x, float[1] s) => (float[1, 1, 4] y) {
        w = Constant <value = float[1, 1, 1] {2.0}> ()
        one = Constant <value = float[1] {1.0}> ()
        w_folded = Relu(x)
        c = Conv(w_folded, w)
        y = BatchNormalization(c, one, one, one, one)
    }""")
    after = labkit.optimize(graph).graph
    assert ops(after) == ["Relu", "Conv"]
    assert "w_folded_1" in after.constants


def test_a_shape_that_becomes_constant_by_forwarding_makes_the_types_behind_it_known(parse):
    text = "t = Identity(s) r = Reshape(x, t) y = Relu(r)"
    graph = parse(f'agraph (float[2, 3] x) => (float["p", "q"] y) {{ {text} }}', s=np.array([3, 2]))
    assert graph.nodes[1].output.shape == ("?r.0", "?r.1")
    assert NO_OPS(graph).nodes[0].output.shape == (3, 2)
