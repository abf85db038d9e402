"""Shares of the stores: a namespace neither uses up the room of another nor learns about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.core.keys.caller import new_key
from tests.service.core.keys.cases import record, write

GREEDY, MODEST, STATED = new_key(), new_key(), new_key()
VECTOR = {"dtype": "float64", "shape": [2], "data": [1, 2]}
LIMITS = {"max_tensors": 8, "max_graphs": 8, "max_answers": 8}


class Caller:
    """Client with a key that stores items one by one."""

    def __init__(self, client: Any, key: str) -> None:
        self._client = client
        self._key = {"Authorization": f"Bearer {key}"}

    def tensor(self, number: int) -> Any:
        return self._client.request("PUT", f"/v1/tensors/t{number}", json=VECTOR, headers=self._key)

    def graph(self, number: int) -> Any:
        nodes = [{"op": "input"}, {"op": "mul_scalar", "operands": [0], "attrs": {"scalar": number}}]
        return self._client.post("/v1/graphs", json={"graph": {"nodes": nodes}}, headers=self._key)

    def answer(self, number: int) -> Any:
        """Write the same tensor with a new Idempotency-Key, so that only the answer needs room."""
        headers = {**self._key, "Idempotency-Key": f"k{number}"}
        return self._client.request("PUT", "/v1/tensors/same", json=VECTOR, headers=headers)

    def fill(self, kind: str) -> list[int]:
        """Store ten items and return the statuses."""
        return [getattr(self, kind)(number).status_code for number in range(10)]


@pytest.fixture
def callers(make_client: Callable[..., Any], tmp_path: Path) -> tuple[Caller, Caller, Caller]:
    keys = [record("greedy", GREEDY), record("modest", MODEST), record("stated", STATED, max_tensors=3, max_graphs=1)]
    client = make_client(keys_file=write(tmp_path / "keys.json", keys), **LIMITS)
    greedy, modest, stated = (Caller(client, key) for key in (GREEDY, MODEST, STATED))
    return greedy, modest, stated


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tensor", "graph", "answer"])
def test_namespace_cannot_fill_the_whole_store(callers: tuple[Caller, Caller, Caller], kind: str) -> None:
    greedy, modest, _ = callers
    assert [status < 300 for status in greedy.fill(kind)] == [True] * 2 + [False] * 8  # a quarter of eight
    refused = getattr(greedy, kind)(10)
    assert refused.status_code == 507
    assert refused.json()["detail"].startswith("your namespace already stores 2 ")
    assert [status < 300 for status in modest.fill(kind)] == [True] * 2 + [False] * 8


def test_key_may_set_its_own_share(callers: tuple[Caller, Caller, Caller]) -> None:
    *_, stated = callers
    assert sum(status < 300 for status in stated.fill("tensor")) == 3
    assert sum(status < 300 for status in stated.fill("graph")) == 1


def test_full_store_does_not_reveal_other_namespaces(make_client: Callable[..., Any], tmp_path: Path) -> None:
    keys = [record(f"key{i}", key) for i, key in enumerate((GREEDY, MODEST, STATED))]
    client = make_client(keys_file=write(tmp_path / "keys.json", keys), namespace_share=50, max_tensors=4)
    for key in (GREEDY, MODEST):
        Caller(client, key).fill("tensor")
    refused = Caller(client, STATED).tensor(0)
    assert refused.status_code == 507
    assert not re.search("[0-9]", refused.json()["detail"])


def test_without_keys_there_is_one_namespace(make_client: Callable[..., Any]) -> None:
    assert sum(status < 300 for status in Caller(make_client(**LIMITS), "").fill("tensor")) == 8
