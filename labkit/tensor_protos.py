"""Between ONNX's protocol buffers and our values: tensors and their types."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
from onnx import TensorProto, TypeProto, ValueInfoProto, helper, numpy_helper

from labkit.errors import GraphError
from labkit.graph import Array, Dim, TensorType, Value, read_only


@cache
def dtype_name(elem_type: int) -> str:
    """NumPy's name of an ONNX element type."""
    if elem_type == TensorProto.STRING:
        return "string"
    try:
        return str(np.dtype(helper.tensor_dtype_to_np_dtype(elem_type)).name)
    except KeyError:
        raise GraphError(f"element type {elem_type} is none that ONNX defines") from None


@cache
def elem_type(dtype: str) -> int:
    """ONNX's number of an element type."""
    if dtype in ("string", "object"):
        return int(TensorProto.STRING)
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


class ElsewhereError(GraphError):
    """A tensor whose elements lie in another file: to read a model, its folder has to be known."""


def to_array(tensor: TensorProto) -> Array:
    """The tensor's elements, read-only."""
    if tensor.data_location == TensorProto.EXTERNAL:
        raise ElsewhereError(f"tensor {tensor.name!r} lies in another file; load the model by its path")
    dims = tuple(tensor.dims)
    if min(dims, default=0) < 0:
        raise GraphError(f"tensor {tensor.name!r} declares the dims {list(dims)}; none may be negative")
    try:
        if (dtype := _RAW_TYPES.get(tensor.data_type)) is not None and tensor.HasField("raw_data"):
            return np.frombuffer(tensor.raw_data, dtype).reshape(dims)  # the bytes cannot be written to
        return read_only(numpy_helper.to_array(tensor))
    except KeyError:
        raise GraphError(f"tensor {tensor.name!r}: element type {tensor.data_type} is none that ONNX defines") from None
    except (TypeError, ValueError) as error:
        raise GraphError(f"tensor {tensor.name!r} cannot be read: {' '.join(str(error).split())}") from None


# Element types that lie in a file as they lie in memory, but for the order of bytes: no need to ask for the way there.
_RAW_TYPES = {
    int(helper.np_dtype_to_tensor_dtype(dtype)): dtype.newbyteorder("<") for dtype in map(np.dtype, "efdbhilqBHILQ?")
}


def to_tensor(array: Array, name: str = "") -> TensorProto:
    """ONNX's spelling of an array."""
    kind = elem_type(TensorType.of(array).dtype)
    if kind in _RAW_TYPES and array.dtype.isnative:
        raw = array.astype(_RAW_TYPES[kind], copy=False).tobytes()
        return TensorProto(name=name or None, dims=array.shape, data_type=kind, raw_data=raw)
    return numpy_helper.from_array(array, name)


def to_type(proto: TypeProto, key: str) -> TensorType | None:
    """Our type of a tensor type, None for any other; unnamed dims become unknown ones named after ``key``."""
    if not proto.HasField("tensor_type") or not proto.tensor_type.elem_type:
        return None
    tensor = proto.tensor_type
    dtype = dtype_name(tensor.elem_type)
    if not tensor.HasField("shape"):
        return TensorType(None, dtype)
    return TensorType(tuple(_dim(dim, f"?{key}.{axis}") for axis, dim in enumerate(tensor.shape.dim)), dtype)


def _dim(dim: Any, unknown: str) -> Dim:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return dim.dim_param or unknown


def to_value(info: ValueInfoProto) -> Value:
    kind = to_type(info.type, info.name)
    return Value(info.name, kind, b"" if kind else info.type.SerializeToString())


@lru_cache(maxsize=1024)
def type_proto(kind: TensorType) -> TypeProto:
    """ONNX's spelling of a type, to read, not to change; unknown dims stay unnamed."""
    proto = TypeProto()
    proto.tensor_type.elem_type = elem_type(kind.dtype)
    if kind.shape is None:
        return proto
    proto.tensor_type.shape.SetInParent()
    for dim in kind.shape:
        entry = proto.tensor_type.shape.dim.add()
        if isinstance(dim, int):
            entry.dim_value = dim
        elif not dim.startswith("?"):
            entry.dim_param = dim
    return proto


def value_info(value: Value) -> ValueInfoProto:
    info = ValueInfoProto(name=value.name)
    if value.type is not None:
        info.type.CopyFrom(type_proto(value.type))
    elif value.opaque:
        info.type.ParseFromString(value.opaque)
    return info
