"""Run the cells of a notebook in a fresh kernel of this very Python."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from labkit.errors import LabError

_CELL_SECONDS = 600  # a lesson's cell takes seconds; this only ends one that hangs


def execute(notebook: Any, name: str, folder: Path) -> None:
    """Fill the notebook's outputs in place, with ``folder`` as working directory (the one JupyterLab uses).

    Raises LabError naming ``name``, the cell and its error line when a cell raises, hangs, kills its kernel or writes
    to stderr (warnings carry paths and differ between machines).
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    client = NotebookClient(
        notebook,
        kernel_manager_class=_own_kernel(),
        timeout=_CELL_SECONDS,
        coalesce_streams=True,  # else the number of stream outputs depends on when the kernel flushes
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as private:
            environment = dict(os.environ, IPYTHONDIR=private, PYTHONHASHSEED="0")  # no start-up files of the user
            client.execute(env=environment, stderr=subprocess.DEVNULL)
    except CellExecutionError as error:
        raise LabError(f"{_where(name, notebook, 'error')}: {error.ename}: {error.evalue}") from None
    except (CellTimeoutError, DeadKernelError) as error:
        raise LabError(f"{name}: a cell hung or ended its kernel ({type(error).__name__})") from None
    if _find(notebook, "stderr") is not None:
        raise LabError(f"{_where(name, notebook, 'stderr')}: writes to stderr; repair the warning or print it")


def _own_kernel() -> type:
    """A kernel manager that only knows the running Python: a "python3" in the user's folders may be another one."""
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager

    class OwnSpec(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=command, display_name="Python 3", language="python")

    class OwnKernel(AsyncKernelManager):
        def __init__(self, **options: Any) -> None:
            super().__init__(kernel_spec_manager=OwnSpec(), **options)

    return OwnKernel


def _find(notebook: Any, what: str) -> int | None:
    """Index of the first cell with an output of that type or stream name, of those not tagged raises-exception."""
    for index, cell in enumerate(notebook.cells):
        if "raises-exception" in cell.metadata.get("tags", ()):
            continue
        if any(what in (output["output_type"], output.get("name")) for output in cell.get("outputs", ())):
            return index
    return None


def _where(name: str, notebook: Any, what: str) -> str:
    index = _find(notebook, what)
    if index is None:
        return name
    lines = notebook.cells[index].source.strip().splitlines() or [""]
    return f"{name}: cell {index + 1} ({lines[0][:60]})"
