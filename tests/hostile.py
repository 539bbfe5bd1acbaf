"""Models that mean harm, as bytes: small files that ask for terabytes, or that are not what they say they are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

HUGE = 2**44
FLOAT = TensorProto.FLOAT


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def text(body: str, opset: int = 17, **constants: np.ndarray) -> bytes:
    """A model from ONNX's text syntax."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> agraph {body}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return model.SerializeToString()


def weighted(dims: list[int], kind: int = FLOAT, raw: bytes | None = b"") -> bytes:
    """x + w, where the file says of w what it likes."""
    model = ModelProto.FromString(text("(float[4] x) => (float[4] y) { y = Add(x, w) }"))
    tensor = TensorProto(name="w", dims=dims, data_type=kind)
    if raw is not None:
        tensor.raw_data = raw
    model.graph.initializer.append(tensor)
    return model.SerializeToString()


def sized(node: str, **constants: np.ndarray) -> bytes:
    """x, of one element, plus what a node makes of constants."""
    dtype = "int64" if node.startswith("Range") else "float"
    return text(f'({dtype}[1] x) => ({dtype}["a", "b"] y) {{ k = {node} y = Add(x, k) }}', **constants)


def chain(
    links: int, node: str, inputs: str = "float[4] x", last: str = "y = Neg(z)", **constants: np.ndarray
) -> bytes:
    """``links`` nodes one behind the other; "@" in ``node`` is what the one before made."""
    names = ["x", *(f"a{link}" for link in range(links - 1)), "z"]
    nodes = " ".join(f"{to} = {node.replace('@', at)}" for at, to in pairwise(names))
    return text(f'({inputs}) => (float["a"] y) {{ {nodes} {last} }}', **constants)


def nested_ifs(depth: int, inputs: str = "float[4] x, bool c", **constants: np.ndarray) -> bytes:
    """Ifs within Ifs, as deep as protobuf's own parser allows."""
    body, out = "q = Neg(x)", "q"
    for at in range(depth):
        other = f"else_branch = e{at} () => (float[4] r{at}) {{ r{at} = Abs(x) }}"
        body = f"q{at} = If (c) <then_branch = t{at} () => (float[4] {out}) {{ {body} }}, {other}>"
        out = f"q{at}"
    return text(f"({inputs}) => (float[4] {out}) {{ {body} }}", **constants)


def wired_ifs(depth: int) -> bytes:
    """Ifs within Ifs, put together byte by byte: no library writes so many."""

    def field(number: int, content: bytes) -> bytes:
        length, groups = len(content), []
        while length >= 0x80:
            groups.append(length & 0x7F | 0x80)
            length >>= 7
        return bytes([number << 3 | 2, *groups, length]) + content

    def value(name: str, kind: int = FLOAT) -> bytes:
        return helper.make_tensor_value_info(name, kind, [4] if kind == FLOAT else []).SerializeToString()

    def graph(node: bytes) -> bytes:
        return field(1, node) + field(2, b"g") + field(12, value("q"))

    inner = graph(NodeProto(op_type="Neg", input=["x"], output=["q"]).SerializeToString())
    other = graph(NodeProto(op_type="Abs", input=["x"], output=["q"]).SerializeToString())
    for _ in range(depth):
        node = NodeProto(op_type="If", input=["c"], output=["q"]).SerializeToString()
        for name, branch in (("then_branch", inner), ("else_branch", other)):
            attribute = AttributeProto(name=name, type=AttributeProto.GRAPH).SerializeToString()
            node += field(5, attribute + field(6, branch))
        inner = graph(node)
    head = ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 17)]).SerializeToString()
    return head + field(7, inner + field(11, value("x")) + field(11, value("c", TensorProto.BOOL)))


def local(main: str, *functions: str) -> bytes:
    """A model with local functions."""
    domains = 'opset_import: ["": 17, "local": 1]'
    defined = " ".join(f'<domain: "local", {domains}> {one}' for one in functions)
    body = f"agraph (float[2] x) => (float[2] y) {{ {main} }}"
    return onnx.parser.parse_model(f"<ir_version: 8, {domains}> {body} {defined}").SerializeToString()


def laughs(levels: int) -> bytes:
    """Functions that each call the next one twice."""
    calls = (f"f{at} (a) => (b) {{ c = local.f{at + 1}(a) b = local.f{at + 1}(c) }}" for at in range(levels))
    return local("y = local.f0(x)", *calls, f"f{levels} (a) => (b) {{ b = Neg(a) }}")


def circle(length: int) -> bytes:
    """Nodes each of which reads the one behind it, the last the first."""
    nodes = [helper.make_node("Add", [f"a{(at + 1) % length}", "x"], [f"a{at}"]) for at in range(length)]
    ends = [helper.make_tensor_value_info(name, FLOAT, [2]) for name in ("x", "a0")]
    graph = helper.make_graph(nodes, "circle", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def changed(change: Callable[[ModelProto], object]) -> bytes:
    """y = Relu(x), after a change that no library would make."""
    model = ModelProto.FromString(text("(float[2] x) => (float[2] y) { y = Relu(x) }"))
    change(model)
    return model.SerializeToString()
