"""Exercise 01: solutions pass, planted misconceptions are named, other right answers pass too."""

import ast
import doctest
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from labkit import Layout
from labkit.course.checking import CheckFailed, judge
from labkit.course.checks.ex01 import PARTS
from labkit.memory.ledger import Ledger

SOURCE = Path(__file__).parents[3] / "solutions/src/ex01.py"


@pytest.fixture(scope="module")
def solution():
    """The functions of the solution, without running its check cells."""
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.Import | ast.ImportFrom)]
    namespace = {"__name__": "solution"}
    exec(compile(tree, str(SOURCE), "exec"), namespace)
    return namespace


def fails(part, function, *words):
    with pytest.raises(CheckFailed) as caught:
        judge(part, PARTS[part], function)
    message = str(caught.value)
    for word in words:
        assert word in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("part", PARTS)
def test_the_solution_passes_every_part(solution, part):
    judge(part, PARTS[part], solution[PARTS[part].function])


@pytest.mark.parametrize("part", PARTS)
def test_the_examples_of_the_exercise_are_true(solution, part):
    function = solution[PARTS[part].function]
    tests = doctest.DocTestFinder().find(function, PARTS[part].function, globs=dict(solution))
    results = [doctest.DocTestRunner().run(test) for test in tests]
    assert sum(result.attempted for result in results) >= 2
    assert sum(result.failed for result in results) == 0


def test_points_and_functions_of_the_exercise_are_those_of_the_checks():
    text = SOURCE.read_text(encoding="utf-8")
    assert sum(part.points for part in PARTS.values()) == 12
    for number, part in PARTS.items():
        assert f'check("{number}", {part.function})' in text
        points = f"{part.points} point" + "s" * (part.points > 1)
        assert f"## {number} ·" in text
        assert f"({points})" in text.split(f"## {number} ·")[1].splitlines()[0]
        assert f'-check", "grade": true, "points": {part.points}}}' in text.split(f"## {number} ·")[1]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("value", [None, "12", 3.5, object()])
def test_a_result_of_the_wrong_kind_says_what_was_expected(part, value):
    fails(part, lambda *_, **__: value)


@pytest.mark.parametrize("part", PARTS)
def test_an_object_equal_to_everything_gets_nothing(part):
    class Anything:
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 0

    class Number(int):
        __eq__ = Anything.__eq__
        __hash__ = Anything.__hash__

    fails(part, lambda *_, **__: Anything())
    fails(part, lambda *_, **__: [Number(1)] * 4)


# ---- 1.1


def dense(shape, order):
    return Layout.dense(shape, order).strides


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (lambda shape, order: tuple(4 * s for s in dense(shape, order)), "bytes"),
        (lambda shape, order: tuple(Layout.dense(shape, order).stride(axis) for axis in order), "memory order"),
        (lambda shape, order: dense(shape, order[::-1]), "wrong end"),
        (lambda shape, order: dense(shape, "NCHW"), "use the order"),
        (lambda shape, order: dense(shape, order)[:3], "four axes"),
        (lambda shape, order: dict(zip(order, dense(shape, order), strict=True)), "tuple or a list"),
        (lambda shape, order: tuple(s / 1 for s in dense(shape, order)), "whole number: use //"),
        (lambda shape, order: print(dense(shape, order)), "return"),
    ],
)
def test_1_1_names_the_misconception(wrong, word):
    fails("1.1", wrong, word)


@pytest.mark.parametrize("kind", [list, np.array, lambda t: [np.int64(n) for n in t]])
def test_1_1_accepts_other_right_answers(kind):
    judge("1.1", PARTS["1.1"], lambda shape, order: kind(dense(shape, order)))


# ---- 1.2


def dot(index, strides):
    return sum(i * s for i, s in zip(index, strides, strict=True))


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (lambda index, strides, offset: dot(index, strides), "third argument"),
        (lambda index, strides, offset: 4 * (offset + dot(index, strides)), "bytes"),
        (lambda index, strides, offset: offset + dot(index, strides[::-1]), "same place"),
        (lambda index, strides, offset: offset + dot(index, [abs(s) for s in strides]), "sign"),
        (lambda index, strides, offset: offset + sum(index), "multiply"),
    ],
)
def test_1_2_names_the_misconception(wrong, word):
    fails("1.2", wrong, word)


def test_1_2_accepts_numpy():
    judge("1.2", PARTS["1.2"], lambda index, strides, offset: offset + np.dot(index, strides))


# ---- 1.3


def neighbours(shape, strides):
    return pairwise(zip(shape, strides, strict=True))


def packed(shape):
    return tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (lambda shape, strides: tuple(strides) == packed(shape), "constant step"),
        (lambda shape, strides: all(s == n * f for (_, s), (n, f) in neighbours(shape, strides)), "length 1"),
        (
            lambda shape, strides: all(
                s * f > 0 and abs(s) >= n * abs(f) for (_, s), (n, f) in neighbours(shape, strides)
            ),
            "gap",
        ),
        (
            lambda shape, strides: all(abs(s) == n * abs(f) for (_, s), (n, f) in neighbours(shape, strides)),
            "backwards",
        ),
        (lambda shape, strides: Layout("ABC"[: len(shape)], shape, strides).is_dense, "last axis is walked first"),
        (lambda shape, strides: True, "must step exactly"),
        (lambda shape, strides: False, "nothing is in the way"),
        (lambda shape, strides: "view", "True or False"),
    ],
)
def test_1_3_names_the_misconception(wrong, word):
    fails("1.3", wrong, word)


def test_1_3_accepts_numpy_as_the_judge():
    def by_numpy(shape, strides):
        base = np.zeros(5000, np.int8)
        view = np.lib.stride_tricks.as_strided(base[2000:], shape, strides)
        return np.bool_(np.shares_memory(view.reshape(-1), base))

    judge("1.3", PARTS["1.3"], by_numpy)


# ---- 1.4


def lines(offsets, itemsize, line_bytes):
    return [offset * itemsize // line_bytes for offset in offsets]


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (lambda offsets, item, line: -(-len(offsets) * item // line), "fewest lines"),
        (lambda offsets, item, line: len({offset // line for offset in offsets}), "offsets are elements"),
        (lambda offsets, item, line: len(offsets), "fetch it once"),
        (lambda offsets, item, line: max(lines(offsets, item, line)) - min(lines(offsets, item, line)) + 1, "between"),
        (lambda offsets, item, line: len(set(lines(offsets, item, 64))), "single element"),
    ],
)
def test_1_4_names_the_misconception(wrong, word):
    fails("1.4", wrong, word)


def test_1_4_accepts_numpy():
    judge("1.4", PARTS["1.4"], lambda o, item, line: np.int64(np.unique(np.array(o) * item // line).size))


# ---- 1.5


def crossing(pixels, channels, itemsize, line_bytes, base=0, past=-1):
    nbytes = channels * itemsize
    starts = [base + pixel * nbytes for pixel in range(pixels)]
    return [p for p, s in enumerate(starts) if s // line_bytes != (s + nbytes + past) // line_bytes]


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (lambda *a, base=0: crossing(*a, base=base, past=0), "right at a border"),
        (lambda *a, base=0: [], "none at all"),
        (lambda *a, base=0: crossing(*a), "look at base"),
        (lambda *a, base=0: len(crossing(*a, base=base)), "not how many"),
        (lambda *a, base=0: [p + 1 for p in crossing(*a, base=base)], "counted from 0"),
        (lambda *a, base=0: crossing(*a, base=base)[::-1], "ascending"),
        (lambda *a, base=0: [p for p in crossing(*a, base=base) if p != 5], "first byte"),
    ],
)
def test_1_5_names_the_misconception(wrong, word):
    fails("1.5", wrong, word)


@pytest.mark.parametrize("kind", [tuple, np.array, lambda found: np.array(found, dtype=np.int32)])
def test_1_5_accepts_other_right_answers(kind):
    def right(*arguments, base=0):
        found = kind(crossing(*arguments, base=base))
        return found if len(found) else []

    judge("1.5", PARTS["1.5"], right)


# ---- 1.6


def moved(storage, shape, source, target):
    result = np.empty_like(storage)
    result[Layout.dense(shape, target).offsets()] = storage[Layout.dense(shape, source).offsets()]
    return result


def with_price(read, written):
    """The right values, and a ledger that says ``read(storage)`` and ``written(storage)`` bytes."""

    def convert(storage, shape, source, target, ledger):
        ledger.record("convert", "x", "read", read(storage))
        ledger.record("convert", "x", "write", written(storage))
        return moved(storage, shape, source, target)

    return convert


def in_place(storage, shape, source, target, ledger):
    storage[:] = moved(storage, shape, source, target)
    return storage


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (with_price(lambda s: 0, lambda s: 0), "nothing was recorded"),
        (with_price(lambda s: s.size, lambda s: s.size), "number of elements"),
        (with_price(lambda s: s.nbytes, lambda s: 0), "one direction is missing"),
        (with_price(lambda s: 0, lambda s: s.nbytes), "one direction is missing"),
        (with_price(lambda s: 4 * s.size, lambda s: 4 * s.size), "in its own type"),
        (with_price(lambda s: 2 * s.nbytes, lambda s: s.nbytes), "once"),
        (lambda storage, *_: storage.copy(), "where they were"),
        (lambda storage, shape, source, target, ledger: moved(storage, shape, target, source), "other way round"),
        (lambda storage, *_: np.zeros_like(storage), "other values"),
        (lambda storage, *_: storage[::-1].copy(), "in another order"),
        (lambda storage, shape, *_: storage.reshape(shape), "flat"),
        (lambda storage, *_: storage[1:], "elements; the tensor has"),
        (in_place, "changed the storage"),
    ],
)
def test_1_6_names_the_misconception(wrong, word):
    fails("1.6", wrong, word)


def test_1_6_accepts_loops_with_an_entry_for_each_element_and_a_list():
    def with_loops(storage, shape, source, target, ledger):
        old, new = Layout.dense(shape, source), Layout.dense(shape, target)
        result = [0] * storage.size
        for index in np.ndindex(*shape):
            result[new.offset_of(*index)] = storage[old.offset_of(*index)]
            ledger.record("copy", "in", "read", storage.itemsize)
            ledger.record("copy", "out", "write", np.int64(storage.itemsize))
        return result

    judge("1.6", PARTS["1.6"], with_loops)


def test_1_6_accepts_numpys_transpose():
    def with_transpose(storage, shape, source, target, ledger: Ledger):
        stored = storage.reshape([shape["NCHW".index(axis)] for axis in source])
        for kind in ("read", "write"):
            ledger.record("transpose", "x", kind, storage.nbytes)
        return stored.transpose([source.index(axis) for axis in target]).ravel()

    judge("1.6", PARTS["1.6"], with_transpose)
