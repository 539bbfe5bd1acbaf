"""Real networks to work on: graphs that ship with the onnx package, given weights that mean something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from zlib import crc32

import numpy as np

from labkit.build import make_node
from labkit.errors import LabError
from labkit.graph import Array, Graph, Node, TensorType, Value, read_only
from labkit.interpreter import evaluate
from labkit.onnx_io import load


def resnet50(seed: int = 0) -> Graph:
    """ResNet-50 (He et al. 2015) at full width, batch 1, 224×224: 176 nodes, 25.6 million weights.

    The onnx package ships the graph with every large weight 0.02, which would hide a wrong rewrite: all outputs are
    equal. Here weights are drawn (He initialisation) and each BatchNormalization's statistics are what it really sees.
    """
    return calibrated(reseeded(_light("resnet50"), seed), seed)


def _light(name: str) -> Graph:
    import onnx.backend.test

    path = Path(onnx.backend.test.__file__).parent / "data" / "light" / f"light_{name}.onnx"
    if not path.exists():
        raise LabError(f"this onnx package ships no {path.name}; install the version in requirements.txt")
    return load(path)


def reseeded(graph: Graph, seed: int = 0) -> Graph:
    """The graph with each ConstantOfShape weight replaced by a drawn constant, one random stream a name."""
    constants: dict[str, Array] = dict(graph.constants)
    filled = [node for node in graph.nodes if node.op == "ConstantOfShape"]
    for node in filled:
        user = graph.users[node.output.name][0]
        slot = next(i for i, value in enumerate(user.inputs) if value and value.name == node.output.name)
        shape = tuple(int(dim) for dim in constants[node.uses[0].name])
        constants[node.output.name] = read_only(_draw(seed, node.output.name, shape, user.op, slot))
    kept = tuple(node for node in graph.nodes if node.op != "ConstantOfShape")
    read = {value.name for node in kept for value in node.uses}
    return replace(graph, nodes=kept, constants={name: a for name, a in constants.items() if name in read})


def _draw(seed: int, name: str, shape: tuple[int, ...], op: str, slot: int) -> Array:
    rng = np.random.default_rng([seed, crc32(name.encode())])
    if op in ("Conv", "Gemm") and slot == 1:  # He et al. 2015: keeps the variance through a ReLU
        return _normal(rng, shape, (2 / max(prod(shape[1:]), 1)) ** 0.5)
    if op == "BatchNormalization" and slot in (1, 4):  # scale and variance stay well above 0
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    return _normal(rng, shape, 0.1)


def _normal(rng: np.random.Generator, shape: tuple[int, ...], deviation: float) -> Array:
    return np.asarray(rng.standard_normal(shape, dtype=np.float32) * np.float32(deviation))


def calibrated(graph: Graph, seed: int = 0) -> Graph:
    """The graph with the mean and variance of each BatchNormalization set to those of one drawn input."""
    rng = np.random.default_rng([seed, 1])
    constants: dict[str, Array] = dict(graph.constants)
    values: dict[str, Array] = {}
    for fed in graph.inputs:
        if fed.type is None or not fed.type.is_static:
            raise LabError(f"input {fed.name!r} has no fixed shape; calibration needs one")
        values[fed.name] = _normal(rng, tuple(int(dim) for dim in fed.type.shape or ()), 1.0)
    for node in graph.nodes:
        if node.op == "BatchNormalization" and node.inputs[0] is not None:
            x = values[node.inputs[0].name]
            axes = tuple(axis for axis in range(x.ndim) if axis != 1)
            for value, statistic in zip(node.inputs[3:5], (x.mean(axis=axes), x.var(axis=axes)), strict=True):
                if value is not None:
                    constants[value.name] = read_only(statistic)
        values |= _results(node, values, constants, graph.opsets)
    return replace(graph, constants=constants)


def _results(
    node: Node, values: Mapping[str, Array], constants: Mapping[str, Array], opsets: Mapping[str, int]
) -> dict[str, Array]:
    found = evaluate(node, {**constants, **values}, opsets)
    return {value.name: array for value, array in zip(node.outputs, found, strict=False) if value}


def cluttered(graph: Graph, every: int = 6) -> Graph:
    """The graph as a careless exporter would leave it: behind each ``every``-th node, in turn, an Identity, an
    inference Dropout, a Reshape to the same shape, a pair of inverse Transposes, or a branch that nothing reads.

    It computes the same, bit for bit.
    """
    nodes: list[Node] = []
    constants = dict(graph.constants)
    instead: dict[str, Value] = {}
    sites = 0
    for index, node in enumerate(graph.nodes):
        current = node.rename(instead)
        nodes.append(current)
        value = current.outputs[0]
        suits = value is not None and value.type is not None and value.type.is_static and value.type.rank == 4
        if index % every or not suits or value is None or value.name in graph.output_names:
            continue
        extra, last = _CLUTTER[sites % len(_CLUTTER)](value, constants, graph.opset)
        nodes += extra
        instead[value.name] = last
        sites += 1
    return replace(graph, nodes=tuple(nodes), constants=constants)


def _one(op: str, value: Value, opset: int) -> tuple[list[Node], Value]:
    node = make_node(op, [value], [f"{value.name}_{op.lower()}"], opset=opset)
    return [node], node.output


def _reshape(value: Value, constants: dict[str, Array], opset: int) -> tuple[list[Node], Value]:
    shape = read_only(np.array(value.shape, dtype=np.int64))
    constants[f"{value.name}_shape"] = shape
    target = Value(f"{value.name}_shape", TensorType.of(shape))
    node = make_node("Reshape", [value, target], [f"{value.name}_reshape"], constants={target.name: shape}, opset=opset)
    return [node], node.output


def _transposes(value: Value, opset: int) -> tuple[list[Node], Value]:
    there = make_node("Transpose", [value], [f"{value.name}_nhwc"], {"perm": (0, 2, 3, 1)}, opset=opset)
    back = make_node("Transpose", [there.output], [f"{value.name}_nchw"], {"perm": (0, 3, 1, 2)}, opset=opset)
    return [there, back], back.output


def _dead_branch(value: Value, opset: int) -> tuple[list[Node], Value]:
    pooled = make_node("GlobalAveragePool", [value], [f"{value.name}_pooled"], opset=opset)
    tap = make_node("Sigmoid", [pooled.output], [f"{value.name}_tap"], opset=opset)
    return [pooled, tap], value


_CLUTTER: tuple[Callable[[Value, dict[str, Array], int], tuple[list[Node], Value]], ...] = (
    lambda value, constants, opset: _one("Identity", value, opset),
    lambda value, constants, opset: _one("Dropout", value, opset),
    _reshape,
    lambda value, constants, opset: _transposes(value, opset),
    lambda value, constants, opset: _dead_branch(value, opset),
)
