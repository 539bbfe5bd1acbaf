"""External data: read wherever a tensor may stand, and only from files that lie in the model's own folder."""

from __future__ import annotations

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import labkit
from labkit import cli
from labkit.errors import GraphError
from labkit.onnx_io import from_model, load

W = np.array([1, 2, 3, 4], np.float32)
X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])


def stored(**entries: object) -> TensorProto:
    tensor = TensorProto(name="w", dims=[4], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def as_weight(tensor):
    return helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [X], [Y], [tensor])


def as_constant(tensor):
    nodes = [helper.make_node("Constant", [], ["w"], value=tensor), helper.make_node("Add", ["x", "w"], ["y"])]
    return helper.make_graph(nodes, "g", [X], [Y])


def in_a_branch(tensor):
    p = helper.make_tensor_value_info("p", TensorProto.FLOAT, [4])
    branch = helper.make_graph([helper.make_node("Add", ["x", "w"], ["p"])], "b", [], [p], [tensor])
    nodes = [
        helper.make_node("Constant", [], ["c"], value=onnx.numpy_helper.from_array(np.array(True))),
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
    ]
    return helper.make_graph(nodes, "g", [X], [Y])


def model_of(graph):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def folder(tmp_path):
    """A folder with a model's data in it, and beside it data that is none of the model's business."""
    inside = tmp_path / "model"
    inside.mkdir()
    (inside / "w.bin").write_bytes(W.tobytes())
    (tmp_path / "secret.bin").write_bytes(W.tobytes())
    if hasattr(os, "symlink"):
        os.symlink(tmp_path / "secret.bin", inside / "link.bin")
        os.symlink(tmp_path, inside / "up")
    return inside


PLACES = (as_weight, as_constant, in_a_branch)
# name: (entries, what the error says)
HOSTILE = {
    "the folder above": ({"location": "../secret.bin"}, "secret.bin"),
    "a path from the root": ({"location": "/dev/zero"}, "/dev/zero"),
    "a link out of the folder": ({"location": "link.bin"}, "w"),
    "a folder that is a link": ({"location": "up/secret.bin"}, "w"),
    "a file that is not there": ({"location": "none.bin"}, "none.bin"),
    "no place at all": ({}, "w"),
    "more than the file holds": ({"location": "w.bin", "length": 2**44}, "w"),
    "less than nothing": ({"location": "w.bin", "length": -16}, "w"),
    "behind the end": ({"location": "w.bin", "offset": 2**60, "length": 16}, "w"),
    "a length in words": ({"location": "w.bin", "length": "all"}, "w"),
    "half of it": ({"location": "w.bin", "length": 8}, "'w' cannot be read"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", HOSTILE)
def test_data_that_leads_elsewhere_is_one_line_of_error_and_no_file(folder, capsys, place, name):
    entries, message = HOSTILE[name]
    (folder / "m.onnx").write_bytes(model_of(place(stored(**entries))).SerializeToString())
    before = sorted(folder.iterdir())
    assert cli.main(["optimize", str(folder / "m.onnx"), "-o", str(folder / "out.onnx")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error.replace(str(folder), "")
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("place", PLACES)
def test_data_in_the_folder_is_read_wherever_the_tensor_stands(folder, place):
    (folder / "m.onnx").write_bytes(model_of(place(stored(location="w.bin", length=16))).SerializeToString())
    graph = load(folder / "m.onnx")
    np.testing.assert_array_equal(labkit.run(graph, {"x": W})["y"], 2 * W)


@pytest.mark.parametrize("place", PLACES)
def test_a_model_in_memory_has_no_folder_to_read_from(folder, monkeypatch, place):
    monkeypatch.chdir(folder)
    with pytest.raises(GraphError, match="'w' lies in another file; load the model by its path"):
        from_model(model_of(place(stored(location="w.bin", length=16))))
