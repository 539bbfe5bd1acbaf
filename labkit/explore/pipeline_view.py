"""The live pipeline: switches, a table and a roofline plot. No arithmetic here."""

from __future__ import annotations

import html
from typing import Any

import ipywidgets

from labkit.explore import pipeline, roofline
from labkit.explore.panel import HardwareState
from labkit.explore.pipeline import PipelineState
from labkit.explore.turns import in_turn
from labkit.explore.view import View, explain, table
from labkit.graph import Graph
from labkit.passes.pipeline import PASSES


class PipelineView(View):
    """A switch for each pass over one graph. ``set(fold=False)`` moves a switch from code, as a hand would."""

    def __init__(self, graph: Graph, machine: HardwareState) -> None:
        self._graph, self._machine = graph, machine
        self._seen: dict[tuple[str, ...], PipelineState] = {}  # a switch moved back is instant
        narrow = ipywidgets.Layout(width="auto", margin="0 18px 0 0")
        switches = {
            name: ipywidgets.Checkbox(value=True, description=name, indent=False, layout=narrow) for name in PASSES
        }
        self._table, self._status = ipywidgets.HTML(), ipywidgets.HTML()
        self.state = self._data(tuple(switches))
        self.plot = roofline.show(self.state.points, machine)
        super().__init__(switches, [self._status, self._table, self.plot], [(machine, "hardware")])
        self.refresh()

    def set(self, **switches: Any) -> PipelineView:
        """Move switches by name, with an underscore for the hyphen of "no-ops"; LabError for a name that is none."""
        return super().set(**{name.replace("_", "-"): value for name, value in switches.items()})

    def _data(self, chosen: tuple[str, ...]) -> PipelineState:
        hardware = self._machine.hardware
        if chosen not in self._seen:
            self._seen[chosen] = pipeline.data(self._graph, chosen, hardware)
        return PipelineState(chosen, self._seen[chosen].report.on(hardware))

    @in_turn
    def refresh(self, _change: object = None) -> None:
        """Show the passes that are switched on."""
        try:
            self.state = self._data(tuple(name for name, control in self.controls.items() if control.value))
            self.plot.points = self.state.points
            self._table.value = table(self.state.rows)
            said, self.text = self.state.sentence, f"{self.state.sentence}\n\n{self.state.report.table()}"
        except Exception as error:  # an exception in a callback is invisible in a notebook
            said = self.text = explain(error)
        self._status.value = f'<div role="status" style="line-height:1.5">{html.escape(said)}</div>'

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        picture = self.plot._repr_mimebundle_(**kwargs).get("image/png")
        return {**bundle, **({"image/png": picture} if picture else {})}
