"""What a model is typed as, and which of its faults are told; over HTTP, tests/service/web/test_models.py has more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Compiler, Deadline, DeadlineExceeded, Limits, Program, Statement, registry
from schemas.resources import PutModelRequest
from service.api.residents import Version
from service.core.errors import Refusal
from service.workers.store_tasks import PLANNED_WITH, ModelCheck, TypedModel

LIMITS = Limits()
REGISTRY = registry()


def program(*nodes: tuple[str, tuple[int, ...], dict[str, Any]]) -> Program:
    statements = [Statement(REGISTRY.ops[op], operands, attrs) for op, operands, attrs in nodes]
    return Program(REGISTRY, statements, LIMITS)


def asked(shape: list[int], *outputs: int, **more: Any) -> PutModelRequest:
    inputs = [{"name": "x", "node": 0, "dtype": "float64", "shape": shape}]
    named = [{"name": f"y{i}", "node": node} for i, node in enumerate(outputs)]
    request: Any = {"graph_id": "g", "inputs": inputs, "outputs": named, **more}
    return request  # type: ignore[no-any-return]


def typed(request: PutModelRequest, of: Program, tensors: dict[str, Any] | None = None) -> TypedModel:
    found = {name: Version("tag", array) for name, array in (tensors or {}).items()}
    return ModelCheck(request, of, LIMITS).typed(found.get, Compiler(LIMITS, 8, 1 << 20), Deadline(60.0))


SQUARE = program(("input", (), {}), ("square", (0,), {}), ("sum", (1,), {"axes": [0]}))


def test_extents_that_are_free_and_such_that_are_not() -> None:
    found = typed(asked([-1, 3, -1], 0, 1, 2), SQUARE)
    assert [output["shape"] for output in found.outputs] == [[-1, 3, -1], [-1, 3, -1], [3, -1]]


def test_an_extent_that_happens_to_be_the_one_it_is_planned_with_is_not_free() -> None:
    found = typed(asked([2, PLANNED_WITH[1]], 1), SQUARE)
    assert found.outputs[0]["shape"] == [2, 3]


def test_bound_leaves_have_the_type_of_their_tensor() -> None:
    of = program(("input", (), {}), ("parameter", (), {}), ("mul", (0, 1), {}))
    request = asked([-1, 2], 2, bound=[{"node": 1, "tensor_id": "w"}])
    found = typed(request, of, {"w": np.ones((1, 2), "float32")})
    assert found.bound == [{"node": 1, "tensor_id": "w", "dtype": "float32", "shape": [1, 2]}]
    assert found.outputs[0]["dtype"] == "float64"


def test_names_of_tensors_are_listed_once_and_only_where_they_can_be() -> None:
    bound = [{"node": i, "tensor_id": name} for i, name in enumerate(["w", "-", "w", "v"])]
    assert ModelCheck(asked([], 0, bound=bound), None, LIMITS).tensor_names == ["w", "v"]


def test_at_most_ten_faults_are_told() -> None:
    with pytest.raises(Refusal) as refused:
        typed(asked([2], *[7] * 15), SQUARE)
    assert len(refused.value.errors) == 10
    assert refused.value.errors[0].detail == refused.value.detail


def test_the_time_may_be_up_while_it_is_planned() -> None:
    check = ModelCheck(asked([2, 2], 1), SQUARE, LIMITS)
    with pytest.raises(DeadlineExceeded):
        check.typed(lambda name: None, Compiler(LIMITS, 8, 1 << 20), Deadline(0.0))
