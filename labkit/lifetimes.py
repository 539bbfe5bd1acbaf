"""How long each tile lives on chip while the operators of a kernel work on it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from labkit.graph import Node, Value

# Operators of which an output element takes the elements at its own place (or broadcast ones).
_ELEMENTWISE = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BatchNormalization BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast
    Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf
    IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu
    Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor"""
ELEMENTWISE = frozenset(_ELEMENTWISE.split())

SUM = "(sum)"  # the tile of accumulators that the first operator of a kernel with factors starts from


@dataclass(frozen=True)
class Step:
    """One operator and the tiles of full size around it: those that come in right before it (``arriving``), that it
    makes, that it is the last to read (``leaving``), and that nothing reads again once they are stored (``done``)."""

    node: Node
    arriving: tuple[str, ...]
    made: tuple[str, ...]
    leaving: tuple[str, ...]
    done: tuple[str, ...]
    in_place: bool  # it may write over what leaves, element by element


def is_elementwise(node: Node) -> bool:
    """Whether each output element depends on the input elements at its own place only."""
    plain = not node.domain and not node.attrs.get("training_mode")
    return plain and node.op in ELEMENTWISE and len(node.results) == 1


def beside_factors(node: Node, factors: int) -> tuple[Value, ...]:
    """The tensors that an operator reads when a tile is finished: its inputs without the first so many."""
    return tuple(value for value in node.inputs[factors:] if value is not None)


def steps(nodes: Sequence[Node], outside: Collection[str], sizes: Mapping[str, int], factors: int) -> Iterator[Step]:
    """The operators in order. ``sizes`` are bytes of the tensors of full size; the first operator combines ``factors``
    tensors into a sum, where it has any. ``outside`` are the tensors that come from DRAM."""
    reads = [[v.name for v in beside_factors(node, 0 if i else factors)] for i, node in enumerate(nodes)]
    last = {name: i for i, names in enumerate(reads) for name in names}
    seen: set[str] = set()
    for i, node in enumerate(nodes):
        after_sum = factors > 0 and i == 0
        used = [name for name in dict.fromkeys(reads[i]) if name in sizes]
        made = tuple(value.name for value in node.results)
        yield Step(
            node,
            tuple(name for name in used if name in outside and name not in seen),
            made,
            (*(name for name in used if last[name] == i), *[SUM] * after_sum),
            tuple(name for name in made if name not in last),
            after_sum or node.op in ELEMENTWISE,
        )
        seen.update(used)


def most_held(tail: Sequence[Step], sizes: Mapping[str, int]) -> int:
    """The most bytes that are on chip at once for each element of the output.

    An operator that works in place writes over the largest tile that leaves; any other needs all side by side.
    """
    most = now = sizes.get(SUM, 0)
    for step in tail:
        now += sum(sizes[name] for name in step.arriving)
        made, left = ([sizes[name] for name in names] for names in (step.made, step.leaving))
        most = max(most, now + (max(sum(made) - max(left, default=0), 0) if step.in_place else sum(made)))
        now += sum(made) - sum(left) - sum(sizes[name] for name in step.done)
    return most
