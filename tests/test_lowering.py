"""Operators as loops: which loops there are, who is a vector, what lies beside, what is held; and what is no kernel."""

import pytest

from labkit.errors import LabError
from labkit.graph import Node, TensorType, Value
from labkit.lowering import Kernel, lower


def value(name: str, *shape: int | str, dtype: str = "float32") -> Value:
    return Value(name, TensorType(shape, dtype))


def kernel(*nodes: Node, leave: tuple[Value, ...] = (), opset: int = 17) -> Kernel:
    made = {v.name for node in nodes for v in node.results}
    inputs = tuple({v.name: v for node in nodes for v in node.uses if v.name not in made}.values())
    return lower(nodes, inputs, leave or nodes[-1].results, opset)


X, W, B = value("x", 2, 8, 9, 9), value("w", 6, 4, 3, 3), value("b", 6)
CONV = Node("Conv", (X, W, B), (value("y", 2, 6, 7, 7),), {"group": 2})


@pytest.mark.parametrize(
    ("node", "loops"),
    [
        (CONV, {"n": 2, "g": 2, "f": 3, "c": 4, "p": 7, "q": 7, "r": 3, "s": 3}),
        (Node("Conv", (value("x", 1, 8, 5, 5), value("w", 6, 8, 1, 1)), (value("y", 1, 6, 5, 5),)),
         {"f": 6, "c": 8, "p": 5, "q": 5}),
        (Node("Conv", (value("x", 1, 8, 20), value("w", 6, 8, 3)), (value("y", 1, 6, 18),)),
         {"f": 6, "c": 8, "q": 18, "s": 3}),
        (Node("MatMul", (value("a", 4, 12, 30, 16), value("b", 16, 7)), (value("c", 4, 12, 30, 7),)),
         {"abm": 4 * 12 * 30, "n": 7, "k": 16}),
        (Node("MatMul", (value("a", 4, 12, 30, 16), value("b", 4, 12, 16, 7)), (value("c", 4, 12, 30, 7),)),
         {"ab": 48, "m": 30, "n": 7, "k": 16}),
        (Node("MatMul", (value("a", 4, 1, 30, 16), value("b", 12, 16, 7)), (value("c", 4, 12, 30, 7),)),
         {"a": 4, "b": 12, "m": 30, "n": 7, "k": 16}),
        (Node("Gemm", (value("a", 16, 30), value("b", 7, 16)), (value("c", 30, 7),), {"transA": 1, "transB": 1}),
         {"m": 30, "n": 7, "k": 16}),
        (Node("MaxPool", (value("x", 1, 8, 8, 8),), (value("y", 1, 8, 4, 4),),
              {"kernel_shape": [2, 2], "strides": [2, 2]}),
         {"c": 8, "p": 4, "q": 4, "r": 2, "s": 2}),
        (Node("GlobalAveragePool", (value("x", 1, 8, 7, 7),), (value("y", 1, 8, 1, 1),)), {"i1": 8, "r2": 49}),
        (Node("ReduceSum", (value("x", 5, 6, 7),), (value("y", 5, 7),), {"axes": [1], "keepdims": 0}),
         {"i0": 5, "i1": 7, "r1": 6}),
        (Node("Relu", (value("x", 2, 3, 4, 5),), (value("y", 2, 3, 4, 5),)), {"nchw": 120}),
        (Node("Mul", (value("x", 2, 3, 4, 5), value("s", 3, 1, 1)), (value("y", 2, 3, 4, 5),)),
         {"n": 2, "c": 3, "hw": 20}),
        (Node("Softmax", (value("x", 2, 3, 4),), (value("y", 2, 3, 4),)), {"i0i1": 6}),
        (Node("InstanceNormalization", (value("x", 2, 3, 4, 4), value("s", 3), value("t", 3)),
              (value("y", 2, 3, 4, 4),)),
         {"n": 2, "c": 3}),
    ],
)  # fmt: skip
def test_the_loops_of_an_operator(node: Node, loops: dict[str, int]) -> None:
    found = kernel(node)
    assert found.problem is not None
    assert dict(found.problem.loops) == loops
    assert not found.is_assumed


def test_an_epilogue_has_vectors_and_tensors_beside_and_holds_what_lives() -> None:
    y, r, out, swish = value("y", 2, 6, 7, 7), value("r", 2, 6, 7, 7), value("o", 2, 6, 7, 7), value("z", 2, 6, 7, 7)
    s = value("s", 2, 6, 7, 7)
    nodes = (CONV, Node("Add", (y, r), (out,)), Node("Sigmoid", (out,), (s,)), Node("Mul", (out, s), (swish,)))
    found = kernel(*nodes)
    assert [v.name for v in found.factors] == ["x", "w"]
    assert [v.name for v in found.vectors] == ["b"]
    assert [v.name for v in found.beside] == ["r"]
    tail = found.problem.tail
    assert tail.reads == (4,)
    assert tail.writes == (4,)
    assert tail.held == 8  # y with r beside it; then o with its sigmoid
    assert tail.vectors[0].shape == (2, 3)  # along groups, and filters of a group
    also = kernel(*nodes, leave=(out, swish))
    assert also.problem.tail.writes == (4, 4)


def test_sums_of_float16_are_held_in_float32_and_stored_in_float16() -> None:
    a, b, c = (value(name, 8, 8, dtype="float16") for name in "abc")
    found = kernel(Node("MatMul", (a, b), (c,)))
    assert found.problem.output.dtype == "float32"
    assert found.problem.tail.writes == (2,)
    assert found.problem.tail.held == 4


def test_a_product_that_is_scaled_is_not_stored_as_it_is() -> None:
    a, b, c = (value(name, 8, 8) for name in "abc")
    assert kernel(Node("Gemm", (a, b), (c,))).problem.tail is None
    assert kernel(Node("Gemm", (a, b), (c,), {"alpha": 0.5})).problem.tail is not None


def test_rows_are_never_cut() -> None:
    x, mean, out = value("x", 4, 6, 32), value("m", 4, 6, 1), value("o", 4, 6, 32)
    nodes = (Node("ReduceMean", (x,), (mean,), {"axes": [-1]}), Node("Sub", (x, mean), (out,)))
    found = kernel(*nodes)
    assert dict(found.problem.loops) == {"i0i1": 24}
    tail = found.problem.tail
    assert tail.reads == tail.writes == (128,)
    assert tail.held == 132  # a row and its mean; the difference takes the place of the row
    norm = Node("LayerNormalization", (x, value("s", 32)), (out,), {"axis": -1})
    (scale,) = kernel(norm).problem.tail.vectors
    assert (scale.shape, scale.nbytes) == ((), 128)  # the whole row of it, all the time


def test_softmax_of_old_opsets_takes_all_axes_from_its_own_on() -> None:
    node = Node("Softmax", (value("x", 5, 3, 4),), (value("y", 5, 3, 4),), {"axis": 1})
    assert dict(kernel(node, opset=13).problem.loops) == {"i0": 5, "i2": 4}
    assert dict(kernel(node, opset=11).problem.loops) == {"i0": 5}


@pytest.mark.parametrize(
    ("node", "is_assumed"),
    [
        (Node("Transpose", (value("x", 3, 4),), (value("y", 4, 3),)), False),
        (Node("Concat", (value("x", 3, 4), value("z", 3, 4)), (value("y", 6, 4),), {"axis": 0}), False),
        (Node("Mystery", (value("x", 3, 4),), (value("y", 4, 3),), domain="com.example"), True),
        (Node("ConvTranspose", (value("x", 1, 3, 4, 4), value("w", 3, 2, 2, 2)), (value("y", 1, 2, 5, 5),)), True),
        (Node("Conv", (value("x", 1, 3, "h", "w"), value("w", 2, 3, 3, 3)), (value("y", 1, 2, "a", "b"),)), True),
        (Node("Relu", (value("x", 0, 3),), (value("y", 0, 3),)), True),
    ],
)
def test_what_has_no_tiles_streams(node: Node, is_assumed: bool) -> None:
    found = kernel(node)
    assert found.problem is None
    assert found.is_assumed is is_assumed


@pytest.mark.parametrize(
    "nodes",
    [
        (CONV, Node("Softmax", (CONV.output,), (value("o", 2, 6, 7, 7),))),
        (CONV, Node("Add", (CONV.output, value("big", 3, 2, 6, 7, 7)), (value("o", 3, 2, 6, 7, 7),))),
        (CONV, Node("GlobalAveragePool", (CONV.output,), (value("o", 2, 6, 1, 1),))),
    ],
)
def test_operators_of_different_spaces_are_no_kernel(nodes: tuple[Node, ...]) -> None:
    with pytest.raises(LabError, match="no kernel: Conv 'y', "):
        kernel(*nodes)
