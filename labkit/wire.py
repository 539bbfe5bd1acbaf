"""ONNX files without copying weights: large tensors are views of the file's bytes, and written from NumPy's memory.

A protocol buffer is a row of fields: a tag (field number and wire type), a length, bytes. Initializers are found by
walking those rows; the rest of the model goes through the protobuf library as ever. Two messages written one behind the
other are one message, repeated fields joined (Protocol Buffers, "Encoding": last one wins, or merge), so weights can
follow the model they belong to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto, helper

from labkit.graph import Array, read_only

LARGE_BYTES = 4096  # smaller tensors are not worth the trouble
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9  # field numbers in ModelProto, GraphProto, TensorProto
_LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}  # wire type -> bytes of the value

Field: TypeAlias = tuple[int, int, int, int]  # field number, start of the field, start and end of its value


def read(path: Path) -> tuple[ModelProto, dict[str, Array]]:
    """The model without its large initializers, and those as read-only views of the file's bytes.

    Raises protobuf's DecodeError for what is no model. Tensors kept in other files, or in other fields than raw_data,
    stay in the model.
    """
    data = _contents(path)
    rest, weights = bytearray(), {}
    for number, start, inside, end in _fields(data, 0, len(data)):
        if number != _GRAPH:
            rest += data[start:end]
            continue
        graph = bytearray()
        for inner, at, value, stop in _fields(data, inside, end):
            found = _weight(data, value, stop) if inner == _INITIALIZER else None
            if found is None:
                graph += data[at:stop]
            else:
                weights[found[0]] = found[1]
        rest += _delimited(_GRAPH, len(graph)) + graph
    model = ModelProto()
    model.ParseFromString(bytes(rest))
    return model, weights


def _contents(path: Path) -> memoryview:
    """All bytes of a file. Read, not mapped: rewriting a file while its graph is in use must not change the graph."""
    with path.open("rb") as file:
        data = np.empty(os.fstat(file.fileno()).st_size, np.uint8)  # in large pages where the system has them: cheaper
        count = file.readinto(data.data)
        more = file.read()  # a pipe does not tell its size
    return memoryview(data.tobytes() + more) if more else data.data[:count].toreadonly()


def write(model: ModelProto, weights: Mapping[str, Array], file: IO[bytes]) -> None:
    """The model, and behind it the weights it does not hold itself, straight from their memory."""
    file.write(model.SerializeToString())
    for name, array in weights.items():
        data = np.ascontiguousarray(array)
        tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
        head = tensor.SerializeToString() + _delimited(_RAW_DATA, data.nbytes)
        inner = _delimited(_INITIALIZER, len(head) + data.nbytes) + head
        file.write(_delimited(_GRAPH, len(inner) + data.nbytes) + inner)
        file.write(data.data)


def is_large(array: Array) -> bool:
    """Whether a constant is written past the protobuf library: large, and in memory as it is in the file."""
    return array.nbytes >= LARGE_BYTES and array.dtype.kind in "fiu" and array.dtype.isnative


def _weight(data: memoryview, start: int, end: int) -> tuple[str, Array] | None:
    """Name and elements of an initializer that is large and holds its elements as raw_data."""
    if end - start < LARGE_BYTES:
        return None
    head, raw = bytearray(), None
    for number, at, value, stop in _fields(data, start, end):
        if number == _RAW_DATA:
            raw = data[value:stop]
        elif stop - at > LARGE_BYTES:
            return None  # its elements are in a typed field
        else:
            head += data[at:stop]
    tensor = TensorProto()
    tensor.ParseFromString(bytes(head))
    if (
        raw is None
        or tensor.data_location == TensorProto.EXTERNAL
        or not tensor.name
        or min(tensor.dims, default=0) < 0
    ):
        return None
    try:
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    except KeyError:
        return None  # no such type: whoever reads the whole tensor says so
    if dtype.kind not in "fiu" or len(raw) != dtype.itemsize * prod(tensor.dims):
        return None
    return tensor.name, read_only(np.frombuffer(raw, dtype).reshape(tuple(tensor.dims)))


def _fields(data: memoryview, at: int, end: int) -> Iterator[Field]:
    """The fields of a message; protobuf's own error for bytes that are none."""
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        kind = tag & 7
        if kind == _LENGTH_DELIMITED:
            length, at = _varint(data, at, end)
            value, at = at, at + length
        elif kind in _FIXED:
            value, at = at, at + _FIXED[kind]
        elif kind == 0:
            value = at
            _, at = _varint(data, at, end)
        else:
            raise DecodeError(f"wire type {kind} at byte {start}")
        if at > end:
            raise DecodeError(f"the field at byte {start} goes beyond the end")
        yield tag >> 3, start, value, at


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """A number in groups of seven bits, lowest first."""
    number = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
    raise DecodeError(f"a number at byte {at} has no end")


def _delimited(number: int, length: int) -> bytes:
    """Tag and length of a length-delimited field."""
    groups = []
    for value in (number << 3 | _LENGTH_DELIMITED, length):
        while value >= 0x80:
            groups.append(value & 0x7F | 0x80)
            value >>= 7
        groups.append(value)
    return bytes(groups)
