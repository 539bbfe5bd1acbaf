# %% [markdown]
# # 02 · Tiling: big tensors through a small window
#
# > **Goal.** After this hour you can derive a tile size from an SRAM, count what a tiled loop nest moves and say why
# > the usual formula is off, tell how far a schedule is from the best possible one, and say what happens when a
# > tile is too large: on a scratchpad, and on a cache. Every number below is counted by the cell above it, not
# > quoted.
#
# | part | minutes |
# |---|---|
# | 1 The naive product | 6 |
# | 2 A tile that fits | 9 |
# | 3 The walk over tiles | 8 |
# | 4 A formula to refute | 9 |
# | 5 The ski slope | 7 |
# | 6 Too large: three memories | 7 |
# | 7 Beat the square | 6 |
# | 8 Tiles of a convolution | 5 |
# | Self-check, score and the way on | 3 |
#
# **How to work.** Predict first and write it into the cell. Then run the experiment, compare, and explain the
# difference to your neighbour. A prediction is locked as soon as it is compared; at the end you see your score.

# %%
from math import isqrt

import numpy as np

from labkit import Hardware, Scratchpad, SramOverflow
from labkit.explore import caches, halo, panel, quiz, tiling, walk
from labkit.explore.predict import predict, score
from labkit.kernels.matmul import naive_matmul, tiled_matmul
from labkit.loops import LoopNest
from labkit.memory.nest_trace import nest_trace
from labkit.memory.reuse import miss_curve
from labkit.problems import matmul
from labkit.search import best_tile, pareto
from labkit.tiling import bounds, largest_square_tile, working_set_bytes
from labkit.units import KIB, MIB, format_bytes

# %% [markdown]
# One machine for the whole lesson: an NPU (a chip for neural networks) with 512 KiB of **SRAM**, the memory on the
# chip. Every explorer below follows this panel. `large` is for the projector.

# %%
machine = panel.show()
machine

# %% [markdown]
# ## 1 · The naive product
#
# C = A · B, three loops: C[m,n] = Σ over k of A[m,k] · B[k,n]. With A of M×K and B of K×N, an element of A is needed N
# times, an element of B M times. A kernel that keeps nothing on the chip but **registers**, the few values it is just
# computing with, fetches it from DRAM each time.
#
# The **arithmetic intensity** of a kernel is its FLOP divided by the bytes it moves between DRAM and chip. A multiply
# and an add are 2 FLOP, a float32 has 4 bytes.
#
# **Predict.** The intensity of the naive product, with the sum kept in a register, and with the sum in memory (read
# and written at each step).

# %%
my_floor = predict("naive product", register=None, memory=None)

# %% [markdown]
# **Experiment.** The kernel really runs, on a simulated memory that counts each byte. Small matrices are enough:
# nothing is reused, so nothing depends on the size but a small rest.

# %%
size = 64
rng = np.random.default_rng(0)
A, B = rng.random((2, size, size), dtype=np.float32)
flops = 2 * size**3
floor = {}
for accumulator in ("register", "memory"):
    pad = Scratchpad("12B")  # room for one element of A, B and C
    C = naive_matmul(A, B, pad, accumulator)
    moved = pad.ledger.traffic.nbytes
    floor[accumulator] = flops / moved
    print(f"sum in a {accumulator:9} {format_bytes(moved):>9} moved, {floor[accumulator]:.3f} FLOP/byte")
print("equal to NumPy's product:", np.allclose(C, A @ B))

# %% [markdown]
# **Compare.**

# %%
my_floor.compare(**floor)

# %% [markdown]
# **Explain.** Each step does 2 FLOP and fetches two elements, 8 bytes: 2 / 8. With the sum in memory another 8 bytes
# move. This is the floor of a product. It is low, but not as low as an elementwise add, which moves 12 bytes for
# *one* FLOP:

# %%
print(f"elementwise add: {1 / 12:.3f} FLOP/byte")
print(f"ridge of {machine.state.hardware.name}: {machine.state.hardware.ridge:.0f} FLOP/byte")

# %% [markdown]
# The **ridge** is the intensity from which this machine is limited by its arithmetic. We are far below.

# %% [markdown]
# ## 2 · A tile that fits
#
# Three matrices of 1024×1024 float32 are 4 MiB each. The SRAM has half a MiB. So we cut each matrix into tiles of
# T×T and keep one tile of A, one of B and one of C on the chip. A tile of A and one of B, once they are here, give T³
# multiply-adds.
#
# **Predict.** With a pencil: the largest T for which three tiles fit into 512 KiB. Then with **double buffering**:
# while the chip works on one tile of A and B, the next ones arrive, so there must be room for them. (How many
# tiles is that?) And last, with two tiles of everything.

# %%
my_tiles = predict("largest T", single=None, double=None, double_all=None)

# %% [markdown]
# **Experiment.** tiles · T² · 4 bytes ≤ SRAM, solved for T.

# %%
sram_bytes = machine.state.hardware.sram_bytes
resident = {"single": 3, "double": 5, "double_all": 6}
largest = {}
for buffers, tiles in resident.items():
    by_hand = isqrt(sram_bytes // (tiles * 4))
    largest[buffers] = largest_square_tile(sram_bytes, itemsize=4, tiles=tiles)
    fits, next_one = (working_set_bytes((T, T, T), 4, buffers) for T in (by_hand, by_hand + 1))
    print(f"{buffers:10} {tiles} tiles: T = {by_hand}, labkit agrees: {by_hand == largest[buffers]}")
    print(f"{'':10} {fits:,} bytes of {sram_bytes:,}; T + 1 would need {next_one:,}")

# %% [markdown]
# **Compare.**

# %%
my_tiles.compare(**largest)

# %% [markdown]
# **Explain.** Double buffering does not need six tiles. The tile of C stays while k runs, so nothing has to arrive
# for it: 2 A + 2 B + C are five. Only a kernel that also stores one C while it begins the next needs six. T = 128
# is a power of two and fits all three:

# %%
for buffers in resident:
    print(f"T = 128, {buffers:10}", format_bytes(working_set_bytes((128, 128, 128), 4, buffers)))

# %% [markdown]
# ## 3 · The walk over tiles
#
# Cutting a loop in two is called **split**, putting loops in another order **reorder**. These are their names in
# TensorIR, the loop language of the compiler TVM. Watch what they do to the program. A `load` stands just inside the
# innermost loop that changes which tile is needed:

# %%
nest = LoopNest.of(matmul(1024, 1024, 1024))
print(nest, "\n")
print(nest.split("m", 128).split("n", 128), "\n")
print(nest.split("m", 128).split("n", 128).split("k", 128))

# %% [markdown]
# **Predict.** In the last program: how many times does a tile of A come from DRAM, in all? A tile of B? How often is
# a tile of C stored?

# %%
my_walk = predict("the walk at T = 128", loads_of_A=None, loads_of_B=None, stores_of_C=None)

# %% [markdown]
# **Experiment.** Move `step` with the arrow keys. Which tile comes at each step, and which one stays? Then change
# `order`: the program on the right changes with it.

# %%
steps = walk.show(machine.state)
steps

# %% [markdown]
# The same controls can be moved from code, and the state can be printed. `#` has just come, `+` stays.

# %%
print(steps.set(step=9))

# %% [markdown]
# **Compare.**

# %%
tiled = nest.split("m", 128).split("n", 128).split("k", 128)
transfers = tiled.by_operand
my_walk.compare(loads_of_A=transfers["A"].reads, loads_of_B=transfers["B"].reads, stores_of_C=transfers["C"].writes)

# %% [markdown]
# **Explain.** An operand is loaded anew for each step of every loop from the outermost one down to the innermost one
# that indexes it. With k innermost, A and B come at every step, and C stays until it is finished. Put another loop
# innermost, and another operand stays:

# %%
print(steps.set(order="mkn", step=9))

# %% [markdown]
# Look at C in this order: its tile leaves before its sum is finished, and comes back for the next k. Such a **spill**
# costs a write and a read.
#
# **Your turn.** Find an order in which B stays and A and C move. Print it.

# %%
my_order = "mnk"  # another one
print(walk.data(order=my_order).nest)

# %% [markdown]
# ## 4 · A formula to refute
#
# A common calculation goes like this. One step of a T×T tile does 2·T³ FLOP. It loads a tile of A and one of B, 2·T²·4
# bytes. So the intensity is 2·T³ / (8·T²) = T/4, for T = 128 that is 32 FLOP/byte, and doubling T doubles it.
#
# **Predict.** Is it 32? Count all bytes: with C stored once; with C loaded, added to and stored (C += A·B); and
# with a kernel that keeps no sum on chip, so that C is read and written at every step.

# %%
my_intensity = predict("intensity at T = 128", store=None, load_store=None, spill=None)

# %% [markdown]
# **Experiment.** A product of 1024×1024×1024, run by tiles. Each transfer is a line in the ledger.

# %%
size, T = 1024, 128
A, B = rng.integers(-2, 3, (2, size, size)).astype(np.float32)
flops = 2 * size**3
counted = {}
for c_policy in ("store", "load_store", "spill"):
    pad = Scratchpad(sram_bytes)
    C = tiled_matmul(A, B, (T, T, T), pad, order="mnk", c_policy=c_policy)
    counted[c_policy] = flops / pad.ledger.traffic.nbytes
    by_tensor = {name: format_bytes(traffic.nbytes) for name, traffic in pad.ledger.by("value").items()}
    print(f"{c_policy:10} {format_bytes(pad.ledger.traffic.nbytes):>8} {by_tensor}: {counted[c_policy]:.2f} FLOP/byte")
print("equal to NumPy's product:", np.array_equal(C, A @ B))

# %% [markdown]
# **Compare.**

# %%
my_intensity.compare(**counted)

# %% [markdown]
# **Explain.** 32 is the intensity of *one step's loads*, not of the product: C is missing. With c·4·M·N bytes for C,
# c = 1 for store and 2 for load and store, the intensity is
#
# T / (4 · (1 + c·T / (2·K)))
#
# and a spill moves C at every step, which makes it T / 8. The formula and the count agree:

# %%
K = size
for c, c_policy in ((1, "store"), (2, "load_store")):
    print(f"{c_policy:10} formula {T / (4 * (1 + c * T / (2 * K))):.4f}, counted {counted[c_policy]:.4f}")
print(f"{'spill':10} formula {T / 8:.4f}, counted {counted['spill']:.4f}")

# %% [markdown]
# Does doubling T double the intensity? Each line is a nest's bytes in closed form, which the tests of this course
# hold equal to the count. The SRAM is left out here on purpose.

# %%
previous = None
for T in (16, 32, 64, 128, 256, 512, 1024):
    moved = tiling.nest_of((1024,) * 3, (T,) * 3, "mnk").traffic.nbytes
    intensity = flops / moved
    growth = f"{intensity / previous:.2f} × the line above" if previous else ""
    print(f"T = {T:4}: {format_bytes(moved):>8} {intensity:7.2f} FLOP/byte  {growth}")
    previous = intensity

# %% [markdown]
# Nearly, while T is small beside K. Later the bytes of C, which no tile can save, take over.
#
# Is 30 FLOP/byte enough? That depends on the machine, so never say "compute-bound" without naming it:

# %%
for name in Hardware.presets():
    ridge = Hardware.preset(name).ridge
    side = "compute" if counted["store"] >= ridge else "memory"
    print(f"{name:16} ridge {ridge:6.1f} FLOP/byte: {side}-bound")

# %% [markdown]
# ## 5 · The ski slope
#
# Tiles and a loop order together are a **schedule**: they say when what is computed. How good is the schedule with
# T = 128? Three lines to measure it by:
#
# - the **floor**: every input comes at least once, the output goes at least once;
# - a **proven bound**: *no* schedule of this product with room for S elements on chip moves fewer than
#   2·M·N·K/√S − 2·S elements (Smith, Lowery, Langou, van de Geijn 2017), whether it uses tiles or not;
# - the **best tile**: of all tiles and orders that fit, the one that moves the fewest bytes.
#
# **Predict.** How many times the bound does T = 128 move, with 512 KiB? And the largest square tile, T = 209?

# %%
my_ratio = predict("times the bound", T_128=None, T_209=None)

# %% [markdown]
# **Experiment.** Move TM. The star is your tile: it stands at the SRAM it needs and the bytes it moves. The solid blue
# line, the ski slope, is the best tile for each SRAM. Can you bring the star down to it? Then move the SRAM in the
# panel.

# %%
slope = tiling.show(machine.state)
slope

# %%
print(slope.set(TM=209))

# %% [markdown]
# **Compare.**

# %%
proven = bounds(matmul(1024, 1024, 1024), sram_bytes)
print("floor:", format_bytes(proven.compulsory_bytes), "- proven bound:", format_bytes(proven.dram_bytes))
times = {f"T_{T}": tiling.data(tile=(T, T, T)).traffic.nbytes / proven.dram_bytes for T in (128, 209)}
my_ratio.compare(**times)

# %% [markdown]
# **Explain.** Two lessons. T = 128 leaves most of the SRAM empty; that costs half as much again as T = 209 moves. And
# T = 209 is still well above the bound, although it fills the SRAM. Its shape is wrong. We come back to that in
# part 7.
#
# The slope ends at the floor. That takes no room for all three matrices: one whole matrix and a strip of each of the
# others are enough. From there on more SRAM buys nothing:

# %%
for point in pareto(matmul(1024, 1024, 1024)).points[-4:]:
    print(f"from {format_bytes(point.sram_bytes):>9} of SRAM on: {format_bytes(point.dram_bytes):>6}")

# %% [markdown]
# ## 6 · Too large: three memories
#
# T = 256 needs 768 KiB. You will hear that the tiles then **thrash**, throw each other out again and again, and that
# the intensity falls to that of the naive product. Before you believe it, ask: *which memory, and which loop order?*
#
# | memory | who decides what is on the chip |
# |---|---|
# | scratchpad | the program: it loads and stores tiles |
# | LRU cache | the hardware: out goes the line that was not used for the longest time (least recently used) |
# | OPT cache | an oracle: out goes the line whose next use is furthest away (Belady 1966); nobody can build it |
#
# **Predict.** With room enough, T = 256 would have 56.89 FLOP/byte. What is left of it in 512 KiB, in order mnk: on
# a scratchpad (0 if it does not run), and on an LRU cache?

# %%
my_memories = predict("T = 256 in 512 KiB", scratchpad=None, lru=None)

# %% [markdown]
# **Experiment.** The scratchpad first.

# %%
scratchpad = Scratchpad(sram_bytes)
try:
    tiled_matmul(A, B, (256, 256, 256), scratchpad)
    left = flops / scratchpad.ledger.traffic.nbytes
except SramOverflow as error:
    left = 0
    print(error)

# %% [markdown]
# Now a cache of the same size, in which a line may stand anywhere. The loops run in front of it element by element, and
# one pass over all their accesses gives the misses of LRU caches of *every* size (Mattson 1970).

# %%
too_large = tiling.nest_of((1024,) * 3, (256,) * 3, "mnk")
trace = nest_trace(too_large)
print(f"{trace.accesses:,} accesses")
curve = miss_curve(trace, line_bytes=64)
lru = {}
for kib in (128, 256, 264, 512, 768, 1040):
    moved = 64 * (curve.misses(kib * KIB) + curve.write_backs(kib * KIB))
    lru[kib] = flops / moved
    print(f"LRU of {kib:5} KiB: {moved / MIB:8,.0f} MiB, {lru[kib]:6.2f} FLOP/byte")

# %% [markdown]
# **Compare.**

# %%
my_memories.compare(scratchpad=left, lru=lru[512])

# %% [markdown]
# **Explain.** A scratchpad does not degrade: the program has a bug, and it stops. A cache does not collapse either. C
# is what was used longest ago when a new tile of B streams in, so it is C that is written out and read again. The
# intensity about halves. Even 768 KiB, room for just three tiles, do not save C: LRU keeps old tiles of A and B that
# nobody needs soon. The collapse everybody warns of comes later: find the line in the table where not even *one* tile
# of 256² · 4 bytes stays, and compare it with the naive product.
#
# OPT has to know the whole future, so it is simulated on a **twin**: every length and the tile a quarter, the SRAM a
# sixteenth. Tile and SRAM then stand to each other as before, and FLOP per byte become a quarter. The twin has a
# panel of its own.

# %%
shape, tile, small_sram = caches.twin((1024,) * 3, (256,) * 3, sram_bytes, factor=4)
small = panel.show()
small.set(sram_kib=small_sram // KIB)

# %% [markdown]
# Switch `memory` in the explorer. For LRU the orange line (dashes and dots) is this very nest on caches of all sizes.

# %%
memories = tiling.show(small.state, shape=",".join(map(str, shape)), TM=tile[0])
memories

# %%
print(f"{'':12}{'twin':>8}{'as if 1024':>12}")
for memory in ("scratchpad", "lru", "opt"):
    estimate = memories.set(memory=memory).state.estimate
    twin_intensity = estimate.intensity if estimate else 0
    print(f"{memory:12}{twin_intensity:8.2f}{4 * twin_intensity:12.2f} FLOP/byte")

# %% [markdown]
# The gap between LRU and OPT is the price of not knowing the future. A program that manages a scratchpad *does* know
# it. That is one reason why accelerators have scratchpads, and why a tile has to fit.

# %% [markdown]
# ## 7 · Beat the square
#
# A tile has three sides. Each tile of C that stays on chip needs, over all k, TM rows of A and TN columns of B. How
# deep the slices of A and B are makes no difference to the bytes: only to the room they take.
#
# **Predict.** The explorer has told how few MiB the best tile moves in 512 KiB. Which tile (TM, TN, TK) is it?

# %%
my_best = predict("best tile", TM=None, TN=None, TK=None)

# %% [markdown]
# **Experiment.** Take the explorer of part 5, with `square` off. Beat the 44 MiB of T = 209, then look for the best.

# %%
print(slope.set(square=False, TM=209, TN=209, TK=209))

# %% [markdown]
# **Compare.**

# %%
best = best_tile(matmul(1024, 1024, 1024), sram_bytes)
tm, tn, tk = best.nest.tile
my_best.compare(TM=tm, TN=tn, TK=tk)
print(f"best of {best.candidates:,} candidates: {tm}×{tn}×{tk} in order {''.join(best.nest.order)},")
print(f"{format_bytes(best.dram_bytes)}, {flops / best.dram_bytes:.1f} FLOP/byte,", end=" ")
print(f"{best.dram_bytes / proven.dram_bytes:.2f} times the bound")

# %%
print(slope.set(TM=tm, TN=tn, TK=tk))

# %% [markdown]
# **Explain.** TK = 1: a column of A and a row of B are all that is needed at a time, so nearly the whole SRAM goes to
# C. 1024 / 342 rounds up to 3, so A and B come three times each, and C goes once. Nothing in the bytes asks for a
# power of two; alignment and vector units do.
#
# And lines do (lesson 01). A slice of A one element wide uses 4 bytes of each line that comes, and here only the bytes
# it uses are counted. Slices as deep as a line of 64 bytes, 16 float32, waste nothing. What do they move, and what do
# they need on chip?

# %%
deep = tiling.nest_of((1024,) * 3, (tm, tn, 64 // 4), "".join(best.nest.order))
room = f"{format_bytes(deep.working_set_bytes)} of {format_bytes(sram_bytes)}"
print(f"TK = {deep.tile[2]}: {format_bytes(deep.traffic.nbytes)}, {room} on chip")

# %% [markdown]
# Does the order matter? Take the best tile through all six:

# %%
for order in tiling.ORDERS:
    moved = tiling.data(tile=(342, 342, 1), order=order).traffic.nbytes
    print(f"{order}: {moved / MIB:7,.0f} MiB")

# %% [markdown]
# Wherever k stands outside m or n, the tile of C leaves at every k. The best tile in the wrong order is worse than
# T = 16.
#
# **Your turn.** The thin product of a fully connected layer: m = 8 images, n = 4096, k = 4096. Which tile would you
# take? Write it down, then let the search answer.

# %%
my_tile = (8, 128, 128)
layer = matmul(8, 4096, 4096)
mine, found = tiling.data((8, 4096, 4096), my_tile), best_tile(layer, sram_bytes)
print("mine:", format_bytes(mine.traffic.nbytes) if mine.traffic else "does not fit")
print("best:", format_bytes(found.dram_bytes), found.nest.tile, "- floor:", format_bytes(layer.compulsory_bytes))
print(f"intensity of the best: {layer.flops / found.dram_bytes:.2f} FLOP/byte")

# %% [markdown]
# ## 8 · Tiles of a convolution
#
# A 3×3 convolution reads a window around each pixel. A tile of TP×TQ outputs therefore asks for (TP + 2)×(TQ + 2)
# inputs. The rim is called **halo**, and neighbouring tiles load it again.
#
# **Predict.** An image of 56×56, output tiles of 14×14, padding 1: how many pixels do all tiles together load? The
# image has 3,136.

# %%
my_halo = predict("halo", pixels_loaded=None)

# %% [markdown]
# **Experiment.** Move TP and TQ. Which pixels are loaded twice, which ones four times? Then set `halo` to slide: what
# the tile before held stays on the chip.

# %%
rim = halo.show(machine.state)
rim

# %% [markdown]
# **Compare.**

# %%
loads = halo.data(size=56, kernel=3, tile=(14, 14)).loads
my_halo.compare(pixels_loaded=int(loads.sum()))
for times_loaded in range(1, int(loads.max()) + 1):
    print(f"loaded {times_loaded} times: {(loads == times_loaded).sum():5} pixels")

# %% [markdown]
# **Explain.** Every inner border between tiles costs two rows or columns of pixels. So at one area, which shape of
# tile is best?

# %%
print(f"{'tile':>8}{'reload':>9}{'slide':>9}   pixels loaded")
for tp, tq in ((7, 28), (14, 14), (28, 7), (4, 49)):
    by_policy = [int(halo.data(tile=(tp, tq), halo=policy).loads.sum()) for policy in ("reload", "slide")]
    print(f"{tp:>5}×{tq:<2}{by_policy[0]:>9,}{by_policy[1]:>9,}")

# %% [markdown]
# When everything is loaded anew, the square has the shortest rim. When the window slides along the rows, only the
# borders between rows of tiles cost anything, so tall tiles win. Again: state the policy, then the best tile.

# %%
print(rim.set(halo="slide", TP=28, TQ=7, number=5))

# %% [markdown]
# ## Self-check
#
# Type your answers, then press `check`, or run the cell below. It computes the answers.

# %%
half_tile = largest_square_tile(256 * KIB, itemsize=2, tiles=3)
spilled = tiling.data(tile=(128,) * 3, order="kmn")
lost = max("ABC", key=lambda name: curve.misses(512 * KIB, name) - curve.misses(2048 * KIB, name))
fifth = halo.data(size=28, kernel=5, tile=(14, 14))
check = quiz.show(
    quiz.Question(
        "float16 for A, B and C, 256 KiB, three tiles: what is the largest T?", half_tile, why="3·T²·2 bytes."
    ),
    quiz.Question(
        "T = 64, K = 1024, C stored once: the intensity of the square product of 1024?",
        tiling.data(tile=(64,) * 3).estimate.intensity,
        unit="FLOP/byte",
        why="T / (4·(1 + T/2048)).",
    ),
    quiz.Question(
        "T = 128 in order kmn: how many MiB of C are read?",
        spilled.nest.by_operand["C"].read_bytes // MIB,
        unit="MiB",
        why="C comes 8 times; the first time it starts at zero.",
    ),
    quiz.Question(
        "An LRU cache is too small for three tiles, but holds one and a bit. Which tile is lost between two steps "
        "in order mnk?",
        lost,
        choices=("A", "B", "C"),
        why="Its lines were used longest ago when the next B streams in.",
    ),
    quiz.Question(
        "A 5×5 convolution, padding 2, tiles of 14×14 on 28×28: how many input pixels does one corner tile ask for?",
        len(fifth.window[0]) * len(fifth.window[1]),
        unit="pixels",
        why="(14 + 2)²: on two sides there is only padding.",
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
# - A tile is sized by the room it takes with its buffers: 3, 5 or 6 tiles.
# - Intensity is counted over *all* bytes, C included. T/4 is a limit for T far below K, not a result.
# - A proven bound says how good a schedule can be at all. Measure against it, not against the naive loop.
# - A tile that is too large: a scratchpad stops, an LRU cache loses C first and collapses much later. Say which memory
#   and which order you mean.
# - The best tile need not be square, and the best tile in the wrong order is no good.
# - A convolution's tiles share a halo; what it costs depends on whether it is kept.
#
# **Exercise 02** asks you to write this lesson's counters yourself: the working set, the largest tile, the bytes of
# a loop order, and a tiled product whose bytes are graded. Open `exercises/ex02.ipynb`.
#
# The question after that: what if the next operator could use the tile of C while it is still on the chip? That is
# fusion, the subject of lesson 03.
