"""The live comparison with production optimisers: a menu, a button, a table. No arithmetic here."""

from __future__ import annotations

import html
from collections.abc import Sequence

import ipywidgets

from labkit.explore import beside
from labkit.explore.turns import in_turn
from labkit.explore.view import View, choice, explain, table

ASK = "Press the button: each optimiser that is installed here runs in a process of its own, which takes some seconds."


class BesideView(View):
    """One table, made when the button is pressed or ``run`` is called."""

    def __init__(self, networks: Sequence[str], first: str) -> None:
        self._button = ipywidgets.Button(description="run the optimisers", layout=ipywidgets.Layout(width="200px"))
        self._button.on_click(self.run)
        self._table = ipywidgets.HTML()
        super().__init__({"network": choice("network", networks, first, "270px")}, [self._button, self._table])
        self.refresh()

    @in_turn
    def refresh(self, _change: object = None) -> None:
        """Another network has not been compared yet."""
        self._say(ASK)

    @in_turn
    def run(self, _button: object = None) -> BesideView:
        """Compare now."""
        self._say("The optimisers are running.")
        try:
            rows = beside.rows(beside.data(self.controls["network"].value))
            self.text = "\n".join("  ".join(filter(None, row)) for row in rows)
            self._table.value = f'<div role="status">{table(rows)}</div>'
        except Exception as error:  # an exception in a callback is invisible in a notebook
            self._say(explain(error))
        return self

    def _say(self, text: str) -> None:
        self.text = text
        self._table.value = f'<div role="status" style="line-height:1.5">{html.escape(text)}</div>'
