"""Lesson 03's small graphs: blocks of networks as an exporter writes them, before anything is fused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from labkit.errors import LabError
from labkit.graph import Graph, Value, read_only

_PAD = "<pads = [1, 1, 1, 1]>"
_HALF = "<pads = [1, 1, 1, 1], strides = [2, 2]>"
_TEXTS = {
    "residual block": f"""block (float[1,64,56,56] x, float[64,64,3,3] w1, float[64,64,3,3] w2, float[64] s)
      => (float[1,64,56,56] y) {{
      conv1 = Conv {_PAD} (x, w1) bn1 = BatchNormalization(conv1, s, s, s, s) act1 = Relu(bn1)
      conv2 = Conv {_PAD} (act1, w2) bn2 = BatchNormalization(conv2, s, s, s, s)
      sum = Add(bn2, x) y = Relu(sum) }}""",
    "residual block, projected": f"""block (float[1,64,28,28] x, float[128,64,3,3] w1, float[128,128,3,3] w2,
      float[128,64,1,1] w3, float[128] s) => (float[1,128,14,14] y) {{
      conv1 = Conv {_HALF} (x, w1) bn1 = BatchNormalization(conv1, s, s, s, s) act1 = Relu(bn1)
      conv2 = Conv {_PAD} (act1, w2) bn2 = BatchNormalization(conv2, s, s, s, s)
      proj = Conv <strides = [2, 2]> (x, w3) sum = Add(bn2, proj) y = Relu(sum) }}""",
    "squeeze and excite": """block (float[1,64,28,28] x, float[64,64,1,1] w1, float[16,64,1,1] w2, float[64,16,1,1] w3)
      => (float[1,64,28,28] y) {
      conv1 = Conv(x, w1) act1 = Relu(conv1) mean = GlobalAveragePool(act1) conv2 = Conv(mean, w2) act2 = Relu(conv2)
      conv3 = Conv(act2, w3) gate = Sigmoid(conv3) y = Mul(act1, gate) }""",
    "diamond": f"""block (float[1,64,28,28] x, float[64,64,3,3] w) => (float[1,64,28,28] y) {{
      conv = Conv {_PAD} (x, w) gate = Sigmoid(conv) y = Mul(conv, gate) }}""",
    "diamond with a turn": """block (float[256,256] x, float[256,256] w) => (float[256,256] y) {
      product = MatMul(x, w) act = Relu(product) turned = Transpose(act) y = Add(act, turned) }""",
    "product and four sums": """block (float[512,512] x, float[512,512] w, float[512,512] r1, float[512,512] r2,
      float[512,512] r3, float[512,512] r4) => (float[512,512] y) {
      product = MatMul(x, w) s1 = Add(product, r1) s2 = Add(s1, r2) s3 = Add(s2, r3) y = Add(s3, r4) }""",
}
GRAPHS = tuple(_TEXTS)


def parse(text: str) -> Graph:
    """A graph in ONNX's text syntax. All that it reads but its first input is constant, with zeros for values: which
    operators may be one kernel depends on shapes only.

    >>> len(parse("g (float[4,4] x, float[4,4] w) => (float[4,4] y) { p = MatMul(x, w) y = Relu(p) }").nodes)
    2
    """
    import onnx

    from labkit.onnx_io import from_model

    try:
        model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    except onnx.parser.ParseError as error:
        raise LabError(f"no graph in ONNX's text syntax: {error}") from None
    graph = from_model(model)
    zeros = {value.name: read_only(np.zeros(_sizes(value), np.float32)) for value in graph.inputs[1:]}
    return replace(graph, inputs=graph.inputs[:1], constants=zeros)


@cache
def example(name: str) -> Graph:
    """One of the blocks; LabError for a name that is none."""
    if name not in _TEXTS:
        raise LabError(f"no graph {name!r}; there are: {'; '.join(_TEXTS)}")
    return parse(_TEXTS[name])


def _sizes(value: Value) -> tuple[int, ...]:
    return tuple(int(dim) for dim in value.shape or ())
