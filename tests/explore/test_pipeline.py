import numpy as np
import pytest

import labkit
from labkit import zoo
from labkit.errors import LabError
from labkit.explore import panel, pipeline
from labkit.hardware import Hardware
from labkit.passes.pipeline import PASSES

NPU = Hardware.preset("edge-npu")


@pytest.fixture
def graph(parse):
    rng = np.random.default_rng(0)
    arrays = {"w": rng.standard_normal((4, 3, 3, 3)), **{name: np.ones(4) for name in "sbmv"}}
    text = "c = Conv(x, w) n = BatchNormalization(c, s, b, m, v) r = Relu(n) i = Identity(r) y = Sigmoid(i)"
    return parse(
        f"agraph (float[1, 3, 9, 9] x) => (float[1, 4, 7, 7] y) {{ {text} }}",
        **{name: array.astype(np.float32) for name, array in arrays.items()},
    )


def test_data_is_what_optimize_reports(graph):
    state = pipeline.data(graph, list(PASSES), NPU)
    report = labkit.optimize(graph, hardware=NPU)
    assert state.report.to_dict()["after"] == report.to_dict()["after"]
    assert "5 nodes became 3" in state.sentence
    assert state.rows[0][0] == "pass"


def test_passes_run_in_the_order_of_the_pipeline_whatever_the_order_of_the_switches(graph):
    assert pipeline.data(graph, ["dead", "no-ops"], NPU).passes == ("no-ops", "dead")


def test_an_unknown_pass_is_refused(graph):
    with pytest.raises(LabError, match="no pass 'magic'"):
        pipeline.data(graph, ["magic"], NPU)


def test_the_roofline_has_the_original_and_each_step_that_moved_it(graph):
    points = pipeline.data(graph, list(PASSES), NPU).points
    assert [label for label, *_ in points] == ["original", "no-ops, round 1", "affine, round 1"]
    assert points[-1][2] == labkit.optimize(graph).costs[-1].dram_bytes


def test_a_switch_changes_text_table_and_picture(graph):
    view = pipeline.show(graph)
    text, png = view.text, view.plot.png
    view.set(affine=False)
    assert f"Passes: {', '.join(name for name in PASSES if name != 'affine')}." in view.text
    assert view.text != text
    assert view.plot.png != png
    view.set(affine=True)
    assert (view.text, view.plot.png) == (text, png)


def test_the_hardware_panel_changes_the_time_and_the_plot(graph):
    machine = panel.show()
    view = pipeline.show(graph, machine.state)
    before = view.plot.png
    machine.set(preset="dsp")
    assert "as fast on dsp" in view.text
    assert view.plot.png != before


def test_an_error_becomes_a_sentence_in_the_view(graph, monkeypatch):
    view = pipeline.show(graph)
    monkeypatch.setattr(pipeline, "optimize", lambda *args, **kwargs: 1 / 0)
    view.set(affine=False)
    assert "Cannot show this: ZeroDivisionError" in view.children[1].value


def test_the_saved_view_says_its_state_and_shows_its_picture(graph):
    bundle = pipeline.show(graph)._repr_mimebundle_()
    assert bundle["text/plain"].startswith("Passes: no-ops")
    assert bundle["image/png"]


def test_resnet50_of_the_zoo_is_the_real_one():
    graph = zoo.resnet50()
    assert sum(node.op == "Conv" for node in graph.nodes) == 53
    # He et al. 2015: 3.8 × 10⁹ multiply-adds; 25.6 million weights.
    assert sum(array.size for array in graph.constants.values()) == pytest.approx(25.6e6, rel=0.002)
    assert labkit.cost(graph, NPU).flops == pytest.approx(2 * 3.8e9, rel=0.1)
    again = zoo.resnet50()
    assert all(np.array_equal(array, again.constants[name]) for name, array in graph.constants.items())
