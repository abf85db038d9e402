"""Connections: pipelined requests, requests split at any byte, and refusals that close the connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.api.media import JSON, PROBLEM
from service.workers.task import Reply, Task
from tests.service.web.harness import ANSWER, FakePool, chunked, house, on_each_loop, post, run

pytestmark = on_each_loop

Loop = Callable[[], asyncio.AbstractEventLoop]


def echo(job: Task) -> Reply:
    """Reply with the call and the body of the job."""
    return Reply(200, JSON, [job.call.encode() + b":", bytes(job.body)])


def code(body: bytes) -> str:
    """The code of a problem report."""
    return str(json.loads(body)["code"])


def test_pipelined_requests_are_answered_in_order(loop: Loop) -> None:
    async def scenario() -> None:
        async with house(FakePool(echo)) as opened:
            client = await opened.connect()
            live = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
            await client.send(post(b"1") + live + post(b"2", path=b"/v1/gradients") + chunked(b"3", b"4") + live)
            bodies = [(await client.response())[1] for _ in range(5)]
            assert bodies == [b"forward:1", b'{"status":"live"}', b"gradients:2", b"forward:34", b'{"status":"live"}']

    run(scenario, loop)


@pytest.mark.slow
def test_request_sent_while_the_server_stops_is_refused(loop: Loop) -> None:
    """A proxy may send a request before it sees the close; idle connections are closed without an answer."""

    async def scenario() -> None:
        async with house() as opened:
            client, idle = await opened.connect(), await opened.connect()
            for each in (client, idle):
                await each.send(post(b"{}"))
                assert await each.status() == 200
            opened.pool.drain()
            opened.state.drain()
            await client.send(post(LARGE))
            head, body = await client.response()
            assert head.startswith(b"HTTP/1.1 503 ")
            assert code(body) == "shutting_down"
            assert [await client.rest(), await idle.rest()] == [b"", b""]

    run(scenario, loop)


WHOLE = {
    "counted": post(b'{"a": 1}'),
    "chunked": chunked(b'{"a"', b": ", b"1}", end=b"0;x=y\r\nDigest: a\r\n\r\n"),
    "other door": post(b'{"a": 1}', path=b"/v1/nothing"),
    "no body": b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "two": post(b"1") + chunked(b"22"),
}


@pytest.mark.parametrize("sent", WHOLE.values(), ids=WHOLE)
def test_request_may_be_split_at_any_byte(loop: Loop, sent: bytes) -> None:
    async def scenario() -> None:
        async with house(FakePool(echo)) as opened:
            whole = undated(await opened.ask(sent))
            assert whole.startswith(b"HTTP/1.1 ")
            for split in range(1, len(sent)):
                assert undated(await opened.ask(sent[:split], sent[split:])) == whole

    run(scenario, loop)


def test_request_may_arrive_one_byte_at_a_time(loop: Loop) -> None:
    async def scenario() -> None:
        async with house(FakePool(echo)) as opened:
            for sent in WHOLE.values():
                pieces = [sent[i : i + 1] for i in range(len(sent))]
                assert undated(await opened.ask(*pieces)) == undated(await opened.ask(sent))

    run(scenario, loop)


def undated(response: bytes) -> bytes:
    """Remove headers that differ between answers, and `Connection`, which depends on whether the body was read."""
    varied = (b"date: ", b"x-request-id: ", b"connection: ")
    lines = [line for line in response.split(b"\r\n") if not line.startswith(varied)]
    return b"\r\n".join(line.partition(b'"request_id":')[0] for line in lines)


@pytest.mark.slow
@given(garbage=st.lists(st.one_of(st.binary(max_size=60), st.sampled_from(
    [b"\r\n", b"\r\n\r\n", b"POST /v1/forward HTTP/1.1\r\n", b"Host: localhost\r\n", b"Content-Length: 5\r\n", b"0\r\n",
     b"Transfer-Encoding: chunked\r\n", b"GET / HTTP/1.1\r\n", b"Expect: 100-continue\r\n", b"\x00", b": ", b"F" * 17]
)), min_size=1, max_size=12))  # fmt: skip
@settings(max_examples=100)
def test_garbage_never_causes_a_server_error(loop: Loop, garbage: list[bytes]) -> None:
    """The connection ends, since the client has half-closed it."""

    async def scenario() -> None:
        async with house() as opened:
            received = await opened.ask(b"".join(garbage))
            statuses = [part[:3] for part in received.split(b"HTTP/1.1 ")[1:]]
            assert not [status for status in statuses if status.startswith(b"5")], received

    run(scenario, loop)


class TestRefusals:
    """Ambiguous framing gets a report and ends the connection."""

    @pytest.mark.parametrize(
        "lines",
        [
            [b"Content-Length: 2", b"Content-Length: 2"],
            [b"Content-Length: 2", b"Content-Length: 3"],
            [b"Content-Length: 2, 2"],
            [b"Content-Length: "],
            [b"Content-Length: +2"],
            [b"Content-Length: 0x2"],
            [b"Content-Length: 2 2"],
            [b"Content-Length: " + b"9" * 30],
            [b"Content-Length : 2"],
            [b"Transfer-Encoding: chunked", b"Content-Length: 2"],
            [b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"],
            [b"Transfer-Encoding: chunked, chunked"],
            [b"Transfer-Encoding: gzip, chunked"],
            [b"Transfer-Encoding: identity"],
            [b"Transfer-Encoding: xchunked"],
            [b"Transfer-Encoding : chunked"],
            [b"Transfer-Encoding: chunked", b" folded"],
            [b"X-Folded: a", b"\tb"],
            [b" X-First: folded"],
            [b"X-Nul: a\x00b"],
            [b"X-Return: a\rb"],
            [b"X-Bell: \x07"],
            [b"No colon"],
            [b": no name"],
            [b"Host: another"],
        ],
        ids=lambda lines: b" / ".join(lines).decode("latin-1").encode("unicode_escape").decode()[:60],
    )
    def test_malformed_header_is_refused(self, loop: Loop, lines: list[bytes]) -> None:
        async def scenario() -> None:
            async with house() as opened:
                sent = b"\r\n".join([b"POST /v1/forward HTTP/1.1", b"Host: localhost", *lines, b"", b""]) + b"{}"
                await refused(opened, sent, 400, "bad_request_framing")
                assert not opened.pool.jobs

        run(scenario, loop)

    @pytest.mark.parametrize(
        "sent",
        [
            b"GET / HTTP/1.1\nHost: localhost\n\n",
            b"GET / HTTP/1.1\r\nHost: localhost\n\r\n",
            b"GET / HTTP/1.1\nHost",
            b"GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01",
            b"\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"G\x00",
            b"\x80\x00 / HTTP/1.1\r\n\r\n",
        ],
    )
    def test_malformed_head_is_refused(self, loop: Loop, sent: bytes) -> None:
        """The refusal does not wait for the end of a head that is already malformed."""

        async def scenario() -> None:
            async with house() as opened:
                await refused(opened, sent, 400, "bad_request_framing")

        run(scenario, loop)

    @pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
    @pytest.mark.parametrize("filler", [b"X-Long: " + b"x" * 3000, b"X: y\r\n" * 500])
    def test_oversized_head_is_refused(self, loop: Loop, filler: bytes, end: bytes) -> None:
        async def scenario() -> None:
            async with house(max_header_bytes=2048) as opened:
                sent = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + filler + end
                await refused(opened, sent, 431, "headers_too_large")

        run(scenario, loop)

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            (b"FFFFFFFFFFFFFFFFF", 400),
            (b"FFFFFFFFFFFFFFFF\r\n", 413),
            (b"7FFFFFFFFFFFFFFF\r\n", 413),
            (b"3e9\r\n", 413),
            (b"-1\r\n", 400),
            (b"+1\r\n", 400),
            (b"0x1\r\n", 400),
            (b" 1\r\n", 400),
            (b"1 \r\n", 400),
            (b"\r\n", 400),
            (b"1\n", 400),
            (b"1\r\nab", 400),
            (b"1\r\na\n", 400),
            (b"1;\x00\r\n", 400),
            (b"1;" + b"x" * 5000, 400),
            (b"0\r\n" + b"A: b\r\n" * 1000, 400),
            (b"0\r\nno colon\r\n", 400),
            (b"0\r\n folded: a\r\n", 400),
            (b"1\r\na\r\n" * 11, 413),
        ],
        ids=lambda value: repr(value)[:40],
    )
    @pytest.mark.parametrize("path", [b"/v1/forward", b"/v1/forward/"])
    def test_malformed_or_oversized_chunks_are_refused(self, loop: Loop, path: bytes, body: bytes, status: int) -> None:
        async def scenario() -> None:
            async with house(max_body_bytes=1000, max_chunks=10) as opened:
                expected = "bad_request_framing" if status == 400 else "body_too_large"
                await refused(opened, chunked(end=body, path=path), status, expected)
                assert not opened.pool.jobs

        run(scenario, loop)


async def refused(opened: object, sent: bytes, status: int, expected: str) -> None:
    """Expect the complete report and then the end, although the client has not half-closed."""
    client = await opened.connect()  # type: ignore[attr-defined]
    await client.send(sent)
    head, body = await client.response()
    assert head.startswith(b"HTTP/1.1 %d " % status), head + body
    assert PROBLEM.encode() in head
    assert b"connection: close" in head
    assert code(body) == expected
    assert await client.rest() == b""


def test_bytes_after_a_refusal_are_not_read_as_a_request(loop: Loop) -> None:
    async def scenario() -> None:
        async with house() as opened:
            await opened.ask(b"POST /v1/forward HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n" + post())
            assert not opened.pool.jobs

    run(scenario, loop)


class TestForms:
    """Valid forms of requests."""

    @pytest.mark.parametrize(
        ("sent", "closes"),
        [
            (b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n", False),
            (b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Close\r\n\r\n", True),
            (b"GET /health/live HTTP/1.0\r\n\r\n", True),
            (b"GET /health/live HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", True),
            (b"GET http://elsewhere:80/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n", False),
            (b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab", False),
            (post(b"{}", b"Connection: close"), True),
            (post(b"{}", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMA"), False),
            (post(b"{}", path=b"http://localhost:80/v1/forward"), False),
        ],
    )
    def test_valid_request_is_answered(self, loop: Loop, sent: bytes, closes: bool) -> None:
        async def scenario() -> None:
            async with house() as opened:
                client = await opened.connect()
                await client.send(sent)
                head, body = await client.response()
                assert head.startswith(b"HTTP/1.1 200 OK\r\n")
                assert (b"connection: close\r\n" in head) is closes
                assert body in (ANSWER, b'{"status":"live"}')
                if closes:
                    assert await client.rest() == b""
                else:
                    await client.send(post())
                    assert await client.status() == 200

        run(scenario, loop)

    def test_head_gets_no_body(self, loop: Loop) -> None:
        async def scenario() -> None:
            async with house() as opened:
                client = await opened.connect()
                await client.send(b"HEAD /v1/ops HTTP/1.1\r\nHost: localhost\r\n\r\n" + post())
                head, _ = await client.response(bodiless=True)
                assert head.startswith(b"HTTP/1.1 200 ")
                assert (await client.response())[1] == ANSWER

        run(scenario, loop)

    @pytest.mark.parametrize("path", [b"/v1/forward", b"/v1/forward/"])
    def test_expect_continue_gets_one_100_response(self, loop: Loop, path: bytes) -> None:
        async def scenario() -> None:
            async with house() as opened:
                client = await opened.connect()
                await client.send(post(b"", b"Expect: 100-continue", path=path, length=4))
                assert await client.response() == (b"HTTP/1.1 100 Continue\r\n\r\n", b"")
                await client.send(b"{", b" ", b" ", b"}")
                assert await client.status() == 200

        run(scenario, loop)

    def test_no_100_response_if_the_body_has_arrived(self, loop: Loop) -> None:
        async def scenario() -> None:
            async with house() as opened:
                client = await opened.connect()
                await client.send(post(b"{}", b"Expect: 100-continue"))
                assert await client.status() == 200

        run(scenario, loop)

    def test_valid_request_id_of_the_client_is_used(self, loop: Loop) -> None:
        async def scenario() -> None:
            async with house() as opened:
                client = await opened.connect()
                for stated, valid in ((b"trace-1", True), (b"a b", False)):
                    await client.send(post(b"{}", b"X-Request-Id: " + stated))
                    head, _ = await client.response()
                    assert (b"x-request-id: %b\r\n" % stated in head) is valid
                assert opened.pool.jobs[0].request_id == "trace-1"
                assert opened.pool.jobs[1].request_id not in ("trace-1", "a b")

        run(scenario, loop)


def test_job_has_call_types_timeout_and_body_of_the_request(loop: Loop) -> None:
    async def scenario() -> None:
        async with house() as opened:
            kind = b"application/vnd.safetensors"
            path = b"/v1/gradients?timeout_ms=2000"
            await opened.ask(post(b"\0\xff", b"Content-Type: " + kind, b"Accept: " + kind, path=path))
            (job,) = opened.pool.jobs
            assert (job.call, job.body, job.graph, job.timeout) == ("gradients", b"\0\xff", None, 2.0)
            assert (job.body_type, job.answer_type) == (kind.decode(), kind.decode())

    run(scenario, loop)


LARGE = bytes(range(256)) * 4096


class TestLargeBodies:
    """Large bodies go into memory that is reserved when the head arrives."""

    @pytest.mark.parametrize(
        "sent", [post(LARGE), chunked(LARGE), chunked(*[LARGE[i : i + 999] for i in range(0, len(LARGE), 999)])]
    )
    def test_large_body_arrives_complete(self, loop: Loop, sent: bytes) -> None:
        async def scenario() -> None:
            async with house(FakePool(echo), max_body_bytes=2 << 20) as opened:
                client = await opened.connect()
                await client.send(sent + post(b"next"))
                assert (await client.response())[1] == b"forward:" + LARGE
                assert (await client.response())[1] == b"forward:next"
                large, small = opened.pool.jobs
                assert (large.memory, small.memory) == (opened.pool.allocations[0], None)
                assert not opened.pool.allocations[0].released, "that is the pool's to do"

        run(scenario, loop)

    def test_small_chunked_body_reserves_no_memory(self, loop: Loop) -> None:
        async def scenario() -> None:
            async with house() as opened:
                await opened.ask(chunked(b"a" * 1000, b"b" * 1000))
                assert not opened.pool.allocations

        run(scenario, loop)

    @pytest.mark.parametrize("leaves", [True, False])
    def test_memory_is_released_if_the_body_does_not_arrive(self, loop: Loop, *, leaves: bool) -> None:
        async def scenario() -> None:
            async with house(body_timeout=0.2) as opened:
                client = await opened.connect()
                await client.send(post(LARGE[:100_000], length=len(LARGE)))
                if leaves:
                    client.writer.write_eof()
                assert await client.status() == (400 if leaves else 408)
                assert [memory.released for memory in opened.pool.allocations] == [True]
                assert not opened.pool.jobs

        run(scenario, loop)

    def test_body_without_memory_is_refused_at_once(self, loop: Loop) -> None:
        """The refusal is sent at once, and the rest of the body is dropped."""

        async def scenario() -> None:
            async with house() as opened:
                opened.pool.drain()
                client = await opened.connect()
                await client.send(post(LARGE))
                head, body = await client.response()
                assert head.startswith(b"HTTP/1.1 503 ")
                assert b"retry-after: 5\r\n" in head
                assert code(body) == "shutting_down"
                assert await client.rest() == b""

        run(scenario, loop)
