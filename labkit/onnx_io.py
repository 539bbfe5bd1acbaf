"""ONNX files in and out. A file that loads is a valid Graph; a file that is saved is valid ONNX or is not written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

import onnx
from google.protobuf.message import DecodeError, EncodeError
from onnx import FunctionProto, ModelProto, ValueInfoProto, helper
from onnx.inliner import inline_selected_functions

from labkit import protos, wire
from labkit.bodies import DOMAIN
from labkit.collector import held_back
from labkit.errors import GraphError
from labkit.functions import check_unfolding
from labkit.graph import Array, Graph, TensorType, Value
from labkit.importer import Importer
from labkit.tensor_protos import ElsewhereError, value_info

_NO_MODEL = (
    "not an ONNX model, or one that is cut off or nested deeper than protobuf reads; expected a protobuf ModelProto"
)
OLDEST_OPSET = 7
OLDEST_IR = 3
EXPORT_IR = 8  # the oldest that every current runtime reads and that has all this library writes


def load(path: str | os.PathLike[str]) -> Graph:
    """Read an ONNX file.

    Raises GraphError when the file is missing, is no ONNX, is cut off, has a cycle, or is older than opset 7 or IR 3.
    """
    path = Path(path)
    try:
        model, weights = wire.read(path)
    except FileNotFoundError:
        raise GraphError(f"{path}: no such file") from None
    except (DecodeError, UnicodeDecodeError):
        raise GraphError(f"{path}: {_NO_MODEL}") from None
    except OSError as error:
        raise GraphError(f"{path}: cannot be read ({error})") from None
    try:
        with held_back():
            try:
                return from_model(model, weights)
            except ElsewhereError:
                _fetch(model, path.parent)
                return from_model(model, weights)
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None


def _fetch(model: ModelProto, folder: Path) -> None:
    """Read what lies in other files of this folder; ONNX refuses any that lie, or lead, outside it."""
    try:
        onnx.load_external_data_for_model(model, str(folder))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise GraphError(f"external data cannot be read: {' '.join(str(error).split())}") from None


def from_model(model: ModelProto, weights: Mapping[str, Array] | None = None) -> Graph:
    """The Graph of a model in memory, its local functions opened; ``weights`` are constants that the model leaves out.

    Raises GraphError as ``load`` does.
    """
    if not model.HasField("graph") or not model.opset_import:
        raise GraphError("not an ONNX model: it holds no graph, or says no opset")
    opsets = {entry.domain if entry.domain != "ai.onnx" else "": entry.version for entry in model.opset_import}
    newest = onnx.defs.onnx_opset_version()
    if model.ir_version < OLDEST_IR:
        raise GraphError(f"IR version {model.ir_version}; labkit reads IR {OLDEST_IR} and later")
    if not OLDEST_OPSET <= opsets.get("", newest) <= newest:
        raise GraphError(
            f"opset {opsets['']}; labkit reads opsets {OLDEST_OPSET} to {newest} (see onnx.version_converter)"
        )
    if model.functions:
        model = _without_functions(model)
    fused = {function.name: function for function in model.functions}
    return Importer(opsets, model.ir_version, fused).graph(model.graph, {}, weights or {})


def _without_functions(model: ModelProto) -> ModelProto:
    """The model with its local functions opened, except for the fused nodes that this library wrote."""
    check_unfolding(model)
    ours = [(function.domain, function.name) for function in model.functions if _is_fused_node(function)]
    try:
        return inline_selected_functions(model, ours, exclude=True)
    except Exception as error:  # the inliner raises whatever its C++ side raised
        raise GraphError(f"its local functions cannot be inlined ({error})") from None


def _is_fused_node(function: FunctionProto) -> bool:
    return function.domain == DOMAIN and not function.attribute and not function.attribute_proto


def to_model(graph: Graph, without: Collection[str] = ()) -> ModelProto:
    """A model in memory, in the opsets of the graph's file, IR 8 or newer; ``without`` are constants to leave out."""
    opsets = [helper.make_opsetid(domain, version) for domain, version in graph.opsets.items()]
    known = [entry for entry in opsets if entry.domain in ("", "ai.onnx.ml")]
    ir_version = max(EXPORT_IR, helper.find_min_ir_version_for(known, ignore_unknown=True) if known else EXPORT_IR)
    proto = protos.to_graph_proto(graph, without=without)
    functions = list(protos.functions(graph))
    if functions and DOMAIN not in graph.opsets:
        opsets.append(helper.make_opsetid(DOMAIN, 1))
    return helper.make_model(
        proto, functions=functions, opset_imports=opsets, ir_version=ir_version, producer_name="labkit"
    )


def save(
    graph: Graph, path: str | os.PathLike[str], metadata: Mapping[str, Mapping[str, str]] = MappingProxyType({})
) -> None:
    """Write a graph as ONNX: checked in full, then written beside its place and renamed, so never half a file.

    ``metadata`` are words about nodes, by the name of their first output; they become ONNX's ``metadata_props``.
    Raises GraphError when the model does not pass ONNX's checker or the folder cannot be written.
    """
    path = Path(path)
    weights = {name: array for name, array in graph.constants.items() if wire.is_large(array)}
    model = to_model(graph, without=weights)
    for node in model.graph.node if metadata else ():
        helper.set_metadata_props(node, dict(metadata.get(next(filter(None, node.output), ""), {})))
    _check(model, {name: TensorType.of(array) for name, array in weights.items() if name not in graph.input_names})
    temporary = path.parent / f".{path.name}.{os.getpid()}.tmp"
    try:
        with temporary.open("xb") as file:
            wire.write(model, weights, file)
        os.replace(temporary, path)
    except (OSError, ValueError, EncodeError) as error:  # protobuf writes no more than 2 GiB
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise GraphError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error})") from None


def _check(model: ModelProto, weights: Mapping[str, TensorType]) -> None:
    """ONNX's full check, with the weights as inputs: their types count, their elements need not be copied for it.

    Shapes that ONNX infers otherwise than labkit are not written: a file may declare an output of another shape than
    it computes, and ONNX counts the windows of a pool in ceil_mode before opset 22 with one that no runtime has, where
    it would start behind the input. Such outputs leave with the shape that ONNX infers.
    """
    checked = ModelProto()
    checked.CopyFrom(model)
    checked.graph.input.extend(value_info(Value(name, kind)) for name, kind in weights.items())
    try:
        try:
            onnx.checker.check_model(checked, full_check=True)
        except onnx.shape_inference.InferenceError:
            for value in (value for value in checked.graph.output if value.type.HasField("tensor_type")):
                value.type.tensor_type.ClearField("shape")
            _leave_out_disputed(checked, model)
            checked = onnx.shape_inference.infer_shapes(checked, strict_mode=True)
            for value, found in zip(model.graph.output, checked.graph.output, strict=True):
                if found.type.tensor_type.HasField("shape") or not value.type.HasField("tensor_type"):
                    value.CopyFrom(found)
                else:  # ONNX knows nothing to the contrary
                    found.CopyFrom(value)
            onnx.checker.check_model(checked, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise GraphError(f"the model would not be valid ONNX: {' '.join(str(error).split())}") from None


def _leave_out_disputed(*models: ModelProto) -> None:
    """Take out of the models, alike but for their ends, each shape within that ONNX infers otherwise."""
    bare = ModelProto()
    bare.CopyFrom(models[0])
    del bare.graph.value_info[:]
    inferred = {info.name: info for info in onnx.shape_inference.infer_shapes(bare).graph.value_info}
    kept = [info for info in models[0].graph.value_info if not _disputes(info, inferred.get(info.name, info))]
    for model in models:
        del model.graph.value_info[:]
        model.graph.value_info.extend(kept)


def _disputes(declared: ValueInfoProto, inferred: ValueInfoProto) -> bool:
    """Whether two shapes of a value contradict each other: a dim that is open contradicts none."""
    ours, theirs = (info.type.tensor_type.shape.dim for info in (declared, inferred))
    return len(ours) != len(theirs) or any(
        a.HasField("dim_value") and b.HasField("dim_value") and a.dim_value != b.dim_value
        for a, b in zip(ours, theirs, strict=True)
    )
