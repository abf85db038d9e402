"""Requests to other servers: sent once and unchanged, with different errors for unreachable and silent servers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from socket import create_server

import pytest

from service.cluster import http_peers
from service.cluster.connecting import body_of
from service.cluster.http_peers import HttpPeers, seconds_for_peer
from service.cluster.protocol import Silent, Slow, Unreachable
from service.core.errors import Refusal

#: function of a server that handles a connection
ConnectionHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
FOREVER = float("inf")
LONG = 3 << 20


def ask_server(answering: ConnectionHandler, ask: Callable[[HttpPeers, str], Awaitable[object]]) -> None:
    """Run a server with this handler, and send it a request."""

    over = []

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        over.append(ended := asyncio.get_running_loop().create_future())
        await answering(reader, writer)
        writer.close()
        ended.set_result(None)

    async def run() -> None:
        peers = HttpPeers("secret", "http://a:1")
        server = await asyncio.start_server(served, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            await ask(peers, f"http://127.0.0.1:{port}")
        finally:
            await peers.close()
            server.close()
            await asyncio.gather(*over)

    asyncio.run(run())


async def ask_versions(peers: HttpPeers, address: str) -> object:
    return await peers.ask(address, "versions", {}, (), FOREVER)


async def nothing() -> AsyncIterator[bytes]:
    nothing_yet: tuple[bytes, ...] = ()
    for piece in nothing_yet:
        yield piece


@pytest.fixture
def deaf_port() -> int:
    """A port without a listener."""
    with closing(create_server(("127.0.0.1", 0))) as listening:
        port: int = listening.getsockname()[1]
    return port


def test_refused_connection_is_unreachable(deaf_port: int) -> None:
    async def ask() -> None:
        peers = HttpPeers("secret", "http://a:1")
        try:
            await ask_versions(peers, f"http://127.0.0.1:{deaf_port}")
        finally:
            await peers.close()

    with pytest.raises(Unreachable, match=str(deaf_port)):
        asyncio.run(ask())


def test_connection_closed_without_an_answer_is_silent() -> None:
    async def ends(*_: object) -> None:
        pass

    with pytest.raises(Silent):
        ask_server(ends, ask_versions)


def test_silent_server_is_slow_at_the_deadline_and_unreachable_for_the_next_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A deadline before that of a probe must not keep the server from being replaced."""

    async def hangs(reader: asyncio.StreamReader, _: object) -> None:
        await reader.read()  # until the other server gives up

    async def ask(peers: HttpPeers, address: str) -> None:
        with pytest.raises(Slow):
            await peers.ask(address, "versions", {}, (), time.monotonic() + 0.01)
        monkeypatch.setattr(http_peers, "PEER_SILENCE", 0.01)
        await peers._probes[address]
        with pytest.raises(Unreachable):
            await ask_versions(peers, address)
        assert not peers._silent, "the question after that is sent"

    ask_server(hangs, ask)


def test_another_server_answers_before_the_deadline() -> None:
    for seconds in (0.01, 1.0, 1000.0):
        now = time.monotonic()
        assert now + seconds_for_peer(now + seconds) < now + seconds
    assert seconds_for_peer(FOREVER) == FOREVER


@pytest.mark.parametrize("method", ["DELETE", "PUT"])
def test_write_that_may_have_arrived_is_not_repeated(method: str) -> None:
    heads = []

    async def ends(reader: asyncio.StreamReader, _: object) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))

    async def ask(peers: HttpPeers, address: str) -> object:
        return await peers.forward(address, method, "/v1/tensors/w", [("content-length", "0")], nothing(), FOREVER)

    with pytest.raises(Silent):
        ask_server(ends, ask)
    assert len(heads) == 1


def test_path_and_headers_are_forwarded_unchanged() -> None:
    heads = []
    path = "/v1/tensors/a%2Fb%20%C3%A4?x=%26&y=+"

    async def notes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nGradserve-Cluster-Protocol: 1\r\nContent-Length: 0\r\n\r\n")

    async def ask(peers: HttpPeers, address: str) -> object:
        answer = await peers.forward(address, "GET", path, [("If-None-Match", '"ä"'), ("X-A", "1")], None, FOREVER)
        answer.close()
        return answer

    ask_server(notes, ask)
    lines = heads[0].decode().splitlines()
    assert lines[0] == f"GET {path} HTTP/1.1"
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
    assert fields.pop("host").startswith("127.0.0.1:")
    assert fields == {
        "gradserve-cluster-secret": "secret",
        "gradserve-cluster-protocol": "1",
        "gradserve-cluster-address": "http://a:1",
        "if-none-match": '"ä"',
        "x-a": "1",
    }


@pytest.mark.parametrize("lengths", [[], [0], [5, 0, 7], [LONG], [5, LONG, 5]])
def test_body_is_the_concatenation_of_its_parts(lengths: list[int]) -> None:
    parts = [bytes([65 + i]) * length for i, length in enumerate(lengths)]

    async def sent() -> bytes:
        fields, body = body_of(parts)
        if isinstance(body, bytes):
            assert fields == []
            return body
        assert fields == [("Content-Length", str(sum(lengths)))]
        slices = [each async for each in body]
        assert max(map(len, slices)) <= 1 << 20
        return b"".join(slices)

    assert asyncio.run(sent()) == b"".join(parts)


def test_refused_body_ends_the_request() -> None:
    """The refusal is the reason why the server has not answered; the caller reports it."""

    async def waits(reader: asyncio.StreamReader, _: object) -> None:
        await reader.read()

    async def refused() -> AsyncIterator[bytes]:
        yield b"1"
        raise Refusal("body_too_large", "the body is too long")

    async def ask(peers: HttpPeers, address: str) -> object:
        return await peers.forward(address, "PUT", "/", [("content-length", "9")], refused(), FOREVER)

    with pytest.raises(Silent):
        ask_server(waits, ask)
