# %% [markdown]
# # 00 · The memory wall: bytes cost more than arithmetic
#
# > **Goal.** After this hour you can count the bytes and the arithmetic of a kernel, place it under a machine's
# > roofline, say what limits it and what would make it faster, and compare machines by their ridge, not by their
# > peak. Every result below is counted by a cell. Only the figures of the machines and of energy are quoted.
#
# | part | minutes |
# |---|---|
# | 1 One addition | 8 |
# | 2 Two clocks | 8 |
# | 3 The roofline | 9 |
# | 4 The same bytes, more arithmetic | 9 |
# | 5 Four machines | 9 |
# | 6 A batch | 7 |
# | 7 Energy | 6 |
# | Self-check, score and the way on | 4 |
#
# **How to work.** Predict first and write it into the cell. Then run the experiment, compare, and explain the
# difference to your neighbour. A prediction is locked as soon as it is compared; at the end you see your score.

# %%
from dataclasses import replace

import numpy as np

import labkit
from labkit import EnergyTable, Hardware, Scratchpad
from labkit.explore import batch, blocks, machines, panel, quiz, roofline
from labkit.explore.predict import predict, score
from labkit.kernels.elementwise import ElementwiseOp, run_fused
from labkit.kernels.matmul import naive_matmul, tiled_matmul
from labkit.problems import matmul
from labkit.roofline import RooflineEstimate
from labkit.search import best_tile
from labkit.units import format_bytes, format_rate, format_seconds

# %% [markdown]
# One machine for the whole lesson, an **NPU** (neural processing unit). It computes on a **chip** that has a small,
# fast memory of its own, the **SRAM**. Data lives in a large memory beside the chip, the **DRAM**. Every explorer below
# follows this panel. `launch` is the time that starting a program takes; line, vector and NHWC belong to lesson 01.
# `large` is for the projector.

# %%
machine = panel.show()
machine

# %% [markdown]
# ## 1 · One addition
#
# A **kernel** is a program that a machine starts once and that runs to its end: here it adds two arrays, element by
# element. Its elements are float32, 4 bytes each. A **FLOP** is one floating-point operation. The **arithmetic
# intensity** of a kernel is its FLOP divided by the bytes that it moves between DRAM and chip.
#
# **Predict.** Two arrays of 1024×1024 are added into a third one. How many FLOP? How many bytes move? What is the
# intensity?

# %%
my_add = predict("an addition", flop=None, nbytes=None, intensity=None)

# %% [markdown]
# **Experiment.** The kernel really runs, on a simulated memory that counts each byte.

# %%
n = 1024
rng = np.random.default_rng(0)
a, b = rng.integers(-8, 9, (2, n, n)).astype(np.float32)
pad = Scratchpad("512KiB")
c = run_fused(a, [ElementwiseOp("add", "c", np.add, {"b": b})], pad, tile=(16, n), name="a")
for name, moved in pad.ledger.by("value").items():
    print(f"{name}: read {moved.read_bytes:9,} bytes, written {moved.write_bytes:9,} bytes")
print("equal to NumPy:", np.array_equal(c, a + b))

# %% [markdown]
# **Compare.**

# %%
add_flops, add_bytes = c.size, pad.ledger.traffic.nbytes
my_add.compare(flop=add_flops, nbytes=add_bytes, intensity=add_flops / add_bytes)
print(f"{add_bytes // add_flops} bytes for one FLOP")

# %% [markdown]
# **Explain.** Each result needs two elements that come and one that goes, for one addition: 1 / 12 FLOP/byte. The size
# of the arrays does not matter, and no cleverer program helps: every byte moves exactly once already.

# %% [markdown]
# ## 2 · Two clocks
#
# The machine has two numbers: its **peak**, how many FLOP it can do in a second, and its **bandwidth**, how many bytes
# can come from DRAM or go there in a second.
#
# **Predict.** Take both from the panel above. How many microseconds does the arithmetic of the addition take at peak?
# How many do its transfers take? What share of its peak, in per cent, can the machine reach?

# %%
my_clocks = predict("two clocks", arithmetic_us=None, transfers_us=None, peak_percent=None)

# %% [markdown]
# **Experiment.**

# %%
hardware = machine.state.hardware
print(f"peak {format_rate(hardware.peak_flops_per_s, 'FLOP/s')}, DRAM {format_rate(hardware.dram_bytes_per_s, 'B/s')}")
arithmetic_s = add_flops / hardware.peak_flops_per_s
transfers_s = add_bytes / hardware.dram_bytes_per_s
print(f"arithmetic {format_seconds(arithmetic_s)}, transfers {format_seconds(transfers_s)}")

# %% [markdown]
# **Compare.** Both go on at the same time, so the longer one decides.

# %%
my_clocks.compare(
    arithmetic_us=1e6 * arithmetic_s,
    transfers_us=1e6 * transfers_s,
    peak_percent=100 * arithmetic_s / max(arithmetic_s, transfers_s),
)
print(f"the transfers take {transfers_s / arithmetic_s:,.0f} times as long")

# %% [markdown]
# **Explain.** Nearly all the time the arithmetic waits. This is the **memory wall**. Now a belief to refute: "a chip
# with ten times the FLOP/s is ten times as fast."
#
# **Predict.** How many times as fast is the addition with ten times the peak? With ten times the bandwidth? And with
# float16, 2 bytes an element, on the machine as it is?

# %%
my_belief = predict("ten times", peak=None, bandwidth=None, float16=None)

# %% [markdown]
# **Experiment.** The `RooflineEstimate` of a kernel is the longer of its two times, plus what starting it costs (none
# here).

# %%
before = RooflineEstimate(add_flops, add_bytes, 0, hardware).seconds
more_peak = replace(hardware, peak_flops_per_s=10 * hardware.peak_flops_per_s)
more_bandwidth = replace(hardware, dram_bytes_per_s=10 * hardware.dram_bytes_per_s)
half = Scratchpad("512KiB")
run_fused(a.astype(np.float16), [ElementwiseOp("add", "c", np.add, {"b": b.astype(np.float16)})], half, (16, n), "a")
after = {
    "peak": RooflineEstimate(add_flops, add_bytes, 0, more_peak).seconds,
    "bandwidth": RooflineEstimate(add_flops, add_bytes, 0, more_bandwidth).seconds,
    "float16": RooflineEstimate(add_flops, half.ledger.traffic.nbytes, 0, hardware).seconds,
}

# %% [markdown]
# **Compare.**

# %%
my_belief.compare(**{name: round(before / seconds, 6) for name, seconds in after.items()})

# %% [markdown]
# **Explain.** Ten times the arithmetic brings nothing. Half the bytes brings a factor of 2. What limits a kernel is
# what it waits for, and only that is worth improving.

# %% [markdown]
# ## 3 · The roofline
#
# Draw it for all intensities at once. A kernel of intensity I can do at most
#
# min(peak, I · bandwidth) FLOP in a second.
#
# On logarithmic axes that is a slope and a flat part: a **roof** (Williams, Waterman, Patterson 2009). They meet at the
# **ridge**, peak / bandwidth. A kernel left of the ridge is **memory-bound**, right of it **compute-bound**.
#
# **Predict.** What is the ridge of this machine, in FLOP/byte? In the time in which one float32 comes from DRAM, how
# many FLOP could it do?

# %%
my_ridge = predict("the ridge", flop_per_byte=None, flop_per_float=None)

# %% [markdown]
# **Experiment.** Move `DRAM` and `peak FLOP/s` in the panel, and watch roof, ridge and point.

# %%
roof = roofline.show([("add", add_flops, add_bytes)], machine.state)
roof

# %%
machine.set(bandwidth_gb_s=37.5)
print(roof)
_ = machine.set(preset="edge-npu")

# %% [markdown]
# **Compare.**

# %%
my_ridge.compare(flop_per_byte=hardware.ridge, flop_per_float=4 * hardware.ridge)

# %% [markdown]
# **Explain.** The ridge is what a machine *asks of* a kernel: so many FLOP for each byte, or it waits. A higher peak
# moves the ridge to the right. The machine becomes harder to feed, and a memory-bound kernel does not get faster.
#
# **Your turn.** Which bandwidth would this machine need, in GB/s, for the addition to reach its peak? Change it.

# %%
my_bandwidth_gb_s = 100
mine = replace(hardware, dram_bytes_per_s=my_bandwidth_gb_s * 1e9)
estimate = RooflineEstimate(add_flops, add_bytes, 0, mine)
print(f"{estimate.attainable_flops_per_s / mine.peak_flops_per_s:.1%} of the peak, {estimate.limit}-bound")

# %% [markdown]
# ## 4 · The same bytes, more arithmetic
#
# A product of two matrices n×n reads two matrices and writes one, as the addition does. But it does 2·n³ FLOP, n
# multiplications and n additions for each result.
#
# **Predict.** Suppose every byte moves once, as in the addition. What is the intensity of the product for n = 1024?
# From which n on does it reach the ridge of this machine?

# %%
my_product = predict("a product, every byte once", intensity=None, n_at_ridge=None)

# %% [markdown]
# **Experiment.**

# %%
for size in (16, 64, 256, 1024, 4096):
    problem = matmul(size, size, size)
    print(f"n = {size:5}: {problem.flops / problem.compulsory_bytes:8.2f} FLOP/byte")
past = next(size for size in range(1, 10_000) if matmul(size, size, size).flops / (12 * size**2) >= hardware.ridge)

# %% [markdown]
# **Compare.**

# %%
my_product.compare(intensity=2 * n**3 / matmul(n, n, n).compulsory_bytes, n_at_ridge=past)

# %% [markdown]
# **Explain.** 2·n³ / (12·n²) = n/6. The larger the matrices, the more arithmetic for each byte: data is **reused**. But
# "every byte once" is a wish. It needs room for all that will be used again, and 512 KiB do not hold three matrices of
# 4 MiB. What really moves depends on the program.
#
# **Predict.** Count what really moves. A naive program fetches two elements from DRAM for each multiply and add. A good
# one works by tiles, pieces of the matrices that fit into the SRAM (lesson 02). What is the intensity of each?

# %%
my_programs = predict("two programs for one product", naive=None, tiled=None)

# %% [markdown]
# **Experiment.** The naive one on small matrices (its intensity hardly depends on the size), the tiled one in full.

# %%
small_a, small_b = a[:64, :64].copy(), b[:64, :64].copy()
naive, tiled = Scratchpad("12B"), Scratchpad("512KiB")
naive_matmul(small_a, small_b, naive, "register")
best = best_tile(matmul(n, n, n), hardware)
product = tiled_matmul(a, b, best.nest.tile, tiled, order="".join(best.nest.order))
print("equal to NumPy:", np.array_equal(product, a @ b))
counted = {"naive": 2 * 64**3 / naive.ledger.traffic.nbytes, "tiled": 2 * n**3 / tiled.ledger.traffic.nbytes}

# %% [markdown]
# **Compare.**

# %%
my_programs.compare(**counted)

# %%
naive_bytes = round(2 * n**3 / counted["naive"])
roof.points = [
    ("add", add_flops, add_bytes),
    ("product, naive", 2 * n**3, naive_bytes),
    ("product, tiled", 2 * n**3, tiled.ledger.traffic.nbytes),
    ("every byte once", 2 * n**3, matmul(n, n, n).compulsory_bytes),
]
print(roof)

# %% [markdown]
# **Explain.** The same mathematics, the same result, and hundreds of times the speed. The FLOP are equal in all three
# products: they cannot tell the programs apart. The bytes can. That is why this course counts bytes.

# %% [markdown]
# ## 5 · Four machines
#
# Machines are sold by their peak. Here are four, each with public figures: two NPUs, a **DSP** (digital signal
# processor) and a **GPU** (graphics processor).

# %%
print(f"{'machine':16}{'peak':>16}{'DRAM':>12}{'SRAM':>10}{'ridge':>8}{'FLOP per float32':>19}")
for name in Hardware.presets():
    preset = Hardware.preset(name)
    peak, bandwidth = format_rate(preset.peak_flops_per_s, "FLOP/s"), format_rate(preset.dram_bytes_per_s, "B/s")
    sram = format_bytes(preset.sram_bytes)
    print(f"{name:16}{peak:>16}{bandwidth:>12}{sram:>10}{preset.ridge:8.1f}{4 * preset.ridge:19.0f}")

# %% [markdown]
# The peaks of the two NPUs are those of 8-bit integers, the other two those of float32. A ridge always belongs to one
# number format. This lesson takes all four for float32, which flatters the NPUs.
#
# **Predict.** The DSP has less than a sixth of the edge NPU's peak. Which of the two adds arrays faster, and how many
# times? Which one is faster at the product of 1024×1024×1024?

# %%
my_machines = predict("DSP against edge NPU", add_faster=None, add_times=None, product_faster=None, product_times=None)

# %% [markdown]
# **Experiment.** Choose the kernel, move n. Each machine has its own roof, drawn in per cent of its own peak.

# %%
side_by_side = machines.show(machine.state)
side_by_side

# %%
print(side_by_side.set(kernel="product n×n×n, best tile"))

# %% [markdown]
# **Compare.**

# %%
faster = {}
for kernel, name in (("add", "add n×n"), ("product", "product n×n×n, best tile")):
    npu, dsp, *_ = (estimate.seconds for estimate in machines.data(name, 1024).estimates)
    faster |= {f"{kernel}_faster": "DSP" if dsp < npu else "NPU", f"{kernel}_times": max(npu / dsp, dsp / npu)}
my_machines.compare(**faster)

# %% [markdown]
# **Explain.** For a memory-bound kernel the bandwidth decides, and the chip with the lower peak wins. At the product
# the NPU is still memory-bound, and far from its peak. Its ridge asks for more than n/6, the intensity when every byte
# moves once (part 4), so at this n no SRAM would be large enough. Never say "a product is compute-bound" without naming
# machine, size and SRAM.
#
# **Your turn.** Build a machine that reaches its peak at the product of n = 1024, but is slower at it than the edge
# NPU. It joins the picture as `custom`.

# %%
machine.set(preset="edge-npu", peak_gflop_s=500)
print(side_by_side.text.splitlines()[-1])
_ = machine.set(preset="edge-npu")

# %% [markdown]
# ## 6 · A batch
#
# A fully connected layer multiplies a vector with a matrix of weights: 4096×4096 of them. Each weight is used once, for
# a multiply and an add. With a **batch** of b images, each weight that comes is used b times.
#
# **Predict.** What is the intensity for one image? For 16? From which batch on (1, 2, 4, … 1024) is the DSP
# compute-bound? And the edge NPU (0 for never)?

# %%
my_batch = predict("a batch", one=None, sixteen=None, dsp_from=None, npu_from=None)

# %% [markdown]
# **Experiment.** Move the slider. The time of *one* image falls while the transfers are shared, until the arithmetic is
# longer. Then choose another machine in the panel.

# %%
images = batch.show(machine.state)
images

# %%
print(images.set(batch=16))

# %% [markdown]
# **Compare.**

# %%
on = {name: batch.data(hardware=Hardware.preset(name)) for name in ("dsp", "edge-npu")}
my_batch.compare(
    one=batch.data(1).estimate.intensity,
    sixteen=batch.data(16).estimate.intensity,
    dsp_from=on["dsp"].first_compute_bound or 0,
    npu_from=on["edge-npu"].first_compute_bound or 0,
)

# %% [markdown]
# **Explain.** While the batch is small, the intensity is about b/2. On the edge NPU it stops growing: the results of
# many images no longer fit into the SRAM beside the weights, so weights come again. More SRAM would help:

# %%
for kib in (512, 2048, 8192, 32768):
    more = batch.data(1024, hardware=replace(hardware, sram_bytes=kib * 1024))
    print(f"{format_bytes(kib * 1024):>8}: {more.estimate.intensity:6.1f} FLOP/byte, {more.estimate.limit}-bound")

# %% [markdown]
# And a batch has a price: nobody gets a result before the last image is done.

# %%
for size in (1, 16, 256):
    state = batch.data(size, hardware=Hardware.preset("dsp"))
    seconds = state.estimate.seconds
    print(
        f"DSP, {size:3} at a time: first result after {format_seconds(seconds)}, {size / seconds:7,.0f} images a second"
    )

# %% [markdown]
# ## 7 · Energy
#
# Time is one cost of a byte, energy the other. These are figures for one older process (45 nm; Horowitz 2014), in
# picojoules, 10⁻¹² J. The SRAM is a small one of 8 KiB; a larger one costs more. Newer processes are lower throughout,
# but the ratio of the lines is what matters.

# %%
table = EnergyTable.load()
print(f"a byte from or to DRAM      {table.dram_pj_per_byte:6.2f} pJ")
print(f"a byte from or to SRAM      {table.sram_pj_per_byte:6.2f} pJ")
print(f"a floating-point operation  {table.flop_pj:6.2f} pJ")

# %% [markdown]
# **Predict.** How many FLOP cost as much as one byte from DRAM? What share of its energy does the addition spend on
# DRAM, in per cent? And the tiled product?

# %%
my_energy = predict("energy", flop_per_byte=None, add_percent=None, product_percent=None)

# %% [markdown]
# **Experiment.** Each is planned for the machine, and `energy` weighs the bytes and the FLOP of the plan. It lets each
# FLOP read 4 bytes of SRAM, two float32 for a multiply and an add. What comes or goes passes through the SRAM as well.

# %%
shares = {}
for op in ("Add", "MatMul"):
    graph = blocks.parse(f"g (float[{n},{n}] x, float[{n},{n}] w) => (float[{n},{n}] y) {{ y = {op}(x, w) }}")
    total = labkit.energy(labkit.schedule(graph, hardware)).total
    shares[op] = 100 * total.dram_j / total.joules
    parts = (("DRAM", total.dram_j), ("SRAM", total.sram_j), ("arithmetic", total.compute_j))
    print(f"{op:7}", ", ".join(f"{name} {1e3 * joules:.3g} mJ" for name, joules in parts))

# %% [markdown]
# **Compare.**

# %%
my_energy.compare(
    flop_per_byte=table.dram_pj_per_byte / table.flop_pj, add_percent=shares["Add"], product_percent=shares["MatMul"]
)

# %% [markdown]
# **Explain.** An addition pays for transport only. The tiled product pays mostly for its arithmetic and for the SRAM
# that feeds it. There is a ridge of energy as well, and reuse is what crosses it. A battery or a cooler does not care
# that transfers and arithmetic overlap: in energy they add up.

# %% [markdown]
# ## Self-check
#
# Type your answers, then press `check`, or run the cell below. It computes the answers.

# %%
relu = Scratchpad("64KiB")
run_fused(a[:64], [ElementwiseOp("relu", "y", lambda tile: np.maximum(tile, 0))], relu, (1, n), "x")
phone = Hardware.preset("phone-npu")
add_on_phone = RooflineEstimate(add_flops, add_bytes, 0, phone)
doubled = RooflineEstimate(
    2 * n**3, tiled.ledger.traffic.nbytes, 0, replace(hardware, peak_flops_per_s=2 * hardware.peak_flops_per_s)
)
single = RooflineEstimate(2 * n**3, tiled.ledger.traffic.nbytes, 0, hardware)
vector = batch.data(1, 1024, dtype="float16")
check = quiz.show(
    quiz.Question(
        "ReLU reads each float32, compares it with 0 (one FLOP) and writes it. What is its intensity?",
        a[:64].size / relu.ledger.traffic.nbytes,
        unit="FLOP/byte",
        why="1 / 8: one array comes, one goes.",
    ),
    quiz.Question(
        "How many FLOP can the phone NPU do in the time in which one float32 comes from DRAM?",
        4 * phone.ridge,
        unit="FLOP",
        why="4 bytes times its ridge.",
    ),
    quiz.Question(
        "The addition on the phone NPU: at most how many GFLOP/s?",
        add_on_phone.attainable_flops_per_s / 1e9,
        unit="GFLOP/s",
        why="Bandwidth / 12.",
    ),
    quiz.Question(
        "The tiled product of this lesson on an edge NPU with twice the peak: how many times as fast?",
        single.seconds / doubled.seconds,
        why="It is memory-bound before, and after.",
    ),
    quiz.Question(
        "One image through a layer of 1024×1024 with float16 weights, on the edge NPU, is …",
        f"{vector.estimate.limit}-bound",
        choices=("memory-bound", "compute-bound"),
        why="Each weight is used once: about 1 FLOP/byte.",
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
# - Intensity is FLOP divided by bytes between DRAM and chip. An elementwise addition has 1/12.
# - Time is the longer of transfers and arithmetic. Below the ridge only bytes count.
# - The ridge is peak / bandwidth: what a machine asks of a kernel. A higher peak asks for more.
# - Reuse raises the intensity, but only as far as the program and the SRAM let it. FLOP cannot tell a good program from
#   a bad one; bytes can.
# - A batch reuses weights. It costs latency, the wait for a first result, and it ends where the SRAM ends.
# - A byte from DRAM costs the energy of dozens of operations.
#
# The levers of this course all save bytes: how a tensor lies in memory (01), how much of it is on the chip at a time
# (02), what never leaves the chip (03), what need not be computed at all (04, 05), and all of it together (06). This
# lesson has no exercise of its own; **Exercise 01** follows the next one.
#
# The question to begin with: a tensor has four indices, and memory has one. In which order do its elements lie there?
# That is lesson 01.
