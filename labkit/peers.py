"""Production optimisers beside labkit, those that are installed: one model through each, counted by one rule.

Each runs in a process of its own, so that one that crashes, hangs or needs minutes costs a line and no more.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from labkit.draws import draws
from labkit.errors import LabError
from labkit.graph import Array, Dim, Graph, TensorType, itemsize
from labkit.onnx_io import load, save

SECONDS = 300


@dataclass(frozen=True)
class Outcome:
    """What one optimiser left of a model. ``dram_bytes``: each node reads each distinct input once and writes its
    outputs once; Constant nodes are free. ``seconds`` is CPU time of load, optimise and save. ``note``: what failed."""

    name: str
    nodes: int | None = None
    dram_bytes: int | None = None
    max_abs: float | None = None
    seconds: float | None = None
    note: str = ""


def _labkit(level: str) -> Callable[[str, str], None]:
    def optimise(source: str, target: str) -> None:
        from labkit.passes.pipeline import optimize

        save(optimize(load(source), level=level).graph, target)

    return optimise


def _onnxruntime(level: str) -> Callable[[str, str], None]:
    def optimise(source: str, target: str) -> None:
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
        options.optimized_model_filepath = target
        onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])

    return optimise


def _onnxsim(source: str, target: str) -> None:
    import onnx
    import onnxsim

    onnx.save(onnxsim.simplify(onnx.load(source))[0], target)


def _onnxslim(source: str, target: str) -> None:
    import onnx
    import onnxslim

    onnx.save(onnxslim.slim(onnx.load(source)), target)


def _onnxscript(source: str, target: str) -> None:
    import onnx
    import onnxscript.optimizer

    onnx.save(onnxscript.optimizer.optimize(onnx.load(source)), target)


# Each by its package, and what it does from file to file.
OPTIMISERS: dict[str, tuple[str, Callable[[str, str], None]]] = {
    "labkit basic": ("labkit.passes.pipeline", _labkit("basic")),
    "labkit extended": ("labkit.passes.pipeline", _labkit("extended")),
    "onnxruntime basic": ("onnxruntime", _onnxruntime("BASIC")),
    "onnxruntime extended": ("onnxruntime", _onnxruntime("EXTENDED")),
    "onnxsim": ("onnxsim", _onnxsim),
    "onnxslim": ("onnxslim", _onnxslim),
    "onnxscript": ("onnxscript", _onnxscript),
}


def compare(path: str, shapes: Mapping[str, Sequence[int]] | None = None) -> tuple[Outcome, ...]:
    """One outcome for the model as it is and one for each optimiser that is installed.

    ``shapes`` gives inputs the sizes to count at; any other dim that is no number counts as 1. Raises LabError for a
    file that is no model, or where onnxruntime, which runs all results with its optimisations off, is missing.
    """
    if importlib.util.find_spec("onnxruntime") is None:
        raise LabError("compare runs every result in onnxruntime, which is not installed: pip install onnxruntime")
    feeds = _feeds(load(path), shapes or {})
    try:
        types, wanted = _observed(path, feeds)
    except Exception as error:  # whatever onnxruntime raises
        raise LabError(f"{path}: onnxruntime cannot run it ({' '.join(str(error).split())[:200]})") from None
    original = Outcome("as it is", *_counted(path, types))
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "optimised.onnx")
        installed = [name for name, (package, _) in OPTIMISERS.items() if importlib.util.find_spec(package)]
        return (original, *(_outcome(name, path, target, feeds, wanted) for name in installed))


def _outcome(name: str, source: str, target: str, feeds: Mapping[str, Array], wanted: Sequence[Any]) -> Outcome:
    Path(target).unlink(missing_ok=True)
    command = [sys.executable, "-m", "labkit.peers", name, source, target]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Outcome(name, note=f"no result after {SECONDS} s")
    if done.returncode or not Path(target).exists():
        last = (done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"])[-1]
        return Outcome(name, note=last[:120])
    seconds = json.loads(done.stdout.strip().splitlines()[-1])["seconds"]
    try:
        types, found = _observed(target, feeds)
    except Exception as error:
        return Outcome(name, seconds=seconds, note=f"its result does not run: {' '.join(str(error).split())[:100]}")
    return Outcome(name, *_counted(target, types), _largest_gap(wanted, found), seconds)


def _feeds(graph: Graph, shapes: Mapping[str, Sequence[int]]) -> dict[str, Array]:
    if unknown := [name for name in shapes if name not in graph.input_names]:
        raise LabError(f"no input {unknown[0]!r}; there are: {', '.join(sorted(graph.input_names))}")
    inputs = []
    for value in graph.inputs:
        dims: tuple[Dim, ...] = tuple(shapes.get(value.name, ())) or value.shape or ()
        known = tuple(dim if isinstance(dim, int) else 1 for dim in dims)
        inputs.append(replace(value, type=TensorType(known, value.dtype or "float32")))
    return next(draws(replace(graph, inputs=tuple(inputs)), seed=0))[1]


def _observed(path: str, feeds: Mapping[str, Array]) -> tuple[dict[str, Any], list[Any]]:
    """The arrays that onnxruntime, its optimisations off, computes: every value by name, and the outputs."""
    import onnx
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    model = onnx.load(path)
    outputs = [value.name for value in model.graph.output]
    inside = [name for node in model.graph.node for name in node.output if name and name not in outputs]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inside)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run([*outputs, *inside], dict(feeds))
    return {**dict(zip([*outputs, *inside], results, strict=True)), **feeds}, results[: len(outputs)]


def _counted(path: str, arrays: Mapping[str, Any]) -> tuple[int, int]:
    """Nodes, and the bytes that they move one by one."""
    import onnx

    model = onnx.load(path)
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    known = {**constants, **arrays}
    nodes = [node for node in model.graph.node if node.op_type != "Constant"]
    moved = (name for node in nodes for name in (*dict.fromkeys(node.input), *node.output) if name)
    return len(nodes), sum(_nbytes(known.get(name)) for name in moved)


def _nbytes(array: Any) -> int:
    return array.size * itemsize(TensorType.of(array).dtype) if isinstance(array, np.ndarray) else 0


def _largest_gap(wanted: Sequence[Any], found: Sequence[Any]) -> float:
    """The largest absolute difference of all outputs; infinite where shapes, types, NaN or integers differ."""
    largest = 0.0
    for one, two in zip(map(np.asarray, wanted), map(np.asarray, found), strict=True):
        if one.shape != two.shape or one.dtype != two.dtype:
            return float("inf")
        if one.dtype.kind != "f":
            largest = max(largest, 0.0 if np.array_equal(one, two) else float("inf"))
        elif one.size:
            one, two = one.ravel(), two.ravel()
            with np.errstate(invalid="ignore"):
                gaps = np.abs(one.astype(np.float64) - two)
            gaps[(one == two) | (np.isnan(one) & np.isnan(two))] = 0.0  # infinities, too
            largest = max(largest, float("inf") if np.isnan(gaps).any() else float(gaps.max()))
    return largest


def main(argv: Sequence[str]) -> None:
    """One optimiser, in this process: its CPU seconds on the last line."""
    name, source, target = argv
    importlib.import_module(OPTIMISERS[name][0])  # loading the package is not its work
    start = time.process_time()
    OPTIMISERS[name][1](source, target)
    print(json.dumps({"seconds": time.process_time() - start}))


if __name__ == "__main__":
    main(sys.argv[1:])
