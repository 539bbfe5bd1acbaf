"""StridedTensor: a Layout over one flat buffer. Views change the layout, copies change the memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike, NDArray

from labkit import strides as arithmetic
from labkit.errors import LabError
from labkit.layout import Layout
from labkit.memory.ledger import Ledger


@dataclass(frozen=True, eq=False)
class StridedTensor:
    """Two objects, as in any framework: ``layout`` (shape, strides) and ``storage`` (a flat, gapless NumPy array).

    Raises LabError when the storage is not flat, or when the layout reaches an offset outside it.

    >>> x = StridedTensor.from_array(np.arange(96).reshape(2, 3, 4, 4))
    >>> view = x.permute("NHWC").slice("H", None, None, -1)
    >>> view.shares_storage_with(x), view.layout.strides, view.layout.order
    (True, (48, -4, 1, 16), 'NCHW')
    """

    layout: Layout
    storage: NDArray[Any]

    def __post_init__(self) -> None:
        storage = self.storage
        if not isinstance(storage, np.ndarray) or storage.ndim != 1 or not storage.flags.c_contiguous:
            raise LabError("the storage of a tensor is a flat NumPy array without gaps: one axis, no step")
        low, high = self.layout.bounds or (0, -1)
        if low < 0 or high >= storage.size:
            raise LabError(
                f"layout of shape {self.layout.shape}, strides {self.layout.strides}, offset {self.layout.offset} "
                f"touches offsets {low} to {high}: the storage has 0 to {storage.size - 1}"
            )

    @classmethod
    def from_array(cls, array: ArrayLike, order: str = "NCHW", axes: Iterable[str] | None = None) -> StridedTensor:
        """A tensor with a fresh storage that holds the values of ``array`` (in the logical shape) in ``order``."""
        values = np.asarray(array)
        tensor = cls._empty(Layout.dense(values.shape, order, axes), values.dtype)
        tensor._whole_view()[...] = values.reshape(tensor.layout.joined().shape)
        return tensor

    @classmethod
    def _empty(cls, layout: Layout, dtype: np.dtype[Any]) -> StridedTensor:
        return cls(layout, np.empty(layout.size, dtype=dtype))

    # ---- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``array``: with a split axis this has one length more than the logical shape."""
        return self.layout.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of one element."""
        return self.storage.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of storage that the elements occupy; an element that a stride of 0 shows often counts once."""
        return self.layout.distinct * self.storage.itemsize

    @property
    def array(self) -> NDArray[Any]:
        """A NumPy view of the elements in the axes of the layout: no copy, so a write goes to the storage.

        Where stride 0 shows one element at several indices the view is read-only, as NumPy's own broadcasts are.
        """
        shape, step = self.layout.shape, self.storage.itemsize
        if self.layout.size == 0:
            return _empty_view(self.storage, shape)
        moves = zip(shape, self.layout.strides, arithmetic.packed(shape), strict=True)
        strides = tuple(step * (stride if length > 1 else canonical) for length, stride, canonical in moves)
        shared = any(length > 1 and stride == 0 for length, stride in zip(shape, strides, strict=True))
        return as_strided(self.storage[self.layout.offset :], shape, strides, writeable=not shared)

    @property
    def logical(self) -> NDArray[Any]:
        """The elements in the logical shape, every split undone; a copy only where NumPy needs one."""
        return self._whole_view().reshape(self.layout.logical_shape)

    def _whole_view(self) -> NDArray[Any]:
        return replace(self, layout=self.layout.joined()).array

    def shares_storage_with(self, other: StridedTensor) -> bool:
        """Whether both look at the same memory, so that a write through one is seen through the other."""
        return self.storage is other.storage or bool(np.shares_memory(self.storage, other.storage))

    # ---- views: a new layout, the same storage

    def permute(self, axes: Iterable[str]) -> StridedTensor:
        """See Layout.permute."""
        return replace(self, layout=self.layout.permute(axes))

    def slice(
        self, axis: str, start: int | None = None, stop: int | None = None, step: int | None = None
    ) -> StridedTensor:
        """See Layout.slice."""
        return replace(self, layout=self.layout.slice(axis, start, stop, step))

    def broadcast(self, shape: Sequence[int]) -> StridedTensor:
        """See Layout.broadcast."""
        return replace(self, layout=self.layout.broadcast(shape))

    def split(self, axis: str, block: int) -> StridedTensor:
        """See Layout.split."""
        return replace(self, layout=self.layout.split(axis, block))

    def reshape(self, shape: Sequence[int], axes: Iterable[str]) -> StridedTensor:
        """See Layout.reshape: a view, or LabError; never a silent copy."""
        return replace(self, layout=self.layout.reshape(shape, axes))

    # ---- copies, counted

    def to(self, order: str, ledger: Ledger | None = None, name: str = "x") -> StridedTensor:
        """The same values in another memory order, such as "NHWC" or "NCHW8c".

        A tensor that already lies in that order comes back as a view with canonical strides and costs nothing.
        Otherwise every stored element is read once and every element of the copy written once; both go into
        ``ledger`` under the value ``name`` and the node "to ORDER".
        """
        axes = self.layout.logical_axes
        target = Layout.dense(self.layout.logical_shape, order, axes)
        if self._lies_like(target):
            return replace(self, layout=replace(target, offset=self.layout.offset))
        copy = self._empty(target, self.dtype)
        copy._whole_view()[...] = self.logical.reshape(target.joined().shape)
        if ledger is not None:
            ledger.record(f"to {order}", name, "read", self.nbytes)
            ledger.record(f"to {order}", name, "write", copy.nbytes)
        return copy

    def contiguous(self, ledger: Ledger | None = None, name: str = "x") -> StridedTensor:
        """Neighbours in logical order, splits undone, strides canonical; a view where they already lie so."""
        return self.to("".join(self.layout.logical_axes), ledger, name)

    def _lies_like(self, target: Layout) -> bool:
        """Whether the elements are already where ``target`` wants them, counted from the offset."""
        own, wanted = self.layout.joined(), target.joined()
        if own.size == 0:
            return True
        strides = arithmetic.reshaped(own.shape, own.strides, wanted.shape)
        if strides is None:
            return False
        return all(n == 1 or has == wants for n, has, wants in zip(wanted.shape, strides, wanted.strides, strict=True))


def _empty_view(storage: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    try:
        return storage[:0].reshape(shape)
    except ValueError:
        raise LabError(f"an empty array of shape {shape} does not fit 64 bit in NumPy") from None
