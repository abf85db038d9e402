"""A server whose place another may have taken over: on both paths it answers only from state known to be current."""

from __future__ import annotations

import json
from typing import Any

from service.api.media import JSON
from service.core.settings import Settings
from service.store.journal import StateLost
from service.workers.task import Reply, Task
from tests.service.web.harness import Client, on_each_loop, post, run
from tests.service.web.test_keeping_doors import DOORS, ETAG, NAMED, Loop, Storing, storing_server, wait_until

pytestmark = on_each_loop

#: requests answered from the stored state, except computing calls
READS = (
    b"GET /v1/tensors",
    b"GET /v1/tensors/w",
    b"HEAD /v1/tensors/w",
    b"DELETE /v1/tensors/none",
    b"GET /v1/graphs",
    b"GET /v1/graphs/none",
    b"DELETE /v1/graphs/none",
    b"POST /v1/graphs/none/forward",
    b"GET /health/ready",
)


class Consulting(Storing):
    """Pool whose replies depend on stored tensors."""

    def stored(self, job: Task) -> Reply:
        self.running += 1
        return Reply(200, JSON, [b'{"old":true}'], memory=self, consulted=True)


def request_of(line: bytes) -> bytes:
    length = b"Content-Length: 0\r\n" if line.startswith(b"POST") else b""
    return line + b" HTTP/1.1\r\nHost: localhost\r\n" + length + b"\r\n"


async def report(client: Client) -> tuple[int, Any]:
    head, body = await client.response()
    return int(head[9:12]), json.loads(body)["code"]


async def ask(client: Client, line: bytes) -> tuple[int, str | None]:
    """Send a request without a body, and return the status and the code of a refusal."""
    await client.send(request_of(line))
    head, body = await client.response(bodiless=line.startswith(b"HEAD"))
    return int(head[9:12]), json.loads(body).get("code") if body else None


def test_state_is_refused_after_the_place_is_lost(loop: Loop) -> None:
    async def scenario() -> None:
        async with storing_server(at_once=True) as opened:
            client = await opened.connect()
            await client.send(post(b"{}"))
            assert await client.status() == 200
            opened.journal.is_due = True
            opened.journal.looks = [StateLost("another")]
            for line in READS:
                assert await ask(client, line) in ((503, "not_ready"), (503, None)), line
            assert not opened.journal.looks

    run(scenario, loop)


def test_state_is_refused_while_the_place_does_not_answer(loop: Loop) -> None:
    async def scenario() -> None:
        async with storing_server(at_once=True) as opened:
            client = await opened.connect()
            for line in READS:
                opened.journal.is_due = True
                opened.journal.looks = [OSError("away"), None]
                assert await ask(client, line) in ((503, "not_ready"), (503, None)), line
                status, _ = await ask(client, line)
                assert status in (200, 404), line

    run(scenario, loop)


@DOORS
def test_reply_from_tensors_waits_for_a_look(loop: Loop, headers: tuple[bytes, ...]) -> None:
    async def scenario() -> None:
        async with storing_server(Consulting()) as opened:
            client = await opened.connect()
            await client.send(post(b"{}", *headers))
            assert await client.status() == 200
            opened.journal.is_due = True
            opened.journal.looks = [OSError("away"), OSError("away")]
            await client.send(post(b"{}"))
            assert await report(client) == (503, "not_ready")
            opened.journal.looks = [None, None]
            await client.send(post(b"{}", *headers))
            assert await client.status() == 200
            await wait_until(lambda: opened.pool.released == 3)

    run(scenario, loop)


def test_reply_without_state_needs_no_look(loop: Loop) -> None:
    async def scenario() -> None:
        pool = Consulting()
        pool.answer = lambda job: Reply(200, JSON, [b"{}"])
        async with storing_server(pool) as opened:
            opened.journal.is_due = True
            client = await opened.connect()
            await client.send(post(b"{}"))
            assert await client.status() == 200

    run(scenario, loop)


@DOORS
def test_write_in_doubt_at_its_deadline_is_unconfirmed(loop: Loop, headers: tuple[bytes, ...]) -> None:
    """The write succeeds in the end, although its client got `unconfirmed`."""

    async def scenario() -> None:
        settings = Settings(device="cpu", timeout_ms=300)
        async with storing_server(settings=settings) as opened:
            opened.journal.shared = True
            client = await opened.connect()
            await client.send(post(b"{}", *headers))
            head, body = await client.response()
            problem = json.loads(body)
            assert (head[9:12], problem["code"]) == (b"503", "unconfirmed")
            assert b"retry-after: 1\r\n" in head.lower()
            assert "nothing was changed" not in problem["detail"]
            if headers:
                await client.send(post(b"{}", *headers))
                assert await report(client) == (409, "conflict")
            opened.journal.unblocked.set()
            await wait_until(lambda: opened.pool.placed)
            assert opened.pool.placed == [("", "w", ETAG)]
            await wait_until(lambda: opened.pool.released)
            if headers:
                await client.send(post(b"{}", NAMED))
                head, body = await client.response()
                assert (head[9:12], body) == (b"200", b'{"stored":[]}')
                assert b"idempotency-replayed: true\r\n" in head.lower()
                assert opened.pool.running == 1

    run(scenario, loop)


def test_replayed_answer_waits_for_a_look(loop: Loop) -> None:
    async def scenario() -> None:
        async with storing_server(at_once=True) as opened:
            client = await opened.connect()
            await client.send(post(b"{}", NAMED))
            assert await client.status() == 200
            opened.journal.is_due = True
            opened.journal.looks = [StateLost("another")]
            await client.send(post(b"{}", NAMED))
            assert await report(client) == (503, "not_ready")

    run(scenario, loop)


@DOORS
def test_timeout_applies_while_waiting_for_a_look(loop: Loop, headers: tuple[bytes, ...]) -> None:
    async def scenario() -> None:
        async with storing_server(Consulting()) as opened:
            opened.journal.is_due = True
            opened.journal.look = lambda: opened.journal.unblocked.wait(30.0)  # type: ignore[method-assign]
            client = await opened.connect()
            await client.send(post(b"{}", *headers).replace(b" HTTP", b"?timeout_ms=200 HTTP", 1))
            assert await report(client) == (503, "not_ready")
            opened.journal.unblocked.set()

    run(scenario, loop)
