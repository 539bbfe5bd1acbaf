"""Clutter of hundreds of sites over real networks: the passes give back the node count of the clean network."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import labkit
from labkit import zoo
from tests.passes.clutter import Clutter

pytestmark = pytest.mark.slow
MODELS = (
    "light_densenet121_slim", "light_inception_v2_slim", "light_resnet50_slim", "light_shufflenet_slim",
    "light_squeezenet_slim", "torch_mbv2__dyn_raw", "torch_mbv2__ts_keepbn", "torch_resnet__ts_keepbn",
    "torch_resnet__ts_train", "torch_unet_deadheads__ts_keepbn",
)  # fmt: skip


def kinds(graph):
    return Counter(node.op for node in graph.nodes)


def assert_back_to_clean(clean, seed, density):
    clutter = Clutter(clean, seed, density)
    cluttered = clutter.strewn()
    assert len(cluttered.nodes) > len(clean.nodes) + clutter.sites
    after = labkit.optimize(cluttered).graph
    assert kinds(after) == kinds(labkit.optimize(clean).graph)
    return clutter.sites, cluttered, after


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", range(3))
def test_a_cluttered_network_is_back_to_its_clean_size(shared, name, seed):
    clean = labkit.load(shared / "models" / f"{name}.onnx")
    assert_back_to_clean(clean, seed, density=(0.3, 0.6, 1.0)[seed])


def test_resnet50_at_full_width_loses_hundreds_of_sites():
    sites, _, after = assert_back_to_clean(zoo.resnet50(), seed=7, density=1.0)
    assert sites > 200
    assert len(after.nodes) == 123


@pytest.mark.parametrize(
    "name", ["torch_mbv2__ts_keepbn", "torch_resnet__ts_keepbn", "torch_unet_deadheads__ts_keepbn"]
)
def test_a_cluttered_network_computes_the_same_before_and_after(shared, judge, name):
    clean = labkit.load(shared / "models" / f"{name}.onnx")
    _, cluttered, after = assert_back_to_clean(clean, seed=11, density=0.8)
    feeds = {v.name: np.random.default_rng(0).standard_normal(v.shape).astype(np.float32) for v in clean.inputs}
    expected = judge(clean, feeds)
    for one, two, three in zip(expected, judge(cluttered, feeds), judge(after, feeds), strict=True):
        np.testing.assert_array_equal(one, two)  # clutter itself changes no bit
        # BatchNormalization folded into 20 to 50 layers: float32 rounding, relative to the largest output.
        np.testing.assert_allclose(three, one, rtol=1e-4, atol=1e-4 * float(np.abs(one).max()))
