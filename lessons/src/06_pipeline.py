# %% [markdown]
# # 06 · The pipeline: a real network, pass by pass
#
# > **Goal.** After this hour you can read what an optimiser did to a network, say which pass made which saving and
# > why, prove that the network still computes the same, and tell on which machine the saving matters. Every number
# > below is counted by the cell above it, not quoted.
#
# | part | minutes |
# |---|---|
# | 1 The network as a graph | 5 |
# | 2 What it costs, operator by operator | 8 |
# | 3 Eight passes, switched on and off | 10 |
# | 4 Levels: fused, laid out, tiled | 11 |
# | 5 Three networks, and yours | 9 |
# | 6 Order, orphans and the fixed point | 5 |
# | 7 Is it still the same network? | 5 |
# | 8 The machine decides what it is worth | 4 |
# | Self-check, score and the way on | 3 |
#
# **How to work.** Predict first and write it into the cell. Then run the experiment, compare, and explain the
# difference to your neighbour. A prediction is locked as soon as it is compared.

# %%
from collections import Counter
from dataclasses import replace

import numpy as np

import labkit
from labkit import Hardware, NotEquivalent, zoo
from labkit.explore import beside, panel, pipeline, quiz
from labkit.explore import network as networks
from labkit.explore.predict import predict, score
from labkit.passes.pipeline import LEVELS, PASSES
from labkit.units import format_bytes, format_count, format_seconds

# %% [markdown]
# ## 1 · The network as a graph
#
# A compiler sees a network as a **graph**: nodes are operator calls, edges are tensors. Here is ResNet-50 as it
# ships with ONNX, with weights drawn so that a wrong rewrite shows in the outputs.

# %%
clean = zoo.resnet50()
print("input      ", *clean.inputs)
print("output     ", *clean.outputs)
print("nodes      ", len(clean.nodes))
print("constants  ", len(clean.constants), "arrays,", format_bytes(sum(a.nbytes for a in clean.constants.values())))
print("operators  ", dict(Counter(node.op for node in clean.nodes)))

# %% [markdown]
# A node knows its inputs and outputs with their types, so a compiler can count without running anything.

# %%
for node in clean.nodes[:5]:
    read = ", ".join(str(value) for value in node.inputs[:2] if value)
    print(f"{node.op:18} reads {read}")
    print(f"{'':18} makes {node.output}")

# %% [markdown]
# Exporters rarely leave a graph this tidy. They leave `Identity` nodes, `Dropout` from training, a `Reshape` to the
# shape a tensor has already, a `Transpose` that the next one undoes, and branches that nobody reads. We sprinkle
# such clutter over the network. It computes the same as before, bit for bit.

# %%
network = zoo.cluttered(clean)
added = Counter(node.op for node in network.nodes) - Counter(node.op for node in clean.nodes)
print(f"{len(clean.nodes)} nodes became {len(network.nodes)}; added: {dict(added)}")

# %% [markdown]
# ## 2 · What it costs, operator by operator
#
# Suppose each node is one kernel. It reads its inputs from DRAM, weights too, and writes its outputs back. Every
# transfer is a line in a ledger, so we can ask the ledger anything. We use a small edge NPU.
#
# **Predict.** Which share of the bytes moves for convolutions, and which share for the nodes that hardly compute at
# all (everything that is neither `Conv` nor `Gemm`, the last layer's matrix product)? Per cent, whole numbers.

# %%
my_shares = predict("share of bytes, percent", products=None, the_rest=None)

# %% [markdown]
# **Experiment.**

# %%
npu = Hardware.preset("edge-npu")
costs = labkit.cost(network, npu)
dram_bytes, flops = Counter(), Counter()
for kernel in costs:
    dram_bytes[kernel.node.op] += kernel.traffic.nbytes
    flops[kernel.node.op] += kernel.estimate.flops

print(npu.summary())
print()
print(f"{'operator':20}{'DRAM':>12}{'share':>8}{'FLOP':>14}{'FLOP/byte':>12}")
for op, nbytes in dram_bytes.most_common():
    share, intensity = nbytes / costs.dram_bytes, flops[op] / nbytes
    print(f"{op:20}{format_bytes(nbytes):>12}{share:>8.1%}{format_count(flops[op]) + 'FLOP':>14}{intensity:>12.3f}")
total = format_bytes(costs.dram_bytes), "100%", format_count(costs.flops) + "FLOP"
print(f"{'all':20}{total[0]:>12}{total[1]:>8}{total[2]:>14}{costs.intensity:>12.3f}")

# %% [markdown]
# **Compare.**

# %%
products = round(100 * (dram_bytes["Conv"] + dram_bytes["Gemm"]) / costs.dram_bytes)
my_shares.compare(products=products, the_rest=100 - products)

# %% [markdown]
# **Explain.** Look at the last column. A `BatchNormalization` does two operations for each element and moves eight
# bytes for it; a `Relu` does one. An `Identity`, `Dropout` or `Transpose` computes nothing and still moves the whole
# tensor twice. These nodes sit far below the ridge of every machine, so their time is the time of their bytes.
#
# Bytes are one counter. **Launches** are another: each node starts a kernel, which costs a fixed time whatever the
# size of the tensor. Removing a node saves both.

# %% [markdown]
# ## 3 · Eight passes, switched on and off
#
# | pass | what it removes | why that is allowed |
# |---|---|---|
# | `no-ops` | Identity, inference Dropout, Reshape to the same shape | the output *is* the input |
# | `merges` | two nodes in a row that one can do: Transposes, Slices, Clips, scales | the pair computes the same |
# | `fold` | nodes whose inputs are all constant, shapes that are known | their result never changes |
# | `affine` | BatchNormalization, or a number a channel, next to weights | s·(W·x + b − μ) + β is again a Conv |
# | `share` | a node that computes what another one has | same inputs, same operator, not random |
# | `transposes` | a Transpose moves on until it meets its inverse | elementwise work has no axes |
# | `pads` | a Pad goes into the window behind it, or out of the way | a window pads by itself |
# | `dead` | what no output depends on | nobody reads it |
#
# `affine` is often called constant folding. It is not: the Conv depends on the input. It is algebra, and what it
# folds is only the arithmetic between the weights and the statistics.
#
# **Predict.** How many nodes are left when all eight have done their work? Which pass alone saves the most bytes?

# %%
my_nodes = predict("after all passes", nodes=None, best_pass=None)

# %% [markdown]
# **Experiment.** Switch the passes. Each row of the table is one pass that changed something. The plot shows where
# the network stands on the roofline, before and after. The panel changes the machine, and table and plot follow.

# %%
machine = panel.show()
machine

# %%
explorer = pipeline.show(network, machine.state)
explorer

# %% [markdown]
# The same switches can be moved from code. Here only the no-ops go:

# %%
print(explorer.set(merges=False, transposes=False, pads=False, fold=False, affine=False, share=False, dead=False))

# %% [markdown]
# And here everything but `affine`:

# %%
print(explorer.set(merges=True, transposes=True, pads=True, fold=True, share=True, dead=True))

# %% [markdown]
# **Compare.** Each pass alone, on the cluttered network:

# %%
saved = {}
for name in PASSES:
    alone = pipeline.data(network, [name], npu).report
    saved[name] = costs.dram_bytes - alone.costs[-1].dram_bytes
    removed = len(network.nodes) - len(alone.graph.nodes)
    print(f"{name:10}{removed:>5} nodes{format_bytes(saved[name]):>12} of DRAM traffic")

report = labkit.optimize(network, hardware=npu)
print()
my_nodes.compare(nodes=len(report.graph.nodes), best_pass=max(saved, key=saved.get))

# %% [markdown]
# **Explain.** `transposes`, `pads`, `fold` and `share` find nothing here: this network was written in one layout, its
# convolutions pad by themselves, its weights are plain arrays, and it computes nothing twice. In networks from other
# exporters `fold` removes many nodes.
#
# `affine` removes one BatchNormalization for each Conv. Its saving is exact: every one of them would have read its
# input, its four parameters, and written its output. The Conv gains a bias, which it reads. Alone it misses some pairs:
# clutter stands between the two, or somebody else reads the Conv.

# %%
explorer.set(affine=True)
print(report.table())

# %% [markdown]
# ## 4 · Levels: fused, laid out, tiled
#
# The eight passes are the level `basic`. The levels above it put further passes behind them:
#
# | level | adds | lesson |
# |---|---|---|
# | `basic` | the eight passes | 04, 05 |
# | `extended` | kernels fused around at most one anchor, where the SRAM has room | 03 |
# | `layout` | kernels in the machine's order of axes, transforms where they move least | 01 |
# | `all` | pairs of kernels run depth-first, where that pays | 02, 03 |
#
# From here on each kernel is also **tiled**: it runs at the tiles and the loop order that move the fewest bytes in
# this SRAM (lesson 02). So these bytes are not quite those of part 2, where each tensor moved exactly once: a tile may
# come again, and a 1×1 convolution of stride 2 leaves out the rows that it never reads. Times differ, too. The roofline
# of part 3 lets transfers and arithmetic overlap; with `single` buffers they take turns, so their times add up.
#
# **Predict.** "The higher the level, the fewer bytes." Is that so from each level to the next? Write `True` or `False`
# for each step.

# %%
my_levels = predict("fewer bytes than the level before", basic=None, extended=None, layout=None, all=None)

# %% [markdown]
# **Experiment.** Every bar is one kernel, in running order: above the network as it is, below the optimised one, on
# the same scale. Change the level. Then go back to the panel in part 3 and pull its SRAM down: the whole network is
# fused and tiled anew at each step of the slider. `tiles in` leaves the tiles only a part of the SRAM.

# %%
whole = networks.show(machine.state)
whole

# %%
print(whole.set(level="extended"))
print()
print(whole.set(level="layout"))

# %% [markdown]
# **Compare.**

# %%
scheduled = {level: networks.data("ResNet-50, cluttered", level, npu).ends[1] for level in LEVELS}
print(f"{'level':10}{'kernels':>8}{'DRAM':>12}{'FLOP':>14}{'time':>10}")
for level, found in scheduled.items():
    flop, time = format_count(found.flops) + "FLOP", format_seconds(found.time_s)
    print(f"{level:10}{len(found.nodes):>8}{format_bytes(found.dram_bytes):>12}{flop:>14}{time:>10}")
print()
pairs = zip(scheduled, list(scheduled)[1:], strict=False)
my_levels.compare(**{level: scheduled[level].dram_bytes < scheduled[last].dram_bytes for last, level in pairs})

# %% [markdown]
# **Explain.** `layout` moves *more*. This machine's kernels want NHWC, the file is NCHW, so a transform must stand
# somewhere. Which one it is, the next cell says. Nothing in a ledger of bytes pays that back: what it buys is that the
# kernels exist at all. A pass that adds traffic can be right, and only a count tells you how much it adds. Behind
# `layout` the eight passes run once more, since transforms may make work for them.
#
# Look at the bars at the right end, before and after. Fusion removed activations. It cannot remove weights: each of
# them has to come once, and in the last layers there is nearly nothing else left.

# %%
laid_out = networks.data("ResNet-50, cluttered", "layout", npu)
for node in laid_out.report.graph.nodes:
    if node.op == "Transpose":
        print("transform:", node.inputs[0], "→", node.output)
print()
print(whole.set(level="all").state.table)

# %% [markdown]
# **Your turn.** How much smaller may the SRAM become before fusing loses its effect? Move `SRAM` and read the third
# line. The menu `kernels` makes the other experiment: kernels fused for 512 KiB, and then run in less.

# %%
for sram_kib in (512, 128, 64):
    _ = machine.set(sram_kib=sram_kib)
    print(whole)
    print()

# %%
_ = machine.set(sram_kib=32)
print(whole.set(level="extended"))
print()
print(whole.set(kernels="fused once, tiled anew"))
print()
print(whole.set(level="all"))

# %% [markdown]
# What was fused for a large SRAM moves more in a small one than what was fused for the small one, or does not fit. A
# compiler that fuses must know the machine. Back to kernels that fit: first with tiles in a part of the SRAM only, then
# with two buffers for each input, so that the next tile comes while this one is in work.

# %%
_ = machine.set(preset="edge-npu")
print(whole.set(kernels="fused for this SRAM", share=4))
print()
print(whole.set(share=1, buffers="double"))
_ = whole.set(buffers="single")

# %% [markdown]
# ## 5 · Three networks, and yours
#
# ResNet-50 is one shape of network. Two others:
#
# - **MobileNetV2** works in inverted bottlenecks: a 1×1 convolution widens, a depthwise one filters each channel for
#   itself, a 1×1 convolution narrows. It was made to need few FLOP.
# - A **U-Net** goes down and up again, with skips in between. Ours was exported with the *heads* that its training
#   needed: outputs at each resolution that nothing reads any more.
#
# **Predict.** A belief: "a network with a tenth of the FLOP is ten times as fast." ResNet-50 needs how many times the
# FLOP of MobileNetV2? And how many times its time on the edge NPU, both at level `all`? One decimal.

# %%
my_ratio = predict("ResNet-50 against MobileNetV2, level all", flop=None, time=None)

# %% [markdown]
# **Experiment.**

# %%
final = {}
print(f"{'network':24}{'level':6}{'kernels':>8}{'DRAM':>11}{'FLOP':>13}{'FLOP/byte':>11}{'time':>10}")
for name in networks.NETWORKS:
    for level in ("none", "all"):
        final[name] = found = networks.data(name, level, npu).ends[1]
        cells = format_bytes(found.dram_bytes), format_count(found.flops) + "FLOP"
        intensity = found.flops / found.dram_bytes
        row = f"{len(found.nodes):>8}{cells[0]:>11}{cells[1]:>13}{intensity:>11.2f}{format_seconds(found.time_s):>10}"
        print(f"{name:24}{level:6}{row}")

# %% [markdown]
# **Compare.**

# %%
resnet, mobile = final["ResNet-50, cluttered"], final["MobileNetV2"]
my_ratio.compare(flop=round(resnet.flops / mobile.flops, 1), time=round(resnet.time_s / mobile.time_s, 1))

# %% [markdown]
# **Explain.** Both stand far below the ridge of this machine: most of their time is that of their bytes. A depthwise
# convolution has few FLOP for each byte, and its activations are wide. That is why fusing, and running pairs
# depth-first, does so much for MobileNetV2: the wide tensor in the middle of a bottleneck need not leave the chip.

# %%
print(whole.set(network="MobileNetV2").state.table)

# %% [markdown]
# Now the U-Net. Its dead heads are branches that end nowhere. The table says which pass takes them, and how many nodes
# they were.

# %%
print(whole.set(network="U-Net with dead heads", level="basic").state.table)

# %% [markdown]
# **Beside the production optimisers.** Do they find the same? Whatever is installed here runs when you press the
# button (onnxruntime, onnxsim, onnxslim, onnxscript). One rule counts them all: each node reads each of its inputs
# once and writes its outputs once, no tiles. Compare the nodes at the two levels called `basic`, and look for the dead
# heads.

# %%
rivals = beside.show("U-Net with dead heads")
rivals

# %% [markdown]
# **Your turn: a network of your own.** Press `open .onnx` in part 4 and choose a file of up to 8 MiB; of a larger one
# type the path (a browser sends no more at once). A file that is no network is no crash:

# %%
print(whole.set(path="01_layouts.ipynb"))

# %%
_ = whole.set(network="ResNet-50, cluttered", level="all")

# %% [markdown]
# ## 6 · Order, orphans and the fixed point
#
# Follow the column `constants` of the last table in part 3. After the first `affine` it is larger than before: new
# weights have come, and the old ones and the old statistics are still there, though nobody reads them. They are
# **orphans**. `dead` removes them, and nothing else would.
#
# Follow the column `round`. `affine` works in the second round too. Why? Find the pair that it could not see in the
# first one.

# %%
second = next(step for step in report.steps if step.name == "affine" and step.round == 2)
before = report.steps[report.steps.index(second) - 1].graph
left = [node for node in before.nodes if node.op == "BatchNormalization"]
for node in left:
    feeder = before.producers[node.inputs[0].name]
    readers = Counter(user.op for user in network.users[feeder.output.name])
    print(f"{node.output.name}: behind {feeder.op}; in the original network that result is read by {dict(readers)}")

# %% [markdown]
# The convolutions in question had a second reader: the dead branch. As long as somebody else reads the result of the
# Conv, its weights must not be scaled. Only when `dead` had removed that branch was the way free.
#
# So a pipeline cannot be one sweep. It repeats its passes until none of them changes anything, the **fixed point**.
# Does the order within a round matter for the result?
#
# **Predict.** The eight passes in reverse order: how many nodes are left, and in how many rounds does something change?

# %%
my_reverse = predict("eight passes in reverse", nodes=None, rounds=None)

# %% [markdown]
# **Experiment.**

# %%
orders = (list(PASSES), list(reversed(PASSES)), ["affine", "dead", "no-ops", "merges"])
others = [labkit.optimize(network, hardware=npu, passes=order) for order in orders]
for order, other in zip(orders, others, strict=True):
    moved = format_bytes(other.costs[-1].dram_bytes)
    print(f"{len(other.graph.nodes)} nodes, {moved} after {other.steps[-1].round} rounds of {', '.join(order)}")

# %% [markdown]
# **Compare.**

# %%
my_reverse.compare(nodes=len(others[1].graph.nodes), rounds=others[1].steps[-1].round)

# %% [markdown]
# **Explain.** All end with as many nodes, which move as many bytes. The number of rounds is not the same: an order in
# which each pass finds what the one before it prepared arrives sooner.

# %% [markdown]
# ## 7 · Is it still the same network?
#
# A pass must not be believed, it has to be checked. `verify` runs both networks on drawn inputs: ordinary ones, all
# negative ones, zeros of both signs, numbers so small that they are denormal, and inputs with NaN and infinities
# strewn in.

# %%
verdict = labkit.verify(network, report.graph)
print("inputs drawn                              ", verdict.inputs)
print("largest difference below 1/10,000 of scale", verdict.max_rel < 1e-4)

# %% [markdown]
# The difference is not zero, and it cannot be. Scaling the weights first rounds in another place than scaling the
# result. It has the size of float32's rounding, gathered over all layers.
#
# **Predict.** Will `verify` notice when one single weight, the largest of the first layer, is wrong by a tenth of its
# value: `True` or `False`? (We try it on the small residual network, which is checked sooner.)

# %%
my_verdict = predict("one wrong weight", noticed=None)

# %% [markdown]
# **Experiment.**

# %%
small = networks.example("residual, small")
good = labkit.optimize(small).graph
labkit.verify(small, good)  # raises NotEquivalent when it is not the same network

name = good.nodes[0].inputs[1].name
weight = good.constants[name].copy()
weight.flat[np.abs(weight).argmax()] *= 1.1
tampered = replace(good, constants={**good.constants, name: weight})
try:
    labkit.verify(small, tampered)
    noticed = False
except NotEquivalent as error:
    noticed = True
    print("NotEquivalent, at", str(error).split(":")[0])

# %% [markdown]
# **Compare.**

# %%
my_verdict.compare(noticed=noticed)

# %% [markdown]
# **Why not?** Every rewrite has guards. Where the pattern is there and a guard forbids it, the report says which one
# spoke. Here the result of the first Conv becomes an output of the network as well, as a debugging tap would make it:

# %%
conv = clean.nodes[0]
tapped = replace(clean, outputs=(*clean.outputs, conv.output))
for refusal in labkit.optimize(tapped).refusals:
    print(refusal)

# %% [markdown]
# And here one BatchNormalization is still in training mode, so that it normalises by the statistics of whatever
# batch it is given. Nothing constant can stand in for it.

# %%
training = tuple(
    replace(node, attrs={**node.attrs, "training_mode": 1}) if node is clean.nodes[1] else node for node in clean.nodes
)
careless = labkit.optimize(replace(clean, nodes=training))
print(*careless.refusals, sep="\n")
print("BatchNormalization left:", sum(node.op == "BatchNormalization" for node in careless.graph.nodes))

# %% [markdown]
# ## 8 · The machine decides what it is worth
#
# **Predict.** On which of the presets does the level `all` help most, as a factor of time?

# %%
print("machines:", ", ".join(Hardware.presets()))
my_machine = predict("where level all helps most", machine=None)

# %% [markdown]
# **Experiment.**

# %%
faster = {}
print(f"{'machine':16}{'ridge':>8}{'SRAM':>10}{'before':>11}{'after':>11}{'faster':>9}")
for name in Hardware.presets():
    hardware = Hardware.preset(name)
    old, new = networks.data("ResNet-50, cluttered", "all", hardware).ends
    faster[name] = old.time_s / new.time_s
    row = f"{format_bytes(hardware.sram_bytes):>10}{format_seconds(old.time_s):>11}{format_seconds(new.time_s):>11}"
    print(f"{name:16}{hardware.ridge:>8.1f}{row}{faster[name]:>8.2f}×")

# %% [markdown]
# **Compare.**

# %%
my_machine.compare(machine=max(faster, key=faster.get))

# %% [markdown]
# **Explain.** Three things of a machine count: how large its SRAM is (what may be fused, and how often tiles come
# back), where its ridge lies (how much of the time is that of the bytes), and what a launch costs. Move the panel in
# part 3 and watch both explorers: choose another machine, then pull its bandwidth down.

# %%
print(machine.set(preset="datacentre-gpu"))
print(whole)
print()
print(machine.set(bandwidth_gb_s=100))
print(whole)
_ = machine.set(preset="edge-npu")  # and back, for the next person at the panel

# %% [markdown]
# These times assume that every kernel moves at the full bandwidth and computes at the peak, one kernel after another,
# and that only fused kernels keep anything on the chip.

# %% [markdown]
# ## Self-check
#
# Type your answers, then press `check`, or run the cell below. It computes the answers.

# %%
steps = report.to_dict()["steps"]
first_dead = next(i for i, step in enumerate(steps) if step["pass"] == "dead")
orphans = steps[first_dead - 1]["constant_bytes"] - steps[first_dead]["constant_bytes"]
feature_map = clean.nodes[0].output.type
dead = networks.data("U-Net with dead heads", "basic", npu)
removed = {step.name: len(step.graph.nodes) for step in dead.report.steps}
check = quiz.show(
    quiz.Question(
        "How many BatchNormalization nodes are left in ResNet-50 at level basic?",
        sum(node.op == "BatchNormalization" for node in report.graph.nodes),
        unit="nodes",
        why="Their arithmetic is in the weights and biases of the convolutions.",
    ),
    quiz.Question(
        "How many whole MiB of orphaned constants does the first `dead` remove?",
        orphans // 2**20,
        unit="MiB",
        why="`affine` made new weights; the old ones and the statistics were left behind.",
    ),
    quiz.Question(
        f"How many KiB does one Identity on the first feature map ({feature_map}) move?",
        2 * feature_map.nbytes // 1024,
        unit="KiB",
        why="It reads all of it and writes all of it, at 0 FLOP/byte.",
    ),
    quiz.Question(
        "How many nodes of the U-Net does `dead` remove?",
        removed["affine"] - removed["dead"],
        unit="nodes",
        why="Three heads of a Conv and a Sigmoid each: nothing reads them.",
    ),
    quiz.Question(
        "Does the optimiser find anything to do in its own result?",
        "no" if labkit.optimize(report.graph).graph is report.graph else "yes",
        choices=("yes", "no"),
        why="It stopped at a fixed point: it gives back the very same graph.",
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
# - An optimiser removes nodes because each node moves bytes and costs a launch.
# - Folding BatchNormalization is algebra on weights, valid at inference, with one reader, and constant weights.
# - Passes make work for each other, so they repeat until nothing changes.
# - A level is no promise of fewer bytes: `layout` adds a transform, and is right all the same.
# - Fewer FLOP are not as much less time: below the ridge the bytes decide.
# - A rewrite is trusted because it is verified, and left out when a guard says no.
#
# **Exercise 06** asks what a rewrite is worth and which pass did it, for a pass of your own, and for a network that
# keeps to a budget of bytes. Open `exercises/ex06.ipynb`.
#
# The question after that: what does your own network cost? In a terminal:
# `labkit optimize your_model.onnx -o smaller.onnx --level all --verify`.
