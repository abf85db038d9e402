"""What is tried again, after how long, and under which key: with replies by a script, and a clock that waits move."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

import gradserve_client as gs
from clients.python.tests.scripted import FORWARD, GRAPH, KEPT, Clock, answer, client_of, problem, square

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
def test_what_passes_is_tried_again(reply: Any) -> None:
    client, script, clock = client_of([reply, answer(200, FORWARD)])
    graph, w, _ = square()
    assert client.forward(graph, {w: 3.0}).value == 9
    assert clock.waits == [0.375]
    assert script.came[0].content == script.came[1].content


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
def test_what_does_not_pass_is_not(reply: Any, kind: type[gs.GradserveError]) -> None:
    client, script, clock = client_of([reply])
    with pytest.raises(kind):
        client.forward(square()[0])
    assert (len(script.came), clock.waits) == (1, [])


@pytest.mark.parametrize(("chance", "waits"), [(0.0, [0.25, 0.5]), (1.0, [0.5, 1.0])])
def test_two_retries_with_jitter_unless_stated(chance: float, waits: list[float]) -> None:
    clock = Clock()
    client, script, _ = client_of([LOST] * 3, clock, surroundings=clock.surroundings(chance))
    with pytest.raises(gs.ConnectionFailed):
        client.forward(square()[0])
    assert (len(script.came), clock.waits) == (3, waits)


def test_waits_grow_to_a_bound() -> None:
    client, _, clock = client_of([LOST] * 7, retries=6)
    with pytest.raises(gs.ConnectionFailed):
        client.forward(square()[0])
    assert clock.waits == [0.375, 0.75, 1.5, 3, 6, 6]


@pytest.mark.parametrize(("stated", "wait"), [("3", 3), ("0", 0.375), ("1.5", 0.375), ("-2", 0.375), ("3s", 0.375)])
def test_retry_after_is_whole_seconds_and_makes_a_wait_longer(stated: str, wait: float) -> None:
    refused = answer(503, {"status": 503, "code": "queue_full"}, Retry_After=stated)
    client, _, clock = client_of([refused, answer(200, FORWARD)])
    client.forward(square()[0])
    assert clock.waits == [wait]


def test_a_worker_that_died_twice_is_enough_whatever_came_between() -> None:
    died = problem(503, "worker_died", 0)
    client, script, _ = client_of([died, problem(503, "queue_full"), died, answer(200, FORWARD)], retries=5)
    with pytest.raises(gs.OverloadError, match="worker_died"):
        client.forward(square()[0])
    assert len(script.came) == 3


def test_one_deadline_for_all_tries_and_what_is_left_goes_along() -> None:
    client, script, _ = client_of([LOST, problem(503, "queue_full", 2), answer(200, FORWARD)], timeout=5)
    client.forward(square()[0])
    assert [request.url.params["timeout_ms"] for request in script.came] == ["5000", "4625", "2625"]


@pytest.mark.parametrize(("timeout", "tries"), [(0.375, 1), (0.376, 2)])
def test_a_wait_that_would_use_up_the_deadline_is_not_begun(timeout: float, tries: int) -> None:
    client, script, _ = client_of([LOST] * 3, timeout=timeout)
    with pytest.raises(gs.ConnectionFailed):
        client.forward(square()[0])
    assert len(script.came) == tries


def test_a_timeout_is_the_deadline() -> None:
    client, _, _ = client_of([httpx.ReadTimeout("")], timeout=5)
    with pytest.raises(gs.DeadlineError, match="no answer within 5 s"):
        client.forward(square()[0])


@pytest.mark.parametrize(
    ("act", "timed"),
    [
        (lambda client: client.put("w", 1.0), True),
        (lambda client: client.register(square()[0]), True),
        (lambda client: client.delete("w"), False),
        (lambda client: [*client.tensors()], False),
        (lambda client: [*client.graphs()], False),
        (lambda client: client.ops(), False),
    ],
)
def test_the_time_is_told_where_the_server_takes_it(act: Any, timed: bool) -> None:
    client, script, _ = client_of([answer(200, {**KEPT, **GRAPH, "tensors": [], "graphs": []})], timeout=5)
    act(client)
    assert ("timeout_ms" in script.came[0].url.params) == timed


def test_a_call_may_have_a_time_of_its_own() -> None:
    client, script, _ = client_of([answer(200, FORWARD)], timeout=5)
    client.forward(square()[0], timeout=2)
    assert script.came[0].url.params["timeout_ms"] == "2000"


STORE = lambda client: client.forward(square()[0], store={1: "w"})
WRITES = {
    "store": (STORE, FORWARD),
    "delete": (lambda client: client.delete("w"), KEPT),
    "unregister": (lambda client: client.unregister("ab" * 32), GRAPH),
    "put on a condition": (lambda client: client.put("w", 1.0, if_none_match="*"), KEPT),
}


@pytest.mark.parametrize("write", WRITES)
def test_what_keeps_something_is_repeated_under_one_key(write: str) -> None:
    act, fields = WRITES[write]
    client, script, _ = client_of([LOST, problem(409, "conflict", 1), answer(200, fields), answer(200, fields)])
    act(client)
    act(client)
    assert script.keys() == ["key-1", "key-1", "key-1", "key-2"]


@pytest.mark.parametrize("write", WRITES)
def test_without_keys_it_is_not_repeated(write: str) -> None:
    client, script, _ = client_of([problem(503, "queue_full", 1)], idempotency=False)
    with pytest.raises(gs.OverloadError):
        WRITES[write][0](client)
    assert script.keys() == [None]


def test_a_call_may_do_without_a_key() -> None:
    client, script, _ = client_of([answer(200, FORWARD)])
    client.forward(square()[0], store={1: "w"}, idempotency=False)
    assert script.keys() == [None]


@pytest.mark.parametrize("act", [lambda client: client.put("w", 1.0), lambda client: client.register(square()[0])])
def test_what_changes_nothing_when_repeated_needs_no_key(act: Any) -> None:
    client, script, _ = client_of([LOST, answer(200, {**KEPT, **GRAPH})])
    act(client)
    assert script.keys() == [None, None]


def test_an_answer_too_long_to_be_kept_names_the_switch() -> None:
    client, _, _ = client_of([problem(413, "over_budget")])
    with pytest.raises(gs.GraphError, match="idempotency=False"):
        STORE(client)
    client, _, _ = client_of([problem(413, "over_budget")])
    with pytest.raises(gs.GraphError) as caught:
        client.forward(square()[0])
    assert "idempotency" not in str(caught.value)


def test_a_graph_that_was_forgotten_is_registered_once_more_at_once() -> None:
    gone, kept = problem(404, "not_found"), answer(201, GRAPH)
    client, script, clock = client_of([kept, gone, kept, answer(200, FORWARD)])
    graph, w, _ = square()
    model = client.register(graph)
    graph.input("later")
    assert model.forward({w: 3.0}, store={1: "w"}).value == 9
    assert [request.url.path.removeprefix("/v1/graphs") for request in script.came] == [
        "", f"/{'ab' * 32}/forward", "", f"/{'ab' * 32}/forward",
    ]  # fmt: skip
    assert script.came[0].content == script.came[2].content
    assert script.keys() == [None, "key-1", None, "key-1"]
    assert clock.waits == []


def test_a_second_404_is_raised_and_so_is_that_of_a_tensor() -> None:
    gone, kept = problem(404, "not_found"), answer(201, GRAPH)
    client, script, _ = client_of([kept, gone, kept, gone])
    with pytest.raises(gs.NotFoundError):
        client.register(square()[0]).forward()
    assert script.replies == []
    client, _, _ = client_of([kept, problem(404, "not_found", node=0, pointer="/feeds/0/tensor_id")])
    with pytest.raises(gs.NotFoundError):
        client.register(square()[0]).forward()


def test_a_graph_may_be_registered_by_the_first_call_within_its_time() -> None:
    client, script, _ = client_of([LOST, answer(201, GRAPH), answer(200, FORWARD), answer(200, FORWARD)], timeout=5)
    model = client.register(square()[0], at_once=False)
    assert script.came == []
    model.forward()
    model.forward()
    assert [request.url.params["timeout_ms"] for request in script.came] == ["5000", "4625", "4625", "5000"]
