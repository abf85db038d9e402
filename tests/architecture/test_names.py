"""Names of functions: what many of them do, to read, to write, to take and to run, they say of what."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.source import PACKAGES, Function, files, name, parsed

BARE = frozenset({"read", "run", "take", "write"})
#: one concept, a plan that is run on what is fed to it; and why each class has it under this name
ALLOWED = {
    "engine/executors/interpreter.py:Executor.run": "an executor runs plans, as a session of ONNX Runtime does",
    "engine/executors/cupy_backend.py:CuPyExecutor.run": "the same, on a card",
    "engine/executors/instance_pool.py:ReadyPlan.run": "a plan that is ready is what is run",
    "engine/executors/prepared_plan.py:PreparedPlan.run": "a ready plan",
    "engine/executors/cuda_prepared_plan.py:CudaPreparedPlan.run": "the same, on a card",
}


def bare(scope: ast.AST, inside: str = "") -> list[str]:
    """Functions and methods of a scope, nested ones with it, that are named by such a verb alone."""
    found = []
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, Function | ast.ClassDef):
            named = f"{inside}{node.name}"
            found += [named] if isinstance(node, Function) and node.name.removeprefix("_") in BARE else []
            found += bare(node, f"{named}.")
        else:
            found += bare(node, inside)
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_says_what_is_read_written_taken_or_run(package: str) -> None:
    found = {f"{name(path)}:{each}" for path in files(package) for each in bare(parsed(path))}
    assert found == {each for each in ALLOWED if each.startswith(f"{package}/")}


def test_bare_names_are_found() -> None:
    shown = "def read(): pass\nclass A:\n def _take(self):\n  if 1:\n   def write(): pass\n def read_all(self): pass"
    assert bare(ast.parse(shown)) == ["read", "A._take", "A._take.write"]
