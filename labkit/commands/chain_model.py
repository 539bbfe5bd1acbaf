"""What ``labkit traffic chain`` adds: Conv → BatchNormalization → ReLU in three kernels, and fused into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.commands.problem_arguments import say_bytes
from labkit.hardware import Hardware
from labkit.loops import LoopNest

if TYPE_CHECKING:
    from labkit.kernels.fused import Chain


def chain_traffic(nest: LoopNest, hardware: Hardware) -> dict[str, Any]:
    """The fused kernel's traffic under the usual keys, and that of the three kernels beside it.

    Raises LabError for a nest that ops cannot be fused into: its output tiles must leave finished.
    """
    chain = _conv_bn_relu(nest)
    needed = chain.working_set_bytes
    fits = {"working_set_bytes": needed, "fits": needed <= hardware.sram_bytes}
    fused, unfused = chain.fused_traffic, chain.unfused_traffic
    if not fits["fits"]:
        return fits
    return {
        **fits,
        **{"source": "modelled", "read_bytes": fused.read_bytes, "write_bytes": fused.write_bytes},
        **{"unfused_read_bytes": unfused.read_bytes, "unfused_write_bytes": unfused.write_bytes},
        "saved_bytes": chain.saved_bytes,
        **{"launches": chain.launches(fused=True), "unfused_launches": chain.launches(fused=False)},
    }


def chain_text(data: dict[str, Any]) -> list[str]:
    """The line about fusion; none for a single kernel."""
    if "saved_bytes" not in data:
        return []
    unfused = data["unfused_read_bytes"] + data["unfused_write_bytes"]
    return [
        f"that is fused, in {data['launches']} kernel; in {data['unfused_launches']} kernels: {say_bytes(unfused)}; "
        f"fusion saves {say_bytes(data['saved_bytes'])}"
    ]


def _conv_bn_relu(nest: LoopNest) -> Chain:
    """The chain, with parameters of ones: bytes do not depend on them."""
    import numpy as np

    from labkit.kernels.fused import Chain, batch_norm, relu

    output = nest.problem.output
    spatial = {"n", "p", "q"}
    shape = [1 if axis.loops[0] in spatial else axis.extent for axis in output.axes]
    ones = np.ones(shape, output.dtype)
    return Chain(nest, (batch_norm(ones, ones, ones, ones), relu()))
