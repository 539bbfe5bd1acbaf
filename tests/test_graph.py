import numpy as np
import pytest

from labkit.errors import GraphError
from labkit.graph import Graph, Node, TensorType, Value, itemsize

F = TensorType((2, 3), "float32")
X, Y, Z = (Value(name, F) for name in "xyz")


def relu(source: Value, result: Value) -> Node:
    return Node("Relu", (source,), (result,))


def test_a_name_is_assigned_once():
    with pytest.raises(GraphError, match="assigns 'y', which is assigned already"):
        Graph("g", (X,), (Y,), (relu(X, Y), relu(X, Y)))


def test_a_value_is_assigned_before_it_is_read():
    with pytest.raises(GraphError, match="Relu 'z' reads 'y', which nothing before it assigns"):
        Graph("g", (X,), (Z,), (relu(Y, Z), relu(X, Y)))


def test_every_output_is_assigned():
    with pytest.raises(GraphError, match="nothing assigns its output 'z'"):
        Graph("g", (X,), (Z,), (relu(X, Y),))


def test_two_inputs_cannot_share_a_name():
    with pytest.raises(GraphError, match="two inputs"):
        Graph("g", (X, X), (X,), ())


def test_users_count_each_read_and_what_inner_graphs_capture():
    body = Graph("then", (), (Z,), (relu(X, Z),), captures=(X,))
    condition = Value("c", TensorType((), "bool"))
    branch = Node("If", (condition,), (Y,), {"then_branch": body, "else_branch": body})
    graph = Graph("g", (X, condition), (Y,), (branch,))
    assert len(graph.users["x"]) == 2
    assert list(branch.uses) == [condition, X, X]


def test_renaming_a_captured_value_reaches_into_the_inner_graph():
    body = Graph("then", (), (Z,), (relu(X, Z),), captures=(X,))
    branch = Node("If", (Value("c"),), (Y,), {"then_branch": body})
    renamed = branch.rename({"x": Value("w", F)})
    inner = renamed.attrs["then_branch"]
    assert [value.name for value in inner.captures] == ["w"]
    assert inner.nodes[0].inputs[0].name == "w"


def test_a_node_that_reads_no_renamed_value_is_the_same_object():
    node = relu(X, Y)
    assert node.rename({"other": Z}) is node


def test_the_default_of_an_input_is_no_constant():
    graph = Graph("g", (X,), (Y,), (relu(X, Y),), constants={"x": np.zeros((2, 3), np.float32)})
    assert graph.constant(X) is None


@pytest.mark.parametrize(
    ("dtype", "size"), [("float16", 2), ("bfloat16", 2), ("bool", 1), ("int4", 1), ("float8_e5m2", 1)]
)
def test_itemsize_knows_every_onnx_element_type(dtype, size):
    assert itemsize(dtype) == size


def test_symbolic_dims_count_as_one_and_are_not_static():
    kind = TensorType(("batch", 3, 4), "float32")
    assert (kind.size, kind.nbytes, kind.is_static) == (12, 48, False)
    assert str(kind) == "float32 batch×3×4"
