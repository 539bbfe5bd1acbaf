"""The doctor: what is missing is named, with what to do; only what is required makes the answer no."""

from __future__ import annotations

import importlib.metadata
import json
import socket
import sys
from pathlib import Path

import pytest

from labkit.cli import main
from labkit.course import doctor


def by_name() -> dict[str, doctor.Finding]:
    return {finding.name: finding for finding in doctor.examine(Path.cwd())}


def test_this_machine_is_ready(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is True
    names = {finding["name"]: finding for finding in answer["findings"]}
    assert names["numpy"]["found"] == importlib.metadata.version("numpy")
    assert {"Python", "jupyterlab", "onnx", "kernel python3", "memory", "folder", "port"} <= set(names)


def test_every_requirement_of_the_project_is_looked_at() -> None:
    required = {line.split(">=")[0] for line in importlib.metadata.requires("labkit") or () if "extra" not in line}
    assert required <= set(by_name())


@pytest.mark.parametrize(("name", "required", "status"), [("onnx", True, 1), ("nbgrader", False, 0)])
def test_a_missing_package_is_named_and_only_a_required_one_says_no(
    name: str, required: bool, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = importlib.metadata.version

    def version(asked: str) -> str:
        if asked == name:
            raise importlib.metadata.PackageNotFoundError(asked)
        return installed(asked)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert main(["doctor"]) == status
    (line,) = (line for line in capsys.readouterr().out.splitlines() if name in line.split())
    assert line.startswith("MISSING" if required else "note")
    assert "pip install" in line


@pytest.mark.parametrize(
    ("installed", "least", "ok"),
    [
        ("1.9", "1.18", False),
        ("1.18.0", "1.18", True),
        ("2", "1.18", True),
        ("8.1", "8.1.0", True),
        ("1.18rc1", "1.18", True),
    ],
)
def test_versions_compare_as_numbers(installed: str, least: str, ok: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: installed)
    finding = doctor.package("x", least, required=True, advice="do this")
    assert finding.ok is ok
    assert ("do this" in finding.advice) is not ok


def test_an_old_python_is_told_what_to_install() -> None:
    finding = doctor._python((3, 10, 9))
    assert (finding.ok, finding.advice) == (False, "install Python 3.11 or newer")


def test_a_taken_port_says_how_to_take_another() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        finding = doctor._port(server.getsockname()[1])
    assert (finding.ok, finding.required) == (False, False)
    assert "PORT=" in finding.advice


def test_a_folder_that_cannot_be_written_is_no(tmp_path: Path) -> None:
    finding = doctor._disk(tmp_path / "absent")
    assert (finding.ok, finding.required) == (False, True)


def test_a_kernel_of_another_python_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = tmp_path / "kernels/python3/kernel.json"
    kernel.parent.mkdir(parents=True)
    argv = ["/elsewhere/bin/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    finding = doctor._kernel()
    assert (finding.ok, finding.found) == (False, "/elsewhere/bin/python")
    assert sys.executable in finding.advice
