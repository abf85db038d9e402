"""The application in another server or application: disconnects, observed requests, and authentication."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

import httpx
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


def make_settings(**stated: Any) -> Settings:
    return Settings(**{"device": "cpu", "compile": "off", **stated})


def at_once(_: Task) -> Reply:
    return Reply(200, JSON, [ANSWER])


@cache
def shared_routes() -> FastAPI:
    """The routes for all tests; cached, since they are slow to create."""
    return create_routes(make_settings(), FakePool())


class Caller:
    """ASGI server with one client, which disconnects when the test says so."""

    def __init__(self, answer: Callable[[Task], Reply] | None = at_once, **stated: Any) -> None:
        settings, routes = make_settings(**stated), shared_routes()
        self.pool: FakePool = routes.state.service.pool
        vars(self.pool).update(vars(FakePool(answer)))
        self.observed: list[Finished] = []
        self.app: ASGIApp = Hosted(wrap(routes, settings, Gate(open_ring(settings))), settings, self.observed.append)
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


def test_disconnect_cancels_the_job() -> None:
    async def scenario() -> None:
        caller = Caller(None)
        pool = caller.pool
        asking = asyncio.create_task(caller.ask("POST", "/v1/forward", b"{", b"}"))
        await pool.until(lambda: bool(pool.jobs))
        caller.gone.set()
        await pool.until(lambda: pool.cancelled == pool.jobs)
        assert await asking == (0, b""), "nothing is sent to nobody, and the host's task goes on"
        assert asking.cancelling() == 0
        assert not caller.observed

    run(scenario)


def test_waiting_client_is_answered() -> None:
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


def test_each_request_is_observed_once() -> None:
    async def scenario() -> None:
        caller = Caller()
        for asked in (
            ("POST", "/v1/forward", b"{", b"}"), ("POST", "/v1/graphs/none/forward", b"{}"), ("GET", "/v1/ops/exp"),
            ("HEAD", "/v1/ops/exp"), ("POST", "/v1/forward/", b"{}"), ("GET", "/nowhere"),
        ):  # fmt: skip
            await caller.ask(*asked)
        observed = [(each.head and each.head.path, each.status, each.received, each.route) for each in caller.observed]
        assert observed == [
            ("/v1/forward", 200, 2, "/v1/forward"),
            ("/v1/graphs/none/forward", 404, 0, "/v1/graphs/{graph_id}/forward"),
            ("/v1/ops/exp", 200, 0, "/v1/ops/{name}"),
            ("/v1/ops/exp", 200, 0, "/v1/ops/{name}"),
            ("/v1/forward/", 200, 2, "/v1/forward"),
            ("/nowhere", 404, 0, ""),
        ]
        calls = [
            each.head.call and (each.head.call.name, each.head.call.graph) for each in caller.observed if each.head
        ]
        assert calls == [("forward", None), ("forward", "none"), None, None, None, None]
        assert caller.observed[0].sent == len(ANSWER)
        assert caller.observed[3].sent == 0, "an answer to HEAD has no body"
        assert caller.observed[0].reply is not None
        assert all(each.seconds >= 0 and each.request_id for each in caller.observed)

    run(scenario)


@pytest.mark.parametrize("noted", [{"caller": "admin"}, {"caller": None}, {"request_id": "theirs", "arrived": 0.0}])
def test_request_state_of_the_host_grants_no_access(noted: Mapping[str, Any]) -> None:
    async def scenario() -> None:
        caller = Caller(api_key=KEY)
        state = dict(noted)
        status, body = await caller.ask("POST", "/v1/forward", b"{}", state=state)
        assert (status, json.loads(body)["code"]) == (401, "unauthenticated")
        assert state == noted, "nor is anything of ours left with it"
        fields = [(b"host", b"localhost"), (b"authorization", b"Bearer " + KEY.encode())]
        assert (await caller.ask("POST", "/v1/forward", b"{}", state=state, headers=fields))[0] == 200

    run(scenario)


class TestExposedServer:
    @pytest.mark.parametrize("address", ["10.0.0.5", "::", "2001:db8::1", "::ffff:10.0.0.5", "fe80::1%eth0"])
    @pytest.mark.parametrize(
        ("stated", "status"),
        [({}, 403), ({"insecure": "on"}, 200), ({"api_key": KEY}, 401), ({"allowed_hosts": "gradserve.example"}, 403)],
        ids=["as it comes", "insecure", "with keys", "with a name"],
    )
    def test_requests_without_keys_are_refused(self, address: str, stated: Mapping[str, Any], status: int) -> None:
        async def scenario() -> None:
            caller = Caller(**stated)
            answered, body = await caller.ask("POST", "/v1/forward", b"{}", server=(address, 8000))
            assert answered == status, body
            if status == 403:
                assert "GRADSERVE_KEYS_FILE" in json.loads(body)["detail"]
                assert not caller.pool.jobs

        run(scenario)

    @pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "/run/socket", "localhost", None])
    def test_loopback_and_unix_sockets_need_no_keys(self, host: str | None) -> None:
        async def scenario() -> None:
            assert (await Caller().ask("POST", "/v1/forward", b"{}", server=host and (host, 1)))[0] == 200

        run(scenario)


def test_other_scopes_are_passed_through() -> None:
    seen: list[str] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope["type"])

    async def scenario() -> None:
        await Hosted(app, make_settings())({"type": "lifespan"}, None, None)  # type: ignore[arg-type]
        assert seen == ["lifespan"]

    run(scenario)


def test_paths_between_servers_are_answered_and_not_observed() -> None:
    """They have no request id, as in a cluster under another ASGI server."""
    observed: list[object] = []

    async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"alive"})

    async def scenario() -> httpx.Response:
        transport = httpx.ASGITransport(Hosted(answer, make_settings(), observed.append))
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            return await client.get("/cluster/alive")

    assert asyncio.run(scenario()).content == b"alive"
    assert not observed
