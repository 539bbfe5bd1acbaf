"""Random small kernels: an operator that combines elements, or none, and others that work on what comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from labkit.bodies import fused_node
from labkit.graph import Graph, Node, TensorType, Value
from labkit.interpreter import evaluate

OPSETS = {"": 17}


class Draft:
    """A chain of operators whose arrays are known, so that every type is."""

    def __init__(self, data: st.DataObject, dtype: str = "float32") -> None:
        self.draw, self.dtype = data.draw, dtype
        self.random = np.random.default_rng(data.draw(st.integers(0, 2**16)))
        self.arrays: dict[str, Any] = {}
        self.made: list[Node] = []

    def value(self, name: str) -> Value:
        return Value(name, TensorType.of(self.arrays[name]))

    def given(self, *shape: int, array: np.ndarray | None = None) -> str:
        """A new tensor from outside; small whole numbers and halves, so that sums are exact."""
        name = f"t{len(self.arrays)}"
        found = self.random.integers(-4, 5, shape).astype(self.dtype) / 2 if array is None else array
        self.arrays[name] = found.astype(self.dtype) if array is None else found
        return name

    def node(self, op: str, *names: str, **attrs: Any) -> str:
        """One more operator; the name of what it makes."""
        name = f"t{len(self.arrays)}"
        inputs = tuple(self.value(x) for x in names)
        (array,) = evaluate(Node(op, inputs, (Value(name),), attrs), self.arrays, OPSETS)
        self.arrays[name] = np.asarray(array)
        self.made.append(Node(op, inputs, (self.value(name),), attrs))
        return name

    def graph(self, leave: list[str]) -> Graph:
        """All of it as one kernel."""
        outputs = tuple(map(self.value, leave))
        node = self.made[0] if len(self.made) == 1 else fused_node(self.made, outputs, "fused", OPSETS)
        inputs = tuple(dict.fromkeys(node.uses))
        return Graph("draft", inputs, outputs, (node,), opsets=OPSETS)

    # ---- heads

    def conv(self) -> str:
        n, groups, per, filters = (self.draw(st.integers(1, 2)) for _ in range(4))
        rank = self.draw(st.integers(1, 2))
        kernel = [self.draw(st.integers(1, 3)) for _ in range(rank)]
        attrs = {
            "group": groups,
            "strides": [self.draw(st.integers(1, 2)) for _ in kernel],
            "dilations": [self.draw(st.integers(1, 2)) for _ in kernel],
        }
        if self.draw(st.booleans()):
            attrs["pads"] = [self.draw(st.integers(0, 1)) for _ in range(2 * rank)]
        else:
            attrs["auto_pad"] = self.draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]))
        sizes = [
            (k - 1) * d + 1 + self.draw(st.integers(0, 4)) for k, d in zip(kernel, attrs["dilations"], strict=True)
        ]
        names = [self.given(n, groups * per, *sizes), self.given(groups * filters, per, *kernel)]
        if self.draw(st.booleans()):
            names.append(self.given(groups * filters))
        return self.node("Conv", *names, **attrs)

    def matmul(self) -> str:
        m, n, k = (self.draw(st.integers(1, 5)) for _ in range(3))
        left, right = self.draw(
            st.sampled_from([((), ()), ((2,), ()), ((2, 3), (2, 3)), ((2, 1), (3,)), ((), (3,)), ((1,), (1,))])
        )
        if self.draw(st.integers(0, 3)) == 0:
            vector = self.draw(st.booleans())
            shapes = [(k,), (*right, k, n)] if vector else [(*left, m, k), (k,)]
            return self.node("MatMul", *(self.given(*shape) for shape in shapes))
        return self.node("MatMul", self.given(*left, m, k), self.given(*right, k, n))

    def gemm(self) -> str:
        m, n, k = (self.draw(st.integers(1, 5)) for _ in range(3))
        flips = {"transA": self.draw(st.integers(0, 1)), "transB": self.draw(st.integers(0, 1))}
        a, b = ((k, m) if flips["transA"] else (m, k)), ((n, k) if flips["transB"] else (k, n))
        names = [self.given(*a), self.given(*b)]
        if (bias := self.draw(st.sampled_from([None, (n,), (m, 1), (m, n), ()]))) is not None:
            names.append(self.given(*bias))
        return self.node("Gemm", *names, **flips, alpha=self.draw(st.sampled_from([1.0, 0.5])), beta=0.5)

    def pool(self) -> str:
        op = self.draw(st.sampled_from(["MaxPool", "AveragePool", "LpPool"]))
        rank = self.draw(st.integers(1, 2))
        kernel = [self.draw(st.integers(1, 3)) for _ in range(rank)]
        attrs: dict[str, Any] = {"kernel_shape": kernel, "strides": [self.draw(st.integers(1, 3)) for _ in kernel]}
        if op != "LpPool":
            attrs |= {"ceil_mode": self.draw(st.integers(0, 1))}
        if op == "AveragePool":
            attrs["count_include_pad"] = self.draw(st.integers(0, 1))
        attrs["pads"] = [self.draw(st.integers(0, k - 1)) for k in kernel * 2]
        sizes = [k + self.draw(st.integers(0, 4)) for k in kernel]
        return self.node(op, self.given(self.draw(st.integers(1, 2)), self.draw(st.integers(1, 3)), *sizes), **attrs)

    def reduce(self) -> str:
        op = self.draw(st.sampled_from(["ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceProd"]))
        shape = [self.draw(st.integers(1, 4)) for _ in range(self.draw(st.integers(1, 4)))]
        axes = self.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
        return self.node(op, self.given(*shape), axes=sorted(axes), keepdims=self.draw(st.integers(0, 1)))

    def reduce_sum(self) -> str:
        shape = [self.draw(st.integers(2, 4)) for _ in range(3)]
        axes = self.draw(st.lists(st.integers(0, 2), min_size=1, unique=True))
        return self.node("ReduceSum", self.given(*shape), self.given(array=np.array(axes)), keepdims=1)

    def global_pool(self) -> str:
        shape = [self.draw(st.integers(1, 4)) for _ in range(self.draw(st.integers(3, 4)))]
        return self.node(self.draw(st.sampled_from(["GlobalAveragePool", "GlobalMaxPool"])), self.given(*shape))

    def elements(self) -> str:
        shape = [self.draw(st.integers(1, 4)) for _ in range(self.draw(st.integers(0, 4)))]
        return self.epilogue(self.given(*shape))

    def rows(self) -> str:
        shape = [self.draw(st.integers(1, 4)) for _ in range(self.draw(st.integers(2, 4)))]
        x, axis = self.given(*shape), self.draw(st.integers(-len(shape), len(shape) - 1))
        if self.draw(st.booleans()):
            x = self.epilogue(x)
        kind = self.draw(st.integers(0, 4))
        if kind == 0:
            return self.node("Softmax", x, axis=axis)
        if kind == 1:
            scale = self.given(*shape[axis % len(shape) :])
            return self.node("LayerNormalization", x, scale, axis=axis)
        if kind == 2 and len(shape) > 2:
            return self.node("InstanceNormalization", x, self.given(shape[1]), self.given(shape[1]))
        if kind == 3:
            return self.node("LogSoftmax", x, axis=axis)
        mean = self.node("ReduceMean", x, axes=[axis], keepdims=1)
        return self.node("Sub", x, mean)

    # ---- what follows

    def epilogue(self, x: str) -> str:
        shape = self.arrays[x].shape
        kind = self.draw(st.integers(0, 8))
        if kind == 0:
            return self.node(self.draw(st.sampled_from(["Relu", "Sigmoid", "Neg", "Abs"])), x)
        if kind == 1:
            return self.node("Add", self.given(*shape), x)
        if kind == 2:
            kept = [n if self.draw(st.booleans()) else 1 for n in shape]
            return self.node("Mul", x, self.given(*kept[self.draw(st.integers(0, len(kept))) :]))
        if kind == 3:
            return self.node("Mul", x, self.node("Sigmoid", x))
        if kind == 4 and len(shape) > 1:
            params = [self.given(shape[1]) for _ in range(3)]
            return self.node("BatchNormalization", x, *params, self.given(array=np.ones(shape[1], self.dtype)))
        if kind == 5:
            return self.node(
                "Clip", x, self.given(array=np.array(-1, self.dtype)), self.given(array=np.array(2, self.dtype))
            )
        if kind == 6:
            return self.node("Add", x, self.node("Mul", self.given(*shape), self.given(*shape)))
        if kind == 7:
            return self.node("Where", self.given(array=self.random.random(shape) > 0.5), x, self.given(*shape[1:]))
        return self.node("Sub", self.given(), x)


HEADS = ["conv", "matmul", "gemm", "pool", "reduce", "reduce_sum", "global_pool", "elements", "rows"]


def draft(data: st.DataObject, head: str, dtype: str = "float32") -> tuple[Graph, Draft]:
    """A kernel with this kind of head, and its arrays."""
    made = Draft(data, dtype)
    x = getattr(made, head)()
    full = [x]
    for _ in range(data.draw(st.integers(0, 3))):
        x = made.epilogue(x)
        full.append(x)
    leave = {x} | {name for name in full[:-1] if data.draw(st.integers(0, 3)) == 0}
    return made.graph([name for name in full if name in leave]), made
