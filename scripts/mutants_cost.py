"""Functions that only compute an op's cost. Their faults are left to the laws of cost, and get no mutants."""

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
    """Return the names of the engine's functions that only `flops` and `workspace` call, directly or indirectly."""
    return only_for_costs(path.read_text(encoding="utf-8") for path in sorted(ENGINE.rglob("*.py")))


def only_for_costs(texts: Iterable[str]) -> frozenset[str]:
    """Return the names of functions that only cost functions call, in modules of these texts.

    A name that anything else uses, anywhere, is excluded.
    """
    users: dict[str, set[str]] = defaultdict(set)
    defined = set()
    for name, inside in (use for text in texts for use in _uses(ast.parse(text), "")):
        users[name].add(inside)
        defined.add(inside)
    cost_names = COSTS
    while further := {n for n in defined - cost_names if users[n] - {n} and users[n] - {n} <= cost_names}:
        cost_names |= further
    return cost_names


def _uses(node: ast.AST, inside: str, bound: frozenset[str] = frozenset()) -> Iterator[tuple[str, str]]:
    """Yield (name read, innermost function around it) for attributes, and for names that the function does not bind."""
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
    """Yield the arguments and variables of a function."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
