"""Tensor layouts, tiling and graph-level optimisation, with every byte counted."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public name -> the module that defines it. Each loads on first use, so `import labkit` costs next to nothing.
_HOME = {
    "load": "onnx_io",
    "save": "onnx_io",
    "run": "interpreter",
    "optimize": "passes.pipeline",
    "verify": "equivalence",
    "cost": "costing",
    "schedule": "scheduling",
    "reside": "residency",
    "energy": "energy_table",
    "check_pass": "passes.judge",
    "Graph": "graph",
    "Node": "graph",
    "Value": "graph",
    "TensorType": "graph",
    "Report": "passes.report",
    "LabError": "errors",
    "NotConverged": "errors",
    "NotEquivalent": "errors",
    "SramOverflow": "errors",
    "GraphError": "errors",
    "Hardware": "hardware",
    "EnergyTable": "energy_table",
    "Layout": "layout",
    "StridedTensor": "tensor",
    "Scratchpad": "memory.scratchpad",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"labkit has no {name!r}")
    value = getattr(importlib.import_module(f"labkit.{_HOME[name]}"), name)
    globals()[name] = value  # the next look-up is a plain attribute
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
