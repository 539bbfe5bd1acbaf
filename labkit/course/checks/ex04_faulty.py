"""Part 4.7: one right folding pass with sixteen switches, each of which makes it wrong in one way; and the hunt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.plain import kind
from labkit.course.checks.rewrites import Trial, in_words
from labkit.errors import LabError
from labkit.graph import Array, Graph, Node, TensorType, Value
from labkit.interpreter import evaluate
from labkit.passes.fold import RANDOM

_MOST_GRAPHS, _MOST_NODES, _ENOUGH = 20, 12, 14

# A fault, and the question that leads to it.
FAULTS = {
    "second reader": "what if another node reads what the Conv gives?",
    "graph output": "what if the caller reads what the Conv gives?",
    "captured reader": "what if a branch of an If reads what the Conv gives?",
    "training mode": "which statistics does a BatchNormalization use?",
    "overridable weight": "what if the caller may feed the weight of the Conv?",
    "overridable statistic": "what if the caller may feed γ or a statistic?",
    "shared weight": "where do the new weights go, and who else reads that?",
    "bias lost": "what becomes of a bias that the Conv has already?",
    "bias unscaled": "what becomes of a bias that the Conv has already?",
    "epsilon ignored": "which ε does this BatchNormalization have?",
    "epsilon outside": "where does ε stand, in the root or behind it?",
    "variance": "is it the variance that one divides by?",
    "gamma and beta": "which is the first parameter of a BatchNormalization?",
    "padding": "what if the Conv behind a BatchNormalization has a border?",
    "per channel": "along which axis does the constant of a Mul vary?",
    "default folded": "what if a node reads the default of an input?",
}


@dataclass(frozen=True)
class Folding:
    """Folds what can be folded; with a ``fault`` more than that, or other values."""

    fault: str = ""

    def __call__(self, graph: Graph) -> Graph:
        graph = self._constants(graph)
        while (folded := self._behind(graph) or self._before(graph)) is not None:
            graph = folded
        return graph

    def _constants(self, graph: Graph) -> Graph:
        constants, nodes = dict(graph.constants), []
        known = set(constants) - (set() if self.fault == "default folded" else graph.input_names)
        for node in graph.nodes:
            if not node.uses or node.bodies or node.op in RANDOM or any(v.name not in known for v in node.uses):
                nodes.append(node)
                continue
            for value, array in zip(node.outputs, evaluate(node, constants, graph.opsets), strict=False):
                if value is not None:
                    constants[value.name] = np.array(array)
                    known.add(value.name)
        return replace(graph, nodes=tuple(nodes), constants=constants)

    def _behind(self, graph: Graph) -> Graph | None:
        """A Conv, then a BatchNormalization or a Mul by one value a channel."""
        for node in graph.nodes:
            first = node.inputs[0] if node.inputs else None
            conv = graph.producers.get(first.name) if first else None
            if conv is None or conv.op != "Conv" or not self._alone(graph, conv):
                continue
            line, parameters = self._line(graph, node), self._parameters(graph, conv)
            if line is None or parameters is None or line[0].size != parameters[0].shape[0]:
                continue
            (scale, shift), (weight, bias) = line, parameters
            own = 0 if self.fault == "bias lost" else bias if self.fault == "bias unscaled" else bias * scale
            along = (-1, *(1,) * (weight.ndim - 1))
            return self._joined(graph, conv, node, conv, weight * scale.reshape(along), own + shift)
        return None

    def _before(self, graph: Graph) -> Graph | None:
        """A BatchNormalization, then a Conv."""
        for conv in graph.nodes:
            first = conv.inputs[0] if conv.inputs else None
            norm = graph.producers.get(first.name) if first else None
            if conv.op != "Conv" or norm is None or norm.op != "BatchNormalization" or not self._alone(graph, norm):
                continue
            line, parameters = self._line(graph, norm), self._parameters(graph, conv)
            if line is None or parameters is None or conv.attrs.get("group", 1) != 1:
                continue
            (scale, shift), (weight, bias) = line, parameters
            bordered = any(conv.attrs.get("pads", ())) or conv.attrs.get("auto_pad", "NOTSET") != "NOTSET"
            if bordered and shift.any() and self.fault != "padding":
                continue
            along = (1, -1, *(1,) * (weight.ndim - 2))
            added = (weight * shift.reshape(along)).sum(axis=tuple(range(1, weight.ndim)))
            reads = replace(conv, inputs=(norm.inputs[0], *conv.inputs[1:]))
            return self._joined(graph, norm, conv, reads, weight * scale.reshape(along), bias + added)
        return None

    def _alone(self, graph: Graph, node: Node) -> bool:
        """Whether one single node reads what ``node`` gives."""
        name = node.output.name
        ways = [n.inputs if self.fault == "captured reader" else n.uses for n in graph.nodes]
        reads = sum(value is not None and value.name == name for way in ways for value in way)
        if name in graph.output_names and self.fault != "graph output":
            return False
        return len(node.results) == 1 and (reads == 1 or self.fault == "second reader")

    def _array(self, graph: Graph, value: Value | None, override: str) -> Array | None:
        if value is not None and self.fault == override:
            return graph.constants.get(value.name)
        return graph.constant(value)

    def _parameters(self, graph: Graph, conv: Node) -> tuple[Array, Any] | None:
        weight, *rest = (self._array(graph, value, "overridable weight") for value in conv.inputs[1:])
        if weight is None or (len(conv.inputs) > 2 and conv.inputs[2] is not None and rest[0] is None):
            return None
        return weight.astype(np.float64), rest[0] if rest and rest[0] is not None else np.zeros(weight.shape[0])

    def _line(self, graph: Graph, node: Node) -> tuple[Array, Array] | None:
        """Scale and shift of a node, one of each a channel."""
        if node.op == "Mul":
            return self._scale_alone(graph, node)
        if node.op != "BatchNormalization" or len(node.results) > 1:
            return None
        if node.attrs.get("training_mode", 0) and self.fault != "training mode":
            return None
        arrays = [self._array(graph, value, "overridable statistic") for value in node.inputs[1:]]
        known = [array.astype(np.float64) for array in arrays if array is not None]
        if len(known) < 4:
            return None
        gamma, beta, mean, var = known
        if self.fault == "gamma and beta":
            gamma, beta = beta, gamma
        epsilon = 1e-5 if self.fault == "epsilon ignored" else node.attrs.get("epsilon", 1e-5)
        divisor = np.sqrt(var + epsilon)
        if self.fault == "epsilon outside":
            divisor = np.sqrt(var) + epsilon
        if self.fault == "variance":
            divisor = var + epsilon
        return gamma / divisor, beta - mean * gamma / divisor

    def _scale_alone(self, graph: Graph, node: Node) -> tuple[Array, Array] | None:
        first, factor = node.inputs[0], graph.constant(node.inputs[1])
        if first is None or factor is None or first.shape is None or node.output.shape != first.shape:
            return None
        channels = first.shape[1]
        spread = factor.shape[-len(first.shape) + 1 :] == (channels, *(1,) * (len(first.shape) - 2))
        if factor.size != channels or not (spread or self.fault == "per channel"):
            return None
        return factor.ravel().astype(np.float64), np.zeros(factor.size)

    def _joined(self, graph: Graph, first: Node, last: Node, conv: Node, weight: Array, bias: Array) -> Graph:
        """One Conv in the place of ``first``; whoever read what ``first`` gave reads what ``last`` gives."""
        old = conv.inputs[1]
        assert old is not None
        taken = {*graph.constants, *graph.producers, *graph.input_names}
        names = [_free(f"{last.output.name}_{part}", taken) for part in ("weight", "bias")]
        if self.fault == "shared weight":
            names[0] = old.name
        dtype = graph.constants[old.name].dtype
        new = {name: np.asarray(array, dtype) for name, array in zip(names, (weight, bias), strict=True)}
        inputs = (conv.inputs[0], *(Value(name, TensorType.of(array)) for name, array in new.items()))
        joined = Node("Conv", inputs, last.outputs[:1], conv.attrs)
        renamed = {first.output.name: last.output}
        nodes = [joined if node is first else node.rename(renamed) for node in graph.nodes if node is not last]
        if first.output.name in graph.output_names:
            nodes.append(Node("Identity", (last.output,), (first.output,)))
        return replace(graph, nodes=tuple(nodes), constants={**graph.constants, **new})


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def check_traps(traps: Function, draw: Random) -> None:
    """4.7: fourteen of sixteen faulty passes die; the right one lives."""
    size = draw.randrange(4, 7)
    channels = draw.choice([n for n in (2, 3, 4) if n != size])
    x = Value(draw.choice(("x", "image", "picture")), TensorType((1, channels, size, size + 1), "float32"))
    told = f"traps({x})"
    trials = [_trial(graph, x, f"graph {number} of {told}") for number, graph in enumerate(_graphs(traps(x), told))]
    alive = [fault for fault in FAULTS if not any(_kills(trial, Folding(fault)) for trial in trials)]
    if len(FAULTS) - len(alive) < _ENOUGH:
        raise CheckFailed(
            f"{told} kills {len(FAULTS) - len(alive)} of {len(FAULTS)} passes, {_ENOUGH} are enough. "
            f"One that lives: {FAULTS[draw.choice(alive)]}"
        )


def _graphs(value: object, told: str) -> list[Any]:
    if value is None:
        raise CheckFailed(f"{told} gave nothing back: does the function end with return?")
    if type(value) not in (list, tuple):
        raise CheckFailed(f"{told} gave {kind(value)}; expected a list of graphs.")
    assert isinstance(value, list | tuple)
    if len(value) > _MOST_GRAPHS:
        raise CheckFailed(f"{told} gave {len(value)} graphs; {_MOST_GRAPHS} are allowed.")
    return list(value)


def _trial(graph: object, x: Value, told: str) -> Trial:
    """A graph that follows the rules, with its results."""
    if type(graph) is not Graph:
        raise CheckFailed(f"{told} is {kind(graph)}; expected a Graph.")
    if not graph.inputs or graph.inputs[0] != x:
        first = graph.inputs[0] if graph.inputs else "none"
        raise CheckFailed(f"{told} has the first input {first}; it has to be the x that the function is given.")
    if len(graph.nodes) > _MOST_NODES:
        raise CheckFailed(f"{told} has {len(graph.nodes)} nodes; {_MOST_NODES} are allowed.")
    words = f"The graph: {in_words(graph)}"
    try:
        trial = Trial(graph)
        finding = trial.difference(replace(graph)) or trial.difference(Folding()(graph))
    except (LabError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise CheckFailed(f"{told} cannot run: {' '.join(str(error).split())}. {words}") from None
    if finding:
        raise CheckFailed(f"{told}: a right pass {finding}; does it give the same in every run? {words}")
    return trial


def _kills(trial: Trial, faulty: Folding) -> bool:
    try:
        return bool(trial.difference(faulty(trial.graph)))
    except (LabError, ArithmeticError, LookupError, TypeError, ValueError):
        return True
