import json

import pytest

import labkit
from labkit.hardware import Hardware

NPU = Hardware.preset("edge-npu")


def test_a_node_reads_each_distinct_input_once_and_writes_its_outputs_once(parse):
    graph = parse("agraph (float[8, 4] x) => (float[8, 4] y) { a = Mul(x, x) y = Add(a, x) }")
    traffic = labkit.cost(graph, NPU).traffic
    assert (traffic.read_bytes, traffic.write_bytes) == (128 + 256, 256)


def test_an_elementwise_add_has_an_intensity_of_one_twelfth(parse):
    graph = parse("agraph (float[64] x, float[64] z) => (float[64] y) { y = Add(x, z) }")
    assert labkit.cost(graph, NPU).intensity == 1 / 12


def test_the_ledger_says_where_the_bytes_come_from(parse):
    graph = parse("agraph (float[8] x) => (float[8] y) { a = Relu(x) y = Neg(a) }")
    by_value = labkit.cost(graph, NPU).ledger.by("value")
    assert {name: traffic.nbytes for name, traffic in by_value.items()} == {"x": 32, "a": 64, "y": 32}


@pytest.mark.parametrize(
    ("text", "flops"),
    [
        ("agraph (float[1, 6, 9, 9] x, float[8, 3, 3, 3] w, float[8] b) => (float[1, 8, 7, 7] y)"
         " { y = Conv <group: int = 2> (x, w, b) }", 8 * 49 * (2 * 27 + 1)),
        ("agraph (float[4, 5] a, float[5, 6] b) => (float[4, 6] y) { y = MatMul(a, b) }", 2 * 4 * 5 * 6),
        ("agraph (float[5, 4] a, float[5, 6] b, float[6] c) => (float[4, 6] y)"
         " { y = Gemm <transA: int = 1> (a, b, c) }", 4 * 6 * (2 * 5 + 1)),
        ("agraph (float[4, 5] a) => (float[4, 5] y) { y = Relu(a) }", 20),
        ("agraph (float[4, 5] a) => (float[5, 4] y) { y = Transpose(a) }", 0),
    ],
)  # fmt: skip
def test_flops_are_counted_by_hand(parse, text, flops):
    assert labkit.cost(parse(text), NPU).flops == flops


def test_symbolic_dims_count_as_one_and_are_named(parse):
    costs = labkit.cost(parse('agraph (float["batch", 8] x) => (float["batch", 8] y) { y = Relu(x) }'), NPU)
    assert (costs.dram_bytes, costs.assumed) == (64, ("batch",))


def test_time_is_the_sum_of_the_rooflines_of_the_kernels(parse):
    graph = parse("agraph (float[1000] x) => (float[1000] y) { a = Relu(x) y = Neg(a) }")
    assert labkit.cost(graph, NPU).time_s == pytest.approx(2 * (8000 / NPU.dram_bytes_per_s + NPU.launch_s))


def test_bytes_and_nodes_of_real_networks_are_those_that_others_counted(shared):
    targets = json.loads((shared / "models" / "targets.json").read_text())
    for name in ("light_resnet50_slim", "light_densenet121_slim", "light_inception_v2_slim", "light_shufflenet_slim",
                 "light_squeezenet_slim", "torch_mbv2__ts_keepbn"):  # fmt: skip
        graph = labkit.load(shared / "models" / f"{name}.onnx")
        assert [len(graph.nodes), labkit.cost(graph, NPU).dram_bytes] == targets[name]["raw"], name
