# %% [markdown]
# # Exercise 03 · Fusion
#
# Eight functions, twenty-two points: round trips counted, two fused kernels, and the question which operators should
# be one kernel at all. The kernels are graded on their result, **on the bytes they move and on their launches**.
#
# - Write your code where it says so, and keep the name and the arguments of each function.
# - Below each function is a check. Run it as often as you like: it says "right", or what to look at.
# - A launch is one kernel started; bytes are what moves between DRAM and chip. These are two counters.
# - A check calls your function with shapes and graphs of its own, and grading uses more of them. Time plays no part.
# - Where it says "yours", labkit's own function of that kind does not count.

# %% nbgrader={"grade_id": "ex03-setup", "locked": true}
from collections.abc import Iterable

import numpy as np

from labkit import Graph, Scratchpad
from labkit.course import sheet
from labkit.text import to_text

ex03 = sheet("ex03", seed=0)
check, given = ex03.check, ex03.given

# %% [markdown]
# Your feature map (channels, height, width), and a graph for the last part:

# %%
print(given.shape)
print(to_text(given.graph))

# %% [markdown]
# ## 3.1 · The unfused chain (2 points)
#
# A convolution, a normalisation and a ReLU run as three kernels. The result of each has the same shape. What does the
# chain cost just because it is not one kernel? Write `unfused(shape, itemsize, kernels)` for a chain of so many
# kernels: its launches, and the bytes that move for the tensors **between** two kernels. The input of the first and
# the result of the last would move in any case, and so would weights. `run_chain` counts all that moves, tensor by
# tensor; which of them lie between is for you to say.
#
# <details><summary>Hint</summary>
#
# Draw kernels as boxes and tensors as arrows. Which arrows lie between two boxes? Who moves such a tensor, and when?
#
# </details>


# %% nbgrader={"grade_id": "ex03-1-specification", "locked": true}
def run_chain(shape: tuple[int, int, int], itemsize: int, kernels: int) -> Scratchpad:
    """The specification: run such a chain, tensor 0 to tensor 1 and so on. The pad counts launches and bytes."""
    dram = [np.ones(shape, f"f{itemsize}") for _ in range(kernels + 1)]
    pad = Scratchpad(dram[0].nbytes)
    for number in range(kernels):
        with pad.kernel(f"kernel {number}"):
            pad.load("x", dram[number], tensor=f"tensor {number}")
            pad.store("x", dram[number + 1], tensor=f"tensor {number + 1}")
            pad.free("x")
    return pad


chain = run_chain((64, 56, 56), 4, 3)
for tensor, traffic in chain.ledger.by("value").items():
    print(f"{tensor} {traffic.read_bytes:9,} bytes read {traffic.write_bytes:9,} written")
assert chain.launches == 3


# %% nbgrader={"grade_id": "ex03-1", "solution": true}
def unfused(shape: tuple[int, int, int], itemsize: int, kernels: int) -> tuple[int, int]:
    """Launches of the chain, and bytes of its round trips.

    >>> unfused((64, 56, 56), 4, 3)
    (3, 3211264)
    """
    ### BEGIN SOLUTION
    channels, height, width = shape
    nbytes = 0
    for _ in range(kernels - 1):
        nbytes += 2 * channels * height * width * itemsize
    return kernels, nbytes
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex03-1-check", "grade": true, "points": 2}
check("3.1", unfused)
### BEGIN HIDDEN TESTS
ex03.grade("3.1", unfused)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.2 · Product, bias and ReLU in one kernel (4 points)
#
# C = relu(A · B + bias), tile by tile, in **one** kernel that is yours. `A` (m × k), `B` (k × n) and `bias` (n) lie in
# DRAM, in float32, and cannot be computed with there: their elements become numbers when they are loaded. The pad
# holds exactly one tile of A, one of B and one of C, of the size `tile` = (TM, TN, TK), and TN numbers of the bias.
# Give back C in DRAM, a float32 array. A and B move no more than a tiled product needs, k innermost; each tile of C is
# written once.
#
# | call | does | counts |
# |---|---|---|
# | `with pad.kernel("name"):` | starts a kernel; all inside belongs to it | one launch |
# | `pad.load("A", A[i:i2, s:s2])` | a copy on chip, which it gives back | bytes read |
# | `pad.alloc("C", (rows, columns), np.float32)` | zeros on chip | nothing |
# | `pad.store("C", C[i:i2, j:j2])` | copies the buffer "C" to DRAM | bytes written |
# | `pad.free("A")` | gives the room back | nothing |
#
# <details><summary>Hint 1</summary>
#
# Bias and ReLU are the **epilogue** of a tile of C. After which loop is its sum complete?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `np.maximum(c, 0, out=c)` works in place. A new array of the name c is not the buffer that is stored.
#
# </details>


# %% nbgrader={"grade_id": "ex03-2-specification", "locked": true}
def product(A: np.ndarray, B: np.ndarray, bias: np.ndarray) -> list[list[float]]:
    """The specification: obvious, slow, and blind to memory."""
    C = [[sum(a * b for a, b in zip(row, column, strict=True)) for column in B.T] for row in A]
    return [[max(value + more, 0) for value, more in zip(row, bias, strict=True)] for row in C]


# %% nbgrader={"grade_id": "ex03-2", "solution": true}
def fused_matmul(
    A: np.ndarray, B: np.ndarray, bias: np.ndarray, tile: tuple[int, int, int], pad: Scratchpad
) -> np.ndarray:
    """relu(A · B + bias), tile by tile through the pad, in one launch.

    >>> pad = Scratchpad("56B")
    >>> A, B, bias = np.eye(4, dtype=np.float32), np.ones((4, 4), np.float32), np.float32([-2, 0, 1, 2])
    >>> fused_matmul(A, B, bias, (2, 2, 2), pad).tolist()[0]
    [0.0, 1.0, 2.0, 3.0]
    >>> pad.ledger.traffic.read_bytes, pad.ledger.traffic.write_bytes, pad.launches
    (288, 64, 1)
    """
    ### BEGIN SOLUTION
    tm, tn, tk = tile
    m, n, k = A.shape[0], B.shape[1], A.shape[1]
    C = np.zeros((m, n), np.float32)
    with pad.kernel("matmul, bias, relu"):
        for i in range(0, m, tm):
            for j in range(0, n, tn):
                block = C[i : i + tm, j : j + tn]
                c = pad.alloc("C", block.shape, np.float32)
                for s in range(0, k, tk):
                    a = pad.load("A", A[i : i + tm, s : s + tk])
                    b = pad.load("B", B[s : s + tk, j : j + tn])
                    c += a @ b
                    pad.free("A")
                    pad.free("B")
                c += pad.load("bias", bias[j : j + tn])
                np.maximum(c, 0, out=c)
                pad.store("C", block)
                pad.free("C")
                pad.free("bias")
    return C
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex03-2-check", "grade": true, "points": 4}
check("3.2", fused_matmul)
### BEGIN HIDDEN TESTS
ex03.grade("3.2", fused_matmul)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.3 · A residual block in one kernel (4 points)
#
# Now a convolution, a normalisation (one `scale` and one `shift` for each filter), a `residual` that is added, and a
# ReLU at the end. All in one kernel, yours, by blocks of `rows` output rows, all filters at once. `x` is (channels,
# height, width), `w` is (filters, channels, R, S), stride 1, no padding; `residual` has the shape of the result. The
# pad holds one block of x with its halo, one block of y, one of the residual, and all of w, scale and shift. Give back
# y in DRAM, a float32 array.
#
# <details><summary>Hint 1</summary>
#
# `block` below says in which order things happen. Which of them need the complete sum, over all channels and taps?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A vector with one number for each filter meets a block of (filters, rows, columns) as `scale[:, None, None]`.
#
# </details>


# %% nbgrader={"grade_id": "ex03-3-specification", "locked": true}
def block(x: np.ndarray, w: np.ndarray, scale: np.ndarray, shift: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """The specification: obvious, slow, and blind to memory."""
    y = np.zeros(residual.shape, np.float32)
    for f, p, q in np.ndindex(y.shape):
        for c, r, s in np.ndindex(w.shape[1:]):
            y[f, p, q] += x[c, p + r, q + s] * w[f, c, r, s]
        y[f, p, q] = max(scale[f] * y[f, p, q] + shift[f] + residual[f, p, q], 0)
    return y


# %% nbgrader={"grade_id": "ex03-3", "solution": true}
def fused_block(
    x: np.ndarray,
    w: np.ndarray,
    scale: np.ndarray,
    shift: np.ndarray,
    residual: np.ndarray,
    rows: int,
    pad: Scratchpad,
) -> np.ndarray:
    """relu(scale · conv(x, w) + shift + residual), by blocks of output rows through the pad, in one launch.

    >>> pad = Scratchpad("116B")
    >>> x, w = np.ones((1, 4, 4), np.float32), np.ones((1, 1, 3, 3), np.float32)
    >>> scale, shift, residual = np.float32([2]), np.float32([-20]), np.float32([[[0, 1], [2, 3]]])
    >>> fused_block(x, w, scale, shift, residual, 1, pad).tolist()
    [[[0.0, 0.0], [0.0, 1.0]]]
    >>> pad.ledger.traffic.read_bytes, pad.ledger.traffic.write_bytes, pad.launches
    (156, 16, 1)
    """
    ### BEGIN SOLUTION
    (filters, _, R, S), height, width = w.shape, x.shape[1], x.shape[2]
    P, Q = height - R + 1, width - S + 1
    y = np.zeros((filters, P, Q), np.float32)
    with pad.kernel("conv, bn, add, relu"):
        weights = pad.load("w", w)
        factor = pad.load("scale", scale)[:, None, None]
        summand = pad.load("shift", shift)[:, None, None]
        for p in range(0, P, rows):
            block = y[:, p : p + rows]
            image = pad.load("x", x[:, p : p + block.shape[1] + R - 1])
            sums = pad.alloc("y", block.shape, np.float32)
            for r in range(R):
                for s in range(S):
                    seen = image[:, r : r + block.shape[1], s : s + Q]
                    sums += np.einsum("fc,cpq->fpq", weights[:, :, r, s], seen)
            sums *= factor
            sums += summand
            sums += pad.load("residual", residual[:, p : p + rows])
            np.maximum(sums, 0, out=sums)
            pad.store("y", block)
            for name in ("x", "y", "residual"):
                pad.free(name)
    return y
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex03-3-check", "grade": true, "points": 4}
check("3.3", fused_block)
### BEGIN HIDDEN TESTS
ex03.grade("3.3", fused_block)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.4 · Does it still fit? (2 points)
#
# A fused kernel is legal on a machine only if its working set fits the SRAM: the tiles of the convolution, **and**
# what the epilogue reads beside them. Write `fused_working_set(c, f, rows, width, taps, residuals, itemsize)`: the
# bytes of SRAM for the kernel of 3.3. It has `c` channels and `f` filters of taps × taps, and its blocks are `rows`
# output rows of `width` columns. So many `residuals` are added, all of them before the ReLU. Scale and shift are on
# chip as a whole, and so are the weights. What is done to the sums overwrites them in place. In float32,
# `most_on_chip` below measures it.
#
# <details><summary>Hint</summary>
#
# `pad.resident` in 3.3, right before the store, lists what has to be there.
#
# </details>

# %% nbgrader={"grade_id": "ex03-4-specification", "locked": true}
from labkit.kernels.conv import conv2d
from labkit.kernels.elementwise import ElementwiseOp


def most_on_chip(c: int, f: int, rows: int, width: int, taps: int, residuals: int) -> int:
    """The specification, in float32: a kernel of labkit makes three blocks; the most bytes it had on chip."""
    x = np.ones((1, c, 3 * rows + taps - 1, width + taps - 1), np.float32)
    beside = {name: np.ones((1, f, 1, 1), np.float32) for name in ("scale", "shift")}
    beside |= {f"residual {i}": np.ones((1, f, 3 * rows, width), np.float32) for i in range(residuals)}
    pad = Scratchpad("1GiB")
    tail = ElementwiseOp("tail", "y", lambda sums, a, b, *more: np.maximum(a * sums + b + sum(more), 0), beside)
    conv2d(x, np.ones((f, c, taps, taps), np.float32), pad, ops=[tail], tile={"p": rows})
    return pad.high_water_bytes


assert (most_on_chip(64, 64, 1, 56, 3, 0), most_on_chip(64, 64, 1, 56, 3, 1)) == (206848, 221184)


# %% nbgrader={"grade_id": "ex03-4", "solution": true}
def fused_working_set(c: int, f: int, rows: int, width: int, taps: int, residuals: int, itemsize: int) -> int:
    """Bytes of SRAM for one block of a fused convolution.

    >>> fused_working_set(64, 64, 1, 56, 3, 0, 4), fused_working_set(64, 64, 1, 56, 3, 1, 4)
    (206848, 221184)
    """
    ### BEGIN SOLUTION
    image = c * (rows + taps - 1) * (width + taps - 1)
    weights = f * c * taps * taps
    block = f * rows * width
    vectors = 2 * f
    return (image + weights + block + residuals * block + vectors) * itemsize
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex03-4-check", "grade": true, "points": 2}
check("3.4", fused_working_set)
### BEGIN HIDDEN TESTS
ex03.grade("3.4", fused_working_set)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.5 · What a kernel moves (2 points)
#
# From here on kernels are **groups** of nodes of a graph. A group is a tuple of names; a node is called by the name of
# the value that it makes. A kernel reads each value that it needs from outside once, weights too, and writes each
# value that somebody outside sees. What stays inside moves nothing. Write `kernel_bytes(graph, group)`: the bytes that
# the kernel moves.
#
# | expression | is |
# |---|---|
# | `graph.nodes` | all nodes, in running order |
# | `graph.producers[name]` | the node that makes a value |
# | `graph.users.get(name, ())` | the nodes that read a value |
# | `graph.output_names` | the names of the values that the caller gets |
# | `node.op`, `node.uses`, `node.output` | its operator, the values it reads, the value it makes |
# | `value.name`, `value.shape`, `value.type.nbytes` | what they say |
#
# <details><summary>Hint</summary>
#
# A dictionary from name to value keeps each value once. Who sees a value: a node that is not in the group, or the
# caller of the graph.
#
# </details>


# %% nbgrader={"grade_id": "ex03-5-specification", "locked": true}
def alone(graph: Graph, name: str) -> int:
    """Bytes that one node moves as a kernel of its own: each distinct input, and the output."""
    node = graph.producers[name]
    return sum(value.type.nbytes for value in {*node.uses, node.output})


print(sum(alone(given.graph, name) for name in given.graph.producers), "bytes, each node a kernel")


# %% nbgrader={"grade_id": "ex03-5", "solution": true}
def kernel_bytes(graph: Graph, group: tuple[str, ...]) -> int:
    """Bytes that the nodes of a group move as one kernel.

    >>> kernel_bytes(given.graph, ("n1",)) == alone(given.graph, "n1")
    True
    """
    ### BEGIN SOLUTION
    inside = set(group)
    nodes = [graph.producers[name] for name in group]
    reads = {value.name: value for node in nodes for value in node.uses if value.name not in inside}
    nbytes = sum(value.type.nbytes for value in reads.values())
    for node in nodes:
        name = node.output.name
        outside = [user for user in graph.users.get(name, ()) if user.output.name not in inside]
        if outside or name in graph.output_names:
            nbytes += node.output.type.nbytes
    return nbytes
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex03-5-check", "grade": true, "points": 2}
check("3.5", kernel_bytes)
### BEGIN HIDDEN TESTS
ex03.grade("3.5", kernel_bytes)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.6 · Which nodes may be one kernel? (3 points)
#
# A node alone is always a kernel. Two or more may be one when all of this holds:
#
# 1. each is an **anchor** or **elementwise**, by the table below; others stay alone;
# 2. at most one is an anchor;
# 3. the anchor reads nothing that the group makes: it leads;
# 4. all make results of the same shape, so that one tile fits them all;
# 5. the group hangs together by values that it makes itself;
# 6. the group is **convex**: no path leaves it and comes back.
#
# Write `may_be_one_kernel(graph, group)`. A value that is read inside and outside is no obstacle: a kernel may have
# several outputs.
#
# <details><summary>Hint 1</summary>
#
# For 5: start at one node and keep adding those that read from it, or that it reads from, until nothing is added.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# For 6: walk through `graph.nodes` in running order and remember the nodes outside that need something of the group,
# directly or not. Who of the group may read from one of these?
#
# </details>

# %% nbgrader={"grade_id": "ex03-6-specification", "locked": true}
ANCHORS = ("Conv", "MaxPool")
ELEMENTWISE = ("Add", "Mul", "Relu", "Sigmoid")


# %% nbgrader={"grade_id": "ex03-6", "solution": true}
def may_be_one_kernel(graph: Graph, group: tuple[str, ...]) -> bool:
    """Whether the nodes of a group may form one kernel.

    >>> may_be_one_kernel(given.graph, ("n1",)), may_be_one_kernel(given.graph, ("n1", "n2"))
    (True, True)
    >>> may_be_one_kernel(given.graph, tuple(given.graph.producers))  # it has two convolutions
    False
    """
    ### BEGIN SOLUTION
    if len(group) == 1:
        return True
    inside = set(group)
    nodes = [node for node in graph.nodes if node.output.name in inside]
    anchors = [node for node in nodes if node.op in ANCHORS]
    if any(node.op not in ANCHORS + ELEMENTWISE for node in nodes):
        return False
    if len(anchors) > 1:
        return False
    if any(value.name in inside for node in anchors for value in node.uses):
        return False
    if len({node.output.shape for node in nodes}) > 1:
        return False
    reached = {group[0]}
    for _ in group:
        for node in nodes:
            joined = {node.output.name} | {value.name for value in node.uses} & inside
            if joined & reached:
                reached |= joined
    if reached != inside:
        return False
    behind = set()
    for node in graph.nodes:
        read = {value.name for value in node.uses}
        if node.output.name in inside:
            if read & behind:
                return False
        elif read & (inside | behind):
            behind.add(node.output.name)
    return True
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex03-6-check", "grade": true, "points": 3}
check("3.6", may_be_one_kernel)
### BEGIN HIDDEN TESTS
ex03.grade("3.6", may_be_one_kernel)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.7 · Depth first: computed twice, moved never (2 points)
#
# Two convolutions in a row cannot share a tile: each output row of the second sees `taps` rows of the first. But they
# can share a block. **Depth first**, a block of `rows` rows of the final result computes the rows of the intermediate
# that it needs, keeps them on chip, and throws them away. The next block needs some of them again, and computes them
# once more. Both convolutions have taps × taps, stride 1, no padding; x has `c` channels, the intermediate `mid`, and
# the final result is `height` × `width`.
#
# Compare with layer by layer, where x and the intermediate move once for each kernel that writes or reads them.
# Depth first, each block loads all the rows of x that it needs. Write
# `depth_first(c, mid, height, width, taps, rows, itemsize)`: the FLOP that are done in addition, and the bytes saved.
# Which rows of the intermediate a block needs, and of x in turn, `rows_seen` says one by one.
#
# <details><summary>Hint 1</summary>
#
# How many rows of the intermediate do all blocks compute together, and how many does it have? A multiply-accumulate
# is two FLOP. The intermediate is `height + taps − 1` rows of `width + taps − 1`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# x has a halo as well, of two convolutions. What comes in addition is taken off the saving.
#
# </details>


# %% nbgrader={"grade_id": "ex03-7-specification", "locked": true}
def rows_seen(rows: Iterable[int], taps: int) -> set[int]:
    """The specification: the rows that a convolution reads, to make these rows of its result."""
    return {row + tap for row in rows for tap in range(taps)}


assert rows_seen(range(0, 8), 3) & rows_seen(range(8, 16), 3) == {8, 9}  # two blocks need them


# %% nbgrader={"grade_id": "ex03-7", "solution": true}
def depth_first(c: int, mid: int, height: int, width: int, taps: int, rows: int, itemsize: int) -> tuple[int, int]:
    """Extra FLOP, and bytes saved, of two convolutions computed block by block.

    >>> depth_first(64, 64, 56, 56, 3, 56, 4)
    (0, 1722368)
    >>> depth_first(64, 64, 56, 56, 3, 8, 4)
    (51314688, 1353728)
    """
    ### BEGIN SOLUTION
    halo = taps - 1
    computed = loaded = 0
    for first in range(0, height, rows):
        block = min(rows, height - first)
        computed += block + halo
        loaded += block + 2 * halo
    extra_rows = computed - (height + halo)
    flops = extra_rows * (width + halo) * mid * 2 * c * taps * taps
    between = mid * (height + halo) * (width + halo)
    again = c * (loaded - (height + 2 * halo)) * (width + 2 * halo)
    return flops, (2 * between - again) * itemsize
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex03-7-check", "grade": true, "points": 2}
check("3.7", depth_first)
### BEGIN HIDDEN TESTS
ex03.grade("3.7", depth_first)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.8 · The kernels that move the fewest bytes (3 points, open)
#
# Your graph of the first cell is a trunk: each node reads the one before, and some read another value beside it. The
# more nodes share a kernel, the more it reads beside, and the more room it takes. `room` below says how much. Write
# `kernels(graph, sram_bytes)`: all nodes in groups, a list of lists of names. Each group must be allowed by 3.6, its
# room at most `sram_bytes`, and all kernels together must move the fewest bytes that there are, counted as in 3.5.
# Any way is allowed, a search too; only labkit's own passes and plans are the judge and no help.
#
# <details><summary>Hint 1</summary>
#
# A group without a detour is a piece of the trunk. There are few pieces, and not many ways to cut the trunk.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Let best[j] be the fewest bytes for the first j nodes. The last kernel among them begins somewhere.
#
# </details>


# %% nbgrader={"grade_id": "ex03-8-specification", "locked": true}
def room(graph: Graph, group: tuple[str, ...]) -> int:
    """SRAM of a kernel that works row by row: constants as a whole, three rows of what a convolution reads, one row of
    each other tensor that it reads or makes. A value that is read once, and inside, is overwritten in its place."""
    nodes = [graph.producers[name] for name in group]
    images = [node.uses[0].name for node in nodes if node.op == "Conv"]
    reads = {value.name: value for node in nodes for value in node.uses if value.name not in group}
    nbytes = 0
    for value in reads.values():
        if value.name in graph.constants:
            nbytes += value.type.nbytes
        else:
            nbytes += (3 if value.name in images else 1) * value.type.nbytes // value.shape[2]
    for node in nodes:
        readers = [user.output.name for user in graph.users.get(node.output.name, ())]
        in_place = len(readers) == 1 and readers[0] in group and node.output.name not in graph.output_names
        nbytes += 0 if in_place else node.output.type.nbytes // node.output.shape[2]
    return nbytes


print(f"SRAM {given.sram_bytes:,} bytes")
for name in given.graph.producers:
    print(f"{name:4} alone needs {room(given.graph, (name,)):7,} bytes of room")


# %% nbgrader={"grade_id": "ex03-8", "solution": true}
def kernels(graph: Graph, sram_bytes: int) -> list[list[str]]:
    """All nodes in groups that move the fewest bytes.

    >>> found = kernels(given.graph, given.sram_bytes)
    >>> [name for group in found for name in group] == list(given.graph.producers)
    True
    >>> all(room(given.graph, group) <= given.sram_bytes for group in found)
    True
    """
    ### BEGIN SOLUTION
    names = list(graph.producers)

    def moved(group):
        nodes = [graph.producers[name] for name in group]
        values = {value for node in nodes for value in node.uses if value.name not in group}
        for node in nodes:
            readers = {user.output.name for user in graph.users.get(node.output.name, ())}
            if node.output.name in graph.output_names or readers - set(group):
                values.add(node.output)
        return sum(value.type.nbytes for value in values)

    best = [(0, [])]
    for end in range(1, len(names) + 1):
        options = []
        for start in range(end):
            group = names[start:end]
            follows = [graph.producers[name].op for name in group[1:]]
            if "Conv" not in follows and room(graph, group) <= sram_bytes:
                before, split = best[start]
                options.append((before + moved(group), [*split, group]))
        best.append(min(options))
    return best[-1][1]
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex03-8-check", "grade": true, "points": 3}
check("3.8", kernels)
### BEGIN HIDDEN TESTS
ex03.grade("3.8", kernels)
### END HIDDEN TESTS

# %% [markdown]
# ## Done?
#
# Restart the kernel and run all cells: eight lines must say "right". The command `labkit grade` on this file then says
# the same, with more shapes.
