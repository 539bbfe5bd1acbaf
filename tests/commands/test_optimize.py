import json

import numpy as np
import onnx
import pytest

from labkit import cli
from labkit.onnx_io import load, save

W = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
ONES = {name: np.ones(4, np.float32) for name in "sbmv"}


@pytest.fixture
def model(parse, tmp_path):
    text = "c = Conv(x, w) n = BatchNormalization(c, s, b, m, v) y = Relu(n)"
    graph = parse(f'agraph (float[1, 3, 9, 9] x) => (float[1, 4, "h", "k"] y) {{ {text} }}', w=W, **ONES)
    save(graph, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_optimize_verifies_writes_and_reports_as_json(model, tmp_path, capsys):
    out = tmp_path / "out.onnx"
    assert cli.main(["optimize", str(model), "-o", str(out), "--verify", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"model", "hardware", "level", "steps", "before", "after", "refusals", "verify"} <= data.keys()
    assert (data["before"]["nodes"], data["after"]["nodes"]) == (3, 2)
    assert data["verify"]["equivalent"]
    assert [node.op for node in load(out).nodes] == ["Conv", "Relu"]
    onnx.checker.check_model(str(out), full_check=True)


def test_optimize_prints_a_table_for_people(model, capsys):
    assert cli.main(["optimize", str(model), "--verify"]) == 0
    text = capsys.readouterr().out
    assert "affine" in text
    assert "verified by onnxruntime on 6 inputs" in text


def test_a_model_that_is_not_equivalent_is_not_written_and_exits_with_1(model, tmp_path, capsys, monkeypatch):
    from labkit.passes import weights

    # Break the algebra: scale nothing. verify has to catch it.
    monkeypatch.setattr(weights, "_times", lambda weight, factor: weight * 2)
    out, shown = tmp_path / "out.onnx", tmp_path / "shown.onnx"
    asked = ["optimize", str(model), "-o", str(out), "--verify", "--counterexample", str(shown)]
    assert cli.main([*asked, "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert not data["verify"]["equivalent"]
    assert "output 'y'" in data["verify"]["reason"]
    assert data["verify"]["blame"] == "step 0, affine: shown by a graph of 2 nodes"
    assert not out.exists()
    assert [node.op for node in load(shown).nodes] == ["Conv", "BatchNormalization"]
    assert cli.main(asked) == 1
    assert "NOT EQUIVALENT" in capsys.readouterr().out


def test_another_sram_is_the_machines(model, capsys):
    assert cli.main(["optimize", str(model), "--hardware", "dsp", "--sram", "64KiB", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hardware"] == "dsp"


def truncated(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def cyclic(path):
    model = onnx.load(path)
    model.graph.node[0].input[0] = "y"
    onnx.save(model, path)


@pytest.mark.parametrize(
    ("spoil", "arguments", "message"),
    [
        (lambda path: path.write_text("no model"), [], "not an ONNX model"),
        (truncated, [], "model.onnx"),
        (cyclic, [], "cycle"),
        (lambda path: path.unlink(), [], "no such file"),
        (lambda path: None, ["--level", "O9"], "there are: none, basic"),
        (lambda path: None, ["--sram", "512XB"], "write a number and B, KiB, MiB or GiB"),
        (lambda path: None, ["--hardware", "toaster"], "no hardware preset 'toaster'"),
        (lambda path: None, ["--output"], "expected one argument"),
    ],
    ids=["no ONNX", "truncated", "cycle", "missing", "level", "size", "hardware", "argument"],
)
def test_bad_input_is_one_line_exit_2_and_no_output_file(model, tmp_path, capsys, spoil, arguments, message):
    spoil(model)
    out = tmp_path / "out.onnx"
    assert cli.main(["optimize", str(model), "-o", str(out), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert sorted(path.name for path in tmp_path.iterdir()) in (["model.onnx"], [])
