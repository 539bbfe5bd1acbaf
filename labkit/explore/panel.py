"""The hardware panel: one machine that every view of a notebook observes, and the controls that change it."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import ipywidgets
import traitlets

from labkit.errors import LabError
from labkit.explore import screen
from labkit.explore.turns import in_turn
from labkit.explore.view import View, choice, explain, field, wrapping
from labkit.hardware import Hardware
from labkit.problems import ACCUMULATORS
from labkit.units import KIB, format_bytes, format_count, format_rate, format_seconds

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
    "line_bytes": _Slider("line", "line_bytes", 1, tuple(2**power for power in range(4, 10)), format_bytes),
    "vector_bytes": _Slider("vector", "vector_bytes", 1, tuple(2**power for power in range(2, 10)), format_bytes),
    "launch_us": _Slider("launch", "launch_s", 1e-6, (0.0, *_decades(-7, -3)), format_seconds),
}
_WHOLE = ("sram_bytes", "line_bytes", "vector_bytes")


class HardwareState(traitlets.HasTraits):
    """The machine of a notebook, and the type of the elements on it. Views observe ``hardware`` and ``dtype``.

    The machine changes as a whole, never in part. ``dtype`` is no part of it: its peak is a figure for one format.

    >>> state = HardwareState()
    >>> state.observe(lambda change: print(change.new.name), "hardware")
    >>> state.hardware = Hardware.preset("dsp")
    dsp
    """

    hardware = traitlets.Instance(Hardware)
    dtype = traitlets.Enum(list(ACCUMULATORS), "float32")

    @traitlets.default("hardware")
    def _edge_npu(self) -> Hardware:
        return Hardware.preset("edge-npu")


class HardwarePanel(View):
    """A choice of presets, a slider for each number of a machine, the type of the elements, and a file.

    A preset moves every slider; a slider makes a new Hardware with one field replaced and the rest kept exactly.
    ``set(preset="dsp")`` or ``set(sram_kib=64)`` does from code what a hand would. A slider has stops, not a
    continuous range (the browser would round the machine to its own grid); a value between two becomes a stop.
    """

    def __init__(self, state: HardwareState) -> None:
        self.state = state
        self._following = False
        look: dict[str, Any] = {
            "layout": ipywidgets.Layout(width="268px"),
            "style": {"description_width": "initial"},
        }
        controls: dict[str, Any] = {"preset": choice("machine", [*Hardware.presets(), CUSTOM], CUSTOM, "268px")}
        for name, slider in _SLIDERS.items():
            controls[name] = ipywidgets.SelectionSlider(options=_options(slider), description=slider.label, **look)
        controls["dtype"] = choice("elements", ACCUMULATORS, state.dtype, "268px")
        controls["large"] = screen.switch()
        self._status = ipywidgets.HTML()
        self._file = field("file", "machine.toml")
        super().__init__(controls, [self._status, self._file_row()], [(state, "hardware"), (state, "dtype")])
        self._follow()

    @in_turn
    def set(self, **values: Any) -> HardwarePanel:
        """Move controls by name; LabError for a name that is none, or a value that makes no machine."""
        for name, value in values.items():
            if name == "preset":
                self.state.hardware = Hardware.preset(value)
            elif name not in _SLIDERS:
                super().set(**{name: value})
            elif not isinstance(value, int | float):
                raise LabError(f"{name} is {value!r}, it must be a number")
            else:
                self._replace(_SLIDERS[name], value * _SLIDERS[name].unit)
        return self

    @in_turn
    def save(self, path: str | Path) -> None:
        """Write the machine to a TOML file that ``load``, ``Hardware.load`` and the command line read."""
        if Path(path).suffix != ".toml":
            raise LabError(f"{str(path)!r:.60}: a machine goes to a file whose name ends in .toml")
        try:
            Path(path).write_text(self.state.hardware.to_toml(), encoding="utf-8")
        except OSError as error:
            raise LabError(f"{path}: cannot be written ({error.strerror})") from None

    @in_turn
    def load(self, path: str | Path) -> HardwarePanel:
        """Take the machine of a TOML file, the first one in it."""
        self.state.hardware = Hardware.load(path)
        return self

    @in_turn
    def refresh(self, change: Any = None) -> None:
        """Make the machine that a control asks for, or follow the one that was set from elsewhere."""
        if self._following or change is None:
            return
        name = next((name for name, control in self.controls.items() if control is change.owner), None)
        if name == "preset" and change.new != CUSTOM:
            self.state.hardware = Hardware.preset(change.new)
        elif name == "dtype":
            self.state.dtype = change.new
        elif name in _SLIDERS:
            self._replace(_SLIDERS[name], change.new)
        else:
            self._follow()

    def _replace(self, slider: _Slider, value: float) -> None:
        changed: dict[str, Any] = {slider.field: round(value) if slider.field in _WHOLE else float(value)}
        self.state.hardware = replace(self.state.hardware, name=CUSTOM, **changed)

    def _follow(self) -> None:
        """Move all controls to the machine, without taking their moves for a hand's."""
        hardware = self.state.hardware
        self._following = True
        try:
            known = hardware.name in Hardware.presets() and hardware == Hardware.preset(hardware.name)
            self.controls["preset"].value = hardware.name if known else CUSTOM
            self.controls["dtype"].value = self.state.dtype
            for name, slider in _SLIDERS.items():
                control, value = self.controls[name], getattr(hardware, slider.field)
                if value not in {stop for _, stop in control.options}:
                    control.options = _options(slider, value)
                control.value = value
        finally:
            self._following = False
        rest = f"vector {hardware.vector_bytes} B, launch {format_seconds(hardware.launch_s)}, {self.state.dtype}"
        self._say(f"{hardware.summary()}, {rest}")

    def _say(self, text: str) -> None:
        self.text = text
        self._status.value = f'<div role="status" style="line-height:1.4">{html.escape(text)}</div>'

    def _file_row(self) -> Any:
        """Save and load, with whatever goes wrong as a sentence."""

        def button(label: str, tooltip: str, act: Callable[[str], object], done: str) -> Any:
            @in_turn
            def clicked(_button: object) -> None:
                try:
                    act(self._file.value)
                    self._follow()
                    self._say(f"{self._file.value}: {done}. {self.text}")
                except Exception as error:  # an exception in a callback is invisible in a notebook
                    self._say(explain(error))

            made = ipywidgets.Button(description=label, tooltip=tooltip, layout=ipywidgets.Layout(width="70px"))
            made.on_click(clicked)
            return made

        save = button("save", "write this machine to the file", self.save, "written")
        load = button("load", "take the machine of the file", self.load, "read")
        return ipywidgets.HBox([self._file, save, load], layout=wrapping())


def _options(slider: _Slider, *more: float) -> list[tuple[str, float]]:
    """The stops, with those of the presets and ``more``, each with its size and unit in words."""
    known = (getattr(Hardware.preset(name), slider.field) for name in Hardware.presets())
    return [(slider.write(stop), stop) for stop in sorted({*slider.stops, *known, *more})]


def show(state: HardwareState | None = None) -> HardwarePanel:
    """A panel on a state, or on a new one: ``panel.state`` is what the views of the notebook observe."""
    return HardwarePanel(HardwareState() if state is None else state)
