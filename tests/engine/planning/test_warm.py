"""A process that is warm has planned every op."""

from __future__ import annotations

import pytest

from engine import registry, warm
from engine.planning import compiler as compiling


@pytest.mark.slow
def test_every_op_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    planned, compile_call = set(), compiling.compile_call

    def watched(program, *given):  # type: ignore[no-untyped-def]
        made = compile_call(program, *given)
        planned.update(statement.op.name for statement in program.statements)
        return made

    monkeypatch.setattr(compiling, "compile_call", watched)
    warm(registry())
    sampled = {name for name, op in registry().ops.items() if op.samples}
    assert sampled <= planned
