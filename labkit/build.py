"""Nodes built with their output types inferred, so that every value of a graph knows its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from labkit.errors import GraphError
from labkit.graph import Array, Dim, Node, TensorType, Value
from labkit.ops import row
from labkit.ops.call import Call


def infer(node: Node, constant: Callable[[Value | None], Array | None], opset: int) -> tuple[TensorType, ...] | None:
    """Types of a node's outputs by the op table, or None when the table has no row.

    ``constant`` gives the array of a constant input. Raises GraphError that names the node when the inputs do not fit.
    """
    op = row(node)
    if op is None:
        return None
    types = tuple([value.type if value else None for value in node.inputs])
    if not all(types) and any(value and value.type is None for value in node.inputs):
        return None
    key = node.results[0].name if node.results else ""
    try:
        found = op.infer(Call(node.attrs, types, node.inputs, constant, opset, key))
        return tuple([_bounded(kind, key, index) for index, kind in enumerate(found[: len(node.outputs)])])
    except GraphError as error:
        raise GraphError(f"{node.label}: {error}") from None
    except (TypeError, ValueError, IndexError, KeyError, OverflowError) as error:  # attributes of the wrong shape
        raise GraphError(f"{node.label}: inputs or attributes do not fit the operator ({error})") from None


_LARGEST_DIM = 2**63 - 1  # what ONNX has room for
_LONGEST_DIM = 200  # characters: an expression may double in length from node to node, as "n+n" does


def _bounded(kind: TensorType, key: str, index: int) -> TensorType:
    """The type, held to sizes that exist. A dim whose expression grew too long is unknown from there on."""
    dims: list[Dim] = list(kind.shape or ())
    changed = False
    for axis, dim in enumerate(dims):
        if isinstance(dim, int):
            if not 0 <= dim <= _LARGEST_DIM:
                raise GraphError(f"axis {axis} of the result would have {dim} elements; 0 to 2⁶³ − 1 would do")
        elif len(dim) > _LONGEST_DIM:
            dims[axis], changed = f"?{key}/{index}.{axis}" if index else f"?{key}.{axis}", True
    return TensorType(tuple(dims), kind.dtype) if changed else kind


def make_node(
    op: str,
    inputs: Sequence[Value | None],
    outputs: Iterable[str],
    attrs: Mapping[str, Any] | None = None,
    *,
    constants: Mapping[str, Array] | None = None,
    opset: int,
    name: str = "",
) -> Node:
    """A node of the op table with typed outputs.

    Raises GraphError when the table has no such operator or the inputs do not fit it.

    >>> x = Value("x", TensorType((1, 3, 8, 8), "float32"))
    >>> w = Value("w", TensorType((4, 3, 3, 3), "float32"))
    >>> print(make_node("Conv", [x, w], ["y"], {"strides": (2, 2)}, opset=17).output)
    y: float32 1×4×3×3
    """
    known = constants or {}
    names = tuple(outputs)
    draft = Node(op, tuple(inputs), tuple(Value(out) for out in names), dict(attrs or {}), name=name)
    types = infer(draft, lambda value: known.get(value.name) if value else None, opset)
    if types is None:
        raise GraphError(f"{draft.label}: the op table has no row {op!r}, or an input is no tensor")
    return Node(op, draft.inputs, tuple(map(Value, names, types)), draft.attrs, name=name)
