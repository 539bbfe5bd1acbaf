"""The controls of a tiled product, for every view that has one. No arithmetic here."""

from __future__ import annotations

from typing import Any, get_args

import ipywidgets

from labkit.explore.tiling import ORDERS
from labkit.explore.view import choice, field, numbers, slider
from labkit.loops import Buffers, CPolicy

_TILE = ("TM", "TN", "TK")
_LONGEST = 2**20


def nest_controls() -> dict[str, Any]:
    """Problem, tile, order, C policy and buffers; ``square`` makes TM the size along all three loops."""
    square = ipywidgets.Checkbox(
        value=True, description="square (TM for all)", indent=False, layout=ipywidgets.Layout(width="160px")
    )
    return {
        "shape": field("m,n,k", "1024,1024,1024", "200px"),
        "square": square,
        **{name: slider(name, 128, 1, 1024) for name in _TILE},
        "order": choice("order", ORDERS, "mnk", "130px"),
        "c_policy": choice(
            "C policy", [policy for policy in get_args(CPolicy) if policy != "complete"], "store", "170px"
        ),
        "buffers": choice("buffers", [(name.replace("_", " "), name) for name in get_args(Buffers)], "single", "170px"),
    }


def read_nest(controls: dict[str, Any]) -> dict[str, Any]:
    """What the controls say, in the names of ``tiling.data``; sliders end where a problem of usual size does.

    Raises LabError for a problem that is not three numbers.
    """
    shape = numbers(controls["shape"].value, "mnk")
    is_square = controls["square"].value
    for name, extent in zip(_TILE, shape, strict=True):
        if 1 <= extent <= _LONGEST:
            controls[name].max = extent
        controls[name].disabled = is_square and name != "TM"
    tile = tuple(controls["TM" if is_square else name].value for name in _TILE)
    return {"shape": shape, "tile": tile, **{name: controls[name].value for name in ("order", "c_policy", "buffers")}}
