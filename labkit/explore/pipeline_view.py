"""The live pipeline: switches, a table and a roofline plot. No arithmetic here."""

from __future__ import annotations

import html
from typing import Any

import ipywidgets

from labkit.errors import LabError
from labkit.explore import pipeline, roofline
from labkit.explore.panel import HardwareState
from labkit.explore.pipeline import PipelineState
from labkit.explore.turns import in_turn
from labkit.graph import Graph
from labkit.passes.pipeline import PASSES

_CELL = "padding:1px 12px;line-height:1.4;white-space:nowrap"


class PipelineView(ipywidgets.VBox):  # type: ignore[misc]
    """A switch for each pass over one graph. ``set(fold=False)`` moves a switch from code, as a hand would."""

    def __init__(self, graph: Graph, machine: HardwareState) -> None:
        self._graph, self._machine = graph, machine
        self._seen: dict[tuple[str, ...], PipelineState] = {}  # a switch moved back is instant
        narrow = ipywidgets.Layout(width="auto", margin="0 18px 0 0")
        self.controls = {
            name: ipywidgets.Checkbox(value=True, description=name, indent=False, layout=narrow) for name in PASSES
        }
        self._table, self._status = ipywidgets.HTML(), ipywidgets.HTML()
        self.state = self._data()
        self.plot = roofline.show(self.state.points, machine)
        switches = ipywidgets.HBox(list(self.controls.values()), layout=ipywidgets.Layout(flex_flow="row wrap"))
        super().__init__([switches, self._status, self._table, self.plot])
        self.add_class("labkit-pipeline")
        for control in self.controls.values():
            control.observe(self._refresh, "value")
        machine.observe(self._refresh, "hardware")
        self._refresh()

    @property
    def text(self) -> str:
        """What the view shows, in words and as a table."""
        return f"{self.state.sentence}\n\n{self.state.report.table()}"

    @in_turn
    def set(self, **switches: bool) -> PipelineView:
        """Move switches by name, with an underscore for the hyphen of "no-ops"; LabError for a name that is none."""
        for name, value in switches.items():
            spelt = name.replace("_", "-")
            if spelt not in self.controls:
                raise LabError(f"no pass {spelt!r}; there are: {', '.join(self.controls)}")
            self.controls[spelt].value = value
        return self

    def _data(self) -> PipelineState:
        chosen = tuple(name for name, control in self.controls.items() if control.value)
        hardware = self._machine.hardware
        if chosen not in self._seen:
            self._seen[chosen] = pipeline.data(self._graph, chosen, hardware)
        return PipelineState(chosen, self._seen[chosen].report.on(hardware))

    @in_turn
    def _refresh(self, _change: object = None) -> None:
        try:
            self.state = self._data()
            self.plot.points = self.state.points
            self._table.value = _table(self.state.rows)
            said = self.state.sentence
        except Exception as error:  # an exception in a callback is invisible in a notebook
            reason = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
            said = f"Cannot show this: {reason}"
        self._status.value = f'<div role="status" style="line-height:1.5">{html.escape(said)}</div>'

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        picture = self.plot._repr_mimebundle_(**kwargs).get("image/png")
        return {**bundle, "text/plain": self.text, **({"image/png": picture} if picture else {})}


def _table(rows: tuple[tuple[str, ...], ...]) -> str:
    head, *body = ("<tr>" + "".join(_cell(*numbered) for numbered in enumerate(row)) + "</tr>" for row in rows)
    return f'<table style="font-size:14px"><thead>{head}</thead><tbody>{"".join(body)}</tbody></table>'


def _cell(column: int, text: str) -> str:
    return f'<td style="{_CELL};text-align:{"right" if column else "left"}">{html.escape(text)}</td>'
