"""The command line as a whole: what is wrong is said in one line, with exit status 2 and no traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

from labkit.cli import COMMANDS, build_parser, main

BAD = [
    [],
    ["fly"],
    ["--fly"],
    ["grade"],
    ["grade", "absent.ipynb"],
    ["grade", "."],
    ["hardware", "absent.toml"],
    ["hardware", "one.toml", "two.toml"],
    ["build", "--fly"],
    ["build", "--output"],
    ["build", "--check", "--from-notebook", "x.ipynb"],
    ["doctor", "now"],
]


@pytest.mark.parametrize("argv", BAD, ids=" ".join)
def test_bad_input_is_one_line_and_exit_status_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("labkit: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_an_unknown_command_lists_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    main(["fly"])
    err = capsys.readouterr().err
    assert all(name in err for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    assert "--json" in capsys.readouterr().out or name in ("traffic", "tile")  # that of their sub-commands


def test_python_m_labkit_is_the_same_program() -> None:
    run = subprocess.run([sys.executable, "-m", "labkit", "fly"], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)


def test_the_parser_loads_no_heavy_package() -> None:
    heavy = "{'onnx', 'matplotlib', 'ipywidgets', 'numba', 'jupytext', 'nbclient'}"
    code = f"import sys, labkit.cli; labkit.cli.build_parser(); print({heavy} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
    assert build_parser().prog == "labkit"


def test_a_reader_that_stops_early_is_no_error() -> None:
    command = [sys.executable, "-m", "labkit", "hardware"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
