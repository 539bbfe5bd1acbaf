"""Traces of tiled nests against loops over tiles and elements written out, every tap tested for the padding."""

from itertools import product
from math import prod

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from labkit import LabError
from labkit.loops import LoopNest
from labkit.memory.cache import Cache, simulate
from labkit.memory.conv_trace import conv_trace
from labkit.memory.nest_trace import nest_trace
from labkit.memory.reuse import simulate_optimal
from labkit.memory.trace import chunks, matmul_trace
from labkit.problems import ConvShape, conv, im2col, matmul

SMALL = st.integers(1, 5)


def accesses(trace):
    return [pair for c in chunks(trace) for pair in zip(c.addresses.tolist(), c.writes.tolist(), strict=True)]


def written_out(nest, base=0, align=64):
    """The accesses of a nest, one at a time."""
    problem, starts, end = nest.problem, [], base
    for operand in problem.operands:
        starts.append(-(-end // align) * align)
        end = starts[-1] + operand.nbytes

    def address(which, at):
        """The address of an operand's element, None for padding."""
        operand = problem.operands[which]
        place = [sum(at[loop] * by for loop, by in axis.terms) + axis.offset for axis in operand.axes]
        if any(not 0 <= one < size for one, size in zip(place, operand.shape, strict=True)):
            return None
        return starts[which] + operand.itemsize * int(np.ravel_multi_index(place, operand.shape))

    outside = [loop for axis in problem.output.axes for loop in axis.loops]
    inside = [loop for axis in problem.inputs[0].axes for loop in axis.loops if loop not in outside]
    cut = any(nest.tiles[loop] < problem.loops[loop] for loop in inside)
    tiles = [
        [range(at, min(at + nest.tiles[loop], problem.loops[loop])) for at in range(0, size, nest.tiles[loop])]
        for loop, size in ((loop, problem.loops[loop]) for loop in nest.order)
    ]
    for chosen in product(*tiles):
        ranges = dict(zip(nest.order, chosen, strict=True))
        for outer in product(*(ranges[loop] for loop in outside)):
            at = dict(zip(outside, outer, strict=True))
            if cut:
                yield address(2, at), False
            for inner in product(*(ranges[loop] for loop in inside)):
                reads = [address(which, at | dict(zip(inside, inner, strict=True))) for which in (0, 1)]
                if None not in reads:
                    yield from ((read, False) for read in reads)
            yield address(2, at), True


@st.composite
def convolutions(draw):
    groups, blocked = draw(st.integers(1, 2)), draw(st.booleans())
    channels = 2 * groups if blocked else draw(st.integers(1, 2)) * groups
    filters = 2 * groups if blocked else draw(st.integers(1, 3)) * groups
    layout = "NCHW2c" if blocked else draw(st.sampled_from(["NCHW", "NHWC"]))
    pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))
    kernel, dilations, strides = draw(pairs), draw(pairs), draw(pairs)
    pads = tuple(draw(st.integers(0, 4)) for _ in range(4))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    h, w = (draw(st.integers(max(1, r - pads[i] - pads[i + 2]), r + 3)) for i, r in enumerate(reach))
    shape = ConvShape(draw(st.integers(1, 2)), channels, h, w, filters, kernel, strides, dilations, pads, groups)
    return conv(shape, layout, draw(st.sampled_from(["float32", "float16"])))


@st.composite
def nests(draw, problems):
    problem = draw(problems)
    tile = tuple(draw(st.integers(1, extent + 1)) for extent in problem.loops.values())
    return LoopNest(problem, tile, tuple(draw(st.permutations(list(problem.loops)))))


PRODUCTS = st.builds(matmul, SMALL, SMALL, SMALL, st.sampled_from(["float32", "int8"]))


@given(nests(PRODUCTS) | nests(convolutions()), st.sampled_from([0, 100]), st.sampled_from([16, 64]))
@settings(deadline=None, max_examples=80)
def test_a_nest_makes_the_accesses_of_its_tiles_and_elements(nest, base, align):
    trace = nest_trace(nest, base, align)
    expected = list(written_out(nest, base, align))
    assert accesses(trace) == expected
    assert trace.accesses == len(expected)
    assert trace.tensors == tuple(dict.fromkeys(trace.tensors))


@given(st.tuples(SMALL, SMALL, SMALL), st.tuples(SMALL, SMALL, SMALL), st.permutations("mnk"))
@settings(deadline=None)
def test_the_nest_of_a_product_is_matmul_trace(sizes, tile, order):
    nest = LoopNest(matmul(*sizes), tile, tuple(order))
    assert accesses(nest_trace(nest)) == accesses(matmul_trace(*sizes, order="".join(order), tile=tile))


@pytest.mark.parametrize("options", [{}, {"pad": 1}, {"stride": 2, "pad": 2}, {"dilation": 2, "pad": 3}, {"groups": 2}])
def test_the_uncut_nest_of_a_convolution_is_conv_trace(options):
    given_pad, by = options.get("pad", 0), options.get("stride", 1)
    shape = ConvShape(
        2, 4, 9, 8, 2, (3, 3), (by, by), (options.get("dilation", 1),) * 2, (given_pad,) * 4, options.get("groups", 1)
    )
    assert accesses(nest_trace(LoopNest.of(conv(shape)))) == accesses(conv_trace(2, 4, 9, 8, 2, 3, **options))


@given(nests(convolutions()))
@settings(deadline=None, max_examples=40)
def test_a_cache_that_holds_everything_moves_what_is_compulsory(nest):
    """With lines of one element nothing is moved that is not used: what the closed form and the scratchpad count.

    Each element of Y comes in once though it is only written. Of W the scratchpad also loads the taps that meet padding
    only, a cache does not.
    """
    problem = nest.problem
    X, W, item = *problem.inputs, problem.inputs[0].itemsize
    if problem.output.itemsize != item:
        return
    taps = [len(taps_in_the_image(problem, axis)) for axis in X.axes if len(axis.terms) == 2]
    unused = W.nbytes - W.nbytes // prod(problem.loops[loop] for loop in "rs") * prod(taps)
    trace, room = nest_trace(nest, align=item), 64 * 1024
    lru, optimal = simulate(trace, Cache(room, None, item)), simulate_optimal(trace, room, item)
    assert lru.read_bytes == optimal.misses * item == problem.compulsory_bytes - unused
    assert lru.write_bytes == optimal.write_backs * item == problem.output.nbytes


def taps_in_the_image(problem, axis):
    (row, stride), (tap, dilation) = axis.terms
    pairs = product(range(problem.loops[row]), range(problem.loops[tap]))
    return {r for p, r in pairs if 0 <= p * stride + r * dilation + axis.offset < axis.extent}


def test_the_pieces_of_a_padded_layer_are_few():
    """The border is written out, the rest are loops: 3 pieces of rows, 3 of columns, in two tilings of the filters."""
    shape = ConvShape(1, 64, 56, 56, 64, (3, 3), pads=(1, 1, 1, 1))
    trace = nest_trace(LoopNest.of(conv(shape, "NHWC")).split("f", 48))
    assert len(trace.placed) == 2 * 9 * 3
    assert trace.accesses == conv_trace(1, 64, 56, 56, 64, 3, pad=1).accesses


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nest_of(5000, 1, 3000, 2999), "rows reach into the padding; at most 1,024"),
        (lambda: nest_of(900, 900, 400, 399), "pieces; at most 20,000"),
        (lambda: LoopNest.of(im2col(ConvShape(1, 1, 4, 4, 1, (3, 3), pads=(1, 1, 1, 1)))), "it writes its padding"),
        (lambda: LoopNest.of(matmul(2**62, 8, 8)), "63 bit"),
    ],
)
def test_bad_input_is_refused_with_the_numbers(make, message):
    with pytest.raises(LabError, match=message):
        nest_trace(make())


def nest_of(h, w, kernel, pad):
    return LoopNest.of(
        conv(ConvShape(1, 1, h, w, 1, (kernel, min(kernel, w)), pads=(pad, min(pad, w), pad, min(pad, w))))
    )
