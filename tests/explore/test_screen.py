"""The switch for a projector, and what fifty runs of a cell leave behind."""

import io
import subprocess
import sys
import textwrap

import pytest
from PIL import Image

from labkit.explore import layouts, panel, roofline, screen

POINTS = [("matmul", 2**31, 71_303_168)]


@pytest.fixture(autouse=True)
def desk():
    screen.SCREEN.large = False
    yield
    screen.SCREEN.large = False


def size(view):
    return Image.open(io.BytesIO(view.png)).size


@pytest.mark.parametrize("seen", [0, 1])
def test_the_switch_of_the_panel_enlarges_every_figure_and_back(seen):
    machine = panel.show()
    view = roofline.show(POINTS, machine.state)
    view._view_count = seen
    before, (width, height) = view.png, size(view)
    machine.set(large=True)
    assert size(view) == (width * 1.5, height * 1.5)
    assert view._picture.width == round(width * 1.5)
    assert "labkit-large" in view._dom_classes
    machine.set(large=False)
    assert view.png == before
    assert "labkit-large" not in view._dom_classes


def test_a_view_made_on_a_projector_is_large_from_the_start():
    screen.SCREEN.large = True
    assert roofline.show(POINTS)._picture.width == 1440
    assert layouts.show()._strip.scale == 1.5


def test_canvases_follow_and_all_switches_agree():
    view, machine = layouts.show(), panel.show()
    machine.set(large=True)
    assert view._strip.scale == 1.5
    assert view.children[-2].value is True, "the explorer's own switch"
    view.children[-2].value = False
    assert machine.controls["large"].value is False
    assert view._strip.scale == 1.0


RERUN = """
import gc, resource
from labkit.explore import panel, roofline, tiling

machine = panel.show()

def cell():
    for view in (roofline.show([("matmul", 2**31, 71_303_168)], machine.state), tiling.show(machine.state)):
        view._repr_mimebundle_()
        view._view_count = 1
        view.refresh()
        view._view_count = 0

def kib():
    gc.collect()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

for _ in range(5):
    cell()
before = kib()
for _ in range(50):
    cell()
from matplotlib import pyplot
print(len(pyplot.get_fignums()), kib() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory in other units")
def test_fifty_runs_of_a_cell_leave_no_figure_open_and_take_less_than_20_mib():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(RERUN)], capture_output=True, text=True, check=True)
    figures, growth_kib = map(int, done.stdout.split())
    assert figures == 0
    assert growth_kib < 20 * 1024
