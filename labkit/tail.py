"""What a kernel does with each finished tile of its output before the tile leaves: other operators (spec §4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.access import Operand


@dataclass(frozen=True)
class Tail:
    """The tensors of these operators, as a loop nest sees them; sizes are in bytes for each element of the output.

    ``reads`` are the tensors of full size that come in, such as a residual: a tile of each, once, when its operator
    runs. ``writes`` are those that leave. ``held`` is the most that is on chip at once while the operators run, the sum
    itself included. ``vectors`` are broadcast tensors, such as a bias: a tile of each stays until another is needed.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    held: int
    vectors: tuple[Operand, ...] = ()

    @property
    def moved(self) -> int:
        """Bytes that move for each element of the output."""
        return sum(self.reads) + sum(self.writes)
