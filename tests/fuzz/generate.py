"""Random valid graphs from a seed: every operator that the passes know, in every spelling that the opsets have."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from labkit.graph import Graph, TensorType, Value
from labkit.tensor_protos import elem_type
from tests.fuzz.computers import COMPUTERS, unary
from tests.fuzz.draft import Draft, Unsuitable
from tests.fuzz.movers import MOVERS, axes_of, static
from tests.fuzz.parts import gather, quantised, rows, sliced

OPSETS = (9, 10, 11, 12, 13, 13, 14, 15, 16, 17, 17, 18, 18, 19, 20, 21, 22, 23, 24)


def shape_chain(d: Draft) -> None:
    """A shape computed at run time, and a Reshape or an Expand to it, as exporters leave them."""
    x = d.tensor(1, 4, dtypes=("float32", "float64"))
    rank = len(x.shape or ())
    attrs = {"start": d.number(0, rank - 1)} if d.opset >= 15 and d.chance(0.3) else {}
    shape = d.add("Shape", [x], attrs)[0]
    first = attrs.get("start", 0)
    if d.chance(0.15):
        d.add("Size", [x])
    if d.chance(0.2):
        d.add("Expand", [x, shape])
        return
    if d.chance(0.5):
        part = d.add("Gather", [shape, d.constant(np.array(0, np.int64))], {"axis": 0} if d.chance(0.5) else {})[0]
        axes_of(d, "Unsqueeze", part, (0,), 13, {})
    elif d.opset >= 10:
        d.add("Slice", [shape, d.ints(0), d.ints(1), *([d.ints(0)] if d.chance(0.5) else [])])
    else:
        d.add("Slice", [shape], {"starts": (0,), "ends": (1,)})
    one = d.values[-1]
    if d.chance(0.4):
        one = d.add(d.choose(["Mul", "Add", "Div", "Sub"]), [one, d.ints(d.choose([1, 1, 0, 2]))])[0]
    target = d.add("Concat", [one, d.ints(-1)], {"axis": 0})[0]
    if first == 0 or d.chance(0.2):
        d.add("Reshape", [x, target])


def filled(d: Draft) -> None:
    """A ConstantOfShape, small or beyond every limit, beside a tensor it spreads over."""
    x = d.tensor(0, 4, dtypes=("float32",))
    shape = [dim if isinstance(dim, int) else 1 for dim in x.shape or ()]
    attrs = {"value": np.array([d.choose([0.0, 1.0, 2.0])], np.float32)} if d.chance(0.7) else {}
    wide = d.add("Shape", [x])[0] if shape and d.chance(0.3) else d.ints(*shape)
    fill = d.add("ConstantOfShape", [wide], attrs)[0]
    if d.chance(0.4):
        fill = d.add(d.choose(["Neg", "Exp", "Abs"]), [fill])[0]
    d.add(d.choose(["Add", "Mul"]), [x, fill] if d.chance(0.5) else [fill, x])


def branch(d: Draft, x: Value, name: str) -> Graph:
    """The branch of an If: a few operators on what it captures, with a result of x's type."""
    inner = Draft(d.rng, d.opset, values=list(d.values), prefix=f"{name}_", inexact=d.inexact,
                  unsigned=d.unsigned, random=d.random)  # fmt: skip
    inner.values = [value for value in inner.values if value.name not in d.random]
    len(inner.values)
    result = x
    for _ in range(d.number(1, 3)):
        try:
            if d.chance(0.5):
                inner.add(d.choose(["Neg", "Abs", "Sigmoid", "Identity"]), [result])
            elif d.chance(0.5):
                inner.add("Mul", [result, inner.floats(())])
            else:
                alike = [v for v in inner.values if v.type == x.type]
                inner.add("Add", [result, d.choose(alike)])
        except Unsuitable:
            continue
        if inner.values[-1].type == x.type:
            result = inner.values[-1]
    if result == x:
        result = inner.add("Identity", [x])[0]
    outside = {value.name: value for value in d.values}
    read = dict.fromkeys(v.name for node in inner.nodes for v in node.uses)
    outer = [name for name in read if name in outside]
    shared = {n: d.constants[n] for n in read if n in d.constants and n not in inner.constants}
    captures = tuple(outside[n] for n in outer) + tuple(
        Value(n, TensorType.of(a)) for n, a in shared.items() if n not in outside
    )
    return Graph(name, (), (result,), tuple(inner.nodes), inner.constants, {"": d.opset}, captures)


def conditional(d: Draft) -> None:
    """An If, decided beforehand or at run time."""
    x = d.tensor(0, 4, dtypes=("float32",))
    if x.name in d.constants or x.name in d.random:
        raise Unsuitable
    kind = d.number(0, 2)
    if kind == 0:
        condition = d.constant(np.array(d.chance(0.5)))
    elif kind == 1:
        condition = d.input(TensorType((), "bool"))
    else:
        known = d.add("Greater", [d.constant(np.float32(d.number(0, 2))), d.constant(np.float32(1))])[0]
        condition = known
    name = d.name("if")
    branches = {f"{which}_branch": branch(d, x, f"{name}_{which}") for which in ("then", "else")}
    assert x.type is not None
    d.add("If", [condition], branches, types=[x.type])


def training(d: Draft) -> None:
    """A BatchNormalization in training mode: deterministic, but no affine map."""
    x = d.tensor(3, 4, dtypes=("float32",))
    shape = static(x)
    if d.opset < 14 or 0 in shape or shape[1] == 0:
        raise Unsuitable
    parameters = [d.floats((shape[1],)) for _ in range(2)]
    statistics = [d.unshared(d.rng.uniform(0.5, 1.5, shape[1]).astype(np.float32)) for _ in range(2)]
    results = d.add("BatchNormalization", [x, *parameters, *statistics], {"training_mode": 1}, 3)
    # onnxruntime 1.32 writes the running statistics over its own inputs: they differ from run to run, and so does
    # whatever else reads those inputs.
    d.random |= {value.name for value in results[1:]}


def twin(d: Draft) -> None:
    """A node that is there already, once more."""
    node = d.choose([n for n in d.nodes if not n.bodies and "training_mode" not in n.attrs])
    if any(v is not None and v.name not in d.inexact and v.dtype == "bool" for v in node.outputs[1:]):
        raise Unsuitable
    inputs = node.inputs[::-1] if node.op in ("Add", "Mul") and d.chance(0.5) else node.inputs
    left_out = tuple(i for i, value in enumerate(node.outputs) if value is None)
    d.add(node.op, inputs, dict(node.attrs), len(node.outputs), unnamed=left_out)


OTHERS: dict[str, tuple[Callable[[Draft], None], float]] = {
    "shape_chain": (shape_chain, 4), "filled": (filled, 2), "conditional": (conditional, 2.5),
    "training": (training, 2), "twin": (twin, 2.5), "sliced": (sliced, 1.5), "gather": (gather, 1.5),
    "rows": (rows, 1.5), "quantised": (quantised, 0.7),
}  # fmt: skip
MAKERS = {**MOVERS, **COMPUTERS, **OTHERS}
# What makes work for a rule when it stands right behind.
BEHIND = {
    "conv": ("normalise", "binary", "binary", "clip", "unary", "transpose", "reshape"),
    "normalise": ("conv", "binary", "normalise"),
    "binary": ("binary", "conv", "normalise", "product", "transpose"), "pad": ("conv", "pool", "pool"),
    "product": ("binary", "binary", "normalise"),
    "transpose": ("transpose", "unary", "binary", "concat", "product", "normalise"),
    "reshape": ("reshape", "squeeze", "flatten", "normalise"), "unsqueeze": ("squeeze", "reshape", "unsqueeze"),
    "squeeze": ("unsqueeze", "normalise"),
    "cast": ("cast", "cast"), "slice": ("slice", "slice"), "clip": ("clip", "unary"),
    "unary": ("unary", "clip"), "concat": ("concat", "transpose"), "expand": ("binary",), "split": ("concat",),
    "gather": ("gather",), "tile": ("tile",), "reduce": ("reduce",), "rows": ("binary", "reshape"),
}  # fmt: skip


def generate(seed: int) -> Graph:
    """The graph of this seed: valid, of 3 to 20 nodes."""
    rng = np.random.default_rng(seed)
    d = Draft(rng, int(rng.choice(OPSETS)))
    _inputs(d)
    names = list(MAKERS)
    weights = np.array([weight for _, weight in MAKERS.values()])
    wanted = d.number(3, 12)
    last = ""
    for _ in range(6 * wanted):
        if len(d.nodes) >= wanted:
            break
        nearby = d.chance(0.55) and last in BEHIND
        name = d.choose(BEHIND[last]) if nearby else names[int(rng.choice(len(names), p=weights / weights.sum()))]
        made = len(d.nodes)
        with contextlib.suppress(Unsuitable):
            MAKERS[name][0](d)
        last = name if len(d.nodes) > made else last
    if not d.nodes:
        unary(d)
    return _finished(d, seed)


def _inputs(d: Draft) -> None:
    """One to three inputs: images, sequences, matrices, vectors, scalars; some of them empty, some of open size."""
    shape: list[int] = d.choose([
        [1, 4, 5, 5], [2, 4, 4, 4], [1, 3, 6, 5], [2, 4, 6], [1, 4, 9], [3, 4], [4, 4], [2, 3, 4], [5], [1, 2, 3, 4, 4],
        [1, 1, 4], [3, 1], [],
    ])  # fmt: skip
    if shape and d.chance(0.06):
        shape[d.number(0, len(shape) - 1)] = 0
    dims: list[int | str] = list(shape)
    if dims and d.chance(0.3):
        dims[0] = "n"
        if len(dims) > 2 and d.chance(0.2):
            dims[-1] = "m"
    for _ in range(d.choose([1, 1, 2])):
        d.input(TensorType(tuple(dims), "float32"))
    if d.chance(0.2):
        d.input(TensorType(tuple(dims), d.choose(["int64", "bool", "float64", "float16", "int32"])))


def _finished(d: Draft, seed: int) -> Graph:
    """The graph whose outputs are values that nothing reads, others in the middle, and now and then an input, a
    constant or an Identity of one."""
    read = {value.name for node in d.nodes for value in node.uses}
    made = [v for node in d.nodes for v in node.results if v.name not in d.random and _certain(d, v)]
    ends = [value for value in made if value.name not in read]
    outputs = [value for value in ends if d.chance(0.8)] or made[-1:]
    outputs += [value for value in made if value.name in read and d.chance(0.06)]
    if d.chance(0.05):
        outputs.append(d.inputs[0])
    if d.constants and d.chance(0.05):
        outputs += [value for value, _ in d.fixed()[:1]]
    if not outputs:
        outputs = [d.inputs[0]]
    extra = [value for value in outputs if d.chance(0.08) and value.name not in d.random]
    for value in extra:
        named = d.add("Identity", [value])[0]
        outputs[outputs.index(value)] = named
        outputs += [value] if d.chance(0.4) else []
    outputs = list(dict.fromkeys(outputs))
    return Graph(f"seed{seed}", tuple(d.inputs), tuple(outputs), tuple(d.nodes), d.constants, {"": d.opset})


def _certain(d: Draft, value: Value) -> bool:
    """Whether onnxruntime and ONNX agree on it: of the mask of a Dropout before opset 12 they do not."""
    node = next(node for node in d.nodes if value in node.results)
    return node.op != "Dropout" or d.opset >= 12 or value == node.outputs[0]


def bound(graph: Graph, size: int) -> Graph:
    """The graph with every open dim of its inputs set to one size."""

    def fixed(value: Value) -> Value:
        if value.type is None or value.type.shape is None:
            return value
        dims = tuple(size if isinstance(dim, str) else dim for dim in value.type.shape)
        return Value(value.name, TensorType(dims, value.type.dtype))

    return replace(graph, inputs=tuple(map(fixed, graph.inputs)))


__all__ = ["MAKERS", "OPSETS", "bound", "elem_type", "generate"]
