"""A picture in the browser that follows quickly: of each new one only the tiles that differ are sent.

A PNG file costs time twice, where it is made and where it is read. While a slider moves, most of a picture stays, so
squares of bare pixels go out instead; when it has come to rest the browser asks for the whole, which is what a saved
notebook keeps and what a second view of the same picture starts from.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, TypeAlias

import anywidget
import numpy as np
import numpy.typing as npt
import traitlets
from PIL import Image

from labkit.explore.turns import in_turn

Pixels: TypeAlias = npt.NDArray[np.uint8]  # height × width × 4: red, green, blue, opacity
Box: TypeAlias = tuple[int, int, int, int]  # left, top, width, height, in pixels

TILE = 32  # pixels along a side: few enough tiles to draw them one by one, small enough to leave out what stays
_MOST = 1 / 2  # of a picture: beyond that its PNG file is less to send


class Picture(anywidget.AnyWidget):
    """Shows frames of pixels. ``png`` is the last whole picture, the ``base``-th; tiles always differ from that one.

    Height and width of a frame may change at any time; ``width`` is what the page gives it, in CSS pixels, where there
    is room.
    """

    _esm = Path(__file__).with_name("picture.js")
    png = traitlets.Bytes(b"").tag(sync=True)
    base = traitlets.Int(0).tag(sync=True)
    width = traitlets.Int(0).tag(sync=True)

    def __init__(self, width: int) -> None:
        super().__init__(width=width)
        self._whole: Pixels | None = None  # what png shows
        self._shown: Pixels | None = None
        self._boxes: set[Box] = set()  # where the browser may show something else than png
        self.on_msg(self._asked)

    def show(self, frame: Pixels) -> None:
        """Show a frame, by its tiles where that is less."""
        if self._whole is None or self._whole.shape != frame.shape:
            self.show_whole(frame)
            return
        different = set(changed(self._whole, frame))
        boxes = sorted(self._boxes | different)
        if sum(width * height for _, _, width, height in boxes) > _MOST * frame.shape[0] * frame.shape[1]:
            self.show_whole(frame)
            return
        self._shown, self._boxes = frame, different
        tiles = [frame[top : top + height, left : left + width].tobytes() for left, top, width, height in boxes]
        self.send({"base": self.base, "boxes": boxes}, [b"".join(tiles)])

    def show_whole(self, frame: Pixels) -> None:
        """Show a frame, all of it."""
        file = io.BytesIO()
        # The default level of compression takes twice as long.
        Image.fromarray(frame[..., :3]).save(file, "png", compress_level=1)
        self._whole = self._shown = frame
        self._boxes = set()
        with self.hold_sync():
            self.png, self.base = file.getvalue(), self.base + 1

    def settle(self) -> None:
        """Let ``png`` be what is shown."""
        if self._shown is not None and self._shown is not self._whole:
            self.show_whole(self._shown)

    def let_go(self) -> None:
        """Keep ``png`` and no pixels: nobody looks."""
        self.settle()
        self._whole = self._shown = None
        self._boxes = set()

    @in_turn
    def _asked(self, _widget: object, _content: Any, _buffers: object) -> None:
        self.settle()


def changed(before: Pixels, after: Pixels) -> list[Box]:
    """The tiles in which two frames of one size differ.

    >>> before = np.zeros((40, 70, 4), np.uint8)
    >>> after = before.copy()
    >>> after[39, 0] = after[0, 69] = 255
    >>> changed(before, after)
    [(64, 0, 6, 32), (0, 32, 32, 8)]
    """
    height, width, _ = before.shape
    rows, columns = np.arange(0, height, TILE), np.arange(0, width, TILE)
    differ = before.view(np.uint32)[..., 0] != after.view(np.uint32)[..., 0]
    tiles = np.logical_or.reduceat(np.logical_or.reduceat(differ, rows, axis=0), columns, axis=1)
    corners = ((int(columns[j]), int(rows[i])) for i, j in np.argwhere(tiles))
    return [(left, top, min(TILE, width - left), min(TILE, height - top)) for left, top in corners]
