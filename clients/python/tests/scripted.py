"""A scripted server that records its requests, and a clock that only waiting advances."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import httpx

import gradserve_client as gs
from gradserve_client.retries import Surroundings

Reply = httpx.Response | Exception


def answer(status: int = 200, json_: Any = None, **headers: str) -> httpx.Response:
    """A JSON answer; a problem if the status is an error."""
    media = "application/problem+json" if status >= 400 else "application/json"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, content=json.dumps(json_).encode(), headers={"Content-Type": media, **named})


def problem(status: int, code: str, retry_after: int | None = None, **members: Any) -> httpx.Response:
    """A refusal."""
    headers = {} if retry_after is None else {"Retry_After": str(retry_after)}
    return answer(status, {"status": status, "code": code, "detail": f"a sentence about {code}", **members}, **headers)


class Script(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Transport that gives replies in order, and records the requests."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = [*replies]
        self.received: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.received.append(request)
        request.read()
        return self._next()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.received.append(request)
        await request.aread()
        return self._next()

    def _next(self) -> httpx.Response:
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def keys(self) -> list[str | None]:
        """The Idempotency-Keys of the requests."""
        return [request.headers.get("idempotency-key") for request in self.received]


class Clock:
    """A clock in seconds that only waiting advances."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.keys = (f"key-{number}" for number in range(1, 100))

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.waits.append(seconds)

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)

    def surroundings(self, chance: float = 0.5) -> Surroundings:
        """The surroundings for a client."""
        return Surroundings(lambda: self.now, lambda: chance, lambda: next(self.keys))


def scripted_client(
    replies: Iterable[Reply], clock: Clock | None = None, **options: Any
) -> tuple[gs.Client, Script, Clock]:
    """A client of a scripted server."""
    script, clock = Script(*replies), clock or Clock()
    arguments = {"timeout": None, "surroundings": clock.surroundings(), "sleep": clock.sleep, **options}
    return gs.Client("http://scripted", transport=script, **arguments), script, clock


VALUE = {"dtype": "float64", "shape": [], "data": [9.0]}
FORWARD = {"values": [{"node": 1, "tensor": VALUE}], "stats": {}}
STORED = {"tensor_id": "w", "dtype": "float64", "shape": [], "bytes": 8, "etag": "0123456789abcdef", "durable": True}
GRAPH = {"graph_id": "ab" * 32, "node_count": 2, "graph": {"nodes": []}}


def square() -> tuple[gs.Graph, gs.Node, gs.Node]:
    """A graph, its leaf, and its value."""
    graph = gs.Graph()
    w = graph.parameter("w")
    return graph, w, w.square()
