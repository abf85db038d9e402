"""Cost of plan keys: each attribute is hashed once, and a cached plan needs no graph id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import Compiler, Limits, Program, Statement, TensorType, graph_id, open_executor, registry
from engine.ir import program as identity
from engine.ir.attributes import key
from tests.engine.compiler.test_planning_costs import steps_of

TYPES = {0: TensorType((4,), np.dtype("float64"))}


def line(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().ops[op], operands, attrs)


def with_constant() -> Program:
    return Program(registry(), [line("parameter"), line("constant", value=np.arange(4.0)), line("mul", 0, 1)])


@pytest.mark.slow
@pytest.mark.parametrize("name", [graph_id, lambda program: program.digest], ids=["graph_id", "digest"])
def test_long_list_is_hashed_in_bulk(name: Callable[[Program], object]) -> None:
    program = Program(registry(), [line("parameter"), line("gather", 0, indices=[0, 1] * 5000)])
    assert steps_of(lambda: name(program)) < 1000


def test_tensor_is_hashed_once_for_digest_and_once_for_graph_id(monkeypatch: pytest.MonkeyPatch) -> None:
    dense, real = list[int](), np.ascontiguousarray

    def counting(array: Any, *dtype: Any) -> Any:
        dense.append(array.nbytes)
        return real(array, *dtype)

    program = with_constant()
    monkeypatch.setattr(np, "ascontiguousarray", counting)
    assert program.digest == program.digest
    assert dense == [32]
    graph_id(program)
    assert dense == [32, 32]


def test_program_copies_writable_constants() -> None:
    value = np.arange(4.0)
    lines = [line("parameter"), line("constant", value=value), line("mul", 0, 1)]
    program, compiler = Program(registry(), lines), Compiler(Limits())
    compiler.forward(program, TYPES)
    value[:] = 100
    compiler.forward(program, TYPES, [1])
    compiled = compiler.forward(with_constant(), TYPES, [1])
    assert compiled.cached
    assert open_executor("cpu").run(compiled.plan, {})[0].tolist() == [0, 1, 2, 3]


def test_read_only_constant_is_not_copied() -> None:
    value = np.arange(4.0)
    value.flags.writeable = False
    assert Program(registry(), [line("constant", value=value)]).attrs[0]["value"] is value


def test_cached_plan_computes_no_graph_id(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = Compiler(Limits())
    with monkeypatch.context() as patch:
        patch.setattr(identity, "graph_id", lambda _: pytest.fail("nobody has asked for it"))
        first = compiler.forward(with_constant(), TYPES)
    assert first.name.get(with_constant()) == graph_id(with_constant())
    monkeypatch.setattr(identity, "graph_id", lambda _: pytest.fail("the plan is known, and its name"))
    assert compiler.forward(with_constant(), TYPES).name.get(with_constant()) == graph_id(with_constant())


def test_keys_of_lists_distinguish_types_and_bits() -> None:
    values: list[Any] = [(), (1,), (True,), (1.0,), (0.0,), (-0.0,), (1, 2), (12,), ((1,), 2), (None,), ("1",), 1, True]
    assert len({key(value) for value in values}) == len(values)
    assert key((1, 2)) == key((1, 2))
