"""Weights past the protobuf library: what the library reads from our files, and what we read from its."""

import contextlib
import io
import os
import threading

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import labkit
from labkit import wire
from labkit.onnx_io import to_model

RNG = np.random.default_rng(0)
LARGE = RNG.standard_normal((64, 33)).astype(np.float32)
SMALL = np.arange(5, dtype=np.int64)


def model_of(*tensors):
    graph = helper.make_graph([], "g", [], [], initializer=tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def written(model, weights=None):
    file = io.BytesIO()
    wire.write(model, weights or {}, file)
    return file.getvalue()


def test_large_weights_are_views_of_the_file_and_the_rest_stays_in_the_model(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(
        model_of(numpy_helper.from_array(LARGE, "w"), numpy_helper.from_array(SMALL, "s")).SerializeToString()
    )
    model, weights = wire.read(path)
    assert [tensor.name for tensor in model.graph.initializer] == ["s"]
    np.testing.assert_array_equal(weights["w"], LARGE)
    assert weights["w"].base is not None
    assert not weights["w"].flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        weights["w"].flags.writeable = True


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_model_comes_through_a_pipe_too(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    model = model_of(numpy_helper.from_array(LARGE, "w"))
    writer = threading.Thread(target=path.write_bytes, args=[model.SerializeToString()])
    writer.start()
    np.testing.assert_array_equal(wire.read(path)[1]["w"], LARGE)
    writer.join()


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "int32", "int64", "uint8"])
def test_what_is_written_is_one_model_to_the_protobuf_library(dtype):
    array = (RNG.standard_normal((70, 90)) * 50).astype(dtype)
    model = onnx.load_from_string(written(model_of(numpy_helper.from_array(SMALL, "s")), {"w": array}))
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    np.testing.assert_array_equal(found["w"], array)
    np.testing.assert_array_equal(found["s"], SMALL)


def test_a_weight_that_is_not_contiguous_is_written_in_its_logical_order():
    model = onnx.load_from_string(written(model_of(), {"w": LARGE.T}))
    np.testing.assert_array_equal(numpy_helper.to_array(model.graph.initializer[0]), LARGE.T)


def test_onnxruntime_runs_a_saved_graph_with_large_weights(parse, judge, tmp_path):
    graph = parse("agraph (float[2, 64] x) => (float[2, 33] y) { y = MatMul(x, w) }", w=LARGE)
    labkit.save(graph, tmp_path / "m.onnx")
    x = RNG.standard_normal((2, 64)).astype(np.float32)
    np.testing.assert_allclose(judge(onnx.load(tmp_path / "m.onnx"), {"x": x})[0], x @ LARGE, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(labkit.load(tmp_path / "m.onnx").constants["w"], LARGE)


def test_a_graph_outlives_the_file_it_came_from(parse, tmp_path):
    path = tmp_path / "m.onnx"
    labkit.save(parse("agraph (float[2, 64] x) => (float[2, 33] y) { y = MatMul(x, w) }", w=LARGE), path)
    graph = labkit.load(path)
    path.write_bytes(b"\0" * path.stat().st_size)
    np.testing.assert_array_equal(graph.constants["w"], LARGE)


def test_elements_in_a_typed_field_are_left_to_the_protobuf_library(tmp_path):
    tensor = helper.make_tensor("w", TensorProto.FLOAT, LARGE.shape, LARGE.ravel())
    (tmp_path / "m.onnx").write_bytes(model_of(tensor).SerializeToString())
    model, weights = wire.read(tmp_path / "m.onnx")
    assert not weights
    np.testing.assert_array_equal(numpy_helper.to_array(model.graph.initializer[0]), LARGE)


def test_external_data_beside_the_file_is_read_and_outside_its_folder_refused(parse, tmp_path):
    graph = parse("agraph (float[2, 64] x) => (float[2, 33] y) { y = MatMul(x, w) }", w=LARGE)
    onnx.save(to_model(graph), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    np.testing.assert_array_equal(labkit.load(tmp_path / "m.onnx").constants["w"], LARGE)
    model = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        entry.value = "../w.bin" if entry.key == "location" else entry.value
    (tmp_path / "bad.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(labkit.GraphError, match=r"bad\.onnx"):
        labkit.load(tmp_path / "bad.onnx")


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_read_as_the_protobuf_library_reads_it(data, tmp_path_factory):
    whole = model_of(numpy_helper.from_array(LARGE, "w"), numpy_helper.from_array(SMALL, "s")).SerializeToString()
    at = data.draw(st.integers(0, 200))
    damaged = bytearray(whole)
    damaged[at] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("wire") / "m.onnx"
    path.write_bytes(bytes(damaged))
    try:
        model, weights = wire.read(path)
    except (DecodeError, UnicodeDecodeError):
        return
    try:
        expected = onnx.ModelProto.FromString(bytes(damaged))
    except DecodeError:
        return  # the library also checks what it never looks at again
    names = sorted(map(str, [*(tensor.name for tensor in model.graph.initializer), *weights]))
    assert names == sorted(str(tensor.name) for tensor in expected.graph.initializer)


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_whatever_is_damaged_in_a_file_loading_ends_in_a_graph_or_in_one_of_our_errors(data, parse, tmp_path_factory):
    text = "c = Conv <pads: ints = [1, 1, 1, 1]> (x, w) r = Reshape(c, s) y = Softmax <axis: int = 1> (r)"
    constants = {"w": np.ones((2, 3, 3, 3), np.float32), "s": np.array([1, -1])}
    whole = to_model(
        parse(f'agraph (float[1, 3, 4, 4] x) => (float[1, "k"] y) {{ {text} }}', **constants)
    ).SerializeToString()
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "m.onnx"
    path.write_bytes(bytes(damaged))
    with contextlib.suppress(labkit.LabError):  # any other exception fails the test
        labkit.optimize(labkit.load(path))
