# %% [markdown]
# # Exercise 06 · The pipeline
#
# Seven functions, twenty points. What is a rewrite worth, which pass did it, and in which order should passes run? Then
# a pass of your own, the place of layout transforms, and a network that has to keep to a budget of bytes.
#
# - Write your code where it says so, and keep the name and the arguments of each function.
# - Below each function is a check. Run it as often as you like: it says "right", or what to look at.
# - A check calls your function with graphs and machines of its own, and grading uses more of them. Time plays no part.
# - In a message a graph is one line: `[n1=Conv(x,w1) n2=Relu(n1) → n2]`. Nodes are called by what they make.

# %% nbgrader={"grade_id": "ex06-setup", "locked": true}
from collections.abc import Callable
from dataclasses import replace

from labkit import Graph, Hardware, Report, Value, check_pass, cost, optimize, reside, schedule
from labkit.course import sheet
from labkit.text import to_text

ex06 = sheet("ex06", seed=0)
check, given = ex06.check, ex06.given

# %% [markdown]
# A graph of yours, for the parts about layout, and a network, for the last part:

# %%
print(to_text(given.graph))
print()
print(to_text(given.budget.graph))

# %% [markdown]
# ## 6.1 · How much faster? (2 points)
#
# An optimiser turned the kernels `before` into the kernels `after`. Each kernel is a pair: its FLOP, and the bytes that
# it moves. They run one after another. Within a kernel arithmetic and transfers overlap perfectly; starting it takes
# `launch_s` seconds, and that overlaps with nothing. Write
# `speedup(before, after, peak_flops_per_s, dram_bytes_per_s, launch_s)`: how many times faster it is afterwards.
# `watched` below looks on with a stop-watch, tick by tick, and so it is a little off.
#
# <details><summary>Hint</summary>
#
# The roofline says that a kernel waits for the slower of the two. Which one that is may differ from kernel to kernel.
#
# </details>

# %% nbgrader={"grade_id": "ex06-1-specification", "locked": true}
Kernels = tuple[tuple[int, int], ...]


def watched(
    kernels: Kernels, peak_flops_per_s: float, dram_bytes_per_s: float, launch_s: float, tick_s: float
) -> float:
    """The specification of a time: in each tick a kernel computes and moves as much as it can, until both are done."""
    seconds = 0.0
    for flops, nbytes in kernels:
        seconds += launch_s
        while flops > 0 or nbytes > 0:
            flops -= peak_flops_per_s * tick_s
            nbytes -= dram_bytes_per_s * tick_s
            seconds += tick_s
    return seconds


two_and_one = ((4_000_000, 1000), (1000, 1000)), ((4_000_000, 1500),)
times = [watched(kernels, 1e9, 1e6, 1e-3, tick_s=1e-6) for kernels in two_and_one]
assert abs(times[0] / times[1] - 1.4) < 0.01


# %% nbgrader={"grade_id": "ex06-1", "solution": true}
def speedup(
    before: Kernels, after: Kernels, peak_flops_per_s: float, dram_bytes_per_s: float, launch_s: float
) -> float:
    """Time before over time after.

    >>> speedup(((4_000_000, 1000), (1000, 1000)), ((4_000_000, 1500),), 1e9, 1e6, 1e-3)
    1.4
    """
    ### BEGIN SOLUTION
    times = []
    for kernels in (before, after):
        seconds = 0.0
        for flops, nbytes in kernels:
            seconds += max(flops / peak_flops_per_s, nbytes / dram_bytes_per_s) + launch_s
        times.append(seconds)
    return times[0] / times[1]
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex06-1-check", "grade": true, "points": 2}
check("6.1", speedup)
### BEGIN HIDDEN TESTS
ex06.grade("6.1", speedup)
### END HIDDEN TESTS

# %% [markdown]
# ## 6.2 · Which pass saved what? (2 points)
#
# `optimize` gives a report. `report.original` is the graph that it began with, and each of `report.steps` is one pass
# that changed something: `step.name`, `step.round`, and `step.graph`, the graph behind it. `report.costs` are the costs
# of the original, then of the graph behind each step; `cost(graph, report.hardware).dram_bytes` counts the same. Write
# `saved_by_pass(report)`: a dictionary from the name of each pass to the DRAM bytes that it saved, in all rounds.
#
# <details><summary>Hint</summary>
#
# A step has a graph before it and a graph behind it. What does the first step find?
#
# </details>

# %% nbgrader={"grade_id": "ex06-2-specification", "locked": true}
example = optimize(given.budget.graph, hardware=given.budget.hardware)
print(example.table())


# %% nbgrader={"grade_id": "ex06-2", "solution": true}
def saved_by_pass(report: Report) -> dict[str, int]:
    """DRAM bytes that each pass saved.

    >>> sum(saved_by_pass(example).values()) == example.costs[0].dram_bytes - example.costs[-1].dram_bytes
    True
    """
    ### BEGIN SOLUTION
    saved = {}
    before = cost(report.original, report.hardware).dram_bytes
    for step in report.steps:
        after = cost(step.graph, report.hardware).dram_bytes
        saved[step.name] = saved.get(step.name, 0) + before - after
        before = after
    return saved
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex06-2-check", "grade": true, "points": 2}
check("6.2", saved_by_pass)
### BEGIN HIDDEN TESTS
ex06.grade("6.2", saved_by_pass)
### END HIDDEN TESTS

# %% [markdown]
# ## 6.3 · The fewest runs (3 points)
#
# You get a graph and four passes of labkit, as a dictionary from name to function, but the names tell nothing. A pass
# is a function from graph to graph that gives back **the very same graph** when it finds nothing to do. A graph that
# all four leave alone is a fixed point. Sweeping over all of them until nothing changes gets there, with many runs in
# vain. Write `fewest_runs(graph, passes)`: a list of names, in the order to run them, that ends at a fixed point with
# as few runs as there can be. A pass may run more than once, or never.
#
# <details><summary>Hint 1</summary>
#
# `passes[name](graph) is graph` says that the pass has nothing to do now. It may have later.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Try all graphs that one run can make, then all that two runs can make. The first fixed point that you meet is the
# answer: remember how you got there.
#
# </details>


# %% nbgrader={"grade_id": "ex06-3-specification", "locked": true}
def sweeps(graph: Graph, passes: dict[str, Callable[[Graph], Graph]]) -> list[str]:
    """The specification of a fixed point: sweep until nothing changes. It runs more often than it has to."""
    names: list[str] = []
    while any(passes[name](graph) is not graph for name in passes):
        for name in passes:
            graph = passes[name](graph)
            names.append(name)
    return names


# %% nbgrader={"grade_id": "ex06-3", "solution": true}
def fewest_runs(graph: Graph, passes: dict[str, Callable[[Graph], Graph]]) -> list[str]:
    """Names of passes, in an order that reaches a fixed point with the fewest runs.

    >>> from labkit.passes.pipeline import PASSES
    >>> fewest_runs(given.budget.graph, {"p": PASSES["no-ops"], "q": PASSES["affine"], "r": PASSES["dead"]})
    ['q', 'r']
    """
    ### BEGIN SOLUTION
    waiting = [(graph, [])]
    while True:
        following = []
        for current, names in waiting:
            after = {name: run(current) for name, run in passes.items()}
            if all(result is current for result in after.values()):
                return names
            following += [(result, [*names, name]) for name, result in after.items() if result is not current]
        waiting = following
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex06-3-check", "grade": true, "points": 3}
check("6.3", fewest_runs)
### BEGIN HIDDEN TESTS
ex06.grade("6.3", fewest_runs)
### END HIDDEN TESTS

# %% [markdown]
# ## 6.4 · A pass of your own (4 points)
#
# The largest of some numbers, cut at 0, is the largest of the numbers cut at 0. So a `Relu` in front of a `MaxPool` may
# as well stand behind it, where the tensor is smaller. Write the pass `relu_behind_pool(graph)`. It has to be yours.
#
# It is judged as `check_pass` judges every pass. The result computes the same. With nothing to do the pass returns the
# very same graph, run twice it is as if run once, and it comes to an end. Besides, it has to save as many bytes as
# there are to save, also where several pools follow each other. Other graphs are asked about where the rewrite would be
# wrong, or would cost.
#
# | expression | is |
# |---|---|
# | `graph.nodes`, `graph.producers[name]` | the nodes in running order; the node that makes a value |
# | `graph.readers[name]` | how often a value is read; being an output of the graph counts as once |
# | `node.op`, `node.uses`, `node.results`, `node.output` | operator, values read, values made, the first of these |
# | `replace(node, inputs=(…,), outputs=(…,))` | the node with other inputs and outputs |
# | `Value(name, type)`, `value.type` | a value; its type says its shape |
# | `replace(graph, nodes=(…))` | the graph with other nodes; it is checked at once |
#
# <details><summary>Hint 1</summary>
#
# Relu reads x and makes y, MaxPool reads y and makes z. Behind the rewrite MaxPool reads x and makes y, which has
# another shape now, and Relu reads y and makes z. Put both where the MaxPool was.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Guards: who else reads y? What else does the MaxPool make? Repeat until there is nothing left to do, and remember
# whether there was anything.
#
# </details>

# %% nbgrader={"grade_id": "ex06-4-specification", "locked": true}
import numpy as np


def both_orders(x: np.ndarray) -> tuple[float, float]:
    """The specification, for one window of the pool: first cut, then the largest; or the other way round."""
    numbers = x.ravel().tolist()
    return max(max(number, 0.0) for number in numbers), max(max(numbers), 0.0)


print(both_orders(np.array([[-3.0, 2.0], [1.0, -5.0]])), both_orders(np.array([[-3.0, -2.0], [-1.0, -5.0]])))
print(check_pass(lambda graph: graph, given.graph))  # what it says of a pass that does nothing


# %% nbgrader={"grade_id": "ex06-4", "solution": true}
def relu_behind_pool(graph: Graph) -> Graph:
    """Each Relu behind the MaxPool that it stands in front of.

    >>> relu_behind_pool(given.graph) is given.graph  # it has no MaxPool
    True
    """
    ### BEGIN SOLUTION
    nodes = list(graph.nodes)
    changed, again = False, True
    while again:
        again = False
        makers = {value.name: node for node in nodes for value in node.results}
        for place, pool in enumerate(nodes):
            relu = makers.get(pool.uses[0].name) if pool.op == "MaxPool" else None
            if relu is None or relu.op != "Relu" or len(pool.results) > 1:
                continue
            if graph.readers[relu.output.name] > 1:
                continue
            pooled = Value(relu.output.name, pool.output.type)
            first = replace(pool, inputs=relu.inputs, outputs=(pooled,))
            second = replace(relu, inputs=(pooled,), outputs=(pool.output,))
            nodes[place : place + 1] = [first, second]
            nodes.remove(relu)
            changed = again = True
            break
    return replace(graph, nodes=tuple(nodes)) if changed else graph
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex06-4-check", "grade": true, "points": 4}
check("6.4", relu_behind_pool)
### BEGIN HIDDEN TESTS
ex06.grade("6.4", relu_behind_pool)
### END HIDDEN TESTS

# %% [markdown]
# ## 6.5 · What transforms move (2 points)
#
# The file orders axes as NCHW, the machine likes NHWC. Each node runs in one of the two orders: reads its images in it
# and makes its result in it. `inside` are the names of the nodes that run in the machine's order. The inputs of the
# graph arrive in the file's order, and its outputs leave in it. A value that anybody wants in the other order than it
# is made in is **transformed**, once for all who want it. Weights are constant: they cost nothing. Write
# `transform_bytes(graph, inside)`: the bytes that all transforms move.
#
# `images(node)` below are the values that a node reads in its order. Beside what stands in 6.4, `graph.inputs` are the
# inputs, `graph.output_names` the names of the outputs, and `value.type.nbytes` is a size.
#
# <details><summary>Hint</summary>
#
# Walk over the values, not over the nodes. A transform is a kernel: what does it do with the tensor?
#
# </details>

# %% nbgrader={"grade_id": "ex06-5-specification", "locked": true}
MACHINE_ONLY = ("Conv",)
EITHER = ("Add", "Mul", "Relu", "Sigmoid")


def images(node) -> tuple[Value, ...]:
    """What a node reads in its order: all inputs of an elementwise node, and the first one of any other."""
    return node.uses if node.op in EITHER else node.uses[:1]


# %% nbgrader={"grade_id": "ex06-5", "solution": true}
def transform_bytes(graph: Graph, inside: tuple[str, ...]) -> int:
    """Bytes that the transforms between the two orders move.

    >>> transform_bytes(given.graph, ())
    0
    """
    ### BEGIN SOLUTION
    made_inside = dict.fromkeys(graph.inputs, False)
    for node in graph.nodes:
        made_inside[node.output] = node.output.name in inside
    nbytes = 0
    for value, here in made_inside.items():
        wanted = {node.output.name in inside for node in graph.nodes if value in images(node)}
        if value.name in graph.output_names:
            wanted.add(False)
        if (not here) in wanted:
            nbytes += 2 * value.type.nbytes
    return nbytes
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex06-5-check", "grade": true, "points": 2}
check("6.5", transform_bytes)
### BEGIN HIDDEN TESTS
ex06.grade("6.5", transform_bytes)
### END HIDDEN TESTS

# %% [markdown]
# ## 6.6 · Where transforms stand (3 points)
#
# A `Conv` exists in the machine's order only. Elementwise nodes (`EITHER` above) exist in both. A `MatMul` works along
# rows as the file has them: it stays outside. Write `place_transforms(graph)`: the names of all nodes that should run
# in the machine's order, so that the transforms move the fewest bytes there are. It is compared with the minimum cut
# of labkit; neither transforms around each Conv nor one layout wherever it goes will do. `is_beaten` compares
# two choices by your count of 6.5: no other one beats a right answer.
#
# <details><summary>Hint 1</summary>
#
# Only the elementwise nodes are free. How many ways are there to put them on one of two sides?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `itertools.product((False, True), repeat=n)` gives them all. Count each as in 6.5.
#
# </details>


# %% nbgrader={"grade_id": "ex06-6-specification", "locked": true}
def is_allowed(graph: Graph, inside: list[str]) -> bool:
    """Whether each node runs in an order in which it exists."""
    ops = {node.output.name: node.op for node in graph.nodes}
    return all(op in EITHER or (op in MACHINE_ONLY) == (name in inside) for name, op in ops.items())


def is_beaten(graph: Graph, inside: list[str], other: list[str]) -> bool:
    """The specification: the other choice is allowed, and this one is not, or moves more bytes by your count."""
    if not (is_allowed(graph, inside) and is_allowed(graph, other)):
        return is_allowed(graph, other)
    return transform_bytes(graph, tuple(other)) < transform_bytes(graph, tuple(inside))


assert is_allowed(given.graph, [node.output.name for node in given.graph.nodes if node.op == "Conv"])
assert not is_allowed(given.graph, [node.output.name for node in given.graph.nodes])


# %% nbgrader={"grade_id": "ex06-6", "solution": true}
def place_transforms(graph: Graph) -> list[str]:
    """Names of the nodes that run in the machine's order.

    >>> inside = place_transforms(given.graph)
    >>> all(node.output.name in inside for node in given.graph.nodes if node.op == "Conv")
    True
    >>> any(node.output.name in inside for node in given.graph.nodes if node.op == "MatMul")
    False
    """
    ### BEGIN SOLUTION
    from itertools import product

    fixed = {node.output.name for node in graph.nodes if node.op in MACHINE_ONLY}
    free = [node.output.name for node in graph.nodes if node.op in EITHER]
    values = [(value, "") for value in graph.inputs] + [(node.output, node.output.name) for node in graph.nodes]
    readers = {
        value.name: [node.output.name for node in graph.nodes if value in images(node)]
        + [""] * (value.name in graph.output_names)
        for value, _ in values
    }
    best = None
    for sides in product((False, True), repeat=len(free)):
        inside = fixed | {name for name, side in zip(free, sides, strict=True) if side}
        nbytes = 0
        for value, maker in values:
            if any((name in inside) != (maker in inside) for name in readers[value.name]):
                nbytes += 2 * value.type.nbytes
        if best is None or nbytes < best[0]:
            best = nbytes, inside
    return sorted(best[1])
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex06-6-check", "grade": true, "points": 3}
check("6.6", place_transforms)
### BEGIN HIDDEN TESTS
ex06.grade("6.6", place_transforms)
### END HIDDEN TESTS

# %% [markdown]
# ## 6.7 · Within the budget (4 points, open)
#
# SRAM is dear: it takes much of a chip's area. Which is the smallest that will do for ResNet-50? It may move at most
# `budget_bytes` for each image. The machine is one of the presets; you choose its SRAM out of `sizes_kib` (KiB of 1024
# bytes), a level of `optimize`, and whether small tensors may stay on chip between kernels. It is counted like this:
#
# | call | does |
# |---|---|
# | `machine = replace(hardware, sram_bytes=…)` | the machine with another SRAM |
# | `optimize(graph, level, machine).graph` | the network, rewritten; "none", "basic", "extended", "layout" |
# | `found = schedule(network, machine)` | each kernel at its best tiles; SramOverflow when one does not fit |
# | `found.dram_bytes` | what they move, re-loads included |
# | `reside(found, network).schedule.dram_bytes` | the same when small tensors stay on chip |
#
# Write `meet_budget(graph, hardware, sizes_kib, budget_bytes)`: level, SRAM in KiB, and True or False for tensors that
# stay. The SRAM must be the smallest with which there is a choice that keeps to the budget. Level "all" is no choice
# here: it saves bytes by computing some rows twice, and this machine has no time for that. `cost` is no help: it counts
# each tensor once, as if the SRAM had no end.
#
# `given.budget` is a small case to begin with: a network of one block, counted below at each level. The check takes
# ResNet-50 at full size, other machines, sizes and budgets. That is a few seconds if you try no more than you need. To
# see what it sees, use a cell of your own:
#
# ```python
# from labkit.zoo import resnet50
#
# meet_budget(resnet50(), Hardware.preset("edge-npu"), (256, 384, 512, 768, 1024), 205_000_000)
# ```
#
# <details><summary>Hint 1</summary>
#
# Try by hand what each level gives at one size, with and without tensors that stay. Which choice is never the worse?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# More SRAM never moves more. So begin with the smallest size, and stop at the first that will do.
#
# </details>

# %% nbgrader={"grade_id": "ex06-7-specification", "locked": true}
print(f"budget {given.budget.budget_bytes:,} bytes, SRAM of {given.budget.sizes_kib} KiB, {given.budget.hardware.name}")
for level in ("none", "basic", "extended", "layout"):
    machine = replace(given.budget.hardware, sram_bytes=given.budget.sizes_kib[-1] * 1024)
    network = optimize(given.budget.graph, level, machine).graph
    print(f"{level:10} {schedule(network, machine).dram_bytes:9,} bytes with the largest")


# %% nbgrader={"grade_id": "ex06-7", "solution": true}
def meet_budget(
    graph: Graph, hardware: Hardware, sizes_kib: tuple[int, ...], budget_bytes: int
) -> tuple[str, int, bool]:
    """Level, SRAM in KiB, and whether tensors stay on chip.

    >>> own = given.budget
    >>> level, sram_kib, resident = meet_budget(own.graph, own.hardware, own.sizes_kib, own.budget_bytes)
    >>> sram_kib in own.sizes_kib
    True
    """

    ### BEGIN SOLUTION
    def moved(sram_kib):
        machine = replace(hardware, sram_bytes=sram_kib * 1024)
        network = optimize(graph, "extended", machine).graph
        return reside(schedule(network, machine), network).schedule.dram_bytes

    sram_kib = next(size for size in sorted(sizes_kib) if moved(size) <= budget_bytes)
    return "extended", sram_kib, True
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex06-7-check", "grade": true, "points": 4}
check("6.7", meet_budget)
### BEGIN HIDDEN TESTS
ex06.grade("6.7", meet_budget)
### END HIDDEN TESTS

# %% [markdown]
# ## Done?
#
# Restart the kernel and run all cells: seven lines must say "right". The command `labkit grade` on this file then says
# the same, with more graphs.
