# %% [markdown]
# # Exercise 04 · Folding
#
# Seven functions, twenty points: what can be computed once and for all, and what only looks so. A pass is a function
# from a graph to a graph. Graphs never change; a pass makes a new one, or gives back **the very same object** when it
# has nothing to do.
#
# - Write your code where it says so, and keep the name and the arguments of each function.
# - Below each function is a check. Run it as often as you like: it says "right", or what to look at.
# - A check calls your function with graphs and numbers of its own, and grading uses more. Time plays no part.
# - The passes have to be yours: labkit's own passes do not count.
#
# | of a graph | is |
# |---|---|
# | `graph.inputs`, `graph.outputs` | tuples of values: `value.name`, `value.type`, `value.shape`, `value.dtype` |
# | `graph.nodes` | a tuple of nodes, in an order in which they can run |
# | `graph.constants` | name → array, defaults of inputs among them |
# | `graph.constant(value)` | the array that a value **always** is, or None: an input's default is none |
# | `graph.input_names`, `graph.output_names` | sets of names |
# | `graph.readers[name]` | how often it is read: by nodes, inside branches, and by the caller when it is an output |
# | `node.op`, `node.attrs` | operator, and attributes by name |
# | `node.inputs`, `node.outputs` | tuples of values; None where an optional one is left out |
# | `node.uses` | **all** that it reads: its inputs, and what the branches of an If read from around it |
# | `replace(graph, nodes=…, constants=…)` | a new graph, otherwise the same; `replace(node, inputs=…)` likewise |

# %% nbgrader={"grade_id": "ex04-setup", "locked": true}
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from labkit import Graph, LabError, Node, TensorType, Value, run, verify
from labkit.build import make_node
from labkit.course import sheet
from labkit.interpreter import evaluate
from labkit.text import to_text

ex04 = sheet("ex04", seed=0)
check = ex04.check

# %% [markdown]
# With `Net` you build small graphs to try things on:


# %% nbgrader={"grade_id": "ex04-tools", "locked": true}
class Net:
    """A graph in the making. Each method but ``graph`` gives a value that later nodes can read."""

    def __init__(self, *inputs: Value) -> None:
        self.inputs, self.nodes, self.constants = list(inputs), [], {}

    def constant(self, name: str, array: object) -> Value:
        self.constants[name] = np.array(array, np.float32)
        return Value(name, TensorType.of(self.constants[name]))

    def default(self, name: str, array: object) -> Value:
        """An input that a caller may leave out: then it is ``array``."""
        self.inputs.append(self.constant(name, array))
        return self.inputs[-1]

    def node(self, op: str, *reads: Value, out: str = "", **attrs: object) -> Value:
        out = out or f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(make_node(op, reads, [out], attrs, constants=self.constants, opset=17))
        return self.nodes[-1].output

    def branch(self, condition: Value, read: Value, out: str = "") -> Value:
        """An If whose branches read ``read`` from around them: its Relu when the condition holds, else its Sigmoid."""
        attrs = {}
        for name, op in (("then_branch", "Relu"), ("else_branch", "Sigmoid")):
            inner = Node(op, (read,), (Value(f"{op}_of_{read.name}", read.type),))
            attrs[name] = Graph(name, (), inner.outputs, (inner,), captures=(read,))
        self.nodes.append(Node("If", (condition,), (Value(out or f"if{len(self.nodes)}", read.type),), attrs))
        return self.nodes[-1].output

    def graph(self, *outputs: Value) -> Graph:
        return Graph("net", tuple(self.inputs), outputs, tuple(self.nodes), self.constants)


def small_net() -> Graph:
    """x · (a · b): one product is the same every time."""
    net = Net(Value("x", TensorType((2, 3), "float32")))
    factor = net.node("Mul", net.constant("a", [1, 2, 3]), net.constant("b", [2]), out="factor")
    return net.graph(net.node("Mul", net.inputs[0], factor, out="y"))


print(to_text(small_net()))
print(run(small_net(), {"x": np.ones((2, 3), np.float32)})["y"])

# %% [markdown]
# ## 4.1 · What is constant (2 points)
#
# A node is **constant** when all that it reads is: constants of the graph that no caller can change, or results of
# constant nodes. Not so a node that draws at random (`RANDOM`), or one that reads nothing at all. Write
# `constant_nodes(graph)`: the positions in `graph.nodes` of the constant ones, in ascending order.
#
# <details><summary>Hint 1</summary>
#
# One walk from the first node to the last is enough, with a set of the names that are known by then.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `all(...)` of nothing is True.
#
# </details>

# %% nbgrader={"grade_id": "ex04-1-specification", "locked": true}
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}


# %% nbgrader={"grade_id": "ex04-1", "solution": true}
def constant_nodes(graph: Graph) -> list[int]:
    """Positions of the nodes whose results are the same in every run.

    >>> constant_nodes(small_net())
    [0]
    """
    ### BEGIN SOLUTION
    known = set(graph.constants) - graph.input_names
    found = []
    for position, node in enumerate(graph.nodes):
        reads = [value.name for value in node.uses]
        if reads and node.op not in RANDOM and all(name in known for name in reads):
            known |= {value.name for value in node.results}
            found.append(position)
    return found
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex04-1-check", "grade": true, "points": 2}
check("4.1", constant_nodes)
### BEGIN HIDDEN TESTS
ex04.grade("4.1", constant_nodes)
### END HIDDEN TESTS

# %% [markdown]
# ## 4.2 · Fold them (3 points)
#
# Now the pass. Write `fold(graph)`: each constant node goes, and its result becomes a constant under the same name. So
# its readers need no change. `evaluate(node, constants, graph.opsets)` runs a single node: it takes the arrays by name
# and gives a tuple, one array for each output. With nothing to do, give back `graph`. What you make of a graph without
# random nodes must satisfy `is_folded` below.
#
# <details><summary>Hint</summary>
#
# The constants grow while you walk: keep them in a dict of your own, `dict(graph.constants)`. The dict inside the graph
# belongs to the graph.
#
# </details>


# %% nbgrader={"grade_id": "ex04-2-specification", "locked": true}
def is_folded(graph: Graph, after: Graph) -> bool:
    """The specification: after computes what graph does, and none of its nodes reads nothing but constants."""
    verify(graph, after)  # runs both on several inputs; NotEquivalent when they differ
    return all(not node.uses or any(after.constant(value) is None for value in node.uses) for node in after.nodes)


def folded_net() -> Graph:
    """What small_net() is to become."""
    net = Net(Value("x", TensorType((2, 3), "float32")))
    return net.graph(net.node("Mul", net.inputs[0], net.constant("factor", [2, 4, 6]), out="y"))


assert is_folded(small_net(), folded_net())
assert not is_folded(small_net(), small_net())


# %% nbgrader={"grade_id": "ex04-2", "solution": true}
def fold(graph: Graph) -> Graph:
    """The graph with its constant nodes computed.

    >>> lean = fold(small_net())
    >>> [node.op for node in lean.nodes], lean.constants["factor"].tolist(), fold(lean) is lean
    (['Mul'], [2.0, 4.0, 6.0], True)
    """
    ### BEGIN SOLUTION
    constants, nodes = dict(graph.constants), []
    known = set(constants) - graph.input_names
    for node in graph.nodes:
        reads = [value.name for value in node.uses]
        if not reads or node.op in RANDOM or not all(name in known for name in reads):
            nodes.append(node)
            continue
        results = evaluate(node, constants, graph.opsets)
        for value, array in zip(node.outputs, results, strict=True):
            if value is not None:
                constants[value.name] = np.array(array)
                known.add(value.name)
    return replace(graph, nodes=tuple(nodes), constants=constants) if len(nodes) < len(graph.nodes) else graph
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex04-2-check", "grade": true, "points": 3}
check("4.2", fold)
### BEGIN HIDDEN TESTS
ex04.grade("4.2", fold)
### END HIDDEN TESTS

# %% [markdown]
# ## 4.3 · BatchNormalization is a line (2 points)
#
# At inference a BatchNormalization computes, in each channel, γ · (x − μ) / √(σ² + ε) + β, and γ, β, μ, σ² and ε are
# fixed. So it is scale · x + shift. Write `scale_and_shift(gamma, beta, mean, var, epsilon)`: the two arrays, scale
# first. The four arrays have one value for each channel; `var` is σ².
#
# <details><summary>Hint</summary>
#
# Multiply out: what stands in front of x, and what is left when x is 0?
#
# </details>


# %% nbgrader={"grade_id": "ex04-3-specification", "locked": true}
def normalised(x: float, gamma: float, beta: float, mean: float, var: float, epsilon: float) -> float:
    """The specification, for one element."""
    return gamma * (x - mean) / (var + epsilon) ** 0.5 + beta


# %% nbgrader={"grade_id": "ex04-3", "solution": true}
def scale_and_shift(
    gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, var: np.ndarray, epsilon: float
) -> tuple[np.ndarray, np.ndarray]:
    """Scale and shift of each channel.

    >>> one = np.ones(1)
    >>> scale, shift = scale_and_shift(6 * one, 5 * one, 2 * one, 8 * one, 1.0)
    >>> scale.tolist(), shift.tolist()
    ([2.0], [1.0])
    """
    ### BEGIN SOLUTION
    scale = gamma / np.sqrt(var + epsilon)
    shift = beta - mean * scale
    return scale, shift
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex04-3-check", "grade": true, "points": 2}
check("4.3", scale_and_shift)
### BEGIN HIDDEN TESTS
ex04.grade("4.3", scale_and_shift)
### END HIDDEN TESTS

# %% [markdown]
# ## 4.4 · Into the weights (2 points)
#
# A Conv with weights W of (filters, channels, R, S) and a bias of (filters,) gives one channel for each filter. Write
# `fold_weights(weight, bias, scale, shift)`: the weight and bias of a Conv that computes scale · Conv(x) + shift. The
# Conv may have no bias, then `bias` is None; the folded one always has one. Leave the arrays that you are given as
# they are: others may use them. `same_filters` says for one place of an image whether the new two are right.
#
# <details><summary>Hint</summary>
#
# scale · (W ∗ x + b) + shift = (scale · W) ∗ x + … And which axis of W counts the filters?
# `scale.reshape(-1, 1, 1, 1)` lies along the first one.
#
# </details>

# %% nbgrader={"grade_id": "ex04-4-specification", "locked": true}
Filters = tuple[np.ndarray, np.ndarray]  # weight and bias


def conv_at(seen: np.ndarray, filters: Filters) -> np.ndarray:
    """A Conv at one place of an image, one number a filter; its taps see (channels, rows, columns) there."""
    return np.array([(seen * taps).sum() + bias for taps, bias in zip(*filters, strict=True)])


def same_filters(seen: np.ndarray, old: Filters, scale: np.ndarray, shift: np.ndarray, new: Filters) -> bool:
    """The specification: the new Conv gives scale · (what the old one gives) + shift."""
    return np.allclose(conv_at(seen, new), scale * conv_at(seen, old) + shift)


old = np.ones((2, 1, 1, 1)), np.array([1, 2])
new = np.array([3, 4]).reshape(2, 1, 1, 1), np.array([3, 9])
assert same_filters(np.array([[[5]]]), old, np.array([3, 4]), np.array([0, 1]), new)
assert not same_filters(np.array([[[5]]]), old, np.array([3, 4]), np.array([0, 1]), old)


# %% nbgrader={"grade_id": "ex04-4", "solution": true}
def fold_weights(
    weight: np.ndarray, bias: np.ndarray | None, scale: np.ndarray, shift: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weight and bias that do the scale and the shift as well.

    >>> scale, shift = np.array([3.0, 4.0]), np.array([0.0, 1.0])
    >>> weight, bias = fold_weights(np.ones((2, 1, 1, 1)), np.array([1.0, 2.0]), scale, shift)
    >>> weight.ravel().tolist(), bias.tolist()
    ([3.0, 4.0], [3.0, 9.0])
    """
    ### BEGIN SOLUTION
    folded = weight * scale.reshape(-1, 1, 1, 1)
    if bias is None:
        return folded, shift
    return folded, bias * scale + shift
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex04-4-check", "grade": true, "points": 2}
check("4.4", fold_weights)
### BEGIN HIDDEN TESTS
ex04.grade("4.4", fold_weights)
### END HIDDEN TESTS

# %% [markdown]
# ## 4.5 · Conv and BatchNormalization (4 points)
#
# Now the pass. `BatchNormalization(y, γ, β, μ, σ²)` whose y is the first output of a Conv becomes one Conv, with new
# weights and a bias, and its result keeps the name of the BatchNormalization's. Write `fold_batch_norms(graph)`: every
# such pair is folded where that changes nothing for anybody, and only there. Draw a graph in which you know how many
# pairs that are, and ask `pairs_are_folded`. Ask yourself, before you fold:
#
# - Who else wants what the Conv gives: a node, a branch, the caller?
# - Is every parameter of the two constant, in every call?
# - Who else reads the weights?
# - Does this BatchNormalization use the stored statistics (`training_mode`), and which ε? Without the attribute
#   `epsilon` it is 1e-5.
#
# <details><summary>Hint 1</summary>
#
# Keep a dict from names to the nodes that make them, as they are now. A folded Conv stands where the
# BatchNormalization stood; the old one leaves the list.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# New constants need names that nothing bears yet. The name of the BatchNormalization's result with a suffix is near at
# hand; look whether it is free.
#
# </details>


# %% nbgrader={"grade_id": "ex04-5-specification", "locked": true}
def pairs_are_folded(graph: Graph, after: Graph, pairs: int) -> bool:
    """The specification: after computes what graph does, and so many pairs have become one Conv each."""
    verify(graph, after)
    norms = [sum(node.op == "BatchNormalization" for node in one.nodes) for one in (graph, after)]
    return norms[0] - norms[1] == len(graph.nodes) - len(after.nodes) == pairs


def line_net(folded: bool) -> Graph:
    """A Conv that gives 2 · x and a BatchNormalization that adds 1; or one Conv that does both."""
    net = Net(Value("x", TensorType((1, 1, 2, 2), "float32")))
    x, weight = net.inputs[0], net.constant("w", [[[[2]]]])
    if folded:
        return net.graph(net.node("Conv", x, weight, net.constant("n_bias", [1]), out="n"))
    stored = [net.constant(name, [number]) for name, number in zip("sbmv", (3, 1, 0, 1), strict=True)]
    return net.graph(net.node("BatchNormalization", net.node("Conv", x, weight), *stored, epsilon=8.0, out="n"))


assert pairs_are_folded(line_net(False), line_net(True), 1)


# %% nbgrader={"grade_id": "ex04-5", "solution": true}
def fold_batch_norms(graph: Graph) -> Graph:
    """The graph with its BatchNormalizations folded into the Convs before them.

    >>> net = Net(Value("x", TensorType((1, 1, 2, 2), "float32")))
    >>> y = net.node("Conv", net.inputs[0], net.constant("w", [[[[2]]]]))
    >>> stored = [net.constant(name, [number]) for name, number in zip("sbmv", (3, 1, 0, 1))]
    >>> lean = fold_batch_norms(net.graph(net.node("BatchNormalization", y, *stored, epsilon=8.0, out="n")))
    >>> print(to_text(lean).splitlines()[1].split(" = ")[0], [node.op for node in lean.nodes])
      n: float32 1×1×2×2 ['Conv']
    >>> run(lean, {"x": np.ones((1, 1, 2, 2), np.float32)})["n"].ravel().tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    ### BEGIN SOLUTION
    nodes, makers, constants = [], {}, dict(graph.constants)
    taken = set(constants) | {value.name for node in graph.nodes for value in node.results} | graph.input_names

    def fresh(hint: str) -> str:
        while hint in taken:
            hint += "_"
        taken.add(hint)
        return hint

    def fixed(value: Value | None) -> bool:
        return value is None or (value.name in constants and value.name not in graph.input_names)

    def can_fold(conv: Node | None, norm: Node) -> bool:
        if conv is None or conv.op != "Conv" or graph.readers[conv.outputs[0].name] > 1:
            return False
        if norm.attrs.get("training_mode", 0):
            return False
        return all(map(fixed, (*conv.inputs[1:], *norm.inputs[1:])))

    for node in graph.nodes:
        conv = makers.get(node.inputs[0].name) if node.op == "BatchNormalization" else None
        if can_fold(conv, node):
            weight = constants[conv.inputs[1].name]
            bias = constants[conv.inputs[2].name] if len(conv.inputs) > 2 and conv.inputs[2] else 0.0
            gamma, beta, mean, var = (constants[value.name].astype(np.float64) for value in node.inputs[1:])
            scale = gamma / np.sqrt(var + node.attrs.get("epsilon", 1e-5))
            new = {
                fresh(f"{node.outputs[0].name}_weight"): weight * scale.reshape(-1, *[1] * (weight.ndim - 1)),
                fresh(f"{node.outputs[0].name}_bias"): bias * scale + beta - mean * scale,
            }
            new = {name: array.astype(weight.dtype) for name, array in new.items()}
            constants |= new
            inputs = (conv.inputs[0], *(Value(name, TensorType.of(array)) for name, array in new.items()))
            nodes.remove(conv)
            node = replace(conv, inputs=inputs, outputs=node.outputs[:1])
        nodes.append(node)
        makers |= {value.name: node for value in node.results}
    return replace(graph, nodes=tuple(nodes), constants=constants) if len(nodes) < len(graph.nodes) else graph
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex04-5-check", "grade": true, "points": 4}
check("4.5", fold_batch_norms)
### BEGIN HIDDEN TESTS
ex04.grade("4.5", fold_batch_norms)
### END HIDDEN TESTS

# %% [markdown]
# ## 4.6 · Not at any price (2 points)
#
# A folded result is stored in the file. A node of a hundred bytes can make gigabytes. So folding gets a limit: the
# results of a node together may have as many bytes as `limit_kib` KiB, **or** as many as the constants that the node
# reads, if those are more. A constant that it reads twice is stored once. If a size is not known, do not fold. Write
# `may_fold(graph, node, limit_kib)` for a node all of whose inputs are constants. `stored_bytes` below computes the
# results and looks, which is no good idea for gigabytes; in your function nothing may be computed.
#
# <details><summary>Hint 1</summary>
#
# `value.type.nbytes` are the bytes of a type; a dim that is no number counts there as 1. `value.type.is_static` says
# whether all dims are numbers. A value without a known type has `value.type` None.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Each constant once: a set of names, or a dict.
#
# </details>


# %% nbgrader={"grade_id": "ex04-6-specification", "locked": true}
def stored_bytes(graph: Graph, node: Node) -> int:
    """The specification of a size: compute the results of the node, and see how many bytes they have together."""
    alone = Graph("alone", (), node.results, (node,), graph.constants, graph.opsets)
    return sum(array.nbytes for array in run(alone, {}).values())


def outer_net() -> Graph:
    """A column times a row: two times 36 bytes make 324."""
    net = Net()
    return net.graph(net.node("Mul", net.constant("row", np.ones((1, 9))), net.constant("column", np.ones((9, 1)))))


assert stored_bytes(outer_net(), outer_net().nodes[0]) == 324


# %% nbgrader={"grade_id": "ex04-6", "solution": true}
def may_fold(graph: Graph, node: Node, limit_kib: int) -> bool:
    """Whether the result of a node is small enough to be stored.

    >>> net = Net()
    >>> row, column = net.constant("row", np.ones((1, 9))), net.constant("column", np.ones((9, 1)))
    >>> graph = net.graph(net.node("Mul", row, column))
    >>> may_fold(graph, graph.nodes[0], 1), may_fold(graph, graph.nodes[0], 0)
    (True, False)
    """
    ### BEGIN SOLUTION
    types = [value.type for value in node.results]
    if any(kind is None or not kind.is_static for kind in types):
        return False
    read = {value.name for value in node.uses}
    room = max(limit_kib * 1024, sum(graph.constants[name].nbytes for name in read))
    return sum(kind.nbytes for kind in types) <= room
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex04-6-check", "grade": true, "points": 2}
check("4.6", may_fold)
### BEGIN HIDDEN TESTS
ex04.grade("4.6", may_fold)
### END HIDDEN TESTS

# %% [markdown]
# ## 4.7 · Hunt the missing guard (5 points, open)
#
# Sixteen passes wait behind the check. Each of them
#
# - computes constant nodes,
# - folds a BatchNormalization into the Conv before it, or into the Conv behind it,
# - folds a Mul by a constant, one value a channel, into the Conv before it,
#
# and each is wrong in **one** way of its own: a guard is missing, or the arithmetic is off. A graph **kills** a pass
# when the pass's result computes something else; `kills` below tries that. Write `traps(x)`: a list of graphs, at most
# 20, each of at most 12 nodes, whose first input is `x`, an image of (1, channels, height, width). The points are yours
# when 14 of the 16 die. A right pass must survive, so the graphs must give the same in every run.
#
# The check says how many are alive, and asks you a question about one of them.
#
# <details><summary>Hint 1</summary>
#
# One Conv with a bias and one BatchNormalization with drawn numbers and an ε of its own kill all whose arithmetic is
# off, or nearly. Then one graph for each question of 4.5.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# BatchNormalization, then Conv with padding: which value has the border, if the normalisation moves behind the Conv?
#
# </details>


# %% nbgrader={"grade_id": "ex04-7-specification", "locked": true}
def kills(graph: Graph, faulty: Callable[[Graph], Graph]) -> bool:
    """The specification: what the pass makes of the graph computes something else, or nothing at all."""
    verify(graph, graph)  # the graph itself can run, and gives the same in every run
    try:
        verify(graph, faulty(graph))
    except LabError:
        return True
    return False


def doubled(graph: Graph) -> Graph:
    """A pass that is wrong whenever a constant matters."""
    return replace(graph, constants={name: 2 * array for name, array in graph.constants.items()})


assert kills(small_net(), doubled)
assert not kills(small_net(), lambda graph: graph)


# %% nbgrader={"grade_id": "ex04-7", "solution": true}
def traps(x: Value) -> list[Graph]:
    """Graphs that kill faulty folding passes.

    >>> x = Value("x", TensorType((1, 3, 6, 6), "float32"))
    >>> all(graph.inputs[0] is x and len(graph.nodes) <= 12 for graph in traps(x))
    True
    """
    ### BEGIN SOLUTION
    draw, channels = np.random.default_rng(0), x.shape[1]

    def weight(net: Net, name: str, default: bool = False) -> Value:
        make = net.default if default else net.constant
        return make(name, draw.uniform(0.5, 1.5, (channels, channels, 3, 3)))

    def norm(net: Net, y: Value, default: bool = False, out: str = "n", **attrs: object) -> Value:
        stored = [net.constant(f"{out}_{name}", draw.uniform(0.5, 1.5, channels)) for name in "sbmv"]
        if default:
            net.inputs.append(stored[0])
        return net.node("BatchNormalization", y, *stored, out=out, **attrs)

    graphs = []
    net = Net(x)  # arithmetic
    y = net.node("Conv", x, weight(net, "w"), net.constant("bias", draw.uniform(1, 2, channels)))
    graphs.append(net.graph(norm(net, y, epsilon=0.3)))
    net = Net(x)  # a second reader
    y = net.node("Conv", x, weight(net, "w"))
    graphs.append(net.graph(net.node("Add", y, norm(net, y))))
    net = Net(x)  # the caller reads
    y = net.node("Conv", x, weight(net, "w"))
    graphs.append(net.graph(norm(net, y), y))
    net = Net(x, Value("q", TensorType((), "bool")))  # a branch reads
    y = net.node("Conv", x, weight(net, "w"))
    graphs.append(net.graph(norm(net, y), net.branch(net.inputs[1], y)))
    net = Net(x)  # statistics of the batch
    graphs.append(net.graph(norm(net, net.node("Conv", x, weight(net, "w")), training_mode=1)))
    net = Net(x)  # weights that the caller may change
    graphs.append(net.graph(norm(net, net.node("Conv", x, weight(net, "w", default=True)))))
    net = Net(x)  # a γ that the caller may change
    graphs.append(net.graph(norm(net, net.node("Conv", x, weight(net, "w")), default=True)))
    net = Net(x)  # shared weights
    w = weight(net, "w")
    n = norm(net, net.node("Conv", x, w))
    graphs.append(net.graph(n, net.node("Conv", x, w)))
    net = Net(x)  # a border behind the shift
    graphs.append(net.graph(net.node("Conv", norm(net, x), weight(net, "w"), pads=(1, 1, 1, 1))))
    net = Net(x)  # along the width, not along the channels
    y = net.node("Conv", x, net.constant("w", draw.uniform(0.5, 1.5, (x.shape[3], channels, 1, 1))))
    graphs.append(net.graph(net.node("Mul", y, net.constant("row", draw.uniform(1, 2, x.shape[3])))))
    net = Net(x)  # a default is no constant
    factor = net.node("Mul", net.default("u", [2]), net.constant("c", [3]))
    graphs.append(net.graph(net.node("Mul", x, factor)))
    return graphs
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex04-7-check", "grade": true, "points": 5}
check("4.7", traps)
### BEGIN HIDDEN TESTS
ex04.grade("4.7", traps)
### END HIDDEN TESTS

# %% [markdown]
# ## Done?
#
# Restart the kernel and run all cells: seven lines must say "right". The command `labkit grade` on this file then says
# the same, with more graphs and numbers.
