"""energy(): the joules that the bytes and operations of a cost or a schedule take, by a table (energy.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from labkit.costing import Cost
from labkit.errors import LabError
from labkit.scheduling import Schedule

_TABLE = Path(__file__).with_name("energy.toml")


@dataclass(frozen=True)
class EnergyTable:
    """Picojoules for a byte of DRAM, a byte of SRAM and a floating-point operation. Every byte that crosses the border
    of the chip is also written to SRAM or read from it, and an operation reads ``sram_bytes_per_flop`` there.

    Raises LabError for a number below zero.
    """

    name: str
    dram_pj_per_byte: float
    sram_pj_per_byte: float
    flop_pj: float
    sram_bytes_per_flop: float

    def __post_init__(self) -> None:
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if not isinstance(value, int | float) or not value >= 0:
                raise LabError(f"energy table {self.name}: {field.name} is {value!r}, it must be a number from 0 on")

    @staticmethod
    def load(path: str | Path = _TABLE, name: str | None = None) -> EnergyTable:
        """A table from a TOML file, the one that comes with the course unless another is named; its first table
        unless ``name`` says which.

        >>> EnergyTable.load().dram_pj_per_byte
        160.0
        """
        tables = _read(Path(path))
        if name is not None and name not in tables:
            raise LabError(f"{path}: no table [{name}]; there are: {', '.join(tables)}")
        return tables[name] if name else next(iter(tables.values()))


@dataclass(frozen=True)
class Energy:
    """Joules of one kernel or of several together, by what takes them."""

    dram_j: float = 0.0
    sram_j: float = 0.0
    compute_j: float = 0.0

    @property
    def joules(self) -> float:
        """All of it."""
        return self.dram_j + self.sram_j + self.compute_j

    def __add__(self, other: Energy) -> Energy:
        return Energy(self.dram_j + other.dram_j, self.sram_j + other.sram_j, self.compute_j + other.compute_j)


@dataclass(frozen=True)
class EnergyReport:
    """The energy of each kernel, by the name it has in the ledger."""

    nodes: Mapping[str, Energy]
    table: EnergyTable

    @property
    def total(self) -> Energy:
        return sum(self.nodes.values(), Energy())

    def __iter__(self) -> Iterator[tuple[str, Energy]]:
        return iter(self.nodes.items())


def energy(counted: Cost | Schedule, table: EnergyTable | None = None) -> EnergyReport:
    """The energy of every kernel of a cost or a schedule: its bytes are those of the ledger, its operations those that
    the op table counts."""
    table = table or EnergyTable.load()
    bytes_of = {name: traffic.nbytes for name, traffic in counted.ledger.by("node").items()}
    nodes = {name: _energy(bytes_of.get(name, 0), flops, table) for name, flops in _flops(counted)}
    return EnergyReport(nodes, table)


def _flops(counted: Cost | Schedule) -> Iterator[tuple[str, int]]:
    if isinstance(counted, Schedule):
        yield from ((node.name, node.flops) for node in counted)
        return
    for cost in counted:
        yield next((value.name for value in cost.node.results), cost.node.op), cost.estimate.flops


def _energy(dram_bytes: int, flops: int, table: EnergyTable) -> Energy:
    sram_bytes = dram_bytes + flops * table.sram_bytes_per_flop
    picojoules = (dram_bytes * table.dram_pj_per_byte, sram_bytes * table.sram_pj_per_byte, flops * table.flop_pj)
    return Energy(*(part * 1e-12 for part in picojoules))


@cache
def _read(path: Path) -> Mapping[str, EnergyTable]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabError(f"{path}: no such energy file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LabError(f"{path}: not a readable TOML file ({error})") from None
    if not tables:
        raise LabError(f"{path}: no energy table in it; write one as in labkit's energy.toml")
    return {name: _table(path, name, table) for name, table in tables.items()}


def _table(path: Path, name: str, table: Any) -> EnergyTable:
    wanted = {field.name for field in fields(EnergyTable)} - {"name"}
    keys = set(table) if isinstance(table, dict) else set()
    if keys != wanted:
        raise LabError(f"{path}: table [{name}] has missing or unknown keys: {', '.join(sorted(keys ^ wanted))}")
    return EnergyTable(name=name, **table)
