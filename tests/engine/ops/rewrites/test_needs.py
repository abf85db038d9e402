"""Rules declare the ops that they look for: an op that is missing there would never be simplified."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest

from engine import registry
from engine.ir.op import RewriteRule
from engine.ops.rewrites import broadcasted, reshaped, uniform_value

#: other ops that a rule looks at, once it has found those that it needs
OTHER_OPS = {"sum_of_spans": {"add"}, "transpose_of_product": {"transpose"}}

RULES = {rule: op for op in registry().ops.values() for rule in op.rewrites if rule.needs is not None}
NAMES = [f"{op.name}: {rule.find.__qualname__}" for rule, op in RULES.items()]


def syntax(function: Callable[..., Any]) -> ast.AST:
    """The syntax tree of a function or a lambda."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    kind = ast.Lambda if function.__name__ == "<lambda>" else ast.FunctionDef
    return next(node for node in ast.walk(tree) if isinstance(node, kind) and is_definition_of(node, function))


def is_definition_of(node: ast.AST, function: Callable[..., Any]) -> bool:
    return isinstance(node, ast.Lambda) or getattr(node, "name", None) == function.__name__


def called(function: Callable[..., Any]) -> Iterator[FunctionType]:
    """The functions of the rules' own modules that it calls by name."""
    for node in ast.walk(syntax(function)):
        value = inspect.unwrap(function).__globals__.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(value, FunctionType) and value.__module__.startswith("engine.ops.rewrites"):
            yield value


def family(find: Callable[..., Any]) -> set[Callable[..., Any]]:
    """A rule and its helpers, except those that only write nodes or look at numbers."""
    visited, waiting = set[Callable[..., Any]](), [find]
    while waiting:
        function = waiting.pop()
        if function not in visited and function not in (reshaped, broadcasted, uniform_value):
            visited.add(function)
            waiting += called(function)
    return visited


def looked_for(find: Callable[..., Any]) -> set[str]:
    """Names of ops in its source and in its closure."""
    names = set(registry().ops)
    strings = {n.value for f in family(find) for n in ast.walk(syntax(f)) if isinstance(n, ast.Constant)}
    closure = inspect.getclosurevars(find).nonlocals.values()
    return {s for s in (*strings, *closure) if isinstance(s, str) and s in names}


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_rule_declares_the_ops_that_it_looks_for(rule: RewriteRule) -> None:
    assert rule.needs is not None
    assert looked_for(rule.find) == rule.needs | OTHER_OPS.get(rule.find.__name__, set())


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_rule_declares_whether_it_looks_for_a_number(rule: RewriteRule) -> None:
    assert rule.needs_number is (uniform_value in called(rule.find))


def test_rules_are_registered() -> None:
    assert len(RULES) > 15


def test_ops_that_may_be_constant() -> None:
    """Rules look through chains of these; with more of them, rules would find more and change the bits of results."""
    assert {op.name for op in registry().ops.values() if op.may_be_constant} == {"full", "broadcast_to", "reshape"}
    assert {op.name for op in registry().ops.values() if op.propagates_constant} == {"broadcast_to", "reshape"}
