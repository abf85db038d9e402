"""Loops that `make guarantees` attacks started servers with: refused, stopped, or answered as it is known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import Client
from tests.guarantees import loops
from tests.guarantees.known import looped
from tests.service.support import problem

JSON = {"Content-Type": "application/json"}
BOMBS = {
    name: (path, body)
    for path, bombs in (("/v1/gradients", loops.bombs), ("/v1/forward", loops.draws))
    for name, body in bombs()
}


@pytest.mark.parametrize("name", BOMBS)
def test_it_is_refused(client: Client, name: str) -> None:
    path, body = BOMBS[name]
    report = client.post(path, content=body, headers=JSON)
    code = "too_many_nodes" if "32 times" in name else "over_budget"
    problem(report, 413, code)


@pytest.mark.parametrize("nodes", [100_000, pytest.param(9_000, marks=pytest.mark.slow)])
def test_a_body_for_many_shapes_is_refused(client: Client, nodes: int) -> None:
    report = client.post("/v1/gradients", content=loops.of_many_shapes(nodes, 1000), headers=JSON)
    problem(report, 413, "too_many_nodes")


@pytest.mark.parametrize("name", loops.endless())
def test_what_takes_long_is_stopped(client: Client, name: str) -> None:
    report = client.post("/v1/forward?timeout_ms=200", content=loops.endless()[name], headers=JSON)
    problem(report, 504, "deadline_exceeded")


@pytest.mark.parametrize("seed", range(8))
def test_what_is_known_is_answered(client: Client, seed: int) -> None:
    known = looped(np.random.default_rng(seed))
    answer = client.post(known.path, content=known.body, headers=JSON)
    assert answer.status_code == 200
    assert known.is_answered_by(answer.content)
