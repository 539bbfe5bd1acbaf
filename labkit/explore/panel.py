"""The hardware panel: one machine that every view of a notebook observes, and the controls that change it."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import ipywidgets
import traitlets

from labkit.errors import LabError
from labkit.explore.turns import in_turn
from labkit.hardware import Hardware
from labkit.units import KIB, format_bytes, format_count, format_rate

CUSTOM = "custom"


# The E24 series of preferred numbers (IEC 60063): steps of about 10 %, with two digits to read out.
_E24 = (10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91)


class _Slider(NamedTuple):
    """A logarithmic slider over one field of Hardware: its stops, and how a stop is written."""

    label: str
    field: str
    unit: float
    stops: tuple[float, ...]
    write: Callable[[Any], str]


def _decades(low: int, high: int) -> tuple[float, ...]:
    return tuple(digits * 10.0 ** (exponent - 1) for exponent in range(low, high) for digits in _E24)


_QUARTERS = tuple(2**power * quarter // 4 for power in range(13, 27) for quarter in (4, 5, 6, 7))
_SLIDERS = {
    "sram_kib": _Slider("SRAM", "sram_bytes", KIB, _QUARTERS, format_bytes),
    "bandwidth_gb_s": _Slider("DRAM", "dram_bytes_per_s", 1e9, _decades(8, 13), lambda rate: format_rate(rate, "B/s")),
    "peak_gflop_s": _Slider("peak FLOP/s", "peak_flops_per_s", 1e9, _decades(9, 15), format_count),
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
    ``set(preset="dsp")`` or ``set(sram_kib=64)`` does from code what a hand would. A slider has stops, not a
    continuous range (the browser would round the machine to its own grid); a value between two becomes a stop.
    """

    def __init__(self, state: HardwareState) -> None:
        self.state = state
        self._following = False
        layout, style = ipywidgets.Layout(width="268px"), {"description_width": "initial"}
        self.controls: dict[str, Any] = {
            "preset": ipywidgets.Dropdown(
                options=[*Hardware.presets(), CUSTOM], description="machine", layout=layout, style=style
            )
        }
        for name, slider in _SLIDERS.items():
            self.controls[name] = ipywidgets.SelectionSlider(
                options=_options(slider), description=slider.label, layout=layout, style=style
            )
        self._status = ipywidgets.HTML()
        row = ipywidgets.HBox(
            list(self.controls.values()), layout=ipywidgets.Layout(flex_flow="row wrap", grid_gap="0 16px")
        )
        super().__init__([row, self._status])
        self.controls["preset"].observe(self._choose, "value")
        for name in _SLIDERS:
            self.controls[name].observe(self._slide, "value")
        state.observe(self._follow, "hardware")
        self._follow()

    @property
    def text(self) -> str:
        """The machine in one line."""
        return self.state.hardware.summary()

    @in_turn
    def set(self, **values: Any) -> HardwarePanel:
        """Move controls by name; LabError for a name that is none, or a value that makes no machine."""
        for name, value in values.items():
            if name == "preset":
                self.state.hardware = Hardware.preset(value)
            elif name not in _SLIDERS:
                raise LabError(f"no control {name!r}; there are: {', '.join(self.controls)}")
            elif not isinstance(value, int | float):
                raise LabError(f"{name} is {value!r}, it must be a number")
            else:
                self._replace(_SLIDERS[name], value * _SLIDERS[name].unit)
        return self

    @in_turn
    def _choose(self, change: Any) -> None:
        if not self._following and change.new != CUSTOM:
            self.state.hardware = Hardware.preset(change.new)

    @in_turn
    def _slide(self, change: Any) -> None:
        if not self._following:
            slider = next(_SLIDERS[name] for name in _SLIDERS if self.controls[name] is change.owner)
            self._replace(slider, change.new)

    def _replace(self, slider: _Slider, value: float) -> None:
        changed: dict[str, Any] = {slider.field: round(value) if slider.field == "sram_bytes" else float(value)}
        self.state.hardware = replace(self.state.hardware, name=CUSTOM, **changed)

    @in_turn
    def _follow(self, _change: object = None) -> None:
        """Move all controls to the machine, without taking their moves for a hand's."""
        hardware = self.state.hardware
        self._following = True
        try:
            known = hardware.name in Hardware.presets() and hardware == Hardware.preset(hardware.name)
            self.controls["preset"].value = hardware.name if known else CUSTOM
            for name, slider in _SLIDERS.items():
                control, value = self.controls[name], getattr(hardware, slider.field)
                if value not in {stop for _, stop in control.options}:
                    control.options = _options(slider, value)
                control.value = value
        finally:
            self._following = False
        self._status.value = f'<div role="status">{html.escape(self.text)}</div>'

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        return {**bundle, "text/plain": self.text}


def _options(slider: _Slider, *more: float) -> list[tuple[str, float]]:
    """The stops, with those of the presets and ``more``, each with its size and unit in words."""
    known = (getattr(Hardware.preset(name), slider.field) for name in Hardware.presets())
    return [(slider.write(stop), stop) for stop in sorted({*slider.stops, *known, *more})]


def show(state: HardwareState | None = None) -> HardwarePanel:
    """A panel on a state, or on a new one: ``panel.state`` is what the views of the notebook observe."""
    return HardwarePanel(HardwareState() if state is None else state)
