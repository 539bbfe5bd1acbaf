"""Lesson 06: the production optimisers that are installed here, beside labkit, on one network.

What it shows depends on the computer, so it runs only when it is asked to: a saved notebook holds the question.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.explore.network import NETWORKS, example
from labkit.graph import Graph
from labkit.onnx_io import save
from labkit.peers import Outcome, compare
from labkit.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from labkit.explore.beside_view import BesideView

HEAD = ("optimiser", "nodes", "DRAM traffic", "max error", "CPU time", "note")
FIRST = "U-Net with dead heads"


def data(network: str | Graph) -> tuple[Outcome, ...]:
    """The network as it is, then what each optimiser made of it; a process each, some seconds.

    Raises LabError for a network that is none, and where onnxruntime, which runs the results, is missing.
    """
    graph = example(network) if isinstance(network, str) else network
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.onnx")
        save(graph, path)
        return compare(path)


def rows(outcomes: tuple[Outcome, ...]) -> tuple[tuple[str, ...], ...]:
    """The outcomes as a table, its head first; what is not known is empty.

    >>> rows((Outcome("onnxsim", nodes=3, dram_bytes=2048, max_abs=0.0, seconds=0.5),))[1]
    ('onnxsim', '3', '2 KiB', '0', '500 ms', '')
    """
    return HEAD, *(
        (
            one.name,
            "" if one.nodes is None else str(one.nodes),
            "" if one.dram_bytes is None else format_bytes(one.dram_bytes),
            "" if one.max_abs is None else f"{one.max_abs:.2g}",
            "" if one.seconds is None else format_seconds(one.seconds),
            one.note,
        )
        for one in outcomes
    )


def show(network: str = FIRST) -> BesideView:
    """A menu of networks, and a button that runs the optimisers; LabError for a network that is none."""
    from labkit.explore.beside_view import BesideView

    example(network)
    return BesideView(tuple(NETWORKS), network)
