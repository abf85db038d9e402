"""Timeouts of requests while the store hangs: every route of the application takes `timeout_ms` and keeps it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from service import app
from service.api.media import JSON
from service.cluster import composition
from service.cluster.composition import Cluster
from service.core.keys.authentication import Gate
from service.core.settings import Settings
from service.facades.protocols import FACADES
from service.observe.store import StateStore, StoreService
from service.observe.tally import Tally
from service.store.tables import Registered, StoredModel, TensorVersion
from service.store.writes import Stored
from service.web.hosted import Hosted
from service.web.pages.openapi import shipped_document
from service.web.routing import scope_of
from service.workers.task import PUT_MODEL, PUT_TENSOR, READ_MODEL, REGISTER, Reply, Task
from tests.service.cluster.serving import SECRET
from tests.service.described import operations
from tests.service.store.memory_objects import MemoryObjects
from tests.service.web.harness import FakePool, Memory, house
from tests.service.web.test_keeping_doors import BlockingJournal

#: the server's own timeout is longer than any test
SETTINGS: dict[str, Any] = {"device": "cpu", "timeout_ms": 86_400_000, "facades": tuple(FACADES)}
PATIENCE = 20.0
#: name of the tensor, of the model, and of an op
NAME = "exp"
ETAG = "0123456789abcdef"
GRAPH = Registered.parse(b'{"graph_id":"g","description":"","node_count":1,"graph":{}}')
MODEL = StoredModel.parse(b'{"name":"exp","etag":"%b","graph_id":"g","inputs":[]}' % ETAG.encode())


class HangingJournal(BlockingJournal):
    """Journal of a shared place whose commits and looks block until the test unblocks them."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = self.is_due = True

    def look(self) -> None:
        assert self.unblocked.wait(PATIENCE)


class HangingObjects(MemoryObjects):
    """Object store that does not answer while `answers` is not set."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()

    def __getattribute__(self, name: str) -> Any:
        if name in ("get", "put", "put_new", "delete", "list"):
            assert object.__getattribute__(self, "answers").wait(PATIENCE)
        return object.__getattribute__(self, name)


class Pool(FakePool):
    """Pool whose replies are stored, or depend on stored tensors."""

    def __init__(self) -> None:
        super().__init__(self.reply)

    def reply(self, task: Task) -> Reply:
        bodies = {REGISTER: GRAPH.record, READ_MODEL: MODEL.record, PUT_MODEL: MODEL.record}
        reply = Reply(200, JSON, [bodies.get(task.call, b"{}")], consulted=True)
        if task.call == PUT_TENSOR:
            reply.stored, reply.stored_data = [Stored(NAME, ETAG, "float64", (1,))], [memoryview(bytes(8))]
        return reply


class Server:
    """Server on a store that hangs, and its client."""

    def __init__(self, routes: FastAPI, client: httpx.AsyncClient) -> None:
        self.routes, self.client = routes, client

    async def ask(self, method: str, path: str, **headers: str) -> httpx.Response | None:
        """Send a request with a short timeout; return None if the server does not answer while the store hangs."""
        content = b"{}" if method in ("POST", "PUT") else None
        headers |= {"Content-Type": JSON} if content else {}
        path += "?timeout_ms=100"
        asking = asyncio.ensure_future(self.client.request(method, path, content=content, headers=headers))
        if (await asyncio.wait([asking], timeout=PATIENCE / 2))[0]:
            return asking.result()
        asking.cancel()
        return None

    async def code(self, method: str, path: str, **headers: str) -> str:
        """Send a request with a short timeout, and return the code of its error."""
        response = await self.ask(method, path, **headers)
        assert response is not None, f"{method} {path} was not answered while the store hung"
        return str(response.json()["code"])


def stored_resources(store: StoreService) -> None:
    """Put a tensor, a graph and a model into the tables."""
    store.tensors.load(("", NAME), TensorVersion("float64", (1,), ETAG, Memory(8)))
    store.graphs.load(("", "g"), GRAPH)
    store.models.load(("", NAME), MODEL)


@asynccontextmanager
async def single_server(door: str, journal: HangingJournal) -> AsyncIterator[Server]:
    """Run a server alone at its place, on our own connections, or under another ASGI server."""
    settings, pool = Settings(**SETTINGS), Pool()
    store = StoreService(settings, pool, journal)
    stored_resources(store)
    routes = app.create_routes(settings, pool, store, Tally())
    application = app.wrap(routes, settings, Gate())
    async with house(pool, application, settings=settings, store=store) as opened:
        own = door == "own connections"
        url = f"http://127.0.0.1:{opened.address[1]}" if own else "http://localhost"
        transport = None if own else httpx.ASGITransport(Hosted(application, settings))
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(transport=transport, base_url=url, timeout=None, limits=limits) as client:
            try:
                yield Server(routes, client)
            finally:
                journal.unblocked.set()
                assert await store.commits.close(PATIENCE)


@asynccontextmanager
async def cluster_server(objects: HangingObjects, address: str, pool: Pool) -> AsyncIterator[tuple[FastAPI, ASGIApp]]:
    """Run a server of a cluster on these objects; yield its routes and its application."""
    stated = {"state": "s3://bucket/folder", "cluster_secret": SECRET, "cluster_address": address}
    settings = Settings(**SETTINGS, **stated, cluster="on", lease_ms=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composition, "ClusterPool", lambda *_: pool)
        patch.setattr(composition, "open_objects", lambda _: objects)
        cluster = Cluster(settings)
    store: StateStore = app.open_store(settings, pool, Tally(), None, cluster)
    answered = objects.answers.is_set()
    objects.answers.set()
    cluster._watch._read()  # the store hangs after the start
    if not answered:
        objects.answers.clear()
    routes = app.create_routes(settings, pool, store, Tally())
    try:
        yield routes, app.wrap(routes, settings, Gate(), cluster)
    finally:
        objects.answers.set()
        await store.close(PATIENCE)


def requests_of(routes: FastAPI) -> Iterator[tuple[str, str]]:
    """Yield method and path of each route that may wait: all except pages, documents, health checks and metrics."""
    for route in routes.routes:
        if isinstance(route, APIRoute) and scope_of("GET", route.path) is not None and route.path != "/metrics":
            for method in sorted(route.methods):
                yield method, route.path.format(name=NAME, graph_id="g", version="g")


async def check_all(server: Server) -> None:
    """Send a request to each route at once, and check that all are answered while the store hangs."""
    asked = [
        (method, path, headers)
        for method, path in requests_of(server.routes)
        for headers in ({}, {"Idempotency-Key": f"{method}{path}"})
    ]
    responses = await asyncio.gather(*(server.ask(method, path, **headers) for method, path, headers in asked))
    assert len(asked) > 100
    failed = [
        f"{method} {path}: {response and response.text}"
        for (method, path, _), response in zip(asked, responses, strict=True)
        if response is None or response.status_code not in (200, 409, 503, 504)
    ]
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("door", ["own connections", "ASGI"])
def test_every_route_keeps_its_timeout_while_the_store_hangs(door: str) -> None:
    async def scenario() -> None:
        async with single_server(door, HangingJournal()) as server:
            await check_all(server)

    asyncio.run(scenario())


@pytest.mark.parametrize("owner", ["nobody", "this server", "another server"])
def test_every_route_of_a_cluster_keeps_its_timeout_while_the_store_hangs(owner: str) -> None:
    async def scenario() -> None:
        objects, applications = HangingObjects(), list[ASGIApp]()

        async def other(scope: Scope, receive: Receive, send: Send) -> None:
            await applications[0](scope, receive, send)

        async with house(app=other) as opened, AsyncExitStack() as stack:
            other_address = f"http://127.0.0.1:{opened.address[1]}"
            if owner == "another server":
                objects.answers.set()
                _, first = await stack.enter_async_context(cluster_server(objects, other_address, Pool()))
                applications.append(first)
                async with httpx.AsyncClient(base_url=other_address) as client:
                    assert (await client.get("/v1/tensors")).status_code == 200
            routes, application = await stack.enter_async_context(
                cluster_server(objects, "http://10.0.0.7:8000", Pool())
            )
            transport = httpx.ASGITransport(application)
            client = httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=None)
            await stack.enter_async_context(client)
            if owner != "nobody":
                objects.answers.set()
                assert (await client.get("/v1/tensors")).status_code == 200
                objects.answers.clear()
            await check_all(Server(routes, client))

    asyncio.run(scenario())


@pytest.mark.parametrize("door", ["own connections", "ASGI"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/v1/tensors/exp"),
        ("DELETE", "/v1/tensors/exp"),
        ("POST", "/v1/graphs"),
        ("DELETE", "/v1/graphs/unused"),
        ("PUT", "/v1/models/exp"),
        ("DELETE", "/v1/models/exp"),
    ],
)
def test_only_a_write_that_has_begun_is_unconfirmed(door: str, method: str, path: str) -> None:
    async def scenario() -> None:
        journal = HangingJournal()
        async with single_server(door, journal) as server:
            store: StoreService = server.routes.state.service.store
            store.graphs.load(("", "unused"), GRAPH)
            if method == "POST":
                store.models.load(("", NAME), None)
                store.graphs.load(("", "g"), None)
            if method == "DELETE":
                assert await server.code(method, f"{path}s") == "not_ready", "it does not exist, as far as is known"
            assert await server.code(method, path, **{"Idempotency-Key": "one"}) == "not_ready"
            assert not journal.begun.is_set()
            journal.is_due = False
            assert await server.code(method, path) == "unconfirmed"
            assert journal.begun.is_set()

    asyncio.run(scenario())


def test_body_has_the_timeout_of_its_request() -> None:
    async def scenario() -> None:
        async with single_server("own connections", HangingJournal()) as server:
            url = server.client.base_url
            reader, writer = await asyncio.open_connection(url.host, url.port)
            head = b"PUT /v1/tensors/exp?timeout_ms=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
            writer.write(head)
            async with asyncio.timeout(PATIENCE):
                assert (await reader.readline()).startswith(b"HTTP/1.1 504 ")
            writer.close()

    asyncio.run(scenario())


def test_document_lists_the_timeout_of_every_request() -> None:
    for path, method, operation in operations(shipped_document()):
        names = [parameter["name"] for parameter in operation.get("parameters", ())]
        assert ("timeout_ms" in names) == path.startswith("/v1/"), f"{method} {path}"
