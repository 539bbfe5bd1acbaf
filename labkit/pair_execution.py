"""A depth-first pair really run on a Scratchpad: each tile of the output with all that it needs of the middle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from labkit.access import tile_ranges
from labkit.errors import LabError
from labkit.frames import dims
from labkit.graph import Array, Node
from labkit.interpreter import evaluate
from labkit.memory.scratchpad import Scratchpad
from labkit.pair_tiles import Line
from labkit.pairs import Halves
from labkit.scheduling import ScheduledNode

Opsets = Mapping[str, int]
Places = tuple[range, range]  # rows and columns
Pads = tuple[int, int, int, int]  # top, left, bottom, right, as ONNX has them


def run_pair(scheduled: ScheduledNode, values: Mapping[str, Any], pad: Scratchpad, opsets: Opsets) -> dict[str, Array]:
    """Run it by its plan: the arrays that it makes, by name.

    Raises SramOverflow when ``pad`` is smaller than the plan's working set.
    """
    halves, tile = scheduled.kernel.halves, scheduled.plan.pair_tile
    if halves is None or tile is None:
        raise LabError(f"{scheduled.node.label}: not a depth-first pair")
    made = {value.name: np.empty(dims(value), value.dtype) for value in halves.outputs}
    run = _Run(halves, scheduled.names, values, made, pad, opsets)
    cut = [tile_ranges(line.out, size) for line, size in zip(halves.pair.second, tile, strict=True)]
    with pad.kernel(scheduled.name):
        for value in halves.still:
            run.held[value.name] = pad.load(scheduled.names[value.name], values[value.name])
        for image, rows, columns in product(range(halves.pair.images), cut[0], cut[1]):
            run.tile(image, (rows, columns))
        for value in halves.still:
            pad.free(scheduled.names[value.name])
    return made


class _Run:
    """One run: ``held`` are the arrays on chip by the kernel's own names."""

    def __init__(
        self, halves: Halves, names: Mapping[str, str], values: Mapping[str, Any], made: Mapping[str, Array],
        pad: Scratchpad, opsets: Opsets,
    ) -> None:  # fmt: skip
        self._halves, self._names, self._values, self._made = halves, names, values, made
        self._pad, self._opsets = pad, opsets
        self.held: dict[str, Array] = {}

    def tile(self, image: int, places: Places) -> None:
        """Compute and store one tile of the output."""
        middle, second_pads = _needed(self._halves.pair.second, places)
        source, first_pads = _needed(self._halves.pair.first, middle)
        name = self._halves.image.name
        self._load(name, self._values[name][_block(image, source)])
        self._half(self._halves.first, first_pads, image, middle)
        self._free(name)
        self._half(self._halves.second, second_pads, image, places)
        self._free(self._halves.middle.name)

    def _half(self, nodes: tuple[Node, ...], pads: Pads, image: int, places: Places) -> None:
        """The operators of a half on one tile; an elementwise one writes over a tile that nothing reads again."""
        last = {value.name: node for node in nodes for value in node.uses}
        own = {value.name for node in nodes for value in node.results} | {value.name for value in self._halves.beside}
        for node in nodes:
            for value in (value for value in node.uses if value in self._halves.beside and value.name not in self.held):
                self._load(value.name, self._values[value.name][_block(image, places)])
            step = _placed(node, pads) if node is nodes[0] else node
            result = np.array(evaluate(step, self.held, self._opsets)[0])
            for name in {value.name for value in node.uses if value.name in own and last[value.name] is node}:
                self._free(name)
            self._hold(node.output.name, result)
            if node.output.name in self._made:
                tile = self._made[node.output.name][_block(image, places)]
                self._pad.store(node.output.name, tile, tensor=self._names[node.output.name])
        for name in own - last.keys() - {self._halves.middle.name}:
            self._free(name)

    def _load(self, name: str, tile: Array) -> None:
        if tile.size:
            self.held[name] = self._pad.load(f"{name} tile", tile, tensor=self._names[name])
        else:
            self.held[name] = tile

    def _hold(self, name: str, result: Array) -> None:
        self.held[name] = self._pad.alloc(name, result.shape, result.dtype)
        self.held[name][...] = result

    def _free(self, name: str) -> None:
        if name in self.held and self.held.pop(name).size:
            self._pad.free(name if name in self._pad.resident else f"{name} tile")


def _needed(lines: tuple[Line, Line], places: Places) -> tuple[Places, Pads]:
    """The input positions under the windows at these places, and the padding around them."""
    (rows, top, bottom), (columns, left, right) = (line.needed(at) for line, at in zip(lines, places, strict=True))
    return (rows, columns), (top, left, bottom, right)


def _block(image: int, places: Places) -> tuple[slice, ...]:
    return (slice(image, image + 1), slice(None), *(slice(at.start, at.stop) for at in places))


def _placed(node: Node, pads: Pads) -> Node:
    """The node for a part of its input, with the padding that this part has."""
    attrs = {name: value for name, value in node.attrs.items() if name != "auto_pad"}
    return replace(node, attrs={**attrs, "pads": pads})
