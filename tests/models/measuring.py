"""What a graph costs by the rule of the figures that other optimisers are measured by."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime

from labkit.graph import Graph
from labkit.onnx_io import to_model


def measured(graph: Graph, shape: tuple[int, ...]) -> tuple[int, int]:
    """Nodes, and bytes that they move, every tensor as large as onnxruntime makes it."""
    model = to_model(graph)
    named = {value.name for value in model.graph.output}
    made = [name for node in model.graph.node for name in node.output if name]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made if name not in named)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    size = {graph.inputs[0].name: x.nbytes, **{name: array.nbytes for name, array in graph.constants.items()}}
    size |= dict(zip(made, (array.nbytes for array in session.run(made, {graph.inputs[0].name: x})), strict=True))
    nodes = [node for node in model.graph.node if node.op_type != "Constant"]
    return len(nodes), sum(size[name] for node in nodes for name in {*node.input, *node.output} - {""})
