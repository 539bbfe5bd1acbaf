"""``labkit optimize``: make a model smaller without changing what it computes, and say what each pass saved."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from labkit.commands import Answer
from labkit.errors import NotEquivalent
from labkit.hardware import Hardware
from labkit.units import parse_bytes

if TYPE_CHECKING:
    from labkit.graph import Graph
    from labkit.passes.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="an ONNX file")
    parser.add_argument("-o", "--output", metavar="OUT", help="write the optimised model here")
    parser.add_argument("--level", default="basic", help="none or basic (default: basic)")
    parser.add_argument("--hardware", default="edge-npu", help="a preset to count time for (default: edge-npu)")
    parser.add_argument("--sram", metavar="SIZE", help="on-chip memory instead of the preset's, for example 512KiB")
    parser.add_argument("--verify", action="store_true", help="run both models on drawn inputs and compare the outputs")


def run(args: argparse.Namespace) -> Answer:
    """Optimise, verify if asked, and write the file only when the outputs agree."""
    from labkit.onnx_io import load, save
    from labkit.passes.pipeline import optimize

    hardware = Hardware.preset(args.hardware)
    if args.sram:
        hardware = replace(hardware, sram_bytes=parse_bytes(args.sram))
    graph = load(args.model)
    report = optimize(graph, level=args.level, hardware=hardware)
    verdict = _verify(graph, report.graph) if args.verify else None
    ok = verdict is None or verdict["equivalent"]
    if args.output and ok:
        save(report.graph, args.output)
    data = {**report.to_dict(), "model": args.model, "verify": verdict, "output": args.output if ok else None}
    return Answer(data, _text(report, verdict, data["output"]), ok)


def _verify(before: Graph, after: Graph) -> dict[str, Any]:
    from labkit.equivalence import verify

    try:
        return verify(before, after).to_dict()
    except NotEquivalent as error:
        return {"equivalent": False, "reason": str(error)}


def _text(report: Report, verdict: dict[str, Any] | None, output: str | None) -> str:
    lines = [report.table()]
    if assumed := report.costs[-1].assumed:
        lines.append(
            f"dims that are no numbers, counted as 1: {', '.join(assumed[:8])}{', …' if len(assumed) > 8 else ''}"
        )
    if report.refusals:
        lines += ["", f"left alone ({len(report.refusals)}):", *(f"  {refusal}" for refusal in report.refusals[:10])]
    if verdict and verdict["equivalent"]:
        lines.append(
            f"verified by {verdict['judge']} on {verdict['inputs']} inputs: "
            f"largest difference {verdict['max_abs']:.2g}, {verdict['max_rel']:.2g} of the largest output"
        )
    elif verdict:
        lines.append(f"NOT EQUIVALENT: {verdict['reason']}" + ("" if output else "; nothing written"))
    if output:
        lines.append(f"written to {output}")
    return "\n".join(lines)
