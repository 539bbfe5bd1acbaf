"""Scheduled kernels really run: the counted bytes are the planned ones, and the results are those of run()."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.errors import SramOverflow
from labkit.execution import run_scheduled
from labkit.hardware import Hardware
from labkit.memory.scratchpad import Scratchpad
from labkit.planning import plan
from labkit.scheduling import kernel_of, schedule
from tests.drafts import HEADS, OPSETS, draft

MACHINE = Hardware.preset("edge-npu")


@pytest.mark.parametrize("head", HEADS)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_counted_is_planned_and_the_result_is_that_of_run(head: str, data: st.DataObject) -> None:
    graph, made = draft(data, head, data.draw(st.sampled_from(["float32", "float32", "float16"])))
    (node,) = graph.nodes
    smallest = plan(kernel_of(node, 17), 1).working_set_bytes
    sram_bytes = data.draw(st.integers(smallest, 4 * smallest) | st.just(2**20))
    (scheduled,) = schedule(graph, replace(MACHINE, sram_bytes=sram_bytes))
    pad = Scratchpad(sram_bytes)
    results = run_scheduled(scheduled, {v.name: made.arrays[v.name] for v in graph.inputs}, pad, OPSETS)

    assert pad.ledger.traffic == scheduled.plan.traffic
    assert pad.ledger.traffic == scheduled.traffic
    assert pad.high_water_bytes <= scheduled.plan.working_set_bytes <= sram_bytes
    assert pad.used_bytes == 0
    assert pad.launches == 1
    for value in graph.outputs:
        wanted = made.arrays[value.name]
        assert results[value.name].dtype == wanted.dtype
        rough = 2e-2 if wanted.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(results[value.name], wanted, rtol=rough, atol=rough)
    with pytest.raises(SramOverflow, match="smallest tiles take"):
        schedule(graph, replace(MACHINE, sram_bytes=smallest - 1) if smallest > 1 else replace(MACHINE, sram_bytes=0.5))
