# %% [markdown]
# # 06 · The pipeline: a real network, pass by pass
#
# > **Goal.** After this hour you can read what an optimiser did to a network, say which pass made which saving and
# > why, prove that the network still computes the same, and tell on which machine the saving matters. Every number
# > below is counted by the cell above it, not quoted.
#
# | part | minutes |
# |---|---|
# | 1 The network as a graph | 8 |
# | 2 What it costs, operator by operator | 10 |
# | 3 Seven passes, switched on and off | 14 |
# | 4 Order, orphans and the fixed point | 8 |
# | 5 Is it still the same network? | 8 |
# | 6 Why not? Guards that say no | 6 |
# | 7 The machine decides what it is worth | 4 |
# | Self-check and the way on | 2 |
#
# **How to work.** Predict first and write it into the cell. Then run the experiment, compare, and explain the
# difference to your neighbour. A prediction is locked as soon as it is compared.

# %%
from collections import Counter
from dataclasses import replace

import numpy as np

import labkit
from labkit import Hardware, NotEquivalent, zoo
from labkit.explore import panel, pipeline
from labkit.explore.predict import predict
from labkit.passes.pipeline import PASSES
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
# all (everything that is neither `Conv` nor `Gemm`)? Percent, whole numbers.

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
# ## 3 · Seven passes, switched on and off
#
# | pass | what it removes | why that is allowed |
# |---|---|---|
# | `no-ops` | Identity, inference Dropout, Reshape to the same shape | the output *is* the input |
# | `merges` | two nodes in a row that one can do: Transposes, Clips, a Pad and a Conv | the pair computes the same |
# | `transposes` | a Transpose moves on until it meets its inverse | elementwise work has no axes |
# | `fold` | nodes whose inputs are all constant, shapes that are known | their result never changes |
# | `affine` | BatchNormalization, or a number a channel, next to weights | s·(W·x + b − μ) + β is again a Conv |
# | `share` | a node that computes what another one has | same inputs, same operator, not random |
# | `dead` | what no output depends on | nobody reads it |
#
# `affine` is often called constant folding. It is not: the Conv depends on the input. It is algebra, and what it
# folds is only the arithmetic between the weights and the statistics.
#
# **Predict.** How many nodes are left when all seven have done their work? Which pass alone saves the most bytes?

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
print(explorer.set(merges=False, transposes=False, fold=False, affine=False, share=False, dead=False))

# %% [markdown]
# And here everything but `affine`:

# %%
print(explorer.set(merges=True, transposes=True, fold=True, share=True, dead=True))

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
# **Explain.** `transposes`, `fold` and `share` find nothing here: this network was written in one layout, its weights
# are plain arrays, and it computes nothing twice. In networks from other exporters `fold` removes hundreds of nodes.
#
# `affine` removes one BatchNormalization for each Conv. Its saving is exact: every one of them would have read its
# input, its four parameters, and written its output. The Conv gains a bias, which it reads.

# %%
explorer.set(affine=True)
print(report.table())

# %% [markdown]
# ## 4 · Order, orphans and the fixed point
#
# Follow the column `constants`. After the first `affine` it is larger than before: new weights have come, and the
# old ones and the old statistics are still there, though nobody reads them. They are **orphans**. `dead` removes
# them, and nothing else would.
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

# %%
for order in (list(PASSES), list(reversed(PASSES)), ["affine", "dead", "no-ops", "merges"]):
    other = labkit.optimize(network, passes=order)
    print(f"{len(other.graph.nodes)} nodes after {other.steps[-1].round} rounds of {', '.join(order)}")

# %% [markdown]
# The fixed point is the same. The number of rounds is not: an order in which each pass finds what the one
# before it prepared arrives sooner.

# %% [markdown]
# ## 5 · Is it still the same network?
#
# A pass may not be believed, it has to be checked. `verify` runs both networks on drawn inputs: ordinary ones, all
# negative ones, zeros of both signs, numbers so small that they are denormal, and inputs with NaN and infinities
# strewn in.

# %%
verdict = labkit.verify(network, report.graph)
print("inputs drawn                              ", verdict.inputs)
print("largest difference below 1/10,000 of scale", verdict.max_rel < 1e-4)

# %% [markdown]
# The difference is not zero, and it cannot be. Scaling the weights first rounds in another place than scaling the
# result. It stays within a few units of the last place of float32, summed over fifty layers.
#
# **Predict.** Will `verify` notice when one single weight in the first layer is wrong by a tenth of its value?

# %%
my_verdict = predict("one wrong weight", noticed=None)

# %%
first = report.graph.nodes[0]
weight = report.graph.constants[first.inputs[1].name].copy()
weight.flat[np.abs(weight).argmax()] *= 1.1
tampered = replace(report.graph, constants={**report.graph.constants, first.inputs[1].name: weight})
try:
    labkit.verify(network, tampered)
    noticed = False
except NotEquivalent as error:
    noticed = True
    print("NotEquivalent, at", str(error).split(":")[0])
my_verdict.compare(noticed=noticed)

# %% [markdown]
# ## 6 · Why not? Guards that say no
#
# Every rewrite has guards. Where the pattern is there and a guard forbids it, the report says which one spoke. Here
# the result of the first Conv becomes an output of the network as well, as a debugging tap would make it:

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
# ## 7 · The machine decides what it is worth
#
# The bytes that are gone are the same everywhere. What they are worth in time is not: it depends on the bandwidth,
# on the cost of a launch, and on which side of the ridge the kernels stand.

# %%
print(f"{'machine':16}{'ridge':>8}{'before':>12}{'after':>12}{'faster':>9}")
for name in Hardware.presets():
    hardware = Hardware.preset(name)
    there = report.on(hardware)
    old, new = there.costs[0].time_s, there.costs[-1].time_s
    print(f"{name:16}{hardware.ridge:>8.1f}{format_seconds(old):>12}{format_seconds(new):>12}{old / new:>8.2f}×")

# %% [markdown]
# Move the panel in part 3: choose another machine, then halve its bandwidth. The same choice can be made in code:

# %%
print(machine.set(preset="datacentre-gpu"))
print(explorer.state.sentence)
print()
print(machine.set(bandwidth_gb_s=100))
print(explorer.state.sentence)
_ = machine.set(preset="edge-npu")  # and back, for the next person at the panel

# %% [markdown]
# These times assume that every kernel reaches its roof and that nothing stays on the chip between two kernels.
# Fusion and tiling, the subjects of lessons 02 and 03, are what real compilers do about both.

# %% [markdown]
# ## Self-check
#
# Answer each in one sentence, then run the cell.
#
# 1. How many BatchNormalization nodes are left, and where did their arithmetic go?
# 2. How many bytes of orphaned constants does the first `dead` remove?
# 3. How many bytes does one `Identity` on the first feature map cost, and at which intensity?
# 4. How many kernel launches did the optimiser save, and how much time is that on the edge NPU?
# 5. Does the optimiser find anything to do in its own result?

# %%
steps = report.to_dict()["steps"]
first_dead = next(i for i, step in enumerate(steps) if step["pass"] == "dead")
feature_map = clean.nodes[0].output.type
launches = costs.launches - report.costs[-1].launches
print(
    "1.", sum(node.op == "BatchNormalization" for node in report.graph.nodes), "left; it is in the weights and biases"
)
print("2.", format_bytes(steps[first_dead - 1]["constant_bytes"] - steps[first_dead]["constant_bytes"]))
print("3.", format_bytes(2 * feature_map.nbytes), "for", feature_map, "at 0 FLOP/byte")
print("4.", launches, "launches,", format_seconds(launches * npu.launch_s))
print("5.", "no" if labkit.optimize(report.graph).graph is report.graph else "yes")

# %% [markdown]
# ## Summary
#
# - An optimiser removes nodes because each node moves bytes and costs a launch.
# - Folding BatchNormalization is algebra on weights, valid at inference, with one reader, and constant weights.
# - Passes make work for each other, so they repeat until nothing changes.
# - A rewrite is trusted because it is verified, and left out when a guard says no.
#
# **Try it on a network of your own.** In a terminal: `labkit optimize your_model.onnx -o smaller.onnx --verify`.
