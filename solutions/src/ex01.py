# %% [markdown]
# # Exercise 01 · Layouts
#
# Seven functions, fourteen points. You write the counters of lesson 01 yourself.
#
# - Write your code where it says so, and keep the name and the arguments of each function.
# - Below each function is a check. Run it as often as you like: it says "right", or what to look at.
# - Shapes are logical shapes (N, C, H, W). Strides and offsets count **elements**, lines and prices count **bytes**.
# - A check calls your function with shapes of its own, and grading uses more of them. Time plays no part.

# %% nbgrader={"grade_id": "ex01-setup", "locked": true}
import numpy as np

from labkit import Layout
from labkit.course import sheet
from labkit.memory.ledger import Ledger

ex01 = sheet("ex01", seed=0)
check = ex01.check

# %% [markdown]
# ## 1.1 · Strides of a memory order (2 points)
#
# Write `strides(shape, order)`. `shape` is always (N, C, H, W). `order` names the same four axes from the slowest
# to the fastest in memory, for example "NHWC". Give back the four strides in elements, listed in logical order: N,
# C, H, W. Do it without labkit's `Layout`. What a stride is, `numbered` below says: how much larger the number of the
# next element along the axis is. (An axis of length 1 has no next one. It has the stride that it would have if it
# were longer.)
#
# <details><summary>Hint</summary>
#
# Walk from the last letter of the order to the first, and keep what one step there must skip.
#
# </details>


# %% nbgrader={"grade_id": "ex01-1-specification", "locked": true}
def numbered(shape: tuple[int, ...], order: str) -> dict[tuple[int, ...], int]:
    """The specification: walk through all elements as they lie in memory, and number them."""
    length, numbers = dict(zip("NCHW", shape, strict=True)), {}
    for number, step in enumerate(np.ndindex(*(length[axis] for axis in order))):
        index = dict(zip(order, step, strict=True))
        numbers[tuple(index[axis] for axis in "NCHW")] = number
    return numbers


number = numbered((2, 3, 4, 4), "NHWC")
assert (number[1, 0, 0, 0], number[0, 1, 0, 0], number[0, 0, 1, 0], number[0, 0, 0, 1]) == (48, 1, 12, 3)


# %% nbgrader={"grade_id": "ex01-1", "solution": true}
def strides(shape: tuple[int, ...], order: str) -> tuple[int, ...]:
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
### BEGIN HIDDEN TESTS
ex01.grade("1.1", strides)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.2 · Offset of an element (1 point)
#
# Write `offset_of(index, strides, offset)`. `offset` is where the element with all indices zero lies. Strides may
# be negative (a flipped axis) or zero (a broadcast one). NumPy knows the answer, too: `stands_at` reads it from a
# memory that holds nothing but offsets.
#
# <details><summary>Hint</summary>
#
# Where is the element with all indices zero? From there, each index makes its own steps.
#
# </details>


# %% nbgrader={"grade_id": "ex01-2-specification", "locked": true}
def stands_at(view: np.ndarray, index: tuple[int, ...]) -> int:
    """The specification: each element of the memory holds its own offset, so read the one at this index."""
    return int(view[index])


memory = np.arange(96).reshape(2, 3, 4, 4)  # strides (48, 16, 4, 1)
flipped = memory[:, :, ::-1]  # strides (48, 16, -4, 1), and the element with all indices zero has the offset 12
assert (stands_at(memory, (1, 2, 3, 0)), stands_at(flipped, (0, 0, 1, 0))) == (92, 8)


# %% nbgrader={"grade_id": "ex01-2", "solution": true}
def offset_of(index: tuple[int, ...], strides: tuple[int, ...], offset: int) -> int:
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
### BEGIN HIDDEN TESTS
ex01.grade("1.2", offset_of)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.3 · View or copy (2 points)
#
# When can a tensor be reshaped to one flat axis *without a copy*? When its elements, visited in logical order (last
# axis fastest), lie one constant step apart in memory. That step becomes the only stride of the flat view. It may
# be larger than one, and negative.
#
# Write `can_flatten(shape, strides)`: True when a view is enough, False when a copy is needed. Every length is 1 or
# more. Remember that an axis of length 1 never moves. NumPy does the same with its own tensors, and `is_view` asks it.
#
# <details><summary>Hint</summary>
#
# Write down the offsets of a small example in logical order, and their differences.
#
# </details>


# %% nbgrader={"grade_id": "ex01-3-specification", "locked": true}
def is_view(tensor: np.ndarray) -> bool:
    """The specification: NumPy makes the tensor flat. Does the result lie in the same memory?"""
    return np.shares_memory(tensor, tensor.reshape(-1))


assert is_view(np.zeros((3, 4)))  # strides (4, 1)
assert not is_view(np.zeros((4, 3)).T)  # shape (3, 4), strides (1, 3)
assert is_view(np.zeros((3, 8))[:, ::2])  # shape (3, 4), strides (8, 2)


# %% nbgrader={"grade_id": "ex01-3", "solution": true}
def can_flatten(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
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
### BEGIN HIDDEN TESTS
ex01.grade("1.3", can_flatten)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.4 · Lines touched (2 points)
#
# Write `lines_touched(offsets, itemsize, line_bytes)`: how many different lines must be fetched to read the
# elements at these offsets? `offsets` is a list of offsets in elements, in any order; one may come twice. An
# element has `itemsize` bytes and never crosses a line border, because `itemsize` divides `line_bytes` and offset 0
# lies at byte 0. Which lines these are, `is_fetched` says byte by byte.
#
# <details><summary>Hint</summary>
#
# In which line lies one element? Two elements of one line are fetched together: which type of Python forgets doubles?
#
# </details>


# %% nbgrader={"grade_id": "ex01-4-specification", "locked": true}
def is_fetched(line: int, offsets: list[int], itemsize: int, line_bytes: int) -> bool:
    """The specification, for one line: does one of its bytes belong to one of the elements?"""
    wanted = {offset * itemsize + byte for offset in offsets for byte in range(itemsize)}
    return any(line * line_bytes + byte in wanted for byte in range(line_bytes))


assert [is_fetched(line, [15, 16, 17], 4, 64) for line in range(3)] == [True, True, False]


# %% nbgrader={"grade_id": "ex01-4", "solution": true}
def lines_touched(offsets: list[int], itemsize: int, line_bytes: int) -> int:
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
### BEGIN HIDDEN TESTS
ex01.grade("1.4", lines_touched)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.5 · Pixels across a line border (2 points)
#
# An image lies in memory in NHWC: pixel after pixel, `channels` elements of `itemsize` bytes each. The first pixel
# begins at byte `base`. Write `straddling_pixels(pixels, channels, itemsize, line_bytes, base=0)`: the list of the
# pixels, counted from 0, that do not lie inside one line. `lines_of` below lists the bytes of the whole image.
#
# <details><summary>Hint</summary>
#
# A pixel lies inside one line when its first and its last byte do. Which byte is its last one?
#
# </details>


# %% nbgrader={"grade_id": "ex01-5-specification", "locked": true}
def lines_of(pixels: int, channels: int, itemsize: int, line_bytes: int, base: int = 0) -> list[tuple[int, int]]:
    """The specification: for each byte of the image, its pixel and its line. A pixel that has two lines straddles."""
    owners = [pixel for pixel in range(pixels) for _ in range(channels) for _ in range(itemsize)]
    return [(pixel, (base + place) // line_bytes) for place, pixel in enumerate(owners)]


assert {line for pixel, line in lines_of(16, 3, 4, 64) if pixel == 4} == {0}
assert {line for pixel, line in lines_of(16, 3, 4, 64) if pixel == 5} == {0, 1}


# %% nbgrader={"grade_id": "ex01-5", "solution": true}
def straddling_pixels(pixels: int, channels: int, itemsize: int, line_bytes: int, base: int = 0) -> list[int]:
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
### BEGIN HIDDEN TESTS
ex01.grade("1.5", straddling_pixels)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.6 · The price of a layout transform (3 points)
#
# Write `convert(storage, shape, source, target, ledger)`. `storage` is a flat NumPy array that holds a tensor of
# logical shape (N, C, H, W) in the memory order `source`. Give back a *new* flat array of the same type with the
# same tensor in the order `target`. Record in the ledger what the copy moves: every element is read once and
# written once. `same_tensor` says whether two arrays hold the same tensor.
#
# You may use `Layout.dense(shape, order)` with its `offset_of(n, c, h, w)` or `offsets()` here. An entry of the
# ledger is `ledger.record(node, value, kind, nbytes)`: any name for the node and the value, "read" or "write" for
# the kind. One entry for each direction is enough.
#
# <details><summary>Hint</summary>
#
# Every element has an offset in the source and one in the target. `nbytes` of an array is its size in bytes.
#
# </details>


# %% nbgrader={"grade_id": "ex01-6-specification", "locked": true}
def same_tensor(one: np.ndarray, two: np.ndarray, shape: tuple[int, ...], source: str, target: str) -> bool:
    """The specification: each element of ``one``, in the order source, stands in ``two``, in the order target."""
    here, there = Layout.dense(shape, source), Layout.dense(shape, target)
    return all(one[here.offset_of(*index)] == two[there.offset_of(*index)] for index in np.ndindex(*shape))


assert same_tensor(np.array([0, 1, 2, 3]), np.array([0, 2, 1, 3]), (1, 2, 1, 2), "NCHW", "NHWC")
assert not same_tensor(np.array([0, 1, 2, 3]), np.array([0, 1, 2, 3]), (1, 2, 1, 2), "NCHW", "NHWC")


# %% nbgrader={"grade_id": "ex01-6", "solution": true}
def convert(storage: np.ndarray, shape: tuple[int, ...], source: str, target: str, ledger: Ledger) -> np.ndarray:
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
### BEGIN HIDDEN TESTS
ex01.grade("1.6", convert)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.7 · Choose a layout (2 points, open)
#
# A program walks through a tensor of shape (N, C, H, W) along single axes. `walks` says how often:
# `[("C", 30), ("W", 2)]` are thirty walks along C and two along W. Each walk starts at the first element and reads all
# elements along its axis, the other three indices are 0; between two walks nothing stays in the cache. Element 0 lies
# at byte 0. Write `choose_order(shape, walks, itemsize, line_bytes)`: a memory order for which all walks together
# touch the fewest lines. `walked_lines` says what is counted. Where several orders are best, any of them will do.
#
# <details><summary>Hint</summary>
#
# There are only 24 orders.
#
# </details>


# %% nbgrader={"grade_id": "ex01-7-specification", "locked": true}
def walked_lines(order: str, shape: tuple[int, ...], axis: str, itemsize: int, line_bytes: int) -> int:
    """The specification: lines that one walk along an axis touches."""
    layout, lines = Layout.dense(shape, order), set()
    for i in range(shape["NCHW".index(axis)]):
        index = {"N": 0, "C": 0, "H": 0, "W": 0, axis: i}
        lines.add(layout.offset_of(*index.values()) * itemsize // line_bytes)
    return len(lines)


# %% nbgrader={"grade_id": "ex01-7", "solution": true}
def choose_order(shape: tuple[int, ...], walks: list[tuple[str, int]], itemsize: int, line_bytes: int) -> str:
    """The memory order in which the walks touch the fewest lines.

    >>> choose_order((2, 64, 3, 2), [("C", 10)], 4, 64)[-1]
    'C'
    """
    ### BEGIN SOLUTION
    from itertools import permutations

    orders = map("".join, permutations("NCHW"))

    def lines(order):
        return sum(times * walked_lines(order, shape, axis, itemsize, line_bytes) for axis, times in walks)

    return min(orders, key=lines)
    ### END SOLUTION


# %% nbgrader={"grade_id": "ex01-7-check", "grade": true, "points": 2}
check("1.7", choose_order)
### BEGIN HIDDEN TESTS
ex01.grade("1.7", choose_order)
### END HIDDEN TESTS

# %% [markdown]
# ## Done?
#
# Restart the kernel and run all cells: seven lines must say "right". The command `labkit grade` on this file then
# says the same, with more shapes.
