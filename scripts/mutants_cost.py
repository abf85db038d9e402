"""Which functions only say what an op costs: their mistakes are for the laws of cost to find, and not for mutants."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ENGINE = Path(__file__).parents[1] / "engine"
COSTS = frozenset({"flops", "workspace"})


@cache
def cost_only() -> frozenset[str]:
    """The names of the functions of the engine that `flops` and `workspace` alone call, directly or not."""
    return only_for_costs(path.read_text(encoding="utf-8") for path in sorted(ENGINE.rglob("*.py")))


def only_for_costs(texts: Iterable[str]) -> frozenset[str]:
    """The same for modules of these texts. By name: one that anything else uses, wherever it is, stays out."""
    users: dict[str, set[str]] = defaultdict(set)
    defined = set()
    for name, inside in (use for text in texts for use in _uses(ast.parse(text), "")):
        users[name].add(inside)
        defined.add(inside)
    found = COSTS
    while more := {n for n in defined - found if users[n] - {n} and users[n] - {n} <= found}:
        found |= more
    return found


def _uses(node: ast.AST, inside: str, bound: frozenset[str] = frozenset()) -> Iterator[tuple[str, str]]:
    """(name that is read, innermost function around it), for attributes and for names that are not its own."""
    if isinstance(node, ast.FunctionDef):
        inside, bound = node.name, frozenset(_bound(node))
        yield "", inside
    if isinstance(node, ast.Name) and node.id not in bound:
        yield node.id, inside
    elif isinstance(node, ast.Attribute):
        yield node.attr, inside
    for child in ast.iter_child_nodes(node):
        yield from _uses(child, inside, bound)


def _bound(function: ast.FunctionDef) -> Iterator[str]:
    """Arguments and variables of a function."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
