"""Warm-up plans a sample of the ops, and gradients."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine import Gradients, registry, warm
from engine.compiler import compiler as compiling
from engine.compiler.compiler import Compiled, CompileRequest
from tests.conftest import ROOT


def test_warmup_plans_a_sample_of_the_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[str] = []
    gradients, compile_call = [], compiling.compile_call

    def record_request(request: CompileRequest) -> Compiled:
        compiled = compile_call(request)
        planned.extend(statement.op.name for statement in request.program.statements)
        gradients.append(isinstance(request.call, Gradients))
        return compiled

    monkeypatch.setattr(compiling, "compile_call", record_request)
    warm(registry())
    assert True in gradients
    first = {name for name, op in registry().ops.items() if op.samples and op.since == 1}
    assert len(set(planned) & first) >= len(first) // 8


def test_warmup_does_not_import_scipy() -> None:
    program = "import sys; from engine import registry, warm; warm(registry()); sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
