"""The graph compiler beside other optimisers: CPU seconds of load, optimise, save; medians of fresh processes.

onnxruntime's basic level is always there; onnxsim and onnxslim only where they are installed. What is imported is
imported before the clock starts, on all sides. Ratios within one run; the machine is noisy.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

RUNS = 5
SHARED = Path(__file__).resolve().parents[3] / "shared/models"
MEASURE = """
import resource, sys, time
tool, source, target = sys.argv[1:]
tool, _, level = tool.partition(" ")
if tool == "labkit":
    import labkit, labkit.passes.pipeline, labkit.onnx_io, onnx.checker, onnx.shape_inference
    start = time.process_time()
    labkit.save(labkit.optimize(labkit.load(source), level or "basic").graph, target)
elif tool == "onnxruntime":
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level or 'BASIC'}")
    options.optimized_model_filepath = target
    start = time.process_time()
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
elif tool == "onnxsim":
    import onnx, onnxsim
    start = time.process_time()
    onnx.save(onnxsim.simplify(onnx.load(source))[0], target)
else:
    import onnx, onnxslim
    start = time.process_time()
    onnx.save(onnxslim.slim(onnx.load(source)), target)
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
OTHERS = [tool for tool in ("onnxruntime", "onnxsim", "onnxslim") if find_spec(tool)]


def main() -> None:
    heads = "".join(f"{tool:>14}{'ratio':>7}" for tool in OTHERS)
    print(f"{'CPU seconds, median of ' + str(RUNS):34}{'labkit':>9}{'peak / file':>13}{heads}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        # In a process of its own: a child inherits the peak memory of its parent.
        make = "import sys; from labkit import save, zoo; save(zoo.resnet50(), sys.argv[1])"
        subprocess.run([sys.executable, "-c", make, str(folder / "resnet50.onnx")], check=True)
        for length in (3000, 24000):
            onnx.save(chain(length), folder / f"chain of {length}.onnx")
        if SHARED.is_dir():
            full = [sys.executable, str(SHARED / "materialize_light.py"), "inline", str(folder), "densenet121"]
            subprocess.run(full, check=True, capture_output=True)
        for path in [*sorted(folder.glob("*.onnx")), *sorted(SHARED.glob("light_densenet121_slim.onnx"))]:
            row(path, folder / "out.onnx.tmp")
        everything(folder / "resnet50.onnx", folder / "out.onnx.tmp")


def row(path: Path, target: Path) -> None:
    ours, peak = measured("labkit", path, target)
    cells = [f"{path.stem:34}{ours:9.3f}{peak * 1024 / path.stat().st_size:13.1f}"]
    for tool in OTHERS:
        theirs, _ = measured(tool, path, target)
        cells.append(f"{theirs:14.3f}{ours / theirs:7.2f}")
    print("".join(cells), flush=True)


def everything(path: Path, target: Path) -> None:
    """Fused, paired, laid out: beside all that onnxruntime does for its own machine. The goal is a ratio of 1.5."""
    ours, _ = measured("labkit all", path, target)
    if "onnxruntime" in OTHERS:
        theirs, _ = measured("onnxruntime ALL", path, target)
        print(f"{path.stem + ', level all':34}{ours:9.3f}{'':13}{theirs:14.3f}{ours / theirs:7.2f}", flush=True)


def measured(tool: str, source: Path, target: Path) -> tuple[float, float]:
    """CPU seconds and peak memory, in KiB."""
    runs = []
    for _ in range(RUNS):
        command = [sys.executable, "-c", MEASURE, tool, str(source), str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(tuple(map(float, done.stdout.splitlines()[-1].split())))  # some tools print, too
    return statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)


def chain(length: int) -> onnx.ModelProto:
    """Two thirds of the nodes are no-ops."""
    nodes, previous = [], "x"
    for index in range(length):
        op = ("Sin", "Identity", "Add")[index % 3]
        nodes.append(helper.make_node(op, [previous, "zero"] if op == "Add" else [previous], [f"v{index}"]))
        previous = f"v{index}"
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 8]) for name in ("x", previous))
    zero = onnx.numpy_helper.from_array(np.zeros(1, np.float32), "zero")
    graph = helper.make_graph(nodes, "chain", [x], [y], initializer=[zero])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    main()
