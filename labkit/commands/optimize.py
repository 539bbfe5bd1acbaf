"""``labkit optimize``: make a model smaller without changing what it computes, and say what each pass saved."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from labkit.commands import Answer
from labkit.errors import NotEquivalent
from labkit.hardware import Hardware
from labkit.units import format_bytes, format_seconds, parse_bytes

if TYPE_CHECKING:
    from labkit.passes.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="an ONNX file")
    parser.add_argument("-o", "--output", metavar="OUT", help="write the optimised model here")
    parser.add_argument("--level", default="basic", help="none, basic, extended, layout or all (default: basic)")
    parser.add_argument("--hardware", default="edge-npu", help="a preset to count time for (default: edge-npu)")
    parser.add_argument("--sram", metavar="SIZE", help="on-chip memory instead of the preset's, for example 512KiB")
    parser.add_argument(
        "--counterexample", metavar="FILE", help="with --verify: where it fails, the smallest graph that shows it"
    )
    parser.add_argument("--schedule", action="store_true", help="print the loops of every kernel, at its best tile")
    parser.add_argument("--verify", action="store_true", help="run both models on drawn inputs and compare the outputs")


def run(args: argparse.Namespace) -> Answer:
    """Optimise, verify if asked, and write the file only when the outputs agree."""
    from labkit.onnx_io import load, save
    from labkit.passes.pipeline import optimize
    from labkit.scheduling import metadata

    hardware = Hardware.preset(args.hardware)
    if args.sram:
        hardware = replace(hardware, sram_bytes=parse_bytes(args.sram))
    graph = load(args.model)
    report = optimize(graph, level=args.level, hardware=hardware)
    verdict = _verify(report, args.counterexample) if args.verify else None
    ok = verdict is None or verdict["equivalent"]
    data = {**report.to_dict(), "model": args.model, "verify": verdict, "output": args.output if ok else None}
    text = _text(report, verdict, data["output"])
    if args.output and ok:  # last: whatever goes wrong before leaves no file
        save(report.graph, args.output, metadata(report.schedule) if args.level == "all" else {})
    return Answer(data, f"{text}\n\n{report.schedule}" if args.schedule else text, ok)


def _verify(report: Report, counterexample: str | None) -> dict[str, Any]:
    """The verdict; where it is no, which pass is to blame, and the smallest graph that shows it if a file is wanted."""
    from labkit.equivalence import verify
    from labkit.onnx_io import save
    from labkit.passes.blame import blame

    try:
        return verify(report.original, report.graph).to_dict()
    except NotEquivalent as error:
        reason = str(error)
    found = blame(report)
    if found is not None and counterexample:
        save(found.graph, counterexample)
    return {"equivalent": False, "reason": reason, "blame": None if found is None else str(found)}


def _text(report: Report, verdict: dict[str, Any] | None, output: str | None) -> str:
    lines = [report.table()]
    if assumed := report.costs[-1].assumed:
        lines.append(
            f"dims that are no numbers, counted as 1: {', '.join(assumed[:8])}{', …' if len(assumed) > 8 else ''}"
        )
    if report.level == "all":
        lines.append(_scheduled(report))
    if report.refusals:
        lines += ["", f"left alone ({len(report.refusals)}):", *(f"  {refusal}" for refusal in report.refusals[:10])]
    if verdict and verdict["equivalent"]:
        lines.append(
            f"verified by {verdict['judge']} on {verdict['inputs']} inputs: "
            f"largest difference {verdict['max_abs']:.2g}, {verdict['max_rel']:.2g} of the largest output"
        )
    elif verdict:
        lines.append(f"NOT EQUIVALENT: {verdict['reason']}; nothing written")
        lines.append(f"to blame: {verdict['blame'] or 'no single step; the differences of several add up'}")
    if output:
        lines.append(f"written to {output}")
    return "\n".join(lines)


def _scheduled(report: Report) -> str:
    """What the kernels move at their best tiles, in one line."""
    from labkit.scheduling import schedule

    single, double = report.schedule, schedule(report.graph, report.hardware, "double")
    return (
        f"scheduled within {format_bytes(report.hardware.sram_bytes)} of SRAM: "
        f"{format_bytes(single.dram_bytes)} of DRAM traffic with re-loads, {single.transactions:,} transfers, "
        f"high water {format_bytes(single.high_water_bytes)}; {format_seconds(single.time_s)}, "
        f"or {format_seconds(double.time_s)} with two buffers for each input"
    )
