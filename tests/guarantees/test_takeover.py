"""Guarantee 18: writes succeed again within 6 s after the server that owns the state is killed."""

from __future__ import annotations

import time

import pytest

from tests.guarantees.figures import Figures
from tests.service.cluster.conftest import s3_server, shared_place
from tests.service.cluster.serving import Node, free_port, owner_of

__all__ = ["s3_server", "shared_place"]

pytestmark = pytest.mark.guarantee(18)
TENSORS, EACH = 1_000, 100


def test_writes_resume_soon_after_the_owner_is_killed(shared_place: str, figures: Figures) -> None:
    """Measure with the default lease and a thousand stored tensors."""
    nodes = [Node(shared_place, free_port()).await_start() for _ in range(2)]
    try:
        for start in range(0, TENSORS, EACH):
            _store(nodes[0], range(start, start + EACH))
        owner, other = owner_of(*nodes)
        assert other.put("w", 1).status_code < 300, "the other server knows the owner"
        owner.end()
        began = time.monotonic()
        assert other.put("w", 2).status_code < 300
        seconds = time.monotonic() - began
        assert len(_names(other)) == TENSORS + 1
        assert other.value(f"t{TENSORS - 1}") == TENSORS - 1
    finally:
        for node in nodes:
            node.end()
    name = f"first acknowledged write after `kill -9` of an owner of {TENSORS:,} tensors"
    figures.at_most(name, round(seconds, 2), 6, "s")


def _store(node: Node, numbers: range) -> None:
    """Store these numbers in one call, each under its own name."""
    nodes = [{"op": "input"}, *({"op": "add_scalar", "operands": [0], "attrs": {"scalar": float(i)}} for i in numbers)]
    store = [{"node": 1 + i, "tensor_id": f"t{number}"} for i, number in enumerate(numbers)]
    feeds = [{"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [0.0]}}]
    body = {"graph": {"nodes": nodes}, "feeds": feeds, "outputs": [], "store": store}
    assert node.asked("POST", "/v1/forward", body).status_code == 200


def _names(node: Node) -> set[str]:
    """The names of all stored tensors."""
    names: set[str] = set()
    path = "/v1/tensors"
    while path:
        listed = node.asked("GET", path).json()
        names |= {row["tensor_id"] for row in listed["tensors"]}
        path = f"/v1/tensors?after={listed['next']}" if listed.get("next") else ""
    return names
