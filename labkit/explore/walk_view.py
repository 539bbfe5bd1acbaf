"""The live walk over tiles: controls, three matrices and an SRAM (walk.js), the program. No arithmetic here."""

from __future__ import annotations

from typing import Any

from labkit.explore import walk
from labkit.explore.canvas import CanvasView
from labkit.explore.nest_controls import nest_controls, read_nest
from labkit.explore.panel import HardwareState
from labkit.explore.view import slider
from labkit.explore.walk import WalkState
from labkit.units import format_bytes


class WalkView(CanvasView[WalkState]):
    """The walk on the machine of ``state``. Of another nest the step is the last one that exists, at most."""

    def __init__(self, state: HardwareState) -> None:
        self._panel = state
        controls = {**nest_controls(), "step": slider("step", 0, 0, 511, "500px")}
        super().__init__("walk.js", self._data, spec, controls, follows=[(state, "hardware"), (state, "dtype")])

    def _data(self) -> WalkState:
        nest: dict[str, Any] = read_nest(self.controls)
        machine: dict[str, Any] = {"hardware": self._panel.hardware, "dtype": self._panel.dtype}
        last = walk.data(**nest, **machine).steps - 1
        step = min(self.controls["step"].value, last)
        self.controls["step"].max = last
        return walk.data(**nest, **machine, step=step)


def spec(state: WalkState) -> dict[str, Any]:
    """What walk.js needs to draw a state."""
    nest = state.nest
    held = [(x.name, nest.slots(x), nest.tile_bytes(x)) for x in nest.problem.operands]
    return {
        "loops": {loop: [extent, nest.tiles[loop]] for loop, extent in nest.problem.loops.items()},
        "at": {loop: [at.start, at.stop] for loop, at in state.at.items()},
        "came": [bool(visit.is_new) for visit in state.visits],
        "leaves": state.visits[-1].write_bytes > 0,
        "held": [[name, slots, nbytes, format_bytes(nbytes)] for name, slots, nbytes in held],
        "room": [state.hardware.sram_bytes, f"SRAM {format_bytes(state.hardware.sram_bytes)}", state.fits],
        "facts": [list(fact) for fact in state.facts],
        "sentence": state.sentence,
        "code": str(nest),
    }
