"""``labkit doctor``: is this machine ready for the course, and if not, what to do."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from labkit.commands import Answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def run(args: argparse.Namespace) -> Answer:
    """Look at Python, packages, kernel, memory, folder and port; the answer is no if something required is missing."""
    from labkit.course.doctor import Finding, examine

    def line(finding: Finding) -> str:
        mark = "ok" if finding.ok else "MISSING" if finding.required else "note"
        return f"{mark:<8} {finding.name:<15} {finding.found}" + (f" -> {finding.advice}" if finding.advice else "")

    findings = examine(Path.cwd())
    ready = all(finding.ok for finding in findings if finding.required)
    verdict = "This machine is ready for the course." if ready else "Not ready: see the lines marked MISSING."
    text = "\n".join([*map(line, findings), verdict])
    return Answer({"ok": ready, "findings": [asdict(finding) for finding in findings]}, text, ok=ready)
