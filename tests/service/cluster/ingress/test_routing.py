"""Requests through HAProxy: which server gets them, what is sent again, and what is answered in a server's place."""

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
    """Three servers that stay, and what stands before them."""
    with nodes(3) as made, ingress(nodes=tuple(node.place for node in made)) as running:
        running.settle(*THREE)
        yield running, made


def held(_: BaseHTTPRequestHandler, body: bytes) -> bytes:
    return body


class TestWhoGetsARequest:
    def test_a_key_stays_with_its_server(self, three: tuple[RunningIngress, list[Node]]) -> None:
        running, _ = three
        first = [running.ask("GET", "/v1/ops", Authorization=key).body for key in KEYS]
        assert [running.ask("POST", "/v1/vjp", b"{}", Authorization=key).body for key in KEYS] == first
        assert {*first} == {b"node1", b"node2", b"node3"}

    def test_pieces_of_a_sum_are_spread_and_those_of_the_same_rows_are_not(
        self, three: tuple[RunningIngress, list[Node]]
    ) -> None:
        running, _ = three

        def answer(piece: int) -> bytes:
            return running.ask("POST", "/v1/batch", b"{}", Authorization=KEYS[0], Gradserve_Piece=f"{piece:x}").body

        first = [answer(piece) for piece in range(40)]
        assert [answer(piece) for piece in range(40)] == first
        assert {*first} == {b"node1", b"node2", b"node3"}

    @pytest.mark.smoke
    def test_requests_without_a_key_go_round(self, three: tuple[RunningIngress, list[Node]]) -> None:
        running, _ = three
        assert {running.ask("GET", "/v1/ops").body for _ in range(40)} == {b"node1", b"node2", b"node3"}

    def test_what_is_too_much_for_one_goes_on_to_others(self, three: tuple[RunningIngress, list[Node]]) -> None:
        """Of eight requests at a time of one key, its server gets no more than 1.25 times the mean."""
        running, made = three
        here, leave = threading.Semaphore(0), threading.Event()
        answered: list[bytes] = []

        def hold(name: str) -> Any:
            def answer(_: BaseHTTPRequestHandler, __: bytes) -> bytes:
                here.release()
                leave.wait(30)
                return name.encode()

            return answer

        for node in made:
            node.answer = hold(node.name)
        try:
            asking = [threading.Thread(target=lambda: answered.append(ask())) for _ in range(8)]
            ask = lambda: running.ask("GET", "/v1/ops", Authorization=KEYS[0]).body
            for each in asking:
                each.start()
                assert here.acquire(timeout=30)  # each arrives before the next is sent
        finally:
            leave.set()
            for node in made:
                node.answer = lambda _, __, name=node.name: name.encode()
        for each in asking:
            each.join(30)
        counts = sorted(answered.count(name) for name in {*answered})
        assert sum(counts) == 8
        assert len(counts) >= 2
        assert counts[-1] <= 5

    def test_a_request_arrives_as_it_was_sent(self, three: tuple[RunningIngress, list[Node]]) -> None:
        running, made = three
        key = next(each for each in KEYS if running.ask("GET", "/", Authorization=each).body == b"node1")
        running.ask(
            "PUT", "/v1/tensors/w%2Fx?durable=false", b"abc", Authorization=key, If_None_Match="*", Accept="a/b"
        )
        method, path, headers = made[0].asked[-1]
        assert (method, path) == ("PUT", "/v1/tensors/w%2Fx?durable=false")
        lowered = {name.lower(): value for name, value in headers.items()}
        assert lowered == {
            "host": f"127.0.0.1:{running.port}", "accept-encoding": "identity", "content-length": "3",
            "authorization": key, "if-none-match": "*", "accept": "a/b",
        }  # fmt: skip


class TestServersThatAreGone:
    def test_a_connection_that_is_refused_is_made_to_another(self) -> None:
        """Before a look at its health says anything: POST too, since nothing was sent."""
        with nodes(3) as made, ingress(nodes=tuple(node.place for node in made)) as running:
            running.settle(*THREE)
            first = running.ask("POST", "/v1/vjp", b"{}", Authorization=KEYS[0]).body.decode()
            gone = next(node for node in made if node.name == first)
            gone.stop()
            answers = [running.ask("POST", "/v1/vjp", b"{}", Authorization=KEYS[0]) for _ in range(20)]
            assert {answer.status for answer in answers} == {200}
            assert gone.name.encode() not in {answer.body for answer in answers}

    def test_one_that_is_not_ready_gets_nothing(self) -> None:
        with nodes(2) as made, ingress(nodes=tuple(node.place for node in made)) as running:
            running.settle("gs1", "gs2")
            made[0].ready = False
            running.settle("gs2")
            assert {running.ask("GET", "/", Authorization=key).body for key in KEYS} == {b"node2"}
            made[0].ready = True
            running.settle("gs1", "gs2")

    @pytest.mark.parametrize(
        ("method", "headers", "tries"),
        [("GET", {}, 4), ("HEAD", {}, 4), ("POST", {"Idempotency_Key": "k1"}, 4), ("PUT", {"Idempotency_Key": "k"}, 4),
         ("POST", {}, 1), ("PUT", {}, 1), ("DELETE", {}, 1)],
    )  # fmt: skip
    def test_what_was_not_answered_is_sent_again_where_it_may(
        self, method: str, headers: dict[str, str], tries: int
    ) -> None:
        """Every server ends without a word, and counts."""
        with nodes(1) as made, ingress(nodes=(made[0].place,)) as running:
            running.settle("gs1")
            made[0].answer = lambda _, __: None
            body = b"" if method in ("GET", "HEAD") else b"{}"
            got = running.ask(method, "/v1/tensors/w", body, **headers, X_Request_Id="mine")
            assert got.status == 503
            assert got.headers["retry-after"] == "1"
            assert len(made[0].asked) == tries
            if method != "HEAD":
                assert got.body == ANSWERED[502].body("mine")

    @pytest.mark.parametrize(
        ("method", "headers", "tries"), [("GET", {}, 2), ("POST", {"Idempotency-Key": "k"}, 2), ("POST", {}, 1)]
    )
    def test_on_a_connection_that_was_used_before(self, method: str, headers: dict[str, str], tries: int) -> None:
        """What may be done twice is sent again there, too; of all else, the end of the connection tells all."""
        with nodes(1) as made, ingress(nodes=(made[0].place,)) as running:
            running.settle("gs1")
            client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
            with closing(client):
                client.request("POST", "/v1/vjp", b"{}")
                assert client.getresponse().read() == b"node1"
                made[0].asked.clear()
                made[0].answer = lambda *_: b"done" if len(made[0].asked) > 1 else None
                client.request(method, "/v1/tensors/w", headers=headers)
                if tries > 1:
                    assert client.getresponse().read() == b"done"
                else:
                    with pytest.raises(http.client.RemoteDisconnected):
                        client.getresponse()
            assert len(made[0].asked) == tries

    def test_a_body_of_20_kb_is_sent_again_whole(self) -> None:
        body, seen = bytes(range(256)) * 80, []

        def second_time(_: BaseHTTPRequestHandler, sent: bytes) -> bytes | None:
            seen.append(sent)
            return b"done" if len(seen) > 1 else None

        with nodes(1) as made, ingress(nodes=(made[0].place,)) as running:
            running.settle("gs1")
            made[0].answer = second_time
            assert running.ask("POST", "/v1/gradients", body, Idempotency_Key="k").body == b"done"
            assert seen == [body, body]


class TestReports:
    def test_no_server(self) -> None:
        with ingress() as running:
            got = running.ask("GET", "/v1/ops", X_Request_Id="mine-1")
        assert (got.status, got.headers["retry-after"]) == (503, "1")
        assert got.headers["content-type"] == "application/problem+json"
        assert got.headers["x-request-id"] == "mine-1"
        assert got.body == Refusal("not_ready", "no server that is ready could be reached", retry_after=1).body(
            "mine-1"
        )

    def test_an_id_is_made_where_none_is_sane(self) -> None:
        with ingress() as running:
            for stated in ({}, {"X_Request_Id": 'a"b'}, {"X_Request_Id": "x" * 129}):
                got = running.ask("GET", "/v1/ops", **stated)
                assert re.fullmatch("[0-9a-f-]{36}", got.headers["x-request-id"])
                assert json.loads(got.body)["request_id"] == got.headers["x-request-id"]

    def test_no_answer_in_time(self) -> None:
        leave = threading.Event()

        def late(_: BaseHTTPRequestHandler, __: bytes) -> bytes:
            leave.wait(60)
            return b""

        with nodes(1) as made, ingress(nodes=(made[0].place,), timeout_ms=1) as running:
            running.settle("gs1")
            made[0].answer = late
            got = running.ask("POST", "/v1/vjp", b"{}", X_Request_Id="mine")
            leave.set()
        assert (got.status, got.body) == (504, ANSWERED[504].body("mine"))

    @pytest.mark.parametrize(
        "sent", [b"NO HTTP\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 40_000 + b"\r\n\r\n"]
    )
    def test_what_cannot_be_read_is_400(self, sent: bytes) -> None:
        """HAProxy before 2.9 has a page of its own for heads that it cannot read."""
        with ingress() as running, socket.create_connection(("127.0.0.1", running.port), 30) as client:
            client.sendall(sent)
            assert client.recv(100).startswith(b"HTTP/1.1 400 ")


class TestHiddenPaths:
    """Paths between servers, and their metrics."""

    @pytest.mark.parametrize(
        "path", ["/cluster/versions", "/cluster/", "/cluster", "/cluster/a-b.c~/d_1", "/metrics", "/metrics/"]
    )
    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_are_answered_as_a_server_answers_unknown_ones(
        self, three: tuple[RunningIngress, list[Node]], client: Client, path: str, method: str
    ) -> None:
        running, made = three
        before = [len(node.asked) for node in made]
        unknown_path = path.replace("cluster", "clutter").replace("metrics", "metrixx")
        unknown = client.request(method, unknown_path, headers={"X-Request-Id": "mine"})
        got = running.ask(method, path, b"{}" if method == "POST" else b"", X_Request_Id="mine")
        assert got.body == unknown.content.replace(b"clutter", b"cluster").replace(b"metrixx", b"metrics")
        assert got.status == unknown.status_code == 404
        assert got.headers["content-type"] == unknown.headers["content-type"]
        assert [len(node.asked) for node in made] == before

    @pytest.mark.parametrize(
        "path",
        [
            "//cluster/x", "/./cluster/x", "/%63luster/x", "/CLUSTER/x", "/cluster%2Fx", "/cluster/?a=b", '/cluster/"',
            "//metrics", "/./metrics", "/%6detrics", "/METRICS", "/metrics//", "/metrics/.", "/%2fmetrics",
            "/metrics%2F", "/metrics?a=b", "http://localhost/metrics", "/%6d%65%74%72%69%63%73",
        ],
    )  # fmt: skip
    def test_in_any_spelling(self, three: tuple[RunningIngress, list[Node]], path: str) -> None:
        running, made = three
        before = [len(node.asked) for node in made]
        got = running.ask("GET", path, X_Request_Id="mine")
        assert got.status == 404
        assert json.loads(got.body)["code"] == "not_found"
        assert [len(node.asked) for node in made] == before

    def test_no_spelling_that_a_server_takes_for_its_metrics_is_passed_on(
        self, three: tuple[RunningIngress, list[Node]]
    ) -> None:
        running, made = three
        before = [len(node.asked) for node in made]
        routes = create_routes(Settings(device="cpu", compile="off"), FakePool()).routes
        served = [path for path in metrics_spellings() if route_path(scope_of(path), routes) == "/metrics"]
        assert {"/metrics", "/metrics/", "/%6Detrics"} <= set(served)
        assert {running.ask("GET", path).status for path in served} == {404}
        assert [len(node.asked) for node in made] == before

    @pytest.mark.parametrize(
        "path",
        ["/clusters/x", "/v1/cluster/x", "/v1/tensors/cluster", "/metricsx", "/v1/tensors/metrics", "/metrics/x"],
    )
    def test_others_are_passed_on(self, three: tuple[RunningIngress, list[Node]], path: str) -> None:
        assert three[0].ask("GET", path).status == 200


def scope_of(path: str) -> dict[str, str]:
    return {"type": "http", "method": "GET", "path": unquote(path)}


def metrics_spellings() -> Iterator[str]:
    """/metrics with slashes and dots around it, in either case, as it is and with a letter or a slash encoded."""
    for before, name, after in product(
        ("/", "//", "/./", "/../", "/%2F", "/%2E/"),
        ("metrics", "METRICS"),
        ("", "/", "//", "/.", "%2F", ";a", "%20", "%00"),
    ):
        yield before + name + after
        yield f"{before}%{ord(name[0]):02X}{name[1:]}{after}"


def test_4_mb_go_both_ways_unchanged(three: tuple[RunningIngress, list[Node]]) -> None:
    running, made = three
    body = bytes(range(256)) * (4 << 12)
    for node in made:
        node.answer = held
    try:
        assert running.ask("POST", "/v1/gradients", body, Authorization=KEYS[0]).body == body
    finally:
        for node in made:
            node.answer = lambda _, __, name=node.name: name.encode()


def test_metrics_are_on_the_loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with nodes(1) as made, ingress(nodes=(made[0].place,), metrics=f"127.0.0.1:{port}") as running:
        running.settle("gs1")
        metrics = RunningIngress(port, running.process)
        assert (
            b'haproxy_server_status{proxy="servers",server="gs1",state="UP"} 1' in metrics.ask("GET", "/metrics").body
        )
        assert metrics.ask("GET", "/v1/ops").status == 404


def test_a_client_that_has_gone_leaves_no_work_behind() -> None:
    begun, over = threading.Event(), threading.Event()

    def until_it_is_closed(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        begun.set()
        handler.connection.settimeout(30)
        with suppress(ConnectionResetError):
            assert handler.connection.recv(1) == b""
        over.set()

    with nodes(1) as made, ingress(nodes=(made[0].place,)) as running:
        running.settle("gs1")
        made[0].answer = until_it_is_closed
        with socket.create_connection(("127.0.0.1", running.port), 30) as client:
            client.sendall(b"GET /v1/ops HTTP/1.1\r\nHost: a\r\n\r\n")
            assert begun.wait(30)
        wait_until(over.is_set)
