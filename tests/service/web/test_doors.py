"""Fast path and ASGI application: both answer a computing call with the same bytes, except ids and timings."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import numpy as np
import pytest
from starlette.types import ASGIApp

from service.api.media import JSON
from service.core.settings import Settings
from service.observe.store import StoreService
from service.store.journal import MemoryJournal
from service.store.tables import Registered
from service.web.head import HeadCache, HeadReader
from service.web.observer import Finished
from service.web.server_state import ServerState
from service.workers.task import REGISTER, Reply, Task
from service.workers.worker import Worker
from tests.service.api.calls.test_derivative_calls import ASKED
from tests.service.api.safetensors_support import KIND, body
from tests.service.application import create_routes, wrap
from tests.service.support import SQUARES, node, request
from tests.service.web.harness import FakePool, chunked, house, on_each_loop, post, run

pytestmark = [on_each_loop, pytest.mark.slow]

Loop = Callable[[], asyncio.AbstractEventLoop]
#: without the compiler, whose kernels change the last bits of a plan as they arrive
SETTINGS = Settings(device="cpu", compile="off", max_nodes=1000, max_body_bytes=100_000, max_chunks=50)
BINARY = (b"Content-Type: " + KIND.encode(), b"Accept: " + KIND.encode())
#: graph id of SQUARES
GRAPH_ID = "64a0b9af0ea5643b8e3dfab43d2fdf490e923554fd0ec428a224da892efb1e19"
STORE = StoreService(SETTINGS, FakePool(), MemoryJournal())
ECHO = {"graph": {"nodes": [node("input")]}}


def dumped(content: object) -> bytes:
    """A body in JSON."""
    return json.dumps(content).encode()


REQUESTS = {
    **{f"call {name}": post(dumped(asked), path=f"/v1/{name}".encode()) for name, asked in ASKED.items()},
    "an op that is not known": post(dumped(request(node("additon")))),
    "two mistakes": post(dumped({"graph": {"nodes": 1}, "of": "a"}), path=b"/v1/gradients"),
    "no JSON": post(b"{"),
    "nothing": post(b""),
    "no length": b"POST /v1/forward HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "bytes that are no text": post(b"\xff\xfe"),
    "too many nodes": post(dumped(request(*[node("full")] * 1001))),
    "too long": post(b" " * 100_001),
    "too long, in chunks": chunked(*[b" " * 30_000] * 4),
    "too many chunks": chunked(*[b" "] * 51),
    "chunks that are none": chunked(end=b"zz\r\n"),
    "in chunks": chunked(dumped(SQUARES)[:20], dumped(SQUARES)[20:], path=b"/v1/gradients"),
    "another type": post(b"a,b", b"Content-Type: text/csv"),
    "another coding": post(b"{}", b"Content-Encoding: gzip"),
    "nothing is accepted": post(b"{}", b"Accept: text/html"),
    "a query that is wrong": post(b"{}", path=b"/v1/forward?timeout_ms=0"),
    "an unknown query": post(b"{}", path=b"/v1/forward?a=b"),
    "an escaped path": post(dumped(SQUARES), path=b"/v1/gr%61dients"),
    "binary": post(body(ECHO, {"feeds.0": np.arange(5.0)}), *BINARY),
    "large binary": post(body(ECHO, {"feeds.0": np.arange(500_000.0)}), *BINARY),
    "binary that is cut": post(body(ECHO, {"feeds.0": np.arange(5.0)})[:-1], *BINARY),
    "a large answer": post(dumped(request(node("full", shape=[30_000])))),
    "an id": post(dumped(SQUARES), b"X-Request-Id: mine"),
    "the last one": post(dumped(SQUARES), b"Connection: close"),
    **{
        f"a registered graph's {name}": post(
            dumped({key: value for key, value in asked.items() if key != "graph"}),
            path=f"/v1/graphs/{GRAPH_ID}/{name}".encode(),
        )
        for name, asked in ASKED.items()
        if asked.get("graph") == SQUARES["graph"]
    },
    "a graph beside the registered one": post(dumped(SQUARES), path=f"/v1/graphs/{GRAPH_ID}/gradients".encode()),
    "a graph that is not registered": post(b"{}", path=b"/v1/graphs/%b/gradients" % (b"0" * 64)),
    "another version": post(dumped(SQUARES)).replace(b"HTTP/1.1", b"HTTP/1.0"),
}
#: dates, ids, timings, and lengths that depend on them; safetensors has them in a padded header
VARYING = re.compile(
    rb'\r\ndate: [^\r]*|(?<=x-request-id: )[^\r]*|(?<="request_id":")[^"]*|'
    rb'[a-z_]*_ms\\?":[0-9.e-]+|plan_cached\\?":[a-z]+|content-length: [0-9]+|'
    rb'\r\nconnection: close|.{8}(?=\{"__metadata__)|(?<=\}) +',
    re.DOTALL,
)


def normalized(response: bytes) -> bytes:
    """Remove the parts in which two answers to one request may differ.

    Whether the connection ends is one of them: a refusal may come before the body or after it.
    """
    return VARYING.sub(b"", response)


def disable_fast_path(state: ServerState) -> None:
    """Send all computing calls to the application."""
    read = HeadReader(state.settings)
    state.head_cache = HeadCache(lambda raw: replace(read(raw), call=None))


@pytest.mark.parametrize("sent", REQUESTS.values(), ids=REQUESTS)
def test_both_paths_answer_alike(loop: Loop, sent: bytes, worker: Worker, application: ASGIApp) -> None:
    async def scenario() -> None:
        answers = []
        for fast in (True, False):
            observer = FastPathCounter()
            async with house(FakePool(worker), application, observer, SETTINGS, store=STORE) as opened:
                if not fast:
                    disable_fast_path(opened.state)
                client = await opened.connect(limit=1 << 24)
                await client.send(sent)
                head, content = await client.response()
                answers.append(normalized(head + content))
                if head.startswith(b"HTTP/1.1 200 "):
                    assert observer.direct == fast, "it came through the door that is meant"
        assert answers[0] == answers[1]
        assert answers[0].startswith(b"HTTP/1.1 ")

    run(scenario, loop)


class FastPathCounter:
    """Observer that counts requests answered on the fast path, which have no route of the application."""

    def __init__(self) -> None:
        self.direct = 0

    def __call__(self, finished: Finished) -> None:
        self.direct += isinstance(finished.reply, Reply) and not finished.route


@pytest.fixture(scope="module")
def worker() -> Worker:
    """A worker for the whole module, since it is slow to create."""
    return Worker(SETTINGS)


@pytest.fixture(scope="module")
def application(worker: Worker) -> ASGIApp:
    """The application on the same worker."""
    reply = worker(Task(REGISTER, dumped({"graph": SQUARES["graph"]}), "id", 60.0, time.monotonic() + 60.0))
    graph = Registered.parse(reply.body)
    assert graph.graph_id == GRAPH_ID
    STORE.graphs.load(("", GRAPH_ID), graph)
    pool = FakePool(worker)
    return wrap(create_routes(SETTINGS, pool, STORE), SETTINGS)


class TestInternalErrors:
    """Internal errors are reported, logged with the request id, and affect no other request."""

    def broken(self, *_: object) -> Reply:
        """Raise an unexpected error."""
        raise RuntimeError("secret")

    def check(self, head: bytes, body: bytes, log: pytest.LogCaptureFixture) -> None:
        report = json.loads(body)
        assert (head[9:12], report["code"]) == (b"500", "internal_error")
        assert b"secret" not in body
        assert any(report["request_id"] in record.getMessage() and record.exc_info for record in log.records)
        log.clear()

    @pytest.mark.parametrize("where", ["submit", "reply", "head"])
    def test_internal_error_is_reported(self, loop: Loop, where: str, caplog: pytest.LogCaptureFixture) -> None:
        async def scenario() -> None:
            pool = FakePool(self.broken if where == "submit" else None)
            async with house(pool) as opened:
                if where == "head":
                    opened.state.head_cache.find = self.broken  # type: ignore[method-assign, assignment]
                client = await opened.connect()
                await client.send(post())
                if where == "reply":
                    await pool.until(lambda: bool(pool.done))
                    pool.done.popitem()[1](Reply(200, JSON, [None]))  # type: ignore[list-item]
                head, body = await client.response()
                self.check(head, body, caplog)
                assert await client.rest() == b""

        run(scenario, loop)

    @pytest.mark.parametrize("begun", [False, True])
    def test_failing_application_is_reported(
        self, loop: Loop, caplog: pytest.LogCaptureFixture, *, begun: bool
    ) -> None:
        """Once the answer has begun, only closing the connection can signal the failure."""

        async def app(_scope: object, _receive: object, send: Callable[..., Awaitable[None]]) -> None:
            if begun:
                await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
                await send({"type": "http.response.body", "body": b"half", "more_body": True})
            raise RuntimeError("secret")

        async def scenario() -> None:
            async with house(app=app) as opened:
                client = await opened.connect()
                await client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                received = await client.rest()
                if begun:
                    assert received == b"" or received.endswith(b"\r\n\r\nhalf")
                else:
                    self.check(*received.split(b"\r\n\r\n"), caplog)

        run(scenario, loop)


class RecordingObserver:
    """Observer that records all requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str | None, int, int, int, bool]] = []

    def __call__(self, finished: Finished) -> None:
        request_id, head, status, received, sent, seconds, reply, _, _ = finished
        assert request_id
        assert seconds >= 0
        self.requests.append((head and head.path, status, received, sent, reply is not None))


def test_each_request_is_observed_once(loop: Loop) -> None:
    async def scenario() -> None:
        seen = RecordingObserver()
        async with house(observer=seen) as opened:
            client = await opened.connect()
            await client.send(
                post(b"123"), chunked(b"12", b"3"), b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\0"
            )
            for _ in range(3):
                await client.response()
            _, report = await client.response()
            call = ("/v1/forward", 200, 3, 13, True)
            assert seen.requests[:2] == [call, (*call[:2], 18, *call[3:])], "chunks with their framing"
            assert seen.requests[2:] == [("/health/live", 200, 0, 17, False), (None, 400, 0, len(report), False)]

    run(scenario, loop)


def test_call_through_the_application_is_observed_as_a_call(loop: Loop, application: ASGIApp) -> None:
    """A call with an Idempotency-Key goes through the application, and still counts as a call with its timings."""
    observed: list[Finished] = []

    async def scenario() -> None:
        async with house(app=application, observer=observed.append) as opened:
            client = await opened.connect()
            await client.send(post(dumped(SQUARES), b"Idempotency-Key: once", path=b"/v1/gradients"))
            assert (await client.response())[0].startswith(b"HTTP/1.1 200")

    run(scenario, loop)
    (finished,) = observed
    assert finished.head is not None
    assert finished.head.call is not None
    assert finished.head.call.name == "gradients"
    assert finished.reply is not None
    assert finished.reply.timings.execute > 0
    assert finished.route == "/v1/gradients"
