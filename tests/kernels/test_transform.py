"""Layout transforms: StridedTensor judges the bytes in memory, and a list of addresses the runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.errors import LabError, SramOverflow
from labkit.kernels.transform import run_transform, transform_nest
from labkit.memory.ledger import Traffic
from labkit.memory.scratchpad import Scratchpad
from labkit.tensor import StridedTensor
from labkit.transfers import runs_by_operand

ORDERS = ["NCHW", "NHWC", "NCHW4c"]


@settings(max_examples=100, deadline=None)
@given(
    st.tuples(st.integers(1, 3), st.sampled_from([4, 8, 12]), st.integers(1, 7), st.integers(1, 7)),
    st.sampled_from(ORDERS),
    st.sampled_from(ORDERS),
    st.fixed_dictionaries({loop: st.integers(1, 5) for loop in "nchw"}),
    st.permutations("nchw"),
)
def test_every_element_is_read_once_and_written_once(shape, source: str, target: str, tile, order) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x.flat[0] = -0.0
    pad = Scratchpad("64KiB")
    memory = run_transform(x, source, target, pad, tile, order)
    wanted = StridedTensor.from_array(x).to(target).storage
    assert memory.tobytes() == wanted.tobytes(), "bit for bit, -0.0 too"
    nest = transform_nest(shape, source, target, "float32", tile, order)
    assert pad.ledger.traffic == nest.traffic
    assert (nest.traffic.read_bytes, nest.traffic.write_bytes) == (x.nbytes, x.nbytes)
    assert pad.ledger.runs == sum(runs_by_operand(nest).values())
    assert pad.high_water_bytes == nest.working_set_bytes


def test_a_tile_has_few_runs_on_one_side_and_many_on_the_other() -> None:
    x = np.zeros((1, 64, 56, 56), np.float32)
    pad = Scratchpad("32KiB")
    run_transform(x, "NCHW", "NHWC", pad, {"h": 1})
    reads, writes = (pad.ledger.where(lambda line, kind=kind: line.kind == kind).runs for kind in ("read", "write"))
    assert (reads, writes) == (64 * 56, 56), "a row of each channel against one row of pixels"


def test_the_same_order_is_a_plain_copy() -> None:
    x, pad = np.arange(48, dtype=np.int8).reshape(1, 3, 4, 4), Scratchpad("1KiB")
    assert run_transform(x, "NCHW", "NCHW", pad).tolist() == list(range(48))
    assert (pad.ledger.traffic, pad.ledger.runs) == (Traffic(48, 48, 1, 1), 2)


def test_bad_input_is_named() -> None:
    x = np.zeros((1, 3, 4, 4), np.float32)
    with pytest.raises(LabError, match=r"3 channels .* pad to 4"):
        run_transform(x, "NCHW", "NCHW4c", Scratchpad("1KiB"))
    with pytest.raises(LabError, match=r"wanted the logical \(n, c, h, w\)"):
        run_transform(x[0], "NCHW", "NHWC", Scratchpad("1KiB"))
    with pytest.raises(LabError, match="layout 'NCXW'"):
        run_transform(x, "NCHW", "NCXW", Scratchpad("1KiB"))
    with pytest.raises(SramOverflow):
        run_transform(x, "NCHW", "NHWC", Scratchpad(383))
