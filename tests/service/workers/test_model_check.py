"""Types of models and errors in them; tests/service/web/test_models.py tests more over HTTP."""

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


def model_request(shape: list[int], *outputs: int, **more: Any) -> PutModelRequest:
    inputs = [{"name": "x", "node": 0, "dtype": "float64", "shape": shape}]
    named = [{"name": f"y{i}", "node": node} for i, node in enumerate(outputs)]
    request: Any = {"graph_id": "g", "inputs": inputs, "outputs": named, **more}
    return request  # type: ignore[no-any-return]


def check_model(request: PutModelRequest, graph: Program, tensors: dict[str, Any] | None = None) -> TypedModel:
    versions = {name: Version("tag", array) for name, array in (tensors or {}).items()}
    return ModelCheck(request, graph, LIMITS).typed(versions.get, Compiler(LIMITS, 8, 1 << 20), Deadline(60.0))


SQUARE = program(("input", (), {}), ("square", (0,), {}), ("sum", (1,), {"axes": [0]}))


def test_free_and_fixed_extents() -> None:
    model = check_model(model_request([-1, 3, -1], 0, 1, 2), SQUARE)
    assert [output["shape"] for output in model.outputs] == [[-1, 3, -1], [-1, 3, -1], [3, -1]]


def test_fixed_extent_equal_to_a_probe_is_not_free() -> None:
    model = check_model(model_request([2, PLANNED_WITH[1]], 1), SQUARE)
    assert model.outputs[0]["shape"] == [2, 3]


def test_bound_leaves_have_the_type_of_their_tensor() -> None:
    graph = program(("input", (), {}), ("parameter", (), {}), ("mul", (0, 1), {}))
    request = model_request([-1, 2], 2, bound=[{"node": 1, "tensor_id": "w"}])
    model = check_model(request, graph, {"w": np.ones((1, 2), "float32")})
    assert model.bound == [{"node": 1, "tensor_id": "w", "dtype": "float32", "shape": [1, 2]}]
    assert model.outputs[0]["dtype"] == "float64"


def test_valid_tensor_names_are_listed_once() -> None:
    bound = [{"node": i, "tensor_id": name} for i, name in enumerate(["w", "-", "w", "v"])]
    assert ModelCheck(model_request([], 0, bound=bound), None, LIMITS).tensor_names == ["w", "v"]


def test_at_most_ten_errors_are_reported() -> None:
    with pytest.raises(Refusal) as refused:
        check_model(model_request([2], *[7] * 15), SQUARE)
    assert len(refused.value.errors) == 10
    assert refused.value.errors[0].detail == refused.value.detail


def test_check_respects_its_deadline() -> None:
    check = ModelCheck(model_request([2, 2], 1), SQUARE, LIMITS)
    with pytest.raises(DeadlineExceeded):
        check.typed(lambda name: None, Compiler(LIMITS, 8, 1 << 20), Deadline(0.0))
