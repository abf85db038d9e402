"""In-process connections: a server on a free port, a pool that the test controls, and clients that are sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import pytest

from service.api.media import JSON
from service.core.errors import Refusal
from service.core.keys.authentication import Gate
from service.core.settings import Settings
from service.observe.store import StoreService
from service.store.journal import Journal, MemoryJournal
from service.store.tables import TensorVersion
from service.web.connection import Connection
from service.web.observer import RequestObserver
from service.web.server import HANDLERS
from service.web.server_state import ServerState
from service.workers.pool import Done, Stats
from service.workers.task import Reply, Task
from tests.service.application import create_app

ANSWER = b'{"done":true}'
PATIENCE = 30.0


class Memory:
    """Memory that records its release."""

    def __init__(self, nbytes: int) -> None:
        self.view = memoryview(bytearray(nbytes))
        self.released = False

    def reserve(self, nbytes: int) -> int:
        return len(self.view)

    def pin(self) -> None:
        pass

    def release(self) -> None:
        self.released = True


class FakePool:
    """Pool that answers at once with `answer`, or, if that is None, when the test says so."""

    device = "cpu"
    busy = False

    def __init__(self, answer: Callable[[Task], Reply] | None = lambda job: Reply(200, JSON, [ANSWER])) -> None:
        self.answer = answer
        self.ready = True
        self.allocations: list[Memory] = []
        self.jobs: list[Task] = []
        self.cancelled: list[Task] = []
        self.placed: list[tuple[str, str, str | None]] = []
        self.done: dict[Task, Done] = {}
        self.news = asyncio.Event()

    def allocate(self, nbytes: int, tenant: str = "") -> Memory:
        if not self.ready:
            raise Refusal("shutting_down", "the server is shutting down and accepts no new requests", retry_after=5)
        self.allocations.append(Memory(nbytes))
        return self.allocations[-1]

    def allocate_tensor(self, nbytes: int) -> Memory:
        return Memory(nbytes)

    def place(self, namespace: str, name: str, resident: TensorVersion | None) -> None:
        self.placed.append((namespace, name, resident and resident.etag))

    def submit(self, job: Task, done: Done) -> None:
        self.jobs.append(job)
        self.news.set()
        if self.answer is not None:
            done(self.answer(job))
        else:
            self.done[job] = done

    def cancel(self, job: Task) -> None:
        self.cancelled.append(job)
        self.done.pop(job, None)
        self.news.set()

    def stats(self) -> Stats:
        raise NotImplementedError

    def drain(self) -> None:
        self.ready = False

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition that `submit` or `cancel` makes true."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self.news.clear()
                await self.news.wait()


class Client:
    """One connection, as bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, *pieces: bytes) -> None:
        """Write each piece in a packet of its own, if possible."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def response(self, *, bodiless: bool = False) -> tuple[bytes, bytes]:
        """Head and body of the next response of a stated length."""
        async with asyncio.timeout(PATIENCE):
            head = await self.reader.readuntil(b"\r\n\r\n")
            stated = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")]
            length = 0 if bodiless or not stated else int(stated[0][16:])
            return head, await self.reader.readexactly(length)

    async def status(self) -> int:
        """The status of the next response."""
        return int((await self.response())[0][9:12])

    async def rest(self) -> bytes:
        """Read until the server closes or resets the connection."""
        received = b""
        async with asyncio.timeout(PATIENCE):
            try:
                while piece := await self.reader.read(1 << 16):
                    received += piece
            except ConnectionResetError:
                pass
        return received

    def leave(self) -> None:
        """Close the connection, as a client does that hangs up."""
        self.writer.close()


class House:
    """Running server with its state, its pool and its clients."""

    def __init__(self, state: ServerState, pool: Any, address: tuple[str, int]) -> None:
        self.state, self.pool, self.address = state, pool, address
        self.clients: list[Client] = []

    async def connect(self, **more: Any) -> Client:
        """Connect another client."""
        self.clients.append(Client(*await asyncio.open_connection(*self.address, **more)))
        return self.clients[-1]

    async def ask(self, *pieces: bytes) -> bytes:
        """Send bytes, half-close the connection, and return everything that the server sends."""
        client = await self.connect()
        await client.send(*pieces)
        client.writer.write_eof()
        return await client.rest()


@cache
def application() -> Any:
    """The application on a pool that answers at once; cached, since it is slow to create."""
    return create_app(Settings(device="cpu", cors_origins=("https://app.example",)), FakePool())


@asynccontextmanager
async def house(
    pool: Any = None,
    app: Any = None,
    observer: RequestObserver | None = None,
    settings: Settings | None = None,
    ssl: Any = None,
    journal: Journal | None = None,
    store: StoreService | None = None,
    gate: Gate | None = None,
    **stated: Any,
) -> AsyncIterator[House]:
    """Run a server with these settings, on a FakePool by default."""
    pool = pool or FakePool()
    settings = settings or Settings(**{"device": "cpu", "max_connections_per_client": 4096, **stated})
    store = store or StoreService(settings, pool, journal or MemoryJournal())
    state = ServerState(settings, app or application(), pool, store, observer, gate)
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(state, HANDLERS), "127.0.0.1", 0, ssl=ssl
    )
    state.sweep()
    opened = House(state, pool, server.sockets[0].getsockname())
    try:
        yield opened
    finally:
        for client in opened.clients:
            client.leave()
        state.stop()
        server.close()
        for connected in state.clients:
            connected.abort()
        async with asyncio.timeout(PATIENCE):
            await state.wait_until_empty()


def loops() -> list[Callable[[], asyncio.AbstractEventLoop]]:
    """The event loops that a server may run on."""
    factories: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop]
    try:
        import uvloop
    except ImportError:
        return factories
    return [*factories, uvloop.new_event_loop]


on_each_loop = pytest.mark.parametrize("loop", loops(), ids=lambda factory: factory.__module__.partition(".")[0])


def run(scenario: Callable[[], Awaitable[None]], loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """Run a scenario to completion on an event loop from this factory."""

    async def whole() -> None:
        async with asyncio.timeout(2 * PATIENCE):
            await scenario()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(whole())


def post(body: bytes = b"{}", *headers: bytes, path: bytes = b"/v1/forward", length: int | None = None) -> bytes:
    """Build a POST request; `length` overrides its Content-Length."""
    stated = b"Content-Length: %d" % (len(body) if length is None else length)
    return b"\r\n".join([b"POST %b HTTP/1.1" % path, b"Host: localhost", stated, *headers, b"", b""]) + body


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n", path: bytes = b"/v1/forward") -> bytes:
    """Build a POST request with a chunked body."""
    head = b"POST %b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" % path
    return head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + end
