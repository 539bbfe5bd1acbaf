"""Hostile models: an error in one line that names the node, or a graph that is optimised without being computed.

All rows run in one process of their own, whose memory is limited to a little more than it starts with.
"""
# ruff: noqa: E501  (tables: one row, one case)

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

import labkit
from labkit import cli
from labkit.errors import LabError
from labkit.onnx_io import load
from tests.hostile import (
    HUGE,
    chain,
    changed,
    circle,
    floats,
    ints,
    laughs,
    local,
    nested_ifs,
    sized,
    text,
    weighted,
    wired_ifs,
)

pytestmark = pytest.mark.slow

ROOM_BYTES = 2**30  # beyond what the process holds when it has imported everything
RELU = text("(float[2] x) => (float[2] y) { y = Relu(x) }")
ROOF = "labkit computes what fits in"
LOOP = """(float[2] x) => (float["n"] y) { y = Loop (m, c, x) <body = b (int64 i, bool go, float["k"] a)
          => (bool still, float["l"] r) { still = Identity(go) r = Concat <axis: int = 0> (a, a) }> }"""
DEEP_IF = "c = Constant <value = bool {1}> () b = If (c) <then_branch = t () => (s) { s = local.f0(a) }, else_branch = e () => (q) { q = Neg(a) }>"

# name: (the file, what the error says)
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "a weight of 2⁴⁴ elements that are not there": (lambda: weighted([HUGE]), "'w' cannot be read"),
    "the same, no data at all": (lambda: weighted([HUGE], raw=None), "'w' cannot be read"),
    "a weight whose size wraps to 0": (lambda: weighted([2**32, 2**32]), "'w' cannot be read"),
    "a packed weight of 2⁴⁴ elements": (lambda: weighted([HUGE], TensorProto.INT4, b"\0" * 8), "'w' cannot be read"),
    "a weight of −1 elements": (lambda: weighted([-1], raw=b"\0" * 16), "'w' declares the dims"),
    "a large weight of −1 elements": (lambda: weighted([-1, -2048], raw=b"\0" * 8192), "'w' declares the dims"),
    "a weight of an unknown type": (lambda: weighted([4], 77, b"\0" * 16), "'w': element type 77 is none"),
    "a large weight of an unknown type": (lambda: weighted([4096], 77, b"\0" * 16384), "'w': element type 77 is none"),
    "an input of an unknown type": (
        lambda: changed(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 99)), "element type 99 is none"),
    "a result of −5 elements": (lambda: sized("ConstantOfShape(s)", s=ints(-5)), "ConstantOfShape 'k': axis 0"),
    "a shape that is a matrix": (lambda: sized("ConstantOfShape(s)", s=ints(2, 2).reshape(1, 2)), "ConstantOfShape 'k'"),
    "more cut off than there is": (lambda: sized("Pad(c, s)", c=floats(1), s=ints(-HUGE, 0)), "Pad 'k': axis 0"),
    "more than 2⁶³ elements": (lambda: chain(100, "Concat <axis: int = 0> (@, @)"), r"Concat 'a6.': axis 0"),
    "a billion laughs": (lambda: laughs(40), "f0 'y' calls functions that unfold to 1099511627776 nodes"),
    "functions that call each other": (
        lambda: local("y = local.f(x)", "f (a) => (b) { b = local.g(a) }", "g (a) => (b) { b = local.f(a) }"), "circle: f -> g -> f|circle: g -> f -> g"),
    "a function that calls itself in a branch": (lambda: local("y = local.f0(x)", f"f0 (a) => (b) {{ {DEEP_IF} }}"), "circle: f0 -> f0"),
    "1,000 nested Ifs": (lambda: wired_ifs(1000), "nested deeper"),
    "a node that reads itself": (lambda: changed(lambda m: m.graph.node[0].input.__setitem__(0, "y")), "cycle: Relu 'y' -> Relu 'y'"),
    "a circle of 3,000 nodes": (lambda: circle(3000), r"cycle: Add 'a0' -> .*\(2995 more\)"),
    "a name assigned twice": (lambda: text("(float[2] x) => (float[2] y) { y = Relu(x) y = Neg(x) }"), "Neg 'y' assigns 'y'"),
    "a file cut off": (lambda: RELU[:-7], "not an ONNX model"),
    "a file of bytes": (lambda: bytes(range(256)) * 64, "not an ONNX model"),
    "a length of 2⁶³": (lambda: b"\x3a" + b"\xff" * 8 + b"\x7f", "not an ONNX model"),
    "nothing": (bytes, "not an ONNX model"),
}  # fmt: skip

# name: (the file, what a run on small inputs says; None: it runs)
VALID: dict[str, tuple[Callable[[], bytes], str | None]] = {
    "an input of 2⁴⁴": (lambda: text(f"(float[{HUGE}] x) => (float[{HUGE}] y) {{ y = Relu(x) }}"), "wants float32"),
    "an input of 2¹⁷⁶": (lambda: text(f"(float[{HUGE},{HUGE},{HUGE},{HUGE}] x) => (float[{HUGE}] y) {{ y = Relu(x) }}"), "wants float32"),
    "ConstantOfShape": (lambda: sized("ConstantOfShape(s)", s=ints(HUGE)), f"ConstantOfShape 'k' cannot run: .*{ROOF}"),
    "Expand": (lambda: sized("Expand(c, s)", c=floats(1), s=ints(HUGE)), f"Expand 'k' cannot run: .*{ROOF}"),
    "Tile": (lambda: sized("Tile(c, s)", c=floats(1), s=ints(HUGE)), f"Tile 'k' cannot run: .*{ROOF}"),
    "Range": (lambda: sized("Range(a, b, c)", a=np.array(0), b=np.array(HUGE), c=np.array(1)), f"Range 'k' cannot run: .*{ROOF}"),
    "OneHot": (lambda: sized("OneHot(c, d, v)", c=ints(1), d=np.array(HUGE), v=floats(0, 1)), f"OneHot 'k' cannot run: .*{ROOF}"),
    "Pad": (lambda: sized("Pad(c, s)", c=floats(1), s=ints(HUGE, 0)), f"Pad 'k' cannot run: .*{ROOF}"),
    "Resize": (lambda: text('(float[1, 1, 4, 4] x) => (float["n", "c", "h", "w"] y) { y = Resize(x, , s) }', s=floats(1, 1, 2**20, 2**20)), f"Resize 'y' .*{ROOF}"),
    "a result of 20 GiB, which a machine may well have": (lambda: sized("ConstantOfShape(s)", s=ints(5 * 2**30)), f"ConstantOfShape 'k' .*{ROOF}"),
    "many results of 1 GiB": (lambda: text(
        '(float[1] x) => (float["n"] y) { a = Expand(x, s) b = Neg(a) c = Neg(b) d = Neg(a) e = Sum(a, b, c, d) y = Add(e, a) }', s=ints(2**28)), f"run would hold .*{ROOF}"),
    "a size that is fed": (lambda: text('(float[1] x, int64[1] s) => (float["n"] y) { t = Mul(s, s) y = Expand(x, t) }'), f"Expand 'y' .*{ROOF}"),
    "the padding of a Conv": (lambda: text(
        f'(float[1, 1, 4] x) => (float["a", "b", "c"] y) {{ y = Conv <pads: ints = [{HUGE}, {HUGE}]> (x, w) }}', w=np.ones((1, 1, 3), np.float32)), f"Conv 'y' .*{ROOF}"),
    "forty Concats of what was before, twice": (lambda: chain(40, "Concat <axis: int = 0> (@, @)"), f"Concat .*{ROOF}"),
    "the same of a size unknown": (lambda: chain(40, "Concat <axis: int = 0> (@, @)", 'float["n"] x'), f"Concat .*{ROOF}"),
    "the same of a shape": (lambda: chain(40, "Concat <axis: int = 0> (@, @)", 'int64["n"] x'), f"Concat .*{ROOF}"),
    "a shape times itself, forty times": (lambda: chain(40, "Mul(@, @)", "float[2, 4] q, int64[2] x", "t = Slice(z, a, b) u = Reshape(q, t) v = ReduceSum(u) y = Neg(v)", a=ints(0), b=ints(1)), "Reshape .u. cannot run"),
    "a loop that doubles": (lambda: text(LOOP, m=np.array(60), c=np.array(True)), "Loop 'y' cannot run"),
    "10,000 Sigmoids": (lambda: chain(10_000, "Sigmoid(@)"), None),
    "10,000 Identities": (lambda: chain(10_000, "Identity(@)"), None),
    "10,000 nodes that a shape makes needless": (lambda: chain(10_000, "Sigmoid(@)", last="s = Shape(z) y = Expand(x, s)"), None),
    "10,000 folded nodes": (lambda: chain(10_000, "Neg(@)", "float[4] v", "y = Add(v, z)", x=floats(1, 2, 3, 4)), None),
    "3,000 windows over a size unknown": (lambda: chain(3000, "MaxPool <kernel_shape: ints = [2]> (@)", 'float[1, 1, "n"] x'), ""),  # nothing is left of two elements
    "30 nested Ifs": (lambda: nested_ifs(30), None),
    "30 nested Ifs, decided": (lambda: nested_ifs(30, "float[4] x", c=np.array(True)), None),
    "20 nested Ifs, byte by byte": (lambda: wired_ifs(20), None),
    "2¹⁰ nodes in ten functions": (lambda: laughs(10), None),
}  # fmt: skip


def cli_answer(*arguments: str) -> dict[str, object]:
    """Exit status and error text of a command; a traceback in place of them when it crashed."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            status = cli.main(arguments)
    except BaseException:
        return {"status": "crash", "error": traceback.format_exc()}
    return {"status": status, "error": errors.getvalue()}


def run_answer(path: Path) -> str:
    """What running the model on small inputs says."""
    try:
        graph = load(path)
        shapes = {
            value.name: [dim if isinstance(dim, int) and dim < 10**6 else 2 for dim in value.shape or ()]
            for value in graph.inputs
        }
        kinds = {value.name: value.dtype for value in graph.inputs}
        labkit.run(
            graph,
            {
                name: np.full(shape, 2**20 if kinds[name] == "int64" else 1, kinds[name])
                for name, shape in shapes.items()
            },
        )
    except LabError as error:
        return str(error)
    except BaseException:
        return traceback.format_exc()
    return ""


def child(folder: Path) -> None:
    """Try every row under a limit of memory; a line of JSON each."""
    import resource

    import onnxruntime  # noqa: F401  # imported before the limit is set

    cli_answer("optimize", str(folder / "relu.onnx"), "--verify")
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + ROOM_BYTES, held + ROOM_BYTES))
    for name, (make, _) in {**REFUSED, **VALID}.items():
        place = folder / str(len(list(folder.iterdir())))
        place.mkdir()
        path, content = place / "model.onnx", make()
        path.write_bytes(content)
        found: dict[str, object] = {
            "name": name,
            "plain": cli_answer("optimize", str(path), "-o", str(place / "out.onnx")),
        }
        if name in VALID:
            found |= {"verified": cli_answer("optimize", str(path), "--verify"), "run": run_answer(path)}
        found |= {"files": sorted(one.name for one in place.iterdir()), "untouched": path.read_bytes() == content}
        print(json.dumps(found), flush=True)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    if sys.platform != "linux":
        pytest.skip("the limit of memory and its measure are Linux's")
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "relu.onnx").write_bytes(RELU)
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "tests.test_hostile_models", str(folder)]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["name"]: row for row in rows}, f"status {done.returncode}: {done.stderr[-2000:]}"


def row_of(answers, name):
    rows, end = answers
    assert name in rows, f"the process did not live to see this row: {end}"
    return rows[name]


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_is_not_valid_is_one_line_of_error_and_no_file(answers, name):
    row = row_of(answers, name)
    assert row["plain"]["status"] == 2, row
    assert row["plain"]["error"].count("\n") == 1
    assert re.search(REFUSED[name][1], row["plain"]["error"]), row["plain"]["error"]
    assert row["files"] == ["model.onnx"]
    assert row["untouched"]


@pytest.mark.parametrize("name", VALID)
def test_a_hostile_model_is_optimised_without_being_computed_and_a_run_says_no(answers, name):
    row = row_of(answers, name)
    assert row["plain"]["status"] == 0, row["plain"]["error"]
    assert (row["files"], row["untouched"]) == (["model.onnx", "out.onnx"], True)
    wanted = VALID[name][1]
    if wanted is None:
        assert (row["run"], row["verified"]["status"]) == ("", 0), row
    else:
        assert re.search(wanted, row["run"]), row["run"]
        assert row["run"].count("\n") == 0
        assert row["verified"]["status"] in (0, 2), row["verified"]["error"]  # 0: on small inputs it may well run
        assert row["verified"]["error"].count("\n") <= 1


if __name__ == "__main__":
    child(Path(sys.argv[1]))
