# %% [markdown]
# # 04 · Folding: work that need not wait for the input
#
# > **Goal.** After this hour you can say which part of a graph can be computed before anybody feeds it, prove on
# > numbers that a convolution takes up the normalisation behind it, break each guard of that rewrite and recognise
# > the wrong output, and say when folding makes a model larger instead of faster. Every number below is counted by
# > the cell above it, not quoted.
#
# | part | minutes |
# |---|---|
# | 1 A subgraph of constants | 8 |
# | 2 Conv + BatchNormalization, by hand | 10 |
# | 3 Is it folding? | 5 |
# | 4 What it is worth | 7 |
# | 5 The guard zoo | 12 |
# | 6 Your own pass before the judge | 6 |
# | 7 Folding that bloats a file | 9 |
# | Self-check, score and the way on | 3 |
#
# **How to work.** Predict first and write it into the cell. Then run the experiment, compare, and explain the
# difference to your neighbour. A prediction is locked as soon as it is compared; at the end you see your score.

# %%
import numpy as np
import onnx

import labkit
from labkit.explore import bloat, guards, hasty, panel, quiz, roofline
from labkit.explore.predict import predict, score
from labkit.onnx_io import from_model, to_model
from labkit.passes.pipeline import PASSES, optimize
from labkit.text import diff, to_text
from labkit.units import KIB, MIB, format_bytes

rng = np.random.default_rng(0)


def parse(text, **constants):
    """A graph from ONNX's text syntax: inputs => outputs { nodes }; the arrays become its constants."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> graph {text}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    return from_model(model)


def numbers(*shape):
    """Random float32 from 0.5 to 1.5."""
    return rng.uniform(0.5, 1.5, shape).astype(np.float32)


# %% [markdown]
# One machine for the whole lesson. `large` is for the projector.

# %%
machine = panel.show()
machine

# %% [markdown]
# ## 1 · A subgraph of constants
#
# A **constant** of a graph is an array that is stored in the file: a weight, a shape, a number. A node all of whose
# inputs are constants gives, as a rule, the same result in every inference. It can be run once, by the compiler, and
# its result stored in its place. This is **constant folding**, and the compiler needs nothing for it but an
# interpreter.
#
# It is often put like this: *any* subgraph with constant inputs can be folded. Look at this graph. It has an input
# `x` of unknown batch size `n`, an input `gain`, and three arrays in the file: `log_scale`, `shift`, and a value for
# `gain`, which is that input's **default**.

# %%
graph = parse(
    """(float[n, 8] x, float[8] gain) => (float[n, 8] y) {
  a = Exp(log_scale)
  b = Sub(a, shift)
  c = Mul(x, b)
  d = Mul(b, gain)
  e = RandomNormalLike(b)
  f = Add(c, d)
  y = Add(f, e)
}""",
    log_scale=numbers(8),
    shift=numbers(8),
    gain=numbers(8),
)
print(to_text(graph))
print("constants:", ", ".join(graph.constants))

# %% [markdown]
# **Predict.** How many of the seven nodes does the pass `fold` compute in advance? And `d` and `e`: `"folded"` or
# `"refused"`?

# %%
my_fold = predict("constant subgraph", folded=None, d=None, e=None)

# %% [markdown]
# **Experiment.**

# %%
fold = PASSES["fold"]
folded = fold(graph)
print(diff(graph, folded), "\n")
refusals = list(fold.refusals(folded))
print(*refusals, sep="\n")

# %% [markdown]
# **Compare.**

# %%
refused = {refusal.node for refusal in refusals}
my_fold.compare(
    folded=len(graph.nodes) - len(folded.nodes),
    d="refused" if "Mul 'd'" in refused else "folded",
    e="refused" if "RandomNormalLike 'e'" in refused else "folded",
)

# %% [markdown]
# **Explain.** `a` is folded, and with it `b`, in one sweep. `c` waits for the input. The other two are the exceptions
# from "any":
#
# - `gain` has a value in the file, and is an input all the same. Since version 4 of ONNX's file format such a value is
#   only a default: the caller may feed another. Folding `d` would take that right away.
# - `e` draws anew in every inference. Folded, the dice would fall once and for ever. (So would a Dropout that trains.)
#
# A third exception is the subject of part 7.

# %% [markdown]
# ## 2 · Conv + BatchNormalization, by hand
#
# Most convolutional networks normalise after each convolution. With the statistics of training, mean μ and variance
# σ², and the learned γ and β, all of them one number a **channel**, `BatchNormalization` at inference is
#
# BN(y) = γ · (y − μ) / √(σ² + ε) + β
#
# where ε is a small number against division by 0. Put y = W·x + b, a convolution, into it, and collect what belongs
# to x: with **s = γ / √(σ² + ε)**
#
# BN(W·x + b) = **(s·W)** · x + **(s·(b − μ) + β)**
#
# That is a convolution again, with weights W' = s·W and bias b' = s·(b − μ) + β.
#
# **Predict.** A Conv without bias and its BatchNormalization have five constants. How many has the new Conv? In
# float32, is its output equal to the old one to the bit: `"yes"` or `"no"`? And one channel by pencil: γ = 3, σ² + ε
# = 4, μ = 2, β = 1, W·x = 6, no bias. What comes out?

# %%
my_algebra = predict("Conv + BN", constants=None, equal_to_the_bit=None, one_channel=None)

# %% [markdown]
# **Experiment.** First by hand, with NumPy. `conv` is a convolution and nothing else.

# %%
x = rng.standard_normal((1, 4, 12, 12)).astype(np.float32)
W, gamma, beta, mean, var = numbers(8, 4, 3, 3), numbers(8), numbers(8), numbers(8), numbers(8)
eps = 1e-5


def conv(x, W, b):
    """Valid convolution of one image: windows times weights, summed."""
    windows = np.lib.stride_tricks.sliding_window_view(x[0], W.shape[2:], axis=(1, 2))
    return np.einsum("cpqij,ocij->opq", windows, W) + b[:, None, None]


def bn(y, gamma, beta, mean, var):
    """BatchNormalization at inference."""
    gamma, beta, mean, var = (v[:, None, None] for v in (gamma, beta, mean, var))
    return gamma * (y - mean) / np.sqrt(var + np.asarray(eps, y.dtype)) + beta


for dtype in (np.float32, np.float64):
    W_, x_, g_, b_, m_, v_ = (array.astype(dtype) for array in (W, x, gamma, beta, mean, var))
    s = g_ / np.sqrt(v_ + dtype(eps))
    two_nodes = bn(conv(x_, W_, np.zeros(8, dtype)), g_, b_, m_, v_)
    one_node = conv(x_, s[:, None, None, None] * W_, s * (0 - m_) + b_)
    relative = np.abs(two_nodes - one_node).max() / np.abs(two_nodes).max()
    same = "yes" if np.array_equal(two_nodes, one_node) else "no"
    print(f"{dtype.__name__}: equal to the bit: {same}; apart by less than 1e-5 of the largest: {relative < 1e-5}")
    print(f"{'':9}less than 1e-13: {relative < 1e-13}")

# %% [markdown]
# Then the same with the pass. Its name here is `affine`: a map that only scales and shifts is called affine.

# %%
block = parse(
    """(float[1, 4, 12, 12] x) => (float[1, 8, 10, 10] n) {
  c = Conv(x, W)
  n = BatchNormalization(c, gamma, beta, mean, var)
}""",
    W=W, gamma=gamma, beta=beta, mean=mean, var=var,
)  # fmt: skip
absorbed = optimize(block, passes=("affine", "dead")).graph
print(to_text(absorbed))
old, new = (labkit.run(g, {"x": x})["n"] for g in (block, absorbed))
s = gamma / np.sqrt(var + eps)
print("the pass made s·W:", np.allclose(absorbed.constants["W_folded"], s[:, None, None, None] * W, rtol=1e-6))
print(
    "and s·(0 − μ) + β:", np.allclose(absorbed.constants["W_folded_bias"], s * (0 - mean) + beta, rtol=1e-5, atol=1e-6)
)
print("outputs agree but for rounding:", np.allclose(old, new, rtol=1e-4, atol=1e-4))

# %% [markdown]
# **Compare.**

# %%
by_pencil = 3 / np.sqrt(4) * (6 - 2) + 1
same = "yes" if np.array_equal(old, new) else "no"
my_algebra.compare(constants=len(absorbed.constants), equal_to_the_bit=same, one_channel=float(by_pencil))

# %% [markdown]
# **Explain.** The algebra is exact for real numbers. Floats round after each operation, and s·W is rounded once more
# before it meets x. The difference has the size of rounding: in float64 it all but vanishes. So two things have to be
# kept apart when you test a rewrite: a difference of rounding, which is allowed, and a difference of meaning.
# `labkit.verify` draws that line, on ordinary and on nasty inputs:

# %%
labkit.verify(block, absorbed)
print("verified: no difference but rounding")

# %% [markdown]
# The Conv had no bias, so one was created. And W itself was copied, not overwritten. Why? Wait for part 5.

# %% [markdown]
# ## 3 · Is it folding?
#
# Nearly everybody calls this "BatchNorm folding" and lists it under constant folding. (onnxruntime lists it among its
# fusions.)
#
# **Predict.** How many nodes of the block does `fold` remove? How many does `affine`?

# %%
my_name = predict("Conv + BN: which pass?", fold=None, affine=None)

# %% [markdown]
# **Experiment.**

# %%
removed = {name: len(block.nodes) - len(PASSES[name](block).nodes) for name in ("fold", "affine")}
print(removed)
print("fold gives back the very same graph:", fold(block) is block)

# %% [markdown]
# **Compare.**

# %%
my_name.compare(**removed)

# %% [markdown]
# **Explain.** A pass that folds constants asks: are all inputs of this node constant? The Conv reads x. So does the
# BatchNormalization, through the Conv. There is nothing to fold. What happened is **algebra**: two nodes that depend
# on the input became one that does. What is computed in advance is only s·W and the bias, which come about in the
# course of it.
#
# The difference matters. Folding is right for every operator that gives the same result each time, because the very
# node is run. Algebra is right for *this* operator, in *this* mode, with *these* readers. Algebra needs guards.

# %% [markdown]
# ## 4 · What it is worth
#
# A layer as in ResNet: 64 channels, 56×56 pixels, a 3×3 convolution, BatchNormalization, ReLU. Each node is one
# kernel that reads from DRAM and writes back.
#
# **Predict.** How many KiB less does an inference move when the BatchNormalization is gone? Which share of the FLOP
# goes with it, in per cent?

# %%
print("one tensor of 64×56×56 float32:", format_bytes(64 * 56 * 56 * 4))
my_worth = predict("without BatchNormalization", KiB_saved=None, flop_percent=None)

# %% [markdown]
# **Experiment.** `fuse` is the rival of lesson 03: it keeps the BatchNormalization, but runs it in the same kernel as
# the Conv, while the data is on the chip.

# %%
layer = parse(
    """(float[1, 64, 56, 56] x) => (float[1, 64, 56, 56] y) {
  c = Conv <pads: ints = [1, 1, 1, 1]> (x, W)
  n = BatchNormalization(c, gamma, beta, mean, var)
  y = Relu(n)
}""",
    W=numbers(64, 64, 3, 3),
    **{name: numbers(64) for name in ("gamma", "beta", "mean", "var")},
)
absorbed = optimize(layer, passes=("affine", "dead")).graph
ways = {
    "three kernels": layer,
    "BN absorbed": absorbed,
    "all fused": optimize(layer, passes=("fuse",)).graph,
    "absorbed, then fused": optimize(absorbed, passes=("fuse",)).graph,
}
costs = {name: labkit.cost(g, machine.state.hardware) for name, g in ways.items()}
for name, cost in costs.items():
    moved = f"{cost.launches} launches {format_bytes(cost.dram_bytes):>9}"
    print(f"{name:21}{moved} {cost.flops:12,} FLOP {cost.intensity:6.1f} FLOP/byte")

# %%
line = roofline.show([(name, cost.flops, cost.dram_bytes) for name, cost in costs.items()], machine.state)
line

# %% [markdown]
# **Compare.**

# %%
before, after = costs["three kernels"], costs["BN absorbed"]
my_worth.compare(
    KiB_saved=(before.dram_bytes - after.dram_bytes) / KIB,
    flop_percent=100 * (before.flops - after.flops) / before.flops,
)

# %% [markdown]
# **Explain.** The tensor is read once less and written once less. The FLOP hardly count. Fusion saves these bytes as
# well, and those of the ReLU on top.
#
# You may hear that absorbing is better than fusing, since the computation is gone. Look at the last two lines: once
# there is a kernel for all three, absorbing buys next to nothing here. Its worth lies elsewhere: it needs *no new
# kernel*. Every runtime that has a Conv profits, and one that fuses has to know only Conv + ReLU. The two are not
# rivals. Absorb first, then fuse what depends on the input and cannot be absorbed.

# %% [markdown]
# ## 5 · The guard zoo
#
# The textbook's formula knows nothing of the graph around it. Here are small graphs, each a trap for somebody who
# forgot one question: *who else reads this? who else owns these weights? can the caller change them? what does the
# padding meet?* Beside each stands a **hasty** rewrite, which is right on the graph that its author had in mind.
#
# You test it, of course: with random numbers.
#
# **Predict.** Of all the traps, how many hasty rewrites pass a test with ordinary random inputs? And "shared weight",
# where two Convs use the same weights and only one has a BatchNormalization: does the guarded pass refuse
# (`"refused"`), or does it rewrite (`"rewritten"`)?

# %%
print(len(guards.NAMES), "traps:", ", ".join(guards.NAMES))
my_zoo = predict("the zoo", pass_with_ordinary_inputs=None, shared_weight=None)

# %% [markdown]
# **Experiment.** Choose a trap. Read what was rewritten, and what came out. Then switch the guard on, and read why it
# says no. Then try other inputs: which of them find the fault?

# %%
zoo = guards.show()
zoo

# %%
for trap in ("training mode", "padding", "per channel"):
    print(zoo.set(trap=trap), "\n")

# %%
print(zoo.set(trap="overridable constant"), "\n")
print(zoo.set(kind="defaults fed"))

# %% [markdown]
# All of them at once. A mark stands where inputs of this kind show the fault:

# %%
print(f"{'':22}" + "".join(f"{kind:>14}" for kind in guards.KINDS))
for name in guards.NAMES:
    found = guards.data(name).found_by
    print(f"{name:22}" + "".join(f"{'x' if kind in found else '.':>14}" for kind in guards.KINDS))

# %% [markdown]
# **Compare.**

# %%
hidden = [name for name in guards.NAMES if "normal" not in guards.data(name).found_by]
with_guard = guards.data("shared weight", guard=True)
print("not found by ordinary inputs:", ", ".join(hidden))
my_zoo.compare(
    pass_with_ordinary_inputs=len(hidden),
    shared_weight="refused" if with_guard.refusals else "rewritten",
)

# %% [markdown]
# **Explain.** The first seven are traps for whoever moves a scale or a shift into a Conv. Each is a question that the
# formula does not ask:
#
# - **training mode**: the statistics are those of the batch, not the stored ones. There is nothing constant to absorb.
# - **second reader**, **graph output**: somebody wants the result *before* the normalisation. Overwritten weights
#   give them the one after it.
# - **shared weight**: somebody else uses W, unscaled. Here the pass need not refuse: it makes a copy. That is why W was
#   copied in part 2.
# - **overridable constant**: right until a caller feeds another scale. No test that leaves the defaults alone finds it.
# - **padding**: with the shift in *front* of the Conv, the zeros at the border are not shifted. Moved into the bias, it
#   reaches them.
# - **per channel**: four numbers and four channels prove nothing. By the rules of broadcasting the four numbers lie
#   along the *width*.

# %%
print(zoo.set(trap="shared weight", kind="normal", guard=True))

# %% [markdown]
# **Your turn.** Only the border is wrong in the trap "padding". Where is the largest difference: at a corner, on an
# edge, or inside? Think first; the output has 4 channels of 6×6.

# %%
padding = guards.data("padding").gap("normal")
apart = np.abs(padding.before - padding.after)[0].max(axis=0)
print(apart.round(1))

# %% [markdown]
# ## 6 · Your own pass before the judge
#
# A **pass** is a function from graph to graph. `labkit.check_pass` judges one: it runs it on your graph and on the
# whole zoo, compares outputs, and names each missing guard.
#
# **Predict.** The hasty pass of Conv + BN, in place, with no guard at all: how many findings?

# %%
my_judge = predict("the judge", findings=None)

# %% [markdown]
# **Experiment.**

# %%
verdict = labkit.check_pass(hasty.batch_norm, block)
print(verdict)

# %% [markdown]
# **Compare.**

# %%
my_judge.compare(findings=len(verdict.findings))

# %% [markdown]
# **Explain.** On the block itself nothing is wrong, and a test on the block alone would have been green. Whoever
# writes a rewrite has to think of the graph that it was *not* written for.
#
# **Your turn.** Add guards in front of the hasty rewrite until the judge is content. The first one is there.


# %%
def careful(graph):
    """Conv + BN as one Conv, where nothing forbids it."""
    norms = [node for node in graph.nodes if node.op == "BatchNormalization"]
    if not norms or norms[0].attrs.get("training_mode", 0):
        return graph  # a pass with nothing to do returns the very same graph
    # graph.readers[name] says how often a value is read, graph.input_names what a caller can feed
    return hasty.batch_norm(graph)


print(labkit.check_pass(careful, block))

# %% [markdown]
# ## 7 · Folding that bloats a file
#
# Folding trades work at run time for bytes in the file. Usually these are few. But one node may stand for many bytes:
# `ConstantOfShape` makes a tensor of any size out of its shape and one number. Such a tensor is a **splat**.
#
# **Predict.** y = x + c, where x is 1024×1024 float32 and c a splat. How many MiB is the file after folding without a
# limit? Does folding save DRAM traffic all the same: `"yes"` or `"no"`? And of three forms of c, which one makes the
# file *smaller* when it is folded: `"one number, spread"` (the splat), `"column × row"` (each element of one vector
# times each of another) or `"sums of rows"` (of a table in the file)?

# %%
my_bloat = predict("bloat", MiB=None, saves_traffic=None, smaller=None)

# %% [markdown]
# **Experiment.** Change the constant, the size and the limit. Both scales are logarithmic.

# %%
weight = bloat.show(machine.state)
weight

# %%
print(weight.set(side=1024), "\n")
print(weight.set(form="column × row", side=300, limit_kib=256), "\n")
print(weight.set(form="sums of rows", side=1024))

# %% [markdown]
# **Compare.**

# %%
measured = {form: {name: sizes for name, *sizes in bloat.data(form).measured} for form in bloat.FORMS}
splat = measured["one number, spread"]
shrinks = [form for form, rows in measured.items() if rows["folded, no limit"][0] < rows["as it is"][0]]
my_bloat.compare(
    MiB=splat["folded, no limit"][0] / MIB,
    saves_traffic="yes" if splat["folded, no limit"][1] < splat["as it is"][1] else "no",
    smaller=shrinks[0],
)

# %% [markdown]
# **Explain.** The rule of labkit compares sizes *before* it computes anything: a result may be as large as the inputs
# it replaces, or as large as the limit. Sums of rows are smaller than their table, so there is no question. An outer
# product is much larger than its two vectors: above the limit it is refused.
#
# And the splat? Folded, it saves a launch and the writing of c, and makes the file large. But look at the last bar:
# labkit saves more, and makes the file smaller. The Add **broadcasts**: it can read the one number for each element,
# so nobody need ever spread it.

# %%
shown = bloat.data("one number, spread")
print(to_text(shown.versions[-1].graph))

# %% [markdown]
# How bad can it get? The size of the shape costs nothing:

# %%
for side in (256, 1024, 4096, 16384):
    nodes = f"{{ {bloat.FORMS['one number, spread']} y = Add(x, c) }}"
    splat_graph = parse(f"(float[{side}, {side}] x) => (float[{side}, {side}] y) {nodes}", shape=np.array([side, side]))
    file_bytes, spread = to_model(splat_graph).ByteSize(), splat_graph.nodes[0].output.type.nbytes
    print(f"{side:6}×{side:<6} a file of {file_bytes} B, folded {format_bytes(spread)} more")

# %% [markdown]
# Three well-known optimisers made a file as large as in the third line out of such a graph when they were tried for
# this course.

# %% [markdown]
# ## Self-check
#
# Type your answers, then press `check`, or run the cell below. It computes the answers.

# %%
scaled = parse(
    "(float[1, 4, 6, 6] x) => (float[1, 4, 6, 6] y) { a = Mul(x, k) y = Conv <pads: ints = [1, 1, 1, 1]> (a, w) }",
    k=numbers(4, 1, 1), w=numbers(4, 4, 3, 3),
)  # fmt: skip
shared = parse(
    """(float[1, 4, 6, 6] x) => (float[1, 4, 4, 4] y) {
  a = Conv(x, w) b = BatchNormalization(a, k, k, k, k)
  c = Conv(x, w) d = BatchNormalization(c, l, l, l, l)
  y = Add(b, d)
}""",
    w=numbers(4, 4, 3, 3), k=numbers(4), l=numbers(4),
)  # fmt: skip
own_weights = {node.inputs[1].name for node in labkit.optimize(shared).graph.nodes if node.op == "Conv"}
check = quiz.show(
    quiz.Question(
        "γ = 2, σ² + ε = 4, μ = 1, β = 3, and the Conv has b = 5. What is the new bias?",
        float(2 / np.sqrt(4) * (5 - 1) + 3),
        why="s = 1, so (5 − 1) + 3.",
    ),
    quiz.Question(
        "A Mul by one number a channel stands in FRONT of a Conv that pads. Can the Conv take it up?",
        "yes" if len(labkit.optimize(scaled).graph.nodes) == 1 else "no",
        choices=("yes", "no"),
        why="0 times a scale is 0: only a shift would reach the padding.",
    ),
    quiz.Question(
        "Two Convs share one weight; each has a BatchNormalization of its own behind it. How many weight arrays are "
        "there after the rewrite?",
        len(own_weights),
        unit="arrays",
        why="Each is scaled by its own s.",
    ),
    quiz.Question(
        "A splat of 2048×2048 float32, folded: how many MiB?", 2048 * 2048 * 4 // MIB, unit="MiB", why="2048²·4 bytes."
    ),
    quiz.Question(
        "Which kind of inputs finds a folded constant that a caller may override?",
        guards.data("overridable constant").found_by[0],
        choices=guards.KINDS,
        why="Only another value in its place shows it.",
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
# - What depends on constants only is computed once, in advance. Exceptions: dice, defaults that a caller may override,
#   and results that bloat the file.
# - Conv + BN is algebra, not folding: W' = s·W, b' = s·(b − μ) + β. It is exact but for rounding.
# - It saves one read and one write of the tensor, and a launch. Absorb first, then fuse.
# - A rewrite is right for the graph its author had in mind. Guards make it right for the others: mode, readers, owners,
#   callers, padding, broadcasting.
# - A test with random inputs does not find every missing guard.
# - A limit on size, and reading a splat unspread, keep the file small.
#
# **Exercise 04** asks you to fold constants yourself, to put a BatchNormalization into a Conv with every guard it
# needs, to keep the file small, and to hunt the guard that somebody else's pass lacks. Open `exercises/ex04.ipynb`.
#
# The question after that: `affine` and `fold` leave arrays behind that nobody reads, and a dead branch may keep them
# from doing anything at all. Who cleans up, and when? That is lesson 05.
