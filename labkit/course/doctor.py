"""Is this machine ready for the course? Each finding says what was found and what to do about it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labkit.units import format_bytes

_INSTALL = "pip install -r requirements.txt"
_OPTIONAL = {
    "numba": "faster cache simulation",
    "onnxruntime": "a second opinion on exported models",
    "nbgrader": "for instructors whose institution grades with it",
}
_LEAST_PYTHON = (3, 11)
_LEAST_BYTES = 2 * 1024**3
_PORT = 8888


@dataclass(frozen=True)
class Finding:
    """One thing looked at: ``found`` is what is there, ``advice`` what to do when it is not ``ok``."""

    name: str
    ok: bool
    required: bool
    found: str
    advice: str = ""


def examine(folder: Path) -> list[Finding]:
    """Everything the course needs, then what it can use. ``folder`` is where the student works."""
    return [_python(sys.version_info[:3]), *_packages(), _kernel(), _memory(), _disk(folder), _port(_PORT)]


def _python(version: tuple[int, int, int]) -> Finding:
    least = ".".join(map(str, _LEAST_PYTHON))
    advice = f"install Python {least} or newer"
    return _finding("Python", version >= _LEAST_PYTHON, True, ".".join(map(str, version)), advice)


def _packages() -> Iterator[Finding]:
    for requirement in importlib.metadata.requires("labkit") or ():
        if "extra ==" in requirement:
            continue
        match = re.match(r"([\w.-]+)\s*(?:>=\s*([\d.]+))?", requirement)
        if match and match[1] not in _OPTIONAL:
            yield package(match[1], match[2] or "0", required=True, advice=_INSTALL)
    for name, use in _OPTIONAL.items():
        yield package(name, "0", required=False, advice=f"optional, {use}: pip install {name}")


def package(name: str, least: str, required: bool, advice: str) -> Finding:
    """Whether a distribution is installed, in version ``least`` or newer (compared by its leading numbers)."""
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, False, required, "not installed", advice)
    return _finding(name, _numbers(version) >= _numbers(least), required, version, f"needs {least} or newer: {advice}")


def _numbers(version: str) -> tuple[int, ...]:
    """Leading numbers of a version without trailing zeros, so that 8.1 and 8.1.0 are equal."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(number) for number in match[0].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _kernel() -> Finding:
    """The kernel that notebooks ask for by name; it must start this Python, not another one."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager

        command = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except Exception as error:  # no jupyter_client, no kernel, a kernel file that is broken: all mean "no kernel"
        return Finding("kernel python3", False, True, f"none ({type(error).__name__})", _INSTALL)
    own = Path(command).name == command or _same_file(command, sys.executable)
    advice = f"remove that kernel (jupyter kernelspec remove python3) or start JupyterLab with {sys.executable}"
    return _finding("kernel python3", own, True, command, advice)


def _same_file(one: str, other: str) -> bool:
    """By folder, not by inode: the pythons of two virtual environments are links to the same file."""
    return os.path.dirname(os.path.abspath(one)) == os.path.dirname(os.path.abspath(other))


def _memory() -> Finding:
    try:
        import psutil  # comes with ipykernel

        size = int(psutil.virtual_memory().total)
    except ImportError:
        return Finding("memory", False, False, "unknown", _INSTALL)
    advice = f"lessons want {format_bytes(_LEAST_BYTES)}; close other programs"
    return _finding("memory", size >= _LEAST_BYTES, False, format_bytes(size), advice)


def _disk(folder: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding("folder", False, True, f"{folder}: {error.strerror}", "work in a folder you may write to")
    return Finding("folder", True, True, f"{folder} can be written")


def _port(port: int) -> Finding:
    with socket.socket() as server:
        try:
            server.bind(("127.0.0.1", port))
        except OSError:
            return Finding("port", False, False, f"{port} is taken", "choose another: make lab PORT=8890")
    return Finding("port", True, False, f"{port} is free")


def _finding(name: str, ok: bool, required: bool, found: str, advice: str) -> Finding:
    return Finding(name, ok, required, found, "" if ok else advice)
