# %% [markdown]
# # 03 · Fusion: what never has to leave the chip
#
# > **Goal.** After this hour you can count what fusing operators into one kernel saves, in bytes and in launches,
# > say which operators a compiler may put into one kernel and why not others, find the SRAM in which fusing loses,
# > and price a depth-first chain: bytes saved against arithmetic done again. Every number below is counted by the
# > cell above it, not quoted.
#
# | part | minutes |
# |---|---|
# | 1 The round trip | 7 |
# | 2 Fold first | 7 |
# | 3 Two counters | 9 |
# | 4 Who may share a kernel | 10 |
# | 5 Where fusing loses | 10 |
# | 6 A residual comes back | 5 |
# | 7 Depth-first | 9 |
# | Self-check, score and the way on | 3 |
#
# **How to work.** Predict first and write it into the cell. Then run the experiment, compare, and explain the
# difference to your neighbour. A prediction is locked as soon as it is compared; at the end you see your score.

# %%
import numpy as np

from labkit import Hardware, Scratchpad
from labkit.explore import blocks, depth, grouping, ledger, panel, quiz
from labkit.explore.predict import predict, score
from labkit.kernels.conv import conv2d
from labkit.kernels.depth_first import DepthFirst
from labkit.kernels.elementwise import run_fused
from labkit.kernels.fused import Chain, add, batch_norm, relu
from labkit.loops import LoopNest
from labkit.passes.groups import groups
from labkit.problems import ConvShape, matmul
from labkit.units import KIB, MIB, format_bytes, format_seconds

# %% [markdown]
# One machine for the whole lesson: an NPU with 512 KiB of SRAM. `large` is for the projector.

# %%
machine = panel.show()
machine

# %% [markdown]
# ## 1 · The round trip
#
# Most convolutional networks repeat one pattern: a convolution (Conv), a batch normalisation (BN: scale and shift each
# channel), a ReLU (the larger of x and 0). A **kernel** is a program that the machine starts once; starting it is a
# **launch**. When each operator is a kernel of its own, the next one finds its input where the last one left it: in
# DRAM.
#
# **Fusion** makes one kernel of several operators. The tile of the convolution's output is still on the chip when BN
# and ReLU are applied to it, and only the result is stored.
#
# **Predict.** The tensors have 64 channels of 56×56 float32. How many bytes has one of them? How many bytes of DRAM
# traffic does fusion save, and how many launches?

# %%
my_chain = predict("Conv, BN and ReLU in one kernel", tensor_bytes=None, saved_bytes=None, saved_launches=None)

# %% [markdown]
# **Experiment.** Both versions really run, by the same tiles, on a simulated memory that counts each byte.

# %%
rng = np.random.default_rng(0)
channels, size = 64, 56
x = rng.standard_normal((1, channels, size, size), dtype=np.float32)
w = rng.standard_normal((channels, channels, 3, 3), dtype=np.float32) / 24
scale, shift, mean = rng.standard_normal((3, 1, channels, 1, 1), dtype=np.float32)
variance = rng.uniform(0.5, 2, (1, channels, 1, 1)).astype(np.float32)
plan = {"tile": {"p": 7}, "halo": "slide", "pads": (1, 1, 1, 1)}  # strips of 7 rows; what two strips share stays

ops = [batch_norm(scale, shift, mean, variance), relu()]
apart, fused = Scratchpad("512KiB"), Scratchpad("512KiB")
y_apart = conv2d(x, w, apart, ops=ops, fused=False, **plan)
y_fused = conv2d(x, w, fused, ops=ops, fused=True, **plan)

print(f"{'tensor':14}{'apart':>12}{'fused':>12}   bytes")
names = {name: None for pad in (apart, fused) for name in pad.ledger.by("value")}
for name in names:
    bytes_of = [pad.ledger.by("value")[name].nbytes if name in pad.ledger.by("value") else 0 for pad in (apart, fused)]
    print(f"{name:14}{bytes_of[0]:12,}{bytes_of[1]:12,}")
print(f"{'all':14}{apart.ledger.traffic.nbytes:12,}{fused.ledger.traffic.nbytes:12,}")
print(f"{'launches':14}{apart.launches:12}{fused.launches:12}")
print("the same result, bit for bit:", np.array_equal(y_apart, y_fused))

# %% [markdown]
# **Compare.**

# %%
saved = apart.ledger.traffic.nbytes - fused.ledger.traffic.nbytes
my_chain.compare(tensor_bytes=x.nbytes, saved_bytes=saved, saved_launches=apart.launches - fused.launches)
print(f"{x.nbytes:,} bytes = {format_bytes(x.nbytes)}; saved {saved:,} bytes = {format_bytes(saved)}")

# %% [markdown]
# **Explain.** Two tensors lie between three kernels: `Y`, which the convolution makes, and `bn_out`. Each is written
# once and read once. Fused, they never exist in DRAM. Nothing else changes: image, weights and result move as before.

# %% [markdown]
# ## 2 · Fold first
#
# You will read that fusing Conv, BN and ReLU saves both tensors. Before you thank fusion for it: BN multiplies and
# adds *constants*, channel by channel, and so does a convolution. Put BN's scale into the weights and its shift into
# the bias, once, before the network runs. Then BN is gone, without any fusion. This is called **folding** (lesson 04
# proves it, and says when it is wrong).
#
# **Predict.** BN is folded, Conv and ReLU stay two kernels. How many bytes does that save against three kernels? And
# how many more does fusing these two then save?

# %%
my_fold = predict("folding and fusion", folding=None, then_fusing=None)

# %% [markdown]
# **Experiment.**

# %%
factor = scale / np.sqrt(variance + np.float32(1e-5))
w_folded = w * factor.reshape(-1, 1, 1, 1)
bias = (shift - mean * factor).ravel()

folded, both = Scratchpad("512KiB"), Scratchpad("512KiB")
y_folded = conv2d(x, w_folded, folded, bias, ops=[relu()], fused=False, **plan)
y_both = conv2d(x, w_folded, both, bias, ops=[relu()], fused=True, **plan)
versions = {"apart": apart, "folded": folded, "fused": fused, "folded, fused": both}
for name, pad in versions.items():
    print(f"{name:14}{pad.ledger.traffic.nbytes:12,} bytes, {pad.launches} launches")
print("the same result, up to rounding:", np.allclose(y_folded, y_apart, atol=1e-4))

# %% [markdown]
# **Compare.**

# %%
traffic = {name: pad.ledger.traffic.nbytes for name, pad in versions.items()}
my_fold.compare(folding=traffic["apart"] - traffic["folded"], then_fusing=traffic["folded"] - traffic["folded, fused"])

# %% [markdown]
# **Explain.** Half of what is credited to fusion is folding's. Where do the last few hundred bytes come from?

# %%
intermediate = 2 * x.nbytes
print(f"one tensor, written and read: {intermediate:,} bytes")
print(f"folding saves {traffic['apart'] - traffic['folded'] - intermediate} bytes more:", end=" ")
print(f"BN's four vectors are {4 * channels * 4} bytes, the bias is {channels * 4}")

# %% [markdown]
# A compiler folds before it fuses. So say which version you compare with: the saving of "fusion" is one number against
# three kernels, and half of it against a graph that was folded. And all of it presumes that the tensors between
# kernels have to leave the chip. On a chip whose memory holds a whole one of them, a compiler may leave it there.

# %%
for name in Hardware.presets():
    sram = Hardware.preset(name).sram_bytes
    print(f"{name:16} {format_bytes(sram):>9} of SRAM: {sram / x.nbytes:5.2f} tensors of {format_bytes(x.nbytes)}")

# %% [markdown]
# ## 3 · Two counters
#
# Bytes and launches are two separate counters. Fusion lowers both, and it depends on the tensor which one you feel. A
# common belief first: "BN and ReLU are nearly free, they compute next to nothing."
#
# **Predict.** Three kernels on this machine. What share of the arithmetic is BN and ReLU, in per cent? What share of
# the time? And what is the arithmetic intensity of each?

# %%
my_free = predict("BN and ReLU", flop_percent=None, time_percent=None, bn_intensity=None, relu_intensity=None)

# %% [markdown]
# **Experiment.** A kernel takes the longer of its transfers and its arithmetic (they overlap), and its launch.

# %%
three = ledger.data(hardware=machine.state.hardware)
for kernel, estimate in zip(three.kernels, three.estimates, strict=True):
    print(
        f"{kernel.name:5} {estimate.flops:12,} FLOP {estimate.dram_bytes:10,} bytes"
        f" {estimate.intensity:8.3f} FLOP/byte {format_seconds(estimate.seconds):>8}"
    )
conv_part, bn_part, relu_part = three.estimates
flops, seconds = (sum(getattr(part, what) for part in three.estimates) for what in ("flops", "seconds"))

# %% [markdown]
# **Compare.**

# %%
my_free.compare(
    flop_percent=100 * (bn_part.flops + relu_part.flops) / flops,
    time_percent=100 * (bn_part.seconds + relu_part.seconds) / seconds,
    bn_intensity=bn_part.intensity,
    relu_intensity=relu_part.intensity,
)

# %% [markdown]
# **Explain.** They are free in FLOP and dear in bytes. Below the ridge, only bytes count.
#
# Now the other counter. **Predict.** Of the time that fusing saves, which part is larger, that of the bytes or that of
# the launches ("bytes" or "launches")? For 64 channels of 56×56, and for 16 channels of 7×7, as at the end of a small
# network.

# %%
my_counter = predict("the larger part of the saving", large_tensor=None, small_tensor=None)

# %% [markdown]
# **Experiment.** See both counters, tensor by tensor and kernel by kernel. Move `version` with the arrow keys, from
# apart to fused and back. Then set the image to 7×7 and channels to 16, and move `launch` in the panel.

# %%
round_trip = ledger.show(machine.state)
round_trip

# %%
print(round_trip.set(version="fused"))

# %%
print(round_trip.set(version="apart", channels=16, size=7))

# %% [markdown]
# **Compare.**

# %%
larger = {}
for name, (c, s) in {"large_tensor": (64, 56), "small_tensor": (16, 7)}.items():
    one, three = (
        ledger.data(channels=c, size=s, version=v, hardware=machine.state.hardware) for v in ("fused", "apart")
    )
    bytes_s, launches_s = three.work_s - one.work_s, three.launch_s - one.launch_s
    larger[name] = "bytes" if bytes_s > launches_s else "launches"
    print(f"{c}×{s}×{s}: bytes {format_seconds(bytes_s)}, launches {format_seconds(launches_s)}")
my_counter.compare(**larger)

# %% [markdown]
# **Explain.** A launch costs the same for every size. Small tensors are fused for the launches, large ones for the
# bytes. A tool that reports only one of the two counters hides half of the reason.
#
# **Your turn.** For which launch cost are both parts equal at 64×56×56? Change it until they are.

# %%
my_launch_us = 10
parts = [ledger.data(version=v, hardware=machine.state.hardware) for v in ("apart", "fused")]
bytes_us = 1e6 * (parts[0].work_s - parts[1].work_s)
launches_us = my_launch_us * (parts[0].launches - parts[1].launches)
print(f"bytes {bytes_us:.0f} µs, launches {launches_us:.0f} µs")

# %% [markdown]
# ## 4 · Who may share a kernel
#
# A compiler sees a graph, not a pattern. Which operators may it put together? What matters is how much of its input an
# operator needs for one tile of its output:
#
# - an **anchor** (Conv, MatMul, a pool with a small window) needs many elements, but its output comes tile by tile.
#   What follows may work on each tile: an **epilogue**. A kernel has at most one anchor, and nothing in the kernel
#   feeds it.
# - an **elementwise** operator (Add, ReLU, BN with constants) needs the element at its own place. It joins what makes
#   its input, if both have the same elements.
# - a **reduction** (a mean over an image) needs a whole **row**: all elements along some axes, here height and width.
#   It joins elementwise operators, no anchor.
# - a kernel must be **convex**: no path may leave it and come back. Otherwise the kernel would wait for somebody who
#   waits for the kernel.
#
# **Predict.** How many kernels do these four graphs need at least, by these rules?
#
# | graph | operators |
# |---|---|
# | residual block | Conv BN ReLU Conv BN, Add of the block's input, ReLU |
# | squeeze and excite | Conv ReLU → mean → Conv ReLU → Conv Sigmoid → Mul with the first ReLU |
# | diamond | Conv → Sigmoid → Mul with the Conv |
# | diamond with a turn | MatMul ReLU → Transpose → Add with the ReLU |

# %%
my_kernels = predict("kernels", residual=None, squeeze=None, diamond=None, turn=None)

# %% [markdown]
# **Experiment.** Choose the graph. Boxes with one number are one kernel. The list says for each arrow that goes through
# DRAM why it has to.

# %%
kernels = grouping.show(machine.state, sram_kib=512)
kernels

# %%
print(kernels.set(name="squeeze and excite"))

# %% [markdown]
# **Compare.**

# %%
counted = {
    name.split()[-1] if "turn" in name else name.split()[0]: len(list(groups(blocks.example(name))))
    for name in ("residual block", "squeeze and excite", "diamond", "diamond with a turn")
}
my_kernels.compare(**counted)

# %% [markdown]
# **Explain.** In both diamonds a value takes two ways to the same reader. In the first one all that stands on both ways
# may join, so the diamond is swallowed whole. In the second the Transpose may not: it reads elements from anywhere. The
# Add then cannot join the ReLU either, though it is elementwise: the way over the Transpose would leave the kernel and
# come back. Squeeze and excite has the same detour, over a mean.

# %%
print(kernels.set(name="diamond with a turn").text.split("\n\n")[-1])

# %% [markdown]
# **Your turn.** Write a graph with an operator that only a detour keeps out. Or change this one so that it needs one
# kernel less.

# %%
mine = blocks.parse("""mine (float[64,64] x, float[64,64] w, float[64,64] v) => (float[64,64] y) {
  a = MatMul(x, w)
  b = Relu(a)
  c = MatMul(b, v)
  y = Add(b, c)
}""")
for nodes in groups(mine):
    print(" ".join(node.op for node in nodes))

# %% [markdown]
# ## 5 · Where fusing loses
#
# Now a belief that sounds like the lesson so far: "the more operators in one kernel, the fewer bytes." A product of
# 512×512×512, and four tensors added to it. One kernel saves four round trips of 1 MiB each way.
#
# **Predict.** The SRAM has 64 KiB. How many kernels move the fewest bytes: 1, 2 or 5?

# %%
my_loss = predict("a product and four sums in 64 KiB", kernels=None)

# %% [markdown]
# **Experiment.** All of it really runs, each version with the best tile of C that fits, and k in steps of 1 (lesson 02
# showed why). In one kernel a tile of the tensor that is added must lie beside the tile of C.

# %%
n, sram_bytes = 512, 64 * KIB
A, B, *others = rng.integers(-2, 3, (6, n, n)).astype(np.float32)
sums = tuple(add(other, f"add{i}", f"r{i}") for i, other in enumerate(others))


def best_chain(ops):
    """The product with these operators fused into it, in the tiles that fit and move the fewest bytes."""
    tiles = {(-(-n // rows), -(-n // columns), 1) for rows in range(1, 17) for columns in range(1, 17)}
    chains = [Chain(LoopNest(matmul(n, n, n), tile, tuple("mnk")), ops) for tile in sorted(tiles)]
    return min((c for c in chains if c.working_set_bytes <= sram_bytes), key=lambda c: c.fused_traffic.nbytes)


one_kernel, two_kernels = Scratchpad(sram_bytes), Scratchpad(sram_bytes)
chain, alone = best_chain(sums), best_chain(())
y_one = chain.run({"A": A, "B": B}, one_kernel, fused=True)
product = alone.run({"A": A, "B": B}, two_kernels, fused=True)
y_two = run_fused(product, sums, two_kernels, tile=(8, n), name="C")

for name, made, pad in (("one kernel", chain, one_kernel), ("two kernels", alone, two_kernels)):
    moved, (tm, tn, _) = pad.ledger.by("value"), made.nest.tile
    inputs = moved["A"].nbytes + moved["B"].nbytes
    print(
        f"{name:12} tile of C {tm}×{tn}: A and B {inputs / MIB:.2f} MiB, all {pad.ledger.traffic.nbytes / MIB:.2f} MiB"
    )
print("equal to NumPy:", np.array_equal(y_one, y_two) and np.array_equal(y_one, A @ B + sum(others)))

# %% [markdown]
# **Compare.** The compiler makes the same comparison. It cuts the chain in every possible way, plans each piece at its
# best tile, and takes the cut that moves the fewest bytes.

# %%
best = grouping.data("product and four sums", "best", 64)
my_loss.compare(kernels=len(best.kernels))
for policy, moved in best.totals.items():
    print(f"{policy:5}{moved / MIB:6.2f} MiB: {grouping.POLICIES[policy]}")

# %% [markdown]
# **Explain.** The epilogue's operand takes room from the tile of C. A smaller tile loads A and B more often, and that
# costs more than the one round trip that is saved. The four sums do go into one kernel: they have no tile to lose. In a
# larger SRAM it turns: move `SRAM` until the graph is one kernel.

# %%
kernels.set(name="product and four sums", policy="best", sram_kib=64)

# %%
print(f"{'SRAM':>9}{'all in one':>12}{'best':>9}   kernels of the best")
for kib in (8, 32, 64, 128, 192, 256, 512):
    state = grouping.data("product and four sums", "best", kib)
    row = "".join(f"{state.totals[policy] / MIB:9.2f}" for policy in ("all", "best"))
    print(f"{format_bytes(kib * KIB):>9}   {row}   {' | '.join(kernel.name for kernel in state.kernels)}")

# %% [markdown]
# So fusion and tiling cannot be decided one after the other. Whether to fuse depends on the tile, and the tile depends
# on what is fused. What a group *may* be, the graph says; what it *should* be, the SRAM says.

# %% [markdown]
# ## 6 · A residual comes back
#
# A **residual block** adds its input to its output. The Add may join the second convolution (part 4). But the input,
# the **skip**, was made long before: it comes from DRAM.
#
# **Predict.** A block Conv BN Add ReLU on 64×56×56, in one kernel. How many bytes does the Add cost, against the block
# without it? How many as a kernel of its own, all kernels apart?

# %%
my_residual = predict("bytes of a residual", one_kernel=None, apart=None)

# %% [markdown]
# **Experiment.**

# %%
print(round_trip.set(block="Conv BN Add ReLU", channels=64, size=56, version="fused"))

# %% [markdown]
# **Compare.**

# %%
cost_of_add = {}
for name, version in (("one_kernel", "fused"), ("apart", "apart")):
    without, with_add = (ledger.data(block, version).ledger.traffic.nbytes for block in ledger.BLOCKS)
    cost_of_add[name] = with_add - without
my_residual.compare(**cost_of_add)

# %% [markdown]
# **Explain.** Fused, the Add still reads its skip once: fusion saves what a kernel *makes*, never what it has to read.
# And the tile of the skip needs room. Where is the SRAM too small for the Add to join?

# %%
kernels.set(name="residual block", policy="best", sram_kib=32)

# %%
for kib in grouping.SRAM_KIB[4:16]:
    state = grouping.data("residual block", "best", kib)
    print(f"{format_bytes(kib * KIB):>7}: {' | '.join(kernel.name for kernel in state.kernels)}")

# %% [markdown]
# ## 7 · Depth-first
#
# Two convolutions are two anchors: the rule of part 4 keeps them apart. But one can run them **depth-first**: a tile of
# the second one's output, and before it just the tile of the tensor between that it needs. That tile is larger by the
# halo (lesson 02). Neighbouring tiles share the halo, and here each of them *computes it again*.
#
# **Predict.** Two 3×3 convolutions on 64×56×56, tiles of 14×14. The tensor between never leaves the chip: how many KiB
# are one write and one read of it? And how much arithmetic is added, in per cent?

# %%
my_depth = predict("depth-first at 14×14", between_kib=None, added_percent=None)

# %% [markdown]
# **Experiment.** First for real.

# %%
shape = ConvShape(1, 64, 56, 56, 64, (3, 3), pads=(1, 1, 1, 1))
w2 = rng.standard_normal((channels, channels, 3, 3), dtype=np.float32) / 24
pair, pad = DepthFirst(shape, shape, (14, 14)), Scratchpad("512KiB")
y_deep = pair.run(x, w, w2, pad)

layers = Scratchpad("512KiB")
by_tile = {"tile": {"p": 14, "q": 14}, "pads": (1, 1, 1, 1)}
y_layers = conv2d(conv2d(x, w, layers, **by_tile), w2, layers, **by_tile)
print(
    "layer by layer",
    format_bytes(layers.ledger.traffic.nbytes),
    "- depth-first",
    format_bytes(pad.ledger.traffic.nbytes),
)
print(f"saved {layers.ledger.traffic.nbytes - pad.ledger.traffic.nbytes:,} bytes, added {pair.extra_flops:,} FLOP")
print("the same result, up to rounding:", np.allclose(y_deep, y_layers, atol=1e-3))

# %% [markdown]
# Now move the tile. Blue is saved, orange is added. Then try strips of the whole width.

# %%
deep = depth.show(machine.state)
deep

# %% [markdown]
# **Compare.**

# %%
my_depth.compare(between_kib=2 * x.nbytes // KIB, added_percent=100 * depth.data(tile=14).extra_share)
print(f"{'tile':>7}{'moved':>13}{'saved':>13}{'added':>9}   room")
for tile in (1, 2, 4, 7, 14, 28, 56):
    state = depth.data(tile=tile)
    moved, saved = state.together.dram_bytes / KIB, state.gain.saved_bytes / KIB
    room = format_bytes(state.pair.working_set_bytes)
    print(f"{tile:3}×{tile:<3}{moved:9,.0f} KiB{saved:9,.0f} KiB{state.extra_share:9.1%}   {room}")

# %% [markdown]
# **Explain.** What is saved is counted against two kernels with the same tiles. It is not just that one round trip:
# apart, the second kernel reads the halo of the tensor between again; together, the windows of the image are larger.
# Small tiles are mostly halo: at 1×1 the windows of the image overlap so much that depth-first moves *more*. Large
# tiles need room: both weights stay on chip, and tiles of two tensors at a time. A strip of the whole width has a halo
# on two sides only. But at equal room it is thin:

# %%
for form, tile in (("square", 18), ("strip", 5)):
    state = depth.data(form=form, tile=tile)
    print(
        f"{form:7} of {tile:2}: {state.together.dram_bytes / KIB:,.0f} KiB moved, {state.extra_share:.1%} added, "
        f"{format_bytes(state.pair.working_set_bytes)} of room"
    )

# %%
print(deep.set(form="strip", tile=5))

# %% [markdown]
# Does it pay? Bytes are saved and FLOP are added, so ask on which side of the ridge the kernels are. A dash stands
# where the tile does not fit into the SRAM.

# %%
print(f"{'machine':16}{'ridge':>7}   times as fast as layer by layer, tiles of 4, 14, 28")
for name in Hardware.presets():
    preset = Hardware.preset(name)
    states = [depth.data(tile=tile, hardware=preset) for tile in (4, 14, 28)]
    ratios = [f"{state.apart_s / state.together.seconds:.2f}" if state.fits else "-" for state in states]
    columns = "".join(f"{ratio:>8}" for ratio in ratios)
    print(f"{name:16}{preset.ridge:7.0f}{columns}   {states[1].together.limit}-bound at 14")

# %% [markdown]
# While a machine waits for its memory, arithmetic done again costs nothing. While it waits for its arithmetic, the
# bytes saved bring nothing, and all the added FLOP are paid. What is faster there all the same owes it to the other
# counter: one launch instead of two. Fewer bytes are not always less time.
#
# **Your turn.** Find the largest loss and the largest gain: choose the machine in the panel, and kernel and tile in the
# explorer.

# %%
print(depth.data(kernel=5, tile=7, hardware=Hardware.preset("dsp")).sentence)

# %% [markdown]
# ## Self-check
#
# Type your answers, then press `check`, or run the cell below. It computes the answers.

# %%
small_versions = ledger.data(channels=32, size=28).versions
small_saved = small_versions["apart"].ledger.traffic.nbytes - small_versions["fused"].ledger.traffic.nbytes
after_folding = ledger.data().versions
left = after_folding["folded"].ledger.traffic.nbytes - after_folding["folded, fused"].ledger.traffic.nbytes
why = {(one, two): reason for one, two, reason in grouping.data("squeeze and excite").cuts}
five = depth.data(kernel=5, tile=8, size=56)
join = next(kib for kib in grouping.SRAM_KIB if len(grouping.data("residual block", "best", kib).kernels) == 2)
check = quiz.show(
    quiz.Question(
        "Conv, BN, ReLU on 32 channels of 28×28 float32: how many bytes does one kernel save against three?",
        small_saved,
        unit="bytes",
        why="Two tensors of 32·28·28·4 bytes, each written and read.",
    ),
    quiz.Question(
        "64×56×56, BN folded already: how many KiB does fusing the ReLU into the Conv save?",
        left // KIB,
        unit="KiB",
        why="One tensor is left between two kernels.",
    ),
    quiz.Question(
        "Squeeze and excite: why is the Mul not in the kernel of the first Conv and ReLU?",
        why["act1", "y"],
        choices=tuple(dict.fromkeys(why.values())),
        why="The way over the mean leaves the kernel and comes back.",
    ),
    quiz.Question(
        "Two 5×5 convolutions depth-first, tiles of 8×8: how many rows of the image does a tile in the middle need?",
        five.windows[0].rows,
        unit="rows",
        why="8 + 4 + 4.",
    ),
    quiz.Question(
        "From which SRAM on, in KiB, on the slider of part 6, does the residual's Add join its convolution?",
        join,
        unit="KiB",
        why="Below, a tile of the skip beside that of the output makes the weights and the image come too often.",
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
# - Between two kernels a tensor is written and read. Fused, it never exists in DRAM.
# - Say what you compare with: half of the classic saving is folding's.
# - Bytes and launches are two counters. Large tensors are fused for the one, small ones for the other.
# - A kernel has one anchor, is elementwise behind it, and convex. A detour keeps out what would fit.
# - An epilogue's operand takes room from the tile. In a small SRAM, fusing moves more bytes. Fusion and tiling are one
#   decision.
# - Depth-first saves the tensor between two convolutions and computes the halo again. It pays below the ridge.
#
# **Exercise 03** asks you to write it yourself: two fused kernels, graded on the bytes they move and on their launches,
# the rule of the groups, and a depth-first pair. Open `exercises/ex03.ipynb`.
#
# The question after that: folding made half of the saving, before anything ran. What else can be computed before the
# network runs, and when is it wrong to? That is lesson 04.
