"""The guards of a source file, each with the source without it."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A file without one of its guards. ``key`` names the guard by function and source, whatever line it stands on."""

    file: str
    key: str
    line: int
    source: str


def mutants(file: str, source: str) -> list[Mutant]:
    """One for each guard; of a condition with ``or``, one for each of its operands."""
    tree = ast.parse(source)
    seen: Counter[str] = Counter()
    found = []
    for function, name in _functions(tree):
        for guard, text in _guards(function):
            key = f"{name}: {text}"
            seen[key] += 1
            key += f" #{seen[key]}" if seen[key] > 1 else ""
            found.append(Mutant(file, key, guard.lineno, _without(tree, guard)))
    return found


def _functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, str]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node, node.name
        if isinstance(node, ast.ClassDef):
            yield from ((m, f"{node.name}.{m.name}") for m in node.body if isinstance(m, ast.FunctionDef))


def _guards(function: ast.FunctionDef) -> Iterator[tuple[ast.expr, str]]:
    """The expressions that stop a rewrite: conditions of early returns and skipped turns of a loop, and what stands in
    front of the last ``or`` of a return."""
    for node in ast.walk(function):
        if isinstance(node, ast.If) and not node.orelse and _gives_up(node.body):
            for operand in _operands(node.test, ast.Or):
                yield operand, ast.unparse(operand)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.IfExp):
            if _is_none(node.value.body):
                for operand in _operands(node.value.test, ast.Or):
                    yield operand, ast.unparse(operand)
            elif _is_none(node.value.orelse):
                for operand in _operands(node.value.test, ast.And):
                    yield operand, ast.unparse(operand)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.BoolOp) and isinstance(node.value.op, ast.Or):
            for operand in node.value.values[:-1]:
                yield operand, ast.unparse(operand)


def _gives_up(body: list[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.Continue):
        return True
    if not isinstance(last, ast.Return):
        return False
    refused = isinstance(last.value, ast.Call) and ast.unparse(last.value.func) == "Refusal"
    constant = isinstance(last.value, ast.Constant) and last.value.value in (None, False)
    return last.value is None or refused or constant


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _operands(test: ast.expr, kind: type[ast.boolop]) -> list[ast.expr]:
    return list(test.values) if isinstance(test, ast.BoolOp) and isinstance(test.op, kind) else [test]


class _Removed(ast.NodeTransformer):
    """The guard replaced by what lets everything pass: False in an ``or`` or an ``if``, True in an ``and``."""

    def __init__(self, guard: tuple[int, ...]) -> None:
        self.guard = guard

    def visit_If(self, node: ast.If) -> ast.AST:
        node.test = _replace(node.test, self.guard, False)
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if isinstance(node.value, ast.IfExp):
            node.value.test = _replace(node.value.test, self.guard, _is_none(node.value.orelse))
        elif isinstance(node.value, ast.BoolOp):
            node.value = _replace(node.value, self.guard, False)
        return self.generic_visit(node)


def _place(node: ast.expr) -> tuple[int, ...]:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


def _replace(test: ast.expr, guard: tuple[int, ...], by: bool) -> ast.expr:
    if _place(test) == guard:
        return ast.copy_location(ast.Constant(by), test)
    if isinstance(test, ast.BoolOp):
        test.values = [_replace(value, guard, by) for value in test.values]
    return test


def _without(tree: ast.Module, guard: ast.expr) -> str:
    return ast.unparse(ast.fix_missing_locations(_Removed(_place(guard)).visit(copy.deepcopy(tree))))
