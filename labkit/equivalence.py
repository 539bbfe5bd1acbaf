"""verify(): two graphs run on the same inputs, ordinary and adversarial, and every output compared.

The judge is onnxruntime with its own optimisations off where it is installed, and labkit's interpreter elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from labkit.draws import draws
from labkit.errors import LabError, NotEquivalent
from labkit.graph import Array, Graph, Value
from labkit.interpreter import evaluate, run
from labkit.onnx_io import to_model
from labkit.sizes import check_sizes
from labkit.ties import left_open

Runner: TypeAlias = Callable[[dict[str, Array]], list[Any]]

# Rewriting re-associates float sums. Folding BatchNormalization moves each result by a few units in the last place
# (2⁻²³ ≈ 1.2e-7 of the largest term); 50 layers of ResNet add up to about 1e-5. A real fault is far above: the
# smallest one that tests plant is 1e-3. Half precision has 2⁻¹⁰ ≈ 1e-3 in place of 2⁻²³.
_TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-1}


@dataclass(frozen=True)
class Equivalence:
    """Two graphs agreed on ``inputs`` draws; the largest difference, absolute and relative to the largest output."""

    max_abs: float
    max_rel: float
    inputs: int
    judge: str

    def to_dict(self) -> dict[str, Any]:
        return {"equivalent": True, **asdict(self)}


def verify(before: Graph, after: Graph, *, seed: int = 0) -> Equivalence:
    """Run both graphs on seeded draws and compare all outputs: shape, type, NaN and infinities, values.

    Draws: normal (twice), all negative, zeros of both signs, denormals, and normal with NaN and ±Inf strewn in.
    A draw that the first graph itself cannot run is left out. ONNX leaves it open what, say, a MaxPool makes of a NaN:
    where onnxruntime and labkit differ over a graph, it is enough that one of them sees no difference in an output.
    Of elements that only rounding makes equal, an ArgMax may name either.

    Raises NotEquivalent with the first difference, LabError when the interfaces differ, no draw could be run, or a
    tensor is too large to hold.
    """
    _same_interface(before, after)
    judge, first, second = _judge(before, after)
    largest_abs = largest_rel = 0.0
    scales = {value.name: _own_scale(before, value) for value in before.outputs}
    tolerances = _tolerances(before)
    count, reason = 0, ""
    for kind, feeds in draws(before, seed):
        for graph in (before, after):
            check_sizes(graph, {**graph.constants, **feeds}, evaluate)
        try:
            expected = first(feeds)
        except Exception as error:  # a judge raises what it likes; the draw does not suit this model
            reason = " ".join(str(error).split())
            continue
        where = f"({kind} inputs)"
        found = _second(second, feeds, where)
        again = partial(_second_look, judge, before, after, feeds)
        gaps = _gaps(before, expected, found, where, scales, tolerances, again)
        for value, gap in zip(before.outputs, gaps, strict=True):
            largest_abs = max(largest_abs, gap)
            largest_rel = max(largest_rel, gap / scales[value.name] if gap else 0.0)
        count += 1
    if not count:
        raise LabError(f"the first graph could not run on any input drawn: {reason}")
    return Equivalence(largest_abs, largest_rel, count, judge)


# Operators that compute at the scale of 1 whatever they return: a sigmoid of 1e-7 is 1 − (1 − 1e-7), rounded.
_UNIT_SCALE = {"Sigmoid", "Softmax", "Tanh", "HardSigmoid", "Erf"}
_HANDED_ON = {"Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Cast"}


def _own_scale(graph: Graph, value: Value) -> float:
    """The scale that an output's rounding has at least: 1 for what comes out of a sigmoid or its kin, else none."""
    node = graph.producers.get(value.name)
    while node is not None and node.op in _HANDED_ON and node.inputs[0] is not None:
        node = graph.producers.get(node.inputs[0].name)
    return 1.0 if node is not None and node.op in _UNIT_SCALE else 0.0


def _gaps(
    graph: Graph,
    expected: list[Any],
    found: list[Any],
    where: str,
    scales: dict[str, float],
    tolerances: Mapping[str, float],
    again: Callable[[int, Any, Any], tuple[Any, Any]],
) -> list[float]:
    """The largest difference of each output; NotEquivalent when one is too large. ``scales`` grow with what is seen;
    ``again`` says what to compare instead where an output differs."""
    gaps = []
    for index, (value, old, new) in enumerate(zip(graph.outputs, expected, found, strict=True)):
        scale = scales[value.name] = max(scales[value.name], _largest(old))
        compare = partial(_compare, f"output {value.name!r} {where}", scale=scale, tolerance=tolerances.get(value.name))
        try:
            gaps.append(compare(old, new))
        except NotEquivalent:
            gaps.append(compare(*again(index, old, new)))
    return gaps


def _second_look(
    judge: str, before: Graph, after: Graph, feeds: dict[str, Array], index: int, old: Any, new: Any
) -> tuple[Any, Any]:
    """What to compare in place of an output that differs: labkit's readings, where labkit and onnxruntime differ over
    one of the graphs; nothing, where the inputs leave the output open; else the same again."""
    name = before.outputs[index].name
    if np.shape(old) == np.shape(new) and name in left_open(before, feeds):
        return old, old
    if judge == "labkit":
        return old, new
    mine = tuple(_own_reading(graph, feeds, index) for graph in (before, after))
    if any(array is None for array in mine):
        return old, new
    disputed = _disputed(before, old, mine[0]) or _disputed(after, new, mine[1])
    return (mine[0], mine[1]) if disputed else (old, new)


def _own_reading(graph: Graph, feeds: dict[str, Array], index: int) -> Any:
    """labkit's value of one output; None where labkit cannot run what it needs."""
    try:
        return next(iter(run(replace(graph, outputs=graph.outputs[index : index + 1]), feeds).values()))
    except LabError:
        return None


def _tolerances(graph: Graph) -> dict[str, float]:
    """The relative tolerance of each float value: that of the coarsest type on the way to it. (Digits that float32
    lost do not come back when the result is written as float64.)"""
    found: dict[str, float] = {}
    for node in graph.nodes:
        coarsest = max((found.get(value.name, 0.0) for value in node.uses), default=0.0)
        for value in node.results:
            own = _TOLERANCE.get(value.dtype or "", 0.0)
            found[value.name] = max(own, coarsest if value.dtype in _TOLERANCE else 0.0)
    return {name: tolerance for name, tolerance in found.items() if tolerance}


def _second(runner: Runner, feeds: dict[str, Array], where: str) -> list[Any]:
    try:
        return runner(feeds)
    except Exception as error:
        raise NotEquivalent(f"the second graph cannot run {where}: {' '.join(str(error).split())}") from None


def _same_interface(before: Graph, after: Graph) -> None:
    for what in ("inputs", "outputs"):
        one, two = ([value.name for value in getattr(graph, what)] for graph in (before, after))
        if one != two:
            raise NotEquivalent(f"the {what} are {', '.join(one)} in one graph and {', '.join(two)} in the other")


def _judge(before: Graph, after: Graph) -> tuple[str, Runner, Runner]:
    """onnxruntime for both graphs, or labkit for both: two judges would differ by more than the graphs."""
    first, second = _session(before), _session(after)
    if first is None or second is None:
        return "labkit", _own(before), _own(after)
    return "onnxruntime", first, second


def _own(graph: Graph) -> Runner:
    return lambda feeds: list(run(graph, feeds).values())


def _session(graph: Graph) -> Runner | None:
    """onnxruntime with its own optimisations off; None where it is missing or has no kernel for something."""
    try:
        import onnxruntime
    except ImportError:
        return None
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        model = to_model(graph).SerializeToString()
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception:  # whatever its C++ side raises
        return None
    names = [value.name for value in graph.outputs]
    return lambda feeds: list(session.run(names, feeds))


def _disputed(graph: Graph, result: Any, mine: Any) -> bool:
    """Whether labkit puts NaN or infinities in other places than the judge's ``result`` has them, or makes other
    integers, or the graph computes in half precision: between two nodes without a half kernel, onnxruntime leaves the
    rounding to half out."""
    if any(value.dtype == "float16" for node in graph.nodes for value in node.results):
        return True
    first, second = np.asarray(result), np.asarray(mine)
    if first.shape != second.shape:
        return False
    if first.dtype.kind != "f":  # where the greatest of NaN stands, say
        return not np.array_equal(first, second)
    odd = ~np.isfinite(first) | ~np.isfinite(second)
    return not np.array_equal(first[odd], second[odd], equal_nan=True)


def _largest(values: Any) -> float:
    """The largest finite magnitude, 0 where there is none."""
    array = np.asarray(values)
    if array.dtype.name not in _TOLERANCE:
        return 0.0
    finite = np.abs(array[np.isfinite(array)].astype(np.float64))
    return float(finite.max()) if finite.size else 0.0


def _compare(where: str, expected: Any, found: Any, scale: float, tolerance: float | None) -> float:
    """The largest absolute difference; NotEquivalent beyond the tolerance.

    A value may differ by the tolerance relative to itself, and by a tenth of it relative to ``scale``, the largest
    value this output ever had: where terms of that size cancel, their rounding stays.
    """
    one, two = np.asarray(expected), np.asarray(found)
    if one.shape != two.shape or one.dtype != two.dtype:
        raise NotEquivalent(f"{where}: {one.dtype} {one.shape} became {two.dtype} {two.shape}")
    if one.dtype.name not in _TOLERANCE:
        if not np.array_equal(one, two):
            raise NotEquivalent(f"{where}: the values differ; {one.dtype} must be equal to the bit")
        return 0.0
    tolerance = tolerance or _TOLERANCE[one.dtype.name]
    one, two = one.astype(np.float64), two.astype(np.float64)
    finite = np.isfinite(one)
    if not np.array_equal(one[~finite], two[~finite], equal_nan=True) or not np.isfinite(two[finite]).all():
        raise NotEquivalent(f"{where}: NaN or infinity stands in other places")
    one, two = one[finite], two[finite]
    gap = np.abs(one - two)
    if not gap.size:
        return 0.0
    worst = int(np.argmax(gap - tolerance * np.abs(one)))
    if gap[worst] > tolerance * abs(one[worst]) + 0.1 * tolerance * scale:
        values = f"{one[worst]:.9g} became {two[worst]:.9g}"
        raise NotEquivalent(f"{where}: {values}; the tolerance is {tolerance:g} relative")
    return float(gap.max())
