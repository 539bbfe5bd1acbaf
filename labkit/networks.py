"""Networks drawn node by node, as an exporter writes them: residual, inverted-bottleneck and U-shaped ones.

The shapes are those of the papers; the weights are drawn from a seed, so that a wrong rewrite shows in the outputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from labkit.build import make_node
from labkit.graph import Array, Graph, Node, TensorType, Value, read_only

OPSET = 17

# Sandler et al. 2018, table 2: expansion, channels, blocks, stride of the first block.
_MOBILENET_V2 = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class _Draft:
    """Nodes in running order and the constants they read; each method appends what its name says."""

    def __init__(self, name: str, shape: Sequence[int], seed: int) -> None:
        self.name, self._rng, self._count = name, np.random.default_rng(seed), Counter[str]()
        self.x = Value("x", TensorType(tuple(shape), "float32"))
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = {}

    def add(self, op: str, *inputs: Value, **attrs: Any) -> Value:
        """Any operator with one output."""
        self._count[op] += 1
        name = f"{op.lower()}{self._count[op]}"
        node = make_node(op, inputs, [name], attrs, constants=self.constants, opset=OPSET)
        self.nodes.append(node)
        return node.output

    def constant(self, name: str, array: Array) -> Value:
        self.constants[name] = read_only(array)
        return Value(name, TensorType.of(self.constants[name]))

    def weights(self, *shape: int) -> Value:
        """He et al. 2015: the variance outlives a ReLU."""
        drawn = self._rng.standard_normal(shape, dtype=np.float32) * np.float32((2 / prod(shape[1:])) ** 0.5)
        return self.constant(f"w{len(self.constants)}", drawn)

    def conv(self, x: Value, filters: int, kernel: int = 1, stride: int = 1, group: int = 1) -> Value:
        """Conv without a bias, padded so that stride 1 keeps the size."""
        w = self.weights(filters, _channels(x) // group, kernel, kernel)
        return self.add(
            "Conv", x, w, strides=(stride, stride), pads=(kernel // 2,) * 4, group=group, kernel_shape=(kernel, kernel)
        )

    def bn(self, x: Value) -> Value:
        """BatchNormalization with statistics near 0 and 1."""
        count = _channels(x)
        near = {"scale": (0.5, 1.5), "shift": (-0.2, 0.2), "mean": (-0.2, 0.2), "var": (0.5, 1.5)}
        drawn = (
            self.constant(f"{x.name}_{key}", self._rng.uniform(*ends, count).astype(np.float32))
            for key, ends in near.items()
        )
        return self.add("BatchNormalization", x, *drawn, epsilon=1e-5)

    def relu6(self, x: Value) -> Value:
        """As exporters write it: Clip with two constants."""
        return self.add("Clip", x, *(self.constant(f"bound{n}", np.array(n, np.float32)) for n in (0, 6)))

    def done(self, *outputs: Value) -> Graph:
        return Graph(self.name, (self.x,), outputs, tuple(self.nodes), self.constants, {"": OPSET})


def _channels(x: Value) -> int:
    return int((x.shape or ())[1])


def residual(blocks: int = 3, channels: int = 16, size: int = 32, seed: int = 0) -> Graph:
    """Residual blocks (He et al. 2015) behind one convolution, then a classifier of ten.

    >>> graph = residual(blocks=2)
    >>> len(graph.nodes), str(graph.outputs[0])
    (20, 'flatten1: float32 1×10')
    """
    draft = _Draft("residual", (1, 3, size, size), seed)
    y = draft.add("Relu", draft.bn(draft.conv(draft.x, channels, 3)))
    for _ in range(blocks):
        inner = draft.add("Relu", draft.bn(draft.conv(y, channels, 3)))
        y = draft.add("Relu", draft.add("Add", draft.bn(draft.conv(inner, channels, 3)), y))
    return draft.done(draft.add("Flatten", draft.conv(draft.add("GlobalAveragePool", y), 10)))


def mobilenet_v2(size: int = 224, seed: int = 0) -> Graph:
    """MobileNetV2 (Sandler et al. 2018) at full width, batch 1: 52 convolutions, ReLU6 as Clip."""
    draft = _Draft("mobilenet_v2", (1, 3, size, size), seed)
    y = draft.relu6(draft.bn(draft.conv(draft.x, 32, 3, 2)))
    for expansion, channels, blocks, stride in _MOBILENET_V2:
        for block in range(blocks):
            y = _inverted_bottleneck(draft, y, expansion, channels, 1 if block else stride)
    y = draft.add("GlobalAveragePool", draft.relu6(draft.bn(draft.conv(y, 1280))))
    dropped = draft.add("Flatten", draft.add("Dropout", y))
    return draft.done(draft.add("Gemm", dropped, draft.weights(1000, 1280), transB=1))


def _inverted_bottleneck(draft: _Draft, x: Value, expansion: int, channels: int, stride: int) -> Value:
    """Wide, depthwise, narrow; the narrow ends are added where their shapes are equal."""
    wide = expansion * _channels(x)
    y = draft.relu6(draft.bn(draft.conv(x, wide))) if expansion > 1 else x
    y = draft.relu6(draft.bn(draft.conv(y, wide, 3, stride, group=wide)))
    y = draft.bn(draft.conv(y, channels))
    return draft.add("Add", x, y) if y.shape == x.shape else y


def unet_with_dead_heads(size: int = 128, channels: int = 16, seed: int = 0) -> Graph:
    """A U-Net (Ronneberger et al. 2015, padded), exported with the heads of its training, which nothing reads."""
    draft = _Draft("unet_with_dead_heads", (1, 3, size, size), seed)
    y, skips = draft.x, list[Value]()
    for level in range(4):
        if level:
            y = draft.add("MaxPool", y, kernel_shape=(2, 2), strides=(2, 2))
        y = _double_conv(draft, y, channels << level)
        skips.append(y)
    for level in (2, 1, 0):
        draft.add("Sigmoid", draft.conv(y, 1))  # the head of deep supervision at this level
        w = draft.weights(_channels(y), channels << level, 2, 2)
        up = draft.add("ConvTranspose", y, w, kernel_shape=(2, 2), strides=(2, 2))
        y = _double_conv(draft, draft.add("Concat", skips[level], up, axis=1), channels << level)
    return draft.done(draft.add("Sigmoid", draft.conv(y, 1)))


def _double_conv(draft: _Draft, x: Value, channels: int) -> Value:
    for _ in range(2):
        x = draft.add("Relu", draft.bn(draft.conv(x, channels, 3)))
    return x
