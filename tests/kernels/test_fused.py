"""Fusion: onnxruntime judges the values, tensor sizes the bytes; launches are counted apart."""

import numpy as np
import pytest

from labkit.errors import LabError
from labkit.kernels.conv import conv2d, conv_nest
from labkit.kernels.elementwise import ElementwiseOp
from labkit.kernels.fused import Chain, add, batch_norm, gelu, relu
from labkit.loops import LoopNest
from labkit.memory.scratchpad import Scratchpad
from labkit.problems import ConvShape, matmul

RNG = np.random.default_rng(0)
X = RNG.standard_normal((1, 64, 56, 56)).astype(np.float32)
W = (RNG.standard_normal((64, 64, 3, 3)) / 24).astype(np.float32)
PLACE = {"pads": (1, 1, 1, 1)}
NEAR = {"rtol": 1e-5, "atol": 1e-5}


def vectors(count: int) -> list[np.ndarray]:
    scale, shift, mean = (RNG.standard_normal((1, count, 1, 1)).astype(np.float32) for _ in range(3))
    return [scale, shift, mean, RNG.uniform(0.5, 2, (1, count, 1, 1)).astype(np.float32)]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "NCHW8c"])
def test_conv_bn_relu_saves_its_intermediates_and_nothing_else(parse, judge, layout: str) -> None:
    """Spec §4.3: two intermediates of 802,816 bytes, each written and read."""
    bn = vectors(64)
    ops = [batch_norm(*bn), relu()]
    together, apart = Scratchpad("2MiB"), Scratchpad("2MiB")
    schedule = {"tile": {"p": 7}, "layout": layout, **PLACE}
    fused = conv2d(X, W, together, ops=ops, **schedule)
    unfused = conv2d(X, W, apart, ops=ops, fused=False, **schedule)
    graph = parse(
        "g (float[1,64,56,56] x) => (float[1,64,56,56] y) { c = Conv<pads=[1,1,1,1]>(x, w)"
        " b = BatchNormalization<epsilon=0.00001>(c, scale, shift, mean, var) y = Relu(b) }",
        w=W,
        **{name: v.ravel() for name, v in zip(("scale", "shift", "mean", "var"), bn, strict=True)},
    )
    (wanted,) = judge(graph, {"x": X})
    np.testing.assert_allclose(fused, wanted, **NEAR)
    assert np.array_equal(fused, unfused)
    assert apart.ledger.traffic.nbytes - together.ledger.traffic.nbytes == 3_211_264
    assert (apart.launches, together.launches) == (3, 1)
    between = {name: apart.ledger.by("value")[name] for name in ("Y", "bn_out")}
    assert {(t.read_bytes, t.write_bytes) for t in between.values()} == {(802_816, 802_816)}
    assert not between.keys() & together.ledger.by("value").keys(), "what is fused away never exists in DRAM"
    assert together.ledger.by("value")["relu_out"].write_bytes == 802_816


def test_conv_add_relu_reads_the_residual_once(parse, judge) -> None:
    residual, bias = RNG.standard_normal((1, 64, 56, 56)).astype(np.float32), RNG.standard_normal(64).astype(np.float32)
    together, apart = Scratchpad("1MiB"), Scratchpad("1MiB")
    schedule = {"tile": {"p": 7, "f": 16}, "order": ("f", "p"), **PLACE}
    fused = conv2d(X, W, together, bias, ops=[add(residual), relu()], **schedule)
    unfused = conv2d(X, W, apart, bias, ops=[add(residual), relu()], fused=False, **schedule)
    graph = parse(
        "g (float[1,64,56,56] x, float[1,64,56,56] r) => (float[1,64,56,56] y) {"
        " c = Conv<pads=[1,1,1,1]>(x, w, b) a = Add(c, r) y = Relu(a) }",
        w=W,
        b=bias,
    )
    (wanted,) = judge(graph, {"x": X, "r": residual})
    np.testing.assert_allclose(fused, wanted, **NEAR)
    assert np.array_equal(fused, unfused)
    assert together.ledger.by("value")["residual"].read_bytes == residual.nbytes
    assert together.ledger.by("value")["bias"].read_bytes == bias.nbytes
    assert apart.ledger.traffic.nbytes - together.ledger.traffic.nbytes == 3_211_264
    assert (apart.launches, together.launches) == (3, 1)


def test_matmul_add_gelu(parse, judge) -> None:
    a, b = RNG.standard_normal((60, 48)).astype(np.float32), RNG.standard_normal((48, 80)).astype(np.float32)
    bias = RNG.standard_normal((1, 80)).astype(np.float32)
    nest = LoopNest(matmul(60, 80, 48), (16, 32, 16), ("m", "n", "k"))
    chain = Chain(nest, (add(bias, operand="bias"), gelu()))
    graph = parse(
        "g (float[60,48] a, float[48,80] b, float[1,80] c) => (float[60,80] y) {"
        " p = MatMul(a, b) s = Add(p, c) y = Gelu(s) }",
        opset=20,
        ir=9,
    )
    (wanted,) = judge(graph, {"a": a, "b": b, "c": bias})
    pads = {fused: Scratchpad("64KiB") for fused in (True, False)}
    for fused, pad in pads.items():
        y = chain.run({"A": a, "B": b}, pad, fused=fused)
        np.testing.assert_allclose(y, wanted, **NEAR)
        assert pad.ledger.traffic == (chain.fused_traffic if fused else chain.unfused_traffic)
        assert pad.launches == chain.launches(fused=fused)
    assert chain.saved_bytes == 4 * 60 * 80 * 4
    assert pads[True].high_water_bytes == chain.working_set_bytes
    assert pads[True].ledger.by("value")["bias"].read_bytes == 4 * 320, (
        "the bias is smaller than one row of tiles: again for each"
    )


@pytest.mark.parametrize("order", ["nfpqcrs", "fnqpcrs", "pqnfcrs"])
@pytest.mark.parametrize("buffers", ["single", "double", "double_all"])
def test_counted_equals_modelled_in_every_order_of_output_tiles(order: str, buffers) -> None:
    shape = ConvShape(2, 4, 9, 8, 6, (3, 3), pads=(1, 1, 1, 1))
    nest = conv_nest(shape, tile={"n": 1, "f": 4, "p": 2, "q": 3, "c": 2}, order=("g", *order), buffers=buffers)
    x, w = RNG.standard_normal((2, 4, 9, 8)).astype(np.float32), RNG.standard_normal((6, 4, 3, 3)).astype(np.float32)
    per_filter, residual = RNG.standard_normal((1, 1, 6, 1, 1)).astype(np.float32), np.ones((2, 1, 6, 9, 8), np.float32)
    row = np.ones((1, 1, 1, 9, 1), np.float32)
    other = residual + 1
    ops = (add(per_filter, "a", "shift"), add(residual, "b"), add(row, "c", "row"), add(other, "d", "other"), relu())
    chain = Chain(nest, ops)
    arrays = {"X": x.reshape(2, 1, 4, 9, 8), "W": w.reshape(1, 6, 4, 3, 3)}
    results = []
    for fused in (True, False):
        pad = Scratchpad(chain.working_set_bytes)
        results.append(chain.run(arrays, pad, fused=fused))
        assert pad.ledger.traffic == (chain.fused_traffic if fused else chain.unfused_traffic)
        if fused:
            assert pad.high_water_bytes == chain.working_set_bytes, "one full operand at a time"
    assert np.array_equal(*results)
    assert chain.saved_bytes == 2 * len(ops) * results[0].nbytes


def test_an_order_that_spills_cannot_be_fused_and_the_reason_is_given() -> None:
    chain = Chain(LoopNest(matmul(4, 4, 4), (2, 2, 2), ("k", "m", "n")), (relu(),))
    with pytest.raises(LabError, match="cannot fuse relu into matmul 4×4×4: in order k,m,n an output tile leaves"):
        chain.fused_traffic  # noqa: B018
    ones = np.ones((4, 4), np.float32)
    with pytest.raises(LabError, match="move k inside the loops over output tiles"):
        chain.run({"A": ones, "B": ones}, Scratchpad("1KiB"), fused=True)
    assert chain.run({"A": ones, "B": ones}, Scratchpad("1KiB"), fused=False).tolist() == [[4.0] * 4] * 4


@pytest.mark.parametrize("order", ["kmn", "mkn", "knm", "nkm"])
def test_apart_any_order_will_do_and_is_modelled(order: str) -> None:
    bias = np.ones((1, 12), np.float32)
    nest = LoopNest(matmul(9, 12, 10), (4, 5, 3), tuple(order))
    chain, pad = Chain(nest, (add(bias), relu())), Scratchpad("4KiB")
    y = chain.run({"A": np.ones((9, 10), np.float32), "B": np.ones((10, 12), np.float32)}, pad, fused=False)
    assert (y == 11).all()
    assert pad.ledger.traffic == chain.unfused_traffic
    with pytest.raises(LabError, match="cannot fuse add, relu"):
        chain.saved_bytes  # noqa: B018


def test_two_operands_of_one_name_are_refused() -> None:
    """B13: two buffers of one name would be one."""
    one, other = np.ones((1, 4), np.float32), np.zeros((1, 4), np.float32)
    with pytest.raises(LabError, match="two operands are called residual: each tensor needs a name of its own"):
        Chain(LoopNest.of(matmul(4, 4, 4)), (add(one), add(other)))
    clash = Chain(LoopNest.of(matmul(4, 4, 4)), (add(one, operand="A"),))
    square = np.ones((4, 4), np.float32)
    with pytest.raises(LabError, match="A is on chip already"):
        clash.run({"A": square, "B": square}, Scratchpad("1KiB"), fused=True)


def test_one_tensor_may_be_used_twice() -> None:
    one = np.ones((4, 4), np.float32)
    chain = Chain(LoopNest.of(matmul(4, 4, 4)), (add(one, "first"), add(one, "second")))
    y = chain.run({"A": one, "B": one}, Scratchpad("1KiB"), fused=True)
    assert (y == 6).all()


def test_an_operand_that_does_not_fit_is_refused() -> None:
    with pytest.raises(LabError, match=r"operand residual has shape \(4,\): wanted \(4, 4\)"):
        Chain(LoopNest.of(matmul(4, 4, 4)), (add(np.ones(4, np.float32)),))


def test_a_scalar_operand_is_loaded_once() -> None:
    chain = Chain(LoopNest(matmul(4, 4, 4), (2, 2, 4), ("m", "n", "k")), (add(np.full((1, 1), 3, np.float32)),))
    pad = Scratchpad("1KiB")
    assert (
        chain.run({"A": np.eye(4, dtype=np.float32)} | {"B": np.zeros((4, 4), np.float32)}, pad, fused=True) == 3
    ).all()
    assert pad.ledger.traffic == chain.fused_traffic
    assert pad.ledger.by("value")["residual"].read_bytes == 4


def test_the_unfinished_sum_would_give_another_result() -> None:
    """Why the refusal: ReLU of a part, added up, is not ReLU of the sum."""
    a, b = np.array([[1, -1]], np.float32), np.array([[1], [3]], np.float32)
    whole = np.maximum(a @ b, 0)
    by_parts = sum(np.maximum(a[:, k : k + 1] @ b[k : k + 1], 0) for k in range(2))
    assert (whole.item(), by_parts.item()) == (0, 1)
    op = ElementwiseOp("relu", "y", lambda x: np.maximum(x, 0))
    y = Chain(LoopNest(matmul(1, 1, 2), (1, 1, 1), ("m", "n", "k")), (op,)).run(
        {"A": a, "B": b}, Scratchpad(12), fused=True
    )
    assert y.item() == 0
