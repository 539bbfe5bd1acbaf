# %% [markdown]
# # Exercise 02 · Tiling
#
# Seven functions, twenty points, from pencil to kernel. The three kernels are graded on their result **and on the
# bytes they move**: a right product that loads too much earns nothing yet.
#
# - Write your code where it says so, and keep the name and the arguments of each function.
# - Below each function is a check. Run it as often as you like: it says "right", or what to look at.
# - Sizes of memories are in KiB (1024 bytes) where it says so. One multiply-accumulate is two FLOP.
# - A check calls your function with shapes of its own, and grading uses more of them. Time plays no part.
# - Where it says "yours", labkit's own function of that kind does not count.

# %% nbgrader={"grade_id": "ex02-setup", "locked": true}
import numpy as np

from labkit import Scratchpad
from labkit.course import sheet

ex02 = sheet("ex02", seed=0)
check, given = ex02.check, ex02.given

# %% [markdown]
# Your machine and your product, C = A · B with A of m × k and B of k × n:

# %%
print(f"SRAM {given.sram_kib} KiB, m = {given.m}, n = {given.n}, k = {given.k}")

# %% [markdown]
# ## 2.1 · The largest square tile (2 points)
#
# A tiled product works on one tile of A, one of B and one of C at a time, each T × T. What "fits" means is said by
# the cell below: it puts the three on a scratchpad and sees. Write `largest_tile(sram_kib, itemsize)`: the largest T
# that fits. The SRAM is given in KiB, an element has `itemsize` bytes.
#
# <details><summary>Hint</summary>
#
# Three squares together are at most so many elements. Round the edge down, not the area.
#
# </details>


# %% nbgrader={"grade_id": "ex02-1-specification", "locked": true}
def fits(T: int, sram_kib: int, itemsize: int) -> bool:
    """The specification: put three tiles on chip and see. Obvious, and slow for a large SRAM."""
    pad = Scratchpad(f"{sram_kib}KiB")
    try:
        for name in "ABC":
            pad.alloc(name, (T, T), f"f{itemsize}")
    except Exception:
        return False
    return True


# %% nbgrader={"grade_id": "ex02-1", "solution": true}
def largest_tile(sram_kib: int, itemsize: int) -> int:
    """Edge of the largest square tile.

    >>> largest_tile(512, 4)
    209
    """
    ### BEGIN SOLUTION
    elements = sram_kib * 1024 // itemsize
    T = 0
    while elements >= 3 * (T + 1) ** 2:
        T += 1
    return T
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex02-1-check", "grade": true, "points": 2}
check("2.1", largest_tile)
### BEGIN HIDDEN TESTS
ex02.grade("2.1", largest_tile)
### END HIDDEN TESTS

# %% [markdown]
# ## 2.2 · The working set (2 points)
#
# Tiles need not be square. A tile (TM, TN, TK) takes TM × TK of A, TK × TN of B and TM × TN of C. With **double
# buffers** the next tile arrives while the present one is in use, so what arrives at every step is there twice. Write
# `working_set(tile, itemsize, double)`: the bytes of SRAM that are needed. All elements have `itemsize` bytes. In
# float32, `most_on_chip` below measures it.
#
# <details><summary>Hint</summary>
#
# Walk along k with a finger: which of the three tiles is another one at the next step, and which stays?
#
# </details>

# %% nbgrader={"grade_id": "ex02-2-specification", "locked": true}
from labkit.kernels.matmul import tiled_matmul as labkit_matmul


def most_on_chip(tile: tuple[int, int, int], double: bool) -> int:
    """The specification, in float32: a kernel of labkit makes two steps along k; the most bytes it had on chip."""
    tm, tn, tk = tile
    A, B = np.ones((tm, 2 * tk), np.float32), np.ones((2 * tk, tn), np.float32)
    pad = Scratchpad("1GiB")
    labkit_matmul(A, B, tile, pad, buffers="double" if double else "single")
    return pad.high_water_bytes


assert (most_on_chip((128, 128, 128), False), most_on_chip((128, 128, 128), True)) == (196608, 327680)


# %% nbgrader={"grade_id": "ex02-2", "solution": true}
def working_set(tile: tuple[int, int, int], itemsize: int, double: bool) -> int:
    """Bytes of SRAM for the tiles that are on chip together.

    >>> working_set((128, 128, 128), 4, False), working_set((128, 128, 128), 4, True)
    (196608, 327680)
    """
    ### BEGIN SOLUTION
    tm, tn, tk = tile
    arriving = tm * tk + tk * tn
    if double:
        arriving *= 2
    return (arriving + tm * tn) * itemsize
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex02-2-check", "grade": true, "points": 2}
check("2.2", working_set)
### BEGIN HIDDEN TESTS
ex02.grade("2.2", working_set)
### END HIDDEN TESTS

# %% [markdown]
# ## 2.3 · Intensity, with C (2 points)
#
# The loops are m, n, k over tiles, k innermost. Each step loads its tile of A and its tile of B. A tile of C starts at
# zero on chip, stays while k runs, and is written once. Tiles at the edge are smaller and move what they have. Write
# `intensity(m, n, k, tile, itemsize)`: FLOP of the whole product per byte moved.
#
# <details><summary>Hint 1</summary>
#
# How many steps use one given tile of A? Count along the axis that A does not have.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The smaller tiles of one row of tiles add up to exactly the row. So count how often the whole of A comes.
#
# </details>


# %% nbgrader={"grade_id": "ex02-3-specification", "locked": true}
def bytes_moved(m: int, n: int, k: int, tile: tuple[int, int, int], itemsize: int) -> int:
    """The specification, step by step, without what is written of C: that is left to you."""
    nbytes = 0
    for i in range(0, m, tile[0]):
        for j in range(0, n, tile[1]):
            for s in range(0, k, tile[2]):
                tm, tn, tk = min(tile[0], m - i), min(tile[1], n - j), min(tile[2], k - s)
                nbytes += (tm * tk + tk * tn) * itemsize
    return nbytes


# %% nbgrader={"grade_id": "ex02-3", "solution": true}
def intensity(m: int, n: int, k: int, tile: tuple[int, int, int], itemsize: int) -> float:
    """FLOP per byte of the whole product.

    >>> round(intensity(1024, 1024, 1024, (128, 128, 128), 4), 2)
    30.12
    """
    ### BEGIN SOLUTION
    tm, tn, _ = tile
    of_a = m * k * -(-n // tn)
    of_b = k * n * -(-m // tm)
    return 2 * m * n * k / ((of_a + of_b + m * n) * itemsize)
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex02-3-check", "grade": true, "points": 2}
check("2.3", intensity)
### BEGIN HIDDEN TESTS
ex02.grade("2.3", intensity)
### END HIDDEN TESTS

# %% [markdown]
# ## 2.4 · A tiled product on a scratchpad (4 points)
#
# Now the kernel, and it has to be yours. `A` (m × k) and `B` (k × n) lie in DRAM, in float32, and cannot be computed
# with there: their elements become numbers when they are loaded. The pad holds exactly one tile of A, one of B and one
# of C, of the size `tile` = (TM, TN, TK). Give back C in DRAM, a float32 array.
#
# | call | does | counts |
# |---|---|---|
# | `pad.load("A", A[i:i2, s:s2])` | a copy on chip, which it gives back | bytes read |
# | `pad.alloc("C", (rows, columns), np.float32)` | zeros on chip | nothing |
# | `pad.store("C", C[i:i2, j:j2])` | copies the buffer "C" to DRAM | bytes written |
# | `pad.free("A")` | gives the room back | nothing |
#
# What must come out is `product` below. It must move no more than 2.3 says.
#
# <details><summary>Hint 1</summary>
#
# A slice that goes past the end is cut off by Python: `A[i : i + TM]` is right at the edge, too.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Three loops over tiles. Before which of them starts a tile of C, and after which of them is it complete?
#
# </details>


# %% nbgrader={"grade_id": "ex02-4-specification", "locked": true}
def product(A: np.ndarray, B: np.ndarray) -> list[list[float]]:
    """The specification: obvious, slow, and blind to memory."""
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in B.T] for row in A]


# %% nbgrader={"grade_id": "ex02-4", "solution": true}
def tiled_matmul(A: np.ndarray, B: np.ndarray, tile: tuple[int, int, int], pad: Scratchpad) -> np.ndarray:
    """The product of A and B, tile by tile through the pad.

    >>> pad = Scratchpad("48B")
    >>> A, B = np.eye(4, dtype=np.float32), np.ones((4, 4), np.float32)
    >>> tiled_matmul(A, B, (2, 2, 2), pad).tolist() == B.tolist()
    True
    >>> pad.ledger.traffic.read_bytes, pad.ledger.traffic.write_bytes
    (256, 64)
    """
    ### BEGIN SOLUTION
    tm, tn, tk = tile
    m, n, k = A.shape[0], B.shape[1], A.shape[1]
    C = np.zeros((m, n), np.float32)
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
            pad.store("C", block)
            pad.free("C")
    return C
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex02-4-check", "grade": true, "points": 4}
check("2.4", tiled_matmul)
### BEGIN HIDDEN TESTS
ex02.grade("2.4", tiled_matmul)
### END HIDDEN TESTS

# %% [markdown]
# ## 2.5 · Double buffers (3 points)
#
# The same product, the same bytes, but no waiting. When the arithmetic of one step begins, the tiles of A and B of the
# next step along k are on chip already, so they could have arrived meanwhile. The pad has room for two tiles of
# A, two of B and one of C. Use two names for the buffers of each, such as "A0" and "A1" (`slots=2` of `pad.load`
# reserves the room, but brings nothing earlier). At the first step of a tile of C you may wait. On a `WaitingPad`
# that is two waits for each tile of C, one for A and one for B; there may be no others.
#
# <details><summary>Hint</summary>
#
# Load step 0. Then for each step: if there is a next one, load it; compute this one; free this one.
#
# </details>


# %% nbgrader={"grade_id": "ex02-5-specification", "locked": true}
class WaitingPad(Scratchpad):
    """The specification: a pad that counts the loads that arithmetic waits for: no other tile of A (or B) is there."""

    waits = 0

    def load(self, name: str, tile: np.ndarray, **options: object) -> np.ndarray:
        self.waits += not any(resident[0] == name[0] for resident in self.resident)
        return super().load(name, tile, **options)


waiting = WaitingPad("1KiB")
for buffer in ("A0", "B0", "A1"):  # the tiles of step 0, and one of step 1 while they are still there
    waiting.load(buffer, np.ones((2, 2), np.float32))
assert waiting.waits == 2


# %% nbgrader={"grade_id": "ex02-5", "solution": true}
def double_buffered(A: np.ndarray, B: np.ndarray, tile: tuple[int, int, int], pad: Scratchpad) -> np.ndarray:
    """The product of A and B; the next tiles arrive before the present ones go.

    >>> pad = Scratchpad("80B")
    >>> A, B = np.eye(4, dtype=np.float32), np.ones((4, 4), np.float32)
    >>> double_buffered(A, B, (2, 2, 2), pad).tolist() == B.tolist()
    True
    >>> pad.ledger.traffic.read_bytes, pad.high_water_bytes
    (256, 80)
    """
    ### BEGIN SOLUTION
    tm, tn, tk = tile
    m, n, k = A.shape[0], B.shape[1], A.shape[1]
    C = np.zeros((m, n), np.float32)

    def load(step, i, j):
        s = step * tk
        a = pad.load(f"A{step % 2}", A[i : i + tm, s : s + tk])
        b = pad.load(f"B{step % 2}", B[s : s + tk, j : j + tn])
        return a, b

    steps = -(-k // tk)
    for i in range(0, m, tm):
        for j in range(0, n, tn):
            block = C[i : i + tm, j : j + tn]
            c = pad.alloc("C", block.shape, np.float32)
            present = load(0, i, j)
            for step in range(steps):
                following = load(step + 1, i, j) if step + 1 < steps else None
                a, b = present
                c += a @ b
                pad.free(f"A{step % 2}")
                pad.free(f"B{step % 2}")
                present = following
            pad.store("C", block)
            pad.free("C")
    return C
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex02-5-check", "grade": true, "points": 3}
check("2.5", double_buffered)
### BEGIN HIDDEN TESTS
ex02.grade("2.5", double_buffered)
### END HIDDEN TESTS

# %% [markdown]
# ## 2.6 · A convolution with its halo (4 points)
#
# Given are an image `x` of (channels, height, width) and filters `w` of (filters, channels, R, S). With stride 1 and no
# padding the result has height − R + 1 rows and width − S + 1 columns. `convolution` below says what it is. Compute it
# by blocks of `rows` output rows, all filters at once. Neighbouring blocks need some of the same rows of x, the
# **halo**; each block loads what it needs. The pad holds one block of x with its halo, one block of y, and all weights.
# Give back y in DRAM, a float32 array. It has to be yours.
#
# <details><summary>Hint 1</summary>
#
# Which rows of x do the taps of output row p see? And those of rows p to p + rows − 1?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# On chip: for each tap (r, s), the rows of the block moved by r and the columns moved by s, times w[:, :, r, s].
# `np.einsum("fc,cpq->fpq", ...)` adds up the channels.
#
# </details>


# %% nbgrader={"grade_id": "ex02-6-specification", "locked": true}
def convolution(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The specification: obvious, slow, and blind to memory."""
    filters, channels, R, S = w.shape
    y = np.zeros((filters, x.shape[1] - R + 1, x.shape[2] - S + 1), np.float32)
    for f, p, q in np.ndindex(y.shape):
        for c, r, s in np.ndindex(channels, R, S):
            y[f, p, q] += x[c, p + r, q + s] * w[f, c, r, s]
    return y


# %% nbgrader={"grade_id": "ex02-6", "solution": true}
def tiled_conv(x: np.ndarray, w: np.ndarray, rows: int, pad: Scratchpad) -> np.ndarray:
    """The convolution of x with w, by blocks of output rows through the pad.

    >>> pad = Scratchpad("100B")
    >>> x, w = np.ones((1, 4, 4), np.float32), np.ones((1, 1, 3, 3), np.float32)
    >>> tiled_conv(x, w, 1, pad).tolist()
    [[[9.0, 9.0], [9.0, 9.0]]]
    >>> pad.ledger.traffic.read_bytes, pad.ledger.traffic.write_bytes
    (132, 16)
    """
    ### BEGIN SOLUTION
    (filters, _, R, S), height, width = w.shape, x.shape[1], x.shape[2]
    P, Q = height - R + 1, width - S + 1
    y = np.zeros((filters, P, Q), np.float32)
    weights = pad.load("w", w)
    for p in range(0, P, rows):
        block = y[:, p : p + rows]
        image = pad.load("x", x[:, p : p + block.shape[1] + R - 1])
        sums = pad.alloc("y", block.shape, np.float32)
        for r in range(R):
            for s in range(S):
                seen = image[:, r : r + block.shape[1], s : s + Q]
                sums += np.einsum("fc,cpq->fpq", weights[:, :, r, s], seen)
        pad.store("y", block)
        pad.free("x")
        pad.free("y")
    pad.free("w")
    return y
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex02-6-check", "grade": true, "points": 4}
check("2.6", tiled_conv)
### BEGIN HIDDEN TESTS
ex02.grade("2.6", tiled_conv)
### END HIDDEN TESTS

# %% [markdown]
# ## 2.7 · Beat the square (3 points, open)
#
# The largest square tile is not the best one. Write `schedule(m, n, k, sram_bytes, itemsize)`: an order of the three
# loops over tiles, outermost first, and a tile (TM, TN, TK), single buffers. `LoopNest` counts the bytes, as below.
# The points are yours when your tile moves at most 5 % more than the best there is, for your product and for others
# like it. Any way is allowed, a search too; only `labkit.search` is the judge and no help.
#
# <details><summary>Hint 1</summary>
#
# Look at the formula of 2.3: which of TM, TN and TK are in it? What does the third one cost?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Only the *number* of tiles along m and n counts. Of all tiles with that number the smallest leaves most room.
#
# </details>

# %% nbgrader={"grade_id": "ex02-7-specification", "locked": true}
from labkit.loops import LoopNest
from labkit.problems import matmul


def nbytes_of(order: str, tile: tuple[int, int, int], m: int, n: int, k: int, dtype: str = "float32") -> int:
    """Bytes that move, counted as the check counts them."""
    return LoopNest(matmul(m, n, k, dtype), tile, tuple(order)).traffic.nbytes


for T in range(16, 257, 16):
    if given.sram_kib * 1024 >= 3 * T * T * 4:
        print(f"a square tile of {T:3} moves {nbytes_of('mnk', (T, T, T), given.m, given.n, given.k):12,} bytes")


# %% nbgrader={"grade_id": "ex02-7", "solution": true}
def schedule(m: int, n: int, k: int, sram_bytes: int, itemsize: int) -> tuple[str, tuple[int, int, int]]:
    """A loop order and a tile that move few bytes.

    >>> order, tile = schedule(1024, 1024, 1024, 512 * 1024, 4)
    >>> nbytes_of(order, tile, 1024, 1024, 1024) < nbytes_of("mnk", (209, 209, 209), 1024, 1024, 1024)
    True
    """
    ### BEGIN SOLUTION
    elements = sram_bytes // itemsize
    found = []
    for rows in range(1, m + 1):  # number of tiles along m
        tm = -(-m // rows)
        most = min((elements - tm) // (tm + 1), n)  # one column of A, one row of B, and C
        if most < 1:
            continue
        columns = -(-n // most)
        tn = -(-n // columns)
        found.append((m * k * columns + k * n * rows, tm, tn))
    _, tm, tn = min(found)
    return "mnk", (tm, tn, 1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex02-7-check", "grade": true, "points": 3}
check("2.7", schedule)
### BEGIN HIDDEN TESTS
ex02.grade("2.7", schedule)
### END HIDDEN TESTS

# %% [markdown]
# ## Done?
#
# Restart the kernel and run all cells: seven lines must say "right". The command `labkit grade` on this file then says
# the same, with more shapes.
