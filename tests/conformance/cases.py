"""ONNX's own node cases, collected once, and how their results are compared."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import onnx


@cache
def all_cases() -> tuple[Any, ...]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases overflows on purpose
        return tuple(collect_testcases(None))


def arrays(values: list[Any]) -> list[Any]:
    return [onnx.numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in values]


def assert_same(found: Any, expected: Any, case: Any) -> None:
    if isinstance(expected, list):  # a sequence
        assert len(found) == len(expected), case.name
        for one, two in zip(found, expected, strict=True):
            assert_same(one, two, case)
        return
    if expected is None:  # an empty optional
        assert found is None, case.name
        return
    got = np.asarray(found)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype), case.name
    if expected.dtype == object:
        assert (got == expected).all(), case.name
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        got.astype(wide), expected.astype(wide), rtol=case.rtol, atol=case.atol, err_msg=case.name
    )
