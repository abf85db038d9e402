"""A server whose place another may have taken over: it answers what it has seen to be so, at either door."""

from __future__ import annotations

import json
from typing import Any

from service.api.media import JSON
from service.core.settings import Settings
from service.store.journal import StateLost
from service.workers.task import Reply, Task
from tests.service.web.harness import Client, on_each_loop, post, run
from tests.service.web.test_keeping_doors import DOORS, ETAG, NAMED, Loop, Storing, keeping, until

pytestmark = on_each_loop

#: all that is answered of what is kept, but for calls that compute
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
    """Replies with what rests on tensors."""

    def stored(self, job: Task) -> Reply:
        self.running += 1
        return Reply(200, JSON, [b'{"old":true}'], memory=self, consulted=True)


def asking(line: bytes) -> bytes:
    length = b"Content-Length: 0\r\n" if line.startswith(b"POST") else b""
    return line + b" HTTP/1.1\r\nHost: localhost\r\n" + length + b"\r\n"


async def report(client: Client) -> tuple[int, Any]:
    head, body = await client.response()
    return int(head[9:12]), json.loads(body)["code"]


async def code_of(client: Client, line: bytes) -> tuple[int, str | None]:
    """The status of the answer to a request without a body, and the code, where it is a refusal that shows it."""
    await client.send(asking(line))
    head, body = await client.response(bodiless=line.startswith(b"HEAD"))
    return int(head[9:12]), json.loads(body).get("code") if body else None


def test_nothing_is_answered_of_the_state_once_the_place_is_lost(loop: Loop) -> None:
    async def scenario() -> None:
        async with keeping(at_once=True) as opened:
            client = await opened.connect()
            await client.send(post(b"{}"))
            assert await client.status() == 200
            opened.journal.is_due = True
            opened.journal.looks = [StateLost("another")]
            for line in READS:
                assert await code_of(client, line) in ((503, "not_ready"), (503, None)), line
            assert not opened.journal.looks

    run(scenario, loop)


def test_where_the_place_does_not_answer_nobody_knows(loop: Loop) -> None:
    async def scenario() -> None:
        async with keeping(at_once=True) as opened:
            client = await opened.connect()
            for line in READS:
                opened.journal.is_due = True
                opened.journal.looks = [OSError("away"), None]
                assert await code_of(client, line) in ((503, "not_ready"), (503, None)), line
                status, _ = await code_of(client, line)
                assert status in (200, 404), line

    run(scenario, loop)


@DOORS
def test_what_rests_on_tensors_is_seen_before_it_is_answered(loop: Loop, headers: tuple[bytes, ...]) -> None:
    async def scenario() -> None:
        async with keeping(Consulting()) as opened:
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
            await until(lambda: opened.pool.released == 3)

    run(scenario, loop)


def test_what_rests_on_nothing_kept_is_answered_while_the_place_is_away(loop: Loop) -> None:
    async def scenario() -> None:
        pool = Consulting()
        pool.answer = lambda job: Reply(200, JSON, [b"{}"])
        async with keeping(pool) as opened:
            opened.journal.is_due = True
            client = await opened.connect()
            await client.send(post(b"{}"))
            assert await client.status() == 200

    run(scenario, loop)


@DOORS
def test_at_its_deadline_a_write_in_doubt_is_unconfirmed(loop: Loop, headers: tuple[bytes, ...]) -> None:
    """What is kept in the end is there, though its client was told that this is not known."""

    async def scenario() -> None:
        settings = Settings(device="cpu", timeout_ms=300)
        async with keeping(settings=settings) as opened:
            opened.journal.shared = True
            client = await opened.connect()
            await client.send(post(b"{}", *headers))
            head, body = await client.response()
            told = json.loads(body)
            assert (head[9:12], told["code"]) == (b"503", "unconfirmed")
            assert b"retry-after: 1\r\n" in head.lower()
            assert "what was there before stands" not in told["detail"]
            if headers:
                await client.send(post(b"{}", *headers))
                assert await report(client) == (409, "conflict")
            opened.journal.may.set()
            await until(lambda: opened.pool.placed)
            assert opened.pool.placed == [("", "w", ETAG)]
            await until(lambda: opened.pool.released)
            if headers:
                await client.send(post(b"{}", NAMED))
                head, body = await client.response()
                assert (head[9:12], body) == (b"200", b'{"stored":[]}')
                assert b"idempotency-replayed: true\r\n" in head.lower()
                assert opened.pool.running == 1

    run(scenario, loop)


def test_a_replay_is_seen_before_it_is_answered(loop: Loop) -> None:
    async def scenario() -> None:
        async with keeping(at_once=True) as opened:
            client = await opened.connect()
            await client.send(post(b"{}", NAMED))
            assert await client.status() == 200
            opened.journal.is_due = True
            opened.journal.looks = [StateLost("another")]
            await client.send(post(b"{}", NAMED))
            assert await report(client) == (503, "not_ready")

    run(scenario, loop)


@DOORS
def test_who_waits_for_a_look_has_the_time_that_it_states(loop: Loop, headers: tuple[bytes, ...]) -> None:
    async def scenario() -> None:
        async with keeping(Consulting()) as opened:
            opened.journal.is_due = True
            opened.journal.look = lambda: opened.journal.may.wait(30.0)  # type: ignore[method-assign]
            client = await opened.connect()
            await client.send(post(b"{}", *headers).replace(b" HTTP", b"?timeout_ms=200 HTTP", 1))
            assert await report(client) == (503, "not_ready")
            opened.journal.may.set()

    run(scenario, loop)
