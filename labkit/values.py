"""What flows through a graph: arrays, their types, and values, which are names with a type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Dim: TypeAlias = int | str
Shape: TypeAlias = tuple[Dim, ...]

# Element types that NumPy knows only once ml_dtypes is imported, as NumPy holds them: whole bytes for each element.
_ML_DTYPES = {"bfloat16": 2}
_ONE_BYTE = ("float8", "float4", "int4", "uint4", "int2", "uint2", "string", "object")


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape and element type of a tensor. ``shape`` is None when even the rank is unknown.

    A dim is an int or a string: a symbol of the model ("batch"), an expression over symbols, or, with a leading "?",
    a size nobody knows. Strings are equal only to themselves. ``dtype`` is NumPy's name of the element type.
    """

    shape: Shape | None
    dtype: str

    @property
    def is_static(self) -> bool:
        """Whether every dim is a number."""
        return self.shape is not None and str not in map(type, self.shape)

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements; a dim that is no number counts as 1."""
        return prod(dim for dim in self.shape or () if isinstance(dim, int))

    @property
    def nbytes(self) -> int:
        """Bytes in memory; a dim that is no number counts as 1."""
        return self.size * itemsize(self.dtype)

    @staticmethod
    def of(array: Array) -> TensorType:
        """The type of an array."""
        return TensorType(array.shape, _dtype_name(array.dtype))

    def __str__(self) -> str:
        dims = "?" if self.shape is None else "×".join(map(str, self.shape)) or "scalar"
        return f"{self.dtype} {dims}"


@cache
def _dtype_name(dtype: np.dtype[Any]) -> str:
    """NumPy works a name out anew each time, which takes longer than all else about a small constant."""
    return "string" if dtype.kind == "O" else dtype.name


def itemsize(dtype: str) -> int:
    """Bytes of one element; a string counts as one byte, having no fixed size.

    >>> itemsize("float32"), itemsize("bfloat16")
    (4, 2)
    """
    if dtype.startswith(_ONE_BYTE):
        return 1
    return _ML_DTYPES.get(dtype) or np.dtype(dtype).itemsize


@dataclass(frozen=True, slots=True)
class Value:
    """A name and the type of what it stands for. What is no tensor (a sequence, an optional) has no ``type`` but, where
    the file declares one, ``opaque``: ONNX's own spelling of it, which is handed on unread."""

    name: str
    type: TensorType | None = None
    opaque: bytes = b""

    @property
    def shape(self) -> Shape | None:
        return None if self.type is None else self.type.shape

    @property
    def dtype(self) -> str | None:
        return None if self.type is None else self.type.dtype

    def __str__(self) -> str:
        return f"{self.name}: {self.type or '?'}"


def read_only(array: Array) -> Array:
    """A view of ``array`` that nobody can write through."""
    view = array.view()
    view.flags.writeable = False
    return view
