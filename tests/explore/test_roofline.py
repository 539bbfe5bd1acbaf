"""The roofline plot: its data is pure, its view follows the hardware of the panel."""

from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from labkit.errors import LabError
from labkit.explore import panel, roofline, roofline_view
from labkit.explore.panel import HardwareState
from labkit.explore.roofline import RooflineState, data, spread
from labkit.hardware import Hardware

POINTS = [("none", 8_200_000_000, 520_000_000), ("fused", 8_180_000_000, 250_000_000)]
NPU = Hardware.preset("edge-npu")
counts = st.integers(1, 10**18)
machines = st.builds(
    lambda peak, bandwidth: replace(NPU, peak_flops_per_s=peak, dram_bytes_per_s=bandwidth),
    st.floats(1e9, 1e15),
    st.floats(1e8, 1e13),
)


def test_the_sentence_says_machine_ridge_and_each_point() -> None:
    assert data(POINTS, NPU).sentence.splitlines() == [
        "edge-npu: peak 1.02 TFLOP/s, DRAM 3.75 GB/s, ridge 273 FLOP/byte.",
        "1. none: 15.8 FLOP/byte, memory-bound, at most 59.1 GFLOP/s.",
        "2. fused: 32.7 FLOP/byte, memory-bound, at most 123 GFLOP/s.",
    ]


@given(st.lists(st.tuples(st.just("p"), counts, counts), max_size=8), machines)
def test_every_point_and_the_ridge_lie_inside_the_axes(points: list, machine: Hardware) -> None:
    state = data(points, machine)
    (left, right), (bottom, top) = state.intensity_limits, state.rate_limits
    assert left < machine.ridge < right
    assert bottom < machine.peak_flops_per_s < top / 9
    for point in state.points:
        assert left * 0.999 <= point.estimate.intensity <= right * 1.001
        assert bottom * 0.999 <= point.estimate.attainable_flops_per_s <= top


@given(st.lists(st.floats(0, 1), max_size=8), st.sampled_from([0.05, 0.1]))
def test_spread_keeps_the_order_and_the_gap_and_stays_inside(wanted: list[float], gap: float) -> None:
    placed = spread(wanted, gap)
    inner = sorted(placed)
    assert all(b - a >= gap - 1e-9 for a, b in pairwise(inner))
    assert all(gap / 2 - 1e-9 <= x <= 1 - gap / 2 + 1e-9 for x in placed)
    assert [placed[i] for i in sorted(range(len(wanted)), key=lambda i: wanted[i])] == inner


def test_spread_leaves_alone_what_has_room() -> None:
    assert spread([0.2, 0.8, 0.5], 0.1) == (0.2, 0.8, 0.5)


@pytest.mark.parametrize("point", [("reshape", 0, 100), ("resident", 100, 0), ("odd", -1, 5)])
def test_a_point_that_log_axes_cannot_hold_is_named(point: tuple[str, int, int]) -> None:
    with pytest.raises(LabError, match=f"point '{point[0]}' has {point[1]} FLOP and {point[2]} bytes"):
        data([point], NPU)


def test_more_points_than_colours_are_refused() -> None:
    with pytest.raises(LabError, match="9 points"):
        data([("p", 1, 1)] * 9, NPU)


def test_every_slider_that_matters_changes_picture_and_text() -> None:
    shown = panel.show()
    view = roofline.show(POINTS, shown.state)
    for move in ({"bandwidth_gb_s": 40}, {"peak_gflop_s": 100}, {"preset": "dsp"}, {"preset": "edge-npu"}):
        before = (view.text, view.png)
        shown.set(**move)
        assert view.text != before[0]
        assert view.png != before[1]
        assert view.text == data(POINTS, shown.state.hardware).sentence


def test_other_points_can_be_set_and_wrong_ones_are_a_sentence() -> None:
    view = roofline.show(POINTS)
    before = view.png
    view.points = POINTS[:1]
    assert "fused" not in view.text
    assert view.png != before
    view.points = [("reshape", 0, 100)]
    assert view.text.startswith("Cannot show this: point 'reshape' has 0 FLOP")


def test_the_same_points_set_again_are_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    view = roofline.show(POINTS)
    view._view_count = 1
    monkeypatch.setattr(view, "_animation", None)  # whatever draws now makes a new one
    view.points = list(POINTS)
    assert view._animation is None


def test_a_closed_view_no_longer_follows() -> None:
    state = HardwareState()
    view = roofline.show(POINTS, state)
    before = view.text
    view.close()
    state.hardware = Hardware.preset("dsp")
    assert view.text == before


def test_a_long_way_by_slider_ends_in_the_picture_of_a_fresh_view() -> None:
    shown = panel.show()
    walked = roofline.show(POINTS, shown.state)
    walked._view_count = 1
    for peak in (100, 20_000, 3, 40):
        shown.set(peak_gflop_s=peak, bandwidth_gb_s=peak / 3)
    assert walked.png == roofline.show(POINTS, shown.state).png


@pytest.mark.parametrize("points", [POINTS, [("same", 10, 1)] * 8, [("a very long name of a pass indeed", 10**9, 10)]])
@pytest.mark.parametrize("machine", Hardware.presets())
def test_no_text_is_cut_off_and_none_lies_on_another(points: list, machine: str) -> None:
    state = data(points, Hardware.preset(machine))
    figure = Figure(figsize=(9.6, 5.0), dpi=100)
    canvas = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    roofline_view._move(roofline_view._draw(figure, state), state)
    canvas.draw()  # places the labels of the axes
    texts = [text for text in figure.findobj(Text) if text.get_text().strip() and "10^" not in text.get_text()]  # ticks
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    assert len(boxes) > 4 * len(points), "each point has a badge, a name, an intensity and a rate"
    for label, box in boxes:
        assert box.x0 >= 0 <= box.y0, label
        assert box.x1 <= 960, label
        assert box.y1 <= 500, label
    for (one, a), (two, b) in combinations(boxes, 2):
        assert a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 + 3 or b.y1 <= a.y0 + 3, f"{one} lies on {two}"


def test_a_small_step_keeps_the_still_part() -> None:
    one = data(POINTS, NPU)
    two = data(POINTS, replace(NPU, dram_bytes_per_s=NPU.dram_bytes_per_s * 1.1))
    assert isinstance(one, RooflineState)
    assert one.still == two.still
    assert one.still != data(POINTS[:1], NPU).still
