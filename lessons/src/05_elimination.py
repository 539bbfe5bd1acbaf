# %% [markdown]
# # 05 · Elimination: what nobody needs
#
# > **Goal.** After this hour you can tell by a walk which nodes of a graph are dead, prove that a node does nothing
# > before you remove it, share what is computed twice, say why one sweep of passes is not enough whatever their order,
# > and why the sweeps come to an end. Every number below is counted by the cell above it, not quoted.
#
# | part | minutes |
# |---|---|
# | 1 Dead or alive | 9 |
# | 2 No-ops, each with its proof | 8 |
# | 3 Near no-ops: three beliefs to refute | 9 |
# | 4 Computed twice | 7 |
# | 5 The time machine: orphans come and go | 9 |
# | 6 Does the order matter? | 9 |
# | 7 Why it ends | 6 |
# | Self-check, score and the way on | 3 |
#
# **How to work.** Predict first and write it into the cell. Then run the experiment, compare, and explain the
# difference to your neighbour. A prediction is locked as soon as it is compared; at the end you see your score.

# %%
from dataclasses import replace
from itertools import permutations

import numpy as np
import onnx

import labkit
from labkit.explore import guards, panel, quiz, reach, timeline
from labkit.explore.predict import predict, score
from labkit.onnx_io import from_model
from labkit.passes.cse import share
from labkit.passes.dead import eliminate_dead
from labkit.passes.measures import described
from labkit.passes.pipeline import MAX_ROUNDS, MEASURES, PASSES, optimize
from labkit.text import diff, to_text
from labkit.units import format_bytes


def parse(text, **constants):
    """A graph from ONNX's text syntax: inputs => outputs { nodes }; the arrays become its constants."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> graph {text}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    return from_model(model)


# %% [markdown]
# One machine for the whole lesson. `large` is for the projector.

# %%
machine = panel.show()
machine

# %% [markdown]
# ## 1 · Dead or alive
#
# A network is a **graph**: its nodes are operator calls, its edges tensors. A **pass** is a function from graph to
# graph. Here is a small classifier as an exporter may leave it. Its only **output**, what a caller gets, is
# `classes`.

# %%
network = reach.example()
print(to_text(network))

# %% [markdown]
# A node is **live** when an output depends on it, directly or through other nodes. Everything else is **dead**: it
# may be removed, and no output can tell.
#
# **Predict.** How many nodes have a result that nobody reads and that is no output? How many nodes are dead?

# %%
my_dead = predict("dead nodes", without_a_reader=None, dead=None)

# %% [markdown]
# **Experiment.** The pass walks backwards, from the last node to the first. Move `looked at` from 0 to the end with
# the arrow keys: each node is judged once, and never again. Then tick another output.

# %%
walk = reach.show(machine.state)
walk

# %%
print(walk.set(looked=3))

# %% [markdown]
# **Compare.**

# %%
lonely = [n for n in network.nodes if not any(network.readers.get(value.name) for value in n.results)]
kept = eliminate_dead(network)
my_dead.compare(without_a_reader=len(lonely), dead=len(network.nodes) - len(kept.nodes))

# %% [markdown]
# **Explain.** `sum` has a reader. So has `bent`, and so has `side`. All the same they are dead, since their readers
# are. Being read is not enough: the reader must be live. A sweep that only removes nodes without a reader has to come
# again and again:

# %%
peeled, sweeps = network, 0
while True:
    left = [n for n in peeled.nodes if any(peeled.readers.get(value.name) for value in n.results)]
    if len(left) == len(peeled.nodes):
        break
    peeled, sweeps = replace(peeled, nodes=tuple(left)), sweeps + 1
    print(f"sweep {sweeps}: {len(left)} nodes left")
print("the walk backwards from the outputs: 1 sweep,", len(kept.nodes), "nodes left")

# %% [markdown]
# A node stands behind everything it reads. So whoever walks backwards has met all readers of a node before the node
# itself, and one walk is enough.
#
# What do the dead cost? A runtime that does not look runs them. (onnxruntime drops constants that nobody reads, but
# keeps unreachable branches and runs them: it was measured for this course.)

# %%
costs = [labkit.cost(graph, machine.state.hardware) for graph in (network, kept)]
for name, cost in zip(("all nodes", "live nodes"), costs, strict=True):
    print(
        f"{name:10} {cost.launches:2} launches, {format_bytes(cost.dram_bytes):>8} of DRAM traffic, {cost.flops:,} FLOP"
    )

# %% [markdown]
# **Your turn.** Ask for other outputs. With which set is nothing dead? What is dead when you ask for nothing?

# %%
my_outputs = ["training"]  # another set
print(reach.data(outputs=my_outputs).sentence)

# %% [markdown]
# One thing stays even when nobody reads it: an **input**. Inputs and outputs are a contract with the caller, who
# feeds them by name.

# %% [markdown]
# ## 2 · No-ops, each with its proof
#
# A **no-op** is a node whose output *is* its input: same shape, same type, same elements in the same places. As a
# kernel it still costs a launch, and it moves the whole tensor twice: in and out. Exporters love them.
#
# A pass may remove a node when it can **prove** that it is a no-op, from what the graph says:
#
# | node | what has to be proved |
# |---|---|
# | Identity | nothing |
# | Dropout | it does not train, and nobody reads its mask |
# | Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile | output shape = input shape |
# | Slice | every axis from its first to its last element, step 1 |
# | Cast | the type is the one the tensor has |
# | Mul by 1, Add of 0 | the constant is all ones (zeros), and does not enlarge the tensor |
# | Pad | every pad is 0 |
# | Transpose | only axes of length 1 move, and the shape stays |
#
# **Predict.** Of the ten nodes in this chain, how many are left? `n` is a **symbol**: a batch whose size nobody knows
# yet.

# %%
chain = parse(
    """(float[n, 4, 6, 6] x) => (float[n, 4, 6, 6] y) {
  a = Identity(x)
  b = Dropout(a)
  c = Reshape(b, target)
  d = Slice(c, zero, largest, axis)
  e = Slice(d, zero, thousand, axis)
  f = Cast <to: int = 1> (e)
  g = Mul(f, ones)
  h = Pad(g, pads)
  i = Transpose <perm: ints = [0, 1, 2, 3]> (h)
  y = Relu(i)
}""",
    target=np.array([-1, 4, 6, 6]),
    zero=np.array([0]),
    largest=np.array([2**63 - 1]),
    thousand=np.array([1000]),
    axis=np.array([2]),
    ones=np.ones((4, 1, 1), np.float32),
    pads=np.zeros(8, np.int64),
)
my_chain = predict("the chain", nodes_left=None)

# %% [markdown]
# **Experiment.**

# %%
no_ops = PASSES["no-ops"]
print(diff(chain, no_ops(chain)))

# %% [markdown]
# **Compare.**

# %%
my_chain.compare(nodes_left=len(no_ops(chain).nodes))
before, after = (labkit.cost(graph, machine.state.hardware) for graph in (chain, no_ops(chain)))
print(f"an image: {format_bytes(before.dram_bytes)} → {format_bytes(after.dram_bytes)}")
print(f"{before.launches} → {after.launches} launches")

# %% [markdown]
# **Explain.** No proof needed the size of the batch: `n` equals `n`, whatever it is. And both spellings of "up to the
# end" were understood, the largest 64-bit integer and 1000 on an axis of 6. A pass that knows one spelling only
# leaves the other: onnxruntime's Slice elimination takes the largest integer and no other number.

# %% [markdown]
# ## 3 · Near no-ops: three beliefs to refute
#
# You will hear, and read: *Dropout is a no-op at inference. So is a Reshape, since it moves nothing. So is ×1.* Each is
# nearly true.
#
# **Predict.** Which of these does the pass remove? Write `"yes"` or `"no"`.

# %%
NEAR = {
    "mask": parse(
        "(float[2, 3] x) => (float[2, 3] y) { d, mask = Dropout(x) f = Cast <to: int = 1> (mask) y = Add(d, f) }"
    ),
    "mode": parse(
        "(float[2, 3] x, bool training) => (float[2, 3] y) { d = Dropout(x, ratio, training) y = Relu(d) }",
        ratio=np.float32(0.5),
    ),
    "reshape": parse(
        "(float[2, 3] x) => (float[3, 2] y) { d = Reshape(x, target) y = Relu(d) }", target=np.array([3, 2])
    ),
    "ones": parse("(float[3] x) => (float[2, 3] y) { d = Mul(x, k) y = Relu(d) }", k=np.ones((2, 3), np.float32)),
    "pad": parse("(float[3] x) => (float[3] y) { d = Pad(x, pads) y = Relu(d) }", pads=np.array([1, -1])),
    "cast": parse("(float[3] x) => (float[3] y) { i = Cast <to: int = 6> (x) d = Cast <to: int = 1> (i) y = Relu(d) }"),
}
my_near = predict("removed?", mask=None, mode=None, reshape=None, ones=None, pad=None, cast=None)

# %% [markdown]
# **Experiment.**

# %%
removed = {}
for name, graph in NEAR.items():
    optimised = no_ops(graph)
    removed[name] = "yes" if len(optimised.nodes) < len(graph.nodes) else "no"
    print(f"{name:8} {len(graph.nodes)} → {len(optimised.nodes)} nodes")
    for refusal in no_ops.refusals(graph):
        print(f"{'':8} {refusal}")

# %% [markdown]
# **Compare.**

# %%
my_near.compare(**removed)

# %% [markdown]
# **Explain.** Where a rule answers that the node is *nearly* of its kind, it gives a **refusal**: the name of the
# guard and the reason. Where it gives none, the node simply is not of its kind. Now remove them anyway and look:


# %%
def removed_anyway(graph, name):
    """The graph with everything that read ``name`` reading x instead."""
    x = graph.inputs[0]
    return eliminate_dead(replace(graph, nodes=tuple(node.rename({name: x}) for node in graph.nodes)))


x = np.array([-1.5, 0.25, 2.75], np.float32)
for name in ("reshape", "ones", "pad", "cast"):
    graph = NEAR[name]
    feeds = {"x": np.stack([x, x + 1]) if graph.inputs[0].shape == (2, 3) else x}
    right, wrong = (labkit.run(g, feeds)["y"] for g in (graph, removed_anyway(graph, "d")))
    same = right.shape == wrong.shape and np.array_equal(right, wrong)
    print(f"{name:8} right {right.shape} {right.ravel().round(2).tolist()}")
    print(f"{'':8} wrong {wrong.shape} {wrong.ravel().round(2).tolist()}, equal: {same}")

# %% [markdown]
# - **Dropout** has a second output, the mask, and since opset 12 (version 12 of ONNX's operators) an *input* that says
#   whether it trains.
# - A **Reshape** keeps the elements and may change the shape. Then it need not move any, and is no no-op all the same:
#   whoever reads it would meet another shape.
# - **×1** by a constant that is larger than the tensor makes the tensor larger.
# - Equal *shapes* are no proof either: the Pad adds one element in front and takes one from the end.
#
# More of their kind live in the guard zoo of lesson 04. Each circle is what the graph gave, each cross what it gives
# when the node is taken for a no-op. Switch the guard on and off.

# %%
near = guards.show(
    ["order of operands", "broadcast", "same shape", "lossy cast", "inverse permutation", "not a number"]
)
near

# %%
print(near.set(trap="not a number"), "\n")
print(near.set(kind="with NaN"))

# %% [markdown]
# x · 0 is 0 in every school book. It is not when x is NaN or infinite, and no ordinary input shows it.
#
# **Your turn.** Find one more: a node that keeps shape and type, and looks like a no-op. Does the pass fall for it?

# %%
mine = parse("(float[3] x) => (float[3] y) { d = Div(one, x) y = Relu(d) }", one=np.ones(1, np.float32))
print([node.op for node in no_ops(mine).nodes])

# %% [markdown]
# ## 4 · Computed twice
#
# Two nodes with the same operator, the same attributes and the same inputs compute the same. One can stand in for
# both. Compilers call it **common subexpression elimination**; here the pass is `share`.
#
# **Predict.** How many of these seven nodes are left? `plus` is 0 and `minus` is −0. NumPy and every school book say
# that they are equal.

# %%
twins = parse(
    """(float[3] x) => (float[3] e, float[3] f, float[3] s) {
  a = Add(x, k)
  b = Add(k, x)
  c = LeakyRelu(a)
  d = LeakyRelu <alpha: float = 0.01> (b)
  e = Div(c, plus)
  f = Div(d, minus)
  s = Sub(c, d)
}""",
    k=np.ones(3, np.float32),
    plus=np.zeros(3, np.float32),
    minus=-np.zeros(3, np.float32),
)
print("plus equals minus:", np.array_equal(twins.constants["plus"], twins.constants["minus"]))
my_twins = predict("computed twice", nodes_left=None)

# %% [markdown]
# **Experiment.**

# %%
shared = share(twins)
print(to_text(shared))

# %% [markdown]
# **Compare.**

# %%
my_twins.compare(nodes_left=len(shared.nodes))

# %% [markdown]
# **Explain.** x + k and k + x are one (a sum of *three* would not be: its rounding depends on the order). The slope
# that LeakyRelu has when nothing is said is 0.01, so `d` says nothing new. But the two divisions stay:

# %%
for name, value in labkit.run(twins, {"x": np.array([0, 1, 2], np.float32)}).items():
    print(name, value)

# %% [markdown]
# The constants are compared bit by bit, and −0 has another sign bit. `==` is the wrong question: dividing tells them
# apart. (The other way round a NaN is not `==` to itself, and yet the same bits may be shared.)
#
# Random nodes are never shared, equal as they look: two draws are not one draw.

# %%
dice = parse("(float[3] x) => (float[3] y) { a = RandomNormalLike(x) b = RandomNormalLike(x) y = Sub(a, b) }")
print("the same graph object comes back:", share(dice) is dice)

# %% [markdown]
# ## 5 · The time machine: orphans come and go
#
# Now a block in which several passes have something to do. `BatchNormalization` scales and shifts each channel by
# constants; a Conv in front of it can take that up in its weights, which is pass `affine` (lesson 04 proves it).
# `fold` computes now what depends on constants only.

# %%
block = timeline.example()
print(to_text(block))
print(sum(array.nbytes for array in block.constants.values()), "bytes of constants")

# %% [markdown]
# Every step of an optimisation is kept, so we can go forwards and back in time. An **orphan** is a constant that no
# node reads any more.
#
# **Predict.** The passes run in the order `no-ops`, `fold`, `affine`, `share`, `dead`, again and again until nothing
# changes. How many orphans are there right after `fold` has done its work? After `affine`? At the end? And how many
# bytes of constants are there right after `affine`?

# %%
my_orphans = predict(
    "orphans",
    after_fold=None,
    after_affine=None,
    at_the_end=None,
    bytes_after_affine=None,
)

# %% [markdown]
# **Experiment.** Scrub through time with `step`, by mouse or arrow keys. To undo a step, go back. Read the difference
# on the right, `-` for what is gone and `+` for what is new, and watch the constants at the bottom.

# %%
travel = timeline.show(machine.state)
travel

# %%
print(travel.set(step=2))

# %% [markdown]
# **Compare.**

# %%
states = [timeline.data(step=step) for step in range(len(timeline.data().chips))]
held = [sum(array.nbytes for array in state.graph.constants.values()) for state in states]
for state, nbytes in zip(states, held, strict=True):
    print(f"{state.chips[state.step]:10} {len(state.graph.nodes)} nodes, {nbytes:5} B of constants, {state.orphans}")
at = {name: next(s.step for s in states if s.made and s.made.name == name) for name in ("fold", "affine")}
my_orphans.compare(
    after_fold=len(states[at["fold"]].orphans),
    after_affine=len(states[at["affine"]].orphans),
    at_the_end=len(states[-1].orphans),
    bytes_after_affine=held[at["affine"]],
)

# %% [markdown]
# **Explain.** A folded node leaves behind what it read. `affine` does not overwrite weights, it makes new ones:
# somebody else might read the old ones. For a moment the model is *larger* than before. Only `dead` takes the orphans
# away. A pipeline that forgets it ships them in the file.
#
# Why did `affine` do nothing in the first round? Go to the step before `affine` would have run and look who reads
# `c`.

# %%
first_try = timeline.data(step=2).graph
for refusal in PASSES["affine"].refusals(first_try):
    print(refusal)
print("c is read by:", ", ".join(node.output.name for node in first_try.users["c"]))

# %% [markdown]
# `d` is dead. But `affine` asks how often `c` is read, not by whom. Only after `dead` has run is the way free.

# %% [markdown]
# ## 6 · Does the order matter?
#
# Five passes can stand in 5! = 120 orders. You will hear: *with the right order one sweep is enough*. And also:
# *another order gives another network*.
#
# **Predict.** In how many of the 120 orders is everything done after one round? How many rounds does the slowest
# need? How many *different* networks come out when each order repeats until nothing changes?

# %%
my_order = predict("120 orders", done_in_one_round=None, most_rounds=None, different_networks=None)

# %% [markdown]
# **Experiment.** Reorder the passes in the menus above: a pass that you choose for one place swaps with the one that
# stood there. Look for an order that is slow, and one that is fast. Then count them all.

# %%
print(travel.set(first="dead", second="affine", third="fold", fourth="no-ops", fifth="share", step=5))

# %%
orders = [timeline.data(order=order) for order in permutations(timeline.ORDER)]
in_one = [s for s in orders if s.rounds == 1]
networks = {to_text(s.report.graph) + str(sorted(s.report.graph.constants)) for s in orders}
for rounds in sorted({s.rounds for s in orders}):
    print(f"{sum(s.rounds == rounds for s in orders):4} orders need {rounds} rounds")

# %% [markdown]
# **Compare.**

# %%
my_order.compare(
    done_in_one_round=len(in_one), most_rounds=max(s.rounds for s in orders), different_networks=len(networks)
)

# %% [markdown]
# **Explain.** `dead` must run *before* `affine`, to take the second reader away, and *after* it, to take the orphans
# away. No order of five does both in one round. So pipelines repeat their passes until none changes anything: a
# **fixed point**. Here all orders meet in the same one. The order decides how long it takes, not where it ends.
#
# Is that always so? None of these passes hides anything from another. **Fusion** does: it puts nodes into one kernel,
# and the other passes no longer see them. Put it first, last in the round, or after the others have come to rest:

# %%
rested = optimize(block, passes=timeline.ORDER).graph
fused = {
    "fuse first": optimize(block, passes=("fuse", *timeline.ORDER)).graph,
    "fuse last in the round": optimize(block, passes=(*timeline.ORDER, "fuse")).graph,
    "fuse when all rest": optimize(rested, passes=("fuse",)).graph,
}
for name, graph in fused.items():
    labkit.verify(block, graph)
    inside = [node.op for node in graph.nodes[0].steps]
    print(f"{name:23}{labkit.cost(graph, machine.state.hardware).flops:7,} FLOP: {' '.join(inside)}")

# %% [markdown]
# All three are fixed points, all three compute the same, and they are not equally good. Fused first, the kernel
# computes dead nodes for ever. That is why a **level** of optimisation has phases: the first must come to rest before
# the next begins.
#
# **Your turn.** Put `fuse` into the menus and see where it hides what.

# %%
print(timeline.show(order=("fuse", "dead", "affine"), step=1))

# %% [markdown]
# ## 7 · Why it ends
#
# Repeat until nothing changes: what if something always changes? A loop ends when some number gets smaller each time
# and cannot fall below 0. Each pass has such a **measure**: a few counts in order, compared like words in a
# dictionary. The first count that differs decides.
#
# **Predict.** In the order of part 5 the last step, `dead` in round 2, removes no node. Which count falls: `"nodes"`,
# `"edges"` or `"constants"`?

# %%
my_measure = predict("the last step", falls=None)

# %% [markdown]
# **Experiment.**

# %%
for state in states[1:]:
    print(f"{state.chips[state.step]:10} {state.measure}")

# %% [markdown]
# **Compare.**

# %%
last = states[-1]
falls = next(count.__name__ for count in MEASURES[last.made.name] if count(last.graph) < count(last.before))
my_measure.compare(falls=falls)

# %% [markdown]
# **Explain.** Here is a pass that has no measure: it turns the operands of each sum round. It is harmless, the graph
# computes the same, and it never ends. A judge runs it on small graphs and says what is wrong:


# %%
def swap(graph):
    """a + b becomes b + a."""
    nodes = [replace(n, inputs=n.inputs[::-1]) if n.op == "Add" else n for n in graph.nodes]
    return replace(graph, nodes=tuple(nodes)) if any(n.op == "Add" for n in graph.nodes) else graph


tiny = parse("(float[3] a, float[3] b) => (float[3] y) { y = Add(b, a) }")
print("counts of a step:", described(MEASURES["share"], tiny, swap(tiny)))
print(labkit.check_pass(swap, tiny).findings[0])

# %% [markdown]
# **Your turn.** Repair it: sums in alphabetical order would be good, since `share` could then compare them as they
# are. What number does a pass make smaller that swaps only operands in the wrong order?


# %%
def in_order(graph):
    """a + b, the names in alphabetical order."""
    return graph  # yours


print(labkit.check_pass(in_order, tiny))

# %% [markdown]
# Measures have a limit: each says that *one* pass ends. Two passes that undo each other go on for ever, although each
# would end alone. So labkit gives up after some rounds, and names the passes that are to blame:

# %%
print("rounds at most:", MAX_ROUNDS, "- names, where there is one, the pass whose measure did not fall")

# %% [markdown]
# onnxruntime stops after 10 steps without a word (measured for this course), so its result need not be a fixed point.

# %% [markdown]
# ## Self-check
#
# Type your answers, then press `check`, or run the cell below. It computes the answers.

# %%
only_probe = reach.data(outputs=["probe"])
two_paths = parse("(float[3] x) => (float[3] y) { a = Relu(x) b = Relu(x) c = Neg(a) d = Neg(b) y = Add(c, d) }")
ones_small = parse("(float[2, 3] x) => (float[2, 3] y) { d = Mul(x, k) y = Relu(d) }", k=np.ones((1, 1), np.float32))
dead_only = optimize(block, passes=("dead",)).graph
folded = optimize(block, passes=("fold",)).graph
check = quiz.show(
    quiz.Question(
        "The classifier of part 1 is asked for `probe` only. How many of its nodes are live?",
        list(only_probe.marks.values()).count("live"),
        unit="nodes",
        why="probe, act and stem.",
    ),
    quiz.Question(
        "a = Relu(x), b = Relu(x), c = Neg(a), d = Neg(b), y = c + d. How many nodes are left after one sweep of "
        "share?",
        len(share(two_paths).nodes),
        unit="nodes",
        why="b goes first; then d reads a and is c's twin, in the same sweep.",
    ),
    quiz.Question(
        "x has shape 2×3. Is Mul by ones of shape 1×1 a no-op?",
        "yes" if len(no_ops(ones_small).nodes) == 1 else "no",
        choices=("yes", "no"),
        why="It does not enlarge x.",
    ),
    quiz.Question(
        "Only `dead` runs on the block of part 5. How many of its 9 nodes are left?",
        len(dead_only.nodes),
        unit="nodes",
        why="d and e go.",
    ),
    quiz.Question(
        "Only `fold` runs on that block. How many of the constants are orphans then?",
        len(timeline.orphans(folded)),
        unit="constants",
        why="variance and spread, whose sum is a constant now.",
    ),
)
check

# %%
check.reveal()

# %% [markdown]
# ## Your score
#
# All predictions of this lesson, and the self-check, as you made them.

# %%
score()

# %% [markdown]
# ## Summary
#
# - Live is what an output depends on. One walk backwards finds it; being read is not enough.
# - A no-op goes only with a proof: shape, type and places of the elements stay. Dropout, Reshape and ×1 are no-ops
#   only sometimes.
# - Equal nodes are shared, equal meaning *to the bit*; random ones never are.
# - Passes make work for each other: folding makes orphans, elimination takes away what blocks folding. No order of ours
#   does it in one round.
# - Repeat to a fixed point. What hides nodes, like fusion, waits for a phase of its own.
# - It ends because each pass makes a measure smaller, as long as no two undo each other.
#
# **Exercise 05** asks you to write the walk, the proofs of the no-ops, the sharing and the loop to the fixed point, and
# then to clean up a cluttered network as far as you can. Open `exercises/ex05.ipynb`.
#
# The question after that: what does all of it do to a real network, pass by pass? Lesson 06 takes ResNet-50.
