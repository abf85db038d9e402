"""Every operation of the API, and every other path, with every kind of key, through both doors."""

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
from tests.service.web.test_doors import VARYING, without_orders

pytestmark = pytest.mark.slow

SETTINGS = Settings(device="cpu", compile="off", cors_origins=("https://app.example",))
KEY, OTHER, REVOKED = new_key(), new_key(), new_key()
UNSOUND = {**unsound(KEY, OTHER), "one that was revoked": [bearer(REVOKED)]}
DOORS = pytest.mark.parametrize("fast", [True, False], ids=["both doors", "the application alone"])
#: what the document does not have, or has in another form
BESIDE = [
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


class Counted(FakePool):
    """One that has figures."""

    def stats(self) -> Stats:
        return Stats()


class Service:
    """An application whose gate can be changed, on a worker of this process."""

    def __init__(self) -> None:
        worker = Worker(SETTINGS)
        self.counted = Counted(worker)
        self.kept = StoreService(SETTINGS, self.counted, MemoryJournal())
        self.routes = create_routes(SETTINGS, Counted(worker), self.kept)
        self.document: Mapping[str, Any] = json.loads(self.routes.state.service.documents["openapi.json"])

    def app(self, gate: Gate) -> ASGIApp:
        return wrap(self.routes, SETTINGS, gate)

    def requests(self) -> list[tuple[str, str, bytes]]:
        """Method, path and a body of everything that takes a key."""
        described = [
            (method, placed(path, operation), bodies(operation)[0])
            for method, path, operation in operations(self.document)
            if operation.get("security") != []
        ]
        assert len(described) > 25
        return described + [(method, path, b"") for method, path in BESIDE]

    def run(self, gate: Gate, fast: bool, scenario: Callable[[House], Awaitable[None]]) -> None:
        async def whole() -> None:
            self.counted.jobs.clear()
            self.counted.allocations.clear()
            async with house(self.counted, self.app(gate), settings=SETTINGS, store=self.kept, gate=gate) as opened:
                if not fast:
                    without_orders(opened.state)
                await scenario(opened)

        run(whole, asyncio.new_event_loop)


@pytest.fixture(scope="module")
def guarded() -> Service:
    return Service()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return gate_of(tmp_path / "keys.json", alice=KEY, bob=OTHER)


async def asked(opened: House, request: bytes) -> tuple[int, bytes, bytes]:
    """Status, head and body of the response to a request on a connection of its own."""
    client = await opened.connect()
    await client.send(request)
    head, body = await client.response(bodiless=request.startswith(b"HEAD "))
    client.leave()
    return int(head[9:12]), head, body


def says_nothing_of(keys: list[str], response: bytes) -> bool:
    """Whether eight letters of a key, one after the other, are nowhere in it."""
    return not [key for key in keys for i in range(3, len(key) - 8) if key[i : i + 8].encode() in response]


@DOORS
@pytest.mark.parametrize("kind", UNSOUND)
def test_nobody_gets_in_without_a_sound_key(guarded: Service, gate: Gate, kind: str, fast: bool) -> None:
    async def scenario(opened: House) -> None:
        for method, path, body in guarded.requests():
            status, head, answer = await asked(opened, sent(method, path, body, *UNSOUND[kind]))
            assert (status, b"www-authenticate: Bearer" in head) == (401, True), (method, path, head, answer)
            assert says_nothing_of([KEY, OTHER, REVOKED], head + answer)
            if method != "HEAD":
                report = json.loads(answer)
                assert report["code"] == "unauthenticated"
                assert set(report) == {"type", "title", "status", "detail", "code", "request_id"}
        assert not guarded.counted.jobs

    guarded.run(gate, fast, scenario)


@pytest.mark.parametrize("kind", UNSOUND)
def test_both_doors_refuse_alike(guarded: Service, gate: Gate, kind: str) -> None:
    found: list[list[bytes]] = []

    async def scenario(opened: House) -> None:
        answers = [await asked(opened, sent(m, p, body, *UNSOUND[kind])) for m, p, body in guarded.requests()]
        told = [head + body for _, head, body in answers]
        # Only the application tells caches of origins: a request that states one always goes there.
        found.append([VARYING.sub(b"", response).replace(b"\r\nvary: Origin", b"") for response in told])

    for fast in (True, False):
        guarded.run(gate, fast, scenario)
    assert found[0] == found[1]


@DOORS
@pytest.mark.parametrize("kind", sound(KEY))
def test_a_sound_key_gets_in(guarded: Service, gate: Gate, kind: str, fast: bool) -> None:
    async def scenario(opened: House) -> None:
        for method, path, body in guarded.requests():
            status, head, answer = await asked(opened, sent(method, path, body, sound(KEY)[kind]))
            assert status not in (401, 403, 429, 500), (method, path, answer)
            assert says_nothing_of([KEY], head + answer)
        assert guarded.counted.jobs or not fast

    guarded.run(gate, fast, scenario)


@DOORS
def test_what_is_open_needs_no_key_and_takes_any(guarded: Service, gate: Gate, fast: bool) -> None:
    async def scenario(opened: House) -> None:
        for path in OPEN:
            for headers in ([], [bearer(KEY)], [bearer("wrong")], UNSOUND["twice the same"]):
                status, _, _ = await asked(opened, sent("GET", path, b"", *headers))
                assert status in (200, 307), path

    guarded.run(gate, fast, scenario)


def test_the_document_says_what_is_open(guarded: Service) -> None:
    for method, path, operation in operations(guarded.document):
        assert (operation.get("security") == []) == path.startswith("/health/"), (method, path)
    assert guarded.document["security"] == [{}, {"key": []}]
    assert guarded.document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


@DOORS
def test_the_body_is_not_waited_for(guarded: Service, gate: Gate, fast: bool) -> None:
    """Who has no key is refused while the body that the head announces is still to come; no room is kept for it."""

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
        assert not guarded.counted.allocations
        assert not guarded.counted.jobs

    guarded.run(gate, fast, scenario)


@DOORS
def test_a_connection_goes_on_after_a_refusal_whose_body_was_there(guarded: Service, gate: Gate, fast: bool) -> None:
    async def scenario(opened: House) -> None:
        client = await opened.connect()
        body = b'{"graph":{"nodes":[{"op":"full","attrs":{"shape":[],"fill":1}}]}}'
        for headers, status in (([], 401), ([bearer(KEY)], 200), ([bearer(KEY[:-1])], 401), ([bearer(OTHER)], 200)):
            await client.send(sent("POST", "/v1/forward", body, *headers))
            assert await client.status() == status

    guarded.run(gate, fast, scenario)


@DOORS
@pytest.mark.parametrize("scope", KeyScope)
def test_a_key_of_one_scope_is_good_for_that(guarded: Service, tmp_path: Path, scope: KeyScope, fast: bool) -> None:
    others = [other for other in KeyScope if other is not scope]
    keys = [record("one", KEY, [scope]), record("others", OTHER, others)]
    gate = Gate(KeyRing(write(tmp_path / "keys.json", keys), None))
    mine: list[tuple[str, str]] = []

    async def scenario(opened: House) -> None:
        for method, path, body in guarded.requests():
            one, _, _ = await asked(opened, sent(method, path, body, bearer(KEY)))
            rest, _, answer = await asked(opened, sent(method, path, body, bearer(OTHER)))
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
    """What is asked for what, in words."""
    found = {
        operation["operationId"]: scope_of(method, placed(path, operation))
        for method, path, operation in operations(guarded.document)
    }
    expected = {"registerGraph": "write", "deleteGraph": "write", "getGraph": "read", "listGraphs": "read"}
    expected |= {"listOps": "read", "getOp": "read", "gradients": "compute", "gradientsOfGraph": "compute"}
    assert {name: found[name] for name in expected} == expected
    assert found["live"] is found["ready"] is None
    assert scope_of("GET", "/metrics") is KeyScope.ADMIN
    assert scope_of("GET", "/metrics", metrics="open") is None


@DOORS
def test_the_document_shows_what_is_answered(guarded: Service, tmp_path: Path, fast: bool) -> None:
    """The examples of 401 and 403, which no request without a key could bring about on a server without keys."""
    one = {scope: new_key() for scope in KeyScope}
    keys = [record(scope.value, key, [scope]) for scope, key in one.items()]
    gate = Gate(KeyRing(write(tmp_path / "keys.json", keys), None))

    async def scenario(opened: House) -> None:
        for method, path, operation in operations(guarded.document):
            if operation.get("security") == []:
                continue
            needed = scope_of(method, path)
            other = KeyScope.READ if needed is not KeyScope.READ else KeyScope.WRITE
            for status, headers in ((401, []), (403, [bearer(one[other])])):
                _, _, answer = await asked(opened, sent(method, placed(path, operation), b"", *headers))
                (shown,) = (example for at, _, example in refusals(guarded.document, operation) if at == str(status))
                assert json.loads(answer) | {"request_id": ""} == shown["value"] | {"request_id": ""}

    guarded.run(gate, fast, scenario)


@DOORS
def test_a_page_of_another_origin_sees_why(guarded: Service, gate: Gate, fast: bool) -> None:
    origin, typed = b"Origin: https://app.example", b"Content-Type: application/json"
    asking = (b"Access-Control-Request-Method: POST", b"Access-Control-Request-Headers: authorization,content-type")

    async def scenario(opened: House) -> None:
        status, head, _ = await asked(opened, sent("OPTIONS", "/v1/forward", b"", origin, *asking))
        assert status == 200, "what a browser asks before it calls comes without a key"
        assert b"authorization" in head
        status, head, _ = await asked(opened, sent("POST", "/v1/forward", b"{}", origin))
        assert status == 401
        assert b"access-control-allow-origin: https://app.example" in head
        assert (await asked(opened, sent("POST", "/v1/forward", b"{}", origin, typed, bearer(KEY))))[0] == 422

    guarded.run(gate, fast, scenario)


@DOORS
def test_a_rate_holds_over_both_doors(guarded: Service, tmp_path: Path, fast: bool) -> None:
    gate = Gate(KeyRing(write(tmp_path / "keys.json", [record("a", KEY, rate="2/h"), record("b", OTHER)]), None))

    async def scenario(opened: House) -> None:
        call, listing = sent("POST", "/v1/forward", b"{}", bearer(KEY)), sent("GET", "/v1/ops", b"", bearer(KEY))
        assert [(await asked(opened, request))[0] for request in (call, listing)] == [422, 200]
        for request in (call, listing):
            status, head, answer = await asked(opened, request)
            assert (status, json.loads(answer)["code"]) == (429, "rate_limited")
            (stated,) = re.findall(rb"retry-after: (\d+)", head)
            assert 1700 < int(stated) <= 1800
        assert (await asked(opened, sent("POST", "/v1/forward", b"{}", bearer(OTHER))))[0] == 422

    guarded.run(gate, fast, scenario)


@DOORS
def test_no_more_than_so_many_at_a_time(guarded: Service, tmp_path: Path, fast: bool) -> None:
    """One that is answered, and one whose client has left, make room."""
    gate = Gate(KeyRing(write(tmp_path / "keys.json", [record("a", KEY, concurrency=2)]), None))
    call = sent("POST", "/v1/forward", b"{}", bearer(KEY))

    async def scenario() -> None:
        pool = FakePool(None)
        routes = guarded.routes if fast else create_routes(SETTINGS, pool, guarded.kept)
        async with house(pool, wrap(routes, SETTINGS, gate), settings=SETTINGS, gate=gate) as opened:
            if not fast:
                without_orders(opened.state)
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
    """What a pool says of a job."""
    from service.api.media import JSON
    from service.workers.task import Reply

    return Reply(200, JSON, [b"{}"])


@DOORS
def test_a_revoked_key_is_refused_on_a_connection_that_is_open(
    guarded: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: bool
) -> None:
    """Its head is known by then: that it was good once is not remembered."""
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


def test_the_caller_is_known_behind_both_doors(guarded: Service, gate: Gate) -> None:
    for fast in (True, False):
        pool = guarded.counted if fast else guarded.routes.state.service.pool
        pool.jobs.clear()

        async def scenario(opened: House) -> None:
            for key in (KEY, OTHER):
                await asked(opened, sent("POST", "/v1/forward", b"{}", bearer(key)))

        guarded.run(gate, fast, scenario)
        assert [job.namespace for job in pool.jobs] == ["alice", "bob"]
