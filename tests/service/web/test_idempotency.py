"""Calls repeated with an Idempotency-Key: they get the first answer and run once."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import httpx
import pytest

from service.web.tensor_routes import TENSORS
from tests.conftest import Client
from tests.service.support import node, problem, request, tensor
from tests.service.web.tensors_support import VECTOR, put, step, value


@pytest.fixture
def client(empty_client: Client) -> Client:
    """A client of an empty server."""
    return empty_client


@pytest.fixture
def key() -> dict[str, str]:
    """A new key."""
    return {"Idempotency-Key": uuid4().hex}


def test_repeated_step_runs_once(client: Client, key: dict[str, str]) -> None:
    put(client, "w")
    first = client.post("/v1/forward", json=step(), headers=key)
    second = client.post("/v1/forward", json=step(), headers=key)
    assert value(client, "w") == [-1.5, 2.0]
    assert (first.content, first.status_code) == (second.content, second.status_code)
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    assert client.post("/v1/forward", json=step(), headers={"Idempotency-Key": "step-2"}).status_code == 200
    assert value(client, "w") == [1.5, -2.0]


def test_repeated_put_and_delete(client: Client) -> None:
    put(client, "v")
    calls: list[Callable[[], httpx.Response]] = [
        lambda: put(client, "w", headers={"Idempotency-Key": "a"}),
        lambda: client.request("DELETE", f"{TENSORS}/v", headers={"Idempotency-Key": "b"}),
    ]
    for call in calls:
        first, second = call(), call()
        assert first.status_code == second.status_code
        assert first.content == second.content
        assert first.headers.get("etag") == second.headers.get("etag")
        assert second.headers["idempotency-replayed"] == "true"


def test_repeated_registration(client: Client, key: dict[str, str]) -> None:
    body = {"graph": {"nodes": [node("full")]}}
    first = client.post("/v1/graphs", json=body, headers=key)
    client.request("DELETE", f"/v1/graphs/{first.json()['graph_id']}")
    second = client.post("/v1/graphs", json=body, headers=key)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.headers["location"] == first.headers["location"]
    problem(client.get(first.headers["location"]), 404, "not_found")


def test_same_key_for_another_request_is_refused(client: Client, key: dict[str, str]) -> None:
    put(client, "w", headers=key)
    for answer in (
        put(client, "w", tensor([], [1.0]), headers=key),
        put(client, "v", headers=key),
        put(client, "w?durable=false", headers=key),
        client.request("DELETE", f"{TENSORS}/w", headers=key),
        client.post("/v1/forward", json=step(), headers=key),
    ):
        problem(answer, 422, "invalid_field")
    assert value(client, "w") == VECTOR["data"]


def test_other_timeout_is_the_same_request(client: Client, key: dict[str, str]) -> None:
    put(client, "w")
    first = client.post("/v1/forward?timeout_ms=20000", json=step(), headers=key)
    assert first.status_code == 200
    for query in ("timeout_ms=15000", "", "timeout%5Fms=9000"):
        again = client.post(f"/v1/forward?{query}", json=step(), headers=key)
        assert (again.content, again.headers.get("idempotency-replayed")) == (first.content, "true")
    assert value(client, "w") == [-1.5, 2.0]


def test_other_query_is_another_request(client: Client, key: dict[str, str]) -> None:
    first = put(client, "w?durable=false&timeout_ms=20000", headers=key)
    again = put(client, "w?timeout_ms=15000&durable=false", headers=key)
    assert (again.content, again.headers.get("idempotency-replayed")) == (first.content, "true")
    for query in ("timeout_ms=20000", "durable=true&timeout_ms=20000", ""):
        problem(put(client, f"w?{query}", headers=key), 422, "invalid_field")


def test_failed_call_runs_again(client: Client, key: dict[str, str]) -> None:
    problem(client.post("/v1/forward", json=step(), headers=key), 404, "not_found")
    put(client, "w")
    again = client.post("/v1/forward", json=step(), headers=key)
    assert again.status_code == 200
    assert "idempotency-replayed" not in again.headers


def test_failed_condition_is_not_recorded(client: Client, key: dict[str, str]) -> None:
    problem(put(client, "w", headers={**key, "If-Match": "*"}), 412, "precondition_failed")
    put(client, "w")
    assert put(client, "w", headers={**key, "If-Match": "*"}).status_code == 200


@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 256, "a\tb"])
def test_invalid_key_is_refused(client: Client, key: str) -> None:
    problem(put(client, "w", headers={"Idempotency-Key": key.encode("latin-1")}), 422, "invalid_field")
    assert value(client, "w") is None


def test_two_keys_are_refused(client: Client) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    problem(put(client, "w", headers=headers), 422, "invalid_field")


def test_answer_too_long_to_record_is_refused(client: Client, key: dict[str, str]) -> None:
    body = request(node("full", shape=[300_000]), store=[{"node": 0, "tensor_id": "w"}])
    problem(client.post("/v1/forward", json=body, headers=key), 413, "over_budget")
    assert value(client, "w") is None
    assert client.post("/v1/forward", json={**body, "outputs": [0]}).status_code == 200


@pytest.mark.slow
def test_large_body_is_fingerprinted(client: Client, key: dict[str, str]) -> None:
    large, other = tensor([300_000], [1.0] * 300_000), tensor([300_000], [1.0] * 299_999 + [2.0])
    assert put(client, "w", large, headers=key).status_code == 201
    assert put(client, "w", large, headers=key).headers["idempotency-replayed"] == "true"
    problem(put(client, "w", other, headers=key), 422, "invalid_field")


def test_number_of_recorded_answers_is_limited(make_client: Callable[..., Client]) -> None:
    client = make_client(max_answers=1)
    assert put(client, "w", headers={"Idempotency-Key": "a"}).status_code == 201
    problem(put(client, "v", headers={"Idempotency-Key": "b"}), 507, "store_full")
    assert value(client, "v") is None


def test_replay_works_after_the_graph_is_deleted(client: Client, key: dict[str, str]) -> None:
    put(client, "w")
    body = step()
    graph_id = client.post("/v1/graphs", json={"graph": body.pop("graph")}).json()["graph_id"]
    path = f"/v1/graphs/{graph_id}/forward"
    first = client.post(path, json=body, headers=key)
    client.request("DELETE", f"/v1/graphs/{graph_id}")
    assert client.post(path, json=body, headers=key).content == first.content
    problem(client.post(path, json=body, headers={"Idempotency-Key": uuid4().hex}), 404, "not_found")
