"""Requests through HAProxy: server selection, retries, and answers of the ingress itself."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler
from itertools import product
from typing import Any
from urllib.parse import unquote

import pytest

from service.cluster.ingress.configuration import ANSWERED
from service.core.errors import Refusal
from service.core.settings import Settings
from service.web.routing import route_path
from tests.conftest import Client
from tests.service.application import create_routes
from tests.service.cluster.ingress.support import Node, RunningIngress, ingress, needs_haproxy, nodes, wait_until
from tests.service.web.harness import FakePool

pytestmark = [needs_haproxy, pytest.mark.slow]

THREE = ("gs1", "gs2", "gs3")
KEYS = [f"Bearer gs_{number:032x}" for number in range(40)]


@pytest.fixture(scope="module")
def three() -> Iterator[tuple[RunningIngress, list[Node]]]:
    """Three permanent servers behind an ingress."""
    with nodes(3) as servers, ingress(nodes=tuple(node.place for node in servers)) as running:
        running.settle(*THREE)
        yield running, servers


def echo(_: BaseHTTPRequestHandler, body: bytes) -> bytes:
    return body


class TestServerSelection:
    def test_key_is_routed_to_one_server(self, three: tuple[RunningIngress, list[Node]]) -> None:
        running, _ = three
        first = [running.ask("GET", "/v1/ops", Authorization=key).body for key in KEYS]
        assert [running.ask("POST", "/v1/vjp", b"{}", Authorization=key).body for key in KEYS] == first
        assert {*first} == {b"node1", b"node2", b"node3"}

    def test_pieces_of_a_sum_are_spread_by_their_rows(self, three: tuple[RunningIngress, list[Node]]) -> None:
        running, _ = three

        def answer(piece: int) -> bytes:
            return running.ask("POST", "/v1/batch", b"{}", Authorization=KEYS[0], Gradserve_Piece=f"{piece:x}").body

        first = [answer(piece) for piece in range(40)]
        assert [answer(piece) for piece in range(40)] == first
        assert {*first} == {b"node1", b"node2", b"node3"}

    @pytest.mark.smoke
    def test_requests_without_a_key_are_distributed(self, three: tuple[RunningIngress, list[Node]]) -> None:
        running, _ = three
        assert {running.ask("GET", "/v1/ops").body for _ in range(40)} == {b"node1", b"node2", b"node3"}

    def test_load_above_the_bound_goes_to_other_servers(self, three: tuple[RunningIngress, list[Node]]) -> None:
        """The server of a key gets no more than 1.25 times the mean of eight concurrent requests."""
        running, servers = three
        arrived, leave = threading.Semaphore(0), threading.Event()
        answered: list[bytes] = []

        def hold(name: str) -> Any:
            def answer(_: BaseHTTPRequestHandler, __: bytes) -> bytes:
                arrived.release()
                leave.wait(30)
                return name.encode()

            return answer

        for node in servers:
            node.answer = hold(node.name)
        try:
            asking = [threading.Thread(target=lambda: answered.append(ask())) for _ in range(8)]
            ask = lambda: running.ask("GET", "/v1/ops", Authorization=KEYS[0]).body
            for each in asking:
                each.start()
                assert arrived.acquire(timeout=30)  # each arrives before the next is sent
        finally:
            leave.set()
            for node in servers:
                node.answer = lambda _, __, name=node.name: name.encode()
        for each in asking:
            each.join(30)
        counts = sorted(answered.count(name) for name in {*answered})
        assert sum(counts) == 8
        assert len(counts) >= 2
        assert counts[-1] <= 5

    def test_request_is_forwarded_unchanged(self, three: tuple[RunningIngress, list[Node]]) -> None:
        running, servers = three
        key = next(each for each in KEYS if running.ask("GET", "/", Authorization=each).body == b"node1")
        running.ask(
            "PUT", "/v1/tensors/w%2Fx?durable=false", b"abc", Authorization=key, If_None_Match="*", Accept="a/b"
        )
        method, path, headers = servers[0].requests[-1]
        assert (method, path) == ("PUT", "/v1/tensors/w%2Fx?durable=false")
        lowered = {name.lower(): value for name, value in headers.items()}
        assert lowered == {
            "host": f"127.0.0.1:{running.port}", "accept-encoding": "identity", "content-length": "3",
            "authorization": key, "if-none-match": "*", "accept": "a/b",
        }  # fmt: skip


class TestUnavailableServers:
    def test_refused_connection_is_retried_on_another_server(self) -> None:
        """Retries also cover POST, since nothing was sent, and do not wait for a health check."""
        with nodes(3) as servers, ingress(nodes=tuple(node.place for node in servers)) as running:
            running.settle(*THREE)
            first = running.ask("POST", "/v1/vjp", b"{}", Authorization=KEYS[0]).body.decode()
            gone = next(node for node in servers if node.name == first)
            gone.stop()
            answers = [running.ask("POST", "/v1/vjp", b"{}", Authorization=KEYS[0]) for _ in range(20)]
            assert {answer.status for answer in answers} == {200}
            assert gone.name.encode() not in {answer.body for answer in answers}

    def test_server_that_is_not_ready_gets_no_requests(self) -> None:
        with nodes(2) as servers, ingress(nodes=tuple(node.place for node in servers)) as running:
            running.settle("gs1", "gs2")
            servers[0].ready = False
            running.settle("gs2")
            assert {running.ask("GET", "/", Authorization=key).body for key in KEYS} == {b"node2"}
            servers[0].ready = True
            running.settle("gs1", "gs2")

    @pytest.mark.parametrize(
        ("method", "headers", "tries"),
        [("GET", {}, 4), ("HEAD", {}, 4), ("POST", {"Idempotency_Key": "k1"}, 4), ("PUT", {"Idempotency_Key": "k"}, 4),
         ("POST", {}, 1), ("PUT", {}, 1), ("DELETE", {}, 1)],
    )  # fmt: skip
    def test_unanswered_request_is_retried_if_repeatable(
        self, method: str, headers: dict[str, str], tries: int
    ) -> None:
        """The server closes each connection without an answer, and counts."""
        with nodes(1) as servers, ingress(nodes=(servers[0].place,)) as running:
            running.settle("gs1")
            servers[0].answer = lambda _, __: None
            body = b"" if method in ("GET", "HEAD") else b"{}"
            response = running.ask(method, "/v1/tensors/w", body, **headers, X_Request_Id="mine")
            assert response.status == 503
            assert response.headers["retry-after"] == "1"
            assert len(servers[0].requests) == tries
            if method != "HEAD":
                assert response.body == ANSWERED[502].body("mine")

    @pytest.mark.parametrize(
        ("method", "headers", "tries"), [("GET", {}, 2), ("POST", {"Idempotency-Key": "k"}, 2), ("POST", {}, 1)]
    )
    def test_retries_on_a_reused_connection(self, method: str, headers: dict[str, str], tries: int) -> None:
        """Repeatable requests are sent again; for others the client sees the connection close."""
        with nodes(1) as servers, ingress(nodes=(servers[0].place,)) as running:
            running.settle("gs1")
            client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
            with closing(client):
                client.request("POST", "/v1/vjp", b"{}")
                assert client.getresponse().read() == b"node1"
                servers[0].requests.clear()
                servers[0].answer = lambda *_: b"done" if len(servers[0].requests) > 1 else None
                client.request(method, "/v1/tensors/w", headers=headers)
                if tries > 1:
                    assert client.getresponse().read() == b"done"
                else:
                    with pytest.raises(http.client.RemoteDisconnected):
                        client.getresponse()
            assert len(servers[0].requests) == tries

    def test_body_of_20_kb_is_retried_complete(self) -> None:
        body, seen = bytes(range(256)) * 80, []

        def second_time(_: BaseHTTPRequestHandler, sent: bytes) -> bytes | None:
            seen.append(sent)
            return b"done" if len(seen) > 1 else None

        with nodes(1) as servers, ingress(nodes=(servers[0].place,)) as running:
            running.settle("gs1")
            servers[0].answer = second_time
            assert running.ask("POST", "/v1/gradients", body, Idempotency_Key="k").body == b"done"
            assert seen == [body, body]


class TestReports:
    def test_no_server(self) -> None:
        with ingress() as running:
            response = running.ask("GET", "/v1/ops", X_Request_Id="mine-1")
        assert (response.status, response.headers["retry-after"]) == (503, "1")
        assert response.headers["content-type"] == "application/problem+json"
        assert response.headers["x-request-id"] == "mine-1"
        assert response.body == Refusal("not_ready", "the ingress cannot reach a ready server", retry_after=1).body(
            "mine-1"
        )

    def test_missing_or_invalid_request_id_is_replaced(self) -> None:
        with ingress() as running:
            for stated in ({}, {"X_Request_Id": 'a"b'}, {"X_Request_Id": "x" * 129}):
                response = running.ask("GET", "/v1/ops", **stated)
                assert re.fullmatch("[0-9a-f-]{36}", response.headers["x-request-id"])
                assert json.loads(response.body)["request_id"] == response.headers["x-request-id"]

    def test_no_answer_in_time(self) -> None:
        leave = threading.Event()

        def late(_: BaseHTTPRequestHandler, __: bytes) -> bytes:
            leave.wait(60)
            return b""

        with nodes(1) as servers, ingress(nodes=(servers[0].place,), timeout_ms=1) as running:
            running.settle("gs1")
            servers[0].answer = late
            response = running.ask("POST", "/v1/vjp", b"{}", X_Request_Id="mine")
            leave.set()
        assert (response.status, response.body) == (504, ANSWERED[504].body("mine"))

    @pytest.mark.parametrize(
        "sent", [b"NO HTTP\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 40_000 + b"\r\n\r\n"]
    )
    def test_malformed_request_is_400(self, sent: bytes) -> None:
        """HAProxy before 2.9 has a built-in page for malformed heads."""
        with ingress() as running, socket.create_connection(("127.0.0.1", running.port), 30) as client:
            client.sendall(sent)
            assert client.recv(100).startswith(b"HTTP/1.1 400 ")


class TestHiddenPaths:
    """Paths of the cluster protocol and of metrics, which are hidden."""

    @pytest.mark.parametrize(
        "path", ["/cluster/versions", "/cluster/", "/cluster", "/cluster/a-b.c~/d_1", "/metrics", "/metrics/"]
    )
    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_hidden_path_is_answered_like_an_unknown_path(
        self, three: tuple[RunningIngress, list[Node]], client: Client, path: str, method: str
    ) -> None:
        running, servers = three
        before = [len(node.requests) for node in servers]
        unknown_path = path.replace("cluster", "clutter").replace("metrics", "entropy")
        unknown = client.request(method, unknown_path, headers={"X-Request-Id": "mine"})
        response = running.ask(method, path, b"{}" if method == "POST" else b"", X_Request_Id="mine")
        assert response.body == unknown.content.replace(b"clutter", b"cluster").replace(b"entropy", b"metrics")
        assert response.status == unknown.status_code == 404
        assert response.headers["content-type"] == unknown.headers["content-type"]
        assert [len(node.requests) for node in servers] == before

    @pytest.mark.parametrize(
        "path",
        [
            "//cluster/x", "/./cluster/x", "/%63luster/x", "/CLUSTER/x", "/cluster%2Fx", "/cluster/?a=b", '/cluster/"',
            "//metrics", "/./metrics", "/%6detrics", "/METRICS", "/metrics//", "/metrics/.", "/%2fmetrics",
            "/metrics%2F", "/metrics?a=b", "http://localhost/metrics", "/%6d%65%74%72%69%63%73",
        ],
    )  # fmt: skip
    def test_hidden_path_in_any_spelling(self, three: tuple[RunningIngress, list[Node]], path: str) -> None:
        running, servers = three
        before = [len(node.requests) for node in servers]
        response = running.ask("GET", path, X_Request_Id="mine")
        assert response.status == 404
        assert json.loads(response.body)["code"] == "not_found"
        assert [len(node.requests) for node in servers] == before

    def test_metrics_are_hidden_in_every_spelling_that_servers_accept(
        self, three: tuple[RunningIngress, list[Node]]
    ) -> None:
        running, servers = three
        before = [len(node.requests) for node in servers]
        routes = create_routes(Settings(device="cpu", compile="off"), FakePool()).routes
        served = [path for path in metrics_spellings() if route_path(scope_of(path), routes) == "/metrics"]
        assert {"/metrics", "/metrics/", "/%6Detrics"} <= set(served)
        assert {running.ask("GET", path).status for path in served} == {404}
        assert [len(node.requests) for node in servers] == before

    @pytest.mark.parametrize(
        "path",
        ["/clusters/x", "/v1/cluster/x", "/v1/tensors/cluster", "/metricsx", "/v1/tensors/metrics", "/metrics/x"],
    )
    def test_similar_paths_are_forwarded(self, three: tuple[RunningIngress, list[Node]], path: str) -> None:
        assert three[0].ask("GET", path).status == 200


def scope_of(path: str) -> dict[str, str]:
    return {"type": "http", "method": "GET", "path": unquote(path)}


def metrics_spellings() -> Iterator[str]:
    """Yield /metrics with slashes and dots around it, in upper and lower case, plain and with encoded characters."""
    for before, name, after in product(
        ("/", "//", "/./", "/../", "/%2F", "/%2E/"),
        ("metrics", "METRICS"),
        ("", "/", "//", "/.", "%2F", ";a", "%20", "%00"),
    ):
        yield before + name + after
        yield f"{before}%{ord(name[0]):02X}{name[1:]}{after}"


def test_bodies_of_4_mb_are_forwarded_unchanged(three: tuple[RunningIngress, list[Node]]) -> None:
    running, servers = three
    body = bytes(range(256)) * (4 << 12)
    for node in servers:
        node.answer = echo
    try:
        assert running.ask("POST", "/v1/gradients", body, Authorization=KEYS[0]).body == body
    finally:
        for node in servers:
            node.answer = lambda _, __, name=node.name: name.encode()


def test_metrics_listen_on_the_loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with nodes(1) as servers, ingress(nodes=(servers[0].place,), metrics=f"127.0.0.1:{port}") as running:
        running.settle("gs1")
        metrics = RunningIngress(port, running.process)
        assert (
            b'haproxy_server_status{proxy="servers",server="gs1",state="UP"} 1' in metrics.ask("GET", "/metrics").body
        )
        assert metrics.ask("GET", "/v1/ops").status == 404


def test_disconnect_of_the_client_closes_the_server_connection() -> None:
    begun, over = threading.Event(), threading.Event()

    def until_it_is_closed(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        begun.set()
        handler.connection.settimeout(30)
        with suppress(ConnectionResetError):
            assert handler.connection.recv(1) == b""
        over.set()

    with nodes(1) as servers, ingress(nodes=(servers[0].place,)) as running:
        running.settle("gs1")
        servers[0].answer = until_it_is_closed
        with socket.create_connection(("127.0.0.1", running.port), 30) as client:
            client.sendall(b"GET /v1/ops HTTP/1.1\r\nHost: a\r\n\r\n")
            assert begun.wait(30)
        wait_until(over.is_set)
