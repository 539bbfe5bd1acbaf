"""The parts of exercise 04 on numbers: a BatchNormalization as scale and shift, and both in the weights of a Conv."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np

from labkit.course.checking import CheckFailed, Function
from labkit.course.checks.plain import array_of, flat_array, kind
from labkit.graph import Array

# ---- 4.3 BatchNormalization is a line


def check_scale_and_shift(function: Function, draw: Random) -> None:
    """4.3: by the formula, with an ε large enough to tell where it stands."""
    for _ in range(3):
        size = draw.randrange(2, 5)
        gamma, beta, mean, var = (_drawn(draw, size) for _ in range(4))
        epsilon = round(draw.uniform(0.2, 0.9), 2)
        call = f"scale_and_shift(γ {_few(gamma)}, β {_few(beta)}, μ {_few(mean)}, σ² {_few(var)}, {epsilon})"
        result = function(*(array.copy() for array in (gamma, beta, mean, var)), epsilon)
        got = _pair(result, call, "scale and shift")
        arrays = [flat_array(_listed(array), size, call) for array in got]
        if not _alike(arrays, _line(gamma, beta, mean, var, epsilon)):
            why = _why_line(arrays, gamma, beta, mean, var, epsilon)
            raise CheckFailed(f"{call} gave {_few(arrays[0])}, {_few(arrays[1])}: {why}")


def _line(gamma: Array, beta: Array, mean: Array, var: Array, epsilon: float) -> tuple[Array, Array]:
    scale = gamma / np.sqrt(var + epsilon)
    return scale, beta - mean * scale


def _why_line(got: list[Array], gamma: Array, beta: Array, mean: Array, var: Array, epsilon: float) -> str:
    scale, shift = _line(gamma, beta, mean, var, epsilon)
    outside, plain, variance = gamma / (np.sqrt(var) + epsilon), gamma / np.sqrt(var), gamma / (var + epsilon)
    known = (
        ((shift, scale), "the right two; scale first."),
        (_line(beta, gamma, mean, var, epsilon), "γ multiplies, β is added."),
        ((outside, beta - mean * outside), "ε stands in the root, beside σ²."),
        ((plain, beta - mean * plain), "where is ε?"),
        ((variance, beta - mean * variance), "one divides by the deviation, the root of the variance."),
        ((scale, beta - mean), "μ is subtracted before x is scaled; what is left of it at x = 0?"),
        ((scale, beta + mean * scale), "look at the sign of μ."),
        ((scale, beta), "what becomes of μ?"),
        ((scale, -mean * scale), "what becomes of β?"),
        ((gamma / np.sqrt(var + epsilon) / gamma, shift), "the scale is without γ; what stands in front of x?"),
        ((1 / scale, shift), "multiplied and divided the other way round."),
    )
    return next((why for wrong, why in known if _alike(got, wrong)), "put x = 0 and x = 1 into the formula.")


# ---- 4.4 into the weights


def check_fold_weights(function: Function, draw: Random) -> None:
    """4.4: filters first, the old bias scaled; as many filters as channels and columns, so no axis is right by luck."""
    for has_bias in (True, False):
        n, rows = draw.randrange(2, 5), draw.randrange(2, 4)
        weight, bias = _drawn(draw, n, n, rows, n), _drawn(draw, n) if has_bias else None
        scale, shift = _drawn(draw, n), _drawn(draw, n)
        shown = "a bias" if has_bias else "None"
        call = f"fold_weights(weight of {weight.shape}, {shown}, {_few(scale)}, {_few(shift)})"
        given = [weight, bias, scale, shift]
        copies = [None if array is None else array.copy() for array in given]
        got = _pair(function(*copies), call, "weight and bias")
        if any(not np.array_equal(one, two) for one, two in zip(copies, given, strict=True) if one is not None):  # type: ignore[arg-type]
            raise CheckFailed(f"{call} changed an array that it was given, and others may share it; make a new one.")
        if got[1] is None:
            raise CheckFailed(f"{call} gave no bias; without one, where would the shift go?")
        arrays = [array_of(got[0], weight.shape, call), flat_array(_listed(got[1]), n, call)]
        own = np.zeros(n) if bias is None else bias
        if not _alike(arrays, (weight * scale.reshape(-1, 1, 1, 1), own * scale + shift)):
            raise CheckFailed(f"{call}: {_why_weights(arrays, weight, own, scale, shift)}")


def _why_weights(got: list[Array], weight: Array, bias: Array, scale: Array, shift: Array) -> str:
    filters = weight * scale.reshape(-1, 1, 1, 1)
    if not _alike(got[:1], (filters,)):
        known = (
            (weight, "the weight came back as it was; what does the scale do to it?"),
            (
                weight * scale.reshape(1, -1, 1, 1),
                "the scale went along the channels that come in; filters come first.",
            ),
            (
                weight * scale,
                "the scale went along the columns of the kernel; which of the four axes counts the filters?",
            ),
            (weight / scale.reshape(-1, 1, 1, 1), "divided by the scale; is what the Conv gives divided, too?"),
            (filters + shift.reshape(-1, 1, 1, 1), "the shift does not depend on x; it belongs into the bias."),
        )
        return next((why for wrong, why in known if _alike(got[:1], (wrong,))), "each filter has a scale of its own.")
    known_bias = (
        (bias + shift, "the old bias is scaled, too: it is part of what the Conv gives."),
        (bias * scale, "the shift is missing."),
        (shift, "the old bias is missing."),
        ((bias + shift) * scale, "the shift comes after the scale; it is not scaled."),
    )
    return next((f"bias: {why}" for wrong, why in known_bias if _alike(got[1:], (wrong,))), "bias: multiply out.")


# ---- values


def _drawn(draw: Random, *shape: int) -> Array:
    numbers = np.random.default_rng(draw.randrange(2**32)).uniform(1.2, 4.0, shape)
    return np.asarray(numbers, np.float32)


def _pair(result: Any, call: str, what: str) -> tuple[Any, Any]:
    if result is None:
        raise CheckFailed(f"{call} gave nothing back: does the function end with return?")
    if type(result) not in (tuple, list) or len(result) != 2:
        raise CheckFailed(f"{call} gave {kind(result)}; expected two arrays, {what}.")
    return result[0], result[1]


def _listed(value: Any) -> Any:
    """A column or a row in more axes is as good as a flat one."""
    return value.ravel() if type(value) is np.ndarray else value


def _alike(got: Iterable[Array], right: Iterable[Array]) -> bool:
    return all(one.shape == two.shape and np.allclose(one, two, rtol=1e-4) for one, two in zip(got, right, strict=True))


def _few(array: Array) -> str:
    return f"[{', '.join(f'{number:.3g}' for number in array.ravel())}]"
