"""A process that is warm has planned a sample of the ops, and gradients."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine import Gradients, registry, warm
from engine.compiler import compiler as compiling
from engine.compiler.compiler import Compiled, CompileRequest
from tests.conftest import ROOT


def test_a_sample_of_the_ops_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[str] = []
    gradients, compile_call = [], compiling.compile_call

    def watched(request: CompileRequest) -> Compiled:
        made = compile_call(request)
        planned.extend(statement.op.name for statement in request.program.statements)
        gradients.append(isinstance(request.call, Gradients))
        return made

    monkeypatch.setattr(compiling, "compile_call", watched)
    warm(registry())
    assert True in gradients
    first = {name for name, op in registry().ops.items() if op.samples and op.since == 1}
    assert len(set(planned) & first) >= len(first) // 8


def test_nothing_is_loaded_that_a_worker_may_never_need() -> None:
    program = "import sys; from engine import registry, warm; warm(registry()); sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
