"""The hardware panel: one machine that every view of a notebook observes, and the controls that change it."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any, NamedTuple

import ipywidgets
import traitlets

from labkit.errors import LabError
from labkit.hardware import Hardware
from labkit.units import KIB

CUSTOM = "custom"


class _Slider(NamedTuple):
    """A logarithmic slider over a field of Hardware: from base**low to base**high, counted in ``unit``."""

    label: str
    field: str
    unit: float
    base: float
    low: float
    high: float
    step: float
    readout: str


_SLIDERS = {
    "sram_kib": _Slider("SRAM, KiB", "sram_bytes", KIB, 2, 3, 17, 0.25, ",.0f"),
    "bandwidth_gb_s": _Slider("DRAM, GB/s", "dram_bytes_per_s", 1e9, 10, -1, 4, 0.05, ",.2f"),
    "peak_gflop_s": _Slider("peak, GFLOP/s", "peak_flops_per_s", 1e9, 10, 0, 6, 0.05, ",.0f"),
}


class HardwareState(traitlets.HasTraits):
    """The machine of a notebook. Views observe ``hardware``; it changes as a whole, never in part.

    >>> state = HardwareState()
    >>> state.observe(lambda change: print(change.new.name), "hardware")
    >>> state.hardware = Hardware.preset("dsp")
    dsp
    """

    hardware = traitlets.Instance(Hardware)

    @traitlets.default("hardware")
    def _edge_npu(self) -> Hardware:
        return Hardware.preset("edge-npu")


class HardwarePanel(ipywidgets.VBox):  # type: ignore[misc]
    """A choice of presets and a slider for SRAM, bandwidth and peak, all on logarithmic scales.

    A preset moves every slider; a slider makes a new Hardware with one field replaced and the rest kept exactly.
    ``set(preset="dsp")`` or ``set(sram_kib=64)`` moves a control from code, as a hand would.
    """

    def __init__(self, state: HardwareState) -> None:
        self.state = state
        self._following = False
        wide = ipywidgets.Layout(width="330px")
        style = {"description_width": "105px"}
        self.controls: dict[str, Any] = {
            "preset": ipywidgets.Dropdown(
                options=[*Hardware.presets(), CUSTOM], description="machine", layout=wide, style=style
            )
        }
        for name, slider in _SLIDERS.items():
            self.controls[name] = ipywidgets.FloatLogSlider(
                base=slider.base, min=slider.low, max=slider.high, step=slider.step, description=slider.label,
                readout_format=slider.readout, layout=wide, style=style,
            )  # fmt: skip
        self._status = ipywidgets.HTML()
        row = ipywidgets.Layout(flex_flow="row wrap")
        super().__init__([ipywidgets.HBox(list(self.controls.values()), layout=row), self._status])
        self.controls["preset"].observe(self._choose, "value")
        for name in _SLIDERS:
            self.controls[name].observe(self._slide, "value")
        state.observe(self._follow, "hardware")
        self._follow()

    @property
    def text(self) -> str:
        """The machine in one line."""
        return self.state.hardware.summary()

    def set(self, **values: Any) -> HardwarePanel:
        """Move controls by name; LabError for a name that is none, or a value out of its range."""
        for name, value in values.items():
            if name not in self.controls:
                raise LabError(f"no control {name!r}; there are: {', '.join(self.controls)}")
            try:
                self.controls[name].value = value
            except traitlets.TraitError as error:
                raise LabError(f"{name} cannot be {value!r}: {error}") from None
        return self

    def _choose(self, change: Any) -> None:
        if not self._following and change.new != CUSTOM:
            self.state.hardware = Hardware.preset(change.new)

    def _slide(self, change: Any) -> None:
        if self._following:
            return
        slider = next(_SLIDERS[name] for name in _SLIDERS if self.controls[name] is change.owner)
        value = change.new * slider.unit
        changed = {slider.field: round(value) if slider.field == "sram_bytes" else value}
        self.state.hardware = replace(self.state.hardware, name=CUSTOM, **changed)

    def _follow(self, _change: object = None) -> None:
        """Move all controls to the machine, without taking their moves for a hand's."""
        hardware = self.state.hardware
        self._following = True
        try:
            known = hardware.name in Hardware.presets() and hardware == Hardware.preset(hardware.name)
            self.controls["preset"].value = hardware.name if known else CUSTOM
            for name, slider in _SLIDERS.items():
                value = getattr(hardware, slider.field) / slider.unit
                self.controls[name].value = min(max(value, slider.base**slider.low), slider.base**slider.high)
        finally:
            self._following = False
        self._status.value = f'<div role="status">{html.escape(self.text)}</div>'

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        return {**bundle, "text/plain": self.text}


def show(state: HardwareState | None = None) -> HardwarePanel:
    """A panel on a state, or on a new one: ``panel.state`` is what the views of the notebook observe."""
    return HardwarePanel(HardwareState() if state is None else state)
