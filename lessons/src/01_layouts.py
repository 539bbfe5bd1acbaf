# %% [markdown]
# # 01 · Layouts: a tensor has four indices, memory has one
#
# > **Goal.** After this hour you can compute the strides and the offset of any element, say which bytes a walk
# > through a tensor fetches, tell a view from a copy, and price a change of layout. Every number below is counted
# > by the cell above it, not quoted.
#
# | part | minutes |
# |---|---|
# | 1 Linear memory | 4 |
# | 2 Strides, by hand and by code | 8 |
# | 3 The explorer: what one pixel costs | 10 |
# | 4 Three layouts, four walks | 7 |
# | 5 A belief to refute | 7 |
# | 6 Which machine likes which layout | 7 |
# | 7 Views and copies | 5 |
# | 8 The price of changing the layout, and where to pay it | 9 |
# | Self-check, score and the way on | 3 |
#
# **How to work.** Predict first and write it into the cell. Then run the experiment, compare, and explain the
# difference to your neighbour. A prediction is locked as soon as it is compared; at the end you see your score.

# %%
import numpy as np

from labkit import Hardware, LabError, Layout, StridedTensor
from labkit.explore import layouts, placement, quiz
from labkit.explore.predict import predict, score
from labkit.kernels.elementwise import ElementwiseOp, run_fused
from labkit.memory.ledger import Ledger
from labkit.memory.lines import addresses, line_use, straddling
from labkit.memory.scratchpad import Scratchpad
from labkit.units import format_bytes

# %% [markdown]
# ## 1 · Linear memory
#
# A DRAM knows no rows and no channels. It has one address per byte, counted from zero. A tensor of shape (N, C, H,
# W) is therefore two things: a **storage**, which is one long row of elements, and a **layout**, which says where
# in that row the element (n, c, h, w) lies. `StridedTensor` keeps the two apart, as the tensors of every framework
# do inside.

# %%
shape = (2, 3, 4, 4)  # N images, C channels, H rows, W columns
values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
x = StridedTensor.from_array(values, order="NCHW")

print("logical shape  ", x.shape)
print("storage        ", x.storage.shape, x.dtype)
print("elements       ", x.layout.size)
print("bytes          ", x.nbytes)
print("first elements ", x.storage[:16])

# %% [markdown]
# The layout is a small value of its own. It holds no data at all: names, lengths, strides and the offset of the
# first element.

# %%
x.layout

# %% [markdown]
# ## 2 · Strides, by hand and by code
#
# The **stride** of an axis is the number of elements you skip in storage when its index grows by one. The **fastest**
# axis is the one whose index changes first as you walk along the storage. In a layout without gaps it has stride one,
# and each slower axis has the product of all lengths that are faster than it. The element (n, c, h, w) then lies at
#
# offset = n · stride_N + c · stride_C + h · stride_H + w · stride_W
#
# NCHW means: N slowest, W fastest. NHWC means: N slowest, C fastest. The *logical* shape is the same in both.
#
# **Predict.** Work out the strides of both orders for the shape above, with a pencil. Write your numbers in place
# of `None`.

# %%
my_nchw = predict("strides of NCHW", N=None, C=None, H=None, W=None)
my_nhwc = predict("strides of NHWC", N=None, C=None, H=None, W=None)

# %% [markdown]
# **Experiment.** The rule above, as a loop: walk from the fastest axis to the slowest and multiply.


# %%
def strides_by_hand(shape, order):
    length = dict(zip("NCHW", shape, strict=True))
    strides, step = {}, 1
    for axis in reversed(order):
        strides[axis] = step
        step *= length[axis]
    return {axis: strides[axis] for axis in order}


for order in ("NCHW", "NHWC"):
    by_hand, layout = strides_by_hand(shape, order), Layout.dense(shape, order)
    agrees = layout.strides == tuple(by_hand[axis] for axis in "NCHW")
    print(order, by_hand, "| labkit agrees:", agrees)

# %% [markdown]
# **Compare.**

# %%
print("NCHW")
my_nchw.compare(**strides_by_hand(shape, "NCHW"))
print("NHWC")
my_nhwc.compare(**strides_by_hand(shape, "NHWC"))

# %% [markdown]
# **Explain.** Both layouts hold the same values at the same logical index. Only the neighbours differ: in NCHW the
# next element in memory is the next column, in NHWC it is the next channel of the same pixel.

# %%
nhwc = StridedTensor.from_array(values, order="NHWC")
index = (1, 2, 3, 0)
for tensor in (x, nhwc):
    offset = tensor.layout.offset_of(*index)
    print(f"{tensor.layout.order}: element {index} at offset {offset} holds {tensor.storage[offset]}")
print("the same tensor:        ", np.array_equal(x.array, nhwc.array))
print("the same row of elements:", np.array_equal(x.storage, nhwc.storage))

# %% [markdown]
# ## 3 · The explorer: what one pixel costs
#
# DRAM and caches do not deliver single elements. They deliver **lines** of, say, 64 bytes. If you ask for one
# element, its whole line comes. A convolution needs *all channels of one pixel* together, because it sums over
# them.
#
# **Predict.** All channels of the first pixel, float32, lines of 64 bytes: how many lines in NHWC, how many in
# NCHW?

# %%
my_lines = predict("lines of one pixel", nhwc=None, nchw=None)

# %% [markdown]
# **Experiment.** One box is one line. A hatched cell with a black frame is read by this run. Change the layout,
# then move the `run` slider (click it, then use the arrow keys) and watch the text beside the picture. A **walk** is a
# sequence of **runs**: in the walk `channel` each run is one pixel with all its channels. A run **straddles** when
# bytes that lie side by side in it are on both sides of a line border (part 5).

# %%
explorer = layouts.show(shape, "NHWC")
explorer

# %% [markdown]
# The same controls can be moved from code, and the state can be printed. `#` is read, `.` is not.

# %%
print(explorer.set(order="NCHW"))

# %% [markdown]
# **Compare.**

# %%
nhwc_pixel = layouts.data(shape, "NHWC", walk="channel", run=0, line_bytes=64).use
nchw_pixel = layouts.data(shape, "NCHW", walk="channel", run=0, line_bytes=64).use
my_lines.compare(nhwc=nhwc_pixel.lines_touched, nchw=nchw_pixel.lines_touched)
print(f"of the bytes fetched NHWC uses {nhwc_pixel.useful_share:.1%}, NCHW {nchw_pixel.useful_share:.1%}")
plane_bytes = x.layout.stride("C") * x.dtype.itemsize
print(f"from channel to channel NCHW jumps {plane_bytes} bytes")

# %% [markdown]
# **Explain.** In NCHW the channels of a pixel are one whole plane apart. Here that jump is as long as a line, so
# each channel costs a line of its own, and all but one element of it is of no use to this pixel.
#
# Now turn the question round. Choose the walk `row` or `plane`: which layout wins there?

# %%
print(explorer.set(walk="row", run=2))
print()
print(explorer.set(order="NHWC"))

# %% [markdown]
# **Your turn.** Try some more states by hand, or here: a longer line, more channels, a tensor that does not start
# at address zero.

# %%
print(explorer.set(walk="channel", N=1, C=5, H=3, W=5, line_bytes=32, base=8, run=4))

# %% [markdown]
# A state that cannot exist is no crash. It is a sentence in the view, and the next move repairs it. NCHW4c, a layout in
# blocks of four channels (part 4), cannot hold five:

# %%
print(explorer.set(order="NCHW4c"))
print(explorer.set(C=8))

# %% [markdown]
# ## 4 · Three layouts, four walks
#
# NCHW8c is the third layout you will meet, for example inside CPU libraries: the channels are **split** into blocks
# of eight, and the block is the fastest axis. It needs no new theory. Split C into C and c, then order the axes N,
# C, H, W, c.

# %%
blocked = Layout.dense((1, 16, 8, 8), "NCHW8c")
print("order  ", blocked.order)
print("strides", {axis: blocked.stride(axis) for axis in blocked.memory_axes})
print("shape  ", blocked.shape, "- a split by hand:", Layout.dense((1, 16, 8, 8)).split("C", 8).shape)

# %% [markdown]
# **Predict.** For each walk, which of the three layouts fetches the fewest lines for one run? Note your three
# favourites, then run the table.

# %%
my_best = predict("best layout of each walk", channel=None, row=None, plane=None)

# %% [markdown]
# **Experiment.** The first run of each walk, and in brackets the share of the fetched bytes that it uses.

# %%
big = (1, 16, 8, 8)
orders = ("NCHW", "NHWC", "NCHW8c")
lines = {}
print(f"{'lines for one run':18}" + "".join(f"{order:>16}" for order in orders))
for walk in ("channel", "row", "plane", "whole"):
    first_runs = [addresses(Layout.dense(big, order), walk)[0] for order in orders]
    uses = [line_use(run, itemsize=4, line_bytes=64) for run in first_runs]
    lines[walk] = {order: use.lines_touched for order, use in zip(orders, uses, strict=True)}
    cells = (f"{use.lines_touched:>7} ({use.useful_share:>5.0%})" for use in uses)
    print(f"{walk:18}" + "".join(cells))

# %% [markdown]
# **Compare.** Where two layouts need equally few lines, both are listed.

# %%
for walk in ("channel", "row", "plane"):
    fewest = min(lines[walk].values())
    my_best.compare(**{walk: "/".join(order for order in orders if lines[walk][order] == fewest)})

# %% [markdown]
# **Explain.** No layout is best for all walks, and for the walk over the whole tensor they are all equal. The
# blocked layout is a compromise: look at its column for `channel` and for `row`, and set it against the other two.
#
# ## 5 · A belief to refute
#
# You will often read that in NHWC a pixel always lands inside one line, as long as its channels are not longer than
# the line. The reasoning: its bytes are neighbours, and they are fewer than a line has.
#
# **Predict.** How many of the sixteen pixels of a 4×4 image with three float32 channels cross a line border? The
# belief says none: write 0 if you share it.

# %%
my_straddles = predict("straddling pixels", pixels_across_a_border=None)

# %% [markdown]
# **Experiment.** Count it. The addresses of every pixel are listed, and the pixels that cross a border of 64 bytes
# are marked.

# %%
image = Layout.dense((1, 3, 4, 4), "NHWC")
pixels = addresses(image, "channel", itemsize=4)
crossing = straddling(pixels, itemsize=4, line_bytes=64)
for pixel, run in enumerate(pixels):
    first, last = int(run.min()), int(run.max()) + 3
    mark = f"  <- lines {first // 64} and {last // 64}" if pixel in crossing else ""
    print(f"pixel {pixel:2}: bytes {first:3} to {last:3}{mark}")

# %% [markdown]
# **Compare.**

# %%
my_straddles.compare(pixels_across_a_border=len(crossing))
print("they are the pixels", crossing)

# %%
explorer.set(order="NHWC", walk="channel", N=1, C=3, H=4, W=4, line_bytes=64, base=0)
explorer.set(run=crossing[0])

# %% [markdown]
# **Explain.** A pixel stays inside one line for sure only when its bytes *divide* the line and the tensor starts at
# a multiple of them. Check both conditions in the tables: first the number of channels, then the start address.

# %%
print("channels  bytes a pixel  divide 64?  share of pixels across a border")
for channels in (1, 2, 3, 4, 5, 6, 8, 12, 16):
    layout = Layout.dense((1, channels, 16, 16), "NHWC")
    use = line_use(addresses(layout, "channel"), itemsize=4, line_bytes=64)
    divides = "yes" if 64 % (4 * channels) == 0 else "no"
    print(f"{channels:8}  {4 * channels:13}  {divides:>10}  {use.straddles / use.runs:>31.1%}")

# %%
four = Layout.dense((1, 4, 16, 16), "NHWC")
for base in (0, 4, 8, 16, 32, 64):
    use = line_use(addresses(four, base=base), itemsize=4, line_bytes=64)
    print(f"4 channels, first byte {base:2}: {use.straddles} of {use.runs} pixels straddle")

# %% [markdown]
# That is why libraries align tensors and pad channel counts: three channels become four, and the straddles are
# gone. The price is the padding itself: count it below. (The walk `whole` is a single run over the whole tensor, so it
# always crosses borders.)

# %%
for channels in (3, 4):
    layout = Layout.dense((1, channels, 16, 16), "NHWC")
    for walk in ("channel", "whole"):
        use = line_use(addresses(layout, walk), itemsize=4, line_bytes=64)
        print(f"{channels} channels, {walk:7}: {use.straddles:2} straddles, {use.lines_touched:3} lines fetched")

# %% [markdown]
# ## 6 · Which machine likes which layout
#
# A convolution sums over channels: output = Σ over c of activation(c) × weight(c). **Every channel has its own
# weight.** A **vector unit** does one operation on several neighbouring elements at once, each in a **lane** of its
# own. There are three honest ways to use it here, and each wants other neighbours in memory:
#
# | scheme | one vector instruction does | must be neighbours |
# |---|---|---|
# | channel reduction | activations of a pixel × their own weights, then a sum over lanes | the channels of a pixel |
# | output channels | *one* activation, broadcast, × a vector of weights | the output channels of the weights |
# | spatial | *one* weight, broadcast, × a row of pixels | the columns of a channel |
#
# A common slip is to say that one weight is broadcast over all input channels. That would be another sum:

# %%
rng = np.random.default_rng(0)
pixel, weights = rng.integers(-4, 5, 8), rng.integers(-4, 5, 8)
print("channel reduction           ", (pixel * weights).sum())
print("one weight for all channels ", (pixel * weights[0]).sum(), "<- not the convolution")

# %% [markdown]
# How many vector loads does each scheme need to fill one vector register of 32 bytes (eight float32 lanes)? A
# vector load is a line of that size, so the same counter answers.

# %%
vector_bytes, lanes = 32, 8


def vector_loads(layout, **fixed):
    """Aligned vectors touched by the first 8 elements along the one axis that is not fixed."""
    offsets = layout.offsets()[tuple(fixed.get(axis, slice(0, lanes)) for axis in layout.axes)]
    return line_use(4 * offsets, itemsize=4, line_bytes=vector_bytes).lines_touched


activations = {order: Layout.dense((1, 16, 8, 8), order) for order in ("NCHW", "NHWC")}
filters = {order: Layout.dense((16, 16, 3, 3), order) for order in ("OIHW", "HWIO")}
for order, layout in activations.items():
    print(f"activations {order}: channel reduction {vector_loads(layout, N=0, H=0, W=0)} loads")
    print(f"activations {order}: spatial           {vector_loads(layout, N=0, C=0, H=0)} loads")
for order, layout in filters.items():
    print(f"weights     {order}: output channels   {vector_loads(layout, I=0, H=0, W=0)} loads")

# %% [markdown]
# Weights lie in memory as well: O output channels, I input channels, H rows, W columns. PyTorch and ONNX keep them in
# OIHW, TensorFlow in HWIO. The strip below shows them; in the walk `outputs` one run reads all output channels of
# one input channel and one place of the window, in the walk `filter` it reads one whole filter.
#
# **Predict.** `outputs` likes HWIO, as the last two lines above say. Now the other walk, on eight filters of 4×3×3 in
# float32: how many lines of 64 bytes does one run of `filter` touch?

# %%
my_weights = predict("lines of one run of filter", oihw=None, hwio=None)

# %% [markdown]
# **Experiment.** Change the layout and the walk.

# %%
weight_strip = layouts.show((8, 4, 3, 3), "OIHW")
weight_strip

# %%
print(weight_strip.set(order="HWIO"))
print()
print(weight_strip.set(walk="filter", run=3))

# %% [markdown]
# **Compare.**

# %%
uses = {order: layouts.data((8, 4, 3, 3), order, walk="filter").use.lines_touched for order in ("OIHW", "HWIO")}
my_weights.compare(oihw=uses["OIHW"], hwio=uses["HWIO"])

# %% [markdown]
# **Explain.** A filter lies in one piece in OIHW and is scattered in HWIO: weights have no best order for all walks
# either. Now match the schemes with machines. Mobile **NPUs** (neural processing units) and **DSPs** (digital signal
# processors) reduce over channels, or broadcast an activation over output channels: they want NHWC (and weights to
# match). **Tensor cores**, a GPU's units for small matrix products, run convolutions in NHWC too; NCHW input is
# transposed first. NCHW was the natural fit of the GPU kernels *before* tensor cores, which swept over space. CPU
# libraries block the channels by their vector width. The presets of this course say what their kernels prefer (the GPU
# preset counts float32 *without* tensor cores):

# %%
for name in Hardware.presets():
    machine = Hardware.preset(name)
    print(f"{name:16} {machine.layout}  vector {machine.vector_bytes:3} bytes  line {machine.line_bytes:3} bytes")

# %% [markdown]
# ## 7 · Views and copies
#
# A **view** is a new layout over the same storage. It costs nothing, and a write through one view is seen through
# all. A **copy** has a storage of its own, and every element moves.
#
# **Predict.** Which of these five need a copy? Give the axes another order (`permute`), turn the rows upside down
# (`flip`), take every second column, show one number a channel as a whole tensor (`broadcast`), bring the elements into
# the order NHWC (`to_nhwc`).

# %%
my_views = predict(
    "views",  # "view" or "copy" for each
    permute=None,
    flip=None,
    every_second=None,
    broadcast=None,
    to_nhwc=None,
)

# %% [markdown]
# **Experiment.** Each result says whether it shares the storage of its source. Which stride is negative, which ones are
# zero?

# %%
bias = StridedTensor.from_array(np.float32([[[[1]], [[2]], [[3]]]]))
results = {
    "permute": (x, x.permute("NHWC")),
    "flip": (x, x.slice("H", None, None, -1)),
    "every_second": (x, x.slice("W", None, None, 2)),
    "broadcast": (bias, bias.broadcast(shape)),
    "to_nhwc": (x, x.to("NHWC")),
}
kinds = {}
for name, (source, result) in results.items():
    kind = kinds[name] = "view" if result.shares_storage_with(source) else "copy"
    layout = result.layout
    print(f"{name:12} {kind}  {layout.shape}  strides {layout.strides}  offset {layout.offset}")

# %% [markdown]
# **Compare.**

# %%
my_views.compare(**kinds)

# %% [markdown]
# **Explain.** Permuting, slicing, flipping and broadcasting need only other strides, also negative ones and zero. Two
# of the five look alike and are opposites. `permute("NHWC")` renames the order of the indices and moves nothing.
# `to("NHWC")` keeps the indices and moves every byte. The text below says so: the memory order of a permuted tensor is
# still the old one.

# %%
permuted, moved = x.permute("NHWC"), x.to("NHWC")
print("permute:", "".join(permuted.layout.axes), "lies in memory as", permuted.layout.order)
print("to     :", "".join(moved.layout.axes), "lies in memory as", moved.layout.order)
shown = results["broadcast"][1]
print("broadcast:", shown.layout.size, "elements shown,", shown.nbytes, "bytes stored")

# %% [markdown]
# **Your turn.** Slice, flip, permute: change the line and say the strides before you run it.

# %%
mine = x.slice("H", 3, None, -2).permute("NWHC")
print(mine.layout.shape, "strides", mine.layout.strides, "offset", mine.layout.offset)
print("a view:", mine.shares_storage_with(x), "| first element:", mine.array[0, 0, 0, 0])

# %% [markdown]
# Not every reshape is a view. When no strides can express it, labkit does not copy behind your back. It says so.

# %%
try:
    permuted.reshape((x.layout.size,), axes="A")
except LabError as error:
    print(error)

# %% [markdown]
# And an axis of length one has no say in the order. This tensor lies in both orders at once, so "converting" it is
# free:

# %%
pooled = StridedTensor.from_array(np.zeros((2, 64, 1, 1), np.float32), "NCHW")
ledger = Ledger()
converted = pooled.to("NHWC", ledger)
print("satisfies", pooled.layout.orders(), "| bytes moved:", ledger.traffic.nbytes)

# %% [markdown]
# ## 8 · The price of changing the layout, and where to pay it
#
# A copy into another order reads every element once and writes it once. The **ledger** writes down each transfer,
# and every traffic figure of this course is a sum of its lines.
#
# **Predict.** An activation of 1×64×56×56 in float32: how many bytes does NCHW → NHWC move?

# %%
my_price = predict("price of a transform", bytes_moved=None)

# %% [markdown]
# **Experiment and compare.**

# %%
ledger = Ledger()
activation = StridedTensor.from_array(np.zeros((1, 64, 56, 56), np.float32), "NCHW")
activation.to("NHWC", ledger, name="activation")
for access in ledger:
    print(f"{access.node:10} {access.kind:6} {access.value}  {access.nbytes:>9,} bytes")
my_price.compare(bytes_moved=ledger.traffic.nbytes)
print("that is", format_bytes(ledger.traffic.nbytes))

# %% [markdown]
# **Explain.** Set a ReLU over the same tensor beside it. Both read everything once and write everything once, but the
# transform computes nothing at all.

# %%
pad = Scratchpad("512KiB")
relu = ElementwiseOp("relu", "y", lambda tile: np.maximum(tile, 0))
run_fused(activation.array.reshape(64, -1), [relu], pad)
print("ReLU moves     ", format_bytes(pad.ledger.traffic.nbytes))
print("transform moves", format_bytes(ledger.traffic.nbytes))

# %% [markdown]
# What if every layer of a network wants the other layout?

# %%
layers = 6
sandwich, boundary = Ledger(), Ledger()

y = activation
for _ in range(layers):  # each kernel wants NHWC, the graph is NCHW: convert in, convert out
    y = y.to("NHWC", sandwich).to("NCHW", sandwich)

y = activation.to("NHWC", boundary)  # convert once at the entry, once at the exit
y = y.to("NCHW", boundary)

for name, book in (("around every layer", sandwich), ("at the borders only", boundary)):
    print(f"{name:20} {len(book) // 2:2} transforms, {format_bytes(book.traffic.nbytes)}")

# %% [markdown]
# **Explain.** A compiler therefore pushes transforms through the graph to its borders. Two transforms are the
# ideal: a Reshape or Flatten that depends on the order of the axes, a Concat of mixed layouts or a missing kernel
# each force another one in the middle.
#
# **A game: place the transposes by hand.** In the graph below the convolutions exist in NHWC only. Reshape, Flatten
# and Gemm (a matrix product) read elements in the order of the file, NCHW. The kernels with a thick frame can do
# either, and you choose. Where an arrow leads from one order into the other, the value is transposed, once for all its
# readers on that side; this reads and writes all of it.
#
# **Predict.** Look at the graph, and do not play yet. How few bytes can the transposes move, in KiB, and how many are
# they?

# %%
my_cut = predict("best placement", kib=None, transposes=None)

# %% [markdown]
# **Experiment.** Play until you cannot do better.

# %%
game = placement.show()
game

# %%
print(game.set(act=True))

# %% [markdown]
# **Compare.** The belief to start from: "one layout, wherever it can go, must be the best." Here it is:

# %%
print(game.set(norm=True, both=True, mean=True, sum=True, mask=True))

# %%
best = placement.data().best
my_cut.compare(kib=best.dram_bytes // 1024, transposes=best.transforms)
inside = [name for name in placement.FREE if best.labels[name] == "NHWC"]
print(game.set(**{name: name in inside for name in placement.FREE}, compare=True))

# %% [markdown]
# **Explain.** The best placement is a **minimum cut**: colour each kernel NHWC or NCHW, pay for each value that has
# readers of the other colour, and pay as little as possible. labkit's pass `layout` solves exactly this, for graphs of
# any size (lesson 06). Look at `norm`: it is better off in the order of the file, because a Reshape reads it, too.
#
# ## Self-check
#
# Type your answers, then press `check`, or run the cell below. It computes the answers.

# %%
small = Layout.dense((1, 8, 5, 6), "NCHW")
half = addresses(Layout.dense((1, 6, 8, 8), "NHWC"), itemsize=2)
check = quiz.show(
    quiz.Question(
        "What is the stride of H of (N, C, H, W) = (1, 8, 5, 6) in NHWC?",
        Layout.dense((1, 8, 5, 6), "NHWC").stride("H"),
        unit="elements",
        why="A row is 6 pixels of 8 channels.",
    ),
    quiz.Question(
        "At which offset lies its element (0, 7, 4, 5) in NCHW?",
        small.offset_of(0, 7, 4, 5),
        unit="elements",
        why=f"It is the last of {small.size}, counted from zero.",
    ),
    quiz.Question(
        "float16, NHWC, 6 channels, 8×8 pixels, 64-byte lines: how many pixels straddle?",
        len(straddling(half, itemsize=2, line_bytes=64)),
        unit="pixels",
        why="A pixel has 12 bytes, and 12 does not divide 64.",
    ),
    quiz.Question(
        'Is x.permute("NHWC") a view or a copy?',
        "view" if permuted.shares_storage_with(x) else "copy",
        choices=("view", "copy"),
        why="Only the strides change places.",
    ),
    quiz.Question(
        "To how many channels must 20 channels be padded for NCHW8c?",
        -(-20 // 8) * 8,
        unit="channels",
        why="Blocks of eight: the next multiple.",
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
# - A tensor is a storage and a layout. Strides say how far apart neighbours are; negative and zero strides are fine.
# - Memory comes in lines. What is read together should lie together, and no layout suits all walks.
# - A pixel stays within a line only when its bytes divide the line and the tensor starts at a multiple of them.
# - A kernel wants the axis it sums or broadcasts over to be the fastest: that is why machines differ.
# - A view changes strides, a copy moves bytes: each element once in, once out.
# - Where transforms stand is a question for the whole graph, and its best answer is a minimum cut.
#
# **Exercise 01** asks you to write the counters of this lesson yourself: strides, offsets, view or copy, lines
# touched, straddles, and the price of a transform. Open `exercises/ex01.ipynb`; each part has a check that says
# what to look at when it is wrong.
#
# The question after that: lines come and go, so which part of a tensor should stay on the chip? That is tiling.
