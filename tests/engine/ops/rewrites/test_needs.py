"""What rules state that they need is what they look for: an op that is left out there would never be simplified."""

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

#: what a rule looks at besides, once it has found what it needs
BESIDES = {"sum_of_spans": {"add"}, "transpose_of_product": {"transpose"}}

RULES = {rule: op for op in registry().ops.values() for rule in op.rewrites if rule.needs is not None}
NAMES = [f"{op.name}: {rule.find.__qualname__}" for rule, op in RULES.items()]


def syntax(function: Callable[..., Any]) -> ast.AST:
    """The function by itself, a lambda as such."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    kind = ast.Lambda if function.__name__ == "<lambda>" else ast.FunctionDef
    return next(node for node in ast.walk(tree) if isinstance(node, kind) and kind_of(node, function))


def kind_of(node: ast.AST, function: Callable[..., Any]) -> bool:
    return isinstance(node, ast.Lambda) or getattr(node, "name", None) == function.__name__


def called(function: Callable[..., Any]) -> Iterator[FunctionType]:
    """What it calls by name of what its module has, and all that these call."""
    for node in ast.walk(syntax(function)):
        found = inspect.unwrap(function).__globals__.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(found, FunctionType) and found.__module__.startswith("engine.ops.rewrites"):
            yield found


def family(find: Callable[..., Any]) -> set[Callable[..., Any]]:
    """A rule and its helpers; not those that only write, or look at numbers."""
    known, waiting = set[Callable[..., Any]](), [find]
    while waiting:
        function = waiting.pop()
        if function not in known and function not in (reshaped, broadcasted, uniform_value):
            known.add(function)
            waiting += called(function)
    return known


def looked_for(find: Callable[..., Any]) -> set[str]:
    """Names of ops in its text, and in what surrounds it."""
    names = set(registry().ops)
    strings = {n.value for f in family(find) for n in ast.walk(syntax(f)) if isinstance(n, ast.Constant)}
    around = inspect.getclosurevars(find).nonlocals.values()
    return {s for s in (*strings, *around) if isinstance(s, str) and s in names}


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_rule_needs_the_ops_that_it_looks_for(rule: RewriteRule) -> None:
    assert rule.needs is not None
    assert looked_for(rule.find) == rule.needs | BESIDES.get(rule.find.__name__, set())


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_rule_needs_a_number_where_it_looks_for_one(rule: RewriteRule) -> None:
    assert rule.needs_number is (uniform_value in called(rule.find))


def test_the_rules_are_there() -> None:
    assert len(RULES) > 15


def test_ops_say_what_may_be_one_number() -> None:
    """In these a chain is looked through: more of them would have rules find more, and change the bits of results."""
    assert {op.name for op in registry().ops.values() if op.may_be_constant} == {"full", "broadcast_to", "reshape"}
    assert {op.name for op in registry().ops.values() if op.propagates_constant} == {"broadcast_to", "reshape"}
