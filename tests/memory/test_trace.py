"""Traces against loops written out in Python, access by access."""

import tracemalloc
from itertools import groupby, product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from labkit import LabError, Layout
from labkit.memory.conv_trace import conv_trace
from labkit.memory.stream import Batches
from labkit.memory.trace import (
    AddressTrace,
    AffineTrace,
    Loop,
    Reference,
    chunks,
    lines,
    matmul_trace,
    walk_trace,
)  # fmt: skip

SMALL = st.integers(1, 6)


def accesses(trace, size=7):
    """[(address, written)] of a whole trace."""
    return [pair for c in chunks(trace, size) for pair in zip(c.addresses.tolist(), c.writes.tolist(), strict=True)]


def aligned(address, align=64):
    return -(-address // align) * align


def tiles_of(length, tile):
    return [range(start, min(start + tile, length)) for start in range(0, length, tile)]


def product_written_out(m, n, k, order, tile, inner, accumulator, itemsize, base):
    """The loops of matmul_trace, one access at a time."""
    a = aligned(base)
    b = aligned(a + m * k * itemsize)
    c = aligned(b + k * n * itemsize)
    sizes = {"m": m, "n": n, "k": k}
    if tile is None:
        tile, order, inner = (m, n, k), "mnk", order
    tiles = {dim: tiles_of(sizes[dim], length) for dim, length in zip("mnk", tile, strict=True)}
    register = accumulator == "register" and inner[2] == "k"
    for chosen in product(*(tiles[dim] for dim in order)):
        ranges = dict(zip(order, chosen, strict=True))
        for outer in product(*(ranges[dim] for dim in inner[:2])):
            at = dict(zip(inner, outer, strict=False))
            if register and len(ranges["k"]) < k:
                yield c + (at["m"] * n + at["n"]) * itemsize, False
            for last in ranges[inner[2]]:
                at[inner[2]] = last
                yield a + (at["m"] * k + at["k"]) * itemsize, False
                yield b + (at["k"] * n + at["n"]) * itemsize, False
                if not register:
                    yield c + (at["m"] * n + at["n"]) * itemsize, False
                    yield c + (at["m"] * n + at["n"]) * itemsize, True
            if register:
                yield c + (at["m"] * n + at["n"]) * itemsize, True


ORDERS = st.permutations("mnk").map("".join)


@given(
    st.tuples(SMALL, SMALL, SMALL), ORDERS, st.none() | st.tuples(SMALL, SMALL, SMALL), ORDERS,
    st.sampled_from(["register", "memory"]), st.sampled_from([1, 4, 8]), st.sampled_from([0, 64, 2**32]),
    st.integers(1, 200),
)  # fmt: skip
def test_a_product_makes_the_accesses_of_its_loops(sizes, order, tile, inner, accumulator, itemsize, base, size):
    trace = matmul_trace(*sizes, itemsize, order, tile, inner, accumulator, base)
    expected = list(product_written_out(*sizes, order, tile, inner, accumulator, itemsize, base))
    assert accesses(trace, size) == expected
    assert trace.accesses == len(expected)


def convolution_written_out(n, c, h, w, filters, kernel, stride, pad, dilation, groups, order):
    """The loops of conv_trace, one access at a time, every tap tested for the padding."""
    rows, columns = ((x + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for x in (h, w))
    shapes = [(n, c, h, w), (filters, c // groups, kernel, kernel), (n, filters, rows, columns)]
    starts = [0]
    for shape in shapes[:2]:
        starts.append(aligned(starts[-1] + 4 * int(np.prod(shape))))

    def address(tensor, *index):
        dims = [0, 1, 2, 3] if order == "NCHW" else [0, 2, 3, 1]
        at = np.ravel_multi_index([index[d] for d in dims], [shapes[tensor][d] for d in dims])
        return starts[tensor] + 4 * int(at)

    channels, per_group = c // groups, filters // groups
    images = product(range(n), range(groups), range(per_group), range(rows), range(columns))
    taps = list(product(range(channels), range(kernel), range(kernel)))
    if order == "NHWC":
        images = ((i, g, f, y, x) for i, y, x, g, f in product(*map(range, (n, rows, columns, groups, per_group))))
        taps = [(ch, r, s) for r, s, ch in product(range(kernel), range(kernel), range(channels))]
    for image, group, f, y, x in images:
        for channel, r, s in taps:
            row, column = y * stride - pad + r * dilation, x * stride - pad + s * dilation
            if 0 <= row < h and 0 <= column < w:
                yield address(0, image, group * channels + channel, row, column), False
                yield address(1, group * per_group + f, channel, r, s), False
        yield address(2, image, group * per_group + f, y, x), True


@given(
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(3, 7), st.integers(3, 7), st.integers(1, 2)),
    st.integers(1, 3), st.integers(1, 3), st.integers(0, 4), st.integers(1, 2), st.integers(1, 2),
    st.sampled_from(["NCHW", "NHWC"]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_a_convolution_makes_the_accesses_of_its_loops(sizes, kernel, stride, pad, dilation, groups, order):
    n, c, h, w, filters = sizes
    arguments = (n, c * groups, h, w, filters * groups, kernel, stride, pad, dilation, groups, order)
    if min(h, w) + 2 * pad < dilation * (kernel - 1) + 1:
        with pytest.raises(LabError, match="output rows"):
            conv_trace(*arguments)
        return
    trace = conv_trace(*arguments)
    expected = list(convolution_written_out(*arguments))
    assert accesses(trace, 50) == expected
    assert trace.accesses == len(expected)


@given(st.permutations("NCHW").map("".join), st.sampled_from(["NCHW", "NHWC", "CHWN"]))
def test_a_walk_visits_the_elements_in_the_order_of_its_loops(loops, order):
    layout = Layout.dense((2, 3, 4, 5), order).slice("W", None, None, -1)
    lengths = dict(zip("NCHW", (2, 3, 4, 5), strict=True))
    expected = []
    for index in product(*(range(lengths[axis]) for axis in loops)):
        at = dict(zip(loops, index, strict=True))
        expected.append((128 + 2 * layout.offset_of(*(at[axis] for axis in "NCHW")), True))
    assert accesses(walk_trace(layout, loops, itemsize=2, kind="write", base=128)) == expected


# ---- random nests: what the batches say is what the accesses say


def written_out(body, index=()):
    """[(address, written, tensor)] of a nest, by recursion."""
    for item in body:
        if isinstance(item, Reference):
            moved = sum(stride * i for stride, i in zip(item.strides, index, strict=True))
            yield item.base + moved, item.kind == "write", item.tensor
        else:
            for i in range(item.count):
                yield from written_out(item.body, (*index, i))


@given(st.data(), st.integers(1, 300))
@settings(deadline=None, max_examples=50)
def test_a_nest_makes_its_accesses_in_program_order(nests, data, size):
    trace = data.draw(nests)
    expected = [(address, written) for address, written, _ in written_out(trace.body)]
    assert accesses(trace, size) == expected
    assert max(len(c.addresses) for c in chunks(trace, size)) <= size


@given(st.data(), st.sampled_from([1, 32, 48, 64]), st.sampled_from([1, 10, 100, 2**16]))
@settings(deadline=None, max_examples=50)
def test_batches_are_the_accesses_at_line_granularity_repeats_written_once(nests, data, line_bytes, size):
    trace = data.draw(nests)
    batches = Batches(trace, line_bytes, size)
    collapsed = []
    for batch in batches.all():
        names = [trace.tensors[tensor] for tensor in batch.tensors]
        for row, times in zip(batch.lines.tolist(), batch.repeats.tolist(), strict=True):
            collapsed += list(zip(row, batch.writes.tolist(), names, strict=True)) * times
    whole = [(address // line_bytes, written, tensor) for address, written, tensor in written_out(trace.body)]
    assert _neighbours_as_one(collapsed) == _neighbours_as_one(whole)


def _neighbours_as_one(entries):
    """Entries next to each other in the same line of the same tensor: one, written if any is."""
    groups = groupby(entries, key=lambda entry: (entry[0], entry[2]))
    return [(line, any(written for _, written, _ in group), tensor) for (line, tensor), group in groups]


def test_the_naive_product_is_collapsed_to_a_sixteenth():
    trace = matmul_trace(64, 64, 64)
    entries = sum(batch.lines.size for batch in Batches(trace, 64).all())
    assert entries == 64 * 4 * (2 * 64 + 1)  # for each i a sequence for 16 values of j: 64 of A, 64 of B, one C
    assert trace.accesses == 16 * entries


# ---- limits


def test_lines_are_addresses_divided_by_the_line():
    trace = matmul_trace(3, 4, 5)
    every = np.concatenate([c.addresses for c in chunks(trace)])
    assert (np.concatenate([c.addresses for c in lines(trace, 48, 11)]) == every // 48).all()


def test_what_is_held_does_not_grow_with_the_trace():
    peaks = []
    for size in (96, 192):
        tracemalloc.start()
        for _ in chunks(matmul_trace(size, size, size)):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] < 20 * 2**20


def test_an_address_trace_keeps_64_bits():
    addresses = [0xF, 0xF + 2**32, 2**62]
    assert [address for address, _ in accesses(AddressTrace.of(addresses))] == addresses


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: matmul_trace(0, 2, 2), "m is 0"),
        (lambda: matmul_trace(2, 2, -1), "k is -1"),
        (lambda: matmul_trace(2**62, 2**62, 2**62), "63 bit"),
        (lambda: matmul_trace(2, 2, 2, order="mnn"), "loop order 'mnn'"),
        (lambda: matmul_trace(2, 2, 2, tile=(1, 0, 1)), "tile n is 0"),
        (lambda: matmul_trace(2, 2, 2, tile=(1, 1)), "three lengths"),
        (lambda: matmul_trace(2, 2, 2, accumulator="sram"), "accumulator 'sram'"),
        (lambda: conv_trace(1, 3, 8, 8, 4, 3, groups=2), "2 groups"),
        (lambda: conv_trace(1, 3, 8, 8, 4, 3, order="CHWN"), "order 'CHWN'"),
        (lambda: conv_trace(1, 1, 2**40, 2**40, 1, 1), "output rows"),
        (lambda: walk_trace(Layout.dense((1, 2, 3, 4)), "NCHH"), "loops 'NCHH'"),
        (lambda: AffineTrace(()), "at least one reference"),
        (lambda: AffineTrace((Loop("i", 0, (Reference("x", 0, (4,)),)),)), "loop i: 0 iterations"),
        (lambda: AffineTrace((Loop("i", 3, (Reference("x", 0, ()),)),)), "0 strides inside 1 loops"),
        (lambda: AffineTrace((Loop("i", 3, (Reference("x", 4, (-4,)),)),)), "addresses -4 to 4"),
        (lambda: AddressTrace.of([-1]), "address -1"),
        (lambda: AddressTrace.of([2**63]), r"below 2\*\*63"),
        (lambda: AddressTrace.of([]), "at least one address"),
        (lambda: AddressTrace.of([1, 2], [True]), "2 addresses and 1 write flags"),
        (lambda: list(chunks(matmul_trace(1, 1, 1), 0)), "chunks of 0"),
        (lambda: list(lines(matmul_trace(1, 1, 1), 0)), "line of 0 bytes"),
        (lambda: matmul_trace(1, 1, 1).bounds("D"), "no tensor 'D'"),
    ],
)
def test_bad_input_is_refused_with_the_numbers(make, message):
    with pytest.raises(LabError, match=message):
        make()
