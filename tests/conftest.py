"""What all tests share: graphs from ONNX's text syntax, and onnxruntime, its optimisations off, as the judge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from labkit.graph import Graph
from labkit.onnx_io import from_model, to_model

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def parse() -> Callable[..., Graph]:
    """A graph from the body of a model in ONNX's text syntax, at an opset; further arrays become its constants."""

    def make(text: str, opset: int = 17, ir: int = 8, **constants: np.ndarray) -> Graph:
        model = onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["": {opset}]> {text}')
        model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
        return from_model(model)

    return make


@pytest.fixture(scope="session")
def judge() -> Callable[..., list[np.ndarray]]:
    """onnxruntime with its optimisations off, on a Graph or a ModelProto."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)

    def run(graph: Graph | onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        model = to_model(graph) if isinstance(graph, Graph) else graph
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return list(session.run(None, feeds))

    return run


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared models and probes; a test that needs it is skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not there: its models are not part of the repository")
    return SHARED
