"""The operators that only move data, in NumPy."""

from __future__ import annotations

from math import prod

import numpy as np

from labkit.ops.call import full_pads
from labkit.ops.compute import Args, Results


def identity(args: Args) -> Results:
    return (args[0],)


def reshape(args: Args) -> Results:
    x, target = args[0], [int(dim) for dim in args[1].ravel()]
    if not args.attrs.get("allowzero", 0):
        target = [x.shape[axis] if dim == 0 else dim for axis, dim in enumerate(target)]
    if -1 in target:  # NumPy refuses a free dim in an empty tensor
        known = prod(dim for dim in target if dim != -1)
        target[target.index(-1)] = x.size // known if known else 0
    return (x.reshape(target),)


def flatten(args: Args) -> Results:
    axis = args.attrs.get("axis", 1)
    axis = axis + args[0].ndim if axis < 0 else axis
    return (args[0].reshape(prod(args[0].shape[:axis]), prod(args[0].shape[axis:])),)


def transpose(args: Args) -> Results:
    """A copy: of a view, NumPy would add up the same numbers in another order than of an array without gaps."""
    return (args[0].transpose(args.attrs.get("perm") or None).copy(),)


def concat(args: Args) -> Results:
    return (np.concatenate([array for array in args.arrays if array is not None], axis=args.attrs["axis"]),)


def squeeze(args: Args) -> Results:
    return (np.squeeze(args[0], axis=args.ints("axes", 1, since=13)),)


def unsqueeze(args: Args) -> Results:
    axes = args.ints("axes", 1, since=13)
    return (np.expand_dims(args[0], axes or ()),)


def pad(args: Args) -> Results:
    """Pad; a negative pad crops. The mode wrap is rare and left to the reference."""
    pads, mode = args.ints("pads", 1, since=11), args.attrs.get("mode", "constant")
    if pads is None or mode not in ("constant", "reflect", "edge"):
        return None
    fill = args.attrs.get("value", 0.0) if args.opset < 11 else args.get(2)
    rank, axes = args[0].ndim, args.get(3)
    pads = full_pads(pads, rank, None if axes is None else axes.ravel().tolist())
    pairs = list(zip(pads[:rank], pads[rank:], strict=True))
    crop = tuple(slice(max(-a, 0), size - max(-b, 0)) for (a, b), size in zip(pairs, args[0].shape, strict=True))
    grow = [(max(a, 0), max(b, 0)) for a, b in pairs]
    if mode != "constant":
        return (np.pad(args[0][crop], grow, mode=mode),)
    value = 0 if fill is None else np.ravel(fill)[0]
    return (np.pad(args[0][crop], grow, constant_values=value),)


def constant_of_shape(args: Args) -> Results:
    value = args.attrs.get("value")
    fill = np.zeros(1, dtype=np.float32) if value is None else value
    return (np.full([int(dim) for dim in args[0]], fill.ravel()[0], dtype=fill.dtype),)
