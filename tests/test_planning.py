"""Plans of single kernels: optimal, never over capacity, never more bytes with more SRAM, at last those of cost()."""

from itertools import permutations, product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labkit
from labkit import planning
from labkit.graph import Graph, Node, TensorType, Value
from labkit.hardware import Hardware
from labkit.loops import LoopNest
from labkit.memory.ledger import Traffic
from labkit.ops.windows import Window
from labkit.planning import plan, plan_kernel
from labkit.scheduling import kernel_of
from labkit.search import best_tile
from tests.drafts import HEADS, draft

PLENTY = 2**40
MACHINE = Hardware.preset("edge-npu")


def value(name: str, *shape: int, dtype: str = "float32") -> Value:
    return Value(name, TensorType(shape, dtype))


def never_used(node: Node) -> int:
    """Bytes of the image that no window covers: found by walking all windows, axis by axis."""
    if node.op not in ("Conv", "MaxPool", "AveragePool", "LpPool"):
        return 0
    x = node.inputs[0]
    kernel = node.inputs[1].shape[2:] if node.op == "Conv" else node.attrs["kernel_shape"]
    window, used = Window.of(node.attrs, kernel), prod(x.shape[:2])
    axes = zip(x.shape[2:], node.outputs[0].shape[2:], window.pads(x.shape[2:]), range(len(kernel)), strict=True)
    for extent, places, (before, _), axis in axes:
        steps = product(range(places), range(kernel[axis]))
        at = {place * window.strides[axis] + tap * window.dilations[axis] - before for place, tap in steps}
        used *= len(at & set(range(extent)))
    return x.type.nbytes - used * (x.type.nbytes // x.type.size)


@pytest.mark.parametrize("head", HEADS)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_with_enough_sram_a_kernel_moves_what_cost_says(head: str, data: st.DataObject) -> None:
    graph, _ = draft(data, head, data.draw(st.sampled_from(["float32", "float16"])))
    found = plan(kernel_of(graph.nodes[0], 17), PLENTY)
    skipped = never_used(graph.nodes[0].steps[0])
    assert found.dram_bytes == labkit.cost(graph, MACHINE).dram_bytes - skipped


@pytest.mark.parametrize("head", HEADS)
@settings(deadline=None, max_examples=15)
@given(data=st.data(), buffers=st.sampled_from(["single", "double", "double_all"]))
def test_bytes_never_rise_with_sram_and_no_plan_is_over_capacity(head: str, data: st.DataObject, buffers: str) -> None:
    graph, _ = draft(data, head)
    kernel = kernel_of(graph.nodes[0], 17)
    smallest = plan(kernel, 1, buffers).working_set_bytes
    assert not plan(kernel, smallest - 1, buffers).fits
    before = None
    for sram_bytes in range(smallest, 3 * smallest, max(smallest // 16, 1)):
        found = plan(kernel, sram_bytes, buffers)
        assert found.fits
        assert found.needed_bytes <= found.working_set_bytes <= sram_bytes
        assert before is None or found.dram_bytes <= before
        before = found.dram_bytes


@pytest.mark.parametrize("head", ["conv", "matmul", "pool", "elements", "rows"])
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_no_tile_and_no_order_moves_less(head: str, data: st.DataObject) -> None:
    graph, _ = draft(data, head)
    problem = kernel_of(graph.nodes[0], 17).problem
    if problem is None or prod(problem.loops.values()) > 500 or sum(n > 1 for n in problem.loops.values()) > 5:
        return
    policy = "complete" if problem.tail else "store"
    every = []
    moving = [loop for loop, extent in problem.loops.items() if extent > 1]
    still = tuple(loop for loop, extent in problem.loops.items() if extent == 1)
    for tile in product(*(range(1, extent + 1) for extent in problem.loops.values())):
        for order in permutations(moving):
            nest = LoopNest(problem, tile, still + order, policy, halo="slide")
            if policy == "store" or nest.passes(problem.output) == 1:
                every.append((nest.working_set_bytes, nest.traffic.nbytes))
    sram_bytes = data.draw(st.sampled_from(sorted({held for held, _ in every})))
    kernel = kernel_of(graph.nodes[0], 17)
    if not kernel.repeats:
        least = min(moved for held, moved in every if held <= sram_bytes)
        assert plan(kernel, sram_bytes).dram_bytes == least


# ---- the interface that fusion uses


def conv_bn_relu() -> tuple[Node, ...]:
    """The chain of spec §4.3: 64 channels of 56×56, a 3×3 kernel."""
    x, w, y = value("x", 1, 64, 56, 56), value("w", 64, 64, 3, 3), value("y", 1, 64, 56, 56)
    params = [value(name, 64) for name in ("scale", "bias", "mean", "var")]
    bn, out = value("bn", 1, 64, 56, 56), value("out", 1, 64, 56, 56)
    return (
        Node("Conv", (x, w), (y,), {"pads": [1, 1, 1, 1]}),
        Node("BatchNormalization", (y, *params), (bn,)),
        Node("Relu", (bn,), (out,)),
    )


def planned(nodes: tuple[Node, ...], sram_bytes: int) -> planning.Plan:
    made = {result.name for node in nodes for result in node.results}
    inputs = tuple({v.name: v for node in nodes for v in node.uses if v.name not in made}.values())
    return plan_kernel(nodes, inputs, nodes[-1].results, sram_bytes)


def test_fusing_the_chain_of_the_lesson_saves_exactly_its_two_intermediates() -> None:
    nodes = conv_bn_relu()
    fused = planned(nodes, MACHINE.sram_bytes)
    apart = [planned((node,), MACHINE.sram_bytes) for node in nodes]
    assert sum(one.dram_bytes for one in apart) - fused.dram_bytes == 3_211_264


def test_a_group_that_does_not_fit_says_how_much_it_wants() -> None:
    found = planned(conv_bn_relu(), 10)
    assert not found.fits
    assert found.working_set_bytes == 4 + 4 + 4 + 4 * 4  # an element of x, of w, of the sum, and of four vectors
    assert planned(conv_bn_relu(), found.working_set_bytes).fits


def test_a_residual_is_held_only_while_it_is_added() -> None:
    y, out = value("y", 64, 64), value("out", 64, 64)
    nodes = (
        Node("MatMul", (value("a", 64, 64), value("b", 64, 64)), (y,)),
        Node("Add", (y, value("r", 64, 64)), (out,)),
    )
    found = planned(nodes, PLENTY)
    assert found.dram_bytes == 4 * 64 * 64 * 4
    assert planned(nodes, 1).working_set_bytes == 4 + 4 + 4 + 4  # a, b, the sum and r


def test_two_products_are_no_kernel() -> None:
    y = value("y", 8, 8)
    nodes = (
        Node("MatMul", (value("a", 8, 8), value("b", 8, 8)), (y,)),
        Node("MatMul", (y, value("c", 8, 8)), (value("z", 8, 8),)),
    )
    with pytest.raises(labkit.LabError, match=r"no kernel: MatMul 'y', MatMul 'z'"):
        planned(nodes, PLENTY)


# ---- remembered


def test_equal_problems_are_searched_once_whatever_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []
    monkeypatch.setattr(planning, "best_tile", lambda *a, **k: searched.append(a[0]) or best_tile(*a, **k))
    for name in "abc":
        nodes = (Node("MatMul", (value(f"{name}0", 93, 85), value(f"{name}1", 85, 97)), (value(f"{name}2", 93, 97),)),)
        planned(nodes, 5000)
    assert len(searched) == 1


def test_what_is_best_in_some_sram_is_not_searched_for_again_where_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = (Node("MatMul", (value("a", 91, 87), value("b", 87, 99)), (value("c", 91, 99),)),)
    searched = []
    monkeypatch.setattr(planning, "best_tile", lambda *a, **k: searched.append(a[1]) or best_tile(*a, **k))
    found = planned(nodes, 20_000)
    assert planned(nodes, found.needed_bytes).dram_bytes == found.dram_bytes
    assert searched == [20_000]
    planned(nodes, found.needed_bytes - 1)
    assert searched == [20_000, found.needed_bytes - 1]
    whole = planned(nodes, PLENTY)
    planned(nodes, PLENTY * 2)
    planned(nodes, whole.needed_bytes)
    assert searched == [20_000, found.needed_bytes - 1, PLENTY]
    for sram_bytes in (whole.needed_bytes, found.needed_bytes, 20_000):
        direct = best_tile(found.nest.problem, sram_bytes, halo="slide")
        assert planned(nodes, sram_bytes).dram_bytes == direct.dram_bytes
        assert planned(nodes, sram_bytes).needed_bytes == direct.nest.working_set_bytes


def test_transfers_are_few_where_bytes_are_the_same() -> None:
    """Elements that all move once may move one by one, or in pieces as large as there is room for."""
    x = value("x", 1024)
    found = planned((Node("Relu", (x,), (value("y", 1024),)),), 512)
    assert found.traffic == Traffic(4096, 4096, 8, 8)
    assert found.needed_bytes == 4
    assert found.working_set_bytes == 512


def test_a_tensor_in_two_roles_moves_twice_unless_all_is_on_chip() -> None:
    x, w = value("x", 1, 4, 32, 32), value("w", 4, 4, 3, 3)
    y, out = value("y", 1, 4, 32, 32), value("out", 1, 4, 32, 32)
    nodes = (Node("Conv", (x, w), (y,), {"pads": [1, 1, 1, 1]}), Node("Add", (x, y), (out,)))
    image = x.type.nbytes
    small, large = planned(nodes, 8 * 1024), planned(nodes, PLENTY)
    assert small.dram_bytes == 3 * image + w.type.nbytes
    assert large.dram_bytes == 2 * image + w.type.nbytes
    assert large.nest is None


def test_transposes_at_the_border_of_a_kernel_say_how_its_tensors_lie() -> None:
    x, w = value("x", 1, 8, 8, 3), value("w", 4, 3, 3, 3)
    nchw, y, out = value("x2", 1, 3, 8, 8), value("y", 1, 4, 6, 6), value("out", 1, 6, 6, 4)
    nodes = (
        Node("Transpose", (x,), (nchw,), {"perm": [0, 3, 1, 2]}),
        Node("Conv", (nchw, w), (y,)),
        Node("Transpose", (y,), (out,), {"perm": [0, 2, 3, 1]}),
    )
    alone = planned(nodes[1:2], 400)
    assert planned(nodes, 400) == alone


def test_a_graph_of_symbols_counts_them_as_one() -> None:
    x, y = Value("x", TensorType(("n", 8), "float32")), Value("y", TensorType(("n", 8), "float32"))
    graph = Graph("g", (x,), (y,), (Node("Relu", (x,), (y,)),))
    assert labkit.schedule(graph, MACHINE).dram_bytes == labkit.cost(graph, MACHINE).dram_bytes == 64
