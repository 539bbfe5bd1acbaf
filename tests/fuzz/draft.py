"""A graph in the making: values to read, constants, and nodes whose outputs are typed by labkit's own inference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labkit.errors import GraphError
from labkit.graph import Array, Node, TensorType, Value, read_only
from labkit.inference import infer_types

FLOATS = ("float32", "float64", "float16")
# What rounds otherwise once weights have been folded: all behind it is compared within a tolerance, so it must not
# reach an operator that jumps (Floor) or that blows differences up (Exp).
ROUNDING = {"Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "AveragePool", "GlobalAveragePool",
            "LRN", "Softmax", "ReduceL1", "ReduceMean", "ReduceSum"}  # fmt: skip
# Whose zero may be +0 or −0: max(−0, 0) is either, −0 + 0 is +0, and onnxruntime's Where adds 0 to what it picks. So
# nothing may be divided by it. (That x + 0 is x holds but for this sign.)
UNSIGNED = {"Relu", "Clip", "Max", "Min", "Add", "Sum", "Mean", "Where", "Dropout"}
RANDOM = {"RandomNormalLike", "RandomUniformLike", "Bernoulli"}


class Unsuitable(Exception):
    """Nothing in the draft suits what was to be added, or what was to be added would not be valid."""


@dataclass
class Draft:
    """``inexact`` names values that rounding may reach, ``unsigned`` those whose zeros may change their sign,
    ``random`` those that differ from run to run, ``apart`` constants that nothing else may read."""

    rng: np.random.Generator
    opset: int
    inputs: list[Value] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    overridable: set[str] = field(default_factory=set)
    apart: set[str] = field(default_factory=set)
    inexact: set[str] = field(default_factory=set)
    unsigned: set[str] = field(default_factory=set)
    random: set[str] = field(default_factory=set)
    prefix: str = ""
    count: int = 0

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def choose(self, options: Sequence[Any]) -> Any:
        if not options:
            raise Unsuitable
        return options[int(self.rng.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def name(self, hint: str) -> str:
        self.count += 1
        return f"{self.prefix}{hint.lower()}{self.count}"

    def input(self, kind: TensorType) -> Value:
        value = Value(self.name("x"), kind)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def constant(self, array: Any, dtype: str = "") -> Value:
        """A constant; one in six is one that is there already, with the same elements or of the same type."""
        array = np.asarray(array, dtype=dtype or None)
        if self.chance(0.16):
            for value, other in self.fixed():
                if other.dtype == array.dtype and np.array_equal(other, array):
                    return value
        if not self.prefix and self.chance(0.012):
            return self.overridable_constant(array)
        value = Value(self.name("k"), TensorType.of(array))
        self.constants[value.name] = read_only(array)
        return value

    def unshared(self, array: Array) -> Value:
        """A constant that nothing else will read."""
        value = Value(self.name("k"), TensorType.of(array))
        self.constants[value.name] = read_only(array)
        self.apart.add(value.name)
        return value

    def fixed(self) -> list[tuple[Value, Array]]:
        """The constants that may have further readers, and that no caller can change."""
        kept = self.constants.keys() - self.overridable - self.apart
        return [(Value(n, TensorType.of(array)), array) for n, array in self.constants.items() if n in kept]

    def shared(self, shape: tuple[int, ...], dtype: str) -> Value | None:
        """A constant of this type that something reads already."""
        kind = TensorType(shape, dtype)
        found = [value for value, _ in self.fixed() if value.type == kind]
        return self.choose(found) if found else None

    def overridable_constant(self, array: Array) -> Value:
        """An input with a default."""
        value = Value(self.name("d"), TensorType.of(array))
        self.constants[value.name] = read_only(array)
        self.overridable.add(value.name)
        self.inputs.append(value)
        return value

    def floats(self, shape: tuple[int, ...], dtype: str = "float32") -> Value:
        """A constant of drawn numbers away from 0; now and then one that is read elsewhere too."""
        found = self.shared(shape, dtype) if self.chance(0.2) else None
        sign = self.rng.choice([-1.0, 1.0], shape)
        return found or self.constant(sign * self.rng.uniform(0.5, 1.5, shape), dtype)

    def ints(self, *numbers: int) -> Value:
        return self.constant(np.array(numbers, dtype=np.int64))

    def known(self, value: Value | None) -> Array | None:
        if value is None or value.name in self.overridable:
            return None
        return self.constants.get(value.name)

    def pick(self, suits: Callable[[Value], bool] = lambda value: True) -> Value:
        """A value that suits, the latest one more often than not; sometimes a constant."""
        if self.chance(0.04):
            # Of an infinity onnxruntime's Clip makes the largest number, ONNX's own reference does not.
            found = [v for v, array in self.fixed() if suits(v) and np.isfinite(array.astype(float)).all()]
            if found:
                return self.choose(found)
        if self.values and self.chance(0.6) and suits(self.values[-1]):
            return self.values[-1]
        return self.choose([value for value in self.values if suits(value)])

    def tensor(self, least: int = 0, most: int = 6, *, exact: bool = False, dtypes: Sequence[str] = FLOATS) -> Value:
        """A value of one of these element types and ranks; ``exact``: that rounding does not reach."""

        def suits(value: Value) -> bool:
            if value.shape is None or not least <= len(value.shape) <= most or value.dtype not in dtypes:
                return False
            return not (exact and value.name in self.inexact)

        return self.pick(suits)

    def exact(self, value: Value | None) -> bool:
        return value is None or value.name not in self.inexact

    def divisor(self, value: Value) -> bool:
        """Whether something may be divided by this value."""
        return self.exact(value) and value.name not in self.unsigned

    def add(
        self, op: str, inputs: Sequence[Value | None], attrs: dict[str, Any] | None = None, outputs: int = 1,
        *, unnamed: tuple[int, ...] = (), types: Sequence[TensorType] | None = None,
    ) -> tuple[Value, ...]:  # fmt: skip
        """Append a node. ``unnamed`` are outputs to leave out; ``types`` those of outputs that nothing can infer."""
        names = [None if i in unnamed else self.name(op) for i in range(outputs)]
        inputs = tuple(inputs)
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        draft = Node(op, inputs, tuple(name and Value(name) for name in names), attrs or {})  # type: ignore[misc]
        if types is None:
            try:
                found = dict(zip(names, infer_types(draft, self.known, {"": self.opset}), strict=True))
            except GraphError:
                raise Unsuitable from None
        else:
            found = dict(zip([name for name in names if name], types, strict=True))
        if any((name and (kind := found.get(name)) is None) or kind.shape is None for name in names):  # type: ignore[union-attr]
            raise Unsuitable
        results = tuple(Value(name, found[name]) if name else None for name in names)
        node = Node(op, inputs, results, attrs or {})
        if max((value.type.size for value in node.results if value.type), default=0) > 4096:
            raise Unsuitable
        self.nodes.append(node)
        self._taint(node)
        self.values += node.results
        return node.results

    def _taint(self, node: Node) -> None:
        names = {value.name for value in node.results}
        if node.op not in ("Shape", "Size", "ConstantOfShape"):
            read = {value.name for value in node.uses}
            inner = {inside.op for body in node.bodies for inside in body.nodes}
            self.inexact |= names if ({node.op} | inner) & ROUNDING or read & self.inexact else set()
            self.unsigned |= names if ({node.op} | inner) & UNSIGNED or read & self.unsigned else set()
            self.random |= names if node.op in RANDOM or read & self.random else set()
