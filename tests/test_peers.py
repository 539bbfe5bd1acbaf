"""Other optimisers beside labkit: one rule of counting, and one that fails costs a line."""

from __future__ import annotations

import numpy as np
import pytest

import labkit
from labkit import peers
from labkit.cli import main
from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.peers import OPTIMISERS, compare


@pytest.fixture
def model(parse, tmp_path):
    """Conv and BatchNormalization, which one kernel can do, behind an Identity."""
    rng = np.random.default_rng(1)
    constants = {name: rng.uniform(0.5, 1.5, 4).astype("float32") for name in "gbmv"}
    weights = rng.standard_normal((4, 3, 3, 3)).astype("float32")
    text = "i = Identity(x) c = Conv(i, w) n = BatchNormalization(c, g, b, m, v) y = Relu(n)"
    graph = parse(f"net (float[1,3,8,8] x) => (float[1,4,6,6] y) {{ {text} }}", w=weights, **constants)
    path = tmp_path / "net.onnx"
    labkit.save(graph, path)
    return path


def test_nodes_and_bytes_are_those_of_cost(model):
    machine = Hardware.preset("edge-npu")
    found = {outcome.name: outcome for outcome in compare(str(model))}
    graph = labkit.load(model)
    for name, level in (("as it is", "none"), ("labkit basic", "basic"), ("labkit extended", "extended")):
        wanted = labkit.cost(labkit.optimize(graph, level).graph, machine)
        assert (found[name].nodes, found[name].dram_bytes) == (wanted.launches, wanted.dram_bytes)
    assert found["as it is"].nodes == 4
    assert found["labkit extended"].nodes == 1
    assert found["onnxruntime basic"].note == ""
    assert all(outcome.max_abs < 1e-5 for name, outcome in found.items() if name != "as it is")


def test_an_optimiser_that_fails_costs_a_line_and_the_others_go_on(model, monkeypatch):
    """The child process does not know this one."""
    table = {"none such": ("labkit", lambda source, target: None), **OPTIMISERS}
    monkeypatch.setattr(peers, "OPTIMISERS", table)
    found = {outcome.name: outcome for outcome in compare(str(model))}
    assert "none such" in found["none such"].note
    assert found["none such"].nodes is None
    assert found["labkit basic"].nodes == 2


@pytest.mark.parametrize(
    ("one", "two", "gap"),
    [
        ([1.0, 2.0], [1.0, 2.5], 0.5),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan, 1.0], [1.0, np.nan], np.inf),
        ([np.inf], [np.inf], 0.0),
        (2.0, 1.5, 0.5),
        ([1], [1], 0.0),
        ([1], [2], np.inf),
        ([1.0, 1.0], [1.0], np.inf),
    ],
)
def test_a_gap_is_the_largest_difference_and_infinite_where_there_is_no_number(one, two, gap):
    assert peers._largest_gap([np.array(one)], [np.array(two)]) == gap


def test_open_dims_are_counted_at_the_sizes_given(parse, tmp_path):
    path = tmp_path / "open.onnx"
    labkit.save(parse('g (float["n",4] x) => (float["n",4] y) { y = Relu(x) }'), path)
    assert compare(str(path))[0].dram_bytes == 2 * 4 * 4
    assert compare(str(path), {"x": (3, 4)})[0].dram_bytes == 3 * 2 * 4 * 4
    with pytest.raises(LabError, match="no input 'z'; there are: x"):
        compare(str(path), {"z": (3, 4)})


@pytest.mark.parametrize("arguments", [["none.onnx"], ["{model}", "--shape", "x=a,b"], ["{model}", "--shape", "x=1,2"]])
def test_bad_input_is_one_line(model, capsys, arguments):
    status = main(["compare", *(text.format(model=model) for text in arguments)])
    assert status == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
