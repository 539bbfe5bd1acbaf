"""Depth-first Conv → Conv: onnxruntime judges the values, a list of pixels the recomputed halo."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from labkit.errors import LabError, SramOverflow
from labkit.kernels.conv import conv2d
from labkit.kernels.depth_first import DepthFirst
from labkit.kernels.nest import run_nest
from labkit.memory.scratchpad import Scratchpad
from labkit.problems import ConvShape

SAME = {"kernel": (3, 3), "pads": (1, 1, 1, 1)}


def whole(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def tensors(pair: DepthFirst) -> list[np.ndarray]:
    a, b = pair.first, pair.second
    shapes = [(a.n, a.c, a.h, a.w), *((x.filters, x.c // x.groups, *x.kernel) for x in (a, b))]
    return [whole(shape, seed) for seed, shape in enumerate(shapes)]


@st.composite
def pairs(draw: st.DrawFn) -> DepthFirst:
    small, tiny = st.integers(1, 3), st.integers(1, 2)

    def placed() -> dict:
        pads = tuple(draw(st.integers(0, 2)) for _ in range(4))
        return {"kernel": draw(st.tuples(small, small)), "strides": draw(st.tuples(tiny, small)), "pads": pads}

    n, groups = draw(tiny), draw(tiny)
    try:
        first = ConvShape(
            n, 2 * groups, draw(st.integers(3, 10)), draw(st.integers(3, 10)), 4, groups=groups, **placed()
        )
        second = ConvShape(n, 4, *first.output_size, draw(small) * 2, groups=2, dilations=(1, draw(tiny)), **placed())
    except LabError:
        assume(False)
    return DepthFirst(first, second, (draw(st.integers(1, 5)), draw(st.integers(1, 5))))


def recomputed(pair: DepthFirst) -> int:
    """Pixels of the intermediate tensor that all tiles compute together: listed, from the first to the last needed."""
    b = pair.second
    total = 0
    for top, left in product(*(range(0, size, step) for size, step in zip(b.output_size, pair.tile, strict=True))):
        sides = []
        for axis, (start, limit) in enumerate(((top, b.h), (left, b.w))):
            stop = min(start + pair.tile[axis], b.output_size[axis])
            needed = {
                i * b.strides[axis] + tap * b.dilations[axis] - b.pads[axis]
                for i in range(start, stop)
                for tap in range(b.kernel[axis])
            }
            inside = [i for i in needed if 0 <= i < limit]
            sides.append(max(inside) - min(inside) + 1 if inside else 0)
        total += sides[0] * sides[1]
    return total * b.n


@settings(max_examples=150, deadline=None)
@given(pairs())
def test_bytes_and_arithmetic_are_counted_and_the_result_is_that_of_two_kernels(pair: DepthFirst) -> None:
    x, w1, w2 = tensors(pair)
    pad, apart = Scratchpad(pair.working_set_bytes), Scratchpad("1MiB")
    y = pair.run(x, w1, w2, pad)
    options = [
        {"strides": c.strides, "pads": c.pads, "dilations": c.dilations, "groups": c.groups}
        for c in (pair.first, pair.second)
    ]
    assert np.array_equal(y, conv2d(conv2d(x, w1, apart, **options[0]), w2, apart, **options[1]))
    assert pad.ledger.traffic == pair.traffic
    assert pad.high_water_bytes == pair.working_set_bytes
    assert (pad.resident, pad.launches) == ({}, 1)
    mid = 2 * pair.first.filters * pair.first.c // pair.first.groups * np.prod(pair.first.kernel)
    assert pair.flops == mid * recomputed(pair) + pair.problems[1].flops
    assert pair.extra_flops == mid * (recomputed(pair) - pair.first.n * np.prod(pair.first.output_size))


def test_saved_bytes_are_those_of_two_real_kernels() -> None:
    first = ConvShape(1, 8, 20, 20, 8, **SAME)
    pair = DepthFirst(first, first, (6, 7))
    x, w1, w2 = tensors(pair)
    apart, together = Scratchpad("64KiB"), Scratchpad("64KiB")
    one, two = pair.unfused_nests()
    mid = run_nest(one, {"X": x.reshape(1, 1, 8, 20, 20), "W": w1.reshape(1, 8, 8, 3, 3)}, apart, name="first")
    run_nest(two, {"X": mid, "W": w2.reshape(1, 8, 8, 3, 3)}, apart, name="second")
    pair.run(x, w1, w2, together)
    assert apart.ledger.traffic.nbytes - together.ledger.traffic.nbytes == pair.saved_bytes > 0
    assert "mid" not in together.ledger.by("value")


def test_a_halo_costs_arithmetic_that_larger_tiles_save() -> None:
    """56×56, 3×3 after 3×3, tile 8: seven tiles a side need 9 or 10 rows, 68 in all instead of 56."""
    first = ConvShape(1, 64, 56, 56, 64, **SAME)
    extra = [DepthFirst(first, first, (side, side)).extra_flops for side in (8, 14, 28, 56)]
    assert extra[0] == 2 * 64 * 64 * 9 * (68**2 - 56**2)
    assert extra == sorted(extra, reverse=True)
    assert extra[-1] == 0


def test_onnxruntime_agrees(parse, judge) -> None:
    first = ConvShape(1, 3, 17, 15, 8, (3, 3), (2, 1), pads=(1, 1, 1, 1))
    pair = DepthFirst(first, ConvShape(1, 8, *first.output_size, 4, (1, 3), pads=(0, 2, 0, 0)), (2, 5))
    x, w1, w2 = tensors(pair)
    graph = parse(
        "g (float[1,3,17,15] x) => (float[a,b,c,d] y) {"
        " m = Conv<strides=[2,1], pads=[1,1,1,1]>(x, w1) y = Conv<pads=[0,2,0,0]>(m, w2) }",
        w1=w1,
        w2=w2,
    )
    assert np.array_equal(pair.run(x, w1, w2, Scratchpad("64KiB")), judge(graph, {"x": x})[0])


def test_bad_pairs_are_refused() -> None:
    first = ConvShape(1, 3, 8, 8, 4, (3, 3))
    with pytest.raises(LabError, match=r"makes \(1, 4, 6, 6\) \(n, c, h, w\), the second takes \(1, 4, 8, 8\)"):
        DepthFirst(first, ConvShape(1, 4, 8, 8, 4, (3, 3)), (2, 2))
    second = ConvShape(1, 4, 6, 6, 4, (3, 3))
    with pytest.raises(LabError, match=r"tile \(0, 2\)"):
        DepthFirst(first, second, (0, 2))
    pair = DepthFirst(first, second, (2, 2))
    x, w1, w2 = tensors(pair)
    with pytest.raises(LabError, match=r"W2 is float64"):
        pair.run(x, w1, w2.astype(np.float64), Scratchpad("64KiB"))
    with pytest.raises(SramOverflow):
        pair.run(x, w1, w2, Scratchpad(pair.working_set_bytes - 1))
