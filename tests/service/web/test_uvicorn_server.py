"""uvicorn in place of our own connections: it ends as they do, and has the limits that it can have."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from service.settings import Settings
from service.transport.job import Reply
from service.web.hosted import Hosted
from service.web.listening import bound
from service.web.uvicorn_server import UvicornServer
from service.wire.media import JSON
from tests.service.application import wrap
from tests.service.web.harness import ANSWER, Client, FakePool, post
from tests.service.web.test_hosted import made, run

pytestmark = pytest.mark.slow


class Serving:
    """A server of this process, and its pool."""

    def __init__(self, **stated: int) -> None:
        settings = Settings(device="cpu", port=0, **stated)  # type: ignore[arg-type]
        routes = made()
        self.pool: FakePool = routes.state.service.pool
        vars(self.pool).update(vars(FakePool(None)))
        self.settings = settings
        self.clients: list[Client] = []
        self.server = UvicornServer(Hosted(wrap(routes, settings), settings), settings, self.pool.drain)

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[asyncio.Task[float]]:
        """The task that serves."""
        with bound("127.0.0.1", 0) as listening:
            self.address = listening.getsockname()
            serving = asyncio.create_task(self.server.run_on(listening))
            listening.listen()
            try:
                yield serving
            finally:
                for client in self.clients:
                    client.leave()
                self.server.force_exit = self.server.should_exit = True
                await serving

    async def ask(self, sent: bytes) -> Client:
        """A client that has sent this, as an answer is to be read from."""
        self.clients.append(Client(*await asyncio.open_connection(*self.address)))
        await self.clients[-1].send(sent)
        return self.clients[-1]


def test_what_runs_when_the_server_is_told_to_end_is_answered(capfd: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        serving = Serving()
        async with serving() as ending:
            client = await serving.ask(post())
            await serving.pool.until(lambda: bool(serving.pool.jobs))
            serving.server.handle_exit(signal.SIGTERM, None)
            assert not serving.pool.ready, "nothing new is taken"
            serving.pool.done.popitem()[1](Reply(200, JSON, [ANSWER]))
            assert (await client.response())[1] == ANSWER
            assert 0 < await ending <= serving.settings.shutdown_grace
            assert f"gradserve listening on http://127.0.0.1:{serving.address[1]}\n" in capfd.readouterr().out

    run(scenario)


def test_what_is_not_done_within_the_grace_is_told() -> None:
    async def scenario() -> None:
        serving = Serving(shutdown_grace=1)
        async with serving() as ending:
            client = await serving.ask(post())
            await serving.pool.until(lambda: bool(serving.pool.jobs))
            serving.server.handle_exit(signal.SIGTERM, None)
            head, body = await client.response()
            assert head.startswith(b"HTTP/1.1 503 ")
            assert json.loads(body)["code"] == "shutting_down"
            assert serving.pool.cancelled == serving.pool.jobs
            await ending

    run(scenario)


def test_the_second_signal_ends_at_once() -> None:
    async def scenario() -> None:
        serving = Serving()
        async with serving() as ending:
            await serving.ask(post())
            await serving.pool.until(lambda: bool(serving.pool.jobs))
            for _ in range(2):
                serving.server.handle_exit(signal.SIGINT, None)
            assert await ending == 0.0

    run(scenario)


def test_its_limits_are_those_of_the_settings() -> None:
    async def scenario() -> None:
        serving = Serving(max_header_bytes=1024, max_connections=1)
        async with serving():
            client = await serving.ask(post(b"{}", b"X-Long: " + b"a" * 2000))
            head, _ = await client.response()
            assert head.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
            _, second = [await serving.ask(b"") for _ in range(2)]
            await second.send(post())
            assert await second.status() == 503

    run(scenario)
