"""Retries: failures, waits and keys, with scripted replies and a clock that only waiting advances."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

import gradserve_client as gs
from clients.python.tests.scripted import FORWARD, GRAPH, STORED, Clock, answer, problem, scripted_client, square

LOST = httpx.ReadError("the connection was lost")


@pytest.mark.parametrize(
    "reply",
    [
        LOST,
        httpx.ConnectError("nobody listens"),
        httpx.RemoteProtocolError("half an answer"),
        problem(408, "request_timeout"),
        problem(429, "rate_limited"),
        problem(503, "queue_full"),
        problem(503, "worker_died"),
        problem(503, "a_code_of_tomorrow"),
        problem(409, "conflict", 0),
        httpx.Response(503, text="a page of a proxy"),
    ],
)
def test_transient_failures_are_retried(reply: Any) -> None:
    client, script, clock = scripted_client([reply, answer(200, FORWARD)])
    graph, w, _ = square()
    assert client.forward(graph, {w: 3.0}).value == 9
    assert clock.waits == [0.375]
    assert script.received[0].content == script.received[1].content


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (problem(504, "deadline_exceeded", 1), gs.DeadlineRefusal),
        (problem(409, "conflict"), gs.ConditionError),
        (problem(422, "shape_mismatch"), gs.GraphError),
        (problem(500, "internal_error", 1), gs.ServerError),
        (problem(507, "store_full", 1), gs.StoreFullError),
        (problem(401, "unauthenticated"), gs.AuthenticationError),
        (answer(302, None, Location="/elsewhere"), gs.MalformedAnswer),
        (httpx.Response(200, text="a page"), gs.MalformedAnswer),
        (httpx.Response(200, content=b"{", headers={"Content-Type": "application/json"}), gs.MalformedAnswer),
    ],
)
def test_permanent_failures_are_not_retried(reply: Any, kind: type[gs.GradserveError]) -> None:
    client, script, clock = scripted_client([reply])
    with pytest.raises(kind):
        client.forward(square()[0])
    assert (len(script.received), clock.waits) == (1, [])


@pytest.mark.parametrize(("chance", "waits"), [(0.0, [0.25, 0.5]), (1.0, [0.5, 1.0])])
def test_two_retries_with_jitter_by_default(chance: float, waits: list[float]) -> None:
    clock = Clock()
    client, script, _ = scripted_client([LOST] * 3, clock, surroundings=clock.surroundings(chance))
    with pytest.raises(gs.ConnectionFailed):
        client.forward(square()[0])
    assert (len(script.received), clock.waits) == (3, waits)


def test_waits_grow_to_a_bound() -> None:
    client, _, clock = scripted_client([LOST] * 7, retries=6)
    with pytest.raises(gs.ConnectionFailed):
        client.forward(square()[0])
    assert clock.waits == [0.375, 0.75, 1.5, 3, 6, 6]


@pytest.mark.parametrize(("stated", "wait"), [("3", 3), ("0", 0.375), ("1.5", 0.375), ("-2", 0.375), ("3s", 0.375)])
def test_retry_after_in_whole_seconds_extends_the_wait(stated: str, wait: float) -> None:
    refused = answer(503, {"status": 503, "code": "queue_full"}, Retry_After=stated)
    client, _, clock = scripted_client([refused, answer(200, FORWARD)])
    client.forward(square()[0])
    assert clock.waits == [wait]


def test_second_worker_death_ends_the_retries() -> None:
    died = problem(503, "worker_died", 0)
    client, script, _ = scripted_client([died, problem(503, "queue_full"), died, answer(200, FORWARD)], retries=5)
    with pytest.raises(gs.OverloadError, match="worker_died"):
        client.forward(square()[0])
    assert len(script.received) == 3


def test_tries_share_a_deadline_and_send_the_remaining_time() -> None:
    client, script, _ = scripted_client([LOST, problem(503, "queue_full", 2), answer(200, FORWARD)], timeout=5)
    client.forward(square()[0])
    assert [request.url.params["timeout_ms"] for request in script.received] == ["5000", "4625", "2625"]


@pytest.mark.parametrize(("timeout", "tries"), [(0.375, 1), (0.376, 2)])
def test_wait_up_to_the_deadline_is_not_started(timeout: float, tries: int) -> None:
    client, script, _ = scripted_client([LOST] * 3, timeout=timeout)
    with pytest.raises(gs.ConnectionFailed):
        client.forward(square()[0])
    assert len(script.received) == tries


def test_read_timeout_is_a_deadline_error() -> None:
    client, _, _ = scripted_client([httpx.ReadTimeout("")], timeout=5)
    with pytest.raises(gs.DeadlineError, match="no response within 5 s"):
        client.forward(square()[0])


@pytest.mark.parametrize(
    "act",
    [
        lambda client: client.put("w", 1.0),
        lambda client: client.register(square()[0]),
        lambda client: client.delete("w"),
        lambda client: [*client.tensors()],
        lambda client: [*client.graphs()],
        lambda client: client.ops(),
    ],
)
def test_timeout_is_sent_with_every_request(act: Any) -> None:
    client, script, _ = scripted_client([answer(200, {**STORED, **GRAPH, "tensors": [], "graphs": []})], timeout=5)
    act(client)
    assert "timeout_ms" in script.received[0].url.params


def test_call_may_set_its_own_timeout() -> None:
    client, script, _ = scripted_client([answer(200, FORWARD)], timeout=5)
    client.forward(square()[0], timeout=2)
    assert script.received[0].url.params["timeout_ms"] == "2000"


STORE = lambda client: client.forward(square()[0], store={1: "w"})
WRITES = {
    "store": (STORE, FORWARD),
    "delete": (lambda client: client.delete("w"), STORED),
    "unregister": (lambda client: client.unregister("ab" * 32), GRAPH),
    "put on a condition": (lambda client: client.put("w", 1.0, if_none_match="*"), STORED),
}


@pytest.mark.parametrize("write", WRITES)
def test_writes_are_retried_under_one_key(write: str) -> None:
    act, fields = WRITES[write]
    client, script, _ = scripted_client([LOST, problem(409, "conflict", 1), answer(200, fields), answer(200, fields)])
    act(client)
    act(client)
    assert script.keys() == ["key-1", "key-1", "key-1", "key-2"]


@pytest.mark.parametrize("write", WRITES)
def test_writes_without_keys_are_not_retried(write: str) -> None:
    client, script, _ = scripted_client([problem(503, "queue_full", 1)], idempotency=False)
    with pytest.raises(gs.OverloadError):
        WRITES[write][0](client)
    assert script.keys() == [None]


def test_call_may_disable_its_key() -> None:
    client, script, _ = scripted_client([answer(200, FORWARD)])
    client.forward(square()[0], store={1: "w"}, idempotency=False)
    assert script.keys() == [None]


@pytest.mark.parametrize("act", [lambda client: client.put("w", 1.0), lambda client: client.register(square()[0])])
def test_idempotent_calls_need_no_key(act: Any) -> None:
    client, script, _ = scripted_client([LOST, answer(200, {**STORED, **GRAPH})])
    act(client)
    assert script.keys() == [None, None]


def test_over_budget_error_suggests_disabling_idempotency() -> None:
    client, _, _ = scripted_client([problem(413, "over_budget")])
    with pytest.raises(gs.GraphError, match="idempotency=False"):
        STORE(client)
    client, _, _ = scripted_client([problem(413, "over_budget")])
    with pytest.raises(gs.GraphError) as caught:
        client.forward(square()[0])
    assert "idempotency" not in str(caught.value)


def test_evicted_graph_is_registered_again_without_waiting() -> None:
    gone, registered = problem(404, "not_found"), answer(201, GRAPH)
    client, script, clock = scripted_client([registered, gone, registered, answer(200, FORWARD)])
    graph, w, _ = square()
    model = client.register(graph)
    graph.input("later")
    assert model.forward({w: 3.0}, store={1: "w"}).value == 9
    assert [request.url.path.removeprefix("/v1/graphs") for request in script.received] == [
        "", f"/{'ab' * 32}/forward", "", f"/{'ab' * 32}/forward",
    ]  # fmt: skip
    assert script.received[0].content == script.received[2].content
    assert script.keys() == [None, "key-1", None, "key-1"]
    assert clock.waits == []


def test_second_404_and_missing_tensor_are_raised() -> None:
    gone, registered = problem(404, "not_found"), answer(201, GRAPH)
    client, script, _ = scripted_client([registered, gone, registered, gone])
    with pytest.raises(gs.NotFoundError):
        client.register(square()[0]).forward()
    assert script.replies == []
    client, _, _ = scripted_client([registered, problem(404, "not_found", node=0, pointer="/feeds/0/tensor_id")])
    with pytest.raises(gs.NotFoundError):
        client.register(square()[0]).forward()


def test_first_call_registers_the_graph_within_its_timeout() -> None:
    client, script, _ = scripted_client(
        [LOST, answer(201, GRAPH), answer(200, FORWARD), answer(200, FORWARD)], timeout=5
    )
    model = client.register(square()[0], at_once=False)
    assert script.received == []
    model.forward()
    model.forward()
    assert [request.url.params["timeout_ms"] for request in script.received] == ["5000", "4625", "4625", "5000"]
