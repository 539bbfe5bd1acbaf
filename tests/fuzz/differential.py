"""One random graph through the passes: what is computed before and after, by onnxruntime with its optimisations off."""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import labkit
from labkit.draws import draws
from labkit.errors import LabError
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.onnx_io import to_model
from labkit.passes.pipeline import LEVELS, PASSES
from labkit.passes.report import Report
from labkit.shrink import shrink
from tests.fuzz.generate import bound, generate

BASIC = LEVELS["basic"][0]
NPU = Hardware.preset("edge-npu")
# A roomy one, one with next to no SRAM, and one whose kernels want channels in blocks.
MACHINES = (NPU, replace(NPU, sram_bytes=96), replace(NPU, sram_bytes=2048, layout="NCHW4c"))
OUT = Path(tempfile.gettempdir()) / "labkit-fuzz"


@dataclass(frozen=True)
class Plan:
    """What to do with a graph: ``passes`` in this order, or else all of a ``level``, for a machine."""

    passes: tuple[str, ...] = ()
    level: str = "basic"
    machine: Hardware = NPU

    def __str__(self) -> str:
        what = f"passes {' '.join(self.passes)}" if self.passes else f"level {self.level}"
        return f"{what}, {self.machine.sram_bytes} bytes of SRAM, {self.machine.layout}"

    def report(self, graph: Graph) -> Report:
        return labkit.optimize(graph, self.level, self.machine, passes=self.passes or None)


@dataclass(frozen=True)
class Fault:
    """What a plan did wrong with the graph of a seed."""

    seed: int
    plan: Plan
    why: str

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.plan}: {self.why}"


def fault_of(graph: Graph, plan: Plan) -> str | None:
    """Why a plan cannot be trusted with this graph; None when nothing is wrong."""
    if not _runnable(graph) or _file_fault(graph) is not None:
        return None  # not a graph to judge by
    try:
        after = plan.report(graph).graph
        if after is graph:
            return None
        if plan.report(after).graph is not after:
            return "not idempotent: the second time they change the graph again"
        if (after.inputs, _interface(after)) != (graph.inputs, _interface(graph)):
            return f"the interface changes: {_interface(graph)} became {_interface(after)}"
        if plan.level != "all" and len(after.nodes) > len(graph.nodes) + _inside_ifs(graph):  # a layout has transforms
            return f"{len(graph.nodes)} nodes became {len(after.nodes)}"
        return _file_fault(after) or _value_fault(graph, after)
    except Exception as error:  # whatever a pass raises on a valid graph is a fault
        return f"{type(error).__name__}: {error}"


def _interface(graph: Graph) -> list[tuple[str, str | None]]:
    return [(value.name, value.dtype) for value in graph.outputs]


def _inside_ifs(graph: Graph) -> int:
    return sum(len(body.nodes) + _inside_ifs(body) for node in graph.nodes for body in node.bodies)


@lru_cache(maxsize=8)
def _file_fault(graph: Graph) -> str | None:
    """Save (which runs ONNX's full check) and load again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "after.onnx"
        try:
            labkit.save(graph, path)
            again = labkit.load(path)
        except LabError as error:
            return str(error)
    ops, found = (Counter(node.op for node in one.nodes) for one in (graph, again))
    return None if ops == found else f"the saved file holds other nodes: {ops} became {found}"


def _value_fault(graph: Graph, after: Graph) -> str | None:
    for size, one in _runnable(graph):
        two = bound(after, size)
        if not runs(two):
            return f"onnxruntime runs the graph, but not what became of it (open dims {size})"
        try:
            labkit.verify(one, two)
        except LabError as error:
            if "(NaN and infinities inputs)" in str(error) and _casts_to_integers(graph):
                continue  # what integer a NaN becomes is not even the same for a scalar and a vector
            if "(zeros inputs)" in str(error) and _without_variance(graph):
                continue  # what is left of the batch, rounding, is divided by √epsilon
            return f"open dims {size}: {error}"
    return None


def _casts_to_integers(graph: Graph) -> bool:
    kinds = ((node.uses[0].dtype or "", node.output.dtype or "") for node in graph.nodes if node.op.startswith("Cast"))
    return any(one.startswith("float") and "int" in two for one, two in kinds)


def _without_variance(graph: Graph) -> bool:
    """Whether something is normalised by a variance that may be 0: that of the batch, or one that a caller feeds."""
    norms = [node for node in graph.nodes if node.op == "BatchNormalization"]
    return any(node.attrs.get("training_mode") or graph.constant(node.inputs[4]) is None for node in norms)


@lru_cache(maxsize=8)
def _runnable(graph: Graph) -> tuple[tuple[int, Graph], ...]:
    """The graph with its open dims at 2, and at 1 and 3 as well where there are any, as far as onnxruntime runs it."""
    is_open = any(isinstance(dim, str) for value in graph.inputs for dim in value.shape or ())
    graphs = ((size, bound(graph, size)) for size in ((2, 1, 3) if is_open else (2,)))
    return tuple((size, one) for size, one in graphs if runs(one))


def runs(graph: Graph) -> bool:
    """Whether onnxruntime, its optimisations off, loads the graph and computes something on an ordinary input."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        model = to_model(graph).SerializeToString()
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        session.run(None, next(draws(graph, 0))[1])
    except Exception:  # whatever its C++ side raises
        return False
    return True


def faults(seed: int, *, thorough: bool = True) -> list[Fault]:
    """All basic passes, and level all for one machine; if ``thorough``, each pass alone and three orders, too."""
    graph, machine = generate(seed), MACHINES[seed % len(MACHINES)]
    plans = [Plan(BASIC), Plan(level="all", machine=machine)]
    if thorough:
        shuffled = random.Random(seed)
        plans += [Plan((name,)) for name in PASSES]
        plans += [Plan(tuple(shuffled.sample(BASIC, len(BASIC)))) for _ in range(3)]
    found = ((plan, fault_of(graph, plan)) for plan in plans)
    return [Fault(seed, plan, why) for plan, why in found if why is not None]


def explained(fault: Fault) -> str:
    """The fault, the first pass whose graph is wrong, and a small graph that shows it, saved as ONNX."""
    graph = generate(fault.seed)
    small = shrink(graph, lambda part: _kind(fault_of(part, fault.plan)) == _kind(fault.why), tries=300)
    OUT.mkdir(exist_ok=True)
    path = OUT / f"seed{fault.seed}.onnx"
    path.write_bytes(to_model(small).SerializeToString())  # as it is, even where a full check would refuse it
    nodes = "\n".join(f"  {', '.join(map(str, node.results))} = {node.op}" for node in small.nodes)
    lines = (f"{fault}", f"first bad pass: {first_bad_pass(small, fault.plan)}", f"shrunk, in {path}:", nodes)
    return "\n".join((*lines, f"there: {fault_of(small, fault.plan)}"))


def _kind(why: str | None) -> str | None:
    """A fault without its names and numbers: cuts must not drift from one fault to another."""
    return why and re.split(r"[\d'(]", why.removeprefix("open dims ").lstrip("123: "))[0]


def first_bad_pass(graph: Graph, plan: Plan) -> str:
    """The first step whose graph no longer computes the same."""
    try:
        for step in plan.report(graph).steps:
            if _value_fault(graph, step.graph) is not None:
                return f"{step.name} (round {step.round})"
    except Exception:  # it raises before there are steps: the last pass alone will show
        alone = ((name, Plan((name,), machine=plan.machine)) for name in plan.passes)
        return next((name for name, one in alone if fault_of(graph, one) is not None), "several together")
    return "none: no value is wrong"
