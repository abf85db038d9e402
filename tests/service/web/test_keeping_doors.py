"""Tensors of a reply are durable before it is sent, on both paths, even if the client disconnects meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from service.api.media import JSON
from service.core.settings import Settings
from service.observe.store import StoreService
from service.store.changes import ABSENT
from service.store.journal import MemoryJournal, StateFull, StateLost
from service.store.writes import Commit, Stored
from service.workers.task import Reply, Task
from tests.service.application import create_routes, wrap
from tests.service.web.harness import Client, FakePool, House, house, on_each_loop, post, run

pytestmark = on_each_loop

Loop = Callable[[], asyncio.AbstractEventLoop]
SETTINGS = Settings(device="cpu", timeout_ms=20_000)
#: header that makes a call skip the fast path
NAMED = b"Idempotency-Key: one"
DOORS = pytest.mark.parametrize("headers", [(), (NAMED,)], ids=["fast", "asgi"])
ETAG = "0123456789abcdef"
PATIENCE = 30.0


class BlockingJournal(MemoryJournal):
    """Journal that blocks until the test unblocks it, and fails if the test says so."""

    def __init__(self) -> None:
        self.unblocked = threading.Event()
        self.begun = threading.Event()
        self.commits: list[Commit] = []
        self.failure: Exception | None = None
        #: whether other servers may write to the same place, and whether a look at it is due
        self.shared = self.is_due = False
        self.looks: list[Exception | None] = []

    def holds(self) -> bool:
        return not self.is_due

    def look(self) -> None:
        failure = self.looks.pop(0)
        if failure is not None:
            raise failure
        self.is_due = False

    def give_up(self) -> None:
        self.unblocked.set()

    def commit(self, batch: Sequence[Commit]) -> None:
        self.begun.set()
        assert self.unblocked.wait(PATIENCE)
        if self.failure is not None:
            raise self.failure
        self.commits += batch


class Storing(FakePool):
    """Pool that replies with a tensor to store, in memory that is overwritten when it is released."""

    def __init__(self, **stated: Any) -> None:
        super().__init__(self.stored)
        self.stated = stated
        self.memory = bytearray(b"12345678")
        self.released = 0
        self.running = 0

    def stored(self, job: Task) -> Reply:
        data = memoryview(self.memory)
        stored = Stored("w", ETAG, "float64", (1,), **self.stated)
        self.running += 1
        return Reply(200, JSON, [b'{"stored":[]}'], stored=[stored], stored_data=[data], memory=self)

    def release(self) -> None:
        self.memory[:] = bytes(len(self.memory))
        self.released += 1


class StoringHouse(House):
    """House with its journal and its store."""

    journal: BlockingJournal
    store: StoreService


@asynccontextmanager
async def storing_server(pool: Storing | None = None, *, at_once: bool = False, settings: Settings = SETTINGS):
    """Run a server on a journal that the test blocks."""
    pool, journal = pool or Storing(), BlockingJournal()
    if at_once:
        journal.unblocked.set()
    store = StoreService(settings, pool, journal)
    app = wrap(create_routes(settings, pool, store), settings)
    async with house(pool, app, settings=settings, store=store) as opened:
        opened.journal, opened.store = journal, store  # type: ignore[attr-defined]
        try:
            yield opened
        finally:
            journal.unblocked.set()
            assert await store.commits.close(PATIENCE)


async def wait_until(condition: Callable[[], object]) -> None:
    """Wait for a condition that a thread makes true."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  a thread changes it
            await asyncio.sleep(0.001)


async def silent(client: Client) -> bool:
    """Return whether nothing has arrived after every ready task has run."""
    for _ in range(20):
        await asyncio.sleep(0)
    return not client.reader._buffer  # type: ignore[attr-defined]


@DOORS
def test_answer_waits_for_the_commit(loop: Loop, headers: tuple[bytes, ...]) -> None:
    async def scenario() -> None:
        async with storing_server() as opened:
            client = await opened.connect()
            await client.send(post(b"{}", *headers))
            await wait_until(opened.journal.begun.is_set)
            assert await silent(client)
            assert opened.store.tensors.find(("", "w")) is None
            opened.journal.unblocked.set()
            head, body = await client.response()
            assert (head[9:12], body) == (b"200", b'{"stored":[]}')
            assert opened.pool.placed == [("", "w", ETAG)]
            (commit,) = opened.journal.commits
            assert [bytes(write.data) for write in commit.tensors] == [b"12345678"]
            assert len(commit.answers) == len(headers)
            assert opened.pool.released == 1

    run(scenario, loop)


@DOORS
@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (StateFull("full"), 507, "store_full"),
        (StateLost("another"), 503, "not_ready"),
        (OSError("broken"), 503, "not_ready"),
        (RuntimeError("a fault of ours"), 500, "internal_error"),
    ],
)
def test_failed_commit_is_refused(
    loop: Loop, headers: tuple[bytes, ...], failure: Exception, status: int, code: str
) -> None:
    async def scenario() -> None:
        async with storing_server(at_once=True) as opened:
            opened.journal.failure = failure
            client = await opened.connect()
            await client.send(post(b"{}", *headers))
            head, body = await client.response()
            report = json.loads(body)
            assert (int(head[9:12]), report["code"]) == (status, code)
            assert opened.pool.released == 1
            assert not opened.pool.placed
            if isinstance(failure, StateLost):
                await client.send(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert await client.status() == 503

    run(scenario, loop)


@DOORS
def test_commit_finishes_after_the_client_disconnects(loop: Loop, headers: tuple[bytes, ...]) -> None:
    async def scenario() -> None:
        async with storing_server() as opened:
            client = await opened.connect()
            await client.send(post(b"{}", *headers))
            await wait_until(opened.journal.begun.is_set)
            client.leave()
            await wait_until(lambda: not opened.state.clients)
            assert not opened.pool.released, "it may still be read"
            opened.journal.unblocked.set()
            await wait_until(lambda: opened.pool.released)
            assert opened.pool.placed == [("", "w", ETAG)]
            assert not opened.pool.cancelled
            assert opened.pool.released == 1

    run(scenario, loop)


@DOORS
def test_stopping_server_waits_for_the_commit_in_progress(loop: Loop, headers: tuple[bytes, ...]) -> None:
    """A write in progress may succeed, so no client is told that it failed."""

    async def scenario() -> None:
        async with storing_server() as opened:
            client = await opened.connect()
            await client.send(post(b"{}", *headers))
            await wait_until(opened.journal.begun.is_set)
            opened.state.drain()
            opened.state.give_up()
            assert await silent(client)
            opened.journal.unblocked.set()
            assert await client.status() == 200

    run(scenario, loop)


@DOORS
def test_pipelined_call_waits_for_the_commit_before_it(loop: Loop, headers: tuple[bytes, ...]) -> None:
    async def scenario() -> None:
        async with storing_server() as opened:
            client = await opened.connect()
            await client.send(post(b"{}", *headers), post(b"{}"))
            await wait_until(opened.journal.begun.is_set)
            assert opened.pool.running == 1
            opened.journal.unblocked.set()
            assert [await client.status(), await client.status()] == [200, 200]

    run(scenario, loop)


@DOORS
def test_non_durable_write_does_not_wait_for_the_journal(loop: Loop, headers: tuple[bytes, ...]) -> None:
    async def scenario() -> None:
        async with storing_server(Storing(durable=False)) as opened:
            client = await opened.connect()
            await client.send(post(b"{}", *headers))
            assert await client.status() == 200
            assert opened.pool.placed == [("", "w", ETAG)]
            assert not opened.journal.commits

    run(scenario, loop)


@DOORS
def test_failed_condition_is_refused(loop: Loop, headers: tuple[bytes, ...]) -> None:
    async def scenario() -> None:
        async with storing_server(Storing(if_match=ABSENT), at_once=True) as opened:
            client = await opened.connect()
            statuses = []
            for request in (post(b"{}"), post(b"{}", *headers)):
                await client.send(request)
                statuses.append(await client.status())
            assert statuses == [200, 412]
            assert opened.pool.released == 2

    run(scenario, loop)


def test_large_tensor_is_copied_before_its_memory_is_released(loop: Loop) -> None:
    async def scenario() -> None:
        pool = Storing()
        pool.memory = bytearray(bytes(range(256)) * (1 << 14))
        before = bytes(pool.memory)
        async with storing_server(pool) as opened:
            client = await opened.connect()
            await client.send(post())
            await wait_until(opened.journal.begun.is_set)
            client.leave()
            opened.journal.unblocked.set()
            await wait_until(lambda: pool.released)
            (write,) = opened.journal.commits[0].tensors
            assert bytes(write.data) == before

    run(scenario, loop)


def test_concurrent_calls_with_one_key_run_once(loop: Loop) -> None:
    """The second call must retry, and then gets the answer of the first; the work is done once."""

    async def scenario() -> None:
        async with storing_server() as opened:
            first, second = await opened.connect(), await opened.connect()
            await first.send(post(b"{}", NAMED))
            await wait_until(opened.journal.begun.is_set)
            await second.send(post(b"{}", NAMED))
            head, body = await second.response()
            assert (head[9:12], json.loads(body)["code"]) == (b"409", "conflict")
            assert b"retry-after: 1\r\n" in head
            await second.send(post(b"[]", NAMED))
            assert await second.status() == 422
            opened.journal.unblocked.set()
            assert await first.status() == 200
            await second.send(post(b"{}", NAMED))
            head, body = await second.response()
            assert (head[9:12], body) == (b"200", b'{"stored":[]}')
            assert b"idempotency-replayed: true\r\n" in head
            assert opened.pool.running == 1

    run(scenario, loop)


def test_disconnected_client_gets_its_answer_on_retry(loop: Loop) -> None:
    async def scenario() -> None:
        async with storing_server() as opened:
            client = await opened.connect()
            await client.send(post(b"{}", NAMED))
            await wait_until(opened.journal.begun.is_set)
            client.leave()
            await wait_until(lambda: not opened.state.clients)
            again = await opened.connect()
            await again.send(post(b"{}", NAMED))
            assert await again.status() == 409
            opened.journal.unblocked.set()
            await wait_until(lambda: opened.pool.released)
            await again.send(post(b"{}", NAMED))
            head, _ = await again.response()
            assert b"idempotency-replayed: true\r\n" in head
            assert opened.pool.running == 1

    run(scenario, loop)


def test_write_past_its_deadline_is_not_begun(loop: Loop) -> None:
    """The deadline passes before the write begins: 504, and nothing is written."""

    async def scenario() -> None:
        async with storing_server() as opened:
            first, late = await opened.connect(), await opened.connect()
            await first.send(post())
            await wait_until(opened.journal.begun.is_set)
            await late.send(post(path=b"/v1/forward?timeout_ms=1"))
            await wait_until(lambda: opened.pool.running == 2)
            job = opened.pool.jobs[-1]
            await wait_until(lambda: asyncio.get_running_loop().time() >= job.expires)
            opened.journal.unblocked.set()
            assert await first.status() == 200
            head, body = await late.response()
            assert (head[9:12], json.loads(body)["code"]) == (b"504", "deadline_exceeded")
            assert len(opened.journal.commits) == 1

    run(scenario, loop)
