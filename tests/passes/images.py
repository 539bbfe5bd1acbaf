"""Random graphs on images: convolutions, pools, elementwise operators, Concats, reshapes and Transposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from labkit.build import make_node
from labkit.graph import Array, Graph, Node, TensorType, Value

OPSET = 17
IMAGES = {"Conv", "MaxPool", "GlobalAveragePool"}
ADAPTABLE = {"Relu", "Add", "Concat", "Softmax", "Pad"}
TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


class Images:
    """A graph in the making. ``nhwc`` names the values whose second axis is not channels but rows."""

    def __init__(self, seed: int, sizes: Sequence[int] = (1, 2, 4, 6)) -> None:
        self.rng = np.random.default_rng(seed)
        self.sizes = sizes
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = {}
        self.inputs = [Value("x", TensorType((1, self.pick((3, 4, 8, 16)), *self.image()), "float32"))]
        self.values = list(self.inputs)
        self.nhwc: set[str] = set()

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def image(self) -> tuple[int, int]:
        return self.pick(self.sizes), self.pick(self.sizes)

    def value(self, nhwc: bool | None = False) -> Value:
        """A value of four axes with channels second, or last, or (None) either; of the latest more often than not."""
        four = [v for v in self.values if len(v.shape or ()) == 4 and nhwc in (None, v.name in self.nhwc)]
        return self.pick(four[-3:]) if self.rng.random() < 0.7 else self.pick(four)

    def constant(self, array: Array) -> Value:
        value = Value(f"k{len(self.constants)}", TensorType.of(array))
        self.constants[value.name] = array
        return value

    def weights(self, *shape: int) -> Value:
        return self.constant(self.rng.standard_normal(shape).astype(np.float32))

    def ints(self, *numbers: int) -> Value:
        return self.constant(np.array(numbers, np.int64))

    def add(self, op: str, *inputs: Value, **attrs: Any) -> Value:
        node = make_node(op, inputs, [f"v{len(self.nodes)}"], attrs, constants=self.constants, opset=OPSET)
        self.nodes.append(node)
        self.values.append(node.output)
        if inputs[0].name in self.nhwc and op in ADAPTABLE:
            self.nhwc.add(node.output.name)
        return node.output

    def graph(self) -> Graph:
        """The graph of what was added: what nothing reads is its output."""
        read = {value.name for node in self.nodes for value in node.uses}
        ends = tuple(v for node in self.nodes for v in node.results if v.name not in read or self.rng.random() < 0.05)
        return Graph("images", tuple(self.inputs), ends, tuple(self.nodes), self.constants, {"": OPSET})


def conv(d: Images) -> None:
    x = d.value()
    assert x.shape is not None
    size = 3 if min(x.shape[2:]) > 1 and d.rng.random() < 0.5 else 1  # type: ignore[type-var]
    weights = d.weights(d.pick((2, 3, 8, 16, 32)), int(x.shape[1]), size, size)
    d.add("Conv", x, weights, pads=(size // 2,) * 4, strides=(d.pick((1, 1, 2)),) * 2)


def pool(d: Images) -> None:
    d.add("MaxPool", d.value(), kernel_shape=(1, 1), strides=(2, 2))


def mean(d: Images) -> None:
    d.add("GlobalAveragePool", d.value())


def relu(d: Images) -> None:
    d.add("Relu", d.value(None))


def add(d: Images) -> None:
    """A bias for each channel, a tensor of the same shape, or one number for each channel of each image."""
    x = d.value(None)
    assert x.shape is not None
    last = x.name in d.nhwc
    row = (x.shape[0], 1, 1, x.shape[3]) if last else (*x.shape[:2], 1, 1)
    others = [v for v in d.values if v.shape in (x.shape, row) and (v.name in d.nhwc) == last]
    bias = d.weights(*row[1:]) if d.rng.random() < 0.3 else None  # type: ignore[arg-type]
    d.add("Add", x, bias or d.pick(others))


def concat(d: Images) -> None:
    x = d.value()
    assert x.shape is not None
    four = [v for v in d.values if v.shape is not None and len(v.shape) == 4 and v.name not in d.nhwc]
    fitting = [v for v in four if v.shape and x.shape and v.shape[2:] == x.shape[2:]]
    d.add("Concat", x, *(d.pick(fitting) for _ in range(d.pick((1, 1, 2)))), axis=1)


def softmax(d: Images) -> None:
    d.add("Softmax", d.value(None), axis=1)


def pad(d: Images) -> None:
    d.add("Pad", d.value(None), d.ints(0, 0, 1, 0, 0, 0, 0, 1))


def reshape(d: Images) -> None:
    """To a shape of the same elements in which some long axis is another."""
    x = d.value(None)
    n, c, h, w = (int(dim) for dim in x.shape or ())
    if min(c, h, w) > 1:
        d.add("Reshape", x, d.ints(*d.pick(((n, h * w, c, 1), (n, c * h, w, 1), (n, w, h, c)))))


def transpose(d: Images) -> None:
    """From channels second to channels last or back, as exporters from TensorFlow do; or rows become columns."""
    x = d.value(None)
    perm = TO_NCHW if x.name in d.nhwc else d.pick((TO_NHWC, TO_NHWC, TO_NHWC, (0, 1, 3, 2)))
    long = [axis for axis in perm if (x.shape or ())[axis] != 1]
    if long == sorted(long) or any(n.op == "Transpose" and x in n.inputs for n in d.nodes):
        return
    y = d.add("Transpose", x, perm=perm)
    if perm == TO_NHWC:
        d.nhwc.add(y.name)


def flatten(d: Images) -> None:
    d.add("Flatten", d.value(None), axis=1)


Maker = Callable[[Images], None]
KERNELS: tuple[Maker, ...] = (conv, conv, conv, pool, mean, relu, relu, add, add, concat, softmax, pad)


def images(seed: int, count: int, makers: Sequence[Maker], sizes: Sequence[int] = (1, 2, 4, 6)) -> Graph:
    """A graph of so many nodes made by these."""
    d = Images(seed, sizes)
    while len(d.nodes) < count:
        d.pick(makers)(d)
    return d.graph()
