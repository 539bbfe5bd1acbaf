# ruff: noqa: E501  (a table: one row, one case)
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import labkit
from labkit.errors import GraphError
from labkit.hardware import Hardware
from labkit.onnx_io import from_model, load, save, to_model
from labkit.passes.pipeline import LEVELS

RELU = "agraph (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }"


def info(name, shape=(2, 3)):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model_of(nodes, inputs=("x",), outputs=("y",), constants=(), opsets=(("", 17),), ir=8):
    graph = helper.make_graph(nodes, "g", [info(n) for n in inputs], [info(n) for n in outputs], initializer=constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets], ir_version=ir)


def test_a_saved_graph_reads_back_as_the_same_graph(parse, tmp_path):
    graph = parse("""agraph (float["n", 3, 8, 8] x, float[4, 3, 3, 3] w) => (float["n", 4, "h", "w2"] y) {
        c = Conv <pads: ints = [1, 1, 1, 1], auto_pad: string = "NOTSET"> (x, w)
        y = Clip (c, , )
    }""")
    save(graph, tmp_path / "m.onnx")
    again = load(tmp_path / "m.onnx")
    assert [str(v) for v in again.outputs] == [str(v) for v in graph.outputs]
    for one, two in zip(graph.nodes, again.nodes, strict=True):
        assert (one.op, one.inputs, one.outputs, one.attrs, one.name) == (
            two.op,
            two.inputs,
            two.outputs,
            two.attrs,
            two.name,
        )


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 17, onnx.defs.onnx_opset_version()])
def test_the_opset_of_the_file_is_kept(parse, opset):
    model = to_model(parse(RELU, opset=opset))
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", opset)]
    assert model.ir_version >= 8


@pytest.mark.parametrize(("opset", "ir"), [(6, 8), (17, 2)])
def test_files_older_than_opset_7_or_ir_3_are_refused_with_the_numbers(parse, opset, ir):
    with pytest.raises(GraphError, match=f"opset {opset}" if opset < 7 else f"IR version {ir}"):
        parse(RELU, opset=opset, ir=ir)


def test_before_ir_4_a_listed_constant_is_no_input():
    w = onnx.numpy_helper.from_array(np.ones((2, 3), np.float32), "w")
    graph = from_model(model_of([helper.make_node("Add", ["x", "w"], ["y"])], ("x", "w"), constants=[w], ir=3))
    assert [value.name for value in graph.inputs] == ["x"]


def test_since_ir_4_a_listed_constant_is_a_default_that_a_caller_may_override():
    w = onnx.numpy_helper.from_array(np.ones((2, 3), np.float32), "w")
    graph = from_model(model_of([helper.make_node("Add", ["x", "w"], ["y"])], ("x", "w"), constants=[w]))
    x = np.zeros((2, 3), np.float32)
    assert labkit.run(graph, {"x": x})["y"].max() == 1
    assert labkit.run(graph, {"x": x, "w": x + 5})["y"].max() == 5


def test_an_operator_of_a_foreign_domain_survives_and_run_names_it(tmp_path):
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Magic", ["a"], ["b"], domain="com.acme", power=3.0),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    graph = from_model(model_of(nodes, opsets=(("", 17), ("com.acme", 1))))
    optimised = labkit.optimize(graph).graph
    save(optimised, tmp_path / "m.onnx")
    again = load(tmp_path / "m.onnx")
    assert [(node.op, node.domain) for node in again.nodes] == [("Magic", "com.acme"), ("Relu", "")]
    assert again.nodes[0].attrs == {"power": 3.0}
    with pytest.raises(GraphError, match=r"'Magic' of domain 'com\.acme'"):
        labkit.run(again, {"x": np.zeros((2, 3), np.float32)})


def test_a_foreign_operator_with_a_known_name_is_not_taken_for_the_known_one():
    nodes = [helper.make_node("Identity", ["x"], ["a"], domain="com.acme"), helper.make_node("Relu", ["a"], ["y"])]
    graph = from_model(model_of(nodes, opsets=(("", 17), ("com.acme", 1))))
    assert labkit.optimize(graph).graph is graph


def test_nodes_in_the_wrong_order_are_sorted():
    nodes = [helper.make_node("Relu", ["a"], ["y"]), helper.make_node("Neg", ["x"], ["a"])]
    assert [node.op for node in from_model(model_of(nodes)).nodes] == ["Neg", "Relu"]


def test_a_cycle_is_refused_naming_its_nodes():
    nodes = [helper.make_node("Relu", ["b"], ["a"], name="one"), helper.make_node("Add", ["a", "x"], ["b"], name="two")]
    with pytest.raises(GraphError, match=r"cycle: .*'one'.*'two'"):
        from_model(model_of(nodes, outputs=("b",)))


def test_a_value_that_nothing_assigns_is_refused_by_name():
    with pytest.raises(GraphError, match="Relu 'y' reads 'nowhere'"):
        from_model(model_of([helper.make_node("Relu", ["nowhere"], ["y"])]))


def test_a_shape_that_does_not_fit_is_refused_naming_the_node_and_the_numbers(parse):
    with pytest.raises(GraphError, match="Conv 'y': input has 3 channels, weight wants 4 in each of 1 groups"):
        parse("agraph (float[1, 3, 8, 8] x, float[2, 4, 3, 3] w) => (float[1, 2, 6, 6] y) { y = Conv(x, w) }")


@pytest.mark.parametrize("content", [b"", b"hello, this is no model", b"\x00" * 64])
def test_a_file_that_is_no_onnx_is_refused(tmp_path, content):
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(GraphError, match="not an ONNX model"):
        load(tmp_path / "m.onnx")


def test_a_truncated_file_is_refused(parse, tmp_path):
    data = to_model(parse(RELU)).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data[: len(data) // 2])
    with pytest.raises(GraphError, match=r"m\.onnx"):
        load(tmp_path / "m.onnx")


def test_a_graph_that_would_be_invalid_onnx_is_not_written(parse, tmp_path):
    graph = parse("agraph (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }")
    wrong = replace(graph, nodes=(replace(graph.nodes[0], attrs={"no_such_attribute": 1}),))
    (tmp_path / "m.onnx").write_bytes(b"precious")
    with pytest.raises(GraphError, match="would not be valid ONNX"):
        save(wrong, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes() == b"precious"
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_saving_into_a_folder_that_is_not_there_is_one_clear_error(parse, tmp_path):
    with pytest.raises(GraphError, match="cannot be written"):
        save(parse(RELU), tmp_path / "nowhere" / "m.onnx")


def test_branches_keep_the_values_they_capture(parse, judge):
    graph = parse("""agraph (float[2] x, bool c) => (float[2] y) {
        a = Relu(x)
        y = If (c) <
            then_branch = then_graph () => (float[2] t) { t = Neg(a) },
            else_branch = else_graph () => (float[2] e) { e = Add(a, x) }
        >
    }""")
    assert {value.name for value in graph.nodes[1].uses} == {"c", "a", "x"}
    for flag in (True, False):
        feeds = {"x": np.array([1, -2], np.float32), "c": np.array(flag)}
        np.testing.assert_array_equal(labkit.run(graph, feeds)["y"], judge(graph, feeds)[0])


def test_local_functions_are_opened():
    text = """<ir_version: 8, opset_import: ["": 17, "local": 1]>
        agraph (float[2] x) => (float[2] y) { y = local.twice(x) }
        <domain: "local", opset_import: ["": 17]> twice (a) => (b) { b = Add(a, a) }"""
    graph = from_model(onnx.parser.parse_model(text))
    assert [node.op for node in graph.nodes] == ["Add"]


def test_constants_cannot_be_written_through():
    w = onnx.numpy_helper.from_array(np.ones((2, 3), np.float32), "w")
    graph = from_model(model_of([helper.make_node("Add", ["x", "w"], ["y"])], constants=[w]))
    with pytest.raises(ValueError, match="read-only"):
        graph.constants["w"][0, 0] = 7


@pytest.mark.parametrize("opset", [13, 22])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_a_pool_whose_last_window_onnx_counts_and_no_runtime_makes_is_saved_and_runs(
    parse, judge, tmp_path, op, level, opset
):
    graph = parse(
        f"""agraph (float["n", 2, 6, 6] x) => (float["n", 2, "h", "w"] y) {{
            p = {op} <ceil_mode: int = 1, kernel_shape: ints = [1, 1], strides: ints = [2, 2]> (x)
            r = Relu(p)
            y = Concat <axis: int = 1> (r, p)
        }}""",
        opset=opset,
    )
    best = labkit.optimize(graph, level=level, hardware=Hardware.preset("edge-npu")).graph
    save(best, tmp_path / "m.onnx")
    x = np.random.default_rng(0).standard_normal((2, 2, 6, 6), np.float32)
    expected = np.tile(np.maximum(x[:, :, ::2, ::2], 0), (1, 2, 1, 1))
    expected[:, 2:] = x[:, :, ::2, ::2]
    np.testing.assert_array_equal(judge(onnx.load(tmp_path / "m.onnx"), {"x": x})[0], expected)


def test_beside_such_a_pool_an_output_whose_shape_onnx_does_not_infer_keeps_its_own(parse, tmp_path):
    graph = parse(
        """agraph (float[1, 3, 6, 6] x) => (float[1, 3, 3, 3] y, float[2] k) {
            y = MaxPool <ceil_mode: int = 1, kernel_shape: ints = [1, 1], strides: ints = [2, 2]> (x)
        }""",
        opset=13,
        k=np.ones(2, np.float32),
    )
    save(graph, tmp_path / "m.onnx")
    assert load(tmp_path / "m.onnx").outputs == graph.outputs


def test_an_output_type_the_file_declares_wrongly_gives_way_to_the_inferred_one(parse):
    graph = parse("agraph (float[2, 3] x) => (float[7, 7] y) { y = Relu(x) }")
    assert graph.outputs[0].shape == (2, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agraph (float[2] x) => (float[2] y) { y = Relu(x, x) }", "Relu 'y' has 2 inputs; ONNX asks for 1 to 1"),
        ("agraph (float[2] x) => (float[2] y) { y = Concat(x, x) }", "Concat 'y' lacks its attribute 'axis'"),
        (
            'agraph (float[2] x) => (float[2] y) { y = Elu <alpha: string = "a"> (x) }',
            "attribute 'alpha' is unknown or",
        ),
        ("agraph (float[2] x) => (float[2] y) { y = Relu <speed: int = 1> (x) }", "attribute 'speed' is unknown or"),
        ("agraph (float[2] x, int64[2] z) => (float[2] y) { y = Add(x, z) }", "Add 'y': input 'B' is int64, another is float32"),
        ("agraph (float[2] x, int64[2] z) => (float[4] y) { y = Concat <axis: int = 0> (x, z) }", "Concat 'y': input 'inputs' is int64"),
        ("agraph (string[2] x) => (string[2] y) { y = Relu(x) }", "Relu 'y': input 'X' is string, a type that Relu"),
        ("agraph (float[2] x, float[1] z) => (float[2] y) { y = Reshape(x, z) }", "Reshape 'y': input 'shape' is float32"),
        ("agraph (float[2] x, float[2] c) => (float[2] y) { y = Where(c, x, x) }", "Where 'y': input 'condition' is float32"),
    ],
)  # fmt: skip
def test_a_node_that_breaks_its_schema_is_refused_by_name(parse, text, message):
    with pytest.raises(GraphError, match=message):
        parse(text)


def test_a_type_that_is_no_tensor_is_handed_on_unread(parse, tmp_path):
    graph = parse("agraph (seq(float[2]) s, int64 i) => (float[2] y) { y = SequenceAt(s, i) }")
    save(graph, tmp_path / "m.onnx")
    again = load(tmp_path / "m.onnx")
    assert again.inputs[0].opaque
    assert again.inputs == graph.inputs


def test_a_constant_list_that_refers_to_no_function_is_what_stands_in_the_file(judge):
    """onnxruntime reads it as empty, too."""
    node = onnx.helper.make_node("Constant", [], ["y"])
    node.attribute.append(onnx.AttributeProto(name="value_ints", ref_attr_name="a", type=onnx.AttributeProto.INTS))
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT64, [0])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [], [y]), ir_version=8)
    model.opset_import[0].version = 17
    assert labkit.run(from_model(model), {})["y"].tolist() == judge(model, {})[0].tolist() == []
    node.attribute[0].name, node.attribute[0].type = "value_int", onnx.AttributeProto.INT
    model.graph.node[0].CopyFrom(node)
    with pytest.raises(GraphError, match="a value of its own"):
        from_model(model)


def test_an_output_declared_with_another_rank_behind_a_sequence_leaves_with_the_right_one(tmp_path, judge):
    text = "g (float[2,3] x) => (float[6] y) { s = SequenceConstruct(x, x) y = ConcatFromSequence<axis=0>(s) }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    labkit.save(from_model(model), tmp_path / "out.onnx")
    feed = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    saved = onnx.load(tmp_path / "out.onnx")
    assert len(saved.graph.output[0].type.tensor_type.shape.dim) == 2
    assert np.array_equal(judge(saved, feed)[0], np.concatenate([feed["x"], feed["x"]]))
