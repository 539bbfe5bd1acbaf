"""Values a student returns, turned into plain ones before anything is compared: no object decides what it equals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.course.checking import CheckFailed


def kind(value: object) -> str:
    """What type of value it is, with its article.

    >>> kind(3), kind([]), kind(np.zeros(2)), kind(np.uint8(1))
    ('an int', 'a list', 'an ndarray', 'a uint8')
    """
    name = type(value).__name__
    return f"{'an' if name == 'ndarray' or name[:1].lower() in 'aeio' else 'a'} {name}"


def whole(value: object, call: str) -> int:
    """A plain int from an int or a NumPy integer; CheckFailed says what came instead.

    >>> whole(np.int64(3), "f(x)")
    3
    """
    if value is None:
        raise CheckFailed(f"{call} gave nothing back: does the function end with return?")
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if type(value) is int:
        return value
    if isinstance(value, np.integer) and type(value).__module__ == "numpy":
        return int(value)
    hint = ": use // where you divide" if isinstance(value, float | np.floating) else ""
    raise CheckFailed(f"{call} gave {_show(value)}, {kind(value)}; expected a whole number{hint}.")


def number(value: object, call: str) -> float:
    """A plain float from a number of Python or NumPy, whole or not.

    >>> number(np.float32(0.5), "f(x)"), number(3, "f(x)")
    (0.5, 3.0)
    """
    if value is None:
        raise CheckFailed(f"{call} gave nothing back: does the function end with return?")
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if type(value) in (int, float, Fraction) or (
        isinstance(value, np.integer | np.floating) and type(value).__module__ == "numpy"
    ):
        return float(value)  # type: ignore[arg-type]
    raise CheckFailed(f"{call} gave {_show(value)}, {kind(value)}; expected a number.")


def wholes(value: object, call: str) -> tuple[int, ...]:
    """Plain ints from a tuple, a list or a flat array of whole numbers.

    >>> wholes([1, np.int64(2)], "f(x)"), wholes(np.array([3, 4]), "f(x)")
    ((1, 2), (3, 4))
    """
    if value is None:
        raise CheckFailed(f"{call} gave nothing back: does the function end with return?")
    if type(value) is np.ndarray and value.ndim == 1:
        value = list(value)
    if type(value) not in (tuple, list):
        raise CheckFailed(f"{call} gave {_show(value)}, {kind(value)}; expected a tuple or a list.")
    assert isinstance(value, tuple | list)
    return tuple(whole(item, call) for item in value)


def truth(value: object, call: str) -> bool:
    """A plain bool from True, False or NumPy's own two."""
    if type(value) is bool:
        return value
    if type(value) is np.bool_:
        return bool(value)
    if value is None:
        raise CheckFailed(f"{call} gave nothing back: does every branch return True or False?")
    raise CheckFailed(f"{call} gave {_show(value)}, {kind(value)}; expected True or False.")


def flat_array(value: object, size: int, call: str) -> NDArray[Any]:
    """A flat array of ``size`` numbers, from an array, a list or a tuple."""
    if value is None:
        raise CheckFailed(f"{call} gave nothing back: does the function end with return?")
    if type(value) in (tuple, list):
        value = np.array(value)
    if type(value) is not np.ndarray or value.dtype.kind not in "iuf":
        raise CheckFailed(f"{call} gave {kind(value)}; expected an array of numbers.")
    if value.ndim != 1:
        raise CheckFailed(f"{call} gave an array of shape {value.shape}; memory is flat: one axis.")
    if value.size != size:
        raise CheckFailed(f"{call} gave {value.size} elements; the tensor has {size}.")
    return value


def array_of(value: object, shape: tuple[int, ...], call: str) -> NDArray[Any]:
    """An array of numbers of that shape, from an array or from lists in lists."""
    if value is None:
        raise CheckFailed(f"{call} gave nothing back: does the function end with return?")
    if type(value) in (tuple, list):
        value = _stacked(value, call)
    if type(value) is not np.ndarray or value.dtype.kind not in "iuf":
        raise CheckFailed(f"{call} gave {kind(value)}; expected an array of numbers.")
    if value.shape != shape:
        raise CheckFailed(f"{call} gave an array of shape {value.shape}; expected {shape}.")
    return value


def _stacked(value: Any, call: str) -> Any:
    try:
        return np.array(value)
    except ValueError:
        raise CheckFailed(f"{call} gave rows of different lengths; expected an array of numbers.") from None


def _show(value: object) -> str:
    text = repr(value) if type(value).__module__ in ("builtins", "numpy") else "an object"
    return text if len(text) <= 60 else text[:57] + "..."
