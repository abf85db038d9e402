"""Every operation of the API and other paths, with every kind of key, on the fast path and in the application."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp

from service.core.keys.authentication import Gate, KeyRing
from service.core.keys.caller import KeyScope, new_key
from service.core.settings import Settings
from service.observe.store import StoreService
from service.store.journal import MemoryJournal
from service.web.routing import scope_of
from service.workers.pool import Stats
from service.workers.worker import Worker
from tests.service.application import create_routes, wrap
from tests.service.core.keys.cases import (
    bearer,
    bodies,
    gate_of,
    operations,
    placed,
    record,
    sent,
    sound,
    unsound,
    write,
)
from tests.service.described import refusals
from tests.service.web.harness import FakePool, House, house, run
from tests.service.web.test_doors import VARYING, disable_fast_path

pytestmark = pytest.mark.slow

SETTINGS = Settings(device="cpu", compile="off", cors_origins=("https://app.example",))
KEY, OTHER, REVOKED = new_key(), new_key(), new_key()
UNSOUND = {**unsound(KEY, OTHER), "one that was revoked": [bearer(REVOKED)]}
DOORS = pytest.mark.parametrize("fast", [True, False], ids=["both doors", "the application alone"])
#: requests that the document does not have, or has in another form
UNDOCUMENTED = [
    ("GET", "/metrics"), ("HEAD", "/metrics"), ("GET", "/metrics/"), ("POST", "/metrics"), ("GET", "/nowhere"),
    ("HEAD", "/v1/ops"), ("OPTIONS", "/v1/ops"), ("GET", "/v1/ops/"), ("GET", "/v1/"), ("PATCH", "/v1/graphs"),
    ("POST", "/v1/nothing"), ("PUT", "/v1/forward"), ("GET", "/v1/forward"), ("POST", "/v1/forward/"),
    ("POST", "/v1/gr%61dients"), ("GET", "/v1/graphs/%2e%2e%2fmetrics"), ("GET", "/v1/graphs/../../health/live"),
    ("GET", "/health"), ("GET", "/healthy"), ("GET", "/Health/live"), ("GET", "/openapi.json/x"), ("GET", "/docsx"),
    ("GET", "/x/docs"), ("POST", "/v1/graphs/x/nothing"), ("DELETE", "/v1/graphs"), ("POST", "http://localhost/v1/forward"),
    ("GET", "/openapi-sdk-3.1.json"),
]  # fmt: skip
OPEN = [
    "/", "/docs", "/docs/", "/docs/errors", "/docs/errors/forbidden", "/docs/assets/swagger-ui.css",
    "/docs/playground/app.js", "/openapi.json", "/openapi-3.0.json", "/openapi-sdk.json", "/openapi-sdk-3.0.json",
    "/health/live", "/health/ready", "/health/live/",
]  # fmt: skip


class PoolWithStats(FakePool):
    """Pool with statistics."""

    def stats(self) -> Stats:
        return Stats()


class Service:
    """Application whose gate can be changed, on a worker of this process."""

    def __init__(self) -> None:
        worker = Worker(SETTINGS)
        self.pool = PoolWithStats(worker)
        self.store = StoreService(SETTINGS, self.pool, MemoryJournal())
        self.routes = create_routes(SETTINGS, PoolWithStats(worker), self.store)
        self.document: Mapping[str, Any] = json.loads(self.routes.state.service.documents["openapi.json"])

    def app(self, gate: Gate) -> ASGIApp:
        return wrap(self.routes, SETTINGS, gate)

    def requests(self) -> list[tuple[str, str, bytes]]:
        """List method, path and body of every request that needs a key."""
        described = [
            (method, placed(path, operation), bodies(operation)[0])
            for method, path, operation in operations(self.document)
            if operation.get("security") != []
        ]
        assert len(described) > 25
        return described + [(method, path, b"") for method, path in UNDOCUMENTED]

    def run(self, gate: Gate, fast: bool, scenario: Callable[[House], Awaitable[None]]) -> None:
        async def whole() -> None:
            self.pool.jobs.clear()
            self.pool.allocations.clear()
            async with house(self.pool, self.app(gate), settings=SETTINGS, store=self.store, gate=gate) as opened:
                if not fast:
                    disable_fast_path(opened.state)
                await scenario(opened)

        run(whole, asyncio.new_event_loop)


@pytest.fixture(scope="module")
def guarded() -> Service:
    return Service()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return gate_of(tmp_path / "keys.json", alice=KEY, bob=OTHER)


async def ask(opened: House, request: bytes) -> tuple[int, bytes, bytes]:
    """Send a request on a new connection, and return status, head and body of the response."""
    client = await opened.connect()
    await client.send(request)
    head, body = await client.response(bodiless=request.startswith(b"HEAD "))
    client.leave()
    return int(head[9:12]), head, body


def leaks_no_key(keys: list[str], response: bytes) -> bool:
    """Return whether a response contains no eight consecutive letters of a key."""
    return not [key for key in keys for i in range(3, len(key) - 8) if key[i : i + 8].encode() in response]


@DOORS
@pytest.mark.parametrize("kind", UNSOUND)
def test_invalid_credentials_are_refused_everywhere(guarded: Service, gate: Gate, kind: str, fast: bool) -> None:
    async def scenario(opened: House) -> None:
        for method, path, body in guarded.requests():
            status, head, answer = await ask(opened, sent(method, path, body, *UNSOUND[kind]))
            assert (status, b"www-authenticate: Bearer" in head) == (401, True), (method, path, head, answer)
            assert leaks_no_key([KEY, OTHER, REVOKED], head + answer)
            if method != "HEAD":
                report = json.loads(answer)
                assert report["code"] == "unauthenticated"
                assert set(report) == {"type", "title", "status", "detail", "code", "request_id"}
        assert not guarded.pool.jobs

    guarded.run(gate, fast, scenario)


@pytest.mark.parametrize("kind", UNSOUND)
def test_both_paths_refuse_alike(guarded: Service, gate: Gate, kind: str) -> None:
    answers_by_path: list[list[bytes]] = []

    async def scenario(opened: House) -> None:
        answers = [await ask(opened, sent(m, p, body, *UNSOUND[kind])) for m, p, body in guarded.requests()]
        responses = [head + body for _, head, body in answers]
        # Only the application sends `Vary: Origin`; requests with an Origin always go there.
        answers_by_path.append([VARYING.sub(b"", response).replace(b"\r\nvary: Origin", b"") for response in responses])

    for fast in (True, False):
        guarded.run(gate, fast, scenario)
    assert answers_by_path[0] == answers_by_path[1]


@DOORS
@pytest.mark.parametrize("kind", sound(KEY))
def test_valid_key_is_accepted(guarded: Service, gate: Gate, kind: str, fast: bool) -> None:
    async def scenario(opened: House) -> None:
        for method, path, body in guarded.requests():
            status, head, answer = await ask(opened, sent(method, path, body, sound(KEY)[kind]))
            assert status not in (401, 403, 429, 500), (method, path, answer)
            assert leaks_no_key([KEY], head + answer)
        assert guarded.pool.jobs or not fast

    guarded.run(gate, fast, scenario)


@DOORS
def test_open_paths_accept_any_credentials(guarded: Service, gate: Gate, fast: bool) -> None:
    async def scenario(opened: House) -> None:
        for path in OPEN:
            for headers in ([], [bearer(KEY)], [bearer("wrong")], UNSOUND["twice the same"]):
                status, _, _ = await ask(opened, sent("GET", path, b"", *headers))
                assert status in (200, 307), path

    guarded.run(gate, fast, scenario)


def test_document_marks_open_operations(guarded: Service) -> None:
    for method, path, operation in operations(guarded.document):
        assert (operation.get("security") == []) == path.startswith("/health/"), (method, path)
    assert guarded.document["security"] == [{}, {"key": []}]
    assert guarded.document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


@DOORS
def test_refusal_does_not_wait_for_the_body(guarded: Service, gate: Gate, fast: bool) -> None:
    """A request without a key is refused before its body arrives, and no memory is reserved for it."""

    async def scenario(opened: House) -> None:
        for method, path, _ in guarded.requests():
            for stated in (b"Content-Length: 60000000", b"Transfer-Encoding: chunked"):
                client = await opened.connect()
                await client.send(
                    b"\r\n".join([f"{method} {path} HTTP/1.1".encode(), b"Host: localhost", stated, b"", b""])
                )
                head, _ = await client.response(bodiless=method == "HEAD")
                assert head.startswith(b"HTTP/1.1 401 "), (method, path)
                client.leave()
        assert not guarded.pool.allocations
        assert not guarded.pool.jobs

    guarded.run(gate, fast, scenario)


@DOORS
def test_connection_stays_open_after_a_refused_complete_request(guarded: Service, gate: Gate, fast: bool) -> None:
    async def scenario(opened: House) -> None:
        client = await opened.connect()
        body = b'{"graph":{"nodes":[{"op":"full","attrs":{"shape":[],"fill":1}}]}}'
        for headers, status in (([], 401), ([bearer(KEY)], 200), ([bearer(KEY[:-1])], 401), ([bearer(OTHER)], 200)):
            await client.send(sent("POST", "/v1/forward", body, *headers))
            assert await client.status() == status

    guarded.run(gate, fast, scenario)


@DOORS
@pytest.mark.parametrize("scope", KeyScope)
def test_key_allows_only_its_scope(guarded: Service, tmp_path: Path, scope: KeyScope, fast: bool) -> None:
    others = [other for other in KeyScope if other is not scope]
    keys = [record("one", KEY, [scope]), record("others", OTHER, others)]
    gate = Gate(KeyRing(write(tmp_path / "keys.json", keys), None))
    mine: list[tuple[str, str]] = []

    async def scenario(opened: House) -> None:
        for method, path, body in guarded.requests():
            one, _, _ = await ask(opened, sent(method, path, body, bearer(KEY)))
            rest, _, answer = await ask(opened, sent(method, path, body, bearer(OTHER)))
            assert 401 not in (one, rest)
            assert (one == 403) != (rest == 403), (method, path)
            if rest == 403:
                mine.append((method, path))
                assert method == "HEAD" or json.loads(answer)["expected"] == scope

    guarded.run(gate, fast, scenario)
    assert mine
    for method, path, _ in guarded.requests():
        plain = re.sub("^http://localhost", "", path.replace("%61", "a"))
        assert ((method, path) in mine) == (scope_of(method, plain.removesuffix("/") or "/") is scope)


def test_scopes_of_operations(guarded: Service) -> None:
    """Scopes of some operations, spelled out."""
    scopes = {
        operation["operationId"]: scope_of(method, placed(path, operation))
        for method, path, operation in operations(guarded.document)
    }
    expected = {"registerGraph": "write", "deleteGraph": "write", "getGraph": "read", "listGraphs": "read"}
    expected |= {"listOps": "read", "getOp": "read", "gradients": "compute", "gradientsOfGraph": "compute"}
    assert {name: scopes[name] for name in expected} == expected
    assert scopes["live"] is scopes["ready"] is None
    assert scope_of("GET", "/metrics") is KeyScope.ADMIN
    assert scope_of("GET", "/metrics", metrics="open") is None


@DOORS
def test_refusals_match_the_documented_examples(guarded: Service, tmp_path: Path, fast: bool) -> None:
    """Covers the examples of 401 and 403, which a server without keys never returns."""
    key_of = {scope: new_key() for scope in KeyScope}
    keys = [record(scope.value, key, [scope]) for scope, key in key_of.items()]
    gate = Gate(KeyRing(write(tmp_path / "keys.json", keys), None))

    async def scenario(opened: House) -> None:
        for method, path, operation in operations(guarded.document):
            if operation.get("security") == []:
                continue
            needed = scope_of(method, path)
            other = KeyScope.READ if needed is not KeyScope.READ else KeyScope.WRITE
            for status, headers in ((401, []), (403, [bearer(key_of[other])])):
                _, _, answer = await ask(opened, sent(method, placed(path, operation), b"", *headers))
                (shown,) = (
                    example
                    for status_text, _, example in refusals(guarded.document, operation)
                    if status_text == str(status)
                )
                assert json.loads(answer) | {"request_id": ""} == shown["value"] | {"request_id": ""}

    guarded.run(gate, fast, scenario)


@DOORS
def test_allowed_origin_can_read_refusals(guarded: Service, gate: Gate, fast: bool) -> None:
    origin, typed = b"Origin: https://app.example", b"Content-Type: application/json"
    asking = (b"Access-Control-Request-Method: POST", b"Access-Control-Request-Headers: authorization,content-type")

    async def scenario(opened: House) -> None:
        status, head, _ = await ask(opened, sent("OPTIONS", "/v1/forward", b"", origin, *asking))
        assert status == 200, "what a browser asks before it calls comes without a key"
        assert b"authorization" in head
        status, head, _ = await ask(opened, sent("POST", "/v1/forward", b"{}", origin))
        assert status == 401
        assert b"access-control-allow-origin: https://app.example" in head
        assert (await ask(opened, sent("POST", "/v1/forward", b"{}", origin, typed, bearer(KEY))))[0] == 422

    guarded.run(gate, fast, scenario)


@DOORS
def test_rate_limit_covers_both_paths(guarded: Service, tmp_path: Path, fast: bool) -> None:
    gate = Gate(KeyRing(write(tmp_path / "keys.json", [record("a", KEY, rate="2/h"), record("b", OTHER)]), None))

    async def scenario(opened: House) -> None:
        call, listing = sent("POST", "/v1/forward", b"{}", bearer(KEY)), sent("GET", "/v1/ops", b"", bearer(KEY))
        assert [(await ask(opened, request))[0] for request in (call, listing)] == [422, 200]
        for request in (call, listing):
            status, head, answer = await ask(opened, request)
            assert (status, json.loads(answer)["code"]) == (429, "rate_limited")
            (stated,) = re.findall(rb"retry-after: (\d+)", head)
            assert 1700 < int(stated) <= 1800
        assert (await ask(opened, sent("POST", "/v1/forward", b"{}", bearer(OTHER))))[0] == 422

    guarded.run(gate, fast, scenario)


@DOORS
def test_concurrency_limit(guarded: Service, tmp_path: Path, fast: bool) -> None:
    """An answered request and a disconnected client each free a place."""
    gate = Gate(KeyRing(write(tmp_path / "keys.json", [record("a", KEY, concurrency=2)]), None))
    call = sent("POST", "/v1/forward", b"{}", bearer(KEY))

    async def scenario() -> None:
        pool = FakePool(None)
        routes = guarded.routes if fast else create_routes(SETTINGS, pool, guarded.store)
        async with house(pool, wrap(routes, SETTINGS, gate), settings=SETTINGS, gate=gate) as opened:
            if not fast:
                disable_fast_path(opened.state)
            first, second, third = [await opened.connect() for _ in range(3)]
            for number, client in enumerate((first, second), 1):
                await client.send(call)
                await pool.until(lambda number=number: len(pool.jobs) == number)  # type: ignore[misc]
            for request in (call, sent("GET", "/v1/ops", b"", bearer(KEY))):
                await third.send(request)
                assert await third.status() == 429
            job = pool.jobs[0]
            pool.done[job](pool_answer())
            assert await first.status() == 200
            await third.send(call)
            await pool.until(lambda: len(pool.jobs) == 3)
            second.leave()
            await pool.until(lambda: pool.jobs[1] in pool.cancelled)
            await first.send(call)
            await pool.until(lambda: len(pool.jobs) == 4)

    run(scenario, asyncio.new_event_loop)


def pool_answer() -> Any:
    """The reply of a pool to a job."""
    from service.api.media import JSON
    from service.workers.task import Reply

    return Reply(200, JSON, [b"{}"])


@DOORS
def test_revoked_key_is_refused_on_an_open_connection(
    guarded: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: bool
) -> None:
    """The head is cached by then, but not the fact that its key was valid."""
    monkeypatch.setattr("service.core.keys.authentication.CHECK_SECONDS", 0.0)
    path = tmp_path / "keys.json"
    gate = gate_of(path, alice=KEY, bob=OTHER)

    async def scenario(opened: House) -> None:
        client = await opened.connect()
        for keys, status in (((KEY, OTHER), 422), ((OTHER,), 401), ((KEY, OTHER), 422)):
            write(path, [record(f"name{i}", key) for i, key in enumerate(keys)])
            await client.send(sent("POST", "/v1/forward", b"{}", bearer(KEY)))
            assert await client.status() == status

    guarded.run(gate, fast, scenario)


def test_namespace_of_the_caller_reaches_the_pool(guarded: Service, gate: Gate) -> None:
    for fast in (True, False):
        pool = guarded.pool if fast else guarded.routes.state.service.pool
        pool.jobs.clear()

        async def scenario(opened: House) -> None:
            for key in (KEY, OTHER):
                await ask(opened, sent("POST", "/v1/forward", b"{}", bearer(key)))

        guarded.run(gate, fast, scenario)
        assert [job.namespace for job in pool.jobs] == ["alice", "bob"]
