"""Jumps: who reads a call finds what it does there, and not a method that only calls another one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.architecture.source import Function, files, name, parsed

PACKAGES = ("engine", "service")
#: methods that only call another one, and why they are there all the same
ALLOWED: dict[str, str] = {
    "service/fleet/node.py:NodeReplica.check_health": "Ray Serve asks by this name",
    "service/fleet/node.py:NodeReplica.record_autoscaling_stats": "Ray Serve asks by this name",
    "service/state/fence.py:Fence.open": "who asks the fence need not know that a journal holds a place",
    "service/state/surroundings.py:Surroundings.sleep": "the simulation has another clock in its place",
    "service/state/surroundings.py:Surroundings.today": "as above",
}


class Defined(NamedTuple):
    """A class, and the file that it is in."""

    path: str
    node: ast.ClassDef

    def __str__(self) -> str:
        return f"{self.path}:{self.node.name}"


@cache
def classes() -> tuple[Defined, ...]:
    """Every class of the packages."""
    found = ((path, node) for path in files(*PACKAGES) for node in ast.walk(parsed(path)))
    return tuple(Defined(name(path), node) for path, node in found if isinstance(node, ast.ClassDef))


@cache
def classes_by_file() -> dict[str, list[Defined]]:
    """For each file, the classes in it."""
    found: dict[str, list[Defined]] = defaultdict(list)
    for defined in classes():
        found[defined.path].append(defined)
    return found


def bases(node: ast.ClassDef) -> set[str]:
    """The names of its base classes, without what they are generic in."""
    plain = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in plain}


def methods(node: ast.ClassDef) -> list[Function]:
    return [each for each in node.body if isinstance(each, Function)]


@cache
def members() -> dict[str, frozenset[str]]:
    """For each class, the methods and attributes that it and those above it declare."""
    own: dict[str, set[str]] = defaultdict(set)
    above: dict[str, set[str]] = defaultdict(set)
    for _, node in classes():
        own[node.name] |= {method.name for method in methods(node)} | attributes(node)
        above[node.name] |= bases(node)

    def reached(class_name: str, seen: frozenset[str] = frozenset()) -> set[str]:
        higher = above.get(class_name, set()) - seen
        return own.get(class_name, set()).union(*(reached(each, seen | {class_name}) for each in higher))

    return {class_name: frozenset(reached(class_name)) for class_name in own}


def attributes(node: ast.ClassDef) -> set[str]:
    """What is assigned in a class's body, and to the object in its methods."""
    targets = [target for each in ast.walk(node) for target in targets_of(each)]
    plain = {each.id for statement in node.body for each in targets_of(statement) if isinstance(each, ast.Name)}
    return plain | {each.attr for each in targets if isinstance(each, ast.Attribute)}


def targets_of(node: ast.AST) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []


def required(node: ast.ClassDef) -> set[str]:
    """Methods that a class has to have: those of the classes above and below it, and of every protocol that it fits."""
    below = {each.name for _, each in classes() if node.name in bases(each)}
    found = set[str]().union(*(members().get(each, ()) for each in bases(node)))
    found |= {method.name for _, each in classes() if each.name in below for method in methods(each)}
    protocols = {each.name for _, each in classes() if "Protocol" in bases(each)}
    return found.union(*(members()[each] for each in protocols if members()[each] <= members()[node.name]))


def is_jump(method: Function) -> bool:
    """Whether all that a method does is to call another one with its own arguments, in their order."""
    body = method.body[ast.get_docstring(method) is not None :]
    if len(body) != 1 or not isinstance(body[0], ast.Expr | ast.Return):
        return False
    call = body[0].value.value if isinstance(body[0].value, ast.Await) else body[0].value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    return is_a_path(call.func) and passed(call) == taken(method)


def is_a_path(node: ast.expr) -> bool:
    """Whether it is a name with attributes, such as self._pool.submit."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and is_a_path(node.value))


def taken(method: Function) -> list[str]:
    """Its parameters but for the first, which is the object: those by name with it."""
    stated = method.args
    plain = [each.arg for each in (*stated.posonlyargs, *stated.args)][1:]
    rest = [f"*{stated.vararg.arg}"] if stated.vararg else []
    named = [f"{each.arg}=" for each in stated.kwonlyargs]
    return [*plain, *rest, *named, *([f"**{stated.kwarg.arg}"] if stated.kwarg else [])]


def passed(call: ast.Call) -> list[str | None]:
    """The names that a call passes on; None for whatever is no name."""
    plain = [f"*{shown(each.value)}" if isinstance(each, ast.Starred) else shown(each) for each in call.args]
    return [*plain, *(by_name(each) for each in call.keywords)]


def by_name(keyword: ast.keyword) -> str | None:
    value = shown(keyword.value)
    if keyword.arg is None:
        return f"**{value}"
    return f"{keyword.arg}=" if value == keyword.arg else None


def shown(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def jumps(defined: Defined) -> Iterator[str]:
    for method in methods(defined.node):
        if not method.name.startswith("_") and is_jump(method) and method.name not in required(defined.node):
            yield f"{defined}.{method.name}"


@pytest.mark.slow
@pytest.mark.parametrize("path", files(*PACKAGES), ids=name)
def test_no_method_only_calls_another(path: Path) -> None:
    inside = classes_by_file().get(name(path), [])
    assert not [each for defined in inside for each in jumps(defined) if each not in ALLOWED]


@pytest.mark.slow
def test_what_is_allowed_is_there() -> None:
    assert {*ALLOWED} <= {each for defined in classes() for each in jumps(defined)}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(self, a, b):\n    'Says so.'\n    return self.other(a, b)", True),
        ("async def f(self, a):\n    await self._part.part.other(a)", True),
        ("def f(self):\n    self._other()", True),
        ("def f(self, *a, b, **c):\n    return self.x.f(*a, b=b, **c)", True),
        ("def f(self, a, b):\n    return self.other(b, a)", False),
        ("def f(self, a):\n    return self.other(a, 1)", False),
        ("def f(self, a):\n    return self.other(a)[0]", False),
        ("def f(self, a):\n    return other(a)", False),
        ("def f(self, a):\n    return self.kind().other(a)", False),
        ("def f(self, a):\n    a += 1\n    return self.other(a)", False),
    ],
)
def test_the_measure_itself(source: str, found: bool) -> None:
    (method,) = ast.parse(source).body
    assert isinstance(method, Function)
    assert is_jump(method) == found
