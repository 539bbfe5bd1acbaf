"""The machine a schedule is made for: six numbers and a preferred layout."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from labkit.errors import LabError
from labkit.units import format_bytes, format_rate, parse_bytes

_PRESETS = Path(__file__).with_name("hardware.toml")
_POSITIVE = ("peak_flops_per_s", "dram_bytes_per_s", "sram_bytes", "line_bytes", "vector_bytes")


@dataclass(frozen=True)
class Hardware:
    """A machine with one on-chip memory in front of one DRAM.

    Sizes are in bytes, rates per second, ``launch_s`` is the fixed cost of starting one kernel; ``layout`` is the
    order of axes its kernels prefer. A slider makes a new one with ``dataclasses.replace``.

    Raises LabError for a size or rate that is not above zero.

    >>> Hardware.preset("edge-npu").sram_bytes
    524288
    """

    name: str
    peak_flops_per_s: float
    dram_bytes_per_s: float
    sram_bytes: int
    line_bytes: int
    vector_bytes: int
    launch_s: float
    layout: str

    def __post_init__(self) -> None:
        for field in (*_POSITIVE, "launch_s"):
            if not isinstance(getattr(self, field), int | float):
                raise LabError(f"hardware {self.name}: {field} is {getattr(self, field)!r}, it must be a number")
        for field in _POSITIVE:
            if not getattr(self, field) > 0:
                raise LabError(f"hardware {self.name}: {field} is {getattr(self, field)}, it must be above 0")
        if not self.launch_s >= 0:
            raise LabError(f"hardware {self.name}: launch_s is {self.launch_s}, it cannot be negative")

    @property
    def ridge(self) -> float:
        """Arithmetic intensity in FLOP/byte from which a kernel is compute-bound (Williams et al., CACM 2009)."""
        return self.peak_flops_per_s / self.dram_bytes_per_s

    @staticmethod
    def presets() -> tuple[str, ...]:
        """Names of the machines that come with the course."""
        return tuple(_presets())

    @staticmethod
    def preset(name: str) -> Hardware:
        """One of the machines that come with the course; LabError lists them when the name is none."""
        machines = _presets()
        if name not in machines:
            raise LabError(f"no hardware preset {name!r}; there are: {', '.join(machines)}")
        return machines[name]

    @staticmethod
    def load(path: str | Path, name: str | None = None) -> Hardware:
        """A machine from a TOML file with one table a machine, in the keys of this class; the first unless named."""
        machines = _read(Path(path))
        if name is not None and name not in machines:
            raise LabError(f"{path}: no table [{name}]; there are: {', '.join(machines)}")
        if not machines:
            raise LabError(f"{path}: no hardware in it; write one table a machine, as in labkit's hardware.toml")
        return machines[name] if name else next(iter(machines.values()))

    def to_toml(self) -> str:
        """The table of a TOML file that ``load`` reads back as this machine.

        >>> print(Hardware.preset("edge-npu").to_toml().splitlines()[0])
        ["edge-npu"]
        """
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "name"}
        lines = [f"{key} = {_toml(value)}" for key, value in values.items()]
        return "\n".join([f"[{_toml(self.name)}]", *lines]) + "\n"

    def summary(self) -> str:
        """One line for people."""
        return (
            f"{self.name}: {format_rate(self.peak_flops_per_s, 'FLOP/s')}, "
            f"DRAM {format_rate(self.dram_bytes_per_s, 'B/s')}, SRAM {format_bytes(self.sram_bytes)}, "
            f"line {self.line_bytes} B, ridge {self.ridge:.1f} FLOP/byte, {self.layout}"
        )


def _toml(value: object) -> str:
    """A name or a number as TOML has it; numbers are read back exactly."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


@cache
def _presets() -> Mapping[str, Hardware]:
    return _read(_PRESETS)


def _read(path: Path) -> Mapping[str, Hardware]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabError(f"{path}: no such hardware file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LabError(f"{path}: not a readable TOML file ({error})") from None
    return {name: _machine(path, name, table) for name, table in tables.items()}


def _machine(path: Path, name: str, table: Any) -> Hardware:
    wanted = {field.name for field in fields(Hardware)} - {"name"}
    keys = set(table) if isinstance(table, dict) else set()
    if keys != wanted:
        wrong = ", ".join(sorted(keys ^ wanted))
        raise LabError(f"{path}: table [{name}] has missing or unknown keys: {wrong}")
    sizes = {key: parse_bytes(table[key]) for key in ("sram_bytes", "line_bytes", "vector_bytes")}
    return Hardware(name=name, **{**table, **sizes})
