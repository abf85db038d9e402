"""Where another server, or another application, has ours: who leaves, what is told, and whom it believes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.media import JSON
from service.app import open_ring
from service.core.keys.authentication import Gate
from service.core.settings import Settings
from service.web.hosted import Hosted
from service.web.observer import Finished
from service.workers.task import Reply, Task
from tests.service.application import create_routes, wrap
from tests.service.web.harness import ANSWER, PATIENCE, FakePool

pytestmark = pytest.mark.slow

KEY = "k" * 43


def settings_of(**stated: Any) -> Settings:
    return Settings(**{"device": "cpu", "compile": "off", **stated})


def at_once(_: Task) -> Reply:
    return Reply(200, JSON, [ANSWER])


@cache
def made() -> FastAPI:
    """One for all: it is slow to make."""
    return create_routes(settings_of(), FakePool())


class Caller:
    """A server that asks the application, and a client of it that leaves when a test says so."""

    def __init__(self, answer: Callable[[Task], Reply] | None = at_once, **stated: Any) -> None:
        settings, routes = settings_of(**stated), made()
        self.pool: FakePool = routes.state.service.pool
        vars(self.pool).update(vars(FakePool(answer)))
        self.told: list[Finished] = []
        self.app: ASGIApp = Hosted(wrap(routes, settings, Gate(open_ring(settings))), settings, self.told.append)
        self.sent: list[Message] = []
        self.gone = asyncio.Event()

    async def ask(self, method: str, path: str, *body: bytes, **more: Any) -> tuple[int, bytes]:
        """Status and body of an answer."""
        parts = list(body) or [b""]

        async def receive() -> Message:
            if parts:
                return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}
            await self.gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            self.sent.append(message)

        scope: Scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 5), "headers": [(b"host", b"localhost")], **more,
        }  # fmt: skip
        self.sent.clear()
        await self.app(scope, receive, send)
        return (self.sent[0]["status"] if self.sent else 0), b"".join(part.get("body", b"") for part in self.sent[1:])


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(PATIENCE):
            await scenario()

    asyncio.run(whole())


def test_the_work_of_a_client_that_leaves_stops() -> None:
    async def scenario() -> None:
        caller = Caller(None)
        pool = caller.pool
        asking = asyncio.create_task(caller.ask("POST", "/v1/forward", b"{", b"}"))
        await pool.until(lambda: bool(pool.jobs))
        caller.gone.set()
        await pool.until(lambda: pool.cancelled == pool.jobs)
        assert await asking == (0, b""), "nothing is sent to nobody, and the host's task goes on"
        assert asking.cancelling() == 0
        assert not caller.told

    run(scenario)


def test_a_client_that_stays_is_answered() -> None:
    async def scenario() -> None:
        caller = Caller(None)
        pool = caller.pool
        asking = asyncio.create_task(caller.ask("POST", "/v1/forward", b"{}"))
        await pool.until(lambda: bool(pool.jobs))
        pool.done.popitem()[1](Reply(200, JSON, [ANSWER]))
        assert await asking == (200, ANSWER)
        assert not pool.cancelled
        assert asyncio.all_tasks() == {asyncio.current_task()}, "nobody looks out any more"

    run(scenario)


def test_each_request_is_told_once_as_our_own_connections_do() -> None:
    async def scenario() -> None:
        caller = Caller()
        for asked in (
            ("POST", "/v1/forward", b"{", b"}"), ("POST", "/v1/graphs/none/forward", b"{}"), ("GET", "/v1/ops/exp"),
            ("HEAD", "/v1/ops/exp"), ("POST", "/v1/forward/", b"{}"), ("GET", "/nowhere"),
        ):  # fmt: skip
            await caller.ask(*asked)
        found = [(each.head and each.head.path, each.status, each.received, each.route) for each in caller.told]
        assert found == [
            ("/v1/forward", 200, 2, "/v1/forward"),
            ("/v1/graphs/none/forward", 404, 0, "/v1/graphs/{graph_id}/forward"),
            ("/v1/ops/exp", 200, 0, "/v1/ops/{name}"),
            ("/v1/ops/exp", 405, 0, "/v1/ops/{name}"),
            ("/v1/forward/", 200, 2, "/v1/forward"),
            ("/nowhere", 404, 0, ""),
        ]
        calls = [each.head.call and (each.head.call.name, each.head.call.graph) for each in caller.told if each.head]
        assert calls == [("forward", None), ("forward", "none"), None, None, None, None]
        assert caller.told[0].sent == len(ANSWER)
        assert caller.told[3].sent == 0, "an answer to HEAD has no body"
        assert caller.told[0].reply is not None
        assert all(each.seconds >= 0 and each.request_id for each in caller.told)

    run(scenario)


@pytest.mark.parametrize("noted", [{"caller": "admin"}, {"caller": None}, {"request_id": "theirs", "arrived": 0.0}])
def test_what_a_host_has_noted_of_a_request_opens_nothing(noted: Mapping[str, Any]) -> None:
    async def scenario() -> None:
        caller = Caller(api_key=KEY)
        theirs = dict(noted)
        status, body = await caller.ask("POST", "/v1/forward", b"{}", state=theirs)
        assert (status, json.loads(body)["code"]) == (401, "unauthenticated")
        assert theirs == noted, "nor is anything of ours left with it"
        fields = [(b"host", b"localhost"), (b"authorization", b"Bearer " + KEY.encode())]
        assert (await caller.ask("POST", "/v1/forward", b"{}", state=theirs, headers=fields))[0] == 200

    run(scenario)


class TestAServerThatOthersReach:
    @pytest.mark.parametrize("address", ["10.0.0.5", "::", "2001:db8::1", "::ffff:10.0.0.5", "fe80::1%eth0"])
    @pytest.mark.parametrize(
        ("stated", "status"),
        [({}, 403), ({"insecure": "on"}, 200), ({"api_key": KEY}, 401), ({"allowed_hosts": "gradserve.example"}, 403)],
        ids=["as it comes", "insecure", "with keys", "with a name"],
    )
    def test_is_refused_without_keys(self, address: str, stated: Mapping[str, Any], status: int) -> None:
        async def scenario() -> None:
            caller = Caller(**stated)
            found, body = await caller.ask("POST", "/v1/forward", b"{}", server=(address, 8000))
            assert found == status, body
            if status == 403:
                assert "GRADSERVE_KEYS_FILE" in json.loads(body)["detail"]
                assert not caller.pool.jobs

        run(scenario)

    @pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "/run/socket", "localhost", None])
    def test_is_another_than_one_on_the_loopback_or_on_a_socket_of_files(self, host: str | None) -> None:
        async def scenario() -> None:
            assert (await Caller().ask("POST", "/v1/forward", b"{}", server=host and (host, 1)))[0] == 200

        run(scenario)


def test_what_is_not_http_goes_through() -> None:
    seen: list[str] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope["type"])

    async def scenario() -> None:
        await Hosted(app, settings_of())({"type": "lifespan"}, None, None)  # type: ignore[arg-type]
        assert seen == ["lifespan"]

    run(scenario)
