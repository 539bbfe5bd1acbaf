"""ONNX's own node tests, for every operator of the table: as they are, and with the optimiser in front.

A case that does not run is a failure, and the number of executions is asserted: "not supported" never counts as passed.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from cases import all_cases, arrays, assert_same

import labkit
from labkit.graph import TensorType
from labkit.onnx_io import from_model
from labkit.ops import TABLE


@cache
def cases() -> dict[str, list]:
    found: dict[str, list] = {}
    for case in all_cases():
        if {node.op_type for node in case.model.graph.node} <= TABLE.keys():
            found.setdefault(case.model.graph.node[0].op_type, []).append(case)
    return found


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
