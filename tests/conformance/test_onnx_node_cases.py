"""ONNX's own node tests, for every operator of the table: as they are, and with the optimiser in front.

A case that does not run is a failure, and the number of executions is asserted: "not supported" never counts as passed.
"""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import onnx
import pytest

import labkit
from labkit.graph import TensorType
from labkit.onnx_io import from_model
from labkit.ops import TABLE


@cache
def cases() -> dict[str, list]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases overflows on purpose
        found: dict[str, list] = {}
        for case in collect_testcases(None):
            ops = {node.op_type for node in case.model.graph.node}
            if ops <= TABLE.keys():
                found.setdefault(case.model.graph.node[0].op_type, []).append(case)
    return found


def arrays(values: list) -> list:
    return [onnx.numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in values]


def assert_same(found, expected, case) -> None:
    if isinstance(expected, list):  # a sequence: Identity passes those on too
        assert len(found) == len(expected)
        for one, two in zip(found, expected, strict=True):
            assert_same(one, two, case)
        return
    got = np.asarray(found)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype), case.name
    np.testing.assert_allclose(got, expected, rtol=case.rtol, atol=case.atol, err_msg=case.name)


@pytest.mark.parametrize("op", sorted(TABLE))
@pytest.mark.parametrize("level", ["none", "basic"])
def test_every_node_case_of_a_table_operator_gives_onnx_own_answer(op, level):
    for case in cases().get(op, []):
        graph = from_model(case.model)
        target = labkit.optimize(graph, level=level).graph
        for inputs, outputs in case.data_sets:
            found = labkit.run(target, dict(zip((v.name for v in graph.inputs), arrays(inputs), strict=False)))
            for value, expected in zip(graph.outputs, arrays(outputs), strict=True):
                assert_same(found[value.name], expected, case)


def test_the_node_cases_are_really_there():
    # 205 cases in onnx 1.23. An empty list would let every test above pass.
    assert sum(map(len, cases().values())) >= 200
    assert {
        "Conv",
        "BatchNormalization",
        "MaxPool",
        "AveragePool",
        "Gemm",
        "Softmax",
        "Pad",
        "Reshape",
    } <= cases().keys()


@pytest.mark.parametrize("op", sorted(TABLE))
def test_inferred_types_are_the_types_that_running_gives(op):
    for case in cases().get(op, []):
        graph = from_model(case.model)
        inputs, _ = case.data_sets[0]
        found = labkit.run(graph, dict(zip((value.name for value in graph.inputs), arrays(inputs), strict=False)))
        for value in graph.outputs:
            kind = graph.producers[value.name].output.type if value.name in graph.producers else value.type
            if kind is not None and kind.is_static and value.name == graph.nodes[-1].output.name:
                assert TensorType.of(np.asarray(found[value.name])) == kind, case.name
