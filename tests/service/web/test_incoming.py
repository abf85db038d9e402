"""Slow, silent and disconnected clients, and connection limits.

Time limits are short, and tests wait for the end of a connection.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from service.api.media import JSON
from service.core.keys.authentication import Gate, KeyRing
from service.core.settings import Settings
from service.web.body_reader import MinimumRate
from service.web.connection import Connection
from service.workers.task import Reply, Task
from tests.service.web.harness import ANSWER, PATIENCE, FakePool, House, chunked, house, on_each_loop, post, run

Loop = Callable[[], asyncio.AbstractEventLoop]
LIVE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
BIG = 32 << 20


class TestMinimumRate:
    """Credit of a slow client, with times that the test chooses."""

    RATE = MinimumRate(credit=10.0, rate=100.0)

    def lateness(self, *moves: tuple[float, int]) -> list[bool]:
        """Return for each pair of a time and a number of transferred bytes whether the client was late."""
        due, late = self.RATE.credit, []
        for now, nbytes in moves:
            late.append(now >= due)
            due = self.RATE.after(due, now, nbytes)
        return late

    def test_silent_client_is_late(self) -> None:
        assert self.lateness((9.9, 0), (10.0, 0)) == [False, True]

    def test_client_at_the_minimum_rate_is_never_late(self) -> None:
        assert not any(self.lateness(*[(float(second), 100) for second in range(1000)]))

    def test_trickling_client_is_late_soon(self) -> None:
        assert self.lateness(*[(float(second), 1) for second in range(20)]).index(True) == 11

    def test_fast_transfer_does_not_pay_for_later_silence(self) -> None:
        assert self.lateness((1.0, 10**9), (10.9, 0), (11.1, 0)) == [False, False, True]


@on_each_loop
class TestReading:
    """Requests that do not arrive in time."""

    @pytest.mark.slow
    @pytest.mark.parametrize("sent", [b"", b"G", b"POST /v1/forward HTTP/1.1\r\nHost: te"])
    def test_incomplete_head_times_out(self, loop: Loop, sent: bytes) -> None:
        async def scenario() -> None:
            async with house(header_timeout=0.1) as opened:
                client = await opened.connect()
                await client.send(sent)
                received = await client.rest()
                assert received.startswith(b"HTTP/1.1 408 ") if sent else received == b""

        run(scenario, loop)

    @pytest.mark.slow
    def test_incomplete_head_after_a_request_times_out(self, loop: Loop) -> None:
        async def scenario() -> None:
            async with house(header_timeout=0.1, keep_alive=3600) as opened:
                client = await opened.connect()
                await client.send(post() + b"GET / HT")
                assert [await client.status(), await client.status()] == [200, 408]
                assert await client.rest() == b""

        run(scenario, loop)

    @pytest.mark.slow
    def test_trickling_head_times_out(self, loop: Loop) -> None:
        """Received bytes do not extend the time limit of a head."""

        async def scenario() -> None:
            async with house(header_timeout=0.2) as opened:
                client = await opened.connect()

                async def trickle() -> None:
                    while True:
                        client.writer.write(b"x")
                        await asyncio.sleep(0.01)

                trickling = asyncio.create_task(trickle())
                await client.send(b"GET / HTTP/1.1\r\nX: ")
                assert (await client.rest()).startswith(b"HTTP/1.1 408 ")
                trickling.cancel()

        run(scenario, loop)

    @pytest.mark.slow
    @pytest.mark.parametrize("path", [b"/v1/forward", b"/v1/nothing/"])
    @pytest.mark.parametrize("sent", [post(b"{", length=2), chunked(b"{", end=b"")], ids=["counted", "chunked"])
    def test_incomplete_body_times_out(self, loop: Loop, sent: bytes, path: bytes) -> None:
        async def scenario() -> None:
            async with house(body_timeout=0.1) as opened:
                client = await opened.connect()
                await client.send(sent.replace(b"/v1/forward", path))
                assert (await client.rest())[9:12] == (b"404" if path.endswith(b"/") else b"408")

        run(scenario, loop)

    @pytest.mark.slow
    def test_trickling_body_times_out(self, loop: Loop) -> None:
        async def scenario() -> None:
            async with house(body_timeout=0.2, min_rate=10**9) as opened:
                client = await opened.connect()
                await client.send(post(b"", length=10**6))

                async def trickle() -> None:
                    while True:
                        client.writer.write(b" ")
                        await asyncio.sleep(0.01)

                trickling = asyncio.create_task(trickle())
                assert (await client.rest()).startswith(b"HTTP/1.1 408 ")
                trickling.cancel()

        run(scenario, loop)

    @pytest.mark.slow
    def test_deadline_applies_while_the_body_arrives(self, loop: Loop) -> None:
        async def scenario() -> None:
            async with house(body_timeout=3600.0) as opened:
                client = await opened.connect()
                await client.send(post(b"{", path=b"/v1/forward?timeout_ms=100", length=2))
                head, body = await client.response()
                assert (head[9:12], json.loads(body)["code"]) == (b"504", "deadline_exceeded")
                assert not opened.pool.jobs

        run(scenario, loop)

    @pytest.mark.slow
    def test_idle_connection_is_closed(self, loop: Loop) -> None:
        async def scenario() -> None:
            async with house(keep_alive=1) as opened:
                client = await opened.connect()
                await client.send(post())
                assert await client.status() == 200
                assert await client.rest() == b""

        run(scenario, loop)

    @pytest.mark.parametrize("drain", [0, 100_000, 10**9])
    def test_lingering_ends_by_bytes_or_silence(self, loop: Loop, drain: int) -> None:
        async def scenario() -> None:
            async with house(drain_bytes=drain, body_timeout=3600.0) as opened:
                client = await opened.connect()
                await client.send(post(b"", b"Content-Type: text/csv", length=10**6))
                assert await client.status() == 415
                client.writer.write(bytes(500_000))
                assert await client.rest() == b""

        run(scenario, loop)


def large(job: Task) -> Reply:
    """Reply with more bytes than system buffers hold."""
    return Reply(200, JSON, [memoryview(bytes(BIG))], memory=RecordingMemory(job))


RELEASED: list[Task] = []


@dataclass
class RecordingMemory:
    """Memory of an answer that records its release."""

    job: Task

    def release(self) -> None:
        RELEASED.append(self.job)


async def stalled_reader(opened: House) -> socket.socket:
    """Connect a client with a small buffer that requests a large answer and does not read it."""
    loop = asyncio.get_running_loop()
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await loop.sock_connect(client, opened.address)
    await loop.sock_sendall(client, post())
    await opened.pool.until(lambda: bool(opened.pool.jobs))
    return client


async def send_forever(client: socket.socket) -> None:
    """Send requests forever."""
    while True:
        await asyncio.get_running_loop().sock_sendall(client, post() * 100)


async def run_loop_until(condition: Callable[[], bool]) -> None:
    """Run the event loop until the condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - no event signals it
            await asyncio.sleep(0)


@on_each_loop
class TestWriting:
    """A client that does not read an answer does not hold its memory."""

    def test_large_answer_is_complete_and_its_memory_released_once(self, loop: Loop) -> None:
        async def scenario() -> None:
            RELEASED.clear()
            async with house(FakePool(large)) as opened:
                client = await opened.connect(limit=1 << 20)
                await client.send(post() + LIVE)
                head, body = await client.response()
                assert head.startswith(b"HTTP/1.1 200 OK\r\n")
                assert body == bytes(BIG)
                assert (await client.response())[1] == b'{"status":"live"}'
                assert opened.pool.jobs == RELEASED, "once"

        run(scenario, loop)

    def test_stalled_reader_is_disconnected(self, loop: Loop) -> None:
        async def scenario() -> None:
            RELEASED.clear()
            async with house(FakePool(large), send_timeout=0.2) as opened:
                client = await stalled_reader(opened)
                await opened.state.wait_until_empty()
                assert opened.pool.jobs == RELEASED
                client.close()

        run(scenario, loop)

    def test_memory_is_released_when_the_reader_disconnects(self, loop: Loop) -> None:
        async def scenario() -> None:
            RELEASED.clear()
            async with house(FakePool(large), send_timeout=3600.0) as opened:
                client = await stalled_reader(opened)
                client.close()
                await opened.state.wait_until_empty()
                assert opened.pool.jobs == RELEASED

        run(scenario, loop)

    def test_client_that_never_reads_is_not_served_forever(self, loop: Loop) -> None:
        """The client is served no more than buffers hold, and its connection ends."""

        async def scenario() -> None:
            reply = Reply(200, JSON, [bytes(60_000)])
            async with house(FakePool(lambda _: reply), send_timeout=0.2) as opened:
                client = await stalled_reader(opened)
                sending = asyncio.create_task(send_forever(client))
                await opened.state.wait_until_empty()
                assert 60_000 * len(opened.pool.jobs) < 64 << 20
                sending.cancel()
                client.close()

        run(scenario, loop)

    def test_endless_pipelined_requests_pause_reading(self, loop: Loop) -> None:
        async def scenario() -> None:
            async with house(FakePool(None)) as opened:
                client = await opened.connect()
                sending = asyncio.create_task(client.send(post() * 200_000))
                await opened.pool.until(lambda: bool(opened.pool.jobs))
                (connected,) = opened.state.clients
                assert isinstance(connected, Connection)
                await run_loop_until(lambda: connected.reading_paused)
                assert len(connected.pending_bytes) < 256 << 10
                assert len(opened.pool.jobs) == 1
                sending.cancel()

        run(scenario, loop)


@on_each_loop
class TestLeaving:
    """A client that disconnects cancels its job."""

    @pytest.mark.parametrize("how", ["close", "reset", "half"])
    def test_disconnect_cancels_the_running_job(self, loop: Loop, how: str) -> None:
        async def scenario() -> None:
            async with house(FakePool(None)) as opened:
                client = await opened.connect()
                await client.send(post())
                await opened.pool.until(lambda: bool(opened.pool.jobs))
                if how == "half":
                    client.writer.write_eof()
                elif how == "reset":
                    connected = client.writer.get_extra_info("socket")
                    connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    client.leave()
                else:
                    client.leave()
                await opened.pool.until(lambda: opened.pool.cancelled == opened.pool.jobs)
                await opened.state.wait_until_empty()

        run(scenario, loop)

    def test_disconnect_cancels_the_application(self, loop: Loop) -> None:
        async def scenario() -> None:
            cancelled = asyncio.Event()

            begun = asyncio.Event()

            async def app(*_: object) -> None:
                try:
                    begun.set()
                    await asyncio.Event().wait()
                finally:
                    cancelled.set()

            async with house(app=app) as opened:
                client = await opened.connect()
                await client.send(post(path=b"/v1/forward/"))
                await begun.wait()
                client.leave()
                async with asyncio.timeout(PATIENCE):
                    await cancelled.wait()

        run(scenario, loop)

    def test_half_closed_client_is_still_answered(self, loop: Loop) -> None:
        async def scenario() -> None:
            async with house() as opened:
                assert b'{"status":"live"}' in await opened.ask(LIVE)

        run(scenario, loop)


@on_each_loop
class TestCrowds:
    """Too many connections: idle ones are closed, and surplus ones may only request the server's health."""

    @pytest.mark.parametrize("setting", ["max_connections", "max_connections_per_client"])
    def test_surplus_connection_gets_only_health(self, loop: Loop, setting: str) -> None:
        async def scenario() -> None:
            async with house(FakePool(None), **{setting: 2}) as opened:
                inside = [await opened.connect() for _ in range(2)]
                for client in inside:
                    await client.send(post())
                await opened.pool.until(lambda: len(opened.pool.done) == 2)
                surplus = await opened.connect()
                await surplus.send(post())
                head, body = await surplus.response()
                assert (head[9:12], json.loads(body)["code"]) == (b"503", "queue_full")
                assert b"retry-after: 1\r\n" in head
                probe = await opened.connect()
                await probe.send(LIVE)
                head, _ = await probe.response()
                assert (head[9:12], b"connection: close\r\n" in head) == (b"200", True)
                for done in opened.pool.done.values():
                    done(Reply(200, JSON, [ANSWER]))
                assert [(await client.response())[1] for client in inside] == [ANSWER] * 2

        run(scenario, loop)

    def test_surplus_connections_do_not_block_health_checks(self, loop: Loop) -> None:
        async def scenario() -> None:
            async with house(FakePool(None), max_connections=1) as opened:
                await (await opened.connect()).send(post())
                await opened.pool.until(lambda: len(opened.pool.done) == 1)
                for _ in range(100):
                    await opened.connect()
                probe = await opened.connect()
                await probe.send(LIVE)
                assert await probe.status() == 200
                assert len(opened.state.clients) < 50

        run(scenario, loop)

    def test_idle_connections_without_a_key_are_closed_first(self, loop: Loop) -> None:
        key = "k" * 43
        with_key = post(b"{}", b"Authorization: Bearer " + key.encode())

        async def scenario() -> None:
            async with house(FakePool(), max_connections=4, gate=Gate(KeyRing(None, key))) as opened:
                clients = [await opened.connect() for _ in range(4)]
                for client, sent in zip(clients, (with_key, LIVE, b"POST /v1", with_key), strict=True):
                    await client.send(sent)
                    if sent.endswith(b"\r\n\r\n{}") or sent == LIVE:
                        assert await client.status() == 200
                gone = []
                for _ in range(4):
                    opened.state._idle_collected = False
                    newcomer = await opened.connect()
                    await newcomer.send(with_key)
                    assert await newcomer.status() == 200
                    gone += [i for i, client in enumerate(clients) if client.reader.at_eof() and i not in gone]
                assert sorted(gone[:2]) == [1, 2], "without a key"
                assert gone[2:] == [0, 3], "idle for longest"

        run(scenario, loop)

    def test_one_address_may_have_an_eighth_of_the_connections(self, loop: Loop) -> None:
        assert Settings(device="cpu").max_connections_per_client == 512
        assert Settings(device="cpu", max_connections=80).max_connections_per_client == 10

    def test_closed_connection_frees_its_place(self, loop: Loop) -> None:
        async def scenario() -> None:
            async with house(max_connections=1) as opened:
                for _ in range(3):
                    client = await opened.connect()
                    await client.send(post())
                    assert await client.status() == 200
                    client.leave()
                    await opened.state.wait_until_empty()

        run(scenario, loop)
