import pytest

import labkit
from labkit import text
from labkit.errors import GraphError, LabError

BODY = "a = Relu(x) b = Identity(a) c = MaxPool <kernel_shape: ints = [2, 2]> (b) d = Neg(c) y = Exp(d)"


@pytest.fixture
def graph(parse):
    return parse(f"agraph (float[1, 2, 4, 4] x) => (float[1, 2, 3, 3] y) {{ {BODY} }}")


def test_a_graph_prints_as_one_line_a_node(graph):
    assert text.to_text(graph).splitlines() == [
        "agraph(x: float32 1×2×4×4)",
        "  a: float32 1×2×4×4 = Relu(x)",
        "  b: float32 1×2×4×4 = Identity(a)",
        "  c: float32 1×2×3×3 = MaxPool(b; kernel_shape=[2, 2])",
        "  d: float32 1×2×3×3 = Neg(c)",
        "  y: float32 1×2×3×3 = Exp(d)",
        "  -> y",
    ]


def test_a_diff_shows_what_went_what_came_and_what_changed(graph):
    report = labkit.optimize(graph)
    assert report.diff(0).splitlines() == [
        "- b: float32 1×2×4×4 = Identity(a)",
        "- c: float32 1×2×3×3 = MaxPool(b; kernel_shape=[2, 2])",
        "+ c: float32 1×2×3×3 = MaxPool(a; kernel_shape=[2, 2])",
    ]
    assert text.diff(graph, graph) == "(no difference)"
    with pytest.raises(LabError, match="no step 7; there are 1"):
        report.diff(7)


def test_a_report_says_what_became_of_a_node(graph, parse):
    assert labkit.optimize(graph).why("b") == "b: removed by no-ops in round 1"
    assert labkit.optimize(graph).why("d") == "d: no rule has anything to do with it"
    kept = parse("agraph (float[2] x) => (float[2] y, bool[2] k) { y, k = Dropout(x) }")
    assert labkit.optimize(kept).why("y") == "y: dropout refused, mask is read: something reads the mask 'k'"
    with pytest.raises(LabError, match="no node 'nowhere'"):
        labkit.optimize(graph).why("nowhere")


def test_a_neighbourhood_is_counted_in_steps_up_and_down(graph):
    assert [node.op for node in text.neighbourhood(graph, "c", 1)] == ["Identity", "MaxPool", "Neg"]
    with pytest.raises(GraphError, match="no node 'nowhere'"):
        text.neighbourhood(graph, "nowhere")


def test_a_picture_has_a_box_a_node_and_an_arrow_an_edge(graph):
    lines = text.to_mermaid(graph, around="c", steps=1).splitlines()
    assert lines[0] == "flowchart TD"
    assert '  n1["MaxPool<br>1×2×3×3"]' in lines
    assert "  n0 --> n1" in lines
    assert '  va(["a"]) --> n0' in lines


def test_a_graph_of_hundreds_of_nodes_is_not_drawn_whole(parse):
    chain = " ".join(f"a{i + 1} = Neg(a{i})" for i in range(100))
    graph = parse(f"agraph (float[2] a0) => (float[2] a100) {{ {chain} }}")
    with pytest.raises(GraphError, match="100 nodes are no picture"):
        text.to_mermaid(graph)
    assert text.to_mermaid(graph, around="a50").count("Neg") == 5
