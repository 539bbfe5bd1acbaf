# %% [markdown]
# # Exercise 01 · Layouts
#
# Six functions, twelve points. You write the counters of lesson 01 yourself.
#
# - Write your code where it says so, and keep the name and the arguments of each function.
# - Below each function is a check. Run it as often as you like: it says "right", or what to look at.
# - Shapes are logical shapes (N, C, H, W). Strides and offsets count **elements**, lines and prices count **bytes**.
# - A check may call your function with other shapes than the example. The time it takes plays no part.

# %% nbgrader={"grade_id": "ex01-setup", "locked": true}
import numpy as np

from labkit import Layout
from labkit.course import check
from labkit.memory.ledger import Ledger

# %% [markdown]
# ## 1.1 · Strides of a memory order (2 points)
#
# Write `strides(shape, order)`. `shape` is always (N, C, H, W). `order` names the same four axes from the slowest
# to the fastest in memory, for example "NHWC". Give back the four strides in elements, listed in logical order: N,
# C, H, W. Do it without labkit's `Layout`.


# %% nbgrader={"grade_id": "ex01-1", "solution": true}
def strides(shape, order):
    """Strides (N, C, H, W) in elements.

    >>> strides((2, 3, 4, 4), "NCHW")
    (48, 16, 4, 1)
    >>> strides((2, 3, 4, 4), "NHWC")
    (48, 1, 12, 3)
    """
    ### BEGIN SOLUTION
    length = dict(zip("NCHW", shape, strict=True))
    stride, step = {}, 1
    for axis in reversed(order):
        stride[axis] = step
        step *= length[axis]
    return tuple(stride[axis] for axis in "NCHW")
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex01-1-check", "grade": true, "points": 2}
check("1.1", strides)

# %% [markdown]
# ## 1.2 · Offset of an element (1 point)
#
# Write `offset_of(index, strides, offset)`. `offset` is where the element with all indices zero lies. Strides may
# be negative (a flipped axis) or zero (a broadcast one).


# %% nbgrader={"grade_id": "ex01-2", "solution": true}
def offset_of(index, strides, offset):
    """Offset of one element, in elements.

    >>> offset_of((1, 2, 3, 0), (48, 16, 4, 1), 0)
    92
    >>> offset_of((0, 0, 1, 0), (48, 16, -4, 1), 12)
    8
    """
    ### BEGIN SOLUTION
    return offset + sum(i * stride for i, stride in zip(index, strides, strict=True))
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex01-2-check", "grade": true, "points": 1}
check("1.2", offset_of)

# %% [markdown]
# ## 1.3 · View or copy (2 points)
#
# When can a tensor be reshaped to one flat axis *without a copy*? When its elements, visited in logical order (last
# axis fastest), lie one constant step apart in memory. That step becomes the only stride of the flat view. It may
# be larger than one, and negative.
#
# Write `can_flatten(shape, strides)`: True when a view is enough, False when a copy is needed. Every length is 1 or
# more. Remember that an axis of length 1 never moves.


# %% nbgrader={"grade_id": "ex01-3", "solution": true}
def can_flatten(shape, strides):
    """Whether the tensor can be seen as one flat axis without a copy.

    >>> can_flatten((3, 4), (4, 1))
    True
    >>> can_flatten((3, 4), (1, 3))
    False
    >>> can_flatten((3, 4), (8, 2))
    True
    """
    ### BEGIN SOLUTION
    wanted = None  # the stride that the next slower axis must have
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length == 1:
            continue
        if wanted is not None and stride != wanted:
            return False
        wanted = stride * length
    return True
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex01-3-check", "grade": true, "points": 2}
check("1.3", can_flatten)

# %% [markdown]
# ## 1.4 · Lines touched (2 points)
#
# Write `lines_touched(offsets, itemsize, line_bytes)`: how many different lines must be fetched to read the
# elements at these offsets? `offsets` is a list of offsets in elements, in any order; one may come twice. An
# element has `itemsize` bytes and never crosses a line border, because `itemsize` divides `line_bytes` and offset 0
# lies at byte 0.


# %% nbgrader={"grade_id": "ex01-4", "solution": true}
def lines_touched(offsets, itemsize, line_bytes):
    """Number of different lines that hold these elements.

    >>> lines_touched([0, 16, 32], 4, 64)
    3
    >>> lines_touched([15, 16, 17], 4, 64)
    2
    """
    ### BEGIN SOLUTION
    return len({offset * itemsize // line_bytes for offset in offsets})
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex01-4-check", "grade": true, "points": 2}
check("1.4", lines_touched)

# %% [markdown]
# ## 1.5 · Pixels across a line border (2 points)
#
# An image lies in memory in NHWC: pixel after pixel, `channels` elements of `itemsize` bytes each. The first pixel
# begins at byte `base`. Write `straddling_pixels(pixels, channels, itemsize, line_bytes, base=0)`: the list of the
# pixels, counted from 0, that do not lie inside one line.


# %% nbgrader={"grade_id": "ex01-5", "solution": true}
def straddling_pixels(pixels, channels, itemsize, line_bytes, base=0):
    """Numbers of the pixels that cross a line border, in ascending order.

    >>> straddling_pixels(16, 3, 4, 64)
    [5, 10]
    >>> straddling_pixels(16, 4, 4, 64)
    []
    """
    ### BEGIN SOLUTION
    nbytes, crossing = channels * itemsize, []
    for pixel in range(pixels):
        first = base + pixel * nbytes
        last = first + nbytes - 1
        if first // line_bytes != last // line_bytes:
            crossing.append(pixel)
    return crossing
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex01-5-check", "grade": true, "points": 2}
check("1.5", straddling_pixels)

# %% [markdown]
# ## 1.6 · The price of a layout transform (3 points)
#
# Write `convert(storage, shape, source, target, ledger)`. `storage` is a flat NumPy array that holds a tensor of
# logical shape (N, C, H, W) in the memory order `source`. Give back a *new* flat array of the same type with the
# same tensor in the order `target`, and record in the ledger what the copy moves: every element is read once and
# written once.
#
# You may use `Layout.dense(shape, order)` with its `offset_of(n, c, h, w)` or `offsets()` here. An entry of the
# ledger is `ledger.record(node, value, kind, nbytes)`: any name for the node and the value, "read" or "write" for
# the kind. One entry for each direction is enough.


# %% nbgrader={"grade_id": "ex01-6", "solution": true}
def convert(storage, shape, source, target, ledger: Ledger):
    """The same tensor in another memory order; what it moves is recorded.

    >>> ledger = Ledger()
    >>> convert(np.array([0, 1, 2, 3], np.int32), (1, 2, 1, 2), "NCHW", "NHWC", ledger).tolist()
    [0, 2, 1, 3]
    >>> ledger.traffic.read_bytes, ledger.traffic.write_bytes
    (16, 16)
    """
    ### BEGIN SOLUTION
    converted = np.empty_like(storage)
    converted[Layout.dense(shape, target).offsets()] = storage[Layout.dense(shape, source).offsets()]
    ledger.record("convert", "x", "read", storage.nbytes)
    ledger.record("convert", "x", "write", converted.nbytes)
    return converted
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex01-6-check", "grade": true, "points": 3}
check("1.6", convert)

# %% [markdown]
# ## Done?
#
# Restart the kernel and run all cells: six lines must say "right". The command `labkit grade` on this file then
# says the same.
