"""Loops that `make guarantees` sends to started servers: refused, stopped, or answered correctly."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import Client
from tests.guarantees import loops
from tests.guarantees.known import looped
from tests.service.support import problem

JSON = {"Content-Type": "application/json"}
OVERSIZED = {
    name: (path, body)
    for path, cases in (("/v1/gradients", loops.oversized), ("/v1/forward", loops.large_draws))
    for name, body in cases()
}


@pytest.mark.parametrize("name", OVERSIZED)
def test_oversized_loop_is_refused(client: Client, name: str) -> None:
    path, body = OVERSIZED[name]
    response = client.post(path, content=body, headers=JSON)
    code = "too_many_nodes" if "32 times" in name else "over_budget"
    problem(response, 413, code)


@pytest.mark.parametrize("nodes", [100_000, pytest.param(9_000, marks=pytest.mark.slow)])
def test_body_of_many_shapes_is_refused(client: Client, nodes: int) -> None:
    response = client.post("/v1/gradients", content=loops.of_many_shapes(nodes, 1000), headers=JSON)
    problem(response, 413, "too_many_nodes")


@pytest.mark.parametrize("name", loops.endless())
def test_endless_loop_is_stopped_at_its_deadline(client: Client, name: str) -> None:
    response = client.post("/v1/forward?timeout_ms=200", content=loops.endless()[name], headers=JSON)
    problem(response, 504, "deadline_exceeded")


@pytest.mark.parametrize("seed", range(8))
def test_loop_matches_its_closed_form(client: Client, seed: int) -> None:
    case = looped(np.random.default_rng(seed))
    answer = client.post(case.path, content=case.body, headers=JSON)
    assert answer.status_code == 200
    assert case.is_answered_by(answer.content)
