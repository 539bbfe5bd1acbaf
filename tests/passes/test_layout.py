"""ConvertLayout: kernels in the machine's order, few transforms, the same results; and what has to stay as it is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import labkit
from labkit.bodies import inline
from labkit.costing import cost
from labkit.errors import LabError
from labkit.graph import Graph, TensorType, Value
from labkit.hardware import Hardware
from labkit.passes.fuse import Fuse
from labkit.passes.layout import ConvertLayout, LayoutPlan, strategies
from labkit.passes.layout_order import Order
from labkit.passes.pipeline import optimize
from tests.passes.images import KERNELS, flatten, images, reshape, transpose

NPU = Hardware.preset("edge-npu")
ORDERS = ("NHWC", "NCHW2c", "NCHW8c", "CHWN")


def convert(graph: Graph, order: str = "NHWC") -> Graph:
    return ConvertLayout(replace(NPU, layout=order))(graph)


def final(graph: Graph, order: str = "NHWC") -> Graph:
    """Basic passes before and after, as the levels run them."""
    return optimize(convert(optimize(graph).graph, order)).graph


def plans(graph: Graph, order: str = "NHWC", penalty_bytes: int | None = None) -> dict[str, LayoutPlan]:
    return {plan.name: plan for plan in strategies(graph, replace(NPU, layout=order), penalty_bytes)}


def ops(graph: Graph) -> Counter[str]:
    return Counter(node.op for node in graph.nodes)


# ---- the same results


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(30))
def test_random_graphs_compute_the_same_in_any_order(seed: int, order: str, judge) -> None:
    graph = images(seed, 14, (*KERNELS, reshape, flatten, transpose))
    after = convert(graph, order)
    feeds = {"x": np.random.default_rng(seed).standard_normal(graph.inputs[0].shape).astype(np.float32)}
    wanted, found = labkit.run(graph, feeds), labkit.run(after, feeds)
    exact = not any(node.op == "Softmax" for node in graph.nodes)  # which adds up in the order of memory
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=0 if exact else 1e-6, atol=0 if exact else 1e-6)
    for one, two in zip(judge(graph, feeds), judge(after, feeds), strict=True):
        np.testing.assert_allclose(two, one, rtol=0 if exact else 1e-6, atol=0 if exact else 1e-6)


def test_what_follows_a_transpose_adds_up_as_if_there_had_been_none(parse) -> None:
    """So a kernel gives the same bits wherever its tensors come from: none is a view of one that lies otherwise."""
    pools = "y = AveragePool<kernel_shape = [2, 2]>(t) z = GlobalAveragePool(t) }"
    results = "(float[1,16,6,6] y, float[1,16,1,1] z)"
    behind = parse(f"g (float[1,7,7,16] x) => {results} {{ t = Transpose<perm = [0, 3, 1, 2]>(x) {pools}")
    alone = parse(f"g (float[1,16,7,7] t) => {results} {{ {pools}")
    x = np.random.default_rng(0).standard_normal((1, 7, 7, 16)).astype(np.float32)
    wanted = labkit.run(alone, {"t": np.ascontiguousarray(x.transpose(0, 3, 1, 2))})
    found = labkit.run(behind, {"x": x})
    assert all(np.array_equal(found[name], array) for name, array in wanted.items())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(12))
def test_a_second_time_nothing_changes(seed: int, order: str) -> None:
    graph = optimize(images(seed, 12, (*KERNELS, reshape, flatten, transpose))).graph
    once = convert(graph, order)
    assert convert(once, order) is once
    tidy = optimize(once).graph
    assert convert(tidy, order) is tidy


@pytest.mark.parametrize("level", ["layout", "all"])
def test_work_that_meets_where_a_transpose_moved_on_is_fused(level: str, parse) -> None:
    graph = parse("""g (float[6,4,4,4] x) => (float[6,4,2,2] y, float[6,4,4,4] z) {
        s = Sub(x, c) t = Transpose<perm = [0, 2, 3, 1]>(s) z = Add(t, k)
        y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(t)
    }""", c=np.float32([[[[1.5]]]]), k=np.ones((4, 1, 1), np.float32))  # fmt: skip
    small = replace(NPU, sram_bytes=96)
    once = optimize(graph, level, small).graph
    assert any(node.body and {n.op for n in node.body.nodes} == {"Sub", "Add"} for node in once.nodes)
    assert optimize(once, level, small).graph is once


@pytest.mark.parametrize("order", ["NHWC", "NCHW8c"])
def test_a_converted_graph_survives_its_file(order: str, tmp_path) -> None:
    graph = convert(images(3, 12, KERNELS), order)
    labkit.save(graph, tmp_path / "converted.onnx")
    again = labkit.load(tmp_path / "converted.onnx")
    assert ops(again) == ops(graph)
    assert convert(again, order) is again


def test_each_operator_keeps_its_values_in_the_machine_s_order(parse, judge) -> None:
    graph = parse(OPERATORS, w=np.random.default_rng(1).standard_normal((8, 8, 1, 1)).astype(np.float32),
                  ones=np.ones(8, np.float32), scales=np.array([1, 1, 2, 2], np.float32))  # fmt: skip
    feeds = {"x": np.random.default_rng(2).standard_normal((2, 8, 4, 6)).astype(np.float32)}
    for order in ("NHWC", "NCHW4c"):
        after = convert(graph, order)
        for one, two in zip(judge(graph, feeds), judge(after, feeds), strict=True):
            np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-6)
        plan = plans(graph, order)["one layout everywhere"]
        assert set(plan.labels.values()) == {order}
        for one, two in zip(judge(graph, feeds), judge(plan.apply(), feeds), strict=True):
            np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-6)


OPERATORS = """g (float[2,8,4,6] x) => (float[2,8,4,6] mean, float[2,8] vector, float[2,8,8,12] resized,
  float[2,8,2,3] pooled, int64[2,8,2,3] places, float[2,8,5,7] padded, float[2,4,2,6] cut, float[2,2,8,12] space,
  float[2,8,4,6] normal, int64[4] shape, float[2,1,4,6] some, float[2,8,4,6] where, float[2,8,4,6] local,
  float[2,4,4,6] half, float[2,8,1,1] row, float[2,4,4,6] rest, float[2,8,4,6] slope,
  float[2,8,4,6] scaled)
  <int64[8] pads = {0, 0, 1, 0, 0, 0, 0, 1}, int64[2] spatial = {2, 3}, int64[2] starts = {2, 1},
   int64[2] ends = {6, 3}, int64[2] axes = {1, 2}, int64[2] halves = {4, 4}, int64[1] channels = {1},
   float[8,1,1] slopes = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}> {
  c = Conv(x, w)
  mean = ReduceMean<axes = [1], keepdims = 1>(c)
  vector = ReduceMean<axes = [2, 3], keepdims = 0>(c)
  resized = Resize<mode = "nearest">(c, , scales)
  pooled, places = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(c)
  padded = Pad(c, pads)
  cut = Slice(c, starts, ends, axes)
  space = DepthToSpace<blocksize = 2>(c)
  normal = BatchNormalization(c, ones, ones, ones, ones)
  shape = Shape(c)
  some = ReduceSum(c, channels)
  zero = Sub(c, c)
  positive = Greater(c, zero)
  where = Where(positive, c, some)
  local = LRN<size = 3>(c)
  half, rest = Split<axis = 1>(c, halves)
  row = GlobalMaxPool(c)
  slope = PRelu(c, slopes)
  column = ReduceMean<axes = [3], keepdims = 1>(c)
  scaled = Mul(c, column)
}""".replace("float[2,8,4,6] mean", "float[2,1,4,6] mean")


# ---- few transforms


def tensorflow_style(depth: int) -> str:
    """A network as exporters from TensorFlow leave it: channels last, each convolution between two Transposes."""
    lines = ["a0 = Identity(x)"]
    for i in range(depth):
        lines += [
            f"n{i} = Transpose<perm = [0, 3, 1, 2]>(a{i})",
            f"c{i} = Conv<pads = [1, 1, 1, 1]>(n{i}, w)",
            f"t{i} = Transpose<perm = [0, 2, 3, 1]>(c{i})",
            f"b{i} = Add(t{i}, bias)",
            f"r{i} = Relu(b{i})",
            f"a{i + 1} = Add(r{i}, a{i})" if i % 3 == 2 else f"a{i + 1} = Identity(r{i})",
        ]
    return f"""g (float[1,8,8,4] x) => (float[1,4] y) <int64[2] rows = {{1, 2}}> {{
        {chr(10).join(lines)}
        y = ReduceMean<axes = [1, 2], keepdims = 0>(a{depth})
    }}"""


@pytest.mark.parametrize("depth", [1, 2, 3, 8, 30])
def test_a_network_from_tensorflow_of_any_depth_needs_no_transpose(depth: int, parse, judge) -> None:
    rng = np.random.default_rng(depth)
    graph = parse(tensorflow_style(depth), w=(rng.standard_normal((4, 4, 3, 3)) / 6).astype(np.float32),
                  bias=rng.standard_normal(4).astype(np.float32))  # fmt: skip
    after = final(graph)
    assert ops(after)["Transpose"] == 0
    feeds = {"x": rng.standard_normal((1, 8, 8, 4)).astype(np.float32)}
    np.testing.assert_allclose(judge(after, feeds)[0], judge(graph, feeds)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("depth", [1, 2, 3, 8, 30])
def test_a_network_with_channels_second_needs_two_transforms_at_any_depth(depth: int, parse) -> None:
    lines = [f"c{i} = Conv<pads = [1, 1, 1, 1]>(x{i}, w) x{i + 1} = Relu(c{i})" for i in range(depth)]
    body = " ".join(["x0 = Identity(x)", *lines, f"y = Sigmoid(x{depth})"])
    graph = parse(f"g (float[1,4,8,8] x) => (float[1,4,8,8] y) {{ {body} }}", w=np.ones((4, 4, 3, 3), np.float32))
    assert ops(final(graph))["Transpose"] == 2
    found = plans(optimize(graph).graph)
    tensor = 4 * 8 * 8 * 4
    assert (found["minimum cut"].transforms, found["minimum cut"].dram_bytes) == (2, 2 * 2 * tensor)
    assert found["per operator"].dram_bytes == 2 * depth * 2 * tensor


def test_a_value_that_many_want_in_the_other_order_is_transformed_once(parse) -> None:
    graph = parse(
        """g (float[1,4,8,8] x) => (float[1,4,8,8] a, float[1,4,8,8] b, float[1,4,8,8] c) {
        a = Conv(x, w) b = Conv(x, v) c = Relu(x) }""",
        w=np.ones((4, 4, 1, 1), np.float32), v=np.full((4, 4, 1, 1), 2, np.float32),
    )  # fmt: skip
    assert ops(convert(graph)) == {"Transpose": 3, "Conv_NHWC_1": 1, "Conv_NHWC_2": 1, "Relu": 1}


def test_transforms_stand_where_the_tensor_is_small(parse) -> None:
    """Between a Conv and a Reshape lie a Concat that widens and a Slice that narrows."""
    graph = parse(
        """g (float[1,4,8,8] x) => (float[1,128] y)
        <int64[1] start = {0}, int64[1] stop = {2}, int64[1] axis = {1}, int64[2] flat = {1, 128}> {
        c = Conv(x, w) wide = Concat<axis = 1>(c, c, c)
        thin = Slice(wide, start, stop, axis) y = Reshape(thin, flat) }""",
        w=np.ones((4, 4, 1, 1), np.float32),
    )
    after = convert(graph)
    transform = next(node for node in after.nodes if node.op == "Transpose" and node.output.name == "thin")
    assert transform.output.shape == (1, 2, 8, 8)
    assert plans(graph)["minimum cut"].dram_bytes == 2 * 4 * (4 * 64 + 2 * 64)


def test_the_cut_draws_its_line_between_kernels_that_pay_and_kernels_that_do_not(parse) -> None:
    """The first Relu feeds a Flatten and stays; the second stands between two Convs and goes along."""
    graph = parse(
        """g (float[1,4,8,8] x) => (float[1,256] flat, float[1,4,8,8] y) {
        first = Relu(x) flat = Flatten(first) a = Conv(first, w) second = Relu(a) y = Conv(second, w) }""",
        w=np.ones((4, 4, 1, 1), np.float32),
    )
    found = plans(graph)
    assert {name: plan.transforms for name, plan in found.items()} == {
        "per operator": 4, "one layout everywhere": 3, "minimum cut": 2,
    }  # fmt: skip
    assert found["minimum cut"].labels == {"first": "NCHW", "a": "NHWC", "second": "NHWC", "y": "NHWC"}
    for plan in found.values():
        assert ops(plan.apply())["Transpose"] == plan.transforms
        assert ops(convert(graph))["Transpose"] == 2
        assert cost(plan.apply(), NPU).dram_bytes - cost(graph, NPU).dram_bytes == plan.dram_bytes


def test_a_concat_of_both_orders_goes_where_less_has_to_be_transformed(parse) -> None:
    """Some of 12 channels come from a Conv, the others out of a Reshape; both orders of all 12 are wanted."""
    for channels, order in ((2, "NCHW"), (10, "NHWC")):
        graph = parse(
            f"""g (float[1,{channels},8,8] x, float[1,{(12 - channels) * 64}] flat)
            => (float[1,12,8,8] both, float[1,12,4,4] y) <int64[4] image = {{1, {12 - channels}, 8, 8}}> {{
            a = Conv(x, w) b = Reshape(flat, image) both = Concat<axis = 1>(a, b)
            y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(both) }}""",
            w=np.ones((channels, channels, 1, 1), np.float32),
        )
        assert plans(graph)["minimum cut"].labels["both"] == order


def test_a_network_of_elementwise_operators_alone_is_left_alone(parse) -> None:
    graph = parse("g (float[1,4,8,8] x) => (float[1,4,8,8] y) { a = Relu(x) y = Sigmoid(a) }")
    assert convert(graph) is graph


def test_pooled_channels_are_flattened_without_a_transform(parse) -> None:
    graph = parse(
        "g (float[1,16,8,8] x) => (float[1,16] y) { c = Conv(x, w) p = GlobalAveragePool(c) y = Flatten(p) }",
        w=np.ones((16, 16, 1, 1), np.float32),
    )
    for order in ("NHWC", "NCHW8c"):
        found = plans(graph, order)["minimum cut"]
        assert (found.transforms, found.dram_bytes) == (1, 2 * 4 * 16 * 64)
        assert [node.op.split("_")[0] for node in convert(graph, order).nodes][1:] == [
            "Conv",
            "GlobalAveragePool",
            "Flatten",
        ]


# ---- kernels


def test_a_kernel_on_images_is_one_fused_node_with_its_weights_permuted(parse) -> None:
    w = np.random.default_rng(0).standard_normal((8, 4, 3, 3)).astype(np.float32)
    graph = parse("g (float[1,4,8,8] x) => (float[1,8,6,6] y) { y = Conv(x, w) }", w=w)
    conv = next(node for node in convert(graph).nodes if node.body)
    assert conv.op.startswith("Conv_NHWC_")
    assert [step.op for step in conv.steps] == ["Transpose", "Transpose", "Conv", "Transpose"]
    assert [value.shape for value in conv.inputs if value] == [(1, 8, 8, 4), (8, 3, 3, 4)]
    after = final(graph)
    (weights,) = after.constants.values()
    np.testing.assert_array_equal(weights, w.transpose(0, 2, 3, 1))
    assert weights.flags.c_contiguous


def test_weights_that_two_kernels_share_are_stored_once(parse) -> None:
    graph = parse(
        "g (float[1,4,8,8] x) => (float[1,4,8,8] y) { a = Conv(x, w) b = Relu(a) y = Conv(b, w) }",
        w=np.ones((4, 4, 1, 1), np.float32),
    )
    assert len(final(graph).constants) == 1


def test_a_kernel_moves_the_same_bytes_in_either_order(parse) -> None:
    graph = parse(
        "g (float[1,4,8,8] x) => (float[1,4,8,8] y) { a = Conv(x, w) y = Relu(a) }", w=np.ones((4, 4, 1, 1), np.float32)
    )
    after, plan = convert(graph), plans(graph)["minimum cut"]
    assert cost(after, NPU).dram_bytes - cost(graph, NPU).dram_bytes == plan.dram_bytes == 4 * 4 * 4 * 64
    assert cost(after, NPU).flops == cost(graph, NPU).flops


@pytest.mark.parametrize("order", ["NHWC", "NCHW4c"])
@pytest.mark.parametrize("level", ["layout", "all"])
def test_an_operand_with_four_axes_makes_no_image_of_a_video(order: str, level: str, parse) -> None:
    """Beside five axes the four stand for channels, depth, rows and columns: nothing there can be N, C, H and W."""
    graph = parse(
        "g (float[1,2,5,4,4] x) => (float[1,4,4,3,3] y) { c = Conv(x, w) p = PRelu(c, s) y = Add(p, s) }",
        w=np.ones((4, 2, 2, 2, 2), np.float32), s=np.full((4, 4, 3, 3), 0.5, np.float32),
    )  # fmt: skip
    machine = replace(NPU, layout=order)
    after = optimize(graph, level, machine).graph
    assert not any(node.op == "Transpose" for one in after.nodes for node in one.steps)
    assert ConvertLayout(machine)(graph) is graph


def test_what_a_caller_may_feed_is_not_permuted_beforehand(parse) -> None:
    """A weight that is an input's default is permuted inside the kernel, at run time, and still can be fed."""
    graph = parse(
        "g (float[1,4,8,8] x, float[4,4,1,1] w) => (float[1,4,8,8] y) { y = Conv(x, w) }",
        w=np.ones((4, 4, 1, 1), np.float32),
    )
    after = convert(graph)
    assert after.inputs == graph.inputs
    feeds = {"x": np.ones((1, 4, 8, 8), np.float32), "w": np.full((4, 4, 1, 1), 3, np.float32)}
    np.testing.assert_array_equal(labkit.run(after, feeds)["y"], labkit.run(graph, feeds)["y"])


def test_open_batches_convert_and_open_channels_do_not_split(parse, judge) -> None:
    graph = parse(
        "g (float[n,4,8,8] x) => (float[n,8,8,8] y) { a = Conv(x, w) y = Relu(a) }", w=np.ones((8, 4, 1, 1), np.float32)
    )
    for order, batch in (("NHWC", 3), ("NCHW4c", 2)):
        after = convert(graph, order)
        assert any(node.body for node in after.nodes)
        feeds = {"x": np.random.default_rng(0).standard_normal((batch, 4, 8, 8)).astype(np.float32)}
        np.testing.assert_array_equal(judge(after, feeds)[0], judge(graph, feeds)[0])
    unknown = parse("g (float[1,c,8,8] x) => (float[1,c,4,4] y) { y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) }")
    assert convert(unknown, "NCHW4c") is unknown
    assert convert(unknown) is not unknown


@pytest.mark.parametrize("order", ["NHWC", "NCHW2c"])
def test_a_result_of_unknown_shape_is_made_in_the_order_of_the_file(order: str, parse) -> None:
    graph = parse(
        "g (float[1,4,8,6] x) => (float[1,4,8,6] y) { c = Conv(x, w) y = Relu(c) z = MaxPool<kernel_shape=[1, 1]>(c) }",
        w=np.random.default_rng(0).standard_normal((4, 4, 1, 1)).astype(np.float32),
    )
    conv, relu, pool = graph.nodes
    unknown = replace(relu, outputs=(Value("y", TensorType(None, "float32")),))
    graph = replace(graph, nodes=(conv, unknown, pool), outputs=unknown.results)
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 4, 8, 6)).astype(np.float32)}
    for plan in plans(graph, order).values():
        np.testing.assert_array_equal(labkit.run(plan.apply(), feeds)["y"], labkit.run(graph, feeds)["y"])


def test_weights_that_are_computed_are_no_images(parse) -> None:
    graph = parse(
        "g (float[1,4,8,8] x, float[4,4,3,3] v) => (float[1,4,6,6] y) { w = Softmax(v) a = Conv(x, w) y = Relu(a) }"
    )
    for one in (graph, Fuse(NPU)(graph)):
        after = convert(one)
        assert ops(after)["Transpose"] == plans(one)["minimum cut"].transforms == 2
        assert next(node for node in after.nodes if node.op == "Softmax").inputs == graph.inputs[1:]


@pytest.mark.parametrize("perm", ["0, 3, 1, 2", "0, 2, 3, 1"])
def test_a_transpose_of_axes_of_one_element_is_no_transform(perm: str, parse) -> None:
    """From one column to one channel, and from one channel to one column: elements stay where they lie."""
    shape = "1,4,8,1" if perm == "0, 3, 1, 2" else "1,1,4,8"
    graph = parse(
        f"""g (float[{shape}] x) => (float[a,b,c,d] y, float[1,4,8,6] z) {{
        p = MaxPool<kernel_shape = [1, 1]>(x) t = Transpose<perm = [{perm}]>(p) y = MaxPool<kernel_shape = [1, 1]>(t)
        z = Conv(image, w) }}""".replace("x)", "x, float[1,4,8,6] image)", 1),
        w=np.ones((4, 4, 1, 1), np.float32),
    )
    before, after = cost(graph, NPU).dram_bytes, cost(convert(graph), NPU).dram_bytes
    assert after - before == plans(graph)["minimum cut"].dram_bytes


@pytest.mark.parametrize("order", ["NHWC", "NCHW8c"])
def test_an_output_that_says_little_of_its_shape_is_transformed_like_any_other(order: str, parse, judge) -> None:
    graph = parse("g (float[1,8,4,6] x) => (float[a,b,c,d] y) { y = Conv(x, w) }", w=np.ones((8, 8, 1, 1), np.float32))
    after, plan = convert(graph, order), plans(graph, order)["minimum cut"]
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 8, 4, 6)).astype(np.float32)}
    np.testing.assert_array_equal(judge(after, feeds)[0], judge(graph, feeds)[0])
    made = {value.name: value for node in after.nodes for value in node.results}
    assert made["y"].shape == (1, 8, 4, 6)
    assert plan.dram_bytes == 4 * made["y"].type.nbytes


@pytest.mark.parametrize("order", ["NHWC", "NCHW8c"])
def test_a_fused_kernel_stays_one_kernel_of_its_operators(order: str, parse, judge, tmp_path) -> None:
    graph = Fuse(NPU)(
        parse(
            """g (float[1,8,8,8] x) => (float[1,8,8,8] y) {
            a = Conv(x, w) b = Add(a, x) c = Relu(b) d = Sigmoid(c) e = Conv(d, w) f = Tanh(e) y = Mul(f, c) }""",
            w=np.random.default_rng(0).standard_normal((8, 8, 1, 1)).astype(np.float32),
        )
    )
    after = convert(graph, order)
    kernels = [node for node in after.nodes if node.op.startswith("Conv")]
    assert len(kernels) == sum(node.body is not None for node in graph.nodes) == 2
    assert not any(step.body for kernel in kernels for step in kernel.steps)
    inside = Counter(step.op for kernel in kernels for step in kernel.steps)
    assert inside & ops(inline(graph)) == ops(inline(graph))
    assert [node.body.inputs[0].shape == node.inputs[0].shape for node in kernels] == [True, True]
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 8, 8, 8)).astype(np.float32)}
    np.testing.assert_array_equal(judge(after, feeds)[0], judge(graph, feeds)[0])
    assert not list(ConvertLayout(replace(NPU, layout=order)).refusals(after))
    labkit.save(after, tmp_path / "fused.onnx")
    assert convert(labkit.load(tmp_path / "fused.onnx"), order).nodes[-1].op == after.nodes[-1].op


# ---- what stays


BARRIERS = {
    "Reshape": "c = Conv(x, w) r = Reshape(c, to) y = Conv(r, w)",
    "Expand": "c = Conv(x, w) r = Expand(c, wide) y = Conv(r, w)",
    "MatMul": "c = Conv(x, w) r = MatMul(c, c) y = Conv(r, w)",
}


@pytest.mark.parametrize("op", BARRIERS)
def test_a_barrier_reads_and_writes_the_order_of_the_file(op: str, parse, judge) -> None:
    graph = parse(
        f"g (float[1,4,8,8] x) => (float[N,4,8,8] y) <int64[4] to = {{1, 4, 8, 8}}, int64[4] wide = {{2, 4, 8, 8}}>"
        f" {{ {BARRIERS[op]} }}",
        w=np.random.default_rng(0).standard_normal((4, 4, 1, 1)).astype(np.float32),
    )
    after = convert(graph)
    barrier = next(node for node in after.nodes if node.op == op)
    assert [value.name for value in barrier.inputs if value] == [
        value.name for node in graph.nodes if node.op == op for value in node.inputs if value
    ]
    assert ops(after)["Transpose"] == 4
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype(np.float32)}
    np.testing.assert_array_equal(judge(after, feeds)[0], judge(graph, feeds)[0])


def test_an_operator_of_another_domain_may_mean_anything(parse) -> None:
    graph = parse(
        "g (float[1,4,8,8] x) => (float[1,4,8,8] y) { a = Conv(x, w) b = Relu(a) y = Conv(b, w) }",
        w=np.ones((4, 4, 1, 1), np.float32),
    )
    for op, transforms in (("Relu", 4), ("Conv", 0)):
        foreign = tuple(replace(node, domain="com.example") if node.op == op else node for node in graph.nodes)
        after = convert(replace(graph, nodes=foreign, opsets={"": 17, "com.example": 1}))
        assert ops(after)["Transpose"] == transforms
        assert [node for node in after.nodes if node.domain == "com.example"] == [n for n in foreign if n.domain]


def test_what_an_inner_graph_captures_keeps_the_order_of_the_file(parse, judge) -> None:
    graph = parse(
        """g (float[1,4,8,8] x, bool which) => (float[1,4,8,8] y) {
        c = Conv(x, w)
        y = If(which) <then_branch = a () => (float[1,4,8,8] t) { t = Neg(c) },
                       else_branch = b () => (float[1,4,8,8] e) { e = Softmax<axis = 1>(c) }> }""",
        w=np.random.default_rng(0).standard_normal((4, 4, 1, 1)).astype(np.float32),
    )
    after = convert(graph)
    assert ops(after)["Transpose"] == 2
    for which in (True, False):
        feeds = {
            "x": np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype(np.float32),
            "which": np.array(which),
        }
        np.testing.assert_array_equal(judge(after, feeds)[0], judge(graph, feeds)[0])


def test_a_machine_that_wants_the_order_of_the_file_changes_nothing(parse) -> None:
    graph = images(0, 10, KERNELS)
    assert convert(graph, "NCHW") is graph
    assert {(plan.transforms, plan.dram_bytes) for plan in strategies(graph, replace(NPU, layout="NCHW"))} == {(0, 0)}
    assert not list(ConvertLayout(replace(NPU, layout="NCHW")).refusals(graph))


@pytest.mark.parametrize("order", ["NCW", "HWIO", "NCHW8w", "NCHWD", "nhwc", ""])
def test_a_layout_that_orders_no_images_is_refused(order: str) -> None:
    with pytest.raises(LabError):
        convert(images(0, 4, KERNELS), order)


def test_strategies_have_names(parse) -> None:
    with pytest.raises(LabError, match="minimum cut"):
        ConvertLayout(NPU, "best")
    with pytest.raises(LabError, match="-1 bytes"):
        strategies(images(0, 4, KERNELS), NPU, -1)


def test_refusals_say_which_numbers_do_not_fit(parse) -> None:
    graph = parse(
        """g (float[1,3,8,8] x, float[1,4,8] line) => (float[1,5,8,8] y, float[1,4,8] z) {
        a = Conv(x, w) y = Relu(a) z = Conv(line, v) }""",
        w=np.ones((5, 3, 1, 1), np.float32), v=np.ones((4, 4, 1), np.float32),
    )  # fmt: skip
    blocks = [str(r) for r in ConvertLayout(replace(NPU, layout="NCHW8c")).refusals(graph)]
    assert any("has 3 channels, no multiple of 8" in line for line in blocks)
    assert any("'line' has 3 axes; NCHW8c orders 4" in line for line in blocks)
    assert [str(r) for r in ConvertLayout(NPU).refusals(graph)] == [
        "Conv 'z': layout NHWC refused, no such order: 'line' has 3 axes; NHWC orders 4"
    ]


def test_a_kernel_left_in_the_order_of_the_file_says_what_the_other_would_move(parse) -> None:
    graph = parse(
        "g (float[1,4,8,8] x) => (float[1,256] y, float[1,4,8,8] c) { r = Relu(x) y = Flatten(r) c = Conv(x, w) }",
        w=np.ones((4, 4, 1, 1), np.float32),
    )
    (refusal,) = ConvertLayout(NPU).refusals(graph)
    assert (refusal.guard, refusal.why) == ("bytes", "in NHWC its transforms would move 2 KiB more")


# ---- kernels that could run in both orders


def test_a_penalty_decides_whether_a_kernel_changes_its_order(parse) -> None:
    """Two transforms of 1 KiB tensors, each read and written: they pay when running in the file's order costs more."""
    graph = parse("g (float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Conv(x, w) }", w=np.ones((4, 4, 1, 1), np.float32))
    for penalty, moved, paid in ((0, 0, 0), (4095, 0, 4095), (4097, 4096, 0), (10**9, 4096, 0)):
        plan = plans(graph, "NHWC", penalty)["minimum cut"]
        assert (plan.dram_bytes, plan.penalty_bytes) == (moved, paid)
    assert plans(graph, "NHWC", 0)["minimum cut"].apply() is graph


@pytest.mark.parametrize("seed", range(20))
def test_a_higher_penalty_never_moves_fewer_bytes(seed: int) -> None:
    graph = images(seed, 20, KERNELS)
    costs = [plans(graph, "NHWC", penalty)["minimum cut"] for penalty in (0, 10, 100, 1000, 10**6)]
    assert sorted(plan.dram_bytes for plan in costs) == [plan.dram_bytes for plan in costs]
    assert costs[-1].dram_bytes == plans(graph)["minimum cut"].dram_bytes


def test_orders_say_their_shapes() -> None:
    assert Order("NHWC").shape((1, 64, 56, 28)) == (1, 56, 28, 64)
    assert Order("NCHW8c").shape((1, 64, 56, 28)) == (1, 8, 56, 28, 8)
    assert Order("NHWC8c").shape((1, 64, 56, 28)) == (1, 56, 28, 8, 8)
