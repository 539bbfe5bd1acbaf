# %% [markdown]
# # Exercise 05 · Elimination
#
# Eight functions, twenty-one points: what may go, what must stay, and when to stop. A pass is a function from a graph
# to a graph. Graphs never change; a pass makes a new one, or gives back **the very same object** when it has nothing
# to do.
#
# - Write your code where it says so, and keep the name and the arguments of each function.
# - Below each function is a check. Run it as often as you like: it says "right", or what to look at.
# - A check calls your function with graphs of its own, and grading uses more of them. Time plays no part.
# - The passes have to be yours: labkit's own passes do not count.
#
# | of a graph | is |
# |---|---|
# | `graph.inputs`, `graph.outputs` | tuples of values: `value.name`, `value.shape`, `value.dtype` |
# | `graph.nodes` | a tuple of nodes, in an order in which they can run |
# | `graph.constants` | name → array |
# | `graph.constant(value)` | the array that a value always is, or None: an input's default is none |
# | `graph.input_names`, `graph.output_names` | sets of names |
# | `node.op`, `node.attrs` | operator, and attributes by name |
# | `node.inputs`, `node.outputs` | tuples of values; None where an optional one is left out |
# | `node.results` | the outputs that are there |
# | `node.uses` | **all** that it reads: its inputs, and what the branches of an If read from around it |
# | `node.rename({"a": value})` | this node, reading `value` wherever it read "a", in branches too |
# | `replace(graph, nodes=…, constants=…)` | a new graph, otherwise the same |

# %% nbgrader={"grade_id": "ex05-setup", "locked": true}
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from labkit import Graph, LabError, Node, TensorType, Value, verify
from labkit.course import sheet
from labkit.text import to_text

ex05 = sheet("ex05", seed=0)
check, given = ex05.check, ex05.given

# %% [markdown]
# Your cluttered graph. Part 5.8 asks how few of its nodes will do:

# %%
print(to_text(given.cluttered))

# %% [markdown]
# ## 5.1 · What is alive (2 points)
#
# A node is **alive** when an output of the graph depends on it, directly or through other nodes. Write
# `live_nodes(graph)`: the positions in `graph.nodes` of those that are alive, in ascending order.
#
# <details><summary>Hint 1</summary>
#
# Being read is not enough: the reader may be dead. Begin at the outputs.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A reader stands behind what it reads. So one walk over the nodes from the last to the first is enough, with a set of
# names that are wanted.
#
# </details>


# %% nbgrader={"grade_id": "ex05-1-specification", "locked": true}
def depends_on(graph: Graph, name: str, node: Node) -> bool:
    """The specification: does the value ``name`` depend on this node? Obvious, and slow where paths part and meet."""
    maker = graph.producers.get(name)
    if maker is None:
        return False
    return maker is node or any(depends_on(graph, value.name, node) for value in maker.uses)


def small_graph() -> Graph:
    """Two nodes that y needs, and one that nothing needs."""
    kind = TensorType((2, 3), "float32")
    x, a, b, y = (Value(name, kind) for name in "xaby")
    nodes = (Node("Relu", (x,), (a,)), Node("Sigmoid", (a,), (b,)), Node("Add", (a, x), (y,)))
    return Graph("small", (x,), (y,), nodes)


print(to_text(small_graph()))


# %% nbgrader={"grade_id": "ex05-1", "solution": true}
def live_nodes(graph: Graph) -> list[int]:
    """Positions of the nodes that an output depends on.

    >>> live_nodes(small_graph())
    [0, 2]
    """
    ### BEGIN SOLUTION
    wanted = {value.name for value in graph.outputs}
    alive = []
    for position in reversed(range(len(graph.nodes))):
        node = graph.nodes[position]
        if any(value.name in wanted for value in node.results):
            wanted |= {value.name for value in node.uses}
            alive.append(position)
    return alive[::-1]
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex05-1-check", "grade": true, "points": 2}
check("5.1", live_nodes)
### BEGIN HIDDEN TESTS
ex05.grade("5.1", live_nodes)
### END HIDDEN TESTS

# %% [markdown]
# ## 5.2 · Dead nodes and orphans (3 points)
#
# Now the pass. Write `eliminate_dead(graph)`: the graph without its dead nodes, and without constants that nothing
# reads any more (**orphans**: they bloat the file). Whoever calls the graph must not notice: its inputs and outputs
# stay, with their names, also an input that nothing reads, and its default. With nothing to do, give back `graph`. Of a
# right result `to_spare` finds nothing, and `verify(graph, result)` is content.
#
# <details><summary>Hint</summary>
#
# Who reads a constant? A live node, a branch of an If, the caller (when it is an output of the graph), and the caller
# again, when it is the default of an input.
#
# </details>


# %% nbgrader={"grade_id": "ex05-2-specification", "locked": true}
def to_spare(graph: Graph) -> list[str]:
    """The specification: nodes, and constants that are no default, without which the rest is still a graph."""
    found = []
    for name in (*graph.producers, *(name for name in graph.constants if name not in graph.input_names)):
        nodes = tuple(node for node in graph.nodes if node is not graph.producers.get(name))
        constants = {other: array for other, array in graph.constants.items() if other != name}
        try:
            replace(graph, nodes=nodes, constants=constants)
        except LabError:
            continue  # somebody reads it
        found.append(name)
    return found


assert to_spare(small_graph()) == ["b"]


# %% nbgrader={"grade_id": "ex05-2", "solution": true}
def eliminate_dead(graph: Graph) -> Graph:
    """The graph without dead nodes and without constants that nothing reads.

    >>> lean = eliminate_dead(small_graph())
    >>> [node.op for node in lean.nodes], eliminate_dead(lean) is lean
    (['Relu', 'Add'], True)
    """
    ### BEGIN SOLUTION
    wanted = {value.name for value in graph.outputs}
    nodes = []
    for node in reversed(graph.nodes):
        if any(value.name in wanted for value in node.results):
            wanted |= {value.name for value in node.uses}
            nodes.append(node)
    wanted |= graph.input_names
    constants = {name: array for name, array in graph.constants.items() if name in wanted}
    if len(nodes) == len(graph.nodes) and len(constants) == len(graph.constants):
        return graph
    return replace(graph, nodes=tuple(reversed(nodes)), constants=constants)
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex05-2-check", "grade": true, "points": 3}
check("5.2", eliminate_dead)
### BEGIN HIDDEN TESTS
ex05.grade("5.2", eliminate_dead)
### END HIDDEN TESTS

# %% [markdown]
# ## 5.3 · A Slice that takes everything (2 points)
#
# Exporters write "all of it" in many ways. For each entry of `axes` a Slice takes the elements
# `[start:end:step]` of that axis, as Python would: negative numbers count from the end, and what is too large is cut.
# Without `axes` (None) they are the first ones; without `steps` (None) all steps are 1. A length may be a symbol, such
# as "batch": a number that you do not know. Write `takes_all(starts, ends, axes, steps, shape)`: whether the Slice
# **certainly** takes every element, in order. Where all is given and all lengths are numbers, `takes_all_of` tries it.
#
# <details><summary>Hint 1</summary>
#
# `range(7)[-7:99]` is a range again, and two ranges can be compared.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Of a symbol take one thing for certain: it is no larger than the largest 32-bit integer, 2³¹ − 1. Exporters write
# that number, or a larger one, for "to the end".
#
# </details>


# %% nbgrader={"grade_id": "ex05-3-specification", "locked": true}
def takes_all_of(
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: tuple[int, ...],
    steps: tuple[int, ...],
    shape: tuple[int, ...],
) -> bool:
    """The specification: number the elements, take the Slice, and compare."""
    numbers = taken = np.arange(np.prod(shape)).reshape(shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        taken = np.moveaxis(np.moveaxis(taken, axis, 0)[start:end:step], 0, axis)
    return np.array_equal(taken, numbers)


assert takes_all_of((0,), (2**31 - 1,), (-1,), (1,), (2, 5))
assert not takes_all_of((0,), (-1,), (1,), (1,), (2, 5))


# %% nbgrader={"grade_id": "ex05-3", "solution": true}
def takes_all(
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: tuple[int, ...] | None,
    steps: tuple[int, ...] | None,
    shape: tuple[int | str, ...],
) -> bool:
    """Whether a Slice takes every element in order.

    >>> takes_all((0,), (2**31 - 1,), (-1,), None, (2, 5)), takes_all((0,), (-1,), (1,), None, (2, 5))
    (True, False)
    """
    ### BEGIN SOLUTION
    axes = axes if axes is not None else tuple(range(len(starts)))
    steps = steps if steps is not None else (1,) * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = shape[axis]
        if isinstance(size, str):
            if (start, step) != (0, 1) or end < 2**31 - 1:
                return False
        elif range(size)[start:end:step] != range(size):
            return False
    return True
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex05-3-check", "grade": true, "points": 2}
check("5.3", takes_all)
### BEGIN HIDDEN TESTS
ex05.grade("5.3", takes_all)
### END HIDDEN TESTS

# %% [markdown]
# ## 5.4 · No-ops, with a proof (3 points)
#
# These may do nothing: `Identity(x)`; `Reshape(x, shape)`; `Mul(x, 1)` and `Mul(1, x)`; `Div(x, 1)`; `Add(x, 0)` and
# `Add(0, x)`; `Sub(x, 0)`, where 1 and 0 are constants of any shape, full of ones or zeros. Write
# `remove_no_ops(graph)`: whoever reads the result of a no-op reads x instead. Remove only what is **proved** to do
# nothing. A no-op whose result is an output of the graph stays: it gives the output its name. `seems_idle` tries it
# without a node: its No has found an input that tells the difference, its Yes is no proof.
#
# <details><summary>Hint 1</summary>
#
# Ones of shape (5, 1) times x of shape (3,) is of shape (5, 3). `node.outputs[0].shape` is known. So is a symbol: the
# same name is the same number.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Walk once, from the first node to the last, with a dict from the names that went to the values to read instead.
# `node.rename(that)` first, then look at the node: so no-ops in a row go in one sweep.
#
# </details>


# %% nbgrader={"grade_id": "ex05-4-specification", "locked": true}
def seems_idle(graph: Graph, node: Node, x: Value) -> bool:
    """The specification: whoever reads the node's result reads x instead, and on no input that is tried it shows."""
    nodes = tuple(other.rename({node.output.name: x}) for other in graph.nodes if other is not node)
    try:
        verify(graph, replace(graph, nodes=nodes))
    except LabError:
        return False
    return True


def idle_graph() -> Graph:
    """Three nodes, of which the first one is a no-op."""
    kind = TensorType((2, 3), "float32")
    x, a, b, y = (Value(name, kind) for name in "xaby")
    nodes = (Node("Identity", (x,), (a,)), Node("Sigmoid", (a,), (b,)), Node("Relu", (b,), (y,)))
    return Graph("idle", (x,), (y,), nodes)


idle = idle_graph()
assert [seems_idle(idle, node, node.uses[0]) for node in idle.nodes] == [True, False, False]


# %% nbgrader={"grade_id": "ex05-4", "solution": true}
def remove_no_ops(graph: Graph) -> Graph:
    """The graph without nodes that hand x on unchanged.

    >>> x, y = small_graph().inputs[0], small_graph().outputs[0]
    >>> a = Value("a", x.type)
    >>> lean = remove_no_ops(Graph("g", (x,), (y,), (Node("Identity", (x,), (a,)), Node("Relu", (a,), (y,)))))
    >>> print(to_text(lean))
    g(x: float32 2×3)
      y: float32 2×3 = Relu(x)
      -> y
    """
    ### BEGIN SOLUTION
    units = {"Mul": 1, "Div": 1, "Add": 0, "Sub": 0}

    def handed_on(node: Node) -> Value | None:
        """The input that this node hands on, if it does."""
        if node.op in ("Identity", "Reshape"):
            return node.inputs[0]
        if node.op in units:
            x, other = node.inputs
            if node.op in ("Mul", "Add") and graph.constant(other) is None:
                x, other = other, x
            array = graph.constant(other)
            if array is not None and (array == units[node.op]).all():
                return x
        return None

    nodes, instead = [], {}
    for old in graph.nodes:
        node = old.rename(instead)
        x = handed_on(node)
        output = node.outputs[0]
        same = x is not None and x.shape is not None and x.shape == output.shape
        if same and output.name not in graph.output_names:
            instead[output.name] = x
        else:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes)) if instead else graph
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex05-4-check", "grade": true, "points": 3}
check("5.4", remove_no_ops)
### BEGIN HIDDEN TESTS
ex05.grade("5.4", remove_no_ops)
### END HIDDEN TESTS

# %% [markdown]
# ## 5.5 · Common subexpressions (4 points)
#
# Two nodes that compute the same from the same are one too many. Write `share(graph)`: a node that repeats an earlier
# one goes, and its readers read the earlier one. Nodes repeat each other when they have
#
# - the same operator, and the same attributes; one that is left out has its default, which `default_attributes` tells;
# - the same inputs at the same places, or, for `Add` and `Mul`, the two in either order; constants count as the same
#   when type, shape and **bytes** are equal.
#
# Random nodes never repeat each other. A node whose result is an output of the graph stays. Leave nodes that hold
# branches alone, but do not forget what the branches read.
#
# <details><summary>Hint 1</summary>
#
# Make a key for each node, something that can be looked up in a dict: operator, attributes, inputs. The first node
# with a key stays.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `array.tobytes()` tells +0 from −0, which `==` does not: 1 / +0 and 1 / −0 are far apart.
#
# </details>

# %% nbgrader={"grade_id": "ex05-5-specification", "locked": true}
from labkit.schemas import default_attributes

RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}

print("defaults of Flatten:", default_attributes("Flatten", small_graph().opset))


# %% nbgrader={"grade_id": "ex05-5", "solution": true}
def share(graph: Graph) -> Graph:
    """The graph with one node for each expression.

    >>> kind = TensorType((2,), "float32")
    >>> x, a, b, y = (Value(name, kind) for name in "xaby")
    >>> twice = (Node("Relu", (x,), (a,)), Node("Relu", (x,), (b,)), Node("Add", (a, b), (y,)))
    >>> print(to_text(share(Graph("g", (x,), (y,), twice))))
    g(x: float32 2)
      a: float32 2 = Relu(x)
      y: float32 2 = Add(a, a)
      -> y
    """
    ### BEGIN SOLUTION

    def identity_of(value: Value | None) -> tuple:
        array = graph.constant(value)
        if array is not None:
            return str(array.dtype), array.shape, array.tobytes()
        return ("" if value is None else value.name,)

    def key_of(node: Node) -> tuple:
        attrs = {**default_attributes(node.op, graph.opset), **node.attrs}
        inputs = [identity_of(value) for value in node.inputs]
        if node.op in ("Add", "Mul"):
            inputs.sort(key=repr)
        return node.op, node.domain, len(node.outputs), tuple(inputs), tuple(sorted(attrs.items()))

    nodes, first, instead = [], {}, {}
    for old in graph.nodes:
        node = old.rename(instead)
        if node.op in RANDOM or node.bodies:
            nodes.append(node)
            continue
        key = key_of(node)
        seen = first.setdefault(key, node)
        if seen is node or any(value.name in graph.output_names for value in node.results):
            nodes.append(node)
        else:
            instead |= {value.name: new for value, new in zip(node.outputs, seen.outputs, strict=True) if value}
    return replace(graph, nodes=tuple(nodes)) if instead else graph
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex05-5-check", "grade": true, "points": 4}
check("5.5", share)
### BEGIN HIDDEN TESTS
ex05.grade("5.5", share)
### END HIDDEN TESTS

# %% [markdown]
# ## 5.6 · A fixed point that is reached (2 points)
#
# One pass makes work for another, so passes run in **rounds**: each of them once, in order. Write
# `to_rest(graph, passes, size)`, which gives the graph after a round in which *no* pass changed anything, and the
# number of rounds, that last one included. A pass that changes nothing gives back the same object. The last round is
# the first one of which `is_at_rest` is true.
#
# Must it ever end? It must if each round makes something smaller that cannot shrink for ever. `size(graph)` is that
# something, a number or a tuple of numbers. When a round has changed the graph and its size is not smaller than before
# the round, raise a `ValueError`.
#
# <details><summary>Hint</summary>
#
# Remember the graph at the beginning of a round. Compare with `is`, not by counting nodes: a pass may also make
# constants smaller.
#
# </details>


# %% nbgrader={"grade_id": "ex05-6-specification", "locked": true}
def is_at_rest(graph: Graph, passes: list[Callable[[Graph], Graph]], rounds: int) -> bool:
    """The specification: round number ``rounds`` changes nothing. It makes all rounds before that one anew."""
    for one in passes * (rounds - 1):
        graph = one(graph)
    return all(one(graph) is graph for one in passes)


def without_last(graph: Graph) -> Graph:
    """A pass that takes the last node away, unless it is the only one."""
    return replace(graph, nodes=graph.nodes[:-1]) if len(graph.nodes) > 1 else graph


only_first = replace(small_graph(), outputs=small_graph().nodes[0].outputs)
assert [is_at_rest(only_first, [without_last], rounds) for rounds in (1, 2, 3)] == [False, False, True]


# %% nbgrader={"grade_id": "ex05-6", "solution": true}
def to_rest(
    graph: Graph, passes: list[Callable[[Graph], Graph]], size: Callable[[Graph], int | tuple[int, ...]]
) -> tuple[Graph, int]:
    """The graph at rest, and the rounds that it took.

    >>> shorter = lambda graph: replace(graph, nodes=graph.nodes[:-1]) if len(graph.nodes) > 1 else graph
    >>> start = replace(small_graph(), outputs=small_graph().nodes[0].outputs)
    >>> lean, rounds = to_rest(start, [shorter], lambda graph: len(graph.nodes))
    >>> len(lean.nodes), rounds
    (1, 3)
    """
    ### BEGIN SOLUTION
    rounds = 0
    while True:
        before = graph
        for one in passes:
            graph = one(graph)
        rounds += 1
        if graph is before:
            return graph, rounds
        if not size(graph) < size(before):
            raise ValueError(f"round {rounds} changed the graph and made nothing smaller")
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex05-6-check", "grade": true, "points": 2}
check("5.6", to_rest)
### BEGIN HIDDEN TESTS
ex05.grade("5.6", to_rest)
### END HIDDEN TESTS

# %% [markdown]
# ## 5.7 · Order matters (2 points)
#
# With a single round, the order decides. Write `best_order(graph, passes)`: the order (positions in `passes`) in which
# one round over all of them leaves the fewest nodes and constants, as `left_over` counts them. Where several are best,
# any of them will do. Here, and only here, the passes are labkit's own; you get them unnamed.
#
# <details><summary>Hint</summary>
#
# Four passes have 24 orders. `itertools.permutations` makes them. The pass that saves most on its own need not come
# first: what may the others leave behind for it?
#
# </details>


# %% nbgrader={"grade_id": "ex05-7-specification", "locked": true}
def left_over(graph: Graph, passes: list[Callable[[Graph], Graph]], order: tuple[int, ...]) -> int:
    """Nodes and constants that are left after one round in this order."""
    for position in order:
        graph = passes[position](graph)
    return len(graph.nodes) + len(graph.constants)


# %% nbgrader={"grade_id": "ex05-7", "solution": true}
def best_order(graph: Graph, passes: list[Callable[[Graph], Graph]]) -> tuple[int, ...]:
    """An order of the passes that leaves as little as any.

    >>> lazy = lambda graph: graph
    >>> drop = lambda graph: replace(graph, nodes=graph.nodes[:1], outputs=graph.nodes[0].outputs)
    >>> sorted(best_order(small_graph(), [lazy, drop]))
    [0, 1]
    """
    ### BEGIN SOLUTION
    from itertools import permutations

    return min(permutations(range(len(passes))), key=lambda order: left_over(graph, passes, order))
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex05-7-check", "grade": true, "points": 2}
check("5.7", best_order)
### BEGIN HIDDEN TESTS
ex05.grade("5.7", best_order)
### END HIDDEN TESTS

# %% [markdown]
# ## 5.8 · Beat the clutter (3 points, open)
#
# Now all of it, and more: write `tidy(graph)`, a pass that leaves as few nodes as you can, of graphs like the one on
# top. The points are yours when at most two needless nodes stay. Besides, `check_pass` must be content:
# the graph computes what it did, `tidy` is at rest on its own result, and none of sixteen small traps catches it.
#
# Clutter is what you know from above, in every combination: no-ops, repeated expressions, dead branches, and
# arithmetic on constants alone (`labkit.interpreter.evaluate(node, graph.constants, graph.opsets)` gives its results).
# And three things that are new: Transposes in a row that undo each other; two that do not, but are one;
# `Relu(Relu(x))`. Look out for what only looks like clutter.
#
# <details><summary>Hint 1</summary>
#
# Several small passes, each with one idea, run to a fixed point, as in 5.6. Begin with those you have.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Axis i of the second Transpose's result is axis `second[i]` of its input, and that is axis `first[second[i]]` of x.
#
# </details>

# %% nbgrader={"grade_id": "ex05-8-specification", "locked": true}
from labkit import check_pass, optimize

print(f"{len(given.cluttered.nodes)} nodes; labkit leaves {len(optimize(given.cluttered, level='basic').graph.nodes)}")
print("a pass that does nothing is", check_pass(lambda graph: graph, given.cluttered))


# %% nbgrader={"grade_id": "ex05-8", "solution": true}
def tidy(graph: Graph) -> Graph:
    """The same function with as few nodes as possible.

    >>> len(tidy(small_graph()).nodes)
    2
    >>> print(str(check_pass(tidy, given.cluttered))[:12])
    right; saves
    """
    ### BEGIN SOLUTION
    from labkit.interpreter import evaluate

    units = {"Mul": 1, "Div": 1, "Add": 0, "Sub": 0}
    commutative = ("Mul", "Add")

    def forward(graph: Graph, stands_for: Callable[[Node, dict[str, Node]], Value | None]) -> Graph:
        """Readers of a node read what ``stands_for(node, makers so far)`` says, where it says anything."""
        nodes, makers, instead = [], {}, {}
        for old in graph.nodes:
            node = old.rename(instead)
            value = None
            if len(node.results) == 1 and node.outputs[0].name not in graph.output_names:
                value = stands_for(node, makers)
            if value is None:
                nodes.append(node)
                makers |= {result.name: node for result in node.results}
            else:
                instead[node.outputs[0].name] = value
        return replace(graph, nodes=tuple(nodes)) if instead else graph

    def permutation(node: Node) -> tuple[int, ...]:
        return node.attrs.get("perm", tuple(range(len(node.outputs[0].shape)))[::-1])

    def without_no_ops(graph: Graph) -> Graph:
        def handed_on(node: Node, _: dict[str, Node]) -> Value | None:
            x = node.inputs[0] if node.inputs else None
            if node.op in units:
                other = node.inputs[1]
                if node.op in commutative and graph.constant(other) is None:
                    x, other = other, x
                array = graph.constant(other)
                if array is None or (array != units[node.op]).any():
                    return None
            elif node.op == "Transpose":
                return x if permutation(node) == tuple(range(len(permutation(node)))) else None
            elif node.op not in ("Identity", "Reshape"):
                return None
            return x if x is not None and x.shape is not None and x.shape == node.outputs[0].shape else None

        return forward(graph, handed_on)

    def without_pairs(graph: Graph) -> Graph:
        def undone(node: Node, makers: dict[str, Node]) -> Value | None:
            inner = makers.get(node.inputs[0].name) if node.inputs and node.inputs[0] else None
            if inner is None or (node.op, inner.op) not in (("Relu", "Relu"), ("Transpose", "Transpose")):
                return None
            if node.op == "Relu":
                return node.inputs[0]
            both = tuple(permutation(inner)[axis] for axis in permutation(node))
            return inner.inputs[0] if both == tuple(range(len(both))) else None

        return forward(graph, undone)

    def with_transposes_merged(graph: Graph) -> Graph:
        makers, nodes, changed = {}, [], False
        for node in graph.nodes:
            inner = makers.get(node.inputs[0].name) if node.op == "Transpose" else None
            if inner is not None and inner.op == "Transpose":
                both = tuple(permutation(inner)[axis] for axis in permutation(node))
                node, changed = replace(node, inputs=inner.inputs, attrs={"perm": both}), True
            nodes.append(node)
            makers |= {result.name: node for result in node.results}
        return replace(graph, nodes=tuple(nodes)) if changed else graph

    def folded(graph: Graph) -> Graph:
        constants, nodes = dict(graph.constants), []
        for node in graph.nodes:
            known = all(value.name in constants and value.name not in graph.input_names for value in node.uses)
            if not node.uses or not known or node.bodies or node.op in RANDOM:
                nodes.append(node)
                continue
            results = evaluate(node, constants, graph.opsets)
            constants |= {value.name: np.array(array) for value, array in zip(node.outputs, results, strict=False)}
        changed = len(nodes) < len(graph.nodes)
        return replace(graph, nodes=tuple(nodes), constants=constants) if changed else graph

    def shared(graph: Graph) -> Graph:
        first = {}

        def identity_of(value: Value | None) -> tuple:
            array = graph.constant(value)
            if array is not None:
                return str(array.dtype), array.shape, array.tobytes()
            return ("" if value is None else value.name,)

        def seen(node: Node, _: dict[str, Node]) -> Value | None:
            if node.op in RANDOM or node.bodies:
                return None
            inputs = [identity_of(value) for value in node.inputs]
            if node.op in commutative:
                inputs.sort(key=repr)
            attrs = {**default_attributes(node.op, graph.opset), **node.attrs}
            found = first.setdefault((node.op, tuple(inputs), repr(sorted(attrs.items()))), node)
            return None if found is node else found.outputs[0]

        return forward(graph, seen)

    def without_dead(graph: Graph) -> Graph:
        wanted = {value.name for value in graph.outputs}
        nodes = []
        for node in reversed(graph.nodes):
            if any(value.name in wanted for value in node.results):
                wanted |= {value.name for value in node.uses}
                nodes.append(node)
        wanted |= graph.input_names
        constants = {name: array for name, array in graph.constants.items() if name in wanted}
        if len(nodes) == len(graph.nodes) and len(constants) == len(graph.constants):
            return graph
        return replace(graph, nodes=tuple(reversed(nodes)), constants=constants)

    while True:
        before = graph
        for one in (folded, without_no_ops, without_pairs, with_transposes_merged, shared, without_dead):
            graph = one(graph)
        if graph is before:
            return graph
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex05-8-check", "grade": true, "points": 3}
check("5.8", tidy)
### BEGIN HIDDEN TESTS
ex05.grade("5.8", tidy)
### END HIDDEN TESTS

# %% [markdown]
# ## Done?
#
# Restart the kernel and run all cells: eight lines must say "right". The command `labkit grade` on this file then says
# the same, with more graphs.
